import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { BetweenGroups, Journal, JournalOptions } from './journal.ts';
import type { StoreStatus, Transaction } from './store.ts';
import { countsOf, type AnyTable } from './table.ts';
import { PendingTransaction } from './transaction.ts';

/** Commits that become durable together. */
interface Group {
  readonly commits: string[];
  readonly writes: Write[];
  bytes: number;
}

interface Write extends Pick<PendingTransaction, 'changes'> {
  readonly result: unknown;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export interface CommitterParts extends Pick<JournalOptions, 'clock' | 'onNotice'> {
  readonly journal: Journal;
  readonly tables: ReadonlyMap<string, AnyTable>;
  /** Of the last commit that is in the tables. */
  readonly sequence: number;
  /** Nothing more is written: a sync or the undoing of a write failed, or the lock is lost. */
  readonly onFailure: (error: unknown) => void;
}

/** How often a full disk is asked again, at most, and how often a checkpoint is tried to make room on it. */
const roomCheckMs = 1000;
const roomCheckpointMs = 30_000;

/**
 * The single writer. A transaction runs at once, against what is committed and pending, and joins the group that
 * gathers; while one group is in flight the next one gathers. A group is published when it is durable, and only then
 * are its callers answered. Checkpoints come between two groups.
 */
export class Committer {
  readonly #parts: CommitterParts;
  /** The groups that gather, in order; only the last one takes more. */
  #gathering: Group[] = [];
  #inFlight: Group | undefined;
  #running = false;
  readonly #between: (() => Promise<void>)[] = [];
  /** Of the last transaction that ran; it may still be pending. */
  #sequence: number;
  #pendingBytes = 0;
  #stopped: (() => CairnError) | undefined;
  /** By transactions that do not remove, since the disk is full. */
  #spent = 0;
  /** While the work of a transaction runs. */
  #deciding = false;
  /** Called when nothing waits any more. */
  #drained = (): void => undefined;
  /** Of the last commit that is durable and published. */
  #published: number;
  #groups = 0;
  #commits = 0;
  /** The disk is full; until it is not, only transactions that remove are tried. */
  #full = false;
  #askedForRoom = 0;
  #madeRoom = 0;
  /** The last commit when the disk refused something: until another one, a checkpoint would fail again. */
  #refusedAt = 0;
  /** Nothing is written any more. */
  #failed = false;
  #checkpointing: Promise<void> | undefined;

  constructor(parts: CommitterParts) {
    this.#parts = parts;
    this.#published = parts.sequence;
    this.#sequence = parts.sequence;
    this.#layAnew();
  }

  write<T>(work: (transaction: Transaction) => T): Promise<T> {
    return this.#full ? this.#askForRoom().then(() => this.#write(work)) : this.#write(work);
  }

  async checkpoint(): Promise<void> {
    this.#checkpointing ??= this.#parts.journal.checkpoint(this.#runBetween).finally(() => {
      this.#checkpointing = undefined;
    });
    try {
      await this.#checkpointing;
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  /** Refuses what comes from now on, and ends when everything that waits has been answered and is in the snapshots. */
  async close(): Promise<void> {
    this.#stopped ??= () => new CairnError('draining', 'Cannot write: the server is stopping');
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
      this.#schedule();
    });
    await this.#checkpointing?.catch(() => undefined);
    if (!this.#failed) await this.checkpoint().catch(() => undefined);
    await this.#parts.journal.close(!this.#failed);
  }

