import { createHmac } from 'node:crypto';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { networkOf } from '../base/network.ts';
import type { Clock, Random } from '../base/system.ts';

const { throttlePlaces } = limits;

/**
 * Tells once what has become of an attempt. `succeeded`: forgets the failures of this account from this address, and
 * remembers the two. `withdrawn`: nothing was tried after all, because the server was busy, say.
 */
export type Settle = (outcome: 'succeeded' | 'failed' | 'withdrawn') => void;

/** Slows down those who try passwords. It never locks anyone out for good, and forgets everything at a restart. */
export class Throttle {
  readonly #clock: Clock;
  /** Keyed, so that nobody can choose names that share a place with another's. */
  readonly #key: Buffer;
  // The four bounds, and who is exempt: an account that once signed in from an address is not held up there by what
  // others do to the account, or to the server as a whole. What it does itself still counts against the first two.
  readonly #pair = new Failures({ burst: 5, everySeconds: 60 });
  readonly #address = new Failures({ burst: 30, everySeconds: 10 });
  readonly #account = new Failures({ burst: 30, everySeconds: 120 });
  readonly #all = new Failures({ burst: 600, everySeconds: 0.2 }, 1);
  /** E-mail addresses that were asked for, by whoever asked. */
  readonly #newEmails = new Failures({ burst: 30, everySeconds: 10 });
  /** Where many names share a place the last one stays; who is forgotten is only no longer exempt. */
  readonly #known = new Float64Array(throttlePlaces);

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#key = random(32);
  }

  /**
   * Begins an attempt on `account` from `address`. Those that are still being decided may all fail, so they count too;
   * where it is they that leave no room, it is worth trying again at once. An attempt that is refused does not count.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  attempt(account: string, address: string): Settle {
    const [name, network] = [account.toLowerCase(), networkOf(address)];
    const { place: pair, mark } = this.#placeOf('pair', name, network);
    const counted: [Failures, place: number][] = [
      [this.#pair, pair],
      [this.#address, this.#placeOf('address', network).place],
    ];
    const exempt = this.#known[pair] === mark;
    if (!exempt) counted.push([this.#account, this.#placeOf('account', name).place], [this.#all, 0]);

    const now = this.#clock.elapsed();
    const waitMs = Math.max(...counted.map(([failures, place]) => failures.waitMs(place, now)));
    if (waitMs > 0) throw tooMany('Cannot check the credentials: too many attempts have failed', waitMs);
    if (counted.some(([failures, place]) => failures.waitMs(place, now, true) > 0)) {
      throw tooMany('Cannot check the credentials: others are being checked at this moment', 1000);
    }
    for (const [failures, place] of counted) failures.hold(place, 1);
    return (outcome) => {
      for (const [failures, place] of counted) {
        failures.hold(place, -1);
        if (outcome === 'failed') failures.add(place, this.#clock.elapsed());
      }
      if (outcome !== 'succeeded') return;
      this.#pair.forget(pair);
      this.#known[pair] = mark;
    };
  }

  /**
   * Counts that a caller asks for an e-mail address of their own: the answer tells whether somebody else has it. `from`
   * is where they call from, or what else tells them from others.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  countNewEmail(from: string): void {
    const { place } = this.#placeOf('new email', networkOf(from));
    const now = this.#clock.elapsed();
    const waitMs = this.#newEmails.waitMs(place, now);
    if (waitMs > 0) throw tooMany('Cannot take an e-mail address: too many have been asked for from here', waitMs);
    this.#newEmails.add(place, now);
  }

  /** Where a name is counted, and what tells it from others that are counted there. */
  #placeOf(...parts: string[]): { place: number; mark: number } {
    const digest = createHmac('sha256', this.#key).update(parts.join('\0')).digest();
    return { place: digest.readUInt32LE(0) % throttlePlaces, mark: digest.readUIntLE(4, 6) };
  }
}

function tooMany(message: string, waitMs: number): CairnError {
  return new CairnError('too_many_requests', message, { retryAfterSeconds: Math.ceil(waitMs / 1000) });
}

/**
 * Counts failures of any number of names in memory that never grows. Names that share a place are counted together:
 * one may be held up for another, and neither gets more attempts by it. That is rare, since in all only so many
 * failures are let through. A place holds the time at which its failures will be forgotten (the generic cell rate
 * algorithm).
 */
class Failures {
  readonly #spacingMs: number;
  readonly #toleranceMs: number;
  readonly #forgottenAt: Float64Array;
  /** No more of them than passwords that are being hashed, or wait for it. */
  readonly #pending = new Map<number, number>();

  /** Lets `burst` failures in a row pass, and after them one more in each `everySeconds`. */
  constructor({ burst, everySeconds }: { burst: number; everySeconds: number }, places: number = throttlePlaces) {
    this.#spacingMs = everySeconds * 1000;
    this.#toleranceMs = (burst - 1) * this.#spacingMs;
    this.#forgottenAt = new Float64Array(places);
  }

  /** How long the name has to wait until it may fail again, if what is `pending` fails too; 0 or less: not at all. */
  waitMs(place: number, now: number, pending = false): number {
    const more = pending ? (this.#pending.get(place) ?? 0) : 0;
    return this.#at(place, now) + more * this.#spacingMs - this.#toleranceMs - now;
  }

  add(place: number, now: number): void {
    this.#forgottenAt[place] = this.#at(place, now) + this.#spacingMs;
  }

  forget(place: number): void {
    this.#forgottenAt[place] = 0;
  }

  /** One attempt more, or one less, of which the outcome is not known yet. */
  hold(place: number, change: 1 | -1): void {
    const count = (this.#pending.get(place) ?? 0) + change;
    if (count > 0) this.#pending.set(place, count);
    else this.#pending.delete(place);
  }

  #at(place: number, now: number): number {
    return Math.max(this.#forgottenAt[place] ?? 0, now);
  }
}
