import { invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import { Committer } from './committer.ts';
import { FileJournal, newEpoch } from './file-journal.ts';
import type { Files } from './files.ts';
import { memoryJournal, type Journal } from './journal.ts';
import { systemProcesses, type ProcessTable } from './lock.ts';
import type { CheckReport, OfflineOptions } from './offline.ts';
import type { RepairReport } from './repair.ts';
import type { Collection, CollectionDefinition, Store, StoredRecord, StoreStatus, Transaction } from './store.ts';
import { isCollectionName, Table, type AnyTable } from './table.ts';

export interface StoreOptions {
  /** Where the records are kept; only in memory when left out. */
  readonly files?: Files | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly processes?: ProcessTable;
  /** `limits.reserveBytes` when left out. */
  readonly reserveBytes?: number;
  /**
   * Called once when nothing can be written any more: a sync failed, or the lock is lost. Reads go on; the process
   * should drain and exit with 74 (EX_IOERR).
   */
  readonly onFailure?: (error: unknown) => void;
  /** Takes what an operator should know, one sentence each; it may name files. `error`: something has to be done. */
  readonly onNotice?: (notice: string, level?: 'warn' | 'error') => void;
}

/** A store that has not started can be looked after, with its collections registered. */
export interface OfflineStore extends Store {
  /** Verifies every file and changes none; a server may be running. */
  check(): Promise<CheckReport>;
  /**
   * Keeps what can be read, hand edits included, in a new epoch; damaged files are copied aside first.
   * @throws LockedError
   */
  repair(options?: Partial<Pick<OfflineOptions, 'credentials' | 'onProgress'>>): Promise<RepairReport>;
}

/** Makes a store; nothing is touched before `start`. */
export function openStore(options: StoreOptions): OfflineStore {
  const { reserveBytes } = limits;
  return new RecordStore({ processes: systemProcesses, reserveBytes, onNotice: () => undefined, ...options });
}

/** How often a full disk is asked again, at most, and how often a checkpoint is tried to make room on it. */
const roomCheckMs = 1000;
const roomCheckpointMs = 30_000;

type Settings = StoreOptions & Required<Pick<StoreOptions, 'processes' | 'reserveBytes' | 'onNotice'>>;

class RecordStore implements OfflineStore {
  readonly #journal: Journal;
  readonly #tables = new Map<string, AnyTable>();
  readonly #committer: Committer;
  readonly #options: Settings;
  #epoch: string | undefined;
  #checkpoint: Promise<boolean> | undefined;
  #closed: Promise<void> | undefined;
  #askedForRoom = 0;
  #madeRoom = 0;

  constructor(options: Settings) {
    this.#options = options;
    const { files, random } = options;
    this.#journal = files ? new FileJournal({ ...options, files }) : memoryJournal(newEpoch(random));
    this.#committer = new Committer(this.#journal, this.#tables, {
      onFailure: (error) => options.onFailure?.(error),
      onFull: () => this.#runOutOfRoom(),
      onCommit: () => {
        if (this.#journal.checkpointDue) void this.checkpoint().catch(() => undefined);
      },
    });
  }

  get epoch(): string {
    invariant(this.#epoch !== undefined, 'the store is used before it has started');
    return this.#epoch;
  }

  collection<R extends StoredRecord>(definition: CollectionDefinition<R>): Collection<R> {
    invariant(this.#epoch === undefined, 'a collection is registered after the start');
    invariant(isCollectionName(definition.name), `"${definition.name}" is not a name for a collection`);
    invariant(!this.#tables.has(definition.name), `the collection ${definition.name} is registered twice`);
    const table = new Table(definition);
    this.#tables.set(definition.name, table);
    return table;
  }

  async check(): Promise<CheckReport> {
    const { files } = this.#options;
    invariant(files !== undefined, 'a store in memory has no files to check');
    // What only a check or a repair needs is loaded for them alone: a server starts without it.
    const { checkFiles } = await import('./offline.ts');
    return checkFiles(files, () => this.#makeTables());
  }

  async repair(options: Partial<Pick<OfflineOptions, 'credentials' | 'onProgress'>> = {}): Promise<RepairReport> {
    const { files } = this.#options;
    invariant(files !== undefined && this.#epoch === undefined, 'only files at rest can be repaired');
    const { repairFiles } = await import('./repair.ts');
    const credentials = { collections: [], files: [] };
    return repairFiles(files, () => this.#makeTables(), { credentials, ...this.#options, ...options });
  }

  async start(): Promise<void> {
    invariant(this.#epoch === undefined, 'the store is started twice');
    const { epoch, sequence } = await this.#journal.open(this.#tables);
    this.#committer.begin(sequence);
    this.#epoch = epoch;
  }

  write<T>(work: (transaction: Transaction) => T): Promise<T> {
    const committer = this.#committer;
    return committer.full ? this.#askForRoom().then(() => committer.write(work)) : committer.write(work);
  }

  async checkpoint(): Promise<void> {
    this.#checkpoint ??= this.#journal.checkpoint(this.#committer.between).finally(() => {
      this.#checkpoint = undefined;
    });
    try {
      await this.#checkpoint;
    } catch (error) {
      this.#committer.fail(error);
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  status(): StoreStatus {
    const { sequence, groups, commits, full, failed } = this.#committer;
    // Who asks whether it is ready may keep all writes away until it is.
    if (full) void this.#askForRoom();
    const collections = [...this.#tables.values()].map(({ name, size }) => ({ name, records: size }));
    const state = failed ? 'failed' : full ? 'full' : 'writable';
    return { state, sequence, groups, commits, collections, ...this.#journal.status() };
  }

  #makeTables(): Map<string, AnyTable> {
    return new Map(Array.from(this.#tables, ([name, table]) => [name, table.fresh()]));
  }

  async #close(): Promise<void> {
    if (this.#epoch === undefined) return;
    await this.#committer.stop();
    await this.#checkpoint?.catch(() => undefined);
    if (!this.#committer.failed) await this.checkpoint().catch(() => undefined);
    await this.#journal.close(!this.#committer.failed);
  }

  #runOutOfRoom(): void {
    this.#options.onNotice('the disk is full: only removals are taken until there is room', 'error');
    this.#askedForRoom = this.#options.clock.elapsed();
    this.#madeRoom = this.#askedForRoom;
    void this.checkpoint().catch(() => undefined);
  }

  /** Asks the disk for the reserve again, now and then; and makes room by a checkpoint where it is refused. */
  async #askForRoom(): Promise<void> {
    const { clock, onNotice } = this.#options;
    const now = clock.elapsed();
    if (this.#closed !== undefined || this.#committer.failed || now - this.#askedForRoom < roomCheckMs) return;
    // Until it has answered, nobody else asks.
    this.#askedForRoom = Number.POSITIVE_INFINITY;
    const room = await this.#journal.hasRoom();
    this.#askedForRoom = now;
    if (room) {
      this.#committer.full = false;
      onNotice('there is room on the disk again: everything is taken');
    } else if (now - this.#madeRoom >= roomCheckpointMs) {
      this.#madeRoom = now;
      void this.checkpoint().catch(() => undefined);
    }
  }
}
