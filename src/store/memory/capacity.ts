import { CairnError } from '../../base/errors.ts';
import type { Heap } from './heap.ts';
import type { AnyTable } from './table.ts';
import type { TableTransaction } from './transaction.ts';

/** What the records may take of the memory. */
export class Capacity {
  readonly #tables: ReadonlyMap<string, AnyTable>;
  readonly #heap: Heap;
  readonly #recordsMax: number;

  /** `recordsMax` bounds the records of all ordinary collections together. */
  constructor(tables: ReadonlyMap<string, AnyTable>, heap: Heap, recordsMax: number) {
    this.#tables = tables;
    this.#heap = heap;
    this.#recordsMax = recordsMax;
  }

  /** How many records may be added to what is published. */
  get room(): number {
    const ordinary = [...this.#tables.values()].filter(({ isOrdinary }) => isOrdinary);
    return ordinary.reduce((room, { size }) => room - size, this.#recordsMax);
  }

  /** @throws CairnError `storage_full` for a transaction that grows and does not fit into `room` or the memory */
  check({ added }: TableTransaction, room: number): void {
    if (this.#heap.isFull) {
      const remedy = 'remove records, or give Node.js more memory by --max-old-space-size';
      throw new CairnError('storage_full', `Cannot write: the records fill the memory of the server: ${remedy}`);
    }
    if (added > 0 && added > room) {
      const message = `Cannot write: the server keeps at most ${this.#recordsMax} records: remove some first`;
      throw new CairnError('storage_full', message);
    }
  }
}
