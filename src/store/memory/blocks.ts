import type { StoredRecord, View } from '../store.ts';

/** How many consecutive ids share a block. */
const idsPerBlock = 1024;

interface Block<R> {
  /** By the id's place in the block; holes where there is no record. */
  readonly slots: (R | undefined)[];
  /** How many records are in it. */
  count: number;
  /** The records without holes, as views have them; `undefined` after a change. */
  packed: readonly R[] | undefined;
}

/** Records by id, in blocks: a view packs those that have changed since the last one, and shares the others with it. */
export class Blocks<R extends StoredRecord> {
  size = 0;
  /** By ascending number, and none is empty. */
  #blocks = new Map<number, Block<R>>();
  /** What the last view has, until something is written. */
  #viewed: readonly (readonly R[])[] | undefined;

  get(id: number): R | undefined {
    return this.#blocks.get(Math.floor(id / idsPerBlock))?.slots[id % idsPerBlock];
  }

  /** Puts a record, or removes it where there is none. */
  set(id: number, record: R | undefined): void {
    const number = Math.floor(id / idsPerBlock);
    const block = this.#blocks.get(number) ?? this.#begin(number);
    const before = block.slots[id % idsPerBlock];
    const change = (record === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
    block.slots[id % idsPerBlock] = record;
    block.packed = undefined;
    block.count += change;
    this.size += change;
    this.#viewed = undefined;
    if (block.count === 0) this.#blocks.delete(number);
  }

  latest(count: number): R[] {
    const latest: R[] = [];
    for (const block of [...this.#blocks.values()].reverse()) {
      if (latest.length === count) break;
      latest.push(...pack(block).slice(latest.length - count).reverse());
    }
    return latest;
  }

  view(revision: number): View<R> {
    this.#viewed ??= Array.from(this.#blocks.values(), pack);
    return { size: this.size, revision, blocks: this.#viewed };
  }

  #begin(number: number): Block<R> {
    const block = { slots: new Array<R | undefined>(idsPerBlock), count: 0, packed: undefined };
    const isLast = [...this.#blocks.keys()].every((other) => other < number);
    this.#blocks.set(number, block);
    // Ids only ever grow; a repair alone may find the first ones last.
    if (!isLast) this.#blocks = new Map([...this.#blocks].sort(([a], [b]) => a - b));
    return block;
  }
}

function pack<R>(block: Block<R>): readonly R[] {
  return (block.packed ??= block.slots.filter((record) => record !== undefined));
}
