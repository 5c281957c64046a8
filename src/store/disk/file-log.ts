import { CairnError, invariant, readReason } from '../../base/errors.ts';
import { limits } from '../../base/limits.ts';
import { JournalFile } from '../format/journal-file.ts';
import { journalName, listing, type Snapshot } from '../format/journal.ts';
import { takeImage, writeSnapshots, type Image, type SnapshotTarget } from '../format/snapshot.ts';
import {
  lost,
  newEpoch,
  noFigures,
  refuseMisfit,
  storageFull,
  won,
  type Answer,
  type CommitLog,
  type Group,
  type LogClient,
  type LogProblem,
} from '../log.ts';
import type { Tables } from '../memory/table.ts';
import { recover, type LastGroup, type Recovered } from '../recovery/recover.ts';
import { Fence } from './fence.ts';
import { isExhausted, writeAll, type Files } from './files.ts';
import type { LockOptions } from './lock.ts';

export interface FileLogOptions extends LockOptions {
  /**
   * Bytes that stay free in addition to what the next checkpoint needs. Up to a quarter of them is
   * written ahead of the journal's lines.
   */
  readonly spareBytes: number;
}

/** The room first written ahead of a journal's lines. */
const aheadBytesMin = 16 * 1024;
const olderMax = 8;
/** Up to this size, a store gets a checkpoint when it has been idle for a while. */
const restBytesMax = 256 * 1024;
const restMs = 5000;
/** The interval of checks for a due checkpoint while nothing is written. */
const lookMs = 1000;
/** The shortest time between two checkpoints of an idle store or on a full disk. */
const pauseMs = 30_000;

type Older = Pick<JournalFile, 'name' | 'size'>;

/**
 * The log on files. `open` reads the directory and begins a journal, `append` makes groups durable
 * in it, a checkpoint replaces it with snapshots and a new journal, and `close` does so for good.
 *
 * The disk counts as full if a journal has to grow and there is less room than the next checkpoint
 * needs, or if it cannot grow. Then growing writes are refused, and others go into the reserve.
 * Each further group checks again. So a checkpoint always succeeds in the end.
 */
export class FileLog implements CommitLog {
  readonly #options: FileLogOptions;
  readonly #files: Files;
  readonly #tables: Tables;
  readonly #fence: Fence;
  readonly #target: SnapshotTarget;
  #client: LogClient | undefined;
  #stopLooking: () => void = () => undefined;
  #epoch = '';
  /** Sequence number of the last commit, and of the last one that all snapshots hold. */
  #sequence = 0;
  #through = 0;
  #number = 0;
  /** `undefined` until there is room to begin one. */
  #journal: JournalFile | undefined;
  #older: Older[] = [];
  /** Journals that no snapshot needs, until a new one follows them. */
  #passed: string[] = [];
  #snapshots: ReadonlyMap<string, Snapshot> = new Map();
  #isFull = false;
  #appendedAt = 0;
  /** The running checkpoint, the start of the last one, and the size at which the next is due. */
  #checkpointing: Promise<void> | undefined;
  #checkpointBeganAt = -Infinity;
  #dueBytes = 0;
  #checkpointedAt: number | undefined;
  readonly #figures = { ...noFigures };

  /** The tables are empty until the log is open. */
  constructor(options: FileLogOptions, tables: Tables) {
    const { files, random } = options;
    this.#options = options;
    this.#files = files;
    this.#tables = tables;
    this.#fence = new Fence(options);
    const mark = random(4).toString('hex');
    this.#target = { files, mark, guard: (work) => this.#fence.guard(work) };
  }

