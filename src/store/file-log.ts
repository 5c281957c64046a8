import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { isExhausted, replaceFile, type Files } from './disk/files.ts';
import { DirectoryLock, type LockOptions } from './disk/lock.ts';
import { JournalFile } from './journal/journal-file.ts';
import { groupBody, journalName } from './journal/journal-format.ts';
import { newEpoch, storageFull, won, type Answer, type Group, type Log, type LogEvents } from './log.ts';
import type { AnyTable } from './memory/table.ts';
import { recover, type Recovered } from './recovery/recovery.ts';
import { imageOf, writeSnapshots, type Image, type Target } from './recovery/snapshot.ts';
import { listing, writeStore } from './recovery/write-store.ts';

export interface FileLogOptions extends LockOptions {
  /**
   * How many bytes stay free beside what the next checkpoint needs; a quarter of them is written ahead of the
   * journal's lines.
   */
  readonly spareBytes: number;
}

/** How often a full disk is looked at, at most. */
const roomCheckMs = 1000;
/** How often a checkpoint is tried on a full disk: what was removed leaves the files with the next one. */
const fullCheckpointMs = 30_000;

/** The log on files: lock, recovery, journals, checkpoints, and the order in which all of that reaches the disk. */
export class FileLog implements Log {
  readonly #options: FileLogOptions;
  readonly #files: Files;
  readonly #tables: Map<string, AnyTable>;
  readonly #target: Target;
  /** No other process appends to this log. */
  readonly isDue = false;
  readonly isCurrent = true;
  #events: LogEvents | undefined;
  #lock: DirectoryLock | undefined;
  #journal: JournalFile | undefined;
  #sequence = 0;
  /** The last commit that the snapshots hold. */
  #through = 0;
  /** The journals before the current one that are needed until the next checkpoint, and their size. */
  #older: string[] = [];
  #olderBytes = 0;
  #largestSnapshot = 0;
  /** What the running checkpoint has written of a snapshot that has not its name yet. */
  #unpublishedBytes = 0;
  /** How large the journals may become before a checkpoint is due, and when the last one was begun. */
  #checkpointAt = 0;
  #checkpointedAt = Number.NEGATIVE_INFINITY;
  #isFull = false;
  #roomCheckedAt = 0;
  #failure: unknown;
  readonly #status = { appendMs: 0, checkpoints: 0, checkpointFailures: 0, checkpointMs: 0, checkpointedAt: 0 };

  /** The tables are empty until the log is open. */
  constructor(options: FileLogOptions, tables: Map<string, AnyTable>) {
    this.#options = options;
    this.#files = options.files;
    this.#tables = tables;
    const mark = options.random(4).toString('hex');
    this.#target = { files: options.files, mark, guard: (work) => this.#guard(work) };
  }

