import { createHmac } from 'node:crypto';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { networkOf } from '../base/network.ts';
import type { Clock, Random } from '../base/system.ts';
import type { Turn } from './passwords.ts';

const { throttlePlaces } = limits;

/** An admitted attempt, whose outcome is not yet known. */
export interface Attempt {
  /** The caller for whom the password is compared. */
  readonly turn: Turn;
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
  /**
   * Hashes names, so that an attacker cannot choose names that share a place with
   * another.
   */
  readonly #key: Buffer;
  // Failed attempts. From a network where the account has signed in before or has a
  // session,
  // only the pair of account and network counts: failures of others cannot lock the owner
  // out.
  readonly #pair = new Rate({ burst: 5, everySeconds: 60 });
  readonly #address = new Rate({ burst: 30, everySeconds: 10 });
  readonly #account = new Rate({ burst: 30, everySeconds: 120 });
  readonly #all = new Rate({ burst: 600, everySeconds: 0.2 }, 1);
  /**
   * Successful sign-ins by account: each costs a hash, and only the owner can cause them.
   */
  readonly #signIns = new Rate({ burst: 60, everySeconds: 5 });
  /** E-mail addresses that were requested, by caller and in total. */
  readonly #newEmails = new Rate({ burst: 30, everySeconds: 10 });
  readonly #allNewEmails = new Rate({ burst: 600, everySeconds: 1 }, 1);
  /** The mark of the last pair that signed in, by place. */
  readonly #known = new Float64Array(throttlePlaces);

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#key = random(32);
  }

  /**
   * Starts an attempt on `account` from `address`. `hasSession`: the account has a live
   * session from there. Undecided attempts may all fail, so they count as failures. If
   * the limit is reached only because of them, the caller can retry immediately. Refused
   * attempts do not count.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  attempt(account: string, address: string, hasSession = false): Attempt {
    const [name, network] = [account.toLowerCase(), networkOf(address)];
    const { place: pair, mark } = this.#placeOf('pair', name, network);
    const { place: owner } = this.#placeOf('account', name);
    const isKnown = hasSession || this.#known[pair] === mark;
    const counted: [Rate, place: number][] = [[this.#pair, pair]];
    if (!isKnown) {
      counted.push(
        [this.#address, this.#placeOf('address', network).place],
        [this.#account, owner],
        [this.#all, 0],
      );
    }

    const now = this.#clock.elapsed();
    refuse(this.#signIns.waitMs(owner, now), 'Cannot sign in: the account has signed in too often');
    const waitMs = Math.max(...counted.map(([rate, place]) => rate.waitMs(place, now)));
    refuse(waitMs, 'Cannot check the credentials: too many attempts have failed');
    const isCrowded = counted.some(([rate, place]) => rate.waitMs(place, now, true) > 0);
    refuse(
      isCrowded ? 1000 : 0,
      'Cannot check the credentials: other attempts are being checked at this moment',
    );

    for (const [rate, place] of counted) rate.hold(place, 1);
    const settle: Attempt['settle'] = (outcome) => {
      const now = this.#clock.elapsed();
      for (const [rate, place] of counted) {
        rate.hold(place, -1);
        if (outcome === 'failed') rate.add(place, now);
      }
      if (outcome !== 'succeeded') return;
      this.#signIns.add(owner, now);
      this.#pair.forget(pair);
      this.#known[pair] = mark;
    };
    return { settle, turn: { caller: isKnown ? `${pair}` : network, isKnown } };
  }

  /**
   * Counts a request for an e-mail address, because the response reveals whether the
   * address is taken. `from` is the network address or another name of the caller.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  countNewEmail(from: string): void {
    const { place } = this.#placeOf('new email', networkOf(from));
    const now = this.#clock.elapsed();
    const waitMs = Math.max(this.#newEmails.waitMs(place, now), this.#allNewEmails.waitMs(0, now));
    refuse(waitMs, 'Cannot accept the e-mail address: too many addresses have been tried');
    this.#newEmails.add(place, now);
    this.#allNewEmails.add(0, now);
  }

  /**
   * Returns the place where a name is counted, and a mark that identifies the name there.
   */
  #placeOf(...parts: string[]): { place: number; mark: number } {
    const digest = createHmac('sha256', this.#key).update(parts.join('\0')).digest();
    return {
      place: digest.readUInt32LE(0) % throttlePlaces,
      mark: digest.readUIntLE(4, 6),
    };
  }
}

/** @throws CairnError `too_many_requests` if `waitMs` is positive */
function refuse(waitMs: number, message: string): void {
  if (waitMs <= 0) return;
  throw new CairnError('too_many_requests', message, {
    retryAfterSeconds: Math.ceil(waitMs / 1000),
  });
}

/**
 * Counts events of any number of names in constant memory (generic cell rate algorithm):
 * a place contains the time at which all its events will be forgotten. Names that share a
 * place are counted together, so one may be delayed by another. That is rare, because the
 * total number of events is limited.
 */
class Rate {
  readonly #spacingMs: number;
  readonly #toleranceMs: number;
  readonly #forgottenAt: Float64Array;
  readonly #pending: Uint16Array;

  /** Admits `burst` events at once, and then one event per `everySeconds`. */
  constructor(
    { burst, everySeconds }: { burst: number; everySeconds: number },
    places: number = throttlePlaces,
  ) {
    this.#spacingMs = everySeconds * 1000;
    this.#toleranceMs = (burst - 1) * this.#spacingMs;
    this.#forgottenAt = new Float64Array(places);
    this.#pending = new Uint16Array(places);
  }

  /**
   * Returns the time until the next event is admitted, perhaps counting the `pending`
   * ones.
   */
  waitMs(place: number, now: number, pending = false): number {
    const more = pending ? (this.#pending[place] ?? 0) : 0;
    return this.#at(place, now) + more * this.#spacingMs - this.#toleranceMs - now;
  }

  add(place: number, now: number): void {
    this.#forgottenAt[place] = this.#at(place, now) + this.#spacingMs;
  }

  forget(place: number): void {
    this.#forgottenAt[place] = 0;
  }

  /** Adds or removes an event that may happen. */
  hold(place: number, change: 1 | -1): void {
    this.#pending[place] = (this.#pending[place] ?? 0) + change;
  }

  #at(place: number, now: number): number {
    return Math.max(this.#forgottenAt[place] ?? 0, now);
  }
}