  async open(client: LogClient) {
    try {
      await this.#fence.acquire();
      const found = await this.#recover();
      const last = found.needed.at(-1);
      if (last !== undefined) await rewrite(this.#files, last);
      if (found.epoch === undefined) await this.#begin();
      // Without room, an existing store can still be read.
      else if (!(await this.#tryToBegin())) this.#noteFull(true);
      this.#client = client;
      this.#fence.onFailure = (error) => client.onFailure(error);
      if (this.#older.length > olderMax) await this.checkpoint();
      this.#stopLooking = this.#options.machine.every(lookMs, () => this.#checkpointIfDue());
      return { epoch: this.#epoch, sequence: this.#sequence };
    } catch (error) {
      await this.#journal?.close();
      await this.#fence.release();
      if (!isExhausted(error)) throw error;
      const message = `Cannot open the store: there is no room in ${this.#files.directory}`;
      throw new CairnError('storage_full', message, { cause: error });
    }
  }

  async append(group: Group): Promise<Answer> {
    const { clock } = this.#options;
    const began = clock.elapsed();
    try {
      const refusal = refuseMisfit(group, this.#sequence);
      if (refusal !== undefined) return refusal;
      // Room decides about the batch, so it runs again.
      if (this.#isFull && (await this.#makeRoom())) return lost;
      if (group.commits.length === 0) return won;
      const answer = this.#journal ? await this.#write(this.#journal, group) : this.#refuse();
      if (answer !== won) return answer;
      // A process that took the directory over may not have seen the group.
      this.#fence.assertHeld();
      this.#appendedAt = clock.elapsed();
      this.#figures.appendMs += this.#appendedAt - began;
      this.#sequence += group.commits.length;
      return won;
    } catch (error) {
      this.#fence.fail(error);
      return { outcome: 'unknown', error };
    } finally {
      this.#checkpointIfDue();
    }
  }

  /** Writes a group, on a full disk into the reserve. */
  async #write(journal: JournalFile, group: Group): Promise<Answer> {
    const line = journal.encode(group);
    if (!this.#isFull && !journal.holds(line) && !(await this.#extend(journal))) {
      this.#noteFull(true);
      return lost;
    }
    if (await journal.append(line)) return won;
    this.#noteFull(true);
    return this.#refuse();
  }

  /** After a disk error that loses nothing, postpones the checkpoint with a notice. */
  checkpoint(): Promise<void> {
    this.#checkpointing ??= this.#checkpoint().finally(() => (this.#checkpointing = undefined));
    return this.#checkpointing;
  }

  async close(answered: Promise<boolean>): Promise<void> {
    const isPublished = await answered;
    await this.#checkpointing?.catch(() => undefined);
    this.#stopLooking();
    // No write waits any more, so a failure is only reported.
    this.#fence.onFailure = () => undefined;
    try {
      if (isPublished) await this.#seal();
    } catch (error) {
      this.#options.onNotice(`the stop could not be marked as clean: ${readReason(error)}`);
    }
    await this.#journal?.close();
    await this.#fence.release();
  }

  async #seal(): Promise<void> {
    if (this.#fence.failure !== undefined || this.#journal === undefined) return;
    if (this.#through < this.#sequence) await this.#writeSnapshots(await this.#rotate());
    const sealed = await this.#create(true);
    await sealed.close();
    await this.#remove([...this.#older, this.#journal].map(({ name }) => name));
  }

  get problem(): LogProblem | undefined {
    return this.#isFull ? { state: 'full', reason: this.#reason } : undefined;
  }

  status() {
    const checkpointedAt = this.#checkpointedAt;
    return { ...this.#figures, journalBytes: this.#journalBytes, checkpointedAt };
  }

  async #recover(): Promise<Recovered> {
    const { clock, onNotice, random } = this.#options;
    if (!this.#files.syncsDirectories) {
      onNotice('this Node denies syncs of directories: files are written through');
    }
    const found = await recover(this.#files, this.#tables);
    await this.#remove(found.temporary);
    if (found.badLastLine !== undefined) {
      const { file, offset } = found.badLastLine;
      onNotice(
        `${file} ends at byte ${offset} in a line that does not fit: it is taken for a write ` +
          'that was cut short, and left out',
      );
    }
    if (!found.closed) {
      onNotice(`the last stop was not clean: ${found.replayed} commits were replayed`);
    }
    const { epoch = newEpoch(random), sequence, through, needed } = found;
    this.#epoch = epoch;
    this.#sequence = sequence;
    this.#through = through;
    this.#number = found.number;
    this.#snapshots = found.snapshots;
    if (through === sequence) this.#checkpointedAt = clock.now();
    this.#older = needed.map(({ name, offset, bytes }) => ({ name, size: offset + bytes.length }));
    // The first checkpoint, which is due at once, writes the snapshots.
    this.#dueBytes = needed.length > 0 ? 0 : this.#checkpointBytes;
    this.#passed = [...found.passed];
    return found;
  }

  /** Begins a journal after the existing ones, which stay as long as the snapshots need them. */
  async #begin(): Promise<void> {
    this.#journal = await this.#create(false);
    await this.#remove(this.#passed.splice(0));
  }

  /** Returns false if there is no room. */
  async #tryToBegin(): Promise<boolean> {
    try {
      await this.#begin();
      return true;
    } catch (error) {
      if (this.#fence.failure !== undefined || !isExhausted(error)) throw error;
      return false;
    }
  }

  /** Begins a new journal between two groups. Returns all records at that moment. */
  async #rotate(): Promise<Image> {
    const old = this.#journal;
    invariant(old !== undefined, 'the log is used before it is open');
    // If the last checkpoint failed and nothing was written since, the journal is still empty.
    if (this.#older.length === 0 || old.manifest.after < this.#sequence) {
      this.#journal = await this.#create(false);
      this.#older.push(old);
      await old.close();
    }
    return takeImage(this.#tables.values(), this.#epoch, this.#sequence);
  }

  async #checkpoint(): Promise<void> {
    if (this.#through === this.#sequence || this.#journal === undefined) return;
    const { clock, onNotice } = this.#options;
    invariant(this.#client !== undefined, 'the log is used before it is open');
    this.#checkpointBeganAt = clock.elapsed();
    try {
      await this.#writeSnapshots(await this.#client.between(() => this.#rotate()));
      this.#figures.checkpoints += 1;
    } catch (error) {
      if (this.#fence.failure !== undefined) throw error;
      this.#dueBytes = this.#journalBytes + limits.checkpointBytesMin;
      onNotice(`a checkpoint was postponed: ${readReason(error)}`, 'error');
      this.#figures.checkpointFailures += 1;
    }
  }

  async #writeSnapshots(image: Image): Promise<void> {
    this.#snapshots = await writeSnapshots(this.#target, image);
    this.#through = image.through;
    this.#dueBytes = this.#checkpointBytes;
    this.#checkpointedAt = this.#options.clock.now();
    await this.#remove(this.#older.splice(0).map(({ name }) => name));
  }

  #checkpointIfDue(): void {
    const now = this.#options.clock.elapsed();
    const hasPaused = now - this.#checkpointBeganAt >= pauseMs;
    const isAtRest = now - this.#appendedAt >= restMs && this.#snapshotBytes <= restBytesMax;
    const isWorthIt = this.#through < this.#sequence && hasPaused && (this.#isFull || isAtRest);
    // A failure of the log is reported to its client.
    if (isWorthIt || this.#journalBytes > this.#dueBytes) this.checkpoint().catch(() => undefined);
  }

  /**
   * Makes the next journal, durably. If that fails, its file must be gone for good before the last
   * journal continues, because the file would end it.
   */
  async #create(closed: boolean): Promise<JournalFile> {
    this.#fence.assertHeld();
    const journal = this.#number + 1;
    const collections = listing(this.#tables.values(), this.#snapshots);
    const manifest = { journal, closed, epoch: this.#epoch, after: this.#sequence, collections };
    const made = await JournalFile.create(this.#files, manifest).catch(async (error: unknown) => {
      await this.#fence.guard(async () => {
        if (this.#files.identity(journalName(journal)) !== undefined) throw error;
        await this.#files.syncDirectory();
      });
      throw error;
    });
    try {
      await this.#fence.guard(() => this.#files.syncDirectory());
    } catch (error) {
      await made.close();
      throw error;
    }
    this.#number = journal;
    return made;
  }

  async #makeRoom(): Promise<boolean> {
    // The running checkpoint may need all free space.
    if (this.#checkpointing !== undefined) return false;
    const journal = this.#journal;
    const hasRoom = journal
      ? await this.#extend(journal)
      : (await this.#hasRoom()) && (await this.#tryToBegin());
    if (hasRoom) this.#noteFull(false);
    return hasRoom;
  }

  /**
   * Writes room ahead of a journal's lines: little at first, to spare flash, and doubling the
   * journal as it grows. Returns false if there is no room.
   */
  async #extend(journal: JournalFile): Promise<boolean> {
    const bytes = Math.min(Math.max(aheadBytesMin, journal.size), this.#options.spareBytes / 4);
    return (await this.#hasRoom()) && journal.pad(bytes);
  }

  async #hasRoom(): Promise<boolean> {
    // The next checkpoint replaces the files that this one has written so far.
    if (this.#checkpointing !== undefined) return true;
    // If the system does not tell, the write itself finds out.
    const free = await this.#files.free().catch(() => Infinity);
    return free >= this.#neededBytes;
  }

  #noteFull(isFull: boolean): void {
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    const { onNotice } = this.#options;
    if (!isFull) return onNotice('there is room on the disk again: all writes are accepted');
    const accepted = this.#journal === undefined ? 'nothing is' : 'only removals are';
    const room = `${this.#neededBytes} bytes are free in ${this.#files.directory}`;
    onNotice(`the disk is full: ${accepted} written until ${room}`, 'error');
  }

  #refuse(): Answer {
    return { outcome: 'refused', error: storageFull(this.#reason) };
  }

  get #reason(): string {
    return `the disk has no room left: ${this.#neededBytes} bytes have to be free`;
  }

  get #neededBytes(): number {
    const largest = Math.max(0, ...this.#snapshotSizes);
    return largest + this.#journalBytes + this.#options.spareBytes;
  }

  get #journalBytes(): number {
    return this.#older.reduce((sum, { size }) => sum + size, this.#journal?.size ?? 0);
  }

  get #checkpointBytes(): number {
    return Math.max(limits.checkpointBytesMin, this.#snapshotBytes);
  }

  get #snapshotBytes(): number {
    return this.#snapshotSizes.reduce((sum, size) => sum + size, 0);
  }

  get #snapshotSizes(): number[] {
    return Array.from(this.#snapshots.values(), ({ size }) => size);
  }

  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#files.remove(name).catch(() => undefined);
  }
}

/**
 * Writes the last group again in place. After an unclean stop it may not have been synced, or its
 * sync may have failed, which is reported only once. Before this, no response may depend on it.
 */
async function rewrite(files: Files, { name, offset, bytes }: LastGroup): Promise<void> {
  const file = await files.open(name, 'rewrite');
  try {
    await writeAll(file, bytes, offset);
    await file.sync();
  } finally {
    await file.close();
  }
}
