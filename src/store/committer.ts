import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { BetweenGroups, Journal } from './journal.ts';
import type { Transaction } from './store.ts';
import type { AnyTable, Change } from './table.ts';
import { PendingTransaction } from './transaction.ts';

/** Commits that become durable together. */
interface Group {
  readonly commits: string[];
  readonly changes: Change[];
  readonly waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void }[];
  bytes: number;
}

export interface CommitterParts {
  readonly journal: Journal;
  readonly tables: ReadonlyMap<string, AnyTable>;
  /** Nothing more is written: a sync or the undoing of a write failed, or the lock is lost. */
  onFailure(error: unknown): void;
  /** The disk has refused a group: it has become full, or was full already. */
  onFull(): void;
  /** A group is durable and published. */
  onCommit(): void;
}

/**
 * The single writer. A transaction runs at once, against what is committed and pending, and joins the group that
 * gathers; while one group is in flight the next one gathers. A group is published when it is durable, and only then
 * are its callers answered.
 */
export class Committer {
  readonly #parts: CommitterParts;
  /** The groups that gather, in order; only the last one takes more. */
  #gathering: Group[] = [];
  #inFlight: Group | undefined;
  #running = false;
  readonly #between: (() => Promise<void>)[] = [];
  /** Of the last transaction that ran; it may still be pending. */
  #sequence = 0;
  #pendingBytes = 0;
  #stopped: (() => CairnError) | undefined;
  /** By transactions that do not remove, since the disk is full. */
  #spent = 0;
  /** While the work of a transaction runs. */
  #deciding = false;
  /** Called when nothing waits any more. */
  #drained = (): void => undefined;
  /** Of the last commit that is durable and published. */
  sequence = 0;
  groups = 0;
  commits = 0;
  /** The disk is full; until it is not, only transactions that remove are tried. */
  full = false;
  /** Nothing is written any more. */
  failed = false;

  constructor(parts: CommitterParts) {
    this.#parts = parts;
  }

  /** Where to go on after a start. */
  begin(sequence: number): void {
    this.sequence = sequence;
    this.#sequence = sequence;
    this.#layAnew();
  }

