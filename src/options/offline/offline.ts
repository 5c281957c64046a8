import { CairnError } from '../../base/errors.ts';
import { readWhole, replaceFile, type Files } from '../../store/disk/files.ts';
import { Fence } from '../../store/disk/fence.ts';
import { waitUntilGone, type LockOptions } from '../../store/disk/lock.ts';
import { JournalFile } from '../../store/format/journal-file.ts';
import { listing } from '../../store/format/journal.ts';
import { StoreDamageError } from '../../store/recovery/damage-error.ts';
import {
  takeImage,
  writeSnapshots,
  type Image,
  type SnapshotTarget,
} from '../../store/format/snapshot.ts';
import { newEpoch } from '../../store/log.ts';
import { countRecords, isServerTable, findOrAddTable, Tables } from '../../store/memory/table.ts';
import { readStore, readUndamaged, type ReadStore } from '../../store/recovery/read-store.ts';
import { recover, unfinishedName } from '../../store/recovery/recover.ts';
import type { StoreStatus } from '../../store/store.ts';

export interface OfflineOptions extends Omit<LockOptions, 'files' | 'onNotice'> {
  /**
   * The credentials of callers. A backup includes them. A restore, or a repair that loses data,
   * drops them.
   */
  readonly credentials: {
    readonly collections: readonly string[];
    readonly keyFile: string;
  };
  /** Receives a few words for each slow step. */
  readonly onProgress: (step: string) => void;
}

export interface CopyOptions extends OfflineOptions {
  /**
   * Gives the copy a new epoch, so that no earlier entity tag matches, and no credentials, because
   * ids given since the backup will be given again, to others.
   */
  readonly restores: boolean;
}

/** `tables` are absent if a start would be refused. */
interface Checked extends Inspection {
  readonly notices: readonly string[];
  readonly tables?: ReadStore['tables'];
}

export interface Inspection {
  readonly collections: StoreStatus['collections'];
  /** Empty if a start would succeed. */
  readonly damage: readonly StoreDamageError[];
}

export interface Copy {
  readonly image: Image;
  readonly keys: Buffer | undefined;
}

/** The number of ids skipped if it is unknown which ones were given: none may be given twice. */
const idsSkipped = 1_000_000;

/**
 * Does what a start does, without writing. If a start would be refused, finds all damage. `notices`
 * are sentences for an operator.
 */
export async function checkStore(files: Files, makeTables: () => Tables): Promise<Checked> {
  const notices: string[] = [];
  try {
    const read = await readStore(files, makeTables);
    const { tables, damage, closed, sequence, badLastLine } = read;
    if (damage.length > 0) return { damage, notices, collections: [] };
    if (!closed) {
      notices.push(`the store is running, or was not stopped; its last commit is ${sequence}`);
    }
    if (badLastLine !== undefined) {
      const place = `${badLastLine.file}, byte ${badLastLine.offset}`;
      notices.push(`${place}: a write that was cut short, or is under way, is left out`);
    }
    return { damage, notices, tables, collections: countRecords(tables) };
  } catch (error) {
    if (!(error instanceof StoreDamageError)) throw error;
    return { damage: [error], notices, collections: [] };
  }
}

/**
 * Reads the store in `source`, for a backup or a restore, without writing. A server may go on
 * writing: the copy is the state after one of its commits.
 * @throws CairnError `not_found` if there is no store; StoreDamageError
 */
export async function readCopy(source: Files, options: CopyOptions): Promise<Copy> {
  const { restores, random, onProgress } = options;
  onProgress(`reading ${source.directory}`);
  const read = await readUndamaged(source);
  const epoch = restores ? newEpoch(random) : read.epoch;
  return makeCopy(source, { ...read, epoch }, { ...options, endsCredentials: restores });
}

