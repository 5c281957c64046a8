import type { Random } from '../base/system.ts';

/**
 * Returns a generator of request ids: version 8 UUIDs (RFC 9562 §5.8) of 72 random bits, drawn
 * once, and a counter. They are unique and cheap, but predictable: never use them as secrets.
 *
 *   rrrrrrrr-rrrr-8rrr-8rrr-cccccccccccc    r random, c the counter, in hexadecimal
 */
export function createRequestIds(random: Random): () => string {
  const hex = random(9).toString('hex');
  const prefix = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-8${hex.slice(15, 18)}-`;
  let count = -1;
  return () => prefix + (count += 1).toString(16).padStart(12, '0');
}
