/**
 * A bounded pool, such as memory, of which each caller has a share, so that none can use all
 * of it. As the pool fills, the shares shrink: nobody takes more than what then remains, so
 * that a few callers with full shares leave something to the next ones.
 */
export class Shares {
  readonly #total: number;
  readonly #perCaller: number;
  readonly #held = new Map<string, number>();
  #sum = 0;

  constructor(total: number, perCaller: number) {
    this.#total = total;
    this.#perCaller = perCaller;
  }

  /** The amount that a caller holds. */
  heldBy(caller: string): number {
    return this.#held.get(caller) ?? 0;
  }

  /** Whether a caller could take an amount. */
  hasRoom(caller: string, amount: number): boolean {
    const needed = this.heldBy(caller) + amount;
    return needed <= this.#perCaller && needed <= this.#total - this.#sum;
  }

  /**
   * Takes an amount for a caller. Returns false, and takes nothing, if that is too much.
   */
  take(caller: string, amount: number): boolean {
    if (!this.hasRoom(caller, amount)) return false;
    this.#held.set(caller, this.heldBy(caller) + amount);
    this.#sum += amount;
    return true;
  }

  /** Gives back an amount. */
  give(caller: string, amount: number): void {
    const left = this.heldBy(caller) - amount;
    if (left > 0) this.#held.set(caller, left);
    else this.#held.delete(caller);
    this.#sum -= amount;
  }

  /** The amount that all callers hold. */
  get sum(): number {
    return this.#sum;
  }
}