/**
 * Writes the readable part of a damaged or hand-edited store to the empty directory `target`, with
 * a new epoch. After a loss, skips ids, so that none is given again, and ends credentials, because
 * their users may be lost. Writes nothing if nothing is damaged.
 * @throws CairnError `write_refused` if `target` is not empty; LockedError; StoreDamageError for
 *   damage that cannot be repaired
 */
export async function repairStore(
  source: Files,
  target: Files,
  makeTables: () => Tables,
  options: OfflineOptions,
): Promise<Inspection & { readonly isLossy: boolean }> {
  const { onProgress } = options;
  await waitUntilGone({ ...options, files: source, onNotice: onProgress });
  onProgress(`reading ${source.directory}`);
  // Records that do not fit a declaration are not damaged. Without a journal, only the declaration
  // names the collections.
  const read = await readStore(source, () => {
    const tables = new Tables();
    for (const { name, isServers } of makeTables().values())
      findOrAddTable(tables, name, isServers);
    return tables;
  });
  const { damage, tables } = read;
  const isLossy = damage.some(({ isLoss }) => isLoss);
  for (const table of isLossy ? tables.values() : []) {
    table.advance(0, Math.min(table.nextId + idsSkipped, 2 ** 52));
  }
  if (damage.length > 0) {
    const repaired = { ...read, epoch: newEpoch(options.random) };
    const copy = await makeCopy(source, repaired, { ...options, endsCredentials: isLossy });
    await writeCopy(target, () => Promise.resolve(copy), options);
  }
  return { damage, isLossy, collections: countRecords(tables) };
}

async function makeCopy(
  source: Files,
  { tables, epoch, sequence }: ReadStore & { readonly epoch: string },
  { credentials, endsCredentials }: OfflineOptions & { readonly endsCredentials: boolean },
): Promise<Copy> {
  const keys = endsCredentials ? undefined : await readWhole(source, credentials.keyFile);
  for (const name of endsCredentials ? credentials.collections : []) {
    const table = tables.get(name);
    // Without users, a collection can have the name of a server's table.
    if (table === undefined || table.isServers !== isServerTable(name)) continue;
    table.clear();
    table.advance(sequence, 0);
  }
  return { image: takeImage(tables.values(), epoch, sequence), keys };
}

/**
 * Writes the copy that `read` returns to an empty directory, in the state of a clean stop. A start
 * refuses the directory until the copy is complete, even if reading fails, so that nobody serves an
 * empty store in its place.
 * @throws CairnError `write_refused` if the directory is not empty; LockedError
 */
export async function writeCopy(
  files: Files,
  read: () => Promise<Copy>,
  options: OfflineOptions,
): Promise<Copy> {
  const { random, onProgress, credentials } = options;
  const lockOptions = { ...options, files, onNotice: onProgress };
  const fence = new Fence(lockOptions);
  await fence.acquire();
  try {
    // A new volume has `lost+found`. Files with a leading dot do not belong to the store.
    if (!(await files.list()).every((name) => /^(\..*|lock|unfinished|lost\+found)$/.test(name))) {
      const problem = 'it is not empty; use another directory, or move away what is there';
      throw new CairnError('write_refused', `Cannot write to ${files.directory}: ${problem}`);
    }
    const unfinished = await files.open(unfinishedName, 'replace');
    await unfinished.close();
    await files.syncDirectory();
    const copy = await read();
    const { image, keys } = copy;
    onProgress(`writing ${files.directory}`);
    const mark = random(4).toString('hex');
    const target: SnapshotTarget = { files, mark, guard: (work) => work() };
    const snapshots = await writeSnapshots(target, image);
    if (keys !== undefined) await replaceFile(files, credentials.keyFile, keys);
    const { epoch, through, views } = image;
    const collections = listing(views, snapshots);
    const manifest = { journal: 1, closed: true, epoch, after: through, collections };
    await (await JournalFile.create(files, manifest)).close();
    await files.remove(unfinishedName);
    await files.syncDirectory();
    onProgress(`checking ${files.directory}`);
    await recover(files, new Tables());
    return copy;
  } finally {
    await fence.release();
  }
}
