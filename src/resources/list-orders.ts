import { limits } from '../base/limits.ts';
import type { Slices } from '../base/slices.ts';
import type { StoredRecord, View } from '../store/store.ts';
import { collect, countOf, firstIndex, merge, sort } from './list-sort.ts';
import type { Blocks, FullBlocks, Order } from './list-sort.ts';

/** Where the records of a list come from; a `Collection` is one. */
export interface Source<R extends StoredRecord> {
  view(): View<R>;
}

/**
 * The records of one revision in order: `base`, sorted once, and `recent`, what was written since then. Both are
 * sorted; both may hold records that are no longer there, which whoever walks them skips. It is never changed.
 *
 * While a view is open, a block of records is copied before it is changed. So a block of `blocks` that is found again
 * in a view that was opened while `hold` was open is unchanged, and only the other blocks are searched for what is new.
 */
export interface Sorted<R extends StoredRecord> {
  readonly order: Order<R>;
  readonly revision: number;
  readonly base: FullBlocks<R>;
  readonly recent: FullBlocks<R>;
  readonly blocks: ReadonlySet<readonly R[]>;
  readonly hold: View<R>;
}

/** A view, with its blocks at hand. */
export interface OpenView<R extends StoredRecord> {
  readonly view: View<R>;
  readonly blocks: Blocks<R>;
}

interface Entry<R extends StoredRecord> {
  readonly order: Order<R>;
  timesAsked: number;
  sorted: Sorted<R> | undefined;
  /** What is being made: the first one, or one that takes `recent` into its base. */
  making: Promise<Sorted<R>> | undefined;
}

/**
 * The orders of one collection that were asked for last, kept up with what is written instead of sorted anew. `find`
 * and `get` are to be called in the same turn of the loop in which the view is opened that the order is for.
 */
export class SortedOrders<R extends StoredRecord> {
  readonly #source: Source<R>;
  readonly #slices: Slices;
  /** By the name of the sort; the one that was not asked for longest is first. */
  readonly #entries = new Map<string, Entry<R>>();

  constructor(source: Source<R>, slices: Slices) {
    this.#source = source;
    this.#slices = slices;
  }

  /** The records in order, if that is at hand. When it is asked for a second time, it begins to be made. */
  find(name: string, order: Order<R>): Sorted<R> | undefined {
    const entry = this.#entry(name, order);
    if (entry.sorted === undefined && entry.timesAsked > 1) void this.#make(entry);
    return entry.sorted;
  }

  /** The records in order, sorted if need be. */
  async get(name: string, order: Order<R>): Promise<Sorted<R>> {
    const entry = this.#entry(name, order);
    return entry.sorted ?? this.#make(entry);
  }

  /** `sorted` as it is in a later view; kept, if nothing else has taken its place meanwhile. */
  async catchUp(name: string, sorted: Sorted<R>, { view, blocks }: OpenView<R>): Promise<Sorted<R>> {
    if (view.revision === sorted.revision) return sorted;
    const recent = await this.#slices.run(recentIn(sorted, blocks));
    const caughtUp = { ...sorted, revision: view.revision, recent, blocks: new Set(blocks) };
    const entry = this.#entries.get(name);
    if (entry === undefined || entry.sorted !== sorted) return caughtUp;
    this.#keep(entry, { ...caughtUp, hold: this.#source.view() });
    const gone = countOf(sorted.base) + countOf(recent) - view.size;
    if (countOf(recent) + gone > Math.max(limits.recentRecordsMin, view.size / 64)) void this.#make(entry);
    return caughtUp;
  }

  #entry(name: string, order: Order<R>): Entry<R> {
    const entry = this.#entries.get(name) ?? { order, timesAsked: 0, sorted: undefined, making: undefined };
    entry.timesAsked += 1;
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    const [oldest] = this.#entries;
    if (oldest !== undefined && this.#entries.size > limits.sortedOrdersMax) {
      this.#entries.delete(oldest[0]);
      this.#keep(oldest[1], undefined);
    }
    return entry;
  }

  #make(entry: Entry<R>): Promise<Sorted<R>> {
    entry.making ??= this.#makeBase(entry).finally(() => {
      entry.making = undefined;
    });
    return entry.making;
  }

  async #makeBase(entry: Entry<R>): Promise<Sorted<R>> {
    const { order, sorted: previous } = entry;
    const hold = this.#source.view();
    const blocks = [...hold.blocks()];
    const base = await this.#slices.run(previous === undefined ? sort(blocks, order) : rebased(previous, blocks));
    const sorted = { order, revision: hold.revision, base, recent: [], blocks: new Set(blocks), hold };
    if ([...this.#entries.values()].includes(entry)) this.#keep(entry, sorted);
    else hold.close();
    return sorted;
  }

  #keep(entry: Entry<R>, sorted: Sorted<R> | undefined): void {
    entry.sorted?.hold.close();
    entry.sorted = sorted;
  }
}

/** What `sorted` has to show of the records in `blocks` beside its base. */
function* recentIn<R extends StoredRecord>(sorted: Sorted<R>, blocks: Blocks<R>): Generator<undefined, FullBlocks<R>> {
  const changed: R[][] = [];
  for (const block of blocks) {
    if (sorted.blocks.has(block)) continue;
    changed.push(block.filter((record) => record.revision > sorted.revision));
    yield;
  }
  const written = yield* sort(changed, sorted.order);
  return yield* collect(merge(sorted.recent, written, sorted.order.compare), presenceIn(blocks));
}

/** The records in `blocks` as `sorted` has them, in one sequence again. */
function* rebased<R extends StoredRecord>(sorted: Sorted<R>, blocks: Blocks<R>): Generator<undefined, FullBlocks<R>> {
  const recent = yield* recentIn(sorted, blocks);
  return yield* collect(merge(sorted.base, recent, sorted.order.compare), presenceIn(blocks));
}

/** A test of whether a record is in `blocks` just as it is. */
export function presenceIn<R extends StoredRecord>(blocks: Blocks<R>): (record: R) => boolean {
  const firstIds = Float64Array.from(blocks, (block) => block[0]?.id ?? Infinity);
  return ({ id, revision }) => {
    const block = blocks[firstIndex(firstIds, (firstId) => firstId > id) - 1];
    const found = block?.[firstIndex(block, (record) => record.id >= id)];
    return found?.id === id && found.revision === revision;
  };
}
