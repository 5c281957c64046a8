import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { callerKey, networkOf, siteOf } from '../base/network.ts';
import type { Clock } from '../base/system.ts';

/**
 * What is counted, with how many are admitted at once, and then one in how many seconds.
 * From a network where the account has signed in before or has a session, only failures of the
 * pair of account and network count: failures of others cannot lock the owner out.
 */
const policy = {
  failuresOfPair: [5, 60],
  failuresFromNetwork: [30, 10],
  failuresFromSite: [120, 2.5],
  failures: [600, 0.2],
  failuresOfAccount: [30, 120],
  /** E-mail addresses that strangers ask for. */
  emailsFromNetwork: [30, 10],
  emailsFromSite: [120, 2.5],
  emails: [600, 1],
  /** E-mail addresses that a user asks for. */
  emailsOfUser: [30, 10],
} as const satisfies { readonly [name: string]: readonly [burst: number, everySeconds: number] };

/** Something that is counted: by which rule, and under which name. */
type Count = readonly [rule: keyof typeof policy, key: string];

/** An admitted attempt to give a password. It counts as a failure until it is settled. */
export interface Attempt {
  /** The caller for whom the password is compared. */
  readonly turn: string;
  /**
   * The refusal that a stranger would have got. An attempt that fails must be answered with
   * it: otherwise the answer would tell which accounts sign in from this network.
   */
  readonly refusalOnFailure: CairnError | undefined;
  /**
   * Must be called once. `withdrawn`: the server was too busy to compare the password.
   */
  readonly settle: (outcome: 'succeeded' | 'failed' | 'withdrawn') => void;
}

/**
 * Slows down callers that guess passwords or probe e-mail addresses. No account is locked
 * permanently, and a restart forgets everything.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #rates = new Map<string, Rate>();
  /** Pairs that have signed in. The pair that signed in longest ago comes first. */
  readonly #known = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
    for (const [rule, bounds] of Object.entries(policy)) this.#rates.set(rule, new Rate(bounds));
  }

  /**
   * Starts a sign-in to `account` from `address`. `hasSession`: the account has a live session
   * from there. Refused attempts do not count.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  signIn(account: string, address: string, hasSession = false): Attempt {
    const name = account.toLowerCase();
    const network = networkOf(address);
    const pair = `${name} ${network}`;
    const isKnown = hasSession || this.#known.has(pair);
    const own: Count = ['failuresOfPair', pair];
    const shared: readonly Count[] = [
      ['failuresOfAccount', name],
      ['failuresFromNetwork', network],
      ['failuresFromSite', siteOf(network)],
      ['failures', ''],
    ];
    const refusalOnFailure = this.#refusal(shared, tooManyFailures);
    // A known pair that failed too often is told what a stranger is told, if that is refused.
    const refusal = this.#refusal([own], tooManyFailures);
    if (refusalOnFailure !== undefined && (!isKnown || refusal !== undefined))
      throw refusalOnFailure;
    if (refusal !== undefined) throw refusal;
    const settle = this.#begin(isKnown ? [own] : [own, ...shared]);
    return {
      turn: isKnown ? pair : network,
      refusalOnFailure,
      settle: (outcome) => {
        settle(outcome);
        if (outcome === 'succeeded') this.#remember(pair);
      },
    };
  }

  /**
   * Starts an attempt of a signed-in user to give the own password again. Failures are counted
   * apart from sign-ins.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  proof(userId: number): Attempt {
    const turn = callerKey('', userId);
    const own: Count = ['failuresOfPair', turn];
    const refusal = this.#refusal([own], tooManyFailures);
    if (refusal !== undefined) throw refusal;
    return { turn, refusalOnFailure: undefined, settle: this.#begin([own]) };
  }

  /**
   * Counts a request for an e-mail address, because the response reveals whether the address
   * is taken.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  countNewEmail(userId: number | undefined, address: string): void {
    const network = networkOf(address);
    const ofStranger: readonly Count[] = [
      ['emailsFromNetwork', network],
      ['emailsFromSite', siteOf(network)],
      ['emails', ''],
    ];
    const counts: readonly Count[] =
      userId === undefined ? ofStranger : [['emailsOfUser', `${userId}`]];
    const refusal = this.#refusal(counts, tooManyEmails);
    if (refusal !== undefined) throw refusal;
    for (const count of counts) this.#count(count);
  }

  /** Counts an attempt as a failure of a pair and of others, until it is settled otherwise. */
  #begin(counts: readonly [own: Count, ...shared: Count[]]): Attempt['settle'] {
    const [[rule, pair]] = counts;
    for (const count of counts) this.#count(count);
    return (outcome) => {
      if (outcome === 'failed') return;
      for (const [rule, key] of counts) this.#rates.get(rule)?.takeBack(key, this.#clock.elapsed());
      if (outcome === 'succeeded') this.#rates.get(rule)?.forget(pair);
    };
  }

  #count([rule, key]: Count): void {
    this.#rates.get(rule)?.count(key, this.#clock.elapsed());
  }

  /** Returns the error if one of these rates does not admit an event now. */
  #refusal(counts: readonly Count[], message: string): CairnError | undefined {
    const now = this.#clock.elapsed();
    const waits = counts.map(([rule, key]) => this.#rates.get(rule)?.waitMs(key, now) ?? 0);
    const waitMs = Math.max(...waits);
    if (waitMs <= 0) return undefined;
    const retryAfterSeconds = Math.ceil(waitMs / 1000);
    return new CairnError('too_many_requests', message, { retryAfterSeconds });
  }

  #remember(pair: string): void {
    this.#known.delete(pair);
    this.#known.add(pair);
    const [oldest = ''] = this.#known;
    if (this.#known.size > limits.throttleEntriesMax) this.#known.delete(oldest);
  }
}

const tooManyFailures = 'Cannot check the credentials: too many attempts have failed';
const tooManyEmails = 'Cannot accept the e-mail address: too many addresses have been tried';

/**
 * Admits `burst` events of a key at once, and then one per `everySeconds` (generic cell rate
 * algorithm). Keys without recent events take no memory.
 */
class Rate {
  readonly #spacingMs: number;
  readonly #toleranceMs: number;
  /** When all events of a key will be forgotten. The key counted longest ago comes first. */
  readonly #forgottenAt = new Map<string, number>();

  constructor([burst, everySeconds]: readonly [number, number]) {
    this.#spacingMs = everySeconds * 1000;
    this.#toleranceMs = (burst - 1) * this.#spacingMs;
  }

  /** Returns the time until the next event is admitted. */
  waitMs(key: string, now: number): number {
    return this.#at(key, now) - this.#toleranceMs - now;
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
