import { invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import type { Files } from './disk/files.ts';
import { systemMachine } from './disk/lock.ts';
import { FileLog, type FileLogOptions } from './disk/file-log.ts';
import { memoryLog, type CommitLog } from './log.ts';
import { HeapWatch, type Heap } from './memory/heap.ts';
import { isCollectionName, Table, type AnyTable } from './memory/table.ts';
import { holdsStore } from './recovery/write-store.ts';
import type { Store } from './store.ts';
import { Writer } from './writer.ts';

export interface StoreOptions extends Partial<Omit<FileLogOptions, 'files'>> {
  /** Keep the records. Without them, the records are in memory only. */
  readonly files?: Files | undefined;
  /** Makes a log that several processes share. It replaces the files, and fills the tables. */
  readonly log?: ((tables: Map<string, AnyTable>) => CommitLog) | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The heap of this process if absent. */
  readonly heap?: Heap;
  /**
   * Called once when nothing can be written any more: a sync failed, or the lock is lost.
   * Reads go on. The process should finish its requests and exit with 74 (EX_IOERR).
   */
  readonly onFailure?: (error: unknown) => void;
}

export interface OpenStore extends Store {
  /** The collections that have records and were not registered. They are only kept. */
  readonly undeclared: readonly string[];
  /** Whether the directory holds a store, or parts of one, before the start. */
  exists(): Promise<boolean>;
  /** The registered collections without records, for `checkStore` and `repairStore`. */
  readonly freshTables: () => Map<string, AnyTable>;
}

/** Makes a store. Nothing is touched before `start`. */
export function openStore(options: StoreOptions): OpenStore {
  const { files, onNotice = () => undefined, onFailure = () => undefined } = options;
  const tables = new Map<string, AnyTable>();
  const watch = new HeapWatch(onNotice);
  const { heap = watch } = options;
  const log = options.log?.(tables) ?? logOf({ ...options, onNotice }, tables);
  const writer = new Writer({ log, tables, heap, clock: options.clock, onFailure });
  const registered = new Set<string>();
  let isStarted = false;
  let closing: Promise<void> | undefined;
  return {
    get epoch() {
      return writer.epoch;
    },
    get sequence() {
      return writer.sequence;
    },
    get state() {
      return writer.state;
    },
    get size() {
      return Array.from(tables.values(), ({ size }) => size).reduce((sum, size) => sum + size, 0);
    },
    collection(definition) {
      const { name } = definition;
      invariant(!isStarted, 'a collection is registered after the start');
      invariant(isCollectionName(name), `"${name}" is not a name for a collection`);
      invariant(!tables.has(name), `the collection ${name} is registered twice`);
      const table = new Table(definition);
      tables.set(name, table);
      registered.add(name);
      return table;
    },
    async start() {
      invariant(!isStarted, 'the store is started twice');
      isStarted = true;
      if (heap === watch) watch.start();
      await writer.start().catch((error: unknown) => {
        watch.stop();
        throw error;
      });
    },
    write: (work) => writer.write(work),
    confirm: async () => {
      if (options.log !== undefined) await writer.write(() => undefined);
    },
    onPublished: (listener) => writer.onPublished(listener),
    checkpoint: () => log.checkpoint(),
    close() {
      watch.stop();
      return (closing ??= writer.close());
    },
    status: () => writer.status(),
    get undeclared() {
      const all = Array.from(tables.values()).filter(({ size }) => size > 0);
      return all.map(({ name }) => name).filter((name) => !registered.has(name));
    },
    exists: async () => files !== undefined && holdsStore(files, tables),
    freshTables: () => new Map(Array.from(tables, ([name, table]) => [name, table.fresh()])),
  };
}

/** The log on the files, or one in memory where there are none. */
function logOf(
  options: StoreOptions & Pick<FileLogOptions, 'onNotice'>,
  tables: Map<string, AnyTable>,
): CommitLog {
  const { files, random } = options;
  if (files === undefined) return memoryLog(random);
  const defaults = { spareBytes: limits.spareBytes, machine: systemMachine };
  return new FileLog({ ...defaults, ...options, files }, tables);
}
