import type { Scalar } from '../base/json.ts';

/**
 * Sorting that can be interrupted. What is a generator here yields after about a thousand steps at most, for
 * `Slices.run`. Sorted records stand in blocks of 1,024: one long array would be copied whenever it grows, and looked
 * through at every collection of garbage while it is young.
 */
const blockBits = 10;
const blockLength = 1 << blockBits;

export type Compare<R> = (a: R, b: R) => number;
export type Blocks<R> = readonly (readonly R[])[];
/** All blocks but the last one are full, so that a record's place in the order leads to it. */
export type FullBlocks<R> = Blocks<R>;

/** A total order: no two records are equal in it. */
export interface Order<R> {
  readonly compare: Compare<R>;
  /** The value that is compared first; where two are equal or one is absent, `compare` decides. */
  readonly keyOf: (record: R) => Key;
  /** Whether a greater key comes first. */
  readonly descending: boolean;
}
export type Key = Scalar | undefined;

/** The records of two sorted sequences in one order, beginning at the given places. */
export function* merge<R>(
  a: FullBlocks<R>,
  b: FullBlocks<R>,
  compare: Compare<R>,
  aStart = 0,
  bStart = 0,
): Generator<readonly R[], undefined> {
  let block: R[] = [];
  let aAt = aStart;
  let bAt = bStart;
  for (;;) {
    const x = elementAt(a, aAt);
    const y = elementAt(b, bAt);
    if (x !== undefined && (y === undefined || compare(x, y) <= 0)) {
      block.push(x);
      aAt += 1;
    } else if (y !== undefined) {
      block.push(y);
      bAt += 1;
    } else {
      break;
    }
    if (block.length === mergedLength) {
      yield block;
      block = [];
    }
  }
  if (block.length > 0) yield block;
}

/** A page needs few records, so few are merged at a time. */
const mergedLength = 256;

/** The records of `blocks` in full blocks, without those that `keep` refuses. */
export function* collect<R>(
  blocks: Iterable<readonly R[]>,
  keep: (record: R) => boolean = () => true,
): Generator<undefined, FullBlocks<R>> {
  const full: R[][] = [];
  let last: R[] = [];
  for (const block of blocks) {
    for (const record of block) {
      if (!keep(record)) continue;
      if (last.length === 0) full.push(last);
      last.push(record);
      if (last.length === blockLength) last = [];
    }
    yield;
  }
  return full;
}

/**
 * All records of `blocks`, sorted: runs of a block's length first, then merged into ever longer ones. Only the records'
 * numbers are moved, in arrays that the garbage collector need not look into.
 */
export function* sort<R>(blocks: Blocks<R>, order: Order<R>): Generator<undefined, FullBlocks<R>> {
  const keys: Key[][] = [];
  let numbers = new Uint32Array(blocks.reduce((sum, block) => sum + block.length, 0));
  let count = 0;
  for (const [index, block] of blocks.entries()) {
    keys.push(block.map(order.keyOf));
    for (const offset of block.keys()) numbers[count + offset] = index * blockLength + offset;
    count += block.length;
    yield;
  }
  const compare = compareNumbers(blocks, keys, order);
  for (let start = 0; start < count; start += blockLength) {
    numbers.subarray(start, start + blockLength).sort(compare);
    yield;
  }
  let merged = new Uint32Array(count);
  for (let length = blockLength; length < count; length *= 2) {
    yield* mergeRuns(numbers, merged, length, compare);
    [numbers, merged] = [merged, numbers];
  }
  return yield* collect(recordsOf(blocks, numbers));
}

/** Compares records by their numbers; most are decided by the keys, which lie together in memory. */
function compareNumbers<R>(blocks: Blocks<R>, keys: Blocks<Key>, order: Order<R>): Compare<number> {
  return (a, b) => {
    const x = elementAt(keys, a);
    const y = elementAt(keys, b);
    if (x !== y && x !== undefined && y !== undefined) return x < y === order.descending ? 1 : -1;
    const recordA = elementAt(blocks, a);
    const recordB = elementAt(blocks, b);
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

function* recordsOf<R>(blocks: Blocks<R>, numbers: Uint32Array): Generator<readonly R[], undefined> {
  for (let start = 0; start < numbers.length; start += blockLength) {
    const block: R[] = [];
    for (const number of numbers.subarray(start, start + blockLength)) {
      const record = elementAt(blocks, number);
      if (record !== undefined) block.push(record);
    }
    yield block;
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

/** How many records there are in full blocks. */
export function countOf<R>(blocks: FullBlocks<R>): number {
  return Math.max(0, blocks.length - 1) * blockLength + (blocks.at(-1)?.length ?? 0);
}

/** The place of the first record for which `test` holds, where it holds for all that follow; else their number. */
export function firstPlace<R>(blocks: FullBlocks<R>, test: (record: R) => boolean): number {
  const index = firstIndex(blocks, (block) => block.slice(-1).some(test));
  const block = blocks[index];
  return block === undefined ? countOf(blocks) : index * blockLength + firstIndex(block, test);
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

function elementAt<T>(blocks: Blocks<T>, place: number): T | undefined {
  return blocks[place >>> blockBits]?.[place & (blockLength - 1)];
}
