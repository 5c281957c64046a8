import { createHmac } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { networkOf } from '../base/network.ts';
import type { Random } from '../base/random.ts';

export interface Attempt {
  /** The credentials were good: forgets the failures of this account from this address, and remembers the two. */
  succeeded(): void;
  /** Nothing was tried after all, because the server was busy, say. */
  withdrawn(): void;
}

interface Rate {
  /** Failures in a row. */
  readonly burst: number;
  /** After them, one more in each such time. */
  readonly everySeconds: number;
}

/**
 * The four bounds, and who is exempt: an account that once signed in from an address is not held up there by what
 * others do to the account, or to the server as a whole. What it does itself still counts against the first two.
 */
const rates = {
  pair: { burst: 5, everySeconds: 60 },
  address: { burst: 30, everySeconds: 10 },
  account: { burst: 30, everySeconds: 120 },
  all: { burst: 600, everySeconds: 0.2 },
} as const satisfies Record<string, Rate>;

/** Slows down those who try passwords. It never locks anyone out for good, and forgets everything at a restart. */
export class Throttle {
  readonly #clock: Clock;
  /** Nobody can choose names that share a place with another's. */
  readonly #key: Buffer;
  readonly #pair = new Failures(rates.pair, limits.throttlePlaces);
  readonly #address = new Failures(rates.address, limits.throttlePlaces);
  readonly #account = new Failures(rates.account, limits.throttlePlaces);
  readonly #all = new Failures(rates.all, 1);
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
    const pair = this.#placesOf('pair', name, network);
    const exempt = this.#known[pair.first % this.#known.length] === pair.mark;
    const counted: [Failures, Places][] = [
      [this.#pair, pair],
      [this.#address, this.#placesOf('address', network)],
    ];
    if (!exempt) counted.push([this.#account, this.#placesOf('account', name)], [this.#all, this.#placesOf('all')]);

    const now = this.#clock.elapsed();
    const waitMs = Math.max(...counted.map(([failures, places]) => failures.waitMs(places, now)));
    if (waitMs > 0) {
      throw new CairnError('too_many_requests', 'Cannot check the credentials: too many attempts have failed', {
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      });
    }
    for (const [failures, places] of counted) failures.add(places, now);
    const withdrawn = () => {
      for (const [failures, places] of counted) failures.takeBack(places);
    };
    return {
      withdrawn,
      succeeded: () => {
        withdrawn();
        this.#pair.clear(pair);
        this.#known[pair.first % this.#known.length] = pair.mark;
      },
    };
  }

  #placesOf(...parts: string[]): Places {
    const digest = createHmac('sha256', this.#key).update(parts.join('\0')).digest();
    return { first: digest.readUInt32LE(0), second: digest.readUInt32LE(4), mark: digest.readUIntLE(8, 6) };
  }
}

/** Where a name is counted, and what tells it from others that are counted there. */
interface Places {
  readonly first: number;
  readonly second: number;
  readonly mark: number;
}

/**
 * Counts failures of any number of names in memory that never grows: a count-min sketch of two rows, where the smaller
 * of a name's two places counts. Others that share one place do no harm; where both are shared, a name may be held up
 * for what another did, and never let through. A place holds the time at which its failures will be forgotten (the
 * generic cell rate algorithm).
 */
class Failures {
  readonly #spacingMs: number;
  readonly #toleranceMs: number;
  readonly #first: Float64Array;
  readonly #second: Float64Array;

  constructor({ burst, everySeconds }: Rate, places: number) {
    this.#spacingMs = everySeconds * 1000;
    this.#toleranceMs = (burst - 1) * this.#spacingMs;
    this.#first = new Float64Array(places);
    this.#second = new Float64Array(places);
  }

  /** How long the name has to wait until it may fail again; 0 or less: it need not. */
  waitMs(places: Places, now: number): number {
    return this.#forgottenAt(places) - this.#toleranceMs - now;
  }

  add(places: Places, now: number): void {
    const forgottenAt = Math.max(this.#forgottenAt(places), now) + this.#spacingMs;
    this.#change(places, (value) => Math.max(value, forgottenAt));
  }

  /** A place that is ahead of the other one is so for somebody else's failures, which stay. */
  takeBack(places: Places): void {
    const least = this.#forgottenAt(places);
    this.#change(places, (value) => (value > least ? value : value - this.#spacingMs));
  }

  clear(places: Places): void {
    this.#change(places, () => 0);
  }

  #forgottenAt({ first, second }: Places): number {
    const [inFirst, inSecond] = [this.#first[first % this.#first.length], this.#second[second % this.#second.length]];
    return Math.min(inFirst ?? 0, inSecond ?? 0);
  }

  #change({ first, second }: Places, change: (value: number) => number): void {
    const [atFirst, atSecond] = [first % this.#first.length, second % this.#second.length];
    this.#first[atFirst] = change(this.#first[atFirst] ?? 0);
    this.#second[atSecond] = change(this.#second[atSecond] ?? 0);
  }
}
