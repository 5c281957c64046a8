import { invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { storageFull, type Group } from './log.ts';
import type { Heap } from './memory/heap.ts';
import type { AnyTable } from './memory/table.ts';
import { TableTransaction, type Change } from './memory/transaction.ts';
import type { Transaction } from './store.ts';

/** One call of `write`. Its work may run several times before it is answered. */
export interface Write {
  readonly work: (transaction: Transaction) => unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
  /** The result or the error of the last run. */
  outcome: unknown;
  /** `resolve` or `reject`, depending on the last run. */
  answer: (outcome: unknown) => void;
  /** Whether the last run has changed anything. */
  changes: boolean;
}

/** The result of running several transactions, one after the other. */
export interface Batch extends Group {
  readonly writes: readonly Write[];
  readonly commits: string[];
  readonly changes: Change[];
}

/** How much memory the records may take. */
export interface Capacity {
  readonly heap: Heap;
  /** The most records of all ordinary collections together; `Infinity` for no bound. */
  readonly recordsMax: number;
}

/** Runs transactions on the published records and on the changes of those before them. */
export class Batches {
  /** True while the work of a transaction runs. */
  isDeciding = false;
  readonly #tables: ReadonlyMap<string, AnyTable>;
  readonly #capacity: Capacity;

  constructor(tables: ReadonlyMap<string, AnyTable>, capacity: Capacity) {
    this.#tables = tables;
    this.#capacity = capacity;
  }

  /**
   * Takes waiting writes, in order, until the batch is as large as it may be. Where the
   * log `isFull`, transactions that grow are refused.
   */
  decide(waiting: Write[], first: number, isFull: boolean): Batch {
    const commits: string[] = [];
    const changes: Change[] = [];
    let taken = 0;
    let bytes = 0;
    let room = this.#room;
    for (const write of waiting) {
      if (taken === limits.groupTransactionsMax) break;
      const transaction = new TableTransaction(first + commits.length);
      const isDone = this.#run(write, transaction, isFull, room);
      const { encoded } = transaction;
      const size = Buffer.byteLength(encoded);
      // A transaction that does not fit begins the next batch, and is run again there.
      const fits = bytes === 0 || bytes + size <= limits.groupBytesMax;
      if (transaction.changes.length > 0 && (!isDone || !fits)) this.#restore(changes);
      if (!fits) break;
      taken += 1;
      write.changes = isDone && transaction.changes.length > 0;
      if (!write.changes) continue;
      bytes += size;
      room -= transaction.added;
      commits.push(encoded);
      changes.push(...transaction.changes);
    }
    return { first, commits, changes, writes: waiting.splice(0, taken) };
  }

  /** Drops the changes of the batch from the tables. */
  clear(): void {
    for (const table of this.#tables.values()) table.batch.clear();
  }

  /** Returns false where the transaction is refused. Its changes must not stay then. */
  #run(write: Write, transaction: TableTransaction, isFull: boolean, room: number): boolean {
    this.isDeciding = true;
    try {
      write.outcome = write.work(transaction);
      const isSynchronous = !(write.outcome instanceof Promise);
      invariant(isSynchronous, 'the work of a transaction must not be asynchronous');
      if (isFull && transaction.grows) throw storageFull();
      if (transaction.grows) this.#checkMemory(transaction.added, room);
      write.answer = write.resolve;
      return true;
    } catch (error) {
      write.outcome = error;
      write.answer = write.reject;
      return false;
    } finally {
      this.isDeciding = false;
      transaction.isOpen = false;
    }
  }

  /** How many records may be added to those that are published. */
  get #room(): number {
    const ordinary = [...this.#tables.values()].filter(({ isOrdinary }) => isOrdinary);
    return ordinary.reduce((room, { size }) => room - size, this.#capacity.recordsMax);
  }

  /** @throws CairnError `storage_full` */
  #checkMemory(added: number, room: number): void {
    const { heap, recordsMax } = this.#capacity;
    if (heap.isFull) {
      throw storageFull(
        'the records fill the memory of the server: ' +
          'remove records, or give Node.js more memory by --max-old-space-size',
      );
    }
    if (added > 0 && added > room) {
      throw storageFull(`the server keeps at most ${recordsMax} records: remove some first`);
    }
  }

  /** Makes `changes` the only changes of the batch. Only refused transactions need this. */
  #restore(changes: readonly Change[]): void {
    this.clear();
    for (const { collection, id, record } of changes) collection.batch.put(id, record);
  }
}
