import type { StoredRecord, View } from './store.ts';

/** How many consecutive ids share a block. The first write to a block after a view copies it. */
const idsPerBlock = 1024;

interface Block<R> {
  /** By ascending id, without holes. */
  records: R[];
  /** Whether a view has `records`, too. */
  isShared: boolean;
}

/** Records by id, in blocks that a view shares and the next write copies. */
export class Blocks<R extends StoredRecord> {
  size = 0;
  /** By ascending ids, and none is empty. */
  #blocks = new Map<number, Block<R>>();
  /** What the last view has, until something is written. */
  #viewed: readonly (readonly R[])[] | undefined;

  get(id: number): R | undefined {
    const records = this.#blocks.get(blockKey(id))?.records;
    return records?.[position(records, id)];
  }

  put(record: R): void {
    const key = blockKey(record.id);
    const records = this.#writable(this.#blocks.get(key) ?? this.#begin(key));
    const index = position(records, record.id);
    if (index >= 0) {
      records[index] = record;
      return;
    }
    if (~index === records.length) records.push(record);
    else records.splice(~index, 0, record);
    this.size += 1;
  }

  remove(id: number): void {
    const key = blockKey(id);
    const block = this.#blocks.get(key);
    const index = block === undefined ? -1 : position(block.records, id);
    if (block === undefined || index < 0) return;
    this.#writable(block).splice(index, 1);
    if (block.records.length === 0) this.#blocks.delete(key);
    this.size -= 1;
  }

  latest(count: number): R[] {
    const latest: R[] = [];
    for (const { records } of [...this.#blocks.values()].reverse()) {
      if (latest.length === count) break;
      latest.push(...records.slice(latest.length - count).reverse());
    }
    return latest;
  }

  view(revision: number): View<R> {
    this.#viewed ??= [...this.#blocks.values()].map((block) => {
      block.isShared = true;
      return block.records;
    });
    return { size: this.size, revision, blocks: this.#viewed };
  }

  #begin(key: number): Block<R> {
    const block = { records: [], isShared: false };
    const isLast = [...this.#blocks.keys()].every((other) => other < key);
    this.#blocks.set(key, block);
    // Ids only ever grow; a repair alone may find the first ones last.
    if (!isLast) this.#blocks = new Map([...this.#blocks].sort(([a], [b]) => a - b));
    return block;
  }

  #writable(block: Block<R>): R[] {
    this.#viewed = undefined;
    if (block.isShared) block.records = block.records.slice();
    block.isShared = false;
    return block.records;
  }
}

function blockKey(id: number): number {
  return Math.floor(id / idsPerBlock);
}

/** The index of `id` in `records`, or the complement of where it would stand. */
function position(records: readonly StoredRecord[], id: number): number {
  if ((records.at(-1)?.id ?? 0) < id) return ~records.length;
  // No record stands further back than its distance from the first id, and in a block without gaps just there.
  let high = Math.min(id - (records[0]?.id ?? id), records.length - 1);
  if (records[high]?.id === id) return high;
  let low = 0;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = records[middle]?.id ?? Number.POSITIVE_INFINITY;
    if (found === id) return middle;
    if (found < id) low = middle + 1;
    else high = middle - 1;
  }
  return ~low;
}
