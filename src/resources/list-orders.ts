import { limits } from '../base/limits.ts';
import type { Slices } from '../base/slices.ts';
import type { Collection, StoredRecord, View } from '../store/store.ts';
import { resort, sort, type Blocks } from './list-sort.ts';
import type { Compare } from './list-values.ts';

/** Where the records of a list come from; a `Collection` is one. */
export type Source<R extends StoredRecord> = Pick<Collection<R>, 'view'>;

/** All records of one revision in order. It is never changed. */
export interface Sorted<R extends StoredRecord> {
  readonly blocks: Blocks<R>;
  /**
   * The records by id. While this view is open, a block of theirs is copied before it is changed: so one that a later
   * view has too is unchanged, and what it holds need not be looked at to keep the order up.
   */
  readonly view: View<R>;
}

interface Entry<R extends StoredRecord> {
  timesAsked: number;
  sorted: Sorted<R> | undefined;
  /** What `sorted` is going to be. */
  next: Promise<Sorted<R>> | undefined;
}

/** The orders of one collection that were asked for last, kept up with what is written instead of sorted anew. */
export function sortedOrders<R extends StoredRecord>(source: Source<R>, slices: Slices) {
  /** By the name of the sort; the one that was not asked for longest is first. */
  const entries = new Map<string, Entry<R>>();

  /** The records in order, as they are in the turn of the loop in which this is called. */
  function get(name: string, compare: Compare): Promise<Sorted<R>> {
    return bringUp(entryOf(name), compare);
  }

  /** The same, if the order has been made. When it is asked for a second time, it begins to be made. */
  function find(name: string, compare: Compare): Promise<Sorted<R>> | undefined {
    const entry = entryOf(name);
    if (entry.sorted !== undefined) return bringUp(entry, compare);
    if (entry.timesAsked > 1 && entry.next === undefined) void bringUp(entry, compare);
    return undefined;
  }

  function entryOf(name: string): Entry<R> {
    const entry = entries.get(name) ?? { timesAsked: 0, sorted: undefined, next: undefined };
    entry.timesAsked += 1;
    entries.delete(name);
    entries.set(name, entry);
    const [oldest] = entries;
    if (oldest !== undefined && entries.size > limits.sortedOrdersMax) {
      entries.delete(oldest[0]);
      oldest[1].sorted?.view.close();
      oldest[1].sorted = undefined;
    }
    return entry;
  }

  /** Brings an order up to the present, after what is under way for it. */
  function bringUp(entry: Entry<R>, compare: Compare): Promise<Sorted<R>> {
    const view = source.view();
    const next = follow(entry, view, compare).finally(() => {
      if (entry.next === next) entry.next = undefined;
    });
    entry.next = next;
    return next;
  }

  async function follow(entry: Entry<R>, view: View<R>, compare: Compare): Promise<Sorted<R>> {
    await entry.next;
    const { sorted } = entry;
    if (sorted?.view.revision === view.revision) {
      view.close();
      return sorted;
    }
    const records = [...view.blocks()];
    const isNear = sorted !== undefined && view.revision - sorted.view.revision <= view.size / 8;
    const work = isNear ? resort(sorted.blocks, [...sorted.view.blocks()], records, compare) : sort(records, compare);
    const following = { blocks: await slices.run(work), view };
    sorted?.view.close();
    if ([...entries.values()].includes(entry)) entry.sorted = following;
    else view.close();
    return following;
  }

  return { get, find };
}
