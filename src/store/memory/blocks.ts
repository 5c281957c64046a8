import type { StoredRecord } from '../store.ts';

/** How many consecutive ids share a block. */
const idsPerBlock = 1024;

interface Block<R> {
  /** By the id's place in the block; `undefined` where there is no record. */
  readonly slots: (R | undefined)[];
  /** The records without gaps, for views; `undefined` after a change. */
  packed: readonly R[] | undefined;
}

/**
 * Records by id, in blocks. A view packs the blocks that have changed since the last
 * view, and shares the others with it.
 */
export class Blocks<R extends StoredRecord> {
  size = 0;
  readonly #blocks = new Map<number, Block<R>>();
  /** The last view, until the next change. */
  #view: readonly (readonly R[])[] | undefined;

  get(id: number): R | undefined {
    return this.#blocks.get(Math.floor(id / idsPerBlock))?.slots[id % idsPerBlock];
  }

  /** Puts a record, or removes it where `record` is `undefined`. */
  set(id: number, record: R | undefined): void {
    const number = Math.floor(id / idsPerBlock);
    let block = this.#blocks.get(number);
    if (block === undefined) {
      block = { slots: new Array<R | undefined>(idsPerBlock), packed: undefined };
      this.#blocks.set(number, block);
    }
    const slot = id % idsPerBlock;
    if (block.slots[slot] !== undefined) this.size -= 1;
    if (record !== undefined) this.size += 1;
    block.slots[slot] = record;
    block.packed = undefined;
    this.#view = undefined;
  }

  /** All records, by ascending id, in blocks that are not empty. */
  view(): readonly (readonly R[])[] {
    return (this.#view ??= this.#pack());
  }

  /** The newest records, the one with the highest id first. */
  latest(count: number): R[] {
    const latest: R[] = [];
    for (const block of this.view().toReversed()) {
      if (latest.length === count) break;
      latest.push(...block.slice(latest.length - count).reverse());
    }
    return latest;
  }

  /** Packs what has changed, and drops the blocks that have become empty. */
  #pack(): (readonly R[])[] {
    const packed: (readonly R[])[] = [];
    for (const number of [...this.#blocks.keys()].sort((a, b) => a - b)) {
      const block = this.#blocks.get(number);
      if (block === undefined) continue;
      block.packed ??= block.slots.filter((record) => record !== undefined);
      if (block.packed.length > 0) packed.push(block.packed);
      else this.#blocks.delete(number);
    }
    return packed;
  }
}
