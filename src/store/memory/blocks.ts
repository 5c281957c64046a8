import type { StoredRecord } from '../store.ts';

const idsPerBlock = 1024;

/** The memory of a block: a pointer for each id, and little more. */
const blockBytes = 8 * idsPerBlock + 512;

interface Block<R> {
  /** By the id's position in the block. */
  readonly slots: (R | undefined)[];
  /** The block is dropped at 0. */
  count: number;
  /** The records without gaps, for views; `undefined` after a change. */
  packed: readonly R[] | undefined;
}

/**
 * Records by id, in blocks. A view packs the blocks that have changed since the last view, and
 * shares the others with it.
 */
export class Blocks<R extends StoredRecord> {
  size = 0;
  readonly #blocks = new Map<number, Block<R>>();
  /** Blocks by ascending id; `undefined` after one was added or removed. */
  #sorted: readonly Block<R>[] | undefined;
  #view: readonly (readonly R[])[] | undefined;
  readonly #sum: { bytes: number };

  /** `sum` counts the memory of the blocks. A few records with ids far apart need many. */
  constructor(sum: { bytes: number }) {
    this.#sum = sum;
  }

  get(id: number): R | undefined {
    return this.#blocks.get(Math.floor(id / idsPerBlock))?.slots[id % idsPerBlock];
  }

  set(id: number, record: R | undefined): void {
    const number = Math.floor(id / idsPerBlock);
    let block = this.#blocks.get(number);
    if (block === undefined) {
      block = { slots: new Array<R | undefined>(idsPerBlock), count: 0, packed: undefined };
      this.#blocks.set(number, block);
      this.#sum.bytes += blockBytes;
      this.#sorted = undefined;
    }
    const slot = id % idsPerBlock;
    const added = Number(record !== undefined) - Number(block.slots[slot] !== undefined);
    this.size += added;
    block.count += added;
    block.slots[slot] = record;
    block.packed = undefined;
    this.#view = undefined;
    if (block.count > 0) return;
    this.#blocks.delete(number);
    this.#sum.bytes -= blockBytes;
    this.#sorted = undefined;
  }

  /** By ascending id. No block is empty. */
  view(): readonly (readonly R[])[] {
    const byNumber = () => [...this.#blocks].sort(([a], [b]) => a - b).map(([, block]) => block);
    this.#sorted ??= byNumber();
    return (this.#view ??= this.#sorted.map((block) => (block.packed ??= pack(block))));
  }

  latest(count: number): R[] {
    const latest: R[] = [];
    for (const block of this.view().toReversed()) {
      if (latest.length === count) break;
      latest.push(...block.slice(latest.length - count).reverse());
    }
    return latest;
  }
}

function pack<R>({ slots }: Block<R>): readonly R[] {
  const packed: R[] = [];
  for (const record of slots) if (record !== undefined) packed.push(record);
  return packed;
}
