/**
 * Passwords as they are hashed, verified and chosen. Hashes are scrypt (RFC 7914) in PHC string format:
 *
 *     $scrypt$ln=<log2 N>,r=<block size>,p=<parallelization>$<salt>$<hash>
 *
 * Salt and hash are base64 without padding (RFC 4648 §4): 16 and 32 bytes where Cairn makes them.
 */
import { scrypt as scryptCallback, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { promisify } from 'node:util';
import { CairnError, type Issue } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import { passwordIssues, type PasswordOwner } from './password-rules.ts';

export interface PasswordOptions {
  readonly random: Random;
  /** N is 2 to this power, with r=8 and p=3: 15 is OWASP's choice, some 240 ms and 32 MiB. */
  readonly scryptCost: number;
  /** Code points. */
  readonly passwordLengthMin: number;
}

const [saltBytes, hashBytes] = [16, 32];

/** All of a process share one, because it bounds how many hashes run at once. */
export function createPasswords({ random, scryptCost, passwordLengthMin }: PasswordOptions) {
  const cost = { exponent: scryptCost, r: 8, p: 3 };
  const head = `$scrypt$ln=${cost.exponent},r=${cost.r},p=${cost.p}$`;
  const nobody: ScryptHash = { cost, salt: random(saltBytes), hash: random(hashBytes) };
  const waiting: (() => void)[] = [];
  let running = 0;

  /** @throws CairnError `overloaded` with `retryAfterSeconds` */
  async function inTurn(password: string, { salt, cost, hash }: ScryptHash): Promise<Buffer> {
    if (waiting.length >= limits.passwordQueueLengthMax) throw tooManyPasswords;
    // Whoever ends hands its place over, so that nobody slips in between.
    if (running >= limits.passwordHashesMax) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await scrypt(normalise(password), salt, cost, hash.length);
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  }

  /** @throws CairnError `overloaded` with `retryAfterSeconds` */
  async function hash(password: string): Promise<string> {
    const salt = random(saltBytes);
    return `${head}${unpadded(salt)}$${unpadded(await inTurn(password, { ...nobody, salt }))}`;
  }

  /**
   * Whether `password` was hashed as `phc`, in constant time but for the cost. Where there is no hash (an unknown
   * user, a user without a password) or it cannot be read, the answer is false after the time that a wrong password
   * takes at today's cost.
   * @throws CairnError `overloaded` with `retryAfterSeconds`
   */
  async function verify(password: string, phc = ''): Promise<boolean> {
    const expected = parsePhc(phc) ?? nobody;
    return timingSafeEqual(await inTurn(password, expected), expected.hash) && expected !== nobody;
  }

  /** Whether `phc` was made at another cost than is configured; to be asked after a login that succeeded. */
  const needsRehash = (phc: string): boolean => !phc.startsWith(head);

  /** What is wrong with a password that `owner` wants to have. */
  const check = (password: string, owner: PasswordOwner): Issue[] =>
    passwordIssues(normalise(password), owner, passwordLengthMin);

  return { hash, verify, needsRehash, check };
}

export type Passwords = ReturnType<typeof createPasswords>;

/**
 * One form for what looks the same, whichever keyboard it was typed on: RFC 8265 §4.2.2 (OpaqueString), that is NFC,
 * and every space an ASCII one. NFKC would make different characters the same, and shorten what was chosen.
 * What stays too long thereafter is left as it is: to put its accents in order would take the square of its length.
 */
function normalise(password: string): string {
  if (Buffer.byteLength(password) > limits.passwordBytesMax * 3) return password;
  return password.replace(/\p{Zs}/gu, ' ').normalize('NFC');
}

const tooManyPasswords = new CairnError('overloaded', 'Cannot check the password: too many are being checked', {
  retryAfterSeconds: 5,
});

/** N is 2 to the power of `exponent`. Memory is 128 · N · r bytes. */
interface ScryptHash {
  readonly cost: { readonly exponent: number; readonly r: number; readonly p: number };
  readonly salt: Buffer;
  readonly hash: Buffer;
}

const promisedScrypt = promisify<string, Buffer, number, ScryptOptions, Buffer>(scryptCallback);

/** Hashes on a thread of libuv's pool: the same threads that sync files. */
export function scrypt(password: string, salt: Buffer, cost: ScryptHash['cost'], bytes: number): Promise<Buffer> {
  const { exponent, r, p } = cost;
  const N = 2 ** exponent;
  // OpenSSL counts the blocks and a little more than 128 · N · r.
  return promisedScrypt(password, salt, bytes, { N, r, p, maxmem: 128 * r * (N + p + 2) });
}

/** Up to N = 2^20, r = 32 and p = 16: no login should have to wait for more. */
const phcForm = new RegExp(
  String.raw`^\$scrypt\$ln=([1-9]|1\d|20),r=([1-9]|[12]\d|3[0-2]),p=([1-9]|1[0-6])` +
    String.raw`\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$`,
);

/** Reads a PHC string; `undefined` for other functions, and for parameters out of bounds. */
export function parsePhc(text: string): ScryptHash | undefined {
  const [, exponent, r, p, saltText = '', hashText = ''] = phcForm.exec(text) ?? [];
  const cost = { exponent: Number(exponent), r: Number(r), p: Number(p) };
  const [salt, hash] = [Buffer.from(saltText, 'base64'), Buffer.from(hashText, 'base64')];
  const isWhole = salt.length >= 8 && hash.length >= 16 && unpadded(salt) === saltText && unpadded(hash) === hashText;
  return isWhole ? { cost, salt, hash } : undefined;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
