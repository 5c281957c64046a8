import type { Random } from '../base/system.ts';

/**
 * Names for requests: version 8 UUIDs (RFC 9562 §5.8) of 74 random bits that a process draws once, and a counter of
 * 48 bits. Unique like any UUID, at the price of an addition; they name, and guard nothing.
 *
 *   rrrrrrrr-rrrr-8rrr-vrrr-cccccccccccc    r random, v the variant and 2 random bits, c the counter
 */
export function createRequestIds(random: Random): () => string {
  const bytes = random(10);
  const hex = bytes.toString('hex');
  const variant = '89ab'.charAt(bytes.readUInt8(9) & 3);
  const prefix = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-${variant}${hex.slice(15, 18)}-`;
  let block = '';
  let count = 0;
  return () => {
    const low = count & 0xff;
    if (low === 0) block = prefix + (count / 256).toString(16).padStart(10, '0');
    count += 1;
    return `${block}${hexBytes[low]}`;
  };
}

const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
