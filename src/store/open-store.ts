import { invariant } from '../base/errors.ts';
import type { Clock, Random } from '../base/system.ts';
import { Committer } from './committer.ts';
import type { Files } from './files.ts';
import { FileJournal, memoryJournal, type JournalOptions } from './journal.ts';
import { journalNumbers } from './journal-format.ts';
import { systemProcesses } from './lock.ts';
import { findStore } from './recovery.ts';
import type { Collection, CollectionDefinition, Store, StoredRecord } from './store.ts';
import { isCollectionName, Table, type AnyTable } from './table.ts';

export interface StoreOptions extends Partial<Omit<JournalOptions, 'files'>> {
  /** Where the records are kept; only in memory when left out. */
  readonly files?: Files | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Called once when nothing can be written any more: a sync failed, or the lock is lost. Reads go on; the process
   * should drain and exit with 74 (EX_IOERR).
   */
  readonly onFailure?: (error: unknown) => void;
}

export interface OpenStore extends Store {
  /** Whether there is one in the directory, or parts of one, before the start. */
  exists(): Promise<boolean>;
  /** The registered collections with nothing in them: for `checkFiles` and `repairFiles`. */
  freshTables(): Map<string, AnyTable>;
}

/** Makes a store; nothing is touched before `start`. */
export function openStore(given: StoreOptions): OpenStore {
  const { processes = systemProcesses, onNotice = () => undefined, onFailure = () => undefined } = given;
  const options = { ...given, processes, onNotice, onFailure };
  const { files } = options;
  const tables = new Map<string, AnyTable>();
  let running: { readonly epoch: string; readonly committer: Committer } | undefined;
  let closing: Promise<void> | undefined;

  function started() {
    invariant(running !== undefined, 'the store is used before it has started');
    return running;
  }

  function collection<R extends StoredRecord>(definition: CollectionDefinition<R>): Collection<R> {
    invariant(running === undefined, 'a collection is registered after the start');
    invariant(isCollectionName(definition.name), `"${definition.name}" is not a name for a collection`);
    invariant(!tables.has(definition.name), `the collection ${definition.name} is registered twice`);
    const table = new Table(definition);
    tables.set(definition.name, table);
    return table;
  }

  const freshTables = () => new Map(Array.from(tables, ([name, table]) => [name, table.fresh()]));

  return {
    async exists() {
      if (files === undefined) return false;
      if (journalNumbers(await files.list()).length > 0) return true;
      // Parts of one are judged at the start, with the lock: a restore or a repair may be under way.
      return findStore(files, freshTables()).then(() => false, () => true);
    },
    get epoch() {
      return started().epoch;
    },
    collection,
    async start() {
      invariant(running === undefined, 'the store is started twice');
      const journal = files ? new FileJournal({ ...options, files }, tables) : memoryJournal(options.random);
      const { epoch, sequence } = await journal.open();
      running = { epoch, committer: new Committer({ ...options, journal, tables, sequence }) };
    },
    write: (work) => started().committer.write(work),
    checkpoint: () => started().committer.checkpoint(),
    close: () => (closing ??= running?.committer.close() ?? Promise.resolve()),
    status: () => started().committer.status(),
    freshTables,
  };
}
