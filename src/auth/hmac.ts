import { hash } from 'node:crypto';
import { invariant } from '../base/invariant.ts';
import { limits } from '../base/limits.ts';

const blockBytes = 64;
const hashBytes = 32;

/**
 * HMAC-SHA-256 (RFC 2104) under one key, of ASCII texts as long as a token may be; the result is base64url.
 *
 * `createHmac` does the same, but each of its objects burdens the garbage collector: a server that verifies a new token
 * with every request spends 6 µs (Node.js 26) to 12 µs (20) on it, and half of that on two calls of `hash`.
 */
export function hmacSha256(key: Buffer): (text: string) => string {
  const inner = Buffer.alloc(blockBytes + limits.accessTokenBytesMax, 0);
  const outer = Buffer.alloc(blockBytes + hashBytes, 0);
  const block = key.length > blockBytes ? hash('sha256', key, 'buffer') : key;
  for (let index = 0; index < blockBytes; index += 1) {
    inner[index] = (block[index] ?? 0) ^ 0x36;
    outer[index] = (block[index] ?? 0) ^ 0x5c;
  }
  return (text) => {
    const length = inner.write(text, blockBytes, 'utf8');
    invariant(length === text.length, 'a text that is signed is ASCII and no longer than a token');
    outer.write(hash('sha256', inner.subarray(0, blockBytes + length), 'binary'), blockBytes, 'binary');
    return hash('sha256', outer, 'base64url');
  };
}
