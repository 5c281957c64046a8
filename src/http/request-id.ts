import type { Random } from '../base/system.ts';

/**
 * Names for requests: version 8 UUIDs (RFC 9562 §5.8) of 74 random bits that a process draws once, and a counter of
 * 48 bits. Unique like any UUID, at the price of an addition; they name, and guard nothing.
 *
 *   rrrrrrrr-rrrr-8rrr-vrrr-cccccccccccc    r random, v the variant and 2 random bits, c the counter
 */
export function createRequestIds(random: Random): () => string {
  const bytes = random(8);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x3f) | 0x80, 6);
  const hex = `${bytes.toString('hex')}${random(2).toString('hex')}`;
  const prefix = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(16, 19)}-${hex.slice(12, 16)}-`;
  let block = '';
  let blocks = 0;
  let low = 0xffff;
  return () => {
    low = (low + 1) & 0xffff;
    if (low === 0) {
      block = `${prefix}${blocks.toString(16).padStart(8, '0')}`;
      blocks += 1;
    }
    return `${block}${hexBytes[low >> 8]}${hexBytes[low & 0xff]}`;
  };
}

const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
