import { limits } from '../base/limits.ts';
import type { Slices } from '../base/slices.ts';
import type { StoredRecord, View } from '../store/store.ts';
import { collect, firstIndex, merge, sort } from './list-sort.ts';
import type { Blocks, Compare } from './list-sort.ts';

/** Where the records of a list come from; a `Collection` is one. */
export interface Source<R extends StoredRecord> {
  view(): View<R>;
}

/**
 * A sorted order as of one revision: `base`, sorted once, and `recent`, what was written since then. Both are sorted;
 * both may hold records that are no longer there, which whoever walks them skips. An order is never changed.
 *
 * While a view is open, a block of records is copied before it is changed. So a block of `blocks` that is found again
 * in a view that was opened while `hold` was open is unchanged, and only the other blocks are searched for what is new.
 */
export interface SortedOrder<R extends StoredRecord> {
  readonly revision: number;
  readonly base: readonly R[];
  readonly recent: readonly R[];
  readonly blocks: ReadonlySet<readonly R[]>;
  readonly hold: View<R>;
}

/** A view, with its blocks at hand. */
export interface OpenView<R extends StoredRecord> {
  readonly view: View<R>;
  readonly blocks: Blocks<R>;
}

interface Entry<R extends StoredRecord> {
  readonly compare: Compare<R>;
  timesAsked: number;
  order: SortedOrder<R> | undefined;
  /** The order that is being made: the first one, or one that takes `recent` into its base. */
  making: Promise<SortedOrder<R>> | undefined;
}

/**
 * The sorted orders of one collection that were asked for last, kept up with what is written instead of made anew.
 * `find` and `get` are to be called in the same turn of the loop in which the view is opened that the order is for.
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

  /** The order, if there is one. When it is asked for a second time, it begins to be made. */
  find(name: string, compare: Compare<R>): SortedOrder<R> | undefined {
    const entry = this.#entry(name, compare);
    if (entry.order === undefined && entry.timesAsked > 1) void this.#make(entry);
    return entry.order;
  }

  /** The order, made if need be. */
  async get(name: string, compare: Compare<R>): Promise<SortedOrder<R>> {
    const entry = this.#entry(name, compare);
    return entry.order ?? this.#make(entry);
  }

  /** `order` as it is in a later view; kept, if no other has taken its place meanwhile. */
  async catchUp(name: string, order: SortedOrder<R>, { view, blocks }: OpenView<R>): Promise<SortedOrder<R>> {
    const entry = this.#entries.get(name);
    if (view.revision === order.revision || entry === undefined) return order;
    const recent = await this.#slices.run(recentIn(order, blocks, entry.compare));
    const caughtUp = { ...order, revision: view.revision, recent, blocks: new Set(blocks) };
    if (entry.order !== order) return caughtUp;
    this.#keep(entry, { ...caughtUp, hold: this.#source.view() });
    const gone = order.base.length + recent.length - view.size;
    if (recent.length + gone > Math.max(limits.recentRecordsMin, view.size / 64)) void this.#make(entry);
    return caughtUp;
  }

  #entry(name: string, compare: Compare<R>): Entry<R> {
    const entry = this.#entries.get(name) ?? { compare, timesAsked: 0, order: undefined, making: undefined };
    entry.timesAsked += 1;
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    const [oldest] = this.#entries;
    if (oldest !== undefined && this.#entries.size > limits.sortedOrdersMax) {
      this.#entries.delete(oldest[0]);
      oldest[1].order?.hold.close();
      oldest[1].order = undefined;
    }
    return entry;
  }

  #make(entry: Entry<R>): Promise<SortedOrder<R>> {
    entry.making ??= this.#makeBase(entry).finally(() => {
      entry.making = undefined;
    });
    return entry.making;
  }

  async #makeBase(entry: Entry<R>): Promise<SortedOrder<R>> {
    const hold = this.#source.view();
    const blocks = [...hold.blocks()];
    const base = await this.#slices.run(
      entry.order === undefined ? sort(blocks, entry.compare) : rebased(entry.order, blocks, entry.compare),
    );
    const order = { revision: hold.revision, base, recent: [], blocks: new Set(blocks), hold };
    this.#keep(entry, order);
    return order;
  }

  #keep(entry: Entry<R>, order: SortedOrder<R>): void {
    entry.order?.hold.close();
    entry.order = order;
    const dropped = ![...this.#entries.values()].includes(entry);
    if (dropped) order.hold.close();
  }
}

/** What `order` has to show of the records in `blocks` beside its base. */
function* recentIn<R extends StoredRecord>(
  order: SortedOrder<R>,
  blocks: Blocks<R>,
  compare: Compare<R>,
): Generator<undefined, R[]> {
  const changed: R[][] = [];
  for (const block of blocks) {
    if (order.blocks.has(block)) continue;
    changed.push(block.filter((record) => record.revision > order.revision));
    yield;
  }
  const written = yield* sort(changed, compare);
  return yield* collect(merge(order.recent, written, compare), presenceIn(blocks));
}

/** The records in `blocks` by `order`, in one array again. */
function* rebased<R extends StoredRecord>(
  order: SortedOrder<R>,
  blocks: Blocks<R>,
  compare: Compare<R>,
): Generator<undefined, R[]> {
  const recent = yield* recentIn(order, blocks, compare);
  return yield* collect(merge(order.base, recent, compare), presenceIn(blocks));
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
