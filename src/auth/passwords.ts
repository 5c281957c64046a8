/**
 * Hashes and verifies passwords with scrypt (RFC 7914), in PHC string format:
 *
 *     $scrypt$ln=<log2 N>,r=<block size>,p=<parallelization>$<salt>$<hash>
 *
 * Salt (16 bytes) and hash (32 bytes) are base64 without padding (RFC 4648 §4).
 */
import { scrypt as scryptCallback, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { promisify } from 'node:util';
import { Budget } from '../base/budget.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import { Turns } from '../base/turns.ts';
import { normalisePassword } from './password-rules.ts';

interface PasswordOptions {
  readonly random: Random;
  /** The binary logarithm of N; r=8, p=3. OWASP recommends 15: about 240 ms and 32 MiB. */
  readonly scryptCost: number;
}

/** A parsed PHC string. N is 2^`exponent`; scrypt uses 128 · N · r bytes. */
interface ScryptHash {
  readonly cost: { readonly exponent: number; readonly r: number; readonly p: number };
  readonly salt: Buffer;
  readonly hash: Buffer;
}

const [saltBytes, hashBytes] = [16, 32];

export class Passwords {
  readonly #random: Random;
  readonly #head: string;
  /** Stands in for a missing hash: it takes the same time, and no password matches it. */
  readonly #unmatchable: ScryptHash;
  readonly #waiting = new Turns<() => void>();
  readonly places = new Budget(limits.passwordQueueLengthMax, limits.passwordQueueLengthMax / 2);
  #running = 0;

  constructor({ random, scryptCost }: PasswordOptions) {
    const cost = { exponent: scryptCost, r: 8, p: 3 };
    this.#random = random;
    this.#head = `$scrypt$ln=${cost.exponent},r=${cost.r},p=${cost.p}$`;
    this.#unmatchable = { cost, salt: random(saltBytes), hash: random(hashBytes) };
  }

  /** @throws CairnError `overloaded` with `retryAfterSeconds` */
  async hash(password: string, turn: string): Promise<string> {
    const salt = this.#random(saltBytes);
    const hash = await this.#inTurn(turn, password, { ...this.#unmatchable, salt });
    return `${this.#head}${unpadded(salt)}$${unpadded(hash)}`;
  }

  /**
   * True if `phc` is a hash of `password`. Without a valid hash (an unknown user, a user without a
   * password) the result is false, after a hash at the configured cost.
   * @throws CairnError `overloaded` with `retryAfterSeconds`
   */
  async verify(password: string, phc: string | undefined, turn: string): Promise<boolean> {
    const own = parsePhc(phc ?? '');
    const expected = own ?? this.#unmatchable;
    const isEqual = timingSafeEqual(await this.#inTurn(turn, password, expected), expected.hash);
    return isEqual && own !== undefined;
  }

  needsRehash(phc: string): boolean {
    return !phc.startsWith(this.#head);
  }

  async #inTurn(turn: string, password: string, { salt, cost, hash }: ScryptHash): Promise<Buffer> {
    if (this.#running < limits.passwordHashesMax) this.#running += 1;
    else await this.#wait(turn);
    try {
      return await scrypt(normalisePassword(password), salt, cost, hash.length);
    } finally {
      // Hands the place to the next waiting hash, so that no newcomer can take it.
      const next = this.#waiting.next();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  /**
   * Waits for the caller's turn. If the queue is full, the caller with the most hashes in it loses
   * its first one to a caller with fewer, so that no caller can block the others.
   * @throws CairnError `overloaded`
   */
  #wait(turn: string): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        place?.release();
        resolve();
      };
      const place = this.places.take(turn, 1, () => {
        this.#waiting.remove(turn, begin);
        reject(tooManyHashes);
      });
      if (place === undefined) throw tooManyHashes;
      this.#waiting.add(turn, begin);
    });
  }
}

const tooManyHashes = new CairnError(
  'overloaded',
  'Cannot check the password: too many passwords are being checked',
  {
    retryAfterSeconds: 5,
  },
);

const promisedScrypt = promisify<string, Buffer, number, ScryptOptions, Buffer>(scryptCallback);

/** Hashes on a thread of libuv's pool, which also syncs files. */
export function scrypt(
  password: string,
  salt: Buffer,
  cost: ScryptHash['cost'],
  bytes: number,
): Promise<Buffer> {
  const { exponent, r, p } = cost;
  const N = 2 ** exponent;
  // OpenSSL requires slightly more than 128 · N · r.
  return promisedScrypt(password, salt, bytes, {
    N,
    r,
    p,
    maxmem: 128 * r * (N + p + 2),
  });
}

/** Up to N = 2^20, r = 32 and p = 16: more expensive hashes would delay every sign-in. */
const phcForm = new RegExp(
  String.raw`^\$scrypt\$ln=([1-9]|1\d|20),r=([1-9]|[12]\d|3[0-2]),p=([1-9]|1[0-6])` +
    String.raw`\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$`,
);

/** Parses a PHC string; `undefined` for other functions and for parameters out of bounds. */
export function parsePhc(text: string): ScryptHash | undefined {
  const [, exponent, r, p, saltText = '', hashText = ''] = phcForm.exec(text) ?? [];
  const cost = { exponent: Number(exponent), r: Number(r), p: Number(p) };
  const [salt, hash] = [Buffer.from(saltText, 'base64'), Buffer.from(hashText, 'base64')];
  const isWhole =
    salt.length >= 8 &&
    hash.length >= 16 &&
    unpadded(salt) === saltText &&
    unpadded(hash) === hashText;
  return isWhole ? { cost, salt, hash } : undefined;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
