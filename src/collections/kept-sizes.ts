/** How much memory the replies of each caller take, and all together. */
export class SizesByCaller {
  sum = 0;
  readonly #sizes = new Map<string, number>();
  /** The callers by the binary logarithm of their sizes. */
  readonly #ranks: Set<string>[] = Array.from({ length: 32 }, () => new Set());

  add(caller: string, size: number): void {
    const before = this.#sizes.get(caller) ?? 0;
    const after = before + size;
    this.sum += size;
    if (after === 0) this.#sizes.delete(caller);
    else this.#sizes.set(caller, after);
    if (rankOf(before) === rankOf(after)) return;
    this.#ranks[rankOf(before)]?.delete(caller);
    if (after > 0) this.#ranks[rankOf(after)]?.add(caller);
  }

  /** The callers with the largest replies first; those of a rank in any order. */
  *largest(): Generator<string, void, undefined> {
    for (const callers of this.#ranks.toReversed()) yield* callers;
  }
}

/** Sizes from 2^n to 2^(n + 1) - 1 have the rank n. */
const rankOf = (size: number): number => 31 - Math.clz32(size);
