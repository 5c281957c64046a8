import { isStranger, siteOf } from './network.ts';

/** What one request, reply, stream or connection holds of a budget. */
export class Holding {
  readonly caller: string;
  /** Breaks off what holds the amount. Absent: it cannot be broken off. */
  readonly breakOff: (() => void) | undefined;
  amount = 0;
  readonly #budget: Budget;

  constructor(budget: Budget, caller: string, breakOff: (() => void) | undefined) {
    this.#budget = budget;
    this.caller = caller;
    this.breakOff = breakOff;
  }

  /** Holds another amount. Returns false, and changes nothing, if there is no room for it. */
  resize(amount: number): boolean {
    return this.#budget.resize(this, amount);
  }

  /** Gives all of it back. Further calls do nothing. */
  release(): void {
    this.#budget.resize(this, 0);
  }
}

/**
 * How often there was no room: because of a caller's own share, and in all; and how often a
 * holding was broken off.
 */
export interface Refusals {
  ownShare: number;
  usedUp: number;
  brokenOff: number;
}

/**
 * A bounded amount, such as memory, that callers hold parts of.
 *
 * - A caller holds at most its share, unless it is a single holding, such as one large record.
 * - A caller takes at most as much as then remains, so that a few callers with full shares leave
 *   something to the next ones. Neither does a site, which may have thousands of networks that
 *   are callers of their own.
 * - Callers that have not signed in hold at most half of all, since anybody can have many
 *   addresses; a single holding may be larger, too.
 * - Where all is used up, the site that holds the most loses its
 *   oldest holding, as long as it still holds no less than the caller: slow readers could keep
 *   theirs for hours.
 */
export class Budget {
  readonly #total: number;
  readonly #perCaller: number;
  /** By caller, and by site where that is not the caller itself. */
  readonly #held = new Map<string, number>();
  /** What can be broken off, by site, the oldest first. */
  readonly #breakable = new Map<string, Set<Holding>>();
  readonly refusals: Refusals = { ownShare: 0, usedUp: 0, brokenOff: 0 };
  #sum = 0;
  #heldByStrangers = 0;

  constructor(total: number, perCaller: number) {
    this.#total = total;
    this.#perCaller = perCaller;
  }

  /** The amount that all callers hold. */
  get sum(): number {
    return this.#sum;
  }

  /** The amount that a caller or a site holds. */
  heldBy(caller: string): number {
    return this.#held.get(caller) ?? 0;
  }

  /** Whether a caller could take an amount, without breaking anything off. If not, it is refused. */
  hasRoom(caller: string, amount: number): boolean {
    if (!this.#isInShare(caller, amount, 0)) return this.#refuse('ownShare');
    return this.#isLeft(caller, amount, 0) || this.#refuse('usedUp');
  }

  /** Takes an amount for a caller. Returns `undefined` if there is no room. */
  take(caller: string, amount: number, breakOff?: () => void): Holding | undefined {
    const holding = new Holding(this, caller, breakOff);
    return this.resize(holding, amount) ? holding : undefined;
  }

  /** `Holding.resize`. */
  resize(holding: Holding, amount: number): boolean {
    const { caller } = holding;
    const more = amount - holding.amount;
    if (more === 0) return true;
    const own = holding.amount;
    if (more > 0 && !this.#isInShare(caller, more, own)) return this.#refuse('ownShare');
    while (more > 0 && !this.#isLeft(caller, more, own)) {
      if (!this.#isUsedUp(caller, more)) return this.#refuse('ownShare');
      if (!this.#makeRoom(caller, more)) return this.#refuse('usedUp');
    }
    holding.amount = amount;
    this.#sum += more;
    if (isStranger(caller)) this.#heldByStrangers += more;
    this.#add(caller, more);
    const site = siteOf(caller);
    if (site !== caller) this.#add(site, more);
    if (holding.breakOff !== undefined) this.#note(holding, site);
    return true;
  }

  #refuse(cause: 'ownShare' | 'usedUp'): false {
    this.refusals[cause] += 1;
    return false;
  }

  /** Whether a caller that has `own` in a holding may have more in it. */
  #isInShare(caller: string, more: number, own: number): boolean {
    const held = this.heldBy(caller);
    return held === own || held + more <= this.#perCaller;
  }

  #isLeft(caller: string, more: number, own: number): boolean {
    if (isStranger(caller) && this.#isBeyondHalf(more, own)) return false;
    return this.heldBy(siteOf(caller)) - own + more <= this.#total - this.#sum;
  }

  /** Whether it takes another's holding to have so much more. */
  #isUsedUp(caller: string, more: number): boolean {
    if (this.#sum + more > this.#total) return true;
    return isStranger(caller) && this.#isBeyondHalf(more, 0);
  }

  #isBeyondHalf(more: number, own: number): boolean {
    const strangers = this.#heldByStrangers;
    return strangers > own && strangers + more > this.#total / 2;
  }

  #add(key: string, amount: number): void {
    const held = this.heldBy(key) + amount;
    if (held > 0) this.#held.set(key, held);
    else this.#held.delete(key);
  }

  /** Notes whether there is something to break off. */
  #note(holding: Holding, site: string): void {
    const own = this.#breakable.get(site) ?? new Set<Holding>();
    if (holding.amount > 0) this.#breakable.set(site, own.add(holding));
    else if (own.delete(holding) && own.size === 0) this.#breakable.delete(site);
  }

  /**
   * Breaks off the oldest holding of the site that holds the most, unless that is hardly more.
   * If strangers have their half, only one of theirs makes room for another.
   */
  #makeRoom(caller: string, amount: number): boolean {
    const own = siteOf(caller);
    const isOfStrangers = isStranger(caller) && this.#isBeyondHalf(amount, 0);
    let most = own;
    for (const site of this.#breakable.keys()) {
      const canHelp = !isOfStrangers || isStranger(site);
      if (canHelp && this.heldBy(site) > this.heldBy(most)) most = site;
    }
    const [oldest] = this.#breakable.get(most) ?? [];
    if (oldest === undefined) return false;
    if (this.heldBy(most) - oldest.amount < this.heldBy(own) + amount) return false;
    this.refusals.brokenOff += 1;
    oldest.release();
    oldest.breakOff?.();
    return true;
  }
}
