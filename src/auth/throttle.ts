import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { callerKey, toNetwork, toSite } from '../base/network.ts';
import type { Clock } from '../base/system.ts';

/**
 * For each thing that is counted: how many are admitted at once, then one in how many seconds. A
 * pair is an account and an address. If a pair has signed in before or has a session, only its own
 * failures count, so other callers' failures cannot lock the owner out.
 */
const policy = {
  pair: [5, 60],
  network: [30, 10],
  account: [30, 120],
  all: [600, 0.2],
} as const satisfies { readonly [rate: string]: readonly [burst: number, everySeconds: number] };

/** A rate, and the name to count under it. */
type Count = readonly [rate: keyof typeof policy, key: string];

/** An admitted attempt to give a password. It counts as a failure until it is settled. */
export interface Attempt {
  readonly turn: string;
  /** Must be called once. `withdrawn`: the server was too busy to compare the password. */
  readonly settle: (outcome: 'succeeded' | 'failed' | 'withdrawn') => void;
}

/**
 * Slows down callers that guess passwords or probe e-mail addresses. No account is locked
 * permanently, and a restart forgets everything.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #rates: { readonly [rate in keyof typeof policy]: Rate };
  /** Pairs that have signed in, from the longest ago. */
  readonly #known = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#rates = {
      pair: new Rate(policy.pair),
      network: new Rate(policy.network),
      account: new Rate(policy.account),
      all: new Rate(policy.all),
    };
  }

  /**
   * Starts a sign-in to `account` from `address`. `hasSession`: the account has a live session from
   * there. Refused attempts do not count.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  signIn(account: string, address: string, hasSession = false): Attempt {
    const name = account.toLowerCase();
    const pair = `${name} ${toNetwork(address)}`;
    const site = toSite(toNetwork(address));
    const own: Count = ['pair', pair];
    if (hasSession || this.#known.has(pair)) return this.#begin(pair, [own]);
    return this.#begin(site, [own, ['network', site], ['account', name], ['all', '']]);
  }

  /**
   * Starts a signed-in user's attempt to confirm the current password. Failures are counted apart
   * from sign-ins.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  proof(userId: number): Attempt {
    const turn = callerKey('', userId);
    return this.#begin(turn, [['pair', turn]]);
  }

  /** @throws CairnError `too_many_requests` with `retryAfterSeconds` */
  invitation(address: string): Attempt {
    const site = toSite(toNetwork(address));
    return this.#begin(site, [
      ['network', site],
      ['all', ''],
    ]);
  }

  /**
   * Counts a request for an e-mail address, because the response reveals whether the address is
   * taken. Each user has the rate of a network.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  countNewEmail(userId: number | undefined, address: string): void {
    const counts: readonly Count[] =
      userId === undefined
        ? [
            ['network', `new ${toSite(toNetwork(address))}`],
            ['all', 'new'],
          ]
        : [['network', `new ${userId}`]];
    this.#admit(counts, 'Cannot accept the e-mail address: too many addresses have been tried');
  }

  #begin(turn: string, counts: readonly Count[]): Attempt {
    this.#admit(counts, 'Cannot check the credentials: too many attempts have failed');
    return {
      turn,
      settle: (outcome) => {
        if (outcome === 'failed') return;
        for (const [rate, key] of counts) this.#rates[rate].takeBack(key, this.#clock.elapsed());
        for (const [rate, key] of outcome === 'succeeded' ? counts : []) {
          if (rate !== 'pair') continue;
          this.#rates.pair.forget(key);
          this.#remember(key);
        }
      },
    };
  }

  /** Counts an event under each rate. @throws CairnError `too_many_requests` if one refuses it */
  #admit(counts: readonly Count[], message: string): void {
    const now = this.#clock.elapsed();
    const waitMs = Math.max(...counts.map(([rate, key]) => this.#rates[rate].waitMs(key, now)));
    const retryAfterSeconds = Math.ceil(waitMs / 1000);
    if (waitMs > 0) throw new CairnError('too_many_requests', message, { retryAfterSeconds });
    for (const [rate, key] of counts) this.#rates[rate].count(key, now);
  }

  #remember(pair: string): void {
    this.#known.delete(pair);
    this.#known.add(pair);
    const [oldest = ''] = this.#known;
    if (this.#known.size > limits.throttleEntriesMax) this.#known.delete(oldest);
  }
}

/**
 * Admits `burst` events of a key at once, then one per `everySeconds` (generic cell rate
 * algorithm). Keys without recent events take no memory.
 */
class Rate {
  readonly #spacingMs: number;
  readonly #toleranceMs: number;
  /** When all events of a key will be forgotten, starting with the key counted longest ago. */
  readonly #forgottenAt = new Map<string, number>();

  constructor([burst, everySeconds]: readonly [number, number]) {
    this.#spacingMs = everySeconds * 1000;
    this.#toleranceMs = (burst - 1) * this.#spacingMs;
  }

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
