import { invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import type { Files } from './disk/files.ts';
import { systemMachine } from './disk/lock.ts';
import { FileLog, type FileLogOptions } from './file-log.ts';
import { memoryLog, type Log } from './log.ts';
import { HeapWatch, type Heap } from './memory/heap.ts';
import { isCollectionName, Table, type AnyTable } from './memory/table.ts';
import { journalNumbers } from './journal/journal-format.ts';
import { unfinishedName } from './recovery/recovery.ts';
import { snapshotName } from './recovery/snapshot.ts';
import type { Collection, CollectionDefinition, Store, StoredRecord } from './store.ts';
import { Writer } from './writer.ts';

export interface StoreOptions extends Partial<Omit<FileLogOptions, 'files'>> {
  /** Keep the records. Without them, the records are in memory only. */
  readonly files?: Files | undefined;
  /** Makes a log that several processes share. It replaces the files, and fills the tables. */
  readonly log?: ((tables: Map<string, AnyTable>) => Log) | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The heap of this process if absent. */
  readonly heap?: Heap;
  /**
   * The most records of all ordinary collections together. The memory is the bound if
   * absent.
   */
  readonly recordsMax?: number | undefined;
  /**
   * Called once when nothing can be written any more: a sync failed, or the lock is lost.
   * Reads go on. The process should finish its requests and exit with 74 (EX_IOERR).
   */
  readonly onFailure?: (error: unknown) => void;
}

export interface OpenStore extends Store {
  /** Whether the directory holds a store, or parts of one, before the start. */
  exists(): Promise<boolean>;
  /** The registered collections without records, for `checkStore` and `repairStore`. */
  readonly freshTables: () => Map<string, AnyTable>;
}

/** Makes a store. Nothing is touched before `start`. */
export function openStore(options: StoreOptions): OpenStore {
  return new LogStore(options);
}

/** A writer with its collections, on the log that the options ask for. */
class LogStore extends Writer implements OpenStore {
  readonly #files: Files | undefined;
  readonly #tables: Map<string, AnyTable>;
  readonly #isShared: boolean;
  readonly #watch: HeapWatch;
  #isStarting = false;
  #closing: Promise<void> | undefined;

  constructor(options: StoreOptions) {
    const { files, log, onNotice = () => undefined, onFailure = () => undefined } = options;
    const tables = new Map<string, AnyTable>();
    const watch = new HeapWatch(onNotice);
    const { heap = watch, recordsMax = Infinity } = options;
    const ownLog = log?.(tables) ?? logOf({ ...options, onNotice }, tables);
    super({ log: ownLog, tables, heap, recordsMax, onFailure });
    this.#files = files;
    this.#tables = tables;
    this.#isShared = log !== undefined;
    this.#watch = watch;
  }

  collection<R extends StoredRecord>(definition: CollectionDefinition<R>): Collection<R> {
    const { name } = definition;
    invariant(!this.#isStarting, 'a collection is registered after the start');
    invariant(isCollectionName(name), `"${name}" is not a name for a collection`);
    invariant(!this.#tables.has(name), `the collection ${name} is registered twice`);
    const table = new Table(definition);
    this.#tables.set(name, table);
    return table;
  }

  override async start(): Promise<void> {
    invariant(!this.#isStarting, 'the store is started twice');
    this.#isStarting = true;
    this.#watch.start();
    try {
      await super.start();
    } catch (error) {
      this.#watch.stop();
      throw error;
    }
  }

  async confirm(): Promise<void> {
    if (this.#isShared) await this.write(() => undefined);
  }

  override close(): Promise<void> {
    this.#watch.stop();
    return (this.#closing ??= super.close());
  }

  async exists(): Promise<boolean> {
    const names = (await this.#files?.list()) ?? [];
    const parts = [unfinishedName, ...Array.from(this.#tables.keys(), snapshotName)];
    return journalNumbers(names).length > 0 || parts.some((name) => names.includes(name));
  }

  readonly freshTables = (): Map<string, AnyTable> =>
    new Map(Array.from(this.#tables, ([name, table]) => [name, table.fresh()]));
}

/** The log on the files, or one in memory where there are none. */
function logOf(
  options: StoreOptions & Pick<FileLogOptions, 'onNotice'>,
  tables: Map<string, AnyTable>,
): Log {
  const { files, random } = options;
  if (files === undefined) return memoryLog(random);
  const defaults = { spareBytes: limits.spareBytes, machine: systemMachine };
  return new FileLog({ ...defaults, ...options, files }, tables);
}
