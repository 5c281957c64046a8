import { CairnError, type Issue } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import { passwordIssues, type PasswordOwner } from './password-rules.ts';
import { formatPhc, parsePhc, saltBytes, scrypt, verifyScrypt, type ScryptHash } from './scrypt.ts';

export interface PasswordOptions {
  readonly random: Random;
  /** N is 2 to this power, with r=8 and p=3: 15 is OWASP's choice, some 240 ms and 32 MiB. */
  readonly costExponent: number;
  /** Code points. */
  readonly lengthMin: number;
}

/**
 * Passwords as they are hashed, verified and chosen. Hashes are PHC strings. All of a process share one, because it
 * bounds how many hashes run at once.
 */
export function createPasswords({ random, costExponent, lengthMin }: PasswordOptions) {
  const cost = { exponent: costExponent, r: 8, p: 3 };
  const nobody: ScryptHash = { cost, salt: random(saltBytes), hash: random(32) };
  const enqueue = createQueue(limits.passwordHashesMax, limits.passwordQueueLengthMax);

  /** @throws CairnError `overloaded` with `retryAfterSeconds` */
  function hash(password: string): Promise<string> {
    const salt = random(saltBytes);
    return enqueue(async () => formatPhc({ cost, salt, hash: await scrypt(normalise(password), salt, cost) }));
  }

  /**
   * Whether `password` is the one that was hashed. Where there is no hash (an unknown user, a user without a
   * password) or it cannot be read, the answer is false after the time that a wrong password takes at today's cost.
   * @throws CairnError `overloaded` with `retryAfterSeconds`
   */
  function verify(password: string, phc: string | undefined): Promise<boolean> {
    const candidate = normalise(password);
    const expected = phc === undefined ? undefined : parsePhc(phc);
    return enqueue(async () => (await verifyScrypt(candidate, expected ?? nobody)) && expected !== undefined);
  }

  /** Whether `phc` was made at another cost than is configured; to be asked after a login that succeeded. */
  function needsRehash(phc: string): boolean {
    const made = parsePhc(phc)?.cost;
    return made?.exponent !== cost.exponent || made.r !== cost.r || made.p !== cost.p;
  }

  /** What is wrong with a password that `owner` wants to have. */
  function check(password: string, owner: PasswordOwner): Issue[] {
    return passwordIssues(normalise(password), owner, lengthMin);
  }

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

/** Runs at most `runningMax` tasks at once, and lets at most `waitingMax` wait for their turn. */
function createQueue(runningMax: number, waitingMax: number) {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async <T>(task: () => Promise<T>): Promise<T> => {
    if (waiting.length >= waitingMax) throw tooManyPasswords;
    // Whoever ends hands its place over, so that nobody slips in between.
    if (running >= runningMax) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
