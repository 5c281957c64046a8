import { isScalar, type JsonValue, type Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Field, Shape, Value } from '../schema/field.ts';
import { findKind } from '../schema/kinds.ts';
import { fieldAt, readerAt } from '../schema/record.ts';
import type { StoredRecord } from '../store/store.ts';

export interface OrderTerm {
  readonly name: string;
  readonly descending: boolean;
}

/** Compares two records, or the values of their sort fields. Returns -1, 0 or 1. */
export type Compare = (a: object, b: object) => number;

/**
 * Returns the comparator of `sort`. It orders all values: false, true, numbers, texts by UTF-16
 * code units, lists and objects (all equal), then null and absent values (equal).
 */
export function comparator(shape: Shape, sort: readonly OrderTerm[]): Compare {
  const terms = sort.map(({ name, descending }) => ({
    read: comparedValue(shape, name),
    sign: descending ? -1 : 1,
  }));
  return (a, b) => {
    for (const { read, sign } of terms) {
      const x = read(a);
      const y = read(b);
      if (x === y) continue;
      return isBefore(x, y) ? -sign : sign;
    }
    return 0;
  };
}

/** Returns a comparator of records with a place: the values of the sort fields, as in a cursor. */
export function comparatorTo(
  shape: Shape,
  sort: readonly OrderTerm[],
  place: readonly JsonValue[],
): (record: object) => number {
  const terms = sort.map(({ name, descending }, index) => ({
    read: comparedValue(shape, name),
    key: keyMaker(fieldAt(shape, name))(place[index]),
    sign: descending ? -1 : 1,
  }));
  return (record) => {
    for (const { read, key, sign } of terms) {
      const value = read(record);
      if (value === key) continue;
      return isBefore(value, key) ? -sign : sign;
    }
    return 0;
  };
}

function isBefore(x: Scalar | object | undefined, y: Scalar | object | undefined): boolean {
  if (x === undefined || y === undefined) return y === undefined;
  return typeof x === typeof y ? x < y : rankType(x) < rankType(y);
}

const rankType = (value: Scalar | object): number => types.indexOf(typeof value);
const types = ['boolean', 'number', 'string', 'object'];

/** Stands in for all lists and objects, which are equal. */
const noScalar = {};

/** Returns a reader of a field's compared value, such as an e-mail address in lower case. */
export function comparedValue(
  shape: Shape,
  name: string,
): (record: object) => Scalar | object | undefined {
  const key = keyMaker(fieldAt(shape, name));
  const read = readerAt(shape, name);
  return (record) => key(read(record));
}

function keyMaker(
  field: Field | undefined,
): (value: Value | undefined) => Scalar | object | undefined {
  const compared = comparedBy(field);
  const part = chooseSortedPart(field);
  return (value) => {
    if (isScalar(value)) return part(compared(value));
    return value === undefined || value === null ? undefined : noScalar;
  };
}

/** Returns a function that cuts a value to the part that sorts it. Ids are not cut. */
export const chooseSortedPart = (field: Field | undefined): ((value: Scalar) => Scalar) =>
  field?.kind === 'id' ? (value) => value : sortedPart;

/** Cuts a long text to its beginning, which sorts records. */
function sortedPart(value: Scalar): Scalar {
  return typeof value === 'string' && value.length > limits.sortedTextMax
    ? value.slice(0, limits.sortedTextMax)
    : value;
}

/** Returns a function that maps a field's values to the keys they are compared by. */
export function comparedBy(field: Field | undefined): (value: Scalar) => Scalar {
  const one = field?.kind === 'list' ? field.of : field;
  return (one && findKind(one).compared) ?? ((value) => value);
}

/** Up to 1,024 records. In a generator, each block is a step, and an empty one is a pause. */
export type Block = readonly StoredRecord[];

/** Records that can be sorted in about a millisecond. */
const runLength = 1024;

const pause: Block = [];

/** Finds the first `count` records of the order, with a few times as many in memory. */
export function* firstInOrder(
  blocks: Iterable<Block>,
  count: number,
  compare: Compare,
): Generator<Block> {
  let found: StoredRecord[] = [];
  let last: StoredRecord | undefined;
  for (const block of blocks) {
    const bound = last;
    found.push(
      ...(bound === undefined ? block : block.filter((record) => compare(record, bound) < 0)),
    );
    if (found.length >= 2 * count + runLength) {
      found = found.sort(compare).slice(0, count);
      last = found[count - 1];
    }
    yield pause;
  }
  yield found.sort(compare).slice(0, count);
}

/** Sorts all records in runs, and merges the runs only as fast as the result is read. */
export function* sorted(blocks: Iterable<Block>, compare: Compare): Generator<Block> {
  const runs: IterableIterator<StoredRecord>[] = [];
  let unsorted: StoredRecord[] = [];
  for (const block of blocks) {
    unsorted.push(...block);
    if (unsorted.length >= runLength) {
      runs.push(unsorted.sort(compare).values());
      unsorted = [];
    }
    yield pause;
  }
  runs.push(unsorted.sort(compare).values());
  // A balanced tree: each record passes log2(number of runs) merges.
  while (runs.length > 1) {
    const [left, right] = runs.splice(0, 2);
    if (left !== undefined && right !== undefined) runs.push(merge(left, right, compare));
  }
  let merged: StoredRecord[] = [];
  for (const record of runs[0] ?? []) {
    merged.push(record);
    if (merged.length < runLength) continue;
    yield merged;
    merged = [];
  }
  yield merged;
}

function* merge(
  left: Iterator<StoredRecord>,
  right: Iterator<StoredRecord>,
  compare: Compare,
): Generator<StoredRecord> {
  let a = left.next();
  let b = right.next();
  while (!a.done || !b.done) {
    if (!a.done && (b.done || compare(a.value, b.value) < 0)) {
      yield a.value;
      a = left.next();
    } else if (!b.done) {
      yield b.value;
      b = right.next();
    }
  }
}
