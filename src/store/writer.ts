import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { Batches, type Batch, type Capacity, type Write } from './batches.ts';
import type { ForeignGroup, Log } from './log.ts';
import { countsOf, type AnyTable } from './memory/table.ts';
import { applyChange, changesOf } from './memory/transaction.ts';
import type { PublishedChange, StoreStatus, Transaction } from './store.ts';

export interface WriterOptions extends Capacity {
  readonly log: Log;
  readonly tables: ReadonlyMap<string, AnyTable>;
  /** Called once when nothing can be written any more. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * The single writer. Transactions wait in a queue. When the log is free, the writer runs
 * them in order, on the published records and the changes of the batch so far, and
 * appends the changes as one group. When the group is durable, the writer publishes the
 * changes and answers all callers of the batch. It answers refusals only then, too,
 * because a refusal may depend on an earlier transaction of the batch. So no decision
 * depends on changes that may still fail, and a batch that lost against another process
 * can be run again.
 */
export class Writer {
  readonly #log: Log;
  readonly #tables: ReadonlyMap<string, AnyTable>;
  readonly #batches: Batches;
  readonly #onFailure: (error: unknown) => void;
  readonly #listeners: ((changes: readonly PublishedChange[]) => void)[] = [];
  readonly #waiting: Write[] = [];
  /**
   * The writes of the batch that is being appended; empty once their callers have been
   * answered.
   */
  #inFlight: readonly Write[] = [];
  /** Work that runs between two batches. */
  readonly #between: (() => Promise<void>)[] = [];
  /** Settles when nothing is left to do; `undefined` while there is nothing to do. */
  #running: Promise<void> | undefined;
  #checkpointing: Promise<void> | undefined;
  /** Makes the error for new writes, once all of them are refused. */
  #refusal: (() => CairnError) | undefined;
  #failed = false;
  /** True while the log does not answer. */
  #stalled = false;
  #onStalled: () => void = () => undefined;
  /** Known when the store has started. */
  #epoch: string | undefined;
  #isClosed = false;
  /** Sequence number of the last published commit. */
  #sequence = 0;
  #groups = 0;
  #commits = 0;

  constructor({ log, tables, onFailure, ...capacity }: WriterOptions) {
    this.#log = log;
    this.#tables = tables;
    this.#batches = new Batches(tables, capacity);
    this.#onFailure = onFailure;
  }

  get epoch(): string {
    invariant(this.#epoch !== undefined, 'the store is used before it has started');
    return this.#epoch;
  }

  get isCurrent(): boolean {
    return this.#log.isCurrent;
  }

  /** Opens the log and publishes its content. */
  async start(): Promise<void> {
    const { epoch, sequence } = await this.#log.open({
      onFailure: (error) => this.#fail(error),
      onStalled: () => this.#stall(),
      onDue: () => this.#epoch !== undefined && this.#schedule(),
    });
    this.#sequence = sequence;
    try {
      while (this.#log.isDue) await this.#commitBatch();
    } catch (error) {
      await this.#log.close();
      throw error;
    }
    this.#epoch = epoch;
  }

