import { CairnError } from '../../base/errors.ts';
import { errorCode, readWhole, replaceFile, type Files } from '../disk/files.ts';
import { DirectoryLock, lockName, waitUntilGone, type LockOptions } from '../disk/lock.ts';
import { newEpoch } from '../log.ts';
import { countsOf, type AnyTable } from '../memory/table.ts';
import { StoreDamageError, type StoreStatus } from '../store.ts';
import { recover, unfinishedName, type Recovered } from './recovery.ts';
import { imageOf, type Image } from './snapshot.ts';
import { writeStore } from './write-store.ts';

export interface OfflineOptions extends Omit<LockOptions, 'files' | 'onNotice'> {
  /** What lets callers in. It is backed up, but comes back neither by a restore nor by a repair with losses. */
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

/** What a directory holds, after it was checked or written. */
export interface Held {
  readonly collections: StoreStatus['collections'];
  /** What is wrong with the store, or was; empty where a start would succeed. */
  readonly damage: readonly StoreDamageError[];
}

/** How far the next id jumps where it cannot be known which ids were given: none may ever mean two things. */
const idsSkipped = 1_000_000;

/** How often a running store is read anew because a checkpoint came between. */
const attemptsMax = 5;

/**
 * Does what a start does, and writes nothing. Where a start would be refused, goes on and finds all that is wrong.
 * `notices` are what else it would say or do, one sentence each.
 */
export async function checkStore(
  files: Files,
  makeTables: () => Map<string, AnyTable>,
): Promise<Held & { readonly notices: readonly string[] }> {
  try {
    const { tables, closed, sequence, torn } = await readStore(files, makeTables);
    const notices: string[] = [];
    if (!closed) notices.push(`the store is running, or was not stopped; its last commit is ${sequence}`);
    if (torn !== undefined) {
      notices.push(`${torn.file}, byte ${torn.offset}: a write that was cut short, or is under way, is left out`);
    }
    return { damage: [], notices, collections: countsOf(tables) };
  } catch (error) {
    if (!(error instanceof StoreDamageError)) throw error;
    const damage: StoreDamageError[] = [];
    if (error.repair === undefined) damage.push(error);
    else await recover(files, makeTables(), (each) => damage.push(each));
    return { damage, notices: [], collections: [] };
  }
}

/**
 * Writes what the store in `source` holds to the empty directory `target`, as after a clean stop. A server may go on
 * writing to `source`: the copy is the state after one of its commits. Returns also which files went `alongside`.
 * @throws CairnError `write_refused` where `target` is not empty, `not_found` where `source` is no store;
 *   StoreDamageError; LockedError
 */
export async function copyStore(
  source: Files,
  target: Files,
  options: CopyOptions,
): Promise<Copied> {
  const copy = await readCopy(source, options);
  return writeCopy(target, copy, options);
}

/** What a copy holds, and the names of the files beside the records. */
export interface Copied extends Held {
  readonly alongside: readonly string[];
}

export function copiedOf({ image, alongside }: Copy): Copied {
  const collections = image.views.map(({ name, size }) => ({ name, records: size }));
  return { damage: [], collections, alongside: [...alongside.keys()] };
}

/** What is copied: the records, and files beside them. */
export interface Copy {
  readonly image: Image;
  readonly alongside: ReadonlyMap<string, Buffer>;
}

/** Reads what `copyStore` copies, and writes nothing. @throws CairnError `not_found`, StoreDamageError */
export async function readCopy(source: Files, options: CopyOptions): Promise<Copy> {
  const { restores, credentials, random } = options;
  options.onProgress?.(`reading ${source.directory}`);
  const { tables, epoch, sequence } = await readStore(source, () => new Map());
  // Before the target is made, for the sake of a slip in the name of the source.
  if (epoch === undefined) throw new CairnError('not_found', `Cannot read ${source.directory}: no store is there`);
  if (restores) endCredentials(tables, options, sequence);
  const image = imageOf(tables.values(), restores ? newEpoch(random) : epoch, sequence);
  return { image, alongside: await readFiles(source, restores ? [] : credentials.files) };
}

async function readFiles(source: Files, names: readonly string[]): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for (const name of names) {
    const bytes = await readWhole(source, name);
    if (bytes !== undefined) found.set(name, bytes);
  }
  return found;
}

