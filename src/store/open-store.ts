import { oldGenerationBytes } from '../base/heap.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import type { Files } from './disk/files.ts';
import { systemMachine } from './disk/lock.ts';
import { FileLog, type FileLogOptions } from './disk/file-log.ts';
import { memoryLog, type CommitLog } from './log.ts';
import { Memory } from './memory/memory.ts';
import { Tables } from './memory/table.ts';
import { Writer } from './writer.ts';

export interface StoreOptions extends Partial<Omit<FileLogOptions, 'files'>> {
  /** In memory only if absent. */
  readonly files?: Files | undefined;
  /** Creates a log that several processes share, instead of files. */
  readonly log?: ((tables: Tables) => CommitLog) | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The bytes of memory that the records may take; a part of the heap if absent. */
  readonly memoryMax?: number | undefined;
  /**
   * Called once when nothing can be written any more: a sync failed, or the lock is lost. Reads
   * still work. The process should finish its requests and exit with 74 (EX_IOERR).
   */
  readonly onFailure?: (error: unknown) => void;
}

/** Does nothing before `start`. */
export function openStore(options: StoreOptions): Writer {
  const { files, clock, onNotice = () => undefined, onFailure = () => undefined } = options;
  const tables = new Tables();
  const { memoryMax = memoryForRecords() } = options;
  const memory = new Memory(tables, memoryMax, onNotice);
  const log = options.log?.(tables) ?? openLog({ ...options, onNotice }, tables);
  const isShared = options.log !== undefined;
  return new Writer({ log, tables, files, memory, clock, isShared, onFailure });
}

const memoryForRecords = (): number =>
  Math.floor(oldGenerationBytes() * limits.recordsHeapShareMax) - limits.emptyServerBytes;

function openLog(
  options: StoreOptions & Pick<FileLogOptions, 'onNotice'>,
  tables: Tables,
): CommitLog {
  const { files, random } = options;
  if (files === undefined) return memoryLog(random);
  const defaults = { spareBytes: limits.spareBytes, machine: systemMachine };
  return new FileLog({ ...defaults, ...options, files }, tables);
}