  write<T>(work: (transaction: Transaction) => T): Promise<T> {
    // An error that is thrown in here rejects the promise.
    return new Promise((resolve, reject) => {
      if (this.#refusal !== undefined) throw this.#refusal();
      if (this.#stalled) throw unavailable();
      invariant(this.#epoch !== undefined, 'the store is used before it has started');
      invariant(!this.#batches.isDeciding, 'a write is begun inside the work of another');
      if (this.#waiting.length >= limits.waitingTransactionsMax) {
        const message = 'Cannot write: too many writes are waiting';
        throw new CairnError('overloaded', message, { retryAfterSeconds: 1 });
      }
      const undecided = { outcome: undefined, answer: reject, changes: false };
      this.#waiting.push({ work, resolve, reject, ...undecided });
      this.#schedule();
    });
  }

  /**
   * Calls `listener` with the changes of each group as it is published, in the order of
   * the commits.
   */
  onPublished(listener: (changes: readonly PublishedChange[]) => void): void {
    this.#listeners.push(listener);
  }

  checkpoint(): Promise<void> {
    const between = <T>(work: () => Promise<T>): Promise<T> => this.#runBetween(work);
    this.#checkpointing ??= this.#log.checkpoint(between).finally(() => {
      this.#checkpointing = undefined;
    });
    return this.#checkpointing;
  }

  /**
   * Refuses new writes, answers those that wait, and closes the log. Abandons a stalled
   * batch.
   */
  async close(): Promise<void> {
    if (this.#epoch === undefined) return;
    this.#refusal ??= () => new CairnError('draining', 'Cannot write: the server is stopping');
    const stalled = new Promise<void>((resolve) => (this.#onStalled = resolve));
    const running = (async () => {
      await this.#running;
      await this.#checkpointing?.catch(() => undefined);
    })();
    if (!this.#stalled) await Promise.race([running, stalled]);
    this.#isClosed = true;
    await this.#log.close();
    await running;
  }

  status(): StoreStatus {
    return {
      state: this.#failed ? 'failed' : this.#log.isFull ? 'full' : 'writable',
      sequence: this.#sequence,
      groups: this.#groups,
      commits: this.#commits,
      collections: countsOf(this.#tables),
      ...this.#log.status(),
    };
  }

  #runBetween<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#between.push(() => work().then(resolve, reject));
      this.#schedule();
    });
  }

  #schedule(): void {
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // Requests that arrive in one turn of the loop share a batch.
    await new Promise(setImmediate);
    for (;;) {
      const between = this.#between.shift();
      if (between === undefined && this.#waiting.length === 0 && !this.#isDue) break;
      try {
        await (between === undefined ? this.#commitBatch() : between());
      } catch (error) {
        this.#fail(error);
      }
    }
    this.#running = undefined;
  }

  get #isDue(): boolean {
    return this.#log.isDue && this.#refusal === undefined;
  }

  async #commitBatch(): Promise<void> {
    for (;;) {
      const groups = await this.#log.ready();
      if (groups.length === 0) break;
      for (const group of groups) this.#follow(group);
    }
    this.#stalled = false;
    if (this.#waiting.length === 0 && !this.#isDue) return;
    const batch = this.#batches.decide(this.#waiting, this.#sequence + 1, this.#log.isFull);
    this.#inFlight = batch.writes;
    const isEmpty = batch.commits.length === 0;
    const answer = await (isEmpty ? this.#log.confirm() : this.#log.append(batch));
    this.#stalled = false;
    this.#batches.clear();
    // The store failed meanwhile, and the callers have been told so.
    if (this.#failed) return;
    switch (answer.outcome) {
      case 'won':
        this.#publish(batch);
        for (const { answer, outcome } of this.#inFlight) answer(outcome);
        break;
      case 'lost':
        for (const group of answer.groups) this.#follow(group);
        this.#waiting.unshift(...this.#inFlight);
        break;
      case 'refused':
        for (const { changes, reject } of this.#inFlight) if (changes) reject(answer.error);
        this.#waiting.unshift(...this.#inFlight.filter(({ changes }) => !changes));
        break;
      case 'unknown':
        throw answer.error;
    }
    this.#inFlight = [];
    const isStarted = this.#epoch !== undefined;
    if (isStarted && this.#log.checkpointDue) this.checkpoint().catch(() => undefined);
  }

  #publish({ commits, changes }: Batch): void {
    for (const { collection, id, record, sequence } of changes) {
      collection.publish(id, record, sequence);
    }
    this.#published(commits.length, changes);
  }

  /** Publishes a group that another process has appended. */
  #follow(group: ForeignGroup): void {
    const last = this.#sequence;
    invariant(group.first === last + 1, `the log goes on with ${group.first} after ${last}`);
    const changes = Array.from(changesOf(group), ([change, sequence]) => {
      const applied = applyChange(change, sequence, this.#tables);
      if (typeof applied === 'object') return applied;
      throw new Error(`Cannot apply commit ${sequence} of the log: ${applied}`);
    });
    this.#published(group.commits.length, changes);
  }

  #published(commits: number, changes: readonly PublishedChange[]): void {
    this.#sequence += commits;
    if (commits === 0) return;
    this.#commits += commits;
    this.#groups += 1;
    for (const listener of this.#listeners) listener(changes);
  }

  /**
   * Refuses all writes from now on. Nobody can tell whether those in flight were written.
   * Only the first call counts.
   */
  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    const message = 'Cannot write: the store has stopped after a failure';
    const refusal = () => new CairnError('store_failed', message);
    this.#refusal = refusal;
    for (const { reject } of this.#inFlight) reject(outcomeUnknown(error));
    for (const { reject } of this.#waiting.splice(0)) reject(refusal());
    if (!this.#isClosed) this.#onFailure(error);
  }

  /** Answers all callers, since the log does not. The batch in flight goes on without them. */
  #stall(): void {
    this.#stalled = true;
    for (const { changes, reject } of this.#inFlight)
      reject(changes ? outcomeUnknown() : unavailable());
    for (const { reject } of this.#waiting.splice(0)) reject(unavailable());
    this.#inFlight = [];
    this.#onStalled();
  }
}

function outcomeUnknown(cause?: unknown): CairnError {
  const message =
    'Cannot tell whether this was written: ' +
    'the log failed, or does not answer. Read before you retry';
  return new CairnError('outcome_unknown', message, { cause });
}

function unavailable(): CairnError {
  const message = 'Cannot reach the log of the store';
  return new CairnError('store_unavailable', message, { retryAfterSeconds: 2 });
}
