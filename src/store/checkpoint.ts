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
   * Writes temporary files, synced, and lets the views go. Returns their size in bytes. When it fails, nothing is left
   * behind, and the snapshots that are there stay as they are.
   */
  async write(clock: Clock, epoch: string): Promise<number> {
    let bytes = 0;
    try {
      for (const { name, nextId, view } of this.#sources) {
        const header = { epoch, through: this.through, revision: view.revision, nextId };
        bytes += await writeSnapshot(this.#files, clock, this.#temporary(name), name, header, view);
      }
      return bytes;
    } catch (error) {
      for (const { name } of this.#sources) await this.#files.remove(this.#temporary(name)).catch(() => undefined);
      throw error;
    } finally {
      for (const { view } of this.#sources) view.close();
    }
  }

  /** Puts what was written in the place of the older snapshots; durable after the next sync of the directory. */
  async publish(): Promise<void> {
    for (const { name } of this.#sources) await this.#files.rename(this.#temporary(name), snapshotName(name));
  }

  /** What a manifest lists from now on. */
  get collections(): Manifest['collections'] {
    return new Map(this.#sources.map(({ name, nextId }) => [name, { through: this.through, file: true, nextId }]));
  }

  /** Not the name that another process would use: should we be frozen and replaced, we rename only our own file. */
  #temporary(name: string): string {
    return `${snapshotName(name)}.${this.#journal}.tmp`;
  }
}
