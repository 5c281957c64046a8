import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { toSite } from '../base/network.ts';
import { type Clock, timers } from '../base/system.ts';
import { Turns } from '../base/turns.ts';
import type { Files } from './disk/files.ts';
import { storageFull, type Group, type CommitLog, type LogClient } from './log.ts';
import type { Memory } from './memory/memory.ts';
import { countRecords, isCollectionName, Tables, undo, type TableChange } from './memory/table.ts';
import { TableTransaction } from './memory/transaction.ts';
import { holdsStore } from './recovery/recover.ts';
import type {
  Collection,
  RecordChange,
  Store,
  StoredRecord,
  StoreStatus,
  TableDefinition,
  Transaction,
} from './store.ts';

interface WriterOptions {
  readonly log: CommitLog;
  /** The collections. The log adds its own collections that are not registered. */
  readonly tables: Tables;
  readonly files?: Files | undefined;
  /** True if other processes append to the log as well. */
  readonly isShared?: boolean;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly onFailure: (error: unknown) => void;
}

/** Transactions that were run one after another, and the changes of the successful ones. */
interface Batch extends Group {
  readonly writes: TableTransaction[];
  readonly commits: string[];
  readonly changes: TableChange[];
}

/**
 * The store, and its single writer. Transactions wait in a queue for each caller. When the log is
 * free, the writer runs them in turn, on the published records and the batch's changes so far, and
 * the log appends the changes as one group. When the group is durable, the writer publishes the
 * changes and settles all calls of the batch. Refusals wait as well, because they may depend on an
 * earlier transaction of the batch. So no decision depends on changes that may still fail, and a
 * batch can be dropped and run again.
 */