  status(): StoreStatus {
    // Who asks whether it is ready may keep all writes away until it is.
    if (this.#full) void this.#askForRoom();
    return {
      state: this.#failed ? 'failed' : this.#full ? 'full' : 'writable',
      sequence: this.#published,
      groups: this.#groups,
      commits: this.#commits,
      collections: countsOf(this.#parts.tables),
      ...this.#parts.journal.status(),
    };
  }

  #write<T>(work: (transaction: Transaction) => T): Promise<T> {
    // What is thrown in here rejects the promise; there is one, since every write pays for it.
    return new Promise((resolve, reject) => {
      if (this.#stopped !== undefined) throw this.#stopped();
      invariant(!this.#deciding, 'a write is begun inside the work of another');
      const pending = this.#sequence - this.#published;
      if (pending >= limits.pendingTransactionsMax || this.#pendingBytes >= limits.pendingBytesMax) {
        throw new CairnError('overloaded', 'Cannot write: too many writes are waiting', { retryAfterSeconds: 1 });
      }
      const transaction = new PendingTransaction(this.#sequence + 1);
      const result = this.#decide(transaction, work);
      // Without changes of its own it may have seen what is pending: it waits for it, and shares its fate.
      const { changes } = transaction;
      const group = changes.length > 0 ? this.#join(transaction) : (this.#gathering.at(-1) ?? this.#inFlight);
      if (group === undefined) resolve(result);
      else group.writes.push({ changes, result, resolve, reject });
    });
  }

  /** Runs `work` while no group is in flight. */
  readonly #runBetween: BetweenGroups = (work) =>
    new Promise((resolve, reject) => {
      this.#between.push(() => work().then(resolve, reject));
      this.#schedule();
    });

  /** Nothing may be written any more: everything pending is answered with `outcome_unknown`. Only the first counts. */
  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
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
      if (!this.#full || changes.length === 0 || this.#takesWhenFull(transaction)) return result;
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
    if (whenFull) this.#spent += Buffer.byteLength(encoded);
    return whenFull && this.#spent <= limits.whenFullBytesMax;
  }

  /** Makes the pending state of every collection that of the groups alone: seldom, and so without a trail of undos. */
  #layAnew(): void {
    for (const { pending } of this.#parts.tables.values()) pending.clear();
    for (const { changes } of this.#unpublished) for (const change of changes) change.pending.lay(change);
  }

  get #unpublished(): Write[] {
    return [this.#inFlight, ...this.#gathering].flatMap((group) => group?.writes ?? []);
  }

  #join({ encoded }: PendingTransaction): Group {
    const commit = `${encoded}]`;
    const bytes = Buffer.byteLength(commit);
    const last = this.#gathering.at(-1);
    const isOpen =
      last !== undefined &&
      last.commits.length < limits.groupTransactionsMax &&
      last.bytes + bytes <= limits.groupBytesMax;
    const group: Group = isOpen ? last : { commits: [], writes: [], bytes: 0 };
    if (!isOpen) this.#gathering.push(group);
    group.commits.push(commit);
    group.bytes += bytes;
    this.#sequence += 1;
    this.#pendingBytes += bytes;
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
        await this.#parts.journal.append(group.commits);
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
  #commit({ commits, bytes, writes }: Group): void {
    for (const { changes } of writes) for (const change of changes) change.pending.publish(change);
    this.#published += commits.length;
    this.#commits += commits.length;
    this.#groups += 1;
    this.#pendingBytes -= bytes;
    this.#inFlight = undefined;
    if (this.#parts.journal.checkpointDue) this.#checkpointSoon();
    for (const { result, resolve } of writes) resolve(result);
  }

  #checkpointSoon(): void {
    void this.checkpoint().catch(() => undefined);
  }

  #refuse(error: unknown): void {
    if (!(error instanceof CairnError) || error.code !== 'storage_full') return this.#fail(error);
    this.#rejectAll(error);
    const now = this.#parts.clock.elapsed();
    if (!this.#full) {
      this.#parts.onNotice('the disk is full: only removals are taken until there is room', 'error');
      this.#full = true;
      this.#spent = 0;
      this.#askedForRoom = now;
    } else if (this.#published === this.#refusedAt) return;
    this.#refusedAt = this.#published;
    this.#madeRoom = now;
    this.#checkpointSoon();
  }

  /** Asks the disk for the reserve again, now and then; and makes room by a checkpoint where it is refused. */
  async #askForRoom(): Promise<void> {
    const { clock, journal, onNotice } = this.#parts;
    const now = clock.elapsed();
    if (this.#stopped !== undefined || now - this.#askedForRoom < roomCheckMs) return;
    // Until it has answered, nobody else asks.
    this.#askedForRoom = Number.POSITIVE_INFINITY;
    const room = await journal.hasRoom();
    this.#askedForRoom = now;
    if (room) {
      this.#full = false;
      onNotice('there is room on the disk again: everything is taken');
    } else if (this.#stopped === undefined && now - this.#madeRoom >= roomCheckpointMs) {
      this.#madeRoom = now;
      this.#checkpointSoon();
    }
  }

  /** Fails what is in flight and everything that was decided upon it. */
  #rejectAll(error: CairnError): void {
    const writes = this.#unpublished;
    this.#gathering = [];
    this.#inFlight = undefined;
    this.#sequence = this.#published;
    this.#pendingBytes = 0;
    this.#layAnew();
    for (const { reject } of writes) reject(error);
  }
}
