/** The amount of a budget that one exchange, list or stream holds. */
export class Reservation {
  readonly caller: string;
  /** Ends the work that holds the amount. If absent, the reservation is never evicted. */
  readonly evict: (() => void) | undefined;
  amount = 0;
  readonly #budget: Budget;

  constructor(budget: Budget, caller: string, evict: (() => void) | undefined) {
    this.#budget = budget;
    this.caller = caller;
    this.evict = evict;
  }

  /** Returns false, and changes nothing, if there is no room. */
  resize(amount: number): boolean {
    return this.#budget.resize(this, amount);
  }

  /** May be called repeatedly. */
  release(): void {
    this.#budget.resize(this, 0);
  }
}

/** Counts of refused reservations, by cause, and of evicted ones. */
export interface Refusals {
  ownShare: number;
  usedUp: number;
  brokenOff: number;
}

interface Share {
  held: number;
  /** Oldest first. */
  readonly evictable: Set<Reservation>;
}

/**
 * A bounded amount of memory or slots, shared between callers.
 *
 * - A caller holds at most its share, except that a single reservation, such as one large record,
 *   may exceed it.
 * - If the budget is used up, the largest holder loses its oldest reservation, because slow readers
 *   could keep theirs for hours. It never ends up with less than the caller who asks.
 */
export class Budget {
  readonly refusals: Refusals = { ownShare: 0, usedUp: 0, brokenOff: 0 };
  readonly #total: number;
  readonly #perCaller: number;
  readonly #shares = new Map<string, Share>();
  #sum = 0;

  constructor(total: number, perCaller: number) {
    this.#total = total;
    this.#perCaller = perCaller;
  }

  get sum(): number {
    return this.#sum;
  }

  heldBy(caller: string): number {
    return this.#shares.get(caller)?.held ?? 0;
  }

  /** Returns `undefined` if there is no room. */
  take(caller: string, amount: number, evict?: () => void): Reservation | undefined {
    const reservation = new Reservation(this, caller, evict);
    return this.resize(reservation, amount) ? reservation : undefined;
  }

  resize(reservation: Reservation, amount: number): boolean {
    const { caller } = reservation;
    const more = amount - reservation.amount;
    const share = this.#shares.get(caller) ?? { held: 0, evictable: new Set() };
    const wanted = share.held + more;
    const isSingle = share.held === reservation.amount;
    if (more > 0 && !isSingle && wanted > this.#perCaller) return this.#refuse('ownShare');
    while (more > 0 && this.#sum + more > this.#total)
      if (!this.#evictFor(wanted)) return this.#refuse('usedUp');
    reservation.amount = amount;
    share.held = wanted;
    this.#sum += more;
    if (amount === 0) share.evictable.delete(reservation);
    else if (reservation.evict !== undefined) share.evictable.add(reservation);
    if (wanted > 0) this.#shares.set(caller, share);
    else this.#shares.delete(caller);
    return true;
  }

  #refuse(cause: 'ownShare' | 'usedUp'): false {
    this.refusals[cause] += 1;
    return false;
  }

  /** Evicts the largest holder's oldest reservation, for a caller that would then hold `wanted`. */
  #evictFor(wanted: number): boolean {
    let largest: Share | undefined;
    for (const share of this.#shares.values())
      if (share.evictable.size > 0 && share.held > (largest?.held ?? 0)) largest = share;
    const [oldest] = largest?.evictable ?? [];
    if (largest === undefined || oldest === undefined) return false;
    if (largest.held - oldest.amount < wanted) return false;
    this.refusals.brokenOff += 1;
    oldest.release();
    oldest.evict?.();
    return true;
  }
}
