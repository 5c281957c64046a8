/** A bounded amount of something, such as memory, of which each caller has a share, so that none can take all of it. */
export class Shares {
  readonly #total: number;
  readonly #perCaller: number;
  readonly #held = new Map<string, number>();
  #sum = 0;

  constructor(total: number, perCaller: number) {
    this.#total = total;
    this.#perCaller = perCaller;
  }

  /** Takes more for a caller. False if that is too much: then nothing has been taken. */
  take(caller: string, amount: number): boolean {
    const held = (this.#held.get(caller) ?? 0) + amount;
    if (this.#sum + amount > this.#total || held > this.#perCaller) return false;
    this.#held.set(caller, held);
    this.#sum += amount;
    return true;
  }

  /** Gives back what was taken. */
  give(caller: string, amount: number): void {
    const left = (this.#held.get(caller) ?? 0) - amount;
    if (left > 0) this.#held.set(caller, left);
    else this.#held.delete(caller);
    this.#sum -= amount;
  }

  /** The amount that all callers hold. */
  get sum(): number {
    return this.#sum;
  }
}
