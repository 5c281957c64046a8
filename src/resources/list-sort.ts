/**
 * Sorting that can be interrupted. Everything here is a generator that yields after about a thousand steps at most,
 * for `Slices.run`; where it gives records, it gives them in blocks.
 */
const blockLength = 256;

export type Compare<R> = (a: R, b: R) => number;
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

/** All records of `blocks`, sorted: each block by itself, then merged in ever longer runs. */
export function* sort<R>(blocks: Iterable<readonly R[]>, compare: Compare<R>): Generator<undefined, R[]> {
  let runs: R[][] = [];
  for (const block of blocks) {
    runs.push([...block].sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const longer: R[][] = [];
    for (let index = 0; index < runs.length; index += 2) {
      longer.push(yield* collect(merge(runs[index] ?? [], runs[index + 1] ?? [], compare)));
    }
    runs = longer;
  }
  return runs[0] ?? [];
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
