import { CairnError } from '../base/errors.ts';
import type { Random } from '../base/system.ts';
import { errorCode, isExhausted, readChunks, replaceFile, type Files } from './files.ts';
import { journalName, journalNumbers } from './journal-format.ts';

/** Held ready so that a full disk still takes removals. Its content is random, so that no file system folds it. */
export const reserveName = 'reserve';

/** What is done about room on the disk: as long as there is some, so much is kept that a start succeeds. */
export class Room {
  /** Of the journals since the last checkpoint, the current one left out. */
  olderBytes = 0;
  /** What is written of a snapshot that has not its name yet: a start takes its room, if it has to. */
  snapshotBytes = 0;
  /** Temporary files of a process that was killed; they go when there is no room for a start. */
  left: readonly string[] = [];
  /** What a journal writes ahead of its lines: small against the reserve, which has to have room for it. */
  readonly padding: Buffer;
  readonly #files: Files;
  readonly #random: Random;
  readonly #reserveBytes: number;
  /** How much has to stay free beside what a start would write. */
  #spare: number;

  constructor(files: Files, random: Random, reserveBytes: number) {
    this.#files = files;
    this.#random = random;
    this.#reserveBytes = reserveBytes;
    this.#spare = reserveBytes;
    this.padding = Buffer.alloc(reserveBytes / 4, ' ');
  }

  /** Fails where there is no room to write the journals anew, as a start does, and `beside` as much. */
  async look(journalBytes: number, beside = this.#spare): Promise<void> {
    // Where that cannot be told, the write itself tells.
    const free = await this.#files.free().catch(() => Number.POSITIVE_INFINITY);
    if (free + this.snapshotBytes >= this.olderBytes + journalBytes + beside) return;
    throw Object.assign(new Error('Cannot write: a start would find no room'), { code: 'ENOSPC' });
  }

  /** Gives the reserve to what is written from now on. Where it was spent before, it may just be put aside again. */
  async spend(): Promise<void> {
    if (this.#spare > 0) await this.#files.remove(reserveName).catch(() => undefined);
    this.#spare = 0;
  }

  /** Puts the reserve aside; false where there is no room for it. */
  async save(journalBytes: number): Promise<boolean> {
    try {
      // As much again: or else the next writes would find it full.
      await this.look(journalBytes, 2 * this.#reserveBytes);
      await replaceFile(this.#files, reserveName, this.#random(this.#reserveBytes));
    } catch {
      return false;
    }
    this.#spare = this.#reserveBytes;
    return true;
  }

  /** Does `work` once more where the disk is full, without the reserve. */
  async twice<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isExhausted(error)) throw error;
      for (const name of [...this.left, reserveName]) await this.#files.remove(name).catch(() => undefined);
      return work();
    }
  }

  /** Says what to do about the `error` of a start, where it is that the disk is full. */
  async explain(error: unknown): Promise<unknown> {
    if (errorCode(error) !== 'ENOSPC' && errorCode(error) !== 'EDQUOT') return error;
    let bytes = 0;
    for (const number of journalNumbers(await this.#files.list())) {
      for await (const chunk of readChunks(this.#files, journalName(number))) bytes += chunk.length;
    }
    const remedy = `free ${bytes} bytes, and start it again`;
    const message = `Cannot open the store: there is no room in ${this.#files.directory}; ${remedy}`;
    return new CairnError('storage_full', message, { cause: error });
  }
}
