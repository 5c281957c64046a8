import { siteOfCaller } from './network.ts';

/**
 * A bounded pool, such as memory, of which each caller has a share, so that none can use all
 * of it. As the pool fills, the shares shrink: nobody takes more than what then remains, so
 * that a few callers with full shares leave something to the next ones. Neither does a site,
 * which may have thousands of networks that are callers of their own.
 */
export class Shares {
  readonly #total: number;
  readonly #perCaller: number;
  /** By caller and by site. */
  readonly #held = new Map<string, number>();
  #sum = 0;

  constructor(total: number, perCaller: number) {
    this.#total = total;
    this.#perCaller = perCaller;
  }

  /** The amount that a caller or a site holds. */
  heldBy(caller: string): number {
    return this.#held.get(caller) ?? 0;
  }

  /** Whether a caller could take an amount. */
  hasRoom(caller: string, amount: number): boolean {
    const needed = this.heldBy(caller) + amount;
    const neededBySite = this.heldBy(siteOfCaller(caller)) + amount;
    return needed <= this.#perCaller && neededBySite <= this.#total - this.#sum;
  }

  /**
   * Takes an amount for a caller. Returns false, and takes nothing, if that is too much.
   */
  take(caller: string, amount: number): boolean {
    if (!this.hasRoom(caller, amount)) return false;
    this.#add(caller, amount);
    return true;
  }

  /** Gives back an amount. */
  give(caller: string, amount: number): void {
    this.#add(caller, -amount);
  }

  #add(caller: string, amount: number): void {
    this.#sum += amount;
    this.#addTo(caller, amount);
    const site = siteOfCaller(caller);
    if (site !== caller) this.#addTo(site, amount);
  }

  #addTo(key: string, amount: number): void {
    const held = this.heldBy(key) + amount;
    if (held > 0) this.#held.set(key, held);
    else this.#held.delete(key);
  }

  /** The amount that all callers hold. */
  get sum(): number {
    return this.#sum;
  }
}
