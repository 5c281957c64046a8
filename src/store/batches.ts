import { invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { storageFull, type Group } from './log.ts';
import type { Capacity } from './memory/capacity.ts';
import type { AnyTable } from './memory/table.ts';
import { TableTransaction, type Change } from './memory/transaction.ts';
import type { Transaction } from './store.ts';

/** One call of `write`. Its work may run several times before it is answered. */
export interface Write {
  readonly work: (transaction: Transaction) => unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
  /** What the last run of the work returned or threw, and which of the two above takes it. */
  outcome: unknown;
  answer: (outcome: unknown) => void;
  /** Whether the last run has changed anything. */
  changes: boolean;
}

/** What one run of several transactions, one after the other, has decided. */
export interface Batch extends Group {
  readonly writes: readonly Write[];
  readonly commits: string[];
  readonly changes: Change[];
}

/** Runs transactions one after the other, each on the published records and on what those before it have changed. */
export class Batches {
  /** While the work of a transaction runs. */
  isDeciding = false;
  readonly #tables: ReadonlyMap<string, AnyTable>;
  readonly #capacity: Capacity;

  constructor(tables: ReadonlyMap<string, AnyTable>, capacity: Capacity) {
    this.#tables = tables;
    this.#capacity = capacity;
  }

  /** Takes what waits, in order, until the batch has its fill. Where the log `isFull`, what grows is refused. */
  decide(waiting: Write[], first: number, isFull: boolean): Batch {
    const commits: string[] = [];
    const changes: Change[] = [];
    let taken = 0;
    let bytes = 0;
    let { room } = this.#capacity;
    for (const write of waiting) {
      if (taken === limits.groupTransactionsMax) break;
      const transaction = new TableTransaction(first + commits.length);
      const isDone = this.#run(write, transaction, isFull, room);
      const { encoded } = transaction;
      const size = Buffer.byteLength(encoded);
      // One that does not fit begins the next batch, and is run again there.
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

  /**
   * Returns false where the transaction is refused: then what it has changed must not stay. `room` is how many records
   * it may add.
   */
  #run(write: Write, transaction: TableTransaction, isFull: boolean, room: number): boolean {
    this.isDeciding = true;
    try {
      write.outcome = write.work(transaction);
      invariant(!(write.outcome instanceof Promise), 'the work of a transaction must not be asynchronous');
      if (isFull && transaction.grows) throw storageFull();
      if (transaction.grows) this.#capacity.check(transaction, room);
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

  /** Makes `changes` all that the batch has decided. That is seldom needed, and so costs no transaction anything. */
  #restore(changes: readonly Change[]): void {
    this.clear();
    for (const { collection, id, record } of changes) collection.batch.put(id, record);
  }

  /** Forgets what the batch has decided. */
  clear(): void {
    for (const table of this.#tables.values()) table.batch.clear();
  }
}
