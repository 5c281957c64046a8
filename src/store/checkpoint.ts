import type { Clock } from '../base/system.ts';
import type { Files } from './files.ts';
import type { Manifest } from './journal-format.ts';
import { snapshotName, writeSnapshot } from './snapshot.ts';
import type { StoredRecord, View } from './store.ts';
import type { AnyTable } from './table.ts';

/** Every collection at one moment, on its way into snapshots. */
export class Checkpoint {
  /** The last sequence that is in it. */
  readonly through: number;
  readonly #files: Files;
  readonly #journal: number;
  readonly #sources: readonly { readonly name: string; readonly nextId: number; readonly view: View<StoredRecord> }[];

  /** Views `tables` as they are now. `journal`: the number of the journal that goes on from here, not yet used. */
  constructor(files: Files, tables: Iterable<AnyTable>, through: number, journal: number) {
    this.#files = files;
    this.through = through;
    this.#journal = journal;
    this.#sources = Array.from(tables, (table) => ({ name: table.name, nextId: table.nextId, view: table.view() }));
  }

  /**
   * Writes one snapshot after the other to a temporary file, synced, that `publish` renames: so the room that the older
   * one took is free for the next. Lets the views go, and returns the size of all in bytes.
   */
  async write(clock: Clock, epoch: string, publish: (from: string, to: string) => Promise<void>): Promise<number> {
    let bytes = 0;
    try {
      for (const { name, nextId, view } of this.#sources) {
        const header = { epoch, through: this.through, revision: view.revision, nextId };
        // Not the name that another process would use: should we be frozen and replaced, we rename only our own file.
        const temporary = `${snapshotName(name)}.${this.#journal}.tmp`;
        bytes += await writeSnapshot(this.#files, clock, temporary, name, header, view);
        await publish(temporary, snapshotName(name));
      }
      return bytes;
    } finally {
      for (const { view } of this.#sources) view.close();
    }
  }

  /** What a manifest lists from now on. */
  get collections(): Manifest['collections'] {
    return new Map(this.#sources.map(({ name, nextId }) => [name, { through: this.through, file: true, nextId }]));
  }
}
