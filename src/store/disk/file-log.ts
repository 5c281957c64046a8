import { CairnError, invariant, reasonOf } from '../../base/errors.ts';
import { limits } from '../../base/limits.ts';
import { isExhausted, readChunks, type Files } from './files.ts';
import { DirectoryLock, type LockOptions } from './lock.ts';
import { JournalFile } from '../format/journal-file.ts';
import { groupBody, journalName } from '../format/journal.ts';
import {
  newEpoch,
  noFigures,
  storageFull,
  won,
  type Answer,
  type Group,
  type CommitLog,
  type LogClient,
  type LogProblem,
} from '../log.ts';
import type { AnyTable } from '../memory/table.ts';
import { recover } from '../recovery/recover.ts';
import { imageOf, writeSnapshots, type Image, type Target } from '../format/snapshot.ts';
import { listing, writeStore } from '../recovery/write-store.ts';

export interface FileLogOptions extends LockOptions {
  /**
   * Bytes that stay free beside what the next checkpoint needs. A quarter of them is
   * written ahead of the journal's lines.
   */
  readonly spareBytes: number;
}

/** How often the disk is asked for its free bytes, if it has answered by then. */
const watchMs = 1000;
/** The shortest time between two checkpoints on a full disk (to drop what was removed) or at rest. */
const checkpointPauseMs = 30_000;
/**
 * The time without a write after which a checkpoint makes the JSON files the data, where the
 * files are not larger than this. Larger ones wait until they are worth it.
 */
const restMs = 5000;
const restBytesMax = 8 * 1024 * 1024;

/** The log on files. Controls lock, recovery, journals and checkpoints. */
export class FileLog implements CommitLog {
  readonly #options: FileLogOptions;
  readonly #files: Files;
  readonly #tables: Map<string, AnyTable>;
  readonly #target: Target;
  #isFull = false;
  #client: LogClient | undefined;
  #lock: DirectoryLock | undefined;
  #journal: JournalFile | undefined;
  /** Earlier journals that are needed until the next checkpoint. */
  #older: JournalFile[] = [];
  /** What is left to do of the start, for which there was no room; nothing is written before. */
  #finishStart: (() => Promise<void>) | undefined;
  /** The size of the journals that the start found, until it is finished. */
  #foundBytes = 0;
  #sequence = 0;
  /** Sequence number of the last commit that the snapshots hold. */
  #through = 0;
  #largestSnapshot = 0;
  #snapshotBytes = 0;
  /** When the snapshots were last known to hold everything; only shown. */
  #snapshotsAt: number | undefined;
  /** Size of the journals beyond which a checkpoint is due, and when the last one began. */
  #checkpointAt = Infinity;
  #checkpointBegan = -Infinity;
  /** When the last group was appended. */
  #appendedAt = 0;
  #checkpointing: Promise<void> | undefined;
  #stopWatching: () => void = () => undefined;
  #failure: unknown;
  readonly #status = { ...noFigures };

  /** The tables are empty until the log is open. */
  constructor(options: FileLogOptions, tables: Map<string, AnyTable>) {
    this.#options = options;
    this.#files = options.files;
    this.#tables = tables;
    const mark = options.random(4).toString('hex');
    this.#target = { files: options.files, mark, guard: (work) => this.#guard(work) };
  }

