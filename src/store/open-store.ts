import { invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import type { Files } from './disk/files.ts';
import { systemMachine } from './disk/lock.ts';
import { FileLog, type FileLogOptions } from './file-log.ts';
import { memoryLog, type Log } from './log.ts';
import { Capacity } from './memory/capacity.ts';
import { HeapWatch, type Heap } from './memory/heap.ts';
import { isCollectionName, Table, type AnyTable } from './memory/table.ts';
import { journalNumbers } from './journal/journal-format.ts';
import { unfinishedName } from './recovery/recovery.ts';
import { snapshotName } from './recovery/snapshot.ts';
import type {
  Collection, CollectionDefinition, PublishedChange, Store, StoredRecord, StoreStatus, Transaction,
} from './store.ts';
import { Writer } from './writer.ts';

export interface StoreOptions extends Partial<Omit<FileLogOptions, 'files'>> {
  /** Where the records are kept; only in memory when left out. */
  readonly files?: Files | undefined;
  /** Makes a log that other processes share, to be used instead of files. It fills the tables, and may add some. */
  readonly log?: ((tables: Map<string, AnyTable>) => Log) | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** Absent: that of this process. */
  readonly heap?: Heap;
  /** How many records ordinary collections may have together. Absent: as many as fit into memory. */
  readonly recordsMax?: number | undefined;
  /**
   * Called once when nothing can be written any more: a sync failed, or the lock is lost. Reads go on; the process
   * should drain and exit with 74 (EX_IOERR).
   */
  readonly onFailure?: (error: unknown) => void;
}

export interface OpenStore extends Store {
  /** Whether there is one in the directory, or parts of one, before the start. */
  exists(): Promise<boolean>;
  /** The registered collections with nothing in them, for `checkStore` and `repairStore`. */
  readonly freshTables: () => Map<string, AnyTable>;
}

/** Makes a store; nothing is touched before `start`. */
export function openStore(options: StoreOptions): OpenStore {
  return new LogStore(options);
}

/** The store on the log that its options ask for. */
class LogStore implements OpenStore {
  readonly #files: Files | undefined;
  readonly #tables = new Map<string, AnyTable>();
  readonly #log: Log;
  readonly #isShared: boolean;
  readonly #watch: HeapWatch;
  readonly #writer: Writer;
  #epoch: string | undefined;
  #isStarting = false;
  #closing: Promise<void> | undefined;

  constructor(options: StoreOptions) {
    const { files, log, onNotice = () => undefined, onFailure = () => undefined } = options;
    this.#files = files;
    this.#isShared = log !== undefined;
    this.#log = log?.(this.#tables) ?? logOf({ ...options, onNotice }, this.#tables);
    this.#watch = new HeapWatch((isFull) => {
      if (isFull) onNotice('the records fill the memory of this process: only removals are accepted', 'error');
      else onNotice('there is room in memory again: all writes are accepted');
    });
    const { heap = this.#watch, recordsMax = Infinity } = options;
    const capacity = new Capacity(this.#tables, heap, recordsMax);
    this.#writer = new Writer({ log: this.#log, tables: this.#tables, capacity, onFailure });
  }

  get epoch(): string {
    invariant(this.#epoch !== undefined, 'the store is used before it has started');
    return this.#epoch;
  }

  get isCurrent(): boolean {
    return this.#log.isCurrent;
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

  async start(): Promise<void> {
    invariant(!this.#isStarting, 'the store is started twice');
    this.#isStarting = true;
    this.#watch.start();
    try {
      this.#epoch = await this.#writer.start();
    } catch (error) {
      this.#watch.stop();
      throw error;
    }
  }

  write<T>(work: (transaction: Transaction) => T): Promise<T> {
    return this.#started.write(work);
  }

  async confirm(): Promise<void> {
    if (this.#isShared) await this.write(() => undefined);
  }

  onPublished(listener: (changes: readonly PublishedChange[]) => void): void {
    this.#writer.onPublished(listener);
  }

  async checkpoint(): Promise<void> {
    await this.#started.checkpoint();
  }

  close(): Promise<void> {
    this.#watch.stop();
    return (this.#closing ??= this.#epoch === undefined ? Promise.resolve() : this.#writer.close());
  }

  status(): StoreStatus {
    return this.#started.status();
  }

  async exists(): Promise<boolean> {
    const names = (await this.#files?.list()) ?? [];
    const parts = [unfinishedName, ...Array.from(this.#tables.keys(), snapshotName)];
    return journalNumbers(names).length > 0 || parts.some((name) => names.includes(name));
  }

  readonly freshTables = (): Map<string, AnyTable> =>
    new Map(Array.from(this.#tables, ([name, table]) => [name, table.fresh()]));

  get #started(): Writer {
    invariant(this.#epoch !== undefined, 'the store is used before it has started');
    return this.#writer;
  }
}

/** The log on the files, or one in memory where there are none. */
function logOf(options: StoreOptions & Pick<FileLogOptions, 'onNotice'>, tables: Map<string, AnyTable>): Log {
  const { files, random } = options;
  if (files === undefined) return memoryLog(random);
  return new FileLog({ spareBytes: limits.spareBytes, machine: systemMachine, ...options, files }, tables);
}