export class Writer implements Store, LogClient {
  readonly #options: WriterOptions;
  readonly #log: CommitLog;
  readonly #listeners: ((changes: readonly RecordChange[]) => void)[] = [];
  readonly #waiting = new Turns<TableTransaction>();
  /** Writes that have to run again, before the waiting ones. */
  readonly #again: TableTransaction[] = [];
  #batch: Batch | undefined;
  #isDeciding = false;
  readonly #between: (() => Promise<void>)[] = [];
  #running: Promise<void> | undefined;
  /** Errors for new writes: final, and until the log responds again. */
  #refusal: CairnError | undefined;
  #passingRefusal: CairnError | undefined;
  #hasFailed = false;
  readonly #registered = new Set<string>();
  #isStarted = false;
  #closed: Promise<void> | undefined;
  #epoch: string | undefined;
  /** Sequence number of the last published commit, and counts since the start. */
  readonly #published = { sequence: 0, groups: 0, commits: 0 };

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#log = options.log;
  }

  get epoch(): string {
    invariant(this.#epoch !== undefined, 'the store is used before it has started');
    return this.#epoch;
  }

  get sequence(): number {
    return this.#published.sequence;
  }

  get state(): Store['state'] {
    if (this.#hasFailed) return 'failed';
    return this.#log.problem?.state ?? (this.isMemoryFull ? 'full' : 'writable');
  }

  get isMemoryFull(): boolean {
    return !this.#hasFailed && this.#log.problem === undefined && this.#options.memory.isFull;
  }

  get memoryMaxBytes(): number {
    return this.#options.memory.bytesMax;
  }

  get size(): number {
    return countRecords(this.#options.tables).reduce((sum, { records }) => sum + records, 0);
  }

  /** Unregistered collections with records are only kept. */
  undeclared(counts: StoreStatus['collections'] = countRecords(this.#options.tables)): string[] {
    return counts
      .filter(({ name, records }) => records > 0 && !this.#registered.has(name))
      .map(({ name }) => name);
  }

  /** For `checkStore`, of a store that is not started: `onCount` of a table counts these as well. */
  readonly freshTables = (): Tables => {
    const fresh = new Tables();
    for (const table of this.#options.tables.values()) table.addTo(fresh);
    return fresh;
  };

  async exists(): Promise<boolean> {
    const { files, tables } = this.#options;
    return files !== undefined && holdsStore(files, tables);
  }

  collection<R extends StoredRecord>(definition: TableDefinition<R>): Collection<R> {
    const { name } = definition;
    const { tables } = this.#options;
    invariant(!this.#isStarted, 'a collection is registered after the start');
    invariant(isCollectionName(name), `"${name}" is not a name for a collection`);
    invariant(!tables.has(name), `the collection ${name} is registered twice`);
    this.#registered.add(name);
    return tables.add(definition);
  }

  async start(): Promise<void> {
    invariant(!this.#isStarted, 'the store is started twice');
    this.#isStarted = true;
    const { epoch, sequence } = await this.#log.open(this);
    this.#published.sequence = sequence;
    this.#epoch = epoch;
    this.#options.memory.changed();
  }

  write<T>(work: (transaction: Transaction) => T, caller = 'the program'): Promise<T> {
    // An error thrown in here rejects the promise.
    return new Promise((resolve, reject) => {
      const refusal = this.#refusal ?? this.#passingRefusal;
      if (refusal !== undefined) throw refusal;
      invariant(this.#epoch !== undefined, 'the store is used before it has started');
      invariant(!this.#isDeciding, 'a write is begun inside the work of another');
      if (this.#length >= limits.waitingTransactionsMax) {
        const message = 'Cannot write: too many writes are waiting';
        throw new CairnError('overloaded', message, { retryAfterSeconds: 1 });
      }
      this.#waiting.add(toSite(caller), new TableTransaction(work, { resolve, reject }));
      this.#schedule();
    });
  }

  async confirm(): Promise<void> {
    if (this.#options.isShared) await this.write(() => undefined);
  }

  onPublished(listener: (changes: readonly RecordChange[]) => void): void {
    this.#listeners.push(listener);
  }

  checkpoint(): Promise<void> {
    return this.#log.checkpoint();
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  status(): StoreStatus {
    const { log, memory, tables } = this.#options;
    return {
      state: this.state,
      ...this.#published,
      memoryBytes: memory.bytes,
      memoryMaxBytes: this.memoryMaxBytes,
      collections: countRecords(tables),
      ...log.status(),
    };
  }

  between<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#between.push(async () => {
        // The tables may hold only half of the last group.
        if (this.#hasFailed) reject(this.#refusal);
        else await work().then(resolve, reject);
      });
      this.#schedule();
    });
  }

  published(changes: readonly RecordChange[]): void {
    const [first, last] = [changes[0], changes.at(-1)];
    if (first === undefined || last === undefined) return;
    this.#published.sequence = last.sequence;
    this.#published.commits += last.sequence - first.sequence + 1;
    this.#published.groups += 1;
    this.#options.memory.changed();
    for (const listener of this.#listeners) listener(changes);
  }

  unavailable(reason: CairnError | undefined): void {
    this.#passingRefusal = reason;
    if (reason !== undefined) this.#rejectAll(reason);
  }

  /** Refuses all writes from now on. Only the first call counts. */
  onFailure(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const message = 'Cannot write: the store has stopped after a failure';
    this.#refusal = new CairnError('store_failed', message);
    this.#rejectAll(this.#refusal, error);
    this.#options.onFailure(error);
  }

  async #close(): Promise<void> {
    if (this.#epoch === undefined) return;
    this.#refusal ??= new CairnError('draining', 'Cannot write: the server is stopping');
    const running = this.#running ?? Promise.resolve();
    await this.#log.close(running.then(() => !this.#hasFailed));
  }

  get #length(): number {
    return this.#again.length + this.#waiting.size;
  }

  #schedule(): void {
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    do {
      // Requests that arrive in one turn of the loop share a batch. Timers and sockets get their
      // turn, even if a caller writes to memory again and again.
      await new Promise(timers.setImmediate);
      const between = this.#between.shift();
      try {
        if (between !== undefined) await between();
        else if (this.#length > 0) await this.#commitBatch();
      } catch (error) {
        this.onFailure(error);
      }
    } while (this.#between.length + this.#length > 0);
    this.#running = undefined;
  }

  async #commitBatch(): Promise<void> {
    const batch = this.#decide();
    const answer = await this.#log.append(batch);
    if (answer.outcome === 'unknown') throw answer.error;
    // After a failure, the callers already know that the outcome is unknown.
    if (this.#hasFailed) return;
    const { writes, changes } = batch;
    if (answer.outcome === 'lost') return this.#dropBatch();
    if (answer.outcome === 'refused') {
      this.#dropBatch();
      for (const write of writes) if (write.commit !== undefined) write.reject(answer.error);
      this.#again.splice(0, writes.length, ...writes.filter(({ commit }) => commit === undefined));
      return;
    }
    for (const { collection, id, record, sequence } of changes) {
      collection.publishPending(id, record, sequence);
    }
    this.published(changes);
    for (const write of writes) write.answer();
    this.#batch = undefined;
  }

  #decide(): Batch {
    const first = this.#published.sequence + 1;
    const batch: Batch = { first, writes: [], commits: [], changes: [] };
    const { writes, commits, changes } = (this.#batch = batch);
    const { clock } = this.#options;
    let bytes = 0;
    let beganMs = clock.elapsed();
    let idleMs = 0;
    // A large transaction at the end usually fits, so it need not run twice.
    const isOpen = (): boolean =>
      writes.length < limits.groupTransactionsMax &&
      bytes < limits.groupBytesMax / 4 &&
      idleMs < limits.refusingMs;
    while (isOpen()) {
      const write = this.#again.shift() ?? this.#waiting.next();
      if (write === undefined) break;
      this.#isDeciding = true;
      write.run(first + commits.length, this.#checkRoom);
      this.#isDeciding = false;
      const { commit } = write;
      if (commit !== undefined) {
        const size = Buffer.byteLength(commit);
        if (bytes > 0 && bytes + size > limits.groupBytesMax) {
          // It runs again in the next batch.
          undo(write.changes);
          this.#again.unshift(write);
          break;
        }
        bytes += size;
        commits.push(commit);
        // One transaction may have more changes than a call can have arguments.
        for (const change of write.changes) changes.push(change);
      }
      writes.push(write);
      const endedMs = clock.elapsed();
      if (commit === undefined) idleMs += endedMs - beganMs;
      beganMs = endedMs;
    }
    return batch;
  }

  /** @throws CairnError `storage_full` */
  readonly #checkRoom = (): void => {
    const { log, memory } = this.#options;
    if (log.problem?.state === 'full') throw storageFull(log.problem.reason);
    memory.check();
  };

  #dropBatch(): void {
    if (this.#batch === undefined) return;
    undo(this.#batch.changes);
    this.#again.unshift(...this.#batch.writes);
    this.#batch = undefined;
  }

  /** Rejects all writes. The outcome of the batch in flight is unknown. */
  #rejectAll(reason: CairnError, cause?: unknown): void {
    for (const write of this.#batch?.writes.splice(0) ?? []) {
      write.reject(write.commit === undefined ? reason : outcomeUnknown(cause));
    }
    for (const write of [...this.#again.splice(0), ...this.#waiting.clear()]) write.reject(reason);
  }
}

function outcomeUnknown(cause?: unknown): CairnError {
  const message =
    'Cannot tell whether this was written: ' +
    'the log failed, or does not answer. Read before you retry';
  return new CairnError('outcome_unknown', message, { cause });
}
