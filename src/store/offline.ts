import type { Clock } from '../base/clock.ts';
import { CairnError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import { Checkpoint } from './checkpoint.ts';
import { newEpoch } from './file-journal.ts';
import { StoreDamageError } from './failures.ts';
import { errorCode, type Files, readWhole, replaceFile } from './files.ts';
import { JournalFile } from './journal-file.ts';
import { Lock, type ProcessTable } from './lock.ts';
import { recover } from './recovery.ts';
import type { AnyTable } from './table.ts';

export interface OfflineOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly processes: ProcessTable;
  /** Takes a sentence for each step that may take long. */
  readonly onProgress?: (step: string) => void;
}

export interface CopyOptions extends OfflineOptions {
  /** Other files to copy where they are there, such as keys. */
  readonly alongside: readonly string[];
}

export interface CopyReport {
  readonly collections: readonly { readonly name: string; readonly records: number }[];
  readonly sequence: number;
  /** The other files that were copied. */
  readonly alongside: readonly string[];
}

/** How often a copy of a running store is begun anew because a checkpoint came between. */
const attemptsMax = 5;

/**
 * Writes what the store in `source` holds to `target`, as after a clean stop. A server may go on writing to `source`:
 * the copy is the state after one of its commits.
 * @throws CairnError `write_refused` where `target` is not empty; StoreDamageError; LockedError
 */
export function backupDirectory(source: Files, target: Files, options: CopyOptions): Promise<CopyReport> {
  return copy(source, target, options, (epoch) => epoch);
}

/**
 * Writes what the backup in `source` holds to `target`, with a new epoch, so that no entity tag from before matches.
 * @throws CairnError `write_refused` where `target` is not empty; StoreDamageError; LockedError
 */
export function restoreDirectory(source: Files, target: Files, options: CopyOptions): Promise<CopyReport> {
  return copy(source, target, options, () => newEpoch(options.random));
}

async function copy(
  source: Files,
  target: Files,
  options: CopyOptions,
  epochFrom: (epoch: string) => string,
): Promise<CopyReport> {
  const { onProgress = () => undefined } = options;
  await target.prepare();
  try {
    if (!(await target.list()).every((name) => name.startsWith('.'))) {
      throw new CairnError('write_refused', `Cannot write to ${target.directory}: it is not empty`);
    }
    const lock = await Lock.acquire({ ...options, files: target });
    try {
      onProgress(`reading ${source.directory}`);
      const { tables, epoch, sequence } = await readRunning(source);
      const alongside: string[] = [];
      for (const name of options.alongside) {
        const bytes = await readWhole(source, name);
        if (bytes === undefined) continue;
        await replaceFile(target, name, bytes);
        alongside.push(name);
      }
      await writeStore(target, tables, { epoch: epochFrom(epoch), sequence, journal: 1 }, options);
      onProgress(`checking ${target.directory}`);
      await recover(target, new Map());
      const collections = Array.from(tables.values(), ({ name, size }) => ({ name, records: size }));
      return { collections, sequence, alongside };
    } finally {
      await lock.release();
    }
  } finally {
    await target.close();
  }
}

/** Reads a store that may be running. A checkpoint may remove a file before its turn: then all is read again. */
async function readRunning(
  source: Files,
): Promise<{ tables: ReadonlyMap<string, AnyTable>; epoch: string; sequence: number }> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const tables = new Map<string, AnyTable>();
      const { epoch, sequence } = await recover(source, tables);
      if (epoch === undefined) throw new CairnError('not_found', `Cannot read ${source.directory}: no store is there`);
      return { tables, epoch, sequence };
    } catch (error) {
      const passing = error instanceof StoreDamageError || errorCode(error) === 'ENOENT';
      if (!passing || attempt === attemptsMax) throw error;
    }
  }
}

/**
 * Writes tables to a directory as a clean stop leaves them. Until the journal is there, the last step, a start refuses
 * what it finds.
 */
export async function writeStore(
  files: Files,
  tables: ReadonlyMap<string, AnyTable>,
  { epoch, sequence, journal }: { readonly epoch: string; readonly sequence: number; readonly journal: number },
  { clock, onProgress = () => undefined }: Pick<OfflineOptions, 'clock' | 'onProgress'>,
): Promise<void> {
  onProgress(`writing ${files.directory}`);
  const checkpoint = new Checkpoint(files, tables.values(), sequence, journal);
  await checkpoint.write(clock, epoch);
  const { collections } = checkpoint;
  const manifest = { journal, closed: true, epoch, after: sequence, predecessor: undefined, collections };
  const last = await JournalFile.begin(files, manifest, () => Promise.resolve(false));
  try {
    await checkpoint.publish();
    await last.publish();
    await files.syncDirectory();
  } finally {
    await last.close();
  }
}
