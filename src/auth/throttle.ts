import { createHmac } from 'node:crypto';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { networkOf } from '../base/network.ts';
import type { Clock, Random } from '../base/system.ts';

export interface Attempt {
  /** The credentials were good: forgets the failures of this account from this address, and remembers the two. */
  succeeded(): void;
  /** Nothing was tried after all, because the server was busy, say. */
  withdrawn(): void;
}

/** Slows down those who try passwords. It never locks anyone out for good, and forgets everything at a restart. */
export class Throttle {
  readonly #clock: Clock;
  /** Keyed, so that nobody can choose names that share a place with another's. */
  readonly #key: Buffer;
  // The four bounds, and who is exempt: an account that once signed in from an address is not held up there by what
  // others do to the account, or to the server as a whole. What it does itself still counts against the first two.
  readonly #pair = new Failures({ burst: 5, everySeconds: 60 }, limits.throttlePlaces);
  readonly #address = new Failures({ burst: 30, everySeconds: 10 }, limits.throttlePlaces);
  readonly #account = new Failures({ burst: 30, everySeconds: 120 }, limits.throttlePlaces);
  readonly #all = new Failures({ burst: 600, everySeconds: 0.2 }, 1);
  /** Where many names share a place the last one stays; who is forgotten is only no longer exempt. */
  readonly #known = new Float64Array(limits.throttlePlaces);

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#key = random(32);
  }

  /**
   * Begins an attempt on `account` from `address`, which counts as failed until it is told otherwise: so attempts at
   * the same time count too. An attempt that is refused does not count.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  attempt(account: string, address: string): Attempt {
    const network = networkOf(address);
    const name = account.toLowerCase();
    const pair = this.#placeOf('pair', name, network);
    const exempt = this.#known[pair.index % this.#known.length] === pair.mark;
    const counted: [Failures, Place][] = [
      [this.#pair, pair],
      [this.#address, this.#placeOf('address', network)],
    ];
    if (!exempt) counted.push([this.#account, this.#placeOf('account', name)], [this.#all, this.#placeOf('all')]);

    const now = this.#clock.elapsed();
    const waitMs = Math.max(...counted.map(([failures, place]) => failures.waitMs(place, now)));
    if (waitMs > 0) {
      throw new CairnError('too_many_requests', 'Cannot check the credentials: too many attempts have failed', {
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      });
    }
    for (const [failures, place] of counted) failures.add(place, now);
    const withdrawn = () => {
      for (const [failures, place] of counted) failures.takeBack(place);
    };
    return {
      withdrawn,
      succeeded: () => {
        withdrawn();
        this.#pair.clear(pair);
        this.#known[pair.index % this.#known.length] = pair.mark;
      },
    };
  }

  #placeOf(...parts: string[]): Place {
    const digest = createHmac('sha256', this.#key).update(parts.join('\0')).digest();
    return { index: digest.readUInt32LE(0), mark: digest.readUIntLE(4, 6) };
  }
}

/** Where a name is counted, and what tells it from others that are counted there. */
interface Place {
  readonly index: number;
  readonly mark: number;
}

/**
 * Counts failures of any number of names in memory that never grows: names that share a place may be held up for one
 * another, and are never let through. So few failures are let through in all that this is rare. A place holds the time
 * at which its failures will be forgotten (the generic cell rate algorithm).
 */
class Failures {
  readonly #spacingMs: number;
  readonly #toleranceMs: number;
  readonly #forgottenAt: Float64Array;

  /** Lets `burst` failures in a row pass, and after them one more in each `everySeconds`. */
  constructor({ burst, everySeconds }: { burst: number; everySeconds: number }, places: number) {
    this.#spacingMs = everySeconds * 1000;
    this.#toleranceMs = (burst - 1) * this.#spacingMs;
    this.#forgottenAt = new Float64Array(places);
  }

  /** How long the name has to wait until it may fail again; 0 or less: it need not. */
  waitMs(place: Place, now: number): number {
    return this.#at(place) - this.#toleranceMs - now;
  }

  add(place: Place, now: number): void {
    this.#set(place, Math.max(this.#at(place), now) + this.#spacingMs);
  }

  takeBack(place: Place): void {
    this.#set(place, this.#at(place) - this.#spacingMs);
  }

  clear(place: Place): void {
    this.#set(place, 0);
  }

  #at({ index }: Place): number {
    return this.#forgottenAt[index % this.#forgottenAt.length] ?? 0;
  }

  #set({ index }: Place, time: number): void {
    this.#forgottenAt[index % this.#forgottenAt.length] = time;
  }
}