  /** See `Store.write`. */
  write<T>(work: (transaction: Transaction) => T): Promise<T> {
    // What is thrown in here rejects the promise; there is one, since every write pays for it.
    return new Promise((resolve, reject) => {
      if (this.#stopped !== undefined) throw this.#stopped();
      invariant(!this.#deciding, 'a write is begun inside the work of another');
      const pending = this.#sequence - this.sequence;
      if (pending >= limits.pendingTransactionsMax || this.#pendingBytes >= limits.pendingBytesMax) {
        throw new CairnError('overloaded', 'Cannot write: too many writes are waiting', { retryAfterSeconds: 1 });
      }
      const transaction = new PendingTransaction(this.#sequence + 1);
      const result = this.#decide(transaction, work);
      // Without changes of its own it may have seen what is pending: it waits for it, and shares its fate.
      const changes = transaction.changes.length > 0;
      const group = changes ? this.#join(transaction) : (this.#gathering.at(-1) ?? this.#inFlight);
      if (group === undefined) resolve(result);
      else group.waiting.push({ resolve: () => resolve(result), reject });
    });
  }

  /** Runs `work` while no group is in flight. */
  between: BetweenGroups = (work) =>
    new Promise((resolve, reject) => {
      this.#between.push(() => work().then(resolve, reject));
      this.#schedule();
    });

  /** Refuses what comes from now on, and resolves when everything that waits has been answered. */
  stop(): Promise<void> {
    this.#stopped ??= () => new CairnError('draining', 'Cannot write: the server is stopping');
    return new Promise((resolve) => {
      this.#drained = resolve;
      this.#schedule();
    });
  }

  /** Nothing may be written any more: everything pending is answered with `outcome_unknown`. Only the first counts. */
  fail(error: unknown): void {
    if (this.failed) return;
    this.failed = true;
    this.#stopped = () => new CairnError('store_failed', 'Cannot write: the store has stopped after a failure');
    const unknown = new CairnError(
      'outcome_unknown',
      'Cannot tell whether this was written: the disk failed. Read before you retry',
      { cause: error },
    );
    this.#rejectAll(unknown);
    this.#parts.onFailure(error);
  }

  #decide<T>(transaction: PendingTransaction, work: (transaction: Transaction) => T): T {
    const { changes } = transaction;
    this.#deciding = true;
    try {
      const result = work(transaction);
      invariant(!(result instanceof Promise), 'the work of a transaction must not be asynchronous');
      if (!this.full || changes.length === 0 || this.#takesWhenFull(transaction)) return result;
      throw new CairnError('storage_full', 'Cannot write: the disk has no room left');
    } catch (error) {
      if (changes.length > 0) this.#layAnew();
      throw error;
    } finally {
      this.#deciding = false;
      transaction.isOpen = false;
    }
  }

  /** Whether it may use the reserve, of which most is left to what removes records and inserts none. */
  #takesWhenFull({ inserts, removes, whenFull, encoded }: PendingTransaction): boolean {
    if (removes && !inserts) return true;
    if (whenFull) this.#spent += encoded.length;
    return whenFull && this.#spent <= limits.whenFullBytesMax;
  }

  /** Makes the pending state of every collection that of the groups alone: seldom, and so without a trail of undos. */
  #layAnew(): void {
    for (const { pending } of this.#parts.tables.values()) pending.clear();
    for (const { changes } of this.#unpublished) for (const change of changes) change.pending.lay(change);
  }

  get #unpublished(): Group[] {
    return this.#inFlight === undefined ? this.#gathering : [this.#inFlight, ...this.#gathering];
  }

  #join({ encoded, changes }: PendingTransaction): Group {
    let group = this.#gathering.at(-1);
    if (
      group === undefined ||
      group.commits.length >= limits.groupTransactionsMax ||
      group.bytes + encoded.length > limits.groupBytesMax
    ) {
      group = { commits: [], changes: [], waiting: [], bytes: 0 };
      this.#gathering.push(group);
    }
    group.commits.push(`${encoded}]`);
    for (const change of changes) group.changes.push(change);
    group.bytes += encoded.length;
    this.#sequence += 1;
    this.#pendingBytes += encoded.length;
    this.#schedule();
    return group;
  }

  /** Begins at the end of this turn of the loop, so that the requests of one turn share a group. */
  #schedule(): void {
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    for (;;) {
      const between = this.#between.shift();
      if (between !== undefined) {
        await between();
        continue;
      }
      const group = this.#gathering.shift();
      if (group === undefined) break;
      this.#inFlight = group;
      try {
        await this.#parts.journal.append(this.sequence + 1, group.commits);
        // Something else may have failed meanwhile; then these callers know that the outcome is unknown.
        if (this.#inFlight === group) this.#commit(group);
      } catch (error) {
        this.#refuse(error);
      }
    }
    this.#running = false;
    this.#drained();
  }

  /** The callers go on when the disk has the next group. */
  #commit({ changes, commits, bytes, waiting }: Group): void {
    for (const change of changes) change.pending.publish(change);
    this.sequence += commits.length;
    this.commits += commits.length;
    this.groups += 1;
    this.#pendingBytes -= bytes;
    this.#inFlight = undefined;
    this.#parts.onCommit();
    for (const { resolve } of waiting) resolve();
  }

  #refuse(error: unknown): void {
    if (!(error instanceof CairnError) || error.code !== 'storage_full') return this.fail(error);
    this.#rejectAll(error);
    if (!this.full) this.#spent = 0;
    this.#parts.onFull();
    this.full = true;
  }

  /** Fails what is in flight and everything that was decided upon it. */
  #rejectAll(error: CairnError): void {
    const groups = this.#unpublished;
    this.#gathering = [];
    this.#inFlight = undefined;
    this.#sequence = this.sequence;
    this.#pendingBytes = 0;
    this.#layAnew();
    for (const group of groups) for (const { reject } of group.waiting) reject(error);
  }
}
