import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { networkOf, siteOf } from '../base/network.ts';
import type { Clock } from '../base/system.ts';
import type { Turn } from './passwords.ts';

/** An admitted attempt to give a password. It counts as a failure until it is settled. */
export interface Attempt {
  /** The caller for whom the password is compared. */
  readonly turn: Turn;
  /**
   * The refusal that a stranger would have got. An attempt that fails must be answered with
   * it: otherwise the answer would tell which accounts sign in from this network.
   */
  readonly disguise: CairnError | undefined;
  /**
   * Must be called once. `withdrawn`: the server was too busy to compare the password.
   */
  readonly settle: (outcome: 'succeeded' | 'failed' | 'withdrawn') => void;
}

/** Something that is counted: by which rule, and under which name. */
type Count = readonly [Rate, key: string];

/**
 * Slows down callers that guess passwords or probe e-mail addresses. No account is locked
 * permanently, and a restart forgets everything.
 */
export class Throttle {
  readonly #clock: Clock;
  // Failed attempts. From a network where the account has signed in before or has a session,
  // only the pair of account and network counts: failures of others cannot lock the owner out.
  readonly #pair = new Rate(5, 60);
  readonly #failures = {
    network: new Rate(30, 10),
    site: new Rate(120, 2.5),
    all: new Rate(600, 0.2),
  };
  readonly #account = new Rate(30, 120);
  /** Successful sign-ins by account: each costs a hash, and only the owner can cause them. */
  readonly #signIns = new Rate(60, 5);
  /** E-mail addresses that strangers ask for. */
  readonly #strangersEmails = {
    network: new Rate(30, 10),
    site: new Rate(120, 2.5),
    all: new Rate(600, 1),
  };
  /** E-mail addresses that users ask for. */
  readonly #usersEmails = { user: new Rate(30, 10), all: new Rate(600, 1) };
  /** Pairs that have signed in. The pair that signed in longest ago comes first. */
  readonly #known = new Set<string>();
  /** The number of attempts of a pair that are not settled. */
  readonly #undecided = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Starts a sign-in to `account` from `address`. `hasSession`: the account has a live session
   * from there. Refused attempts do not count.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  signIn(account: string, address: string, hasSession = false): Attempt {
    const [name, network, now] = [account.toLowerCase(), networkOf(address), this.#clock.elapsed()];
    const pair = `${name} ${network}`;
    const isKnown = hasSession || this.#known.has(pair);
    const shared = [...countsOf(this.#failures, address), [this.#account, name]] as const;
    refuse(this.#signIns.waitMs(name, now), 'Cannot sign in: the account has signed in too often');
    const strangersWaitMs = longestWait(shared, now);
    // A known pair that failed too often is told what a stranger is told, if that is refused.
    if (!isKnown || this.#pair.waitMs(pair, now) > 0) refuse(strangersWaitMs, tooManyFailures);
    const settle = this.#begin(pair, isKnown ? [] : shared);
    return {
      turn: { caller: isKnown ? pair : network, isKnown },
      disguise: refusal(strangersWaitMs, tooManyFailures),
      settle: (outcome) => {
        settle(outcome);
        if (outcome !== 'succeeded') return;
        this.#signIns.count(name, this.#clock.elapsed());
        this.#remember(pair);
      },
    };
  }

  /**
   * Starts an attempt of a signed-in user to give the own password again. Failures are counted
   * apart from sign-ins.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  proof(userId: number): Attempt {
    const caller = `user ${userId}`;
    const settle = this.#begin(caller, []);
    return { turn: { caller, isKnown: true }, disguise: undefined, settle };
  }

  /**
   * Counts a request for an e-mail address, because the response reveals whether the address
   * is taken.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  countNewEmail(userId: number | undefined, address: string): void {
    const counts: readonly Count[] =
      userId === undefined
        ? countsOf(this.#strangersEmails, address)
        : [
            [this.#usersEmails.user, `${userId}`],
            [this.#usersEmails.all, ''],
          ];
    const now = this.#clock.elapsed();
    const message = 'Cannot accept the e-mail address: too many addresses have been tried';
    refuse(longestWait(counts, now), message);
    for (const [rate, key] of counts) rate.count(key, now);
  }

  /** Counts an attempt of `pair` as a failure, until it is settled otherwise. */
  #begin(pair: string, shared: readonly Count[]): Attempt['settle'] {
    const [now, undecided] = [this.#clock.elapsed(), this.#undecided.get(pair) ?? 0];
    const waitMs = this.#pair.waitMs(pair, now);
    // If only undecided attempts are in the way, the caller can retry soon.
    if (this.#pair.waitMs(pair, now, undecided) > 0) refuse(waitMs, tooManyFailures);
    refuse(Math.min(waitMs, 1000), tooManyAtOnce);
    const counts: Count[] = [[this.#pair, pair], ...shared];
    for (const [rate, key] of counts) rate.count(key, now);
    this.#undecided.set(pair, undecided + 1);
    return (outcome) => {
      const others = (this.#undecided.get(pair) ?? 0) - 1;
      if (others > 0) this.#undecided.set(pair, others);
      else this.#undecided.delete(pair);
      if (outcome === 'failed') return;
      for (const [rate, key] of counts) rate.takeBack(key, this.#clock.elapsed());
      if (outcome === 'succeeded') this.#pair.forget(pair);
    };
  }

  #remember(pair: string): void {
    this.#known.delete(pair);
    this.#known.add(pair);
    const [oldest = ''] = this.#known;
    if (this.#known.size > limits.throttleEntriesMax) this.#known.delete(oldest);
  }
}

const tooManyFailures = 'Cannot check the credentials: too many attempts have failed';
const tooManyAtOnce =
  'Cannot check the credentials: other attempts are being checked at this moment';

/** Returns the error if `waitMs` is positive. */
function refusal(waitMs: number, message: string): CairnError | undefined {
  if (waitMs <= 0) return undefined;
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  return new CairnError('too_many_requests', message, { retryAfterSeconds });
}

/** @throws CairnError `too_many_requests` if `waitMs` is positive */
function refuse(waitMs: number, message: string): void {
  const error = refusal(waitMs, message);
  if (error !== undefined) throw error;
}

/** Rates of a network, of a site, and of all callers. */
interface SharedRates {
  readonly network: Rate;
  readonly site: Rate;
  readonly all: Rate;
}

function countsOf({ network, site, all }: SharedRates, address: string): readonly Count[] {
  return [
    [network, networkOf(address)],
    [site, siteOf(address)],
    [all, ''],
  ];
}

function longestWait(counts: readonly Count[], now: number): number {
  return Math.max(...counts.map(([rate, key]) => rate.waitMs(key, now)));
}

/**
 * Admits `burst` events of a key at once, and then one per `everySeconds` (generic cell rate
 * algorithm). Keys without recent events take no memory.
 */
class Rate {
  readonly #spacingMs: number;
  readonly #toleranceMs: number;
  /** When all events of a key will be forgotten. The key counted longest ago comes first. */
  readonly #forgottenAt = new Map<string, number>();

  constructor(burst: number, everySeconds: number) {
    this.#spacingMs = everySeconds * 1000;
    this.#toleranceMs = (burst - 1) * this.#spacingMs;
  }

  /** Returns the time until the next event is admitted, as if `fewer` had been counted. */
  waitMs(key: string, now: number, fewer = 0): number {
    return this.#at(key, now) - fewer * this.#spacingMs - this.#toleranceMs - now;
  }

  count(key: string, now: number): void {
    const at = this.#at(key, now) + this.#spacingMs;
    this.#forgottenAt.delete(key);
    this.#forgottenAt.set(key, at);
    for (const [oldest, at] of this.#forgottenAt) {
      if (at > now && this.#forgottenAt.size <= limits.throttleEntriesMax) break;
      this.#forgottenAt.delete(oldest);
    }
  }

  /** Removes an event that was counted. */
  takeBack(key: string, now: number): void {
    const at = this.#at(key, now) - this.#spacingMs;
    if (at > now) this.#forgottenAt.set(key, at);
    else this.#forgottenAt.delete(key);
  }

  forget(key: string): void {
    this.#forgottenAt.delete(key);
  }

  #at(key: string, now: number): number {
    return Math.max(this.#forgottenAt.get(key) ?? 0, now);
  }
}
