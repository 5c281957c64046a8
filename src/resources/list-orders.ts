import type { Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Breathe } from '../base/slices.ts';
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

/** Reads from a record what is compared; e-mail addresses are compared as they are held to be unique. */
export function reader(shape: Shape, name: string): (record: object) => Scalar | undefined {
  if (shape[name]?.rule.kind !== 'email') return (record) => fieldValue(record, name);
  return (record) => {
    const value = fieldValue(record, name);
    return value === undefined ? undefined : emailKey(String(value));
  };
}

/**
 * Sorted records stand in blocks of about a thousand: one long array would be copied whenever it grows, and looked
 * through at every collection of garbage while it is young. What is done with many blocks breathes between them.
 */
const blockLength = 1024;
/** One record of so many is a sample of its block. */
const sampleStep = 64;

/** Records in order; no block is empty. They are never changed. */
export type Blocks<R> = readonly (readonly R[])[];

/** Where the records of a list come from; a `Collection` is one. */
export type Source<R extends StoredRecord> = Pick<Collection<R>, 'view'>;

interface Order<R extends StoredRecord> {
  /**
   * All records of one revision in order, and by id. A block of the view is copied before it is changed: so one that a
   * later view has too is unchanged, and what it holds need not be looked at to keep the order up.
   */
  sorted?: { readonly blocks: Blocks<R>; readonly view: View<R> };
  /** What brings it up to the present, after all that was under way before; `undefined` where there is no room. */
  work?: Promise<Blocks<R> | undefined> | undefined;
}

/** The orders of one collection that were asked for last, kept up with what is written instead of sorted anew. */
export function sortedOrders<R extends StoredRecord>(source: Source<R>, breathe: Breathe, take: TakeRoom) {
  /** By the name of the sort; the one that was not asked for longest is first. */
  const orders = new Map<string, Order<R>>();

  /**
   * The records in order, as they are in the turn of the loop in which this is called; `undefined` where there is no
   * room for them. Where they may as well be scanned, also until the order has been made: that begins when it is asked
   * for a second time.
   */
  function get(name: string, compare: Compare, orScan: boolean): Order<R>['work'] {
    const known = orders.get(name);
    const order = known ?? {};
    orders.delete(name);
    orders.set(name, order);
    const [oldest = name] = orders.keys();
    if (orders.size > limits.sortedOrdersMax) orders.delete(oldest);
    const isMissing = orScan && order.sorted === undefined;
    if (!isMissing || (known !== undefined && order.work === undefined)) order.work = bringUp(order, compare);
    return isMissing ? undefined : order.work;
  }

  async function bringUp(order: Order<R>, compare: Compare): Promise<Blocks<R> | undefined> {
    const view = source.view();
    await order.work;
    const { sorted } = order;
    if (sorted?.view.revision === view.revision) return sorted.blocks;
    const isNear = sorted !== undefined && view.revision - sorted.view.revision <= view.size / 8;
    // What is sorted anew shares nothing with other orders, also where it is for pages.
    const release = take(isNear ? [] : [{ length: view.size }]);
    if (release === undefined) return (order.work = undefined);
    try {
      const blocks = isNear
        ? await resort(sorted.blocks, sorted.view.blocks, view.blocks, compare, breathe)
        : await sort(view.blocks, compare, breathe);
      order.sorted = { blocks, view };
      return blocks;
    } finally {
      release();
    }
  }

  return get;
}

/** Counts `blocks` until what is returned is called; `undefined` where there is no room for them. */
export type TakeRoom = (blocks: readonly { readonly length: number }[]) => (() => void) | undefined;

/** Room for the orders and points in time that lists hold while they are made and sent: a slow reader holds it long. */
export function createRoom(recordsMax: number): TakeRoom {
  const holders = new Map<object, number>();
  let records = 0;
  return function take(blocks) {
    const others = records;
    for (const block of blocks) {
      const count = holders.get(block) ?? 0;
      holders.set(block, count + 1);
      if (count === 0) records += block.length;
    }
    const release = (): void => {
      for (const block of blocks) {
        const count = holders.get(block) ?? 0;
        if (count > 1) holders.set(block, count - 1);
        else if (holders.delete(block)) records -= block.length;
      }
    };
    // However long it is, there is room for one.
    if (records <= recordsMax || others === 0 || others === records) return release;
    release();
    return undefined;
  };
}

/**
 * All records of `blocks` in order: samples of them divide the whole into parts of about a block's length, and each
 * part is sorted. No two records may be equal.
 */
export async function sort<R extends object>(
  blocks: Blocks<R>,
  compare: Compare,
  breathe: Breathe,
): Promise<Blocks<R>> {
  if (blocks.length < 2) return blocks.map((block) => block.toSorted(compare));
  const samples: R[] = [];
  for (const [index, block] of blocks.entries()) {
    // From another place in each, so that together they tell more.
    samples.push(...block.filter((_, at) => at % sampleStep === (index * 37) % sampleStep));
    await breathe();
  }
  const sorted = await sort(inBlocks(samples), compare, breathe);
  const bounds = sorted.flat().filter((_, index) => index % (blockLength / sampleStep) === 0);
  const parts = [undefined, ...bounds].map((): R[] => []);
  for (const block of blocks) {
    for (const record of block) parts[firstIndex(bounds, (bound) => compare(bound, record) > 0)]?.push(record);
    await breathe();
  }
  const result: (readonly R[])[] = [];
  for (const part of parts) {
    // Where the samples were unlucky, a part is divided once more.
    if (part.length > 4 * blockLength) result.push(...(await sort(inBlocks(part), compare, breathe)));
    else if (part.length > 0) result.push(part.sort(compare));
    await breathe();
  }
  return result;
}

/** `sorted`, which has the records of `before`, with those of `after`; both by id. What they share is not looked at. */
async function resort<R extends StoredRecord>(
  sorted: Blocks<R>,
  before: Blocks<R>,
  after: Blocks<R>,
  compare: Compare,
  breathe: Breathe,
): Promise<Blocks<R>> {
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
    if (step % 256 === 0) await breathe();
  }
  return blocks;
}

function* recordsOf<R>(blocks: Blocks<R>, except: ReadonlySet<readonly R[]>): Generator<R, undefined> {
  for (const block of blocks) if (!except.has(block)) yield* block;
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
