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
  /** What decides most comparisons. */
  readonly keyOf: (record: R) => Key;
  /** The same as `compare` when the keys are at hand. */
  readonly compareByKey: (aKey: Key, a: R, bKey: Key, b: R) => number;
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
 * All records of `blocks`, sorted: each block by itself, then merged in ever longer runs. The keys lie beside the
 * records, so that few comparisons have to look into records, which are anywhere in memory.
 */
export function* sort<R>(blocks: Iterable<readonly R[]>, order: Order<R>): Generator<undefined, readonly R[]> {
  let runs: Run<R>[] = [];
  for (const block of blocks) {
    const entries = block.map((record) => ({ key: order.keyOf(record), record }));
    entries.sort((a, b) => order.compareByKey(a.key, a.record, b.key, b.record));
    runs.push({ keys: entries.map(({ key }) => key), records: entries.map(({ record }) => record) });
    yield;
  }
  while (runs.length > 1) {
    const longer: Run<R>[] = [];
    for (let index = 0; index < runs.length; index += 2) {
      const [a, b] = runs.slice(index, index + 2);
      if (a !== undefined) longer.push(b === undefined ? a : yield* mergeRuns(a, b, order));
    }
    runs = longer;
  }
  return runs[0]?.records ?? [];
}

/** Records in order, and the key of each. */
interface Run<R> {
  readonly keys: readonly Key[];
  readonly records: readonly R[];
}

function* mergeRuns<R>(a: Run<R>, b: Run<R>, order: Order<R>): Generator<undefined, Run<R>> {
  const keys: Key[] = [];
  const records: R[] = [];
  let aAt = 0;
  let bAt = 0;
  for (;;) {
    const x = a.records[aAt];
    const y = b.records[bAt];
    if (x !== undefined && (y === undefined || order.compareByKey(a.keys[aAt], x, b.keys[bAt], y) < 0)) {
      keys.push(a.keys[aAt]);
      records.push(x);
      aAt += 1;
    } else if (y !== undefined) {
      keys.push(b.keys[bAt]);
      records.push(y);
      bAt += 1;
    } else {
      return { keys, records };
    }
    if (records.length % blockLength === 0) yield;
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

/** The first `count` records of `blocks` as they come. */
export function* first<R>(blocks: Iterable<readonly R[]>, count: number): Generator<undefined, R[]> {
  const records: R[] = [];
  for (const block of blocks) {
    records.push(...block.slice(0, count - records.length));
    if (records.length === count) break;
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
