import { oldGenerationBytes } from '../base/heap.ts';
import { limits } from '../base/limits.ts';
import type { YieldToEventLoop } from '../base/turns.ts';
import type { ChangeListener, Collection, StoredRecord } from '../store/store.ts';
import { sorted, type Block, type Compare, type OrderTerm } from './order.ts';
import { SortedBlocks, stepsThrough, toStretch } from './sorted-blocks.ts';

/** The memory of a record in an order: a pointer, in blocks that are not always full. */
const bytesPerRecord = 12;

const askedMax = 64;

/**
 * Orders in which records are kept, so that binary search finds a page. The second list in an order
 * builds it in the background, and each commit moves its records. An order is dropped when others
 * were used later, or when more records have moved since its last use than rebuilding it would
 * move.
 */
export class KeptOrders {
  readonly #pause: YieldToEventLoop;
  /** Ordered by their last use. */
  readonly #kept = new Map<string, KeptOrder>();
  readonly #asked = new Set<string>();
  #making: Promise<void> | undefined;

  constructor(pause: YieldToEventLoop) {
    this.#pause = pause;
  }

  /** The records in an order at this moment; `undefined` if the order is not kept. */
  find(
    records: Collection<StoredRecord>,
    sort: readonly OrderTerm[],
    compare: Compare,
  ): readonly Block[] | undefined {
    const terms = sort.map(({ name, descending }) => `${descending ? '-' : ''}${name}`);
    const key = `${records.name} ${terms.join()}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept.use();
    }
    if (this.#making === undefined && this.#asked.delete(key)) {
      this.#making = this.#make(key, records, compare).finally(() => (this.#making = undefined));
    } else {
      this.#asked.add(key);
      const [oldest = key] = this.#asked;
      if (this.#asked.size > askedMax) this.#asked.delete(oldest);
    }
    return undefined;
  }

  async settled(): Promise<void> {
    await this.#making;
  }

  async #make(key: string, records: Collection<StoredRecord>, compare: Compare): Promise<void> {
    const bytesMax = oldGenerationBytes() * limits.keptOrdersHeapShareMax;
    const room = bytesMax / bytesPerRecord - records.size;
    if (room < 0) return;
    this.#drop(({ collection }) => collection === records.name, limits.keptOrdersMax - 1);
    while (this.#size > room) this.#drop(() => true, this.#kept.size - 1);
    const order = new KeptOrder(records, compare, () => this.#kept.delete(key));
    this.#kept.set(key, order);
    await order.make(this.#pause);
  }

  get #size(): number {
    return [...this.#kept.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Drops the least recently used orders, except `count` of them. */
  #drop(isConcerned: (order: KeptOrder) => boolean, count: number): void {
    const concerned = [...this.#kept.values()].filter(isConcerned);
    for (const order of concerned.slice(0, Math.max(concerned.length - count, 0))) order.drop();
  }
}

class KeptOrder {
  readonly collection: string;
  readonly drop: () => void;
  readonly #records: Collection<StoredRecord>;
  readonly #compare: Compare;
  readonly #sorted: SortedBlocks;
  /** The changes since the build began; `undefined` once it is complete. */
  #waiting: Parameters<ChangeListener<StoredRecord>>[] | undefined = [];
  #isDropped = false;
  #movesSinceUse = 0;

  constructor(records: Collection<StoredRecord>, compare: Compare, onDropped: () => void) {
    this.collection = records.name;
    this.#records = records;
    this.#compare = compare;
    this.#sorted = new SortedBlocks(compare);
    const unfollow = records.follow((before, after) => this.#move(before, after));
    this.drop = () => {
      this.#isDropped = true;
      unfollow();
      onDropped();
    };
  }

  get size(): number {
    return this.#records.size;
  }

  /** The records at this moment; `undefined` while the order is being built. */
  use(): readonly Block[] | undefined {
    this.#movesSinceUse = 0;
    return this.#waiting === undefined ? this.#sorted.view() : undefined;
  }

  /** Sorts the records, then applies the changes that arrived meanwhile. */
  async make(pause: YieldToEventLoop): Promise<void> {
    const all = stepsThrough(toStretch(this.#records.view().blocks), 'forwards', stepLength);
    for (const block of sorted(all, this.#compare)) {
      this.#sorted.append(block);
      await pause();
      if (this.#isDropped) return;
    }
    // More may arrive in each pause.
    for (const [before, after] of this.#waiting ?? []) {
      this.#sorted.move(before, after);
      await pause();
    }
    this.#waiting = undefined;
  }

  #move(before: StoredRecord | undefined, after: StoredRecord | undefined): void {
    if (this.#waiting === undefined) this.#sorted.move(before, after);
    else this.#waiting.push([before, after]);
    this.#movesSinceUse += 1;
    if (this.#movesSinceUse > this.size + stepLength) this.drop();
  }
}

const stepLength = 1024;
