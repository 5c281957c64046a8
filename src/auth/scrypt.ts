/**
 * scrypt (RFC 7914) in PHC string format:
 *
 *     $scrypt$ln=<log2 N>,r=<block size>,p=<parallelization>$<salt>$<hash>
 *
 * Salt and hash are base64 without padding (RFC 4648 §4): 16 and 32 bytes where Cairn makes them.
 */
import { scrypt as scryptCallback, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { promisify } from 'node:util';

export interface ScryptHash {
  /** N is 2 to the power of `exponent`. Memory is 128 · N · r bytes. */
  readonly cost: { readonly exponent: number; readonly r: number; readonly p: number };
  readonly salt: Buffer;
  readonly hash: Buffer;
}

export const saltBytes = 16;
const hashBytes = 32;
const promisedScrypt = promisify<string, Buffer, number, ScryptOptions, Buffer>(scryptCallback);

export function formatPhc({ cost, salt, hash }: ScryptHash): string {
  return `$scrypt$ln=${cost.exponent},r=${cost.r},p=${cost.p}$${unpadded(salt)}$${unpadded(hash)}`;
}

/** Reads a PHC string; `undefined` for other functions, and for parameters that no login should have to wait for. */
export function parsePhc(text: string): ScryptHash | undefined {
  const [, ln, r, p, saltText = '', hashText = ''] = phcForm.exec(text) ?? [];
  const cost = { exponent: Number(ln), r: Number(r), p: Number(p) };
  const [salt, hash] = [Buffer.from(saltText, 'base64'), Buffer.from(hashText, 'base64')];
  const isBounded =
    cost.exponent >= 1 && cost.exponent <= 20 && cost.r >= 1 && cost.r <= 32 && cost.p >= 1 && cost.p <= 16;
  const isWhole = salt.length >= 8 && hash.length >= 16 && unpadded(salt) === saltText && unpadded(hash) === hashText;
  return isBounded && isWhole ? { cost, salt, hash } : undefined;
}

/** Hashes on a thread of libuv's pool: the same threads that sync files. */
export function scrypt(password: string, salt: Buffer, cost: ScryptHash['cost'], bytes = hashBytes): Promise<Buffer> {
  const { exponent, r, p } = cost;
  const N = 2 ** exponent;
  // OpenSSL counts the blocks and a little more than 128 · N · r.
  return promisedScrypt(password, salt, bytes, { N, r, p, maxmem: 128 * r * (N + p + 2) });
}

/** Whether `password` is the one that was hashed, in constant time but for the cost. */
export async function verifyScrypt(password: string, { salt, cost, hash }: ScryptHash): Promise<boolean> {
  return timingSafeEqual(await scrypt(password, salt, cost, hash.length), hash);
}

const phcForm = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$/;

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
