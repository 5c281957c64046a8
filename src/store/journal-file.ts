import { CairnError } from '../base/errors.ts';
import { isExhausted, temporaryName, writeAll, type Files, type OpenFile } from './files.ts';
import { encodeLine, journalName, manifestBody, type LineBody, type Manifest } from './journal-format.ts';
import type { Room } from './room.ts';

/** How much of a replayed journal is gathered for one write. */
const copyBytes = 1024 * 1024;

/**
 * One journal that this process made and appends to. It is written under a temporary name; once it is
 * published and the directory synced, each `append` is durable when it resolves.
 */
export class JournalFile {
  readonly manifest: Manifest;
  readonly name: string;
  /** The CRC-32 of the last line. */
  chain = 0;
  /** Bytes so far: where the next line begins. */
  size = 0;
  /** Where the spaces end that were written ahead. */
  #padded = 0;
  readonly #files: Files;
  readonly #file: OpenFile;
  readonly #room: Room;
  #copied: Buffer[] = [];
  #copiedBytes = 0;

  private constructor(files: Files, file: OpenFile, manifest: Manifest, room: Room) {
    this.#files = files;
    this.#file = file;
    this.#room = room;
    this.manifest = manifest;
    this.name = journalName(manifest.journal);
  }

  /** Begins a journal, under its temporary name. */
  static async begin(files: Files, manifest: Manifest, room: Room): Promise<JournalFile> {
    const file = await files.open(temporaryName(journalName(manifest.journal)), 'journal');
    const journal = new JournalFile(files, file, manifest, room);
    await journal.copy(manifestBody(manifest));
    return journal;
  }

  /** Adds a line before the journal is published. */
  async copy(body: LineBody): Promise<void> {
    const { bytes, chain } = encodeLine(body, this.chain);
    this.chain = chain;
    this.#copied.push(bytes);
    this.#copiedBytes += bytes.length;
    if (this.#copiedBytes >= copyBytes) await this.#writeCopied();
  }

  /** Makes the file durable and gives it its own name, which is durable after the next sync of the directory. */
  async publish(): Promise<void> {
    await this.#writeCopied();
    await this.#file.sync();
    await this.#files.renameNew(temporaryName(this.name), this.name);
  }

  /**
   * Appends one line and syncs it. Where the spaces run out that were written ahead, more are written first: a line
   * that takes their place changes no metadata of the file, and so costs the disk half as much to sync.
   * @throws CairnError `storage_full` when the disk refused, what it had taken is cut off again and the reserve is
   *   spent; any other error leaves unknown what is on the disk
   */
  async append(body: LineBody): Promise<void> {
    const { bytes, chain } = encodeLine(body, this.chain);
    const { padding } = this.#room;
    try {
      if (this.size + bytes.length > this.#padded) {
        await this.#room.look(this.size);
        this.#padded = this.size + padding.length;
        await writeAll(this.#file, padding, this.size).catch((error: unknown) => {
          // There may be room for the line all the same.
          if (!isExhausted(error)) throw error;
        });
      }
      await writeAll(this.#file, bytes, this.size);
    } catch (error) {
      if (!isExhausted(error)) throw error;
      this.#padded = 0;
      await this.#file.truncate(this.size);
      await this.#room.spend();
      throw new CairnError('storage_full', 'Cannot write: the disk has no room left', { cause: error });
    }
    await this.#file.sync();
    this.chain = chain;
    this.size += bytes.length;
  }

  /** Gives back what was written ahead: nothing is appended any more. */
  async end(): Promise<void> {
    await this.#file.truncate(this.size).catch(() => undefined);
    await this.close();
  }

  /** Removes a journal that was not published. */
  async discard(): Promise<void> {
    await this.close();
    await this.#files.remove(temporaryName(this.name)).catch(() => undefined);
  }

  /** Everything is synced by now: whether the system closes the file well is all the same. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => undefined);
  }

  async #writeCopied(): Promise<void> {
    const bytes = Buffer.concat(this.#copied);
    await this.#room.twice(() => writeAll(this.#file, bytes, this.size));
    this.size += bytes.length;
    this.#copied = [];
    this.#copiedBytes = 0;
  }
}
