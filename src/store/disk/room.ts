import { storageFull, type Answer, type LogProblem } from '../log.ts';
import type { JournalFile } from '../format/journal-file.ts';
import type { Files } from './files.ts';

/** What is first written ahead of a journal's lines. */
const aheadBytesMin = 16 * 1024;

interface RoomOptions {
  readonly files: Files;
  /** Bytes that stay free beside what is needed. */
  readonly spareBytes: number;
  /** Called with what an operator should know. */
  readonly onNotice: (notice: string, level?: 'error') => void;
}

/** What takes room on the disk. */
export interface RoomUser {
  /** The bytes that have to be free, for the next checkpoint or to finish the start. */
  readonly neededBytes: number;
  /** Whether a checkpoint is being written. What it has written so far is room for the next one. */
  readonly isWriting: boolean;
  /** Whether removals are accepted while there is no room. */
  readonly acceptsRemovals: boolean;
}

/**
 * The room on the disk. While less is free than what is needed, transactions that grow are
 * refused, so that a checkpoint always succeeds in the end.
 */
export class Room {
  isFull = false;
  readonly #options: RoomOptions;
  readonly #user: RoomUser;

  constructor(options: RoomOptions, user: RoomUser) {
    this.#options = options;
    this.#user = user;
  }

  get problem(): LogProblem | undefined {
    return this.isFull ? { state: 'full', reason: this.#reason } : undefined;
  }

  /** Notes that a write met a full disk, and returns the answer to its callers. */
  refuse(): Answer {
    this.note(true);
    return { outcome: 'refused', error: storageFull(this.#reason) };
  }

  /** Whether as much is free as is needed. */
  async isThere(): Promise<boolean> {
    if (this.#user.isWriting) return true;
    // Where the system does not tell, the write itself finds out.
    const free = await this.#options.files.free().catch(() => Infinity);
    return free >= this.#neededBytes;
  }

  /**
   * Writes ahead of a journal's lines: little at first, since flash wears off, and as much as the
   * journal has when it grows. Returns false where there is no room.
   */
  async extend(journal: JournalFile): Promise<boolean> {
    if (this.isFull) return true;
    const bytes = Math.max(aheadBytesMin, journal.size);
    return (await this.isThere()) && journal.pad(Math.min(bytes, this.#options.spareBytes / 4));
  }

  /** Tells an operator when the disk gets full, and when there is room again. */
  note(isFull: boolean): void {
    if (isFull === this.isFull) return;
    this.isFull = isFull;
    const { onNotice, files } = this.#options;
    if (!isFull) return onNotice('there is room on the disk again: all writes are accepted');
    const accepted = this.#user.acceptsRemovals ? 'only removals are' : 'nothing is';
    const room = `${this.#neededBytes} bytes are free in ${files.directory}`;
    onNotice(`the disk is full: ${accepted} written until ${room}`, 'error');
  }

  get #neededBytes(): number {
    return this.#user.neededBytes + this.#options.spareBytes;
  }

  get #reason(): string {
    return `the disk has no room left: ${this.#neededBytes} bytes have to be free`;
  }
}
