import type { Random } from './system.ts';

/**
 * Returns a UUID of version 7 (RFC 9562 §5.7). It begins with the time, in milliseconds since the
 * Unix epoch, so later ones are greater.
 */
export function uuid7(now: number, random: Random): string {
  const bytes = random(16);
  bytes.writeUIntBE(now, 0, 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