  async open(events: LogEvents): Promise<{ epoch: string; sequence: number }> {
    const { onNotice, random } = this.#options;
    try {
      this.#lock = await DirectoryLock.acquire(this.#options, () => this.#fail(lockLost()));
      if (!this.#files.syncsDirectories) onNotice('this Node denies syncs of directories: files are written through');
      const found = await recover(this.#files, this.#tables);
      const { epoch = newEpoch(random), sequence, closed, isCurrent, journals } = found;
      await this.#remove(found.temporary);
      await this.#keepTorn(found);
      const image = imageOf(this.#tables.values(), epoch, sequence);
      const number = (journals.at(-1) ?? 0) + 1;
      const { journal, sizes } = await writeStore(this.#target, image, { number, closed: false, isCurrent });
      this.#journal = journal;
      this.#sequence = sequence;
      this.#noteSnapshots(sequence, isCurrent ? found.snapshotSizes : sizes);
      await this.#remove(journals.map(journalName));
      if (!closed) onNotice(`the last stop was not clean: ${found.replayed} commits were replayed`);
      this.#events = events;
      return { epoch, sequence };
    } catch (error) {
      await this.#lock?.release();
      if (!isExhausted(error)) throw error;
      const message = `Cannot open the store: there is no room in ${this.#files.directory}`;
      throw new CairnError('storage_full', message, { cause: error });
    }
  }

  async ready(): Promise<[]> {
    if (this.#isFull) await this.checkRoom();
    return [];
  }

  async append({ first, commits }: Group): Promise<Answer> {
    const started = this.#options.clock.elapsed();
    try {
      const line = groupBody(first, commits);
      const isWritten = await this.#guard(() =>
        this.#current.append(line, async () => this.#isFull || this.#extend()));
      if (!isWritten) {
        this.#setFull(true);
        return { outcome: 'refused', error: storageFull() };
      }
      // A process that replaced this one meanwhile may not have seen the group.
      this.#fence();
    } catch (error) {
      return { outcome: 'unknown', error };
    }
    this.#status.appendMs += this.#options.clock.elapsed() - started;
    this.#sequence += commits.length;
    return won;
  }

  async confirm(): Promise<Answer> {
    return won;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  async checkRoom(): Promise<void> {
    const now = this.#options.clock.elapsed();
    if (now - this.#roomCheckedAt < roomCheckMs) return;
    this.#roomCheckedAt = now;
    if (await this.#hasRoom()) this.#setFull(false);
  }

  get checkpointDue(): boolean {
    const elapsed = this.#options.clock.elapsed() - this.#checkpointedAt;
    const frees = this.#isFull && this.#through < this.#sequence && elapsed >= fullCheckpointMs;
    return frees || this.#bytes > this.#checkpointAt;
  }

  /** Where an error of the disk loses nothing, the checkpoint is put off with a notice. */
  async checkpoint(between: <T>(work: () => Promise<T>) => Promise<T>): Promise<void> {
    if (this.#through === this.#sequence) return;
    const { clock, onNotice } = this.#options;
    this.#checkpointedAt = clock.elapsed();
    try {
      const old = this.#current;
      const image = await between(() => this.#rotate());
      if (old !== this.#current) await old.end();
      const sizes = await writeSnapshots(this.#target, image, (bytes) => (this.#unpublishedBytes = bytes));
      this.#noteSnapshots(image.through, sizes);
      await this.#remove(this.#older.splice(0));
      this.#olderBytes = 0;
      this.#status.checkpoints += 1;
    } catch (error) {
      if (this.#failure !== undefined) throw error;
      this.#checkpointAt = this.#bytes + limits.checkpointBytesMin;
      onNotice(`a checkpoint was put off: ${reasonOf(error)}`, 'error');
      this.#status.checkpointFailures += 1;
    }
    this.#status.checkpointMs = clock.elapsed() - this.#checkpointedAt;
  }

  /** Leaves the snapshots as the data and a journal that says so, unless the log has failed. */
  async close(): Promise<void> {
    const last = this.#current;
    try {
      if (this.#failure === undefined) {
        const { journal, epoch } = last.manifest;
        const image = imageOf(this.#tables.values(), epoch, this.#sequence);
        const isCurrent = this.#through === this.#sequence;
        const written = await writeStore(this.#target, image, { number: journal + 1, closed: true, isCurrent });
        await written.journal.close();
        await this.#remove([...this.#older, last.name]);
      }
    } catch (error) {
      this.#options.onNotice(`the stop could not be marked as clean: ${reasonOf(error)}`);
    }
    await last.close();
    await this.#lock?.release();
  }

  status() {
    return { journalBytes: this.#bytes, ...this.#status };
  }

  get #current(): JournalFile {
    invariant(this.#journal !== undefined, 'the log is used before it is open');
    return this.#journal;
  }

  /** The size of all journals. */
  get #bytes(): number {
    return this.#olderBytes + this.#current.size;
  }

  #noteSnapshots(through: number, sizes: readonly number[]): void {
    this.#through = through;
    this.#status.checkpointedAt = this.#options.clock.now();
    this.#largestSnapshot = Math.max(0, ...sizes);
    this.#checkpointAt = Math.max(limits.checkpointBytesMin, sizes.reduce((sum, size) => sum + size, 0));
  }

  /** Keeps what a torn write left, before the journal goes that ends in it. */
  async #keepTorn({ torn }: Recovered): Promise<void> {
    if (torn === undefined) return;
    const { file, offset, bytes } = torn;
    const name = file.replace('.jsonl', '.torn');
    await replaceFile(this.#files, name, bytes);
    this.#options.onNotice(
      `${file} ends at byte ${offset} in a line that does not fit: taken for a write that was cut short; ` +
        `its ${bytes.length} bytes are kept in ${name}`,
    );
  }

  /** Goes on in a new journal, and views everything at the seam. */
  async #rotate(): Promise<Image> {
    const old = this.#current;
    const { epoch, journal, after } = old.manifest;
    // Else the last checkpoint has failed, and nothing was written since.
    if (this.#older.length === 0 || after < this.#sequence) {
      const collections = listing(this.#tables.values(), this.#through);
      const manifest = { journal: journal + 1, closed: false, epoch, after: this.#sequence, collections };
      this.#fence();
      this.#journal = await JournalFile.create(this.#files, manifest, this.#target.mark);
      this.#older.push(old.name);
      this.#olderBytes += old.size;
      await this.#guard(() => this.#files.syncDirectory());
    }
    return imageOf(this.#tables.values(), epoch, this.#sequence);
  }

  /** Whether as much is free as the next checkpoint needs. */
  async #hasRoom(): Promise<boolean> {
    // Where that cannot be told, the write itself tells.
    const free = await this.#files.free().catch(() => Number.POSITIVE_INFINITY);
    return free + this.#unpublishedBytes >= this.#largestSnapshot + this.#bytes + this.#options.spareBytes;
  }

  async #extend(): Promise<boolean> {
    return (await this.#hasRoom()) && this.#current.pad(this.#options.spareBytes / 4);
  }

  #setFull(isFull: boolean): void {
    this.#roomCheckedAt = this.#options.clock.elapsed();
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    const { onNotice } = this.#options;
    if (isFull) onNotice('the disk is full: only removals are taken until there is room', 'error');
    else onNotice('there is room on the disk again: everything is taken');
  }

  /** Does what only the holder of the directory may. After any error nothing is written any more. */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    this.#fence();
    try {
      return await work();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  /** Fails where another process has the directory, or something has failed before. */
  #fence(): void {
    if (this.#lock?.isHeld !== true) this.#fail(lockLost());
    const next = this.#journal && journalName(this.#journal.manifest.journal + 1);
    if (next !== undefined && this.#files.identity(next) !== undefined) {
      this.#fail(new Error('Cannot write: another process has begun a journal'));
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Only the first failure counts. */
  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#events?.onFailure(error);
  }

  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#files.remove(name).catch(() => undefined);
  }
}

function lockLost(): Error {
  return new Error('Cannot write: the lock file is not ours any more');
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
