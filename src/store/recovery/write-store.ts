import type { Files } from '../disk/files.ts';
import { JournalFile } from '../format/journal-file.ts';
import { journalNumbers, type ListedCollection } from '../format/journal.ts';
import type { AnyTable } from '../memory/table.ts';
import { snapshotsOf, writeSnapshots, type Image, type Target } from '../format/snapshot.ts';

/**
 * Writes a whole store: the snapshots, and then a journal that needs no other one. Every
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
  const manifest = { journal: number, closed, epoch, after, collections: listing(views, after) };
  const journal = await JournalFile.create(target.files, manifest);
  try {
    await target.files.syncDirectory();
  } catch (error) {
    await journal.close();
    throw error;
  }
  return { journal, sizes };
}

/** The collections of a manifest whose snapshots all end with the commit `through`. */
export function listing(
  collections: Iterable<{ readonly name: string; readonly nextId: number }>,
  through: number,
): Map<string, ListedCollection> {
  const file = through > 0;
  return new Map(Array.from(collections, ({ name, nextId }) => [name, { through, file, nextId }]));
}

/** Whether the directory holds a store of these collections, or parts of one. */
export async function holdsStore(
  files: Files,
  tables: ReadonlyMap<string, AnyTable>,
): Promise<boolean> {
  const names = await files.list();
  return journalNumbers(names).length > 0 || snapshotsOf(names, tables).length > 0;
}
