import type { Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { createSlices, type YieldToEventLoop } from '../base/slices.ts';
import type { Clock } from '../base/system.ts';
import { sizeOf } from '../schema/record.ts';
import type { Collection, Store } from '../store/store.ts';
import type { Entry } from './references.ts';

/**
 * Keeps one owner from filling the memory with records alone. While most of it is in use,
 * an owner who has more than a share of it gets no more, and the rest is left to others.
 * Owners are counted only then, so that other writes pay nothing.
 */
export class OwnerShares {
  readonly #store: Pick<Store, 'isScarce'>;
  readonly #yieldToEventLoop: YieldToEventLoop;
  readonly #collections: Collection<Entry>[] = [];
  #counting: { sizes: Sizes; stop: () => void } | undefined;

  constructor(store: Pick<Store, 'isScarce'>, clock: Clock) {
    this.#store = store;
    this.#yieldToEventLoop = createSlices(clock);
  }

  /** Adds a collection whose records count. */
  add(records: Collection<Entry>): void {
    this.#collections.push(records);
  }

  /**
   * Checks that the records of an owner may take more memory, unless an administrator wants
   * that. @throws CairnError `storage_full`
   */
  check({ role }: Principal, ownerId: number): void {
    if (!this.#store.isScarce) {
      this.#counting?.stop();
      this.#counting = undefined;
      return;
    }
    const { sizes } = (this.#counting ??= this.#count());
    if (role === 'admin' || !sizes.isOverShare(ownerId)) return;
    const message =
      'Cannot write: memory is scarce, and the records of this owner take more than their ' +
      'share of it: remove some of them';
    throw new CairnError('storage_full', message);
  }

  /** Begins to count all records, and follows their changes from this moment on. */
  #count() {
    const sizes = new Sizes();
    const ends = this.#collections.map((records) =>
      records.follow((before, after) => {
        if (before !== undefined) sizes.add(before.ownerId, -sizeOf(before));
        if (after !== undefined) sizes.add(after.ownerId, sizeOf(after));
      }),
    );
    const views = this.#collections.map((records) => records.view());
    const blocks = views.flatMap((view) => view.blocks);
    const addAll = async (): Promise<void> => {
      for (const block of blocks) {
        for (const record of block) sizes.add(record.ownerId, sizeOf(record));
        await this.#yieldToEventLoop();
      }
      sizes.isComplete = true;
    };
    void addAll();
    return { sizes, stop: () => ends.forEach((end) => end()) };
  }
}

/** How much the records of each owner take, and of all together. */
class Sizes {
  isComplete = false;
  readonly #sizes = new Map<number, number>();
  #sum = 0;

  add(ownerId: number, size: number): void {
    this.#sizes.set(ownerId, (this.#sizes.get(ownerId) ?? 0) + size);
    this.#sum += size;
  }

  isOverShare(ownerId: number): boolean {
    const size = this.#sizes.get(ownerId) ?? 0;
    return this.isComplete && size > this.#sum * limits.ownerShareMax;
  }
}