  async open(client: LogClient) {
    const { onNotice, random, machine } = this.#options;
    try {
      this.#lock = await DirectoryLock.acquire(this.#options, () => this.#fail(lockLost()));
      if (!this.#files.syncsDirectories) {
        onNotice('this Node denies syncs of directories: files are written through');
      }
      const found = await recover(this.#files, this.#tables);
      const { epoch = newEpoch(random), sequence, closed, isCurrent, journals } = found;
      await this.#remove(found.temporary);
      if (found.torn !== undefined) {
        const { file, offset } = found.torn;
        onNotice(
          `${file} ends at byte ${offset} in a line that does not fit: it is taken for a write ` +
            'that was cut short, and left out',
        );
      }
      if (!closed) onNotice(`the last stop was not clean: ${found.replayed} commits were replayed`);
      this.#sequence = this.#through = sequence;
      this.#largestSnapshot = Math.max(0, ...found.snapshotSizes);
      const number = (journals.at(-1) ?? 0) + 1;
      const image = imageOf(this.#tables.values(), epoch, sequence);
      this.#finishStart = async () => {
        this.#fence();
        const written = await writeStore(this.#target, image, { number, closed: false, isCurrent });
        this.#journal = written.journal;
        this.#finishStart = undefined;
        this.#foundBytes = 0;
        this.#noteSnapshots(sequence, isCurrent ? found.snapshotSizes : written.sizes);
        await this.#remove(journals.map(journalName));
      };
      await this.#finishStart().catch(async (error: unknown) => {
        // Without room, what is there can be read, unless this is the first start.
        if (found.epoch === undefined || this.#failure !== undefined) throw error;
        if (!isExhausted(error)) throw error;
        for (const name of journals.map(journalName)) {
          for await (const { length } of readChunks(this.#files, name)) this.#foundBytes += length;
        }
        this.#setFull(true);
      });
      this.#client = client;
      let watching: Promise<void> | undefined;
      this.#stopWatching = machine.every(watchMs, () => {
        watching ??= this.#watch().finally(() => (watching = undefined));
      });
      return { epoch, sequence };
    } catch (error) {
      await this.#journal?.close();
      await this.#lock?.release();
      if (!isExhausted(error)) throw error;
      const message = `Cannot open the store: there is no room in ${this.#files.directory}`;
      throw new CairnError('storage_full', message, { cause: error });
    }
  }

  async append(group: Group): Promise<Answer> {
    const answer = await this.#append(group);
    this.#checkpointIfDue();
    return answer;
  }

  checkpoint(): Promise<void> {
    this.#checkpointing ??= this.#checkpoint().finally(() => {
      this.#checkpointing = undefined;
    });
    return this.#checkpointing;
  }

  /** Leaves the snapshots as the data and a journal that says so, unless the log has failed. */
  async close(answered: Promise<void>): Promise<void> {
    await answered;
    await this.#checkpointing?.catch(() => undefined);
    this.#stopWatching();
    // Nobody waits for a write any more, so a failure is only told.
    this.#client = undefined;
    const last = this.#journal;
    try {
      if (this.#failure === undefined && last !== undefined) {
        const image = this.#image();
        const isCurrent = this.#through === this.#sequence;
        const number = last.manifest.journal + 1;
        const { journal } = await writeStore(this.#target, image, {
          number,
          closed: true,
          isCurrent,
        });
        await journal.close();
        await this.#remove([...this.#older, last].map(({ name }) => name));
      }
    } catch (error) {
      this.#options.onNotice(`the stop could not be marked as clean: ${reasonOf(error)}`);
    }
    await last?.close();
    await this.#lock?.release();
  }

  get problem(): LogProblem | undefined {
    return this.#isFull ? { state: 'full', reason: this.#needs } : undefined;
  }

  get #needs(): string {
    return `the disk has no room left: ${this.#neededBytes} bytes have to be free`;
  }

  status() {
    return { journalBytes: this.#bytes, checkpointedAt: this.#snapshotsAt, ...this.#status };
  }

  #between<T>(work: () => Promise<T>): Promise<T> {
    invariant(this.#client !== undefined, 'the log is used before it is open');
    return this.#client.between(work);
  }

  get #current(): JournalFile {
    invariant(this.#journal !== undefined, 'the log is used before it is open');
    return this.#journal;
  }

  async #append({ first, commits }: Group): Promise<Answer> {
    if (commits.length === 0) return won;
    if (this.#finishStart !== undefined) return this.#refused();
    const started = this.#options.clock.elapsed();
    try {
      const line = groupBody(first, commits);
      const isWritten = await this.#guard(() => this.#current.append(line, () => this.#extend()));
      if (!isWritten) return this.#refused();
      // A process that took the directory over meanwhile may not have seen the group.
      this.#fence();
    } catch (error) {
      return { outcome: 'unknown', error };
    }
    this.#status.appendMs += this.#options.clock.elapsed() - started;
    this.#sequence += commits.length;
    this.#appendedAt = this.#options.clock.elapsed();
    return won;
  }

  #refused(): Answer {
    this.#setFull(true);
    return { outcome: 'refused', error: storageFull(this.#needs) };
  }

  #checkpointIfDue(): void {
    const now = this.#options.clock.elapsed();
    const isSmall = this.#snapshotBytes + this.#bytes <= restBytesMax;
    const isAtRest = isSmall && now - this.#appendedAt >= restMs;
    const hasPaused = now - this.#checkpointBegan >= checkpointPauseMs;
    const isWorthIt = this.#through < this.#sequence && hasPaused && (this.#isFull || isAtRest);
    // A failure of the log is reported to the client.
    if (isWorthIt || this.#bytes > this.#checkpointAt) this.checkpoint().catch(() => undefined);
  }

  /** Where an error of the disk loses nothing, the checkpoint is put off with a notice. */
  async #checkpoint(): Promise<void> {
    if (this.#through === this.#sequence) return;
    const { clock, onNotice } = this.#options;
    this.#checkpointBegan = clock.elapsed();
    try {
      const image = await this.#between(() => this.#rotate());
      this.#noteSnapshots(image.through, await writeSnapshots(this.#target, image));
      await this.#remove(this.#older.splice(0).map(({ name }) => name));
      this.#status.checkpoints += 1;
    } catch (error) {
      if (this.#failure !== undefined) throw error;
      this.#checkpointAt = this.#bytes + limits.checkpointBytesMin;
      onNotice(`a checkpoint was put off: ${reasonOf(error)}`, 'error');
      this.#status.checkpointFailures += 1;
    }
    this.#status.checkpointMs = clock.elapsed() - this.#checkpointBegan;
  }

  /** The size of all journals. */
  get #bytes(): number {
    const newest = this.#journal?.size ?? this.#foundBytes;
    return this.#older.reduce((sum, { size }) => sum + size, newest);
  }

  #image(): Image {
    return imageOf(this.#tables.values(), this.#current.manifest.epoch, this.#sequence);
  }

  #noteSnapshots(through: number, sizes: readonly number[]): void {
    this.#through = through;
    this.#snapshotsAt = this.#options.clock.now();
    this.#largestSnapshot = Math.max(0, ...sizes);
    this.#snapshotBytes = sizes.reduce((sum, size) => sum + size, 0);
    this.#checkpointAt = Math.max(limits.checkpointBytesMin, this.#snapshotBytes);
  }

  /** Begins a new journal. Returns all records as they are between the two journals. */
  async #rotate(): Promise<Image> {
    const old = this.#current;
    const { epoch, journal, after } = old.manifest;
    // Where the last checkpoint failed and nothing was written since, the journal is
    // still empty.
    if (this.#older.length === 0 || after < this.#sequence) {
      const collections = listing(this.#tables.values(), this.#through);
      const next = { journal: journal + 1, closed: false, epoch, after: this.#sequence };
      const manifest = { ...next, collections };
      this.#fence();
      this.#journal = await JournalFile.create(this.#files, manifest).catch(async (error) => {
        // It must be gone for good before the former journal goes on.
        await this.#guard(() => this.#files.syncDirectory());
        throw error;
      });
      this.#older.push(old);
      await this.#guard(() => this.#files.syncDirectory());
      await old.close();
    }
    return this.#image();
  }

  /** The bytes that have to be free, for the next checkpoint or to finish the start. */
  get #neededBytes(): number {
    return this.#largestSnapshot + this.#bytes + this.#options.spareBytes;
  }

  /** Whether as much is free as is needed. */
  async #hasRoom(): Promise<boolean> {
    // What a checkpoint has written so far is room for the next one.
    if (this.#checkpointing !== undefined) return true;
    // Where the system does not tell, the write itself finds out.
    const free = await this.#files.free().catch(() => Infinity);
    return free >= this.#neededBytes;
  }

  /** Finds out early that there is little room, or that there is room again, and that it is at rest. */
  async #watch(): Promise<void> {
    const [isBusy, finishStart] = [this.#checkpointing !== undefined, this.#finishStart];
    const hasRoom = await this.#hasRoom();
    if (hasRoom && this.#client !== undefined && finishStart !== undefined) {
      await this.#between(finishStart).catch((error: unknown) => {
        if (!isExhausted(error)) this.#fail(error);
      });
    }
    if (!isBusy) this.#setFull(!hasRoom || this.#finishStart !== undefined);
    if (this.#client !== undefined) this.#checkpointIfDue();
  }

  /** Writes ahead of the journal's lines. Returns false where there is no room. */
  async #extend(): Promise<boolean> {
    if (this.#isFull) return true;
    return (await this.#hasRoom()) && this.#current.pad(this.#options.spareBytes / 4);
  }

  #setFull(isFull: boolean): void {
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    const { onNotice, files } = this.#options;
    if (!isFull) return onNotice('there is room on the disk again: all writes are accepted');
    const accepted = this.#finishStart === undefined ? 'only removals are' : 'nothing is';
    const room = `${this.#neededBytes} bytes are free in ${files.directory}`;
    onNotice(`the disk is full: ${accepted} written until ${room}`, 'error');
  }

  /**
   * Runs work that only the holder of the directory may do. After an error nothing is
   * written.
   */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    this.#fence();
    try {
      return await work();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  /** @throws where another process has the directory, or something has failed before */
  #fence(): void {
    if (this.#lock?.isHeld !== true) this.#fail(lockLost());
    const next = this.#journal && journalName(this.#journal.manifest.journal + 1);
    if (next !== undefined && this.#files.identity(next) !== undefined) {
      this.#fail(new Error('Cannot write: there is a journal that this process has not begun'));
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Only the first failure counts. */
  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#client?.onFailure(error);
  }

  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#files.remove(name).catch(() => undefined);
  }
}

function lockLost(): Error {
  return new Error('Cannot write: the lock file is not ours any more');
}
