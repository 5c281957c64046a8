import { CairnError } from '../base/errors.ts';
import type { Random } from '../base/system.ts';
import { errorCode, isExhausted, readChunks, replaceFile, type Files } from './files.ts';
import { journalName, journalNumbers } from './journal-format.ts';

/** Held ready so that a full disk still takes removals. Its content is random, so that no file system folds it. */
export const reserveName = 'reserve';

export type Room = ReturnType<typeof createRoom>;

/** What is done about room on the disk: as long as there is some, so much is kept that a start succeeds. */
export function createRoom(files: Files, random: Random, reserveBytes: number) {
  /** How much has to stay free beside what a start would write. */
  let spare = reserveBytes;
  /** Temporary files of a process that was killed; they go when there is no room for a start. */
  const left: string[] = [];

  /** What is written of a snapshot that has not its name yet: a start takes its room, if it has to. */
  let snapshotBytes = 0;

  /** Fails where there is no room to write the journals anew, as a start does, and `beside` as much. */
  async function look(journalBytes: number, beside = spare): Promise<void> {
    // Where that cannot be told, the write itself tells.
    const free = await files.free().catch(() => Number.POSITIVE_INFINITY);
    if (free + snapshotBytes >= journalBytes + beside) return;
    throw Object.assign(new Error('Cannot write: a start would find no room'), { code: 'ENOSPC' });
  }

  /** Gives the reserve to what is written from now on. Where it was spent before, it may just be put aside again. */
  async function spend(): Promise<void> {
    if (spare > 0) await files.remove(reserveName).catch(() => undefined);
    spare = 0;
  }

  /** Puts the reserve aside; false where there is no room for it. */
  async function save(journalBytes: number): Promise<boolean> {
    try {
      // As much again: or else the next writes would find it full.
      await look(journalBytes, 2 * reserveBytes);
      await replaceFile(files, reserveName, random(reserveBytes));
    } catch {
      return false;
    }
    spare = reserveBytes;
    return true;
  }

  /** Does `work` once more where the disk is full, without the reserve. */
  async function twice<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isExhausted(error)) throw error;
      for (const name of [...left, reserveName]) await files.remove(name).catch(() => undefined);
      return work();
    }
  }

  /** Says what to do about the `error` of a start, where it is that the disk is full. */
  async function explain(error: unknown): Promise<unknown> {
    if (errorCode(error) !== 'ENOSPC' && errorCode(error) !== 'EDQUOT') return error;
    let bytes = 0;
    for (const number of journalNumbers(await files.list())) {
      for await (const chunk of readChunks(files, journalName(number))) bytes += chunk.length;
    }
    const remedy = `free ${bytes} bytes, and start it again`;
    const message = `Cannot open the store: there is no room in ${files.directory}; ${remedy}`;
    return new CairnError('storage_full', message, { cause: error });
  }

  return { left, look, snapshotting: (bytes: number) => (snapshotBytes = bytes), spend, save, twice, explain };
}
