import type { Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Slices } from '../base/slices.ts';
import { emailKey, type Shape } from '../schema/field.ts';
import { fieldValue } from '../schema/representation.ts';
import type { Collection, StoredRecord, View } from '../store/store.ts';

/** An order, of records and of what has the fields that it looks at. */
export type Compare = (a: object, b: object) => number;

export interface SortTerm {
  readonly name: string;
  readonly descending: boolean;
}

/** The order that a sort asks for: texts by UTF-16 code units, false before true, an absent value after all others. */
export function comparator(shape: Shape, sort: readonly SortTerm[]): Compare {
  const terms = sort.map(({ name, descending }) => ({ read: reader(shape, name), sign: descending ? -1 : 1 }));
  return (a, b) => {
    for (const { read, sign } of terms) {
      const x = read(a);
      const y = read(b);
      if (x === y) continue;
      return x !== undefined && (y === undefined || x < y) ? -sign : sign;
    }
    return 0;
  };
}

/** Reads from a record what is compared. */
export function reader(shape: Shape, name: string): (record: object) => Scalar | undefined {
  if (shape[name]?.rule.kind !== 'email') return (record) => fieldValue(record, name);
  return (record) => {
    const value = fieldValue(record, name);
    return value === undefined ? undefined : keyOf(shape, name, value);
  };
}

/** E-mail addresses are compared as they are held to be unique. */
export function keyOf(shape: Shape, name: string, value: Scalar): Scalar {
  return shape[name]?.rule.kind === 'email' ? emailKey(String(value)) : value;
}

/**
 * Sorting that can be interrupted: what is a generator here yields after about a thousand steps at most, for
 * `Slices.run`. Sorted records stand in blocks of about a thousand: one long array would be copied whenever it grows,
 * and looked through at every collection of garbage while it is young.
 */
const blockLength = 1024;
/** One record of so many is a sample of its block. */
const sampleStep = 64;

/** Records in order; no block is empty. */
export type Blocks<R> = readonly (readonly R[])[];

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
  sorted?: Sorted<R> | undefined;
  /** What `sorted` is going to be. */
  next?: Promise<Sorted<R>> | undefined;
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
    const isNew = !entries.has(name);
    const entry = entryOf(name);
    if (entry.sorted !== undefined) return bringUp(entry, compare);
    if (!isNew && entry.next === undefined) void bringUp(entry, compare);
    return undefined;
  }

  function entryOf(name: string): Entry<R> {
    const entry = entries.get(name) ?? {};
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

/**
 * All records of `blocks`, sorted by regular sampling (Shi and Schaeffer, 1992): each block is sorted, samples of them
 * all divide the whole into parts of about a block's length, and each part is sorted. No two records may be equal.
 */
export function* sort<R extends object>(blocks: Blocks<R>, compare: Compare): Generator<undefined, Blocks<R>> {
  const runs: R[][] = [];
  const samples: R[] = [];
  for (const block of blocks) {
    const run = block.slice().sort(compare);
    // From another place in each, so that together they tell more.
    const start = (runs.length * 37) % sampleStep;
    samples.push(...run.filter((_, index) => index % sampleStep === start));
    runs.push(run);
    yield;
  }
  if (runs.length < 2) return runs;
  const sorted = yield* sort(inBlocks(samples), compare);
  const bounds = sorted.flat().filter((_, index) => index % (blockLength / sampleStep) === 0);
  const parts = [undefined, ...bounds].map((): R[] => []);
  for (const run of runs) {
    let part = 0;
    let bound = bounds[part];
    for (const record of run) {
      while (bound !== undefined && compare(bound, record) <= 0) bound = bounds[(part += 1)];
      parts[part]?.push(record);
    }
    yield;
  }
  const result: (readonly R[])[] = [];
  for (const part of parts) {
    // Where the samples were unlucky, a part is divided once more.
    if (part.length > 4 * blockLength) result.push(...(yield* sort(inBlocks(part), compare)));
    else if (part.length > 0) result.push(part.sort(compare));
    yield;
  }
  return result;
}

/** `sorted`, which has the records of `before`, with those of `after`; both by id. What they share is not looked at. */
export function* resort<R extends StoredRecord>(
  sorted: Blocks<R>,
  before: Blocks<R>,
  after: Blocks<R>,
  compare: Compare,
): Generator<undefined, Blocks<R>> {
  const blocks = [...sorted];
  const copies = new Map<readonly R[], R[]>();
  const change = (record: R, isNew: boolean): void => {
    const found = firstIndex(blocks, (block) => block.slice(-1).every((last) => compare(last, record) >= 0));
    const at = Math.max(0, Math.min(found, blocks.length - 1));
    const block = blocks[at] ?? [];
    const copy = copies.get(block) ?? block.slice();
    copies.set(copy, copy);
    const place = firstIndex(copy, (other) => compare(other, record) >= 0);
    if (isNew) copy.splice(place, 0, record);
    else copy.splice(place, 1);
    blocks.splice(at, 1, ...(copy.length > 2 * blockLength ? inBlocks(copy) : copy.length > 0 ? [copy] : []));
  };
  const [gone, come] = [recordsOf(before, new Set(after)), recordsOf(after, new Set(before))];
  let old = gone.next().value;
  let now = come.next().value;
  for (let step = 1; old !== undefined || now !== undefined; step += 1) {
    const difference = (old?.id ?? Infinity) - (now?.id ?? Infinity);
    if (old !== now) {
      if (old !== undefined && difference <= 0) change(old, false);
      if (now !== undefined && difference >= 0) change(now, true);
    }
    if (difference <= 0) old = gone.next().value;
    if (difference >= 0) now = come.next().value;
    if (step % 256 === 0) yield;
  }
  return blocks;
}

function* recordsOf<R>(blocks: Blocks<R>, except: ReadonlySet<readonly R[]>): Generator<R, undefined> {
  for (const block of blocks) if (!except.has(block)) yield* block;
}

/** The first `count` records of `blocks` in sorted order, in memory for them and one block. */
export function* smallest<R extends object>(
  blocks: Iterable<readonly R[]>,
  count: number,
  compare: Compare,
): Generator<undefined, R[]> {
  let best: R[] = [];
  for (const block of blocks) {
    const last = best.length === count ? best.at(-1) : undefined;
    const candidates = last === undefined ? block : block.filter((record) => compare(record, last) < 0);
    if (candidates.length > 0) best = [...best, ...candidates].sort(compare).slice(0, count);
    yield;
  }
  return best;
}

/** The first `count` records of `blocks` as they come; `undefined` if `blocksMax` blocks do not have so many. */
export function* first<R>(
  blocks: Iterable<readonly R[]>,
  count: number,
  blocksMax: number,
): Generator<undefined, R[] | undefined> {
  const records: R[] = [];
  let looked = 0;
  for (const block of blocks) {
    if (looked === blocksMax) return undefined;
    records.push(...block.slice(0, count - records.length));
    if (records.length === count) break;
    looked += 1;
    yield;
  }
  return records;
}

/** The index of the first element for which `test` holds, where it holds for all that follow; else the length. */
export function firstIndex<T>(elements: readonly T[], test: (element: T) => boolean): number {
  let low = 0;
  let high = elements.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const element = elements[middle];
    if (element !== undefined && test(element)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function inBlocks<R>(records: readonly R[]): R[][] {
  const count = Math.ceil(records.length / blockLength);
  return Array.from({ length: count }, (_, index) => records.slice(index * blockLength, (index + 1) * blockLength));
}
