import { writeAll, type Files, type Line } from '../disk/files.ts';
import { JournalFile } from '../format/journal-file.ts';
import { journalNumbers, type ListedCollection, type Manifest } from '../format/journal.ts';
import type { AnyTable } from '../memory/table.ts';
import { snapshotsOf, writeSnapshots, type Image, type Target } from '../format/snapshot.ts';
import type { Recovered } from './recover.ts';

/**
 * Writes a whole store: the snapshots, and then a journal that needs no other one. A first
 * start, clean stop, backup, restore and repair writes a store in this way. Until the
 * journal is durable, the former journals hold everything that the former snapshots lack;
 * where there were none, snapshots without a journal are refused (N2). Returns the journal,
 * and the sizes of the snapshots that were written.
 * @param journal.number above that of every other journal
 * @param journal.isCurrent whether the snapshots that are there hold all of `image`
 *   already
 */
export async function writeStore(
  target: Target,
  image: Image,
  { number, closed, isCurrent }: { number: number; closed: boolean; isCurrent: boolean },
): Promise<{ journal: JournalFile; sizes: number[] }> {
  const { epoch, through: after, views } = image;
  // Before the first commit there is nothing that a snapshot could hold.
  const sizes = isCurrent || after === 0 ? [] : await writeSnapshots(target, image);
  const collections = listing(views, () => ({ through: after, file: after > 0 }));
  const manifest = { journal: number, closed, epoch, after, collections };
  return { journal: await begin(target.files, manifest), sizes };
}

/**
 * Goes on with a store as it was found: begins a journal that follows the former ones, which stay
 * as long as the snapshots need them. After a stop that was not clean, the last group may not have been synced, or
 * the sync may have failed, which nobody is told a second time. So the same bytes are written
 * again, where they are, before anything follows them.
 */
export async function continueStore(
  { files }: Target,
  tables: readonly AnyTable[],
  epoch: string,
  { journals, needed, sequence: after, snapshots }: Recovered,
): Promise<JournalFile> {
  const last = needed.at(-1);
  if (last !== undefined) await rewrite(files, last.name, last.last);
  const number = (journals.at(-1) ?? 0) + 1;
  const collections = listing(tables, (name) => {
    const { through = 0, size = 0 } = snapshots.get(name) ?? {};
    return { through, file: size > 0 };
  });
  return begin(files, { journal: number, closed: false, epoch, after, collections });
}

async function rewrite(files: Files, name: string, { offset, bytes }: Line): Promise<void> {
  const file = await files.open(name, 'rewrite');
  try {
    await writeAll(file, bytes, offset);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function begin(files: Files, manifest: Manifest): Promise<JournalFile> {
  const journal = await JournalFile.create(files, manifest);
  try {
    await files.syncDirectory();
  } catch (error) {
    await journal.close();
    throw error;
  }
  return journal;
}

/** The collections of a manifest, with the snapshots that they have. */
export function listing(
  collections: Iterable<Pick<AnyTable, 'name' | 'nextId' | 'isServers'>>,
  snapshotOf: (name: string) => Pick<ListedCollection, 'through' | 'file'> | undefined,
): Map<string, ListedCollection> {
  const none = { through: 0, file: false };
  return new Map(
    Array.from(collections, ({ name, nextId, isServers: server }) => {
      const { through, file } = snapshotOf(name) ?? none;
      return [name, { through, file, nextId, server }];
    }),
  );
}

/** Whether the directory holds a store of these collections, or parts of one. */
export async function holdsStore(
  files: Files,
  tables: ReadonlyMap<string, AnyTable>,
): Promise<boolean> {
  const names = await files.list();
  return journalNumbers(names).length > 0 || snapshotsOf(names, tables).length > 0;
}
