import type { Scalar } from '../base/json.ts';

/**
 * Sorting that can be interrupted. Everything here is a generator that yields after about a thousand steps at most,
 * for `Slices.run`; where it gives records, it gives them in blocks.
 */
const blockLength = 256;

export type Compare<R> = (a: R, b: R) => number;

/** A total order: no two records are equal in it. */
export interface Order<R> {
  readonly compare: Compare<R>;
  /** The value that is compared first; where two are equal or one is absent, `compare` decides. */
  readonly keyOf: (record: R) => Key;
  /** Whether a greater key comes first. */
  readonly descending: boolean;
}
export type Key = Scalar | undefined;
export type Blocks<R> = readonly (readonly R[])[];

/** The records of two sorted arrays in one order, beginning at the given indexes. */
export function* merge<R>(
  a: readonly R[],
  b: readonly R[],
  compare: Compare<R>,
  aStart = 0,
  bStart = 0,
): Generator<readonly R[], undefined> {
  let block: R[] = [];
  let aAt = aStart;
  let bAt = bStart;
  for (;;) {
    const x = a[aAt];
    const y = b[bAt];
    if (x !== undefined && (y === undefined || compare(x, y) <= 0)) {
      block.push(x);
      aAt += 1;
    } else if (y !== undefined) {
      block.push(y);
      bAt += 1;
    } else {
      break;
    }
    if (block.length === blockLength) {
      yield block;
      block = [];
    }
  }
  if (block.length > 0) yield block;
}

/** All records of `blocks` in one array, without those that `keep` refuses. */
export function* collect<R>(
  blocks: Iterable<readonly R[]>,
  keep: (record: R) => boolean = () => true,
): Generator<undefined, R[]> {
  const records: R[] = [];
  for (const block of blocks) {
    for (const record of block) if (keep(record)) records.push(record);
    yield;
  }
  return records;
}

/**
 * All records of `blocks`, sorted: runs of a block's length first, then merged into ever longer ones. Only their
 * numbers are moved, in arrays that the garbage collector need not look into.
 */
export function* sort<R>(blocks: Iterable<readonly R[]>, order: Order<R>): Generator<undefined, R[]> {
  const records = yield* collect(blocks);
  const keys: Key[] = [];
  let numbers = new Uint32Array(records.length);
  for (const [number, record] of records.entries()) {
    keys.push(order.keyOf(record));
    numbers[number] = number;
    if (number % blockLength === 0) yield;
  }
  const compare = compareNumbers(records, keys, order);
  for (let start = 0; start < numbers.length; start += blockLength) {
    numbers.subarray(start, start + blockLength).sort(compare);
    yield;
  }
  let merged = new Uint32Array(records.length);
  for (let length = blockLength; length < numbers.length; length *= 2) {
    yield* mergeRuns(numbers, merged, length, compare);
    [numbers, merged] = [merged, numbers];
  }
  const sorted: R[] = [];
  for (const number of numbers) {
    const record = records[number];
    if (record !== undefined) sorted.push(record);
    if (sorted.length % blockLength === 0) yield;
  }
  return sorted;
}

/** Compares records by their numbers; most are decided by the keys, which lie together in memory. */
function compareNumbers<R>(records: readonly R[], keys: readonly Key[], order: Order<R>): Compare<number> {
  return (a, b) => {
    const x = keys[a];
    const y = keys[b];
    if (x !== y && x !== undefined && y !== undefined) return x < y === order.descending ? 1 : -1;
    const recordA = records[a];
    const recordB = records[b];
    return recordA === undefined || recordB === undefined ? 0 : order.compare(recordA, recordB);
  };
}

/** Merges each two neighbouring runs of `length` numbers in `from` into one in `to`. */
function* mergeRuns(
  from: Uint32Array,
  to: Uint32Array,
  length: number,
  compare: Compare<number>,
): Generator<undefined> {
  for (let start = 0; start < from.length; start += 2 * length) {
    const middle = Math.min(start + length, from.length);
    const end = Math.min(middle + length, from.length);
    let a = start;
    let b = middle;
    for (let at = start; at < end; at += 1) {
      const x = from[a] ?? 0;
      const y = from[b] ?? 0;
      if (b >= end || (a < middle && compare(x, y) <= 0)) {
        to[at] = x;
        a += 1;
      } else {
        to[at] = y;
        b += 1;
      }
      if (at % blockLength === 0) yield;
    }
  }
}

/** The first `count` records of `blocks` in sorted order, in memory for them and one block. */
export function* smallest<R>(
  blocks: Iterable<readonly R[]>,
  count: number,
  compare: Compare<R>,
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
export function firstIndex<T>(elements: ArrayLike<T>, test: (element: T) => boolean): number {
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
