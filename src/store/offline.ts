import { CairnError } from '../base/errors.ts';
import { newEpoch } from './journal.ts';
import { errorCode, readWhole, replaceFile, type Files } from './files.ts';
import { JournalFile } from './journal-file.ts';
import { JournalReader, journalNumbers } from './journal-format.ts';
import { acquireLock, lockName, type LockOptions } from './lock.ts';
import { findStore, replay, unfinishedName } from './recovery.ts';
import { Room } from './room.ts';
import { readSnapshot, snapshotName, viewTables, writeSnapshots } from './snapshot.ts';
import { StoreDamageError } from './store.ts';
import { countsOf, type AnyTable } from './table.ts';

export interface OfflineOptions extends Omit<LockOptions, 'files'> {
  /** What lets callers in: it is backed up, but comes back neither by a restore nor by a repair with losses. */
  readonly credentials: {
    readonly collections: readonly string[];
    /** Files beside the store's own, such as keys. */
    readonly files: readonly string[];
  };
  /** Takes a few words for each step that may take long. */
  readonly onProgress?: (step: string) => void;
}

export interface CopyOptions extends OfflineOptions {
  /**
   * Gives the copy a new epoch, so that no entity tag from before matches, and no credentials: ids that were given
   * since the backup are given anew, to others.
   */
  readonly restores: boolean;
}

/** How often a running store is read anew because a checkpoint came between. */
const attemptsMax = 5;

/**
 * Writes what the store in `source` holds to `target`, as after a clean stop. A server may go on writing to `source`:
 * the copy is the state after one of its commits. Returns also which other files went `alongside`.
 * @throws CairnError `write_refused` where `target` is not empty, `not_found` where `source` is no store;
 *   StoreDamageError; LockedError
 */
export async function copyStore(source: Files, target: Files, options: CopyOptions) {
  const { restores, credentials, onProgress = () => undefined } = options;
  await refuseFilled(target);
  onProgress(`reading ${source.directory}`);
  const { tables, epoch, sequence } = await readStore(source, () => new Map());
  // Only now: a slip in the name of the source makes no directory.
  if (epoch === undefined) throw new CairnError('not_found', `Cannot read ${source.directory}: no store is there`);
  return whileLocked(target, options, async () => {
    // Another process may have had it meanwhile.
    await refuseFilled(target);
    await (await target.open(unfinishedName, 'exclusive')).close();
    await target.syncDirectory();
    if (restores) emptyTables(tables, credentials.collections, sequence);
    const alongside: string[] = [];
    for (const name of restores ? [] : credentials.files) {
      const bytes = await readWhole(source, name);
      if (bytes === undefined) continue;
      await replaceFile(target, name, bytes);
      alongside.push(name);
    }
    const first = { epoch: restores ? newEpoch(options.random) : epoch, sequence, journal: 1 };
    await writeStore(target, tables, first, options);
    await target.remove(unfinishedName);
    await target.syncDirectory();
    onProgress(`checking ${target.directory}`);
    await readStore(target, () => new Map());
    return { collections: countsOf(tables), alongside };
  });
}

async function refuseFilled(files: Files): Promise<void> {
  // A volume of its own has the second one from the start.
  const empty = new Set([lockName, 'lost+found']);
  if ((await files.list()).every((name) => name.startsWith('.') || empty.has(name))) return;
  throw new CairnError('write_refused', `Cannot write to ${files.directory}: it is not empty`);
}

/** Takes the records out of some of the tables; their ids stay taken. */
export function emptyTables(tables: Map<string, AnyTable>, names: readonly string[], sequence: number): void {
  for (const table of names.flatMap((name) => tables.get(name) ?? [])) {
    const empty = table.fresh();
    empty.advance(sequence, table.nextId);
    tables.set(table.name, empty);
  }
}

/**
 * Does what a start does, and writes nothing. A server may be running: where its checkpoint removes a file before its
 * turn, all is read again.
 * @throws StoreDamageError
 */
export async function readStore(files: Files, makeTables: () => Map<string, AnyTable>) {
  for (let attempt = 1; ; attempt += 1) {
    const running = (await files.list()).includes(lockName);
    try {
      const tables = makeTables();
      const found = await findStore(files, tables);
      return { tables, epoch: found.epoch, ...(await replay(found, tables)) };
    } catch (error) {
      const passing = error instanceof StoreDamageError || errorCode(error) === 'ENOENT';
      if (!running || !passing || attempt === attemptsMax) throw error;
    }
  }
}

/**
 * Does what a start does, and writes nothing. Where a start would stop, it goes on and looks at each file by itself.
 * `damage` is empty where a start would succeed; `notices` are what it would say or do, one sentence each.
 * @param makeTables makes the registered tables, empty
 */
export async function checkFiles(files: Files, makeTables: () => Map<string, AnyTable>) {
  const damage = new Map<string, StoreDamageError>();
  const collect = (error: unknown): undefined => {
    if (!(error instanceof StoreDamageError)) throw error;
    damage.set(error.message, error);
  };
  let read = makeTables();
  const store = await readStore(files, () => (read = makeTables())).catch(collect);
  if (store === undefined) {
    const names = await files.list();
    for (const table of read.values()) {
      if (names.includes(snapshotName(table.name))) await readSnapshot(files, table.fresh()).catch(collect);
    }
    for (const number of journalNumbers(names)) await readThrough(files, number).catch(collect);
  }
  const notices: string[] = [];
  const { closed, sequence, torn } = store ?? { closed: true };
  if (!closed) notices.push(`the store is running, or was not stopped; its last commit is ${sequence}`);
  if (torn !== undefined) {
    notices.push(`${torn.file}, byte ${torn.offset}: a write that was cut short, or is under way, is left out`);
  }
  return { damage: [...damage.values()], notices, collections: countsOf(store?.tables ?? new Map()) };
}

async function readThrough(files: Files, number: number): Promise<void> {
  for await (const _ of (await JournalReader.open(files, number)).groups());
}

/** Runs `work` while the directory is ours, and makes it where it is absent. @throws LockedError */
export async function whileLocked<T>(files: Files, options: OfflineOptions, work: () => Promise<T>): Promise<T> {
  const lock = await acquireLock({ ...options, files });
  return work().finally(() => lock.release());
}

/**
 * Writes tables to a directory as a clean stop leaves them. Until the journal is there, the last step, a start refuses
 * what it finds.
 */
export async function writeStore(
  files: Files,
  tables: ReadonlyMap<string, AnyTable>,
  { epoch, sequence, journal }: { readonly epoch: string; readonly sequence: number; readonly journal: number },
  { random, onProgress = () => undefined }: OfflineOptions,
): Promise<void> {
  onProgress(`writing ${files.directory}`);
  const room = new Room(files, random, 0);
  const checkpoint = viewTables(tables.values(), epoch, sequence, 0);
  await writeSnapshots(files, room, checkpoint, (from, to) => files.rename(from, to));
  const { collections } = checkpoint;
  const manifest = { journal, closed: true, epoch, after: sequence, predecessor: undefined, collections };
  const last = await JournalFile.begin(files, manifest, room);
  await last.publish().then(() => files.syncDirectory()).finally(() => last.close());
}
