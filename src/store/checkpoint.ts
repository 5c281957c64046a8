import type { Files } from './files.ts';
import type { Manifest } from './journal-format.ts';
import { snapshotName, writeSnapshot } from './snapshot.ts';
import type { AnyTable } from './table.ts';

/** Every collection at one moment, on its way into snapshots. */
export type Checkpoint = ReturnType<typeof viewTables>;

/** Views `tables` as they are now. `journal`: the number of the journal that goes on from here, not yet used. */
export function viewTables(files: Files, tables: Iterable<AnyTable>, through: number, journal: number) {
  const sources = Array.from(tables, (table) => ({ name: table.name, nextId: table.nextId, view: table.view() }));
  /** What a manifest lists from now on. */
  const collections: Manifest['collections'] = new Map(
    sources.map(({ name, nextId }) => [name, { through, file: true, nextId }]),
  );

  /**
   * Writes one snapshot after the other to a temporary file, synced, that `publish` renames: so the room that the older
   * one took is free for the next. Lets the views go, and returns the size of all in bytes.
   */
  async function write(epoch: string, publish: (from: string, to: string) => Promise<void>) {
    let bytes = 0;
    try {
      for (const { name, nextId, view } of sources) {
        const header = { epoch, through, revision: view.revision, nextId };
        // Not the name that another process would use: should we be frozen and replaced, we rename only our own file.
        const temporary = `${snapshotName(name)}.${journal}.tmp`;
        bytes += await writeSnapshot(files, temporary, name, header, view);
        await publish(temporary, snapshotName(name));
      }
      return bytes;
    } finally {
      for (const { view } of sources) view.close();
    }
  }

  return { collections, write };
}
