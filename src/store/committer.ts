import { CairnError } from '../base/errors.ts';
import { invariant } from '../base/invariant.ts';
import { limits } from '../base/limits.ts';
import type { BetweenGroups, Journal } from './journal.ts';
import type { Transaction } from './store.ts';
import type { AnyTable } from './table.ts';
import { PendingTransaction } from './transaction.ts';

/** Transactions that become durable together. */
interface Group {
  readonly transactions: PendingTransaction[];
  readonly waiting: Waiting[];
  bytes: number;
}

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface CommitterEvents {
  /** Nothing more is written: a sync or the undoing of a write failed, or the lock is lost. */
  onFailure(error: unknown): void;
  /** The disk is full; until it is not, only transactions that remove are tried. */
  onFull(): void;
  /** Whether there is room again. Asked before a write while the disk is full. */
  hasRoom(): Promise<boolean>;
  /** A group is durable and published. */
  onCommit(): void;
}

/**
 * The single writer. A transaction runs at once, against what is committed and pending, and joins the group that
 * gathers; while one group is in flight the next one gathers. A group is published when it is durable, and only then
 * are its callers answered.
 */
export class Committer {
  readonly #journal: Journal;
  readonly #tables: ReadonlyMap<string, AnyTable>;
  readonly #events: CommitterEvents;
  /** The groups that gather, in order; only the last one takes more. */
  #gathering: Group[] = [];
  /** A group is being written, or work is done between two groups. */
  #busy = false;
  #inFlight: Group | undefined;
  #scheduled = false;
  readonly #between: (() => Promise<void>)[] = [];
  /** Of the last transaction that ran; it may still be pending. */
  #sequence = 0;
  #pending = 0;
  #pendingBytes = 0;
  #full = false;
  #stopped: (() => CairnError) | undefined;
  #failed = false;
  /** When the last write of those that wait has been answered. */
  #drained: (() => void)[] = [];
  groups = 0;
  commits = 0;

  constructor(journal: Journal, tables: ReadonlyMap<string, AnyTable>, events: CommitterEvents) {
    this.#journal = journal;
    this.#tables = tables;
    this.#events = events;
  }

  /** Of the last commit that is durable and published. */
  sequence = 0;

  get full(): boolean {
    return this.#full;
  }

  /** Where to go on after a start. */
  begin(sequence: number): void {
    this.sequence = sequence;
    this.#sequence = sequence;
  }

  /** See `Store.write`. */
  async write<T>(work: (transaction: Transaction) => T): Promise<T> {
    if (this.#full && !this.#stopped && (await this.#events.hasRoom())) this.#full = false;
    if (this.#stopped !== undefined) throw this.#stopped();
    if (this.#pending >= limits.pendingTransactionsMax || this.#pendingBytes >= limits.pendingBytesMax) {
      throw new CairnError('overloaded', 'Cannot write: too many writes are waiting', { retryAfterSeconds: 1 });
    }
    const transaction = new PendingTransaction(this.#sequence + 1);
    let result: T;
    try {
      result = work(transaction);
      invariant(!(result instanceof Promise), 'the work of a transaction must not be asynchronous');
      if (this.#full && transaction.changes > 0 && !transaction.shrinks) throw storageFull();
    } catch (error) {
      transaction.undo();
      throw error;
    } finally {
      transaction.end();
    }
    await this.#durable(transaction);
    return result;
  }

  /** Runs `work` while no group is in flight. */
  between: BetweenGroups = (work) =>
    new Promise((resolve, reject) => {
      this.#between.push(() => work().then(resolve, reject));
      this.#schedule();
    });

  /** Refuses what comes from now on, and resolves when everything that waits has been answered. */
  stop(refusal: () => CairnError): Promise<void> {
    this.#stopped ??= refusal;
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#schedule();
    });
  }

  /** Nothing may be written any more: everything pending is answered with `outcome_unknown`. Only the first counts. */
  fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#stopped = () => new CairnError('store_failed', 'Cannot write: the store has stopped after a failure');
    const unknown = new CairnError(
      'outcome_unknown',
      'Cannot tell whether this was written: the disk failed. Read before you retry',
      { cause: error },
    );
    this.#rejectAll(unknown);
    this.#events.onFailure(error);
  }

  #durable(transaction: PendingTransaction): Promise<void> {
    if (transaction.changes === 0) {
      // It may have seen what is pending: it waits for it, and shares its fate.
      const seen = this.#gathering.at(-1) ?? this.#inFlight;
      if (seen === undefined) return Promise.resolve();
      return new Promise((resolve, reject) => seen.waiting.push({ resolve, reject }));
    }
    this.#sequence += 1;
    const bytes = transaction.encoded.length;
    let group = this.#gathering.at(-1);
    if (
      group === undefined ||
      group.transactions.length >= limits.groupTransactionsMax ||
      group.bytes + bytes > limits.groupBytesMax
    ) {
      group = { transactions: [], waiting: [], bytes: 0 };
      this.#gathering.push(group);
    }
    group.transactions.push(transaction);
    group.bytes += bytes;
    this.#pending += 1;
    this.#pendingBytes += bytes;
    const { waiting } = group;
    this.#schedule();
    return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  }

  /** Starts the next group at the end of this turn of the loop, so that the requests of one turn share it. */
  #schedule(): void {
    if (this.#busy || this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#busy) return;
    const between = this.#between.shift();
    if (between !== undefined) {
      this.#busy = true;
      void between().then(() => {
        this.#busy = false;
        this.#next();
      });
      return;
    }
    const group = this.#gathering.shift();
    if (group === undefined) {
      for (const resolve of this.#drained.splice(0)) resolve();
      return;
    }
    this.#busy = true;
    this.#inFlight = group;
    const commits = group.transactions.map((transaction) => `${transaction.encoded}]`);
    this.#journal.append(this.sequence + 1, commits).then(
      () => {
        if (this.#inFlight === group) return this.#commit(group);
        // Something else failed meanwhile, and these callers have been told that the outcome is unknown.
        this.#busy = false;
        this.#next();
      },
      (error: unknown) => {
        this.#refuse(error);
      },
    );
  }

  #commit(group: Group): void {
    for (const transaction of group.transactions) transaction.publish();
    this.sequence += group.transactions.length;
    this.commits += group.transactions.length;
    this.groups += 1;
    this.#pending -= group.transactions.length;
    this.#pendingBytes -= group.bytes;
    this.#inFlight = undefined;
    this.#busy = false;
    this.#events.onCommit();
    // The disk goes on while the callers are answered.
    this.#next();
    for (const { resolve } of group.waiting) resolve();
  }

  #refuse(error: unknown): void {
    if (!(error instanceof CairnError) || error.code !== 'storage_full') {
      this.fail(error);
    } else {
      const known = this.#full;
      this.#full = true;
      this.#rejectAll(error);
      if (!known) this.#events.onFull();
    }
    this.#busy = false;
    this.#next();
  }

  /** Fails what is in flight and everything that was decided upon it. */
  #rejectAll(error: CairnError): void {
    const groups = this.#inFlight === undefined ? this.#gathering : [this.#inFlight, ...this.#gathering];
    this.#gathering = [];
    this.#inFlight = undefined;
    this.#sequence = this.sequence;
    this.#pending = 0;
    this.#pendingBytes = 0;
    for (const table of this.#tables.values()) table.dropPending();
    for (const group of groups) for (const { reject } of group.waiting) reject(error);
  }
}

function storageFull(): CairnError {
  return new CairnError('storage_full', 'Cannot write: the disk has no room left');
}