/**
 * Writes what can be read of a damaged or hand-edited store to the empty directory `target`, with a new epoch. Where
 * anything is lost, ids are skipped, so that none is given again, and credentials end: who they stand for may be among
 * what is lost. Writes nothing where nothing is damaged.
 * @throws CairnError `write_refused` where `target` is not empty; LockedError; StoreDamageError for what no repair can
 *   mend
 */
export async function repairStore(
  source: Files,
  target: Files,
  makeTables: () => Map<string, AnyTable>,
  options: OfflineOptions,
): Promise<Held & { readonly isLossy: boolean }> {
  const { credentials, random, onProgress = () => undefined } = options;
  await waitUntilGone({ ...options, files: source, onNotice: onProgress });
  onProgress(`reading ${source.directory}`);
  const damage: StoreDamageError[] = [];
  const tables = makeTables();
  const { sequence } = await recover(source, tables, (each) => damage.push(each));
  const isLossy = damage.some(({ repair }) => repair === 'loses something');
  if (damage.length > 0) {
    if (isLossy) endCredentials(tables, options, sequence);
    for (const table of isLossy ? tables.values() : []) {
      table.advance(0, Math.min(table.nextId + idsSkipped, 2 ** 52));
    }
    const image = imageOf(tables.values(), newEpoch(random), sequence);
    const alongside = await readFiles(source, isLossy ? [] : credentials.files);
    await writeCopy(target, { image, alongside }, options);
  }
  return { damage, isLossy, collections: countsOf(tables) };
}

/** Takes the records out of the tables that let callers in; their ids stay taken. */
function endCredentials(tables: Map<string, AnyTable>, { credentials }: OfflineOptions, sequence: number): void {
  for (const table of credentials.collections.flatMap((name) => tables.get(name) ?? [])) {
    const emptied = table.fresh();
    emptied.advance(sequence, table.nextId);
    tables.set(table.name, emptied);
  }
}

/**
 * Reads a store as a start does, and writes nothing. A server may be running: where its checkpoint removes a file
 * before its turn, all is read again.
 * @throws StoreDamageError
 */
async function readStore(
  files: Files,
  makeTables: () => Map<string, AnyTable>,
): Promise<Recovered & { readonly tables: Map<string, AnyTable> }> {
  for (let attempt = 1; ; attempt += 1) {
    const isRunning = (await files.list()).includes(lockName);
    const tables = makeTables();
    try {
      return { tables, ...(await recover(files, tables)) };
    } catch (error) {
      const isPassing = error instanceof StoreDamageError || errorCode(error) === 'ENOENT';
      if (!isRunning || !isPassing || attempt === attemptsMax) throw error;
    }
  }
}

/**
 * Writes a copy to an empty directory. A start refuses the directory until all of it is there.
 * @throws CairnError `write_refused` where it is not empty; LockedError
 */
export async function writeCopy(files: Files, copy: Copy, options: OfflineOptions): Promise<Copied> {
  const { image, alongside } = copy;
  const { random, onProgress = () => undefined } = options;
  const lock = await DirectoryLock.acquire({ ...options, files, onNotice: onProgress }, () => undefined);
  try {
    // A volume of its own has `lost+found` from the start. Files with a dot in front are not the store's.
    if (!(await files.list()).every((name) => /^(\..*|lock|lost\+found)$/.test(name))) {
      throw new CairnError('write_refused', `Cannot write to ${files.directory}: it is not empty`);
    }
    await (await files.open(unfinishedName, 'exclusive')).close();
    await files.syncDirectory();
    for (const [name, bytes] of alongside) await replaceFile(files, name, bytes);
    onProgress(`writing ${files.directory}`);
    const guard = <T>(work: () => Promise<T>): Promise<T> => work();
    const target = { files, mark: random(4).toString('hex'), unpublishedBytes: 0, guard };
    await (await writeStore(target, image, { number: 1, closed: true })).journal.close();
    await files.remove(unfinishedName);
    await files.syncDirectory();
    onProgress(`checking ${files.directory}`);
    await recover(files, new Map());
    return copiedOf(copy);
  } finally {
    await lock.release();
  }
}
