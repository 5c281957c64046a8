import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import { Committer } from './committer.ts';
import { FileJournal, newEpoch } from './file-journal.ts';
import type { Files } from './files.ts';
import { memoryJournal, type Journal } from './journal.ts';
import { systemProcesses, type ProcessTable } from './lock.ts';
import { NodeFiles } from './node-files.ts';
import type { CheckReport, OfflineOptions } from './offline.ts';
import type { RepairReport } from './repair.ts';
import type { Collection, CollectionDefinition, Store, StoredRecord, StoreStatus, Transaction } from './store.ts';
import { isCollectionName, Table, type AnyTable } from './table.ts';

export interface StoreOptions {
  /** Where the records are kept: a directory, files of any kind, or only in memory when left out. */
  readonly directory?: string;
  readonly files?: Files;
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
  readonly #files: Files | undefined;
  readonly #options: Settings;
  #epoch: string | undefined;
  #failure: unknown;
  #checkpoint: Promise<boolean> | undefined;
  #closed: Promise<void> | undefined;
  #askedForRoom = 0;
  #madeRoom = 0;

  constructor(options: Settings) {
    this.#options = options;
    const files = options.files ?? (options.directory === undefined ? undefined : new NodeFiles(options.directory));
    this.#files = files;
    this.#journal = files ? new FileJournal({ ...options, files }) : memoryJournal(newEpoch(options.random));
    this.#committer = new Committer(this.#journal, this.#tables, {
      onFailure: (error) => {
        this.#failure = error;
        options.onFailure?.(error);
      },
      onFull: () => this.#runOutOfRoom(),
      hasRoom: () => this.#hasRoom(),
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
    invariant(this.#files !== undefined, 'a store in memory has no files to check');
    // What only a check or a repair needs is loaded for them alone: a server starts without it.
    const { checkFiles } = await import('./offline.ts');
    return checkFiles(this.#files, () => this.#makeTables());
  }

  async repair(options: Partial<Pick<OfflineOptions, 'credentials' | 'onProgress'>> = {}): Promise<RepairReport> {
    invariant(this.#files !== undefined && this.#epoch === undefined, 'only files at rest can be repaired');
    const { repairFiles } = await import('./repair.ts');
    const credentials = { collections: [], files: [] };
    return repairFiles(this.#files, () => this.#makeTables(), { credentials, ...this.#options, ...options });
  }

  async start(): Promise<void> {
    invariant(this.#epoch === undefined, 'the store is started twice');
    const { epoch, sequence } = await this.#journal.open(this.#tables);
    this.#committer.begin(sequence);
    this.#epoch = epoch;
  }

  write<T>(work: (transaction: Transaction) => T): Promise<T> {
    return this.#committer.write(work);
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
    const { sequence, groups, commits, full } = this.#committer;
    // Who asks whether it is ready may keep all writes away until it is.
    if (full) void this.#committer.askForRoom();
    const collections = [...this.#tables.values()].map(({ name, size }) => ({ name, records: size }));
    const state = this.#failure !== undefined ? 'failed' : full ? 'full' : 'writable';
    return { state, sequence, groups, commits, collections, ...this.#journal.status() };
  }

  #makeTables(): Map<string, AnyTable> {
    return new Map(Array.from(this.#tables, ([name, table]) => [name, table.fresh()]));
  }

  async #close(): Promise<void> {
    if (this.#epoch === undefined) return;
    await this.#committer.stop(() => new CairnError('draining', 'Cannot write: the server is stopping'));
    await this.#checkpoint?.catch(() => undefined);
    if (this.#failure === undefined) await this.checkpoint().catch(() => undefined);
    await this.#journal.close(this.#failure === undefined);
  }

  #runOutOfRoom(): void {
    this.#options.onNotice('the disk is full: only removals are taken until there is room', 'error');
    this.#askedForRoom = this.#options.clock.elapsed();
    this.#madeRoom = this.#askedForRoom;
    void this.#journal.setReserve(true).then(() => this.checkpoint().catch(() => undefined));
  }

  /** Asks the disk for the reserve again, now and then; and makes room by a checkpoint where it is refused. */
  async #hasRoom(): Promise<boolean> {
    const { clock, onNotice } = this.#options;
    const now = clock.elapsed();
    if (now - this.#askedForRoom < roomCheckMs) return false;
    // Until it has answered, nobody else asks.
    this.#askedForRoom = Number.POSITIVE_INFINITY;
    const room = await this.#journal.setReserve(false);
    this.#askedForRoom = now;
    if (room) {
      onNotice('there is room on the disk again: everything is taken');
    } else if (now - this.#madeRoom >= roomCheckpointMs) {
      this.#madeRoom = now;
      void this.checkpoint().catch(() => undefined);
    }
    return room;
  }
}
