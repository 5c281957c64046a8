import { invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import { Committer } from './committer.ts';
import { FileJournal, newEpoch } from './file-journal.ts';
import type { Files } from './files.ts';
import { memoryJournal } from './journal.ts';
import { systemProcesses, type ProcessTable } from './lock.ts';
import type { CheckReport, OfflineOptions } from './offline.ts';
import type { RepairReport } from './repair.ts';
import type { Collection, CollectionDefinition, Store, StoredRecord } from './store.ts';
import { countsOf, isCollectionName, Table, type AnyTable } from './table.ts';

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

/** How often a full disk is asked again, at most, and how often a checkpoint is tried to make room on it. */
const roomCheckMs = 1000;
const roomCheckpointMs = 30_000;

/** Makes a store; nothing is touched before `start`. */
export function openStore(given: StoreOptions): OfflineStore {
  const { reserveBytes } = limits;
  const options = { processes: systemProcesses, reserveBytes, onNotice: () => undefined, ...given };
  const { files, clock, onNotice } = options;
  const tables = new Map<string, AnyTable>();
  const journal = files ? new FileJournal({ ...options, files }) : memoryJournal(newEpoch(options.random));
  const committer = new Committer({
    journal,
    tables,
    onFailure: (error) => options.onFailure?.(error),
    onFull: runOutOfRoom,
    onCommit: () => (journal.checkpointDue ? checkpointSoon() : undefined),
  });
  let epoch: string | undefined;
  let checkpointing: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  let askedForRoom = 0;
  let madeRoom = 0;
  /** The last commit when the disk refused something: until another one, a checkpoint would fail again. */
  let tried = 0;

  function collection<R extends StoredRecord>(definition: CollectionDefinition<R>): Collection<R> {
    invariant(epoch === undefined, 'a collection is registered after the start');
    invariant(isCollectionName(definition.name), `"${definition.name}" is not a name for a collection`);
    invariant(!tables.has(definition.name), `the collection ${definition.name} is registered twice`);
    const table = new Table(definition);
    tables.set(definition.name, table);
    return table;
  }

  function freshTables(): Map<string, AnyTable> {
    return new Map(Array.from(tables, ([name, table]) => [name, table.fresh()]));
  }

  async function checkpoint(): Promise<void> {
    checkpointing ??= journal.checkpoint(committer.between).finally(() => {
      checkpointing = undefined;
    });
    try {
      await checkpointing;
    } catch (error) {
      committer.fail(error);
      throw error;
    }
  }

  function checkpointSoon(): void {
    void checkpoint().catch(() => undefined);
  }

  function runOutOfRoom(): void {
    const now = clock.elapsed();
    if (!committer.full) {
      onNotice('the disk is full: only removals are taken until there is room', 'error');
      askedForRoom = now;
    } else if (committer.sequence === tried) return;
    tried = committer.sequence;
    madeRoom = now;
    checkpointSoon();
  }

  /** Asks the disk for the reserve again, now and then; and makes room by a checkpoint where it is refused. */
  async function askForRoom(): Promise<void> {
    const now = clock.elapsed();
    if (closing !== undefined || committer.failed || now - askedForRoom < roomCheckMs) return;
    // Until it has answered, nobody else asks.
    askedForRoom = Number.POSITIVE_INFINITY;
    const room = await journal.hasRoom();
    askedForRoom = now;
    if (room) {
      committer.full = false;
      onNotice('there is room on the disk again: everything is taken');
    } else if (closing === undefined && now - madeRoom >= roomCheckpointMs) {
      madeRoom = now;
      checkpointSoon();
    }
  }

  async function stop(): Promise<void> {
    if (epoch === undefined) return;
    await committer.stop();
    await checkpointing?.catch(() => undefined);
    if (!committer.failed) await checkpoint().catch(() => undefined);
    await journal.close(!committer.failed);
  }

  return {
    get epoch() {
      invariant(epoch !== undefined, 'the store is used before it has started');
      return epoch;
    },
    collection,
    async check() {
      invariant(files !== undefined, 'a store in memory has no files to check');
      // What only a check or a repair needs is loaded for them alone: a server starts without it.
      const { checkFiles } = await import('./offline.ts');
      return checkFiles(files, freshTables);
    },
    async repair(how = {}) {
      invariant(files !== undefined && epoch === undefined, 'only files at rest can be repaired');
      const { repairFiles } = await import('./repair.ts');
      return repairFiles(files, freshTables, { credentials: { collections: [], files: [] }, ...options, ...how });
    },
    async start() {
      invariant(epoch === undefined, 'the store is started twice');
      const opened = await journal.open(tables);
      committer.begin(opened.sequence);
      epoch = opened.epoch;
    },
    write: (work) => (committer.full ? askForRoom().then(() => committer.write(work)) : committer.write(work)),
    checkpoint,
    close: () => (closing ??= stop()),
    status() {
      const { sequence, groups, commits, full, failed } = committer;
      // Who asks whether it is ready may keep all writes away until it is.
      if (full) void askForRoom();
      const state = failed ? 'failed' : full ? 'full' : 'writable';
      return { state, sequence, groups, commits, collections: countsOf(tables), ...journal.status() };
    },
  };
}
