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
  /** Does some work, and perhaps once more where it fails. */
  readonly #twice: Room['twice'];
  #copied: Buffer[] = [];
  #copiedBytes = 0;

  private constructor(files: Files, file: OpenFile, manifest: Manifest, twice: Room['twice']) {
    this.#twice = twice;
    this.#files = files;
    this.#file = file;
    this.manifest = manifest;
    this.name = journalName(manifest.journal);
    this.#add(manifestBody(manifest));
  }

  /** Begins a journal, under its temporary name. Its writes until it is published go through `twice`. */
  static async begin(files: Files, manifest: Manifest, twice: Room['twice']): Promise<JournalFile> {
    const file = await files.open(temporaryName(journalName(manifest.journal)), 'journal');
    return new JournalFile(files, file, manifest, twice);
  }

  /** Adds a line before the journal is published. */
  async copy(body: LineBody): Promise<void> {
    this.#add(body);
    if (this.#copiedBytes >= copyBytes) await this.#writeCopied();
  }

  /** Makes the file durable and gives it its own name, which is durable after the next sync of the directory. */
  async publish(): Promise<void> {
    await this.#writeCopied();
    await this.#file.sync();
    await this.#files.renameNew(temporaryName(this.name), this.name);
  }

  /**
   * Appends one line and syncs it. Where the spaces run out that were written ahead, `padding` is written first: a line
   * that takes their place changes no metadata of the file, and so costs the disk half as much to sync. Before, `look`
   * may refuse with ENOSPC.
   * @throws CairnError `storage_full` when the disk refused and what it had taken is cut off again; any other error
   *   leaves unknown what is on the disk
   */
  async append(body: LineBody, padding: Buffer, look: () => Promise<void>): Promise<void> {
    const { bytes, chain } = encodeLine(body, this.chain);
    try {
      if (this.size + bytes.length > this.#padded) {
        await look();
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

  #add(body: LineBody): void {
    const { bytes, chain } = encodeLine(body, this.chain);
    this.chain = chain;
    this.#copied.push(bytes);
    this.#copiedBytes += bytes.length;
  }

  async #writeCopied(): Promise<void> {
    const bytes = Buffer.concat(this.#copied);
    await this.#twice(() => writeAll(this.#file, bytes, this.size));
    this.size += bytes.length;
    this.#copied = [];
    this.#copiedBytes = 0;
  }
}
