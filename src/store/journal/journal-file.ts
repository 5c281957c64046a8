import { isExhausted, writeAll, type Files, type OpenFile } from '../disk/files.ts';
import { encodeLine, journalName, manifestBody, type LineBody, type Manifest } from './journal-format.ts';

/** A journal that this process made and appends to. Each line is durable when `append` resolves. */
export class JournalFile {
  readonly manifest: Manifest;
  readonly name: string;
  /** The CRC-32 of the last line. */
  chain = 0;
  /** Where the next line begins. */
  size = 0;
  /** Where the spaces end that were written ahead. */
  #padded = 0;
  readonly #file: OpenFile;

  private constructor(file: OpenFile, manifest: Manifest) {
    this.#file = file;
    this.manifest = manifest;
    this.name = journalName(manifest.journal);
  }

  /**
   * Makes a journal with its manifest under a temporary name, syncs it, and gives it its own name, which is durable
   * after the next sync of the directory. `mark` keeps the temporary name apart from those of other processes.
   */
  static async create(files: Files, manifest: Manifest, mark: string): Promise<JournalFile> {
    const temporary = `${journalName(manifest.journal)}.${mark}.tmp`;
    const file = await files.open(temporary, 'journal');
    try {
      const journal = new JournalFile(file, manifest);
      const { bytes, chain } = encodeLine(manifestBody(manifest), 0);
      await writeAll(file, bytes, 0);
      await file.sync();
      await files.renameNew(temporary, journal.name);
      journal.size = bytes.length;
      journal.chain = chain;
      return journal;
    } catch (error) {
      await file.close().catch(() => undefined);
      await files.remove(temporary).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Appends one line. Where it goes beyond what was written ahead, `extend` is asked first. Returns false where there
   * is no room, and then nothing was written.
   * @throws any other error, after which it is unknown what is on the disk
   */
  async append(body: LineBody, extend: () => Promise<boolean>): Promise<boolean> {
    const { bytes, chain } = encodeLine(body, this.chain);
    if (this.size + bytes.length > this.#padded && !(await extend())) return false;
    if (!(await this.#tryWrite(bytes))) return false;
    await this.#file.sync();
    this.chain = chain;
    this.size += bytes.length;
    return true;
  }

  /**
   * Writes spaces ahead, whose place later lines take: a line that changes no metadata of the file costs the disk half
   * as much to sync. Returns false where there is no room.
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

  /** Writes after the last line. Where there is no room for all of it, cuts it off again and returns false. */
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
