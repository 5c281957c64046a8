import { createHmac } from 'node:crypto';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { networkOf } from '../base/network.ts';
import type { Clock, Random } from '../base/system.ts';
import type { Turn } from './passwords.ts';

const { throttlePlaces } = limits;

/** An attempt that was let through, and whose outcome is not known yet. */
export interface Attempt {
  /** The caller that the comparison of the password is done for. */
  readonly turn: Turn;
  /** To be called once. `withdrawn`: the password was not compared, because the server was busy. */
  readonly settle: (outcome: 'succeeded' | 'failed' | 'withdrawn') => void;
}

/**
 * Slows down callers that guess passwords, or ask for e-mail addresses one after another. Nobody is locked out for
 * good, and a restart forgets everything.
 */
export class Throttle {
  readonly #clock: Clock;
  /** Names are hashed with it, so that nobody can choose names that share a place with another's. */
  readonly #key: Buffer;
  // Failed attempts. Where a person has signed in before, or has a session, the account is counted from that network
  // by the pair alone, so that nothing that others do, behind the same address or elsewhere, locks its owner out.
  readonly #pair = new Rate({ burst: 5, everySeconds: 60 });
  readonly #address = new Rate({ burst: 30, everySeconds: 10 });
  readonly #account = new Rate({ burst: 30, everySeconds: 120 });
  readonly #all = new Rate({ burst: 600, everySeconds: 0.2 }, 1);
  /** Sign-ins by account: each takes a hash, and only the owner can cause them. */
  readonly #signIns = new Rate({ burst: 60, everySeconds: 5 });
  /** E-mail addresses that were asked for, by caller and in all. */
  readonly #newEmails = new Rate({ burst: 30, everySeconds: 10 });
  readonly #allNewEmails = new Rate({ burst: 600, everySeconds: 1 }, 1);
  /** The pairs that have signed in, by place. Where many pairs share a place, the last one is remembered. */
  readonly #known = new Float64Array(throttlePlaces);

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#key = random(32);
  }

  /**
   * Begins an attempt on `account` from `address`. `hasSession`: the account has a live session from there. Attempts
   * whose outcome is not known yet may all fail, so they count; if only they leave no room, it is worth trying again at
   * once. An attempt that is refused does not count.
   * @throws CairnError `too_many_requests` with `retryAfterSeconds`
   */
  attempt(account: string, address: string, hasSession = false): Attempt {
    const [name, network] = [account.toLowerCase(), networkOf(address)];
    const { place: pair, mark } = this.#placeOf('pair', name, network);
    const { place: owner } = this.#placeOf('account', name);
    const isKnown = hasSession || this.#known[pair] === mark;
    const counted: [Rate, place: number][] = [[this.#pair, pair]];
    if (!isKnown) {
      counted.push([this.#address, this.#placeOf('address', network).place], [this.#account, owner], [this.#all, 0]);
    }

    const now = this.#clock.elapsed();
    refuse(this.#signIns.waitMs(owner, now), 'Cannot sign in: the account has signed in too often');
    const waitMs = Math.max(...counted.map(([rate, place]) => rate.waitMs(place, now)));
    refuse(waitMs, 'Cannot check the credentials: too many attempts have failed');
    const isCrowded = counted.some(([rate, place]) => rate.waitMs(place, now, true) > 0);
    refuse(isCrowded ? 1000 : 0, 'Cannot check the credentials: others are being checked at this moment');

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
   * Counts that a caller asks for an e-mail address: the answer tells whether the address is taken. `from` is the
   * address of the caller, or another name for it.
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

  /** The place at which a name is counted, and a mark that tells it from other names there. */
  #placeOf(...parts: string[]): { place: number; mark: number } {
    const digest = createHmac('sha256', this.#key).update(parts.join('\0')).digest();
    return { place: digest.readUInt32LE(0) % throttlePlaces, mark: digest.readUIntLE(4, 6) };
  }
}

/** @throws CairnError `too_many_requests` where there is something to wait for */
function refuse(waitMs: number, message: string): void {
  if (waitMs <= 0) return;
  throw new CairnError('too_many_requests', message, { retryAfterSeconds: Math.ceil(waitMs / 1000) });
}

/**
 * Counts events of any number of names in memory that never grows (the generic cell rate algorithm): a place holds the
 * time at which all its events will be forgotten. Names that share a place are counted together, so that one may be
 * held up for another. That is rare, because only so many events are let through in all.
 */
class Rate {
  readonly #spacingMs: number;
  readonly #toleranceMs: number;
  readonly #forgottenAt: Float64Array;
  /** No more than the passwords that are being compared, or wait for it. */
  readonly #pending = new Map<number, number>();

  /** Lets `burst` events pass at once, and then one more in each `everySeconds`. */
  constructor({ burst, everySeconds }: { burst: number; everySeconds: number }, places: number = throttlePlaces) {
    this.#spacingMs = everySeconds * 1000;
    this.#toleranceMs = (burst - 1) * this.#spacingMs;
    this.#forgottenAt = new Float64Array(places);
  }

  /** How long to wait for the next event, also if those that are `pending` happen; 0 or less if there is room now. */
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

  /** Adds an event that may happen, or removes it again. */
  hold(place: number, change: 1 | -1): void {
    const count = (this.#pending.get(place) ?? 0) + change;
    if (count > 0) this.#pending.set(place, count);
    else this.#pending.delete(place);
  }

  #at(place: number, now: number): number {
    return Math.max(this.#forgottenAt[place] ?? 0, now);
  }
}
