import { firstIndex } from '../base/search.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Block, Compare } from './order.ts';

/** A place before the record with this index in its block. */
export interface Position {
  readonly block: number;
  readonly index: number;
}

type Test = (record: StoredRecord) => boolean;

/** Finds the first record for which `isPast` holds. It must hold for all later ones. */
export function findPosition(blocks: readonly Block[], isPast: Test): Position {
  const block = firstIndex(blocks, (records) => {
    const last = records.at(-1);
    return last !== undefined && isPast(last);
  });
  return { block, index: firstIndex(blocks[block] ?? [], isPast) };
}

export interface Stretch {
  readonly blocks: readonly Block[];
  readonly start: Position;
  readonly end: Position;
}

export function toStretch(blocks: readonly Block[]): Stretch {
  return { blocks, start: { block: 0, index: 0 }, end: { block: blocks.length, index: 0 } };
}

export type Direction = 'forwards' | 'backwards';

/** Returns a stretch without its first `count` records in a direction. */
export function skip(stretch: Stretch, direction: Direction, count: number): Stretch {
  if (count === 0) return stretch;
  if (direction === 'forwards') return { ...stretch, start: placeAt(stretch, count) };
  const { blocks, start, end } = stretch;
  let length = end.index - start.index;
  for (let block = start.block; block < end.block; block += 1) length += blocks[block]?.length ?? 0;
  return { ...stretch, end: placeAt(stretch, Math.max(0, length - count)) };
}

/** Returns the place before the nth record of a stretch, or its end. */
function placeAt({ blocks, start, end }: Stretch, nth: number): Position {
  let index = start.index + nth;
  for (let block = start.block; block < end.block; block += 1) {
    const { length } = blocks[block] ?? [];
    if (index < length) return { block, index };
    index -= length;
  }
  return { block: end.block, index: Math.min(index, end.index) };
}

/** Yields the records of a stretch, `length` per step, without blocks that are passed over. */
export function* stepsThrough(
  { blocks, start, end }: Stretch,
  direction: Direction,
  length: number,
  isPassedOver: (block: Block) => boolean = () => false,
): Generator<Block> {
  const isForward = direction === 'forwards';
  const count = end.block - start.block + 1;
  for (let nth = 0; nth < count; nth += 1) {
    const number = isForward ? start.block + nth : end.block - nth;
    const records = blocks[number] ?? [];
    if (isPassedOver(records)) {
      yield [];
      continue;
    }
    const first = number === start.block ? start.index : 0;
    const last = number === end.block ? end.index : records.length;
    if (isForward) {
      for (let at = first; at < last; at += length) {
        yield records.slice(at, Math.min(at + length, last));
      }
    } else {
      for (let at = last; at > first; at -= length) {
        yield records.slice(Math.max(at - length, first), at).reverse();
      }
    }
  }
}

export const blockLengthMax = 1024;

/**
 * Records in an order, in blocks. Blocks are never changed, only replaced, so a view of them costs
 * nothing.
 */
export class SortedBlocks {
  readonly #compare: Compare;
  #blocks: Block[] = [];
  /** True if a view shares the array of the blocks. */
  #isShared = false;

  /** No two records may be equal by `compare`. */
  constructor(compare: Compare) {
    this.#compare = compare;
  }

  view(): readonly Block[] {
    this.#isShared = true;
    return this.#blocks;
  }

  append(block: Block): void {
    if (block.length > 0) this.#ownBlocks().push(block);
  }

  /** Replaces a record by its next revision; `undefined` stands for no record. */
  move(before: StoredRecord | undefined, after: StoredRecord | undefined): void {
    if (before !== undefined && after !== undefined && this.#compare(before, after) === 0) {
      return this.#splice(before, 1, after);
    }
    if (before !== undefined) this.#splice(before, 1);
    if (after !== undefined) this.#splice(after, 0, after);
  }

  /** Removes `removed` records at a record's place, and inserts others there. */
  #splice(place: StoredRecord, removed: 0 | 1, ...inserted: StoredRecord[]): void {
    const found = findPosition(this.#blocks, (record) => this.#compare(record, place) >= 0);
    // A record after all others belongs at the end of the last block.
    const number = Math.min(found.block, Math.max(this.#blocks.length - 1, 0));
    const block = this.#blocks[number] ?? [];
    const index = number === found.block ? found.index : block.length;
    this.#replace(number, block.toSpliced(index, removed, ...inserted));
  }

  /** Replaces a block. A block that is too long is split, and small neighbours are joined. */
  #replace(number: number, records: Block): void {
    const blocks = this.#ownBlocks();
    const half = blockLengthMax / 2;
    const previous = blocks[number - 1];
    const next = blocks[number + 1];
    if (records.length > blockLengthMax) {
      blocks.splice(number, 1, records.slice(0, half), records.slice(half));
    } else if (next !== undefined && records.length + next.length <= half) {
      blocks.splice(number, 2, [...records, ...next]);
    } else if (previous !== undefined && previous.length + records.length <= half) {
      blocks.splice(number - 1, 2, [...previous, ...records]);
    } else if (records.length === 0) {
      blocks.splice(number, 1);
    } else {
      blocks[number] = records;
    }
  }

  #ownBlocks(): Block[] {
    if (this.#isShared) this.#blocks = this.#blocks.slice();
    this.#isShared = false;
    return this.#blocks;
  }
}
