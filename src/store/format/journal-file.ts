import { isExhausted, writeAll, type Files, type OpenFile } from '../disk/files.ts';
import type { Group } from '../log.ts';
import {
  encodeLine,
  groupBody,
  journalName,
  manifestBody,
  type EncodedLine,
  type Manifest,
} from './journal.ts';

/** A journal that this process appends to. Each line is durable when `append` resolves. */
export class JournalFile {
  readonly manifest: Manifest;
  readonly name: string;
  size = 0;
  #chain = 0;
  #padded = 0;
  readonly #file: OpenFile;

  private constructor(file: OpenFile, manifest: Manifest) {
    this.#file = file;
    this.manifest = manifest;
    this.name = journalName(manifest.journal);
  }

  /**
   * Creates a journal with only its manifest. Its name is durable after the next sync of the
   * directory.
   * @throws if a journal with this number exists
   */
  static async create(files: Files, manifest: Manifest): Promise<JournalFile> {
    const file = await files.open(journalName(manifest.journal), 'journal');
    const journal = new JournalFile(file, manifest);
    try {
      const { bytes, chain } = encodeLine(manifestBody(manifest), 0);
      await writeAll(file, bytes, 0);
      await file.sync();
      journal.size = bytes.length;
      journal.#chain = chain;
      return journal;
    } catch (error) {
      await file.close().catch(() => undefined);
      await files.remove(journal.name).catch(() => undefined);
      throw error;
    }
  }

  encode({ first, commits }: Group): EncodedLine {
    return encodeLine(groupBody(first, commits), this.#chain);
  }

  holds({ bytes }: EncodedLine): boolean {
    return this.size + bytes.length <= this.#padded;
  }

  /**
   * Appends one line. Returns false, and leaves nothing of it, if there is no room.
   * @throws any other error; then the state of the disk is unknown
   */
  async append({ bytes, chain }: EncodedLine): Promise<boolean> {
    if (!(await this.#tryWrite(bytes))) return false;
    await this.#file.sync();
    this.#chain = chain;
    this.size += bytes.length;
    return true;
  }

  /**
   * Writes spaces ahead, which later lines replace. A line that does not change the file's size
   * takes less than half the time to sync. Returns false if there is no room.
   */
  async pad(bytes: number): Promise<boolean> {
    const isWritten = await this.#tryWrite(Buffer.alloc(bytes, ' '));
    if (isWritten) this.#padded = this.size + bytes;
    return isWritten;
  }

  /** Closes the file. Every line is synced by now, so an error does not matter. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => undefined);
  }

  /** Writes after the last line. If there is no room, cuts the rest off and returns false. */
  async #tryWrite(bytes: Uint8Array): Promise<boolean> {
    try {
      await writeAll(this.#file, bytes, this.size);
      return true;
    } catch (error) {
      if (!isExhausted(error)) throw error;
      this.#padded = 0;
      await this.#file.truncate(this.size);
      return false;
    }
  }
}
