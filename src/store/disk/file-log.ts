import { CairnError, invariant, reasonOf } from '../../base/errors.ts';
import { JournalFile } from '../format/journal-file.ts';
import { groupBody, journalName } from '../format/journal.ts';
import { imageOf, type Image, type Target } from '../format/snapshot.ts';
import {
  newEpoch,
  refuseMisfit,
  won,
  type Answer,
  type CommitLog,
  type Group,
  type LogClient,
  type LogProblem,
} from '../log.ts';
import type { Tables } from '../memory/table.ts';
import { recover, type Recovered } from '../recovery/recover.ts';
import { continueStore, listing, writeStore } from '../recovery/write-store.ts';
import { Checkpointer, type Journals } from './checkpointer.ts';
import { Fence } from './fence.ts';
import { isExhausted, readChunks, type Files } from './files.ts';
import type { LockOptions } from './lock.ts';
import { Room, type RoomUser } from './room.ts';

export interface FileLogOptions extends LockOptions {
  /**
   * Bytes that stay free beside what the next checkpoint needs. Up to a quarter of them is
   * written ahead of the journal's lines.
   */
  readonly spareBytes: number;
  /** Whether a checkpoint is also due soon after a write, so that the JSON files have it. */
  readonly atRest: boolean;
}

/** How often the disk is asked for its free bytes, if it has answered by then. */
const watchMs = 1000;

/** How many journals a start leaves to the next checkpoint at most. */
const olderMax = 8;

const sizesOf = ({ snapshots }: Recovered): number[] =>
  Array.from(snapshots.values(), ({ size }) => size);

/** A start that has read everything, and has not written snapshots and a journal of its own. */
interface Start {
  readonly found: Recovered;
  readonly epoch: string;
}

/**
 * The log on files: it opens a directory, appends groups to the journal, and closes the
 * directory. When it may write, `fence.ts` says; whether there is room, `room.ts`; when the
 * journal is replaced by snapshots, `checkpointer.ts`.
 */
export class FileLog implements CommitLog, Journals, RoomUser {
  /** Sequence number of the last commit. */
  sequence = 0;
  readonly #options: FileLogOptions;
  readonly #files: Files;
  readonly #tables: Tables;
  readonly #target: Target;
  readonly #fence: Fence;
  readonly #room: Room;
  readonly #checkpointer: Checkpointer;
  #client: LogClient | undefined;
  #journal: JournalFile | undefined;
  /** Earlier journals that are needed until the next checkpoint, and their sizes. */
  #older: Pick<JournalFile, 'name' | 'size' | 'groupBytes'>[] = [];
  /** The start for which there was no room. Nothing is written before it is finished. */
  #start: Start | undefined;
  /** The size of the journals that it found. */
  #foundBytes = 0;
  /** When the last group was appended, and how long all appends took. */
  #appendedAt = 0;
  #appendMs = 0;
  #stopWatching: () => void = () => undefined;

  /** The tables are empty until the log is open. */
  constructor(options: FileLogOptions, tables: Tables) {
    const { files, random } = options;
    this.#options = options;
    this.#files = files;
    this.#tables = tables;
    this.#fence = new Fence(options);
    const mark = random(4).toString('hex');
    this.#target = { files, mark, guard: (work) => this.#fence.guard(work) };
    this.#room = new Room(options, this);
    this.#checkpointer = new Checkpointer(options, this.#target, this);
  }

  async open(client: LogClient) {
    try {
      await this.#fence.acquire();
      const start = await this.#recover();
      const {
        epoch,
        found: { sequence },
      } = start;
      await this.#finish(start).catch((error: unknown) => this.#postpone(start, error));
      this.#client = client;
      this.#fence.onFailure = (error) => client.onFailure(error);
      this.#beginWatch();
      return { epoch, sequence };
    } catch (error) {
      await this.#journal?.close();
      await this.#fence.release();
      if (!isExhausted(error)) throw error;
      const message = `Cannot open the store: there is no room in ${this.#files.directory}`;
      throw new CairnError('storage_full', message, { cause: error });
    }
  }

  async append(group: Group): Promise<Answer> {
    const { first, commits } = group;
    const { clock } = this.#options;
    const began = clock.elapsed();
    try {
      const refusal = refuseMisfit(group, this.sequence);
      if (refusal !== undefined || commits.length === 0) return refusal ?? won;
      if (this.#start !== undefined) return this.#room.refuse();
      const journal = this.#current;
      this.#fence.assertHeld();
      const line = groupBody(first, commits);
      const isWritten = await journal.append(line, () => this.#room.extend(journal));
      if (!isWritten) return this.#room.refuse();
      // A process that took the directory over meanwhile may not have seen the group.
      this.#fence.assertHeld();
      this.#appendedAt = clock.elapsed();
      this.#appendMs += this.#appendedAt - began;
      this.sequence += commits.length;
      return won;
    } catch (error) {
      this.#fence.fail(error);
      return { outcome: 'unknown', error };
    } finally {
      this.#checkpointer.beginIfDue(this.#appendedAt, this.#room.isFull);
    }
  }

  checkpoint(): Promise<void> {
    return this.#checkpointer.run();
  }

  /** Leaves the snapshots as the data and a journal that says so, unless the log has failed. */
  async close(answered: Promise<void>): Promise<void> {
    await answered;
    await this.#checkpointer.settled();
    this.#stopWatching();
    // Nobody waits for a write any more, so a failure is only told.
    this.#fence.onFailure = () => undefined;
    this.#client = undefined;
    const last = this.#journal;
    try {
      if (!this.hasFailed && last !== undefined) {
        const isCurrent = this.#checkpointer.through === this.sequence;
        const made = { number: last.manifest.journal + 1, closed: true, isCurrent };
        const { journal } = await writeStore(this.#target, this.#image(last), made);
        await journal.close();
        await this.#remove([...this.#older, last].map(({ name }) => name));
      }
    } catch (error) {
      this.#options.onNotice(`the stop could not be marked as clean: ${reasonOf(error)}`);
    }
    await last?.close();
    await this.#fence.release();
  }

  get problem(): LogProblem | undefined {
    return this.#room.problem;
  }

  status() {
    const { figures, checkpointedAt } = this.#checkpointer;
    return {
      ...figures,
      journalBytes: this.bytes,
      appendMs: this.#appendMs,
      checkpointedAt,
    };
  }

  get bytes(): number {
    const newest = this.#journal?.size ?? this.#foundBytes;
    return this.#older.reduce((sum, { size }) => sum + size, newest);
  }

  get groupBytes(): number {
    const newest = this.#journal?.groupBytes ?? 0;
    return this.#older.reduce((sum, { groupBytes }) => sum + groupBytes, newest);
  }

  get hasFailed(): boolean {
    return this.#fence.failure !== undefined;
  }

  get neededBytes(): number {
    return this.#checkpointer.largestBytes + this.bytes;
  }

  get isWriting(): boolean {
    return this.#checkpointer.isRunning;
  }

  get acceptsRemovals(): boolean {
    return this.#start === undefined;
  }

  rotate(): Promise<Image> {
    return this.#between(() => this.#rotate());
  }

  async removeOlder(): Promise<void> {
    await this.#remove(this.#older.splice(0).map(({ name }) => name));
  }

  /** Reads all that is there, and tells an operator what was unusual. */
  async #recover(): Promise<Start> {
    const { onNotice, random } = this.#options;
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
    const { sequence, epoch = newEpoch(random) } = found;
    this.sequence = this.#checkpointer.through = sequence;
    this.#checkpointer.largestBytes = Math.max(0, ...sizesOf(found));
    return { found, epoch };
  }

  /**
   * Begins a journal. After a stop that was not clean, the snapshots are left to the first
   * checkpoint, which is due at once; else they hold everything, or are written before.
   */
  async #finish({ found, epoch }: Start): Promise<void> {
    const { closed, isCurrent, journals, needed, sequence, through } = found;
    const tables = [...this.#tables.values()];
    this.#fence.assertHeld();
    if (isCurrent) {
      this.#journal = await continueStore(this.#target, tables, epoch, found);
      this.#checkpointer.note(sequence, sizesOf(found));
    } else if (!closed && through < sequence && needed.length <= olderMax) {
      this.#journal = await continueStore(this.#target, tables, epoch, found);
      this.#checkpointer.through = through;
      this.#older = needed.map(({ name, last }) => {
        const size = last.offset + last.bytes.length;
        return { name, size, groupBytes: size };
      });
    } else {
      const image = imageOf(tables, epoch, sequence);
      const made = { number: (journals.at(-1) ?? 0) + 1, closed: false, isCurrent };
      const { journal, sizes } = await writeStore(this.#target, image, made);
      this.#journal = journal;
      this.#checkpointer.note(sequence, sizes);
    }
    this.#start = undefined;
    this.#foundBytes = 0;
    const kept = new Set(this.#older.map(({ name }) => name));
    await this.#remove(journals.map(journalName).filter((name) => !kept.has(name)));
  }

  /** Without room, what is there can be read, unless this is the first start. @throws `error` */
  async #postpone(start: Start, error: unknown): Promise<void> {
    const { epoch, journals } = start.found;
    if (epoch === undefined || this.hasFailed || !isExhausted(error)) throw error;
    this.#start = start;
    for (const name of journals.map(journalName)) {
      for await (const { length } of readChunks(this.#files, name)) this.#foundBytes += length;
    }
    this.#room.note(true);
  }

  #beginWatch(): void {
    let watching: Promise<void> | undefined;
    this.#stopWatching = this.#options.machine.every(watchMs, () => {
      watching ??= this.#watch()
        .catch((error: unknown) => {
          if (!isExhausted(error)) this.#fence.fail(error);
        })
        .finally(() => (watching = undefined));
    });
  }

  /** Finds out early that there is little room, or that there is room again, and that it is at rest. */
  async #watch(): Promise<void> {
    const isBusy = this.isWriting;
    const start = this.#start;
    const hasRoom = await this.#room.isThere();
    if (hasRoom && this.#client !== undefined && start !== undefined) {
      await this.#between(() => this.#finish(start));
    }
    if (!isBusy) this.#room.note(!hasRoom || this.#start !== undefined);
    if (this.#client !== undefined) {
      this.#checkpointer.beginIfDue(this.#appendedAt, this.#room.isFull);
    }
  }

  /** Begins a new journal. Returns all records as they are between the two journals. */
  async #rotate(): Promise<Image> {
    const old = this.#current;
    const { epoch, journal, after, collections: listed } = old.manifest;
    // Where the last checkpoint failed and nothing was written since, the journal is
    // still empty.
    if (this.#older.length === 0 || after < this.sequence) {
      const { through, checkpointedAt } = this.#checkpointer;
      const collections = listing(this.#tables.values(), (name) =>
        checkpointedAt === undefined ? listed.get(name) : { through, file: through > 0 },
      );
      const next = { journal: journal + 1, closed: false, epoch, after: this.sequence };
      this.#fence.assertHeld();
      const made = await JournalFile.create(this.#files, { ...next, collections }).catch(
        async (error: unknown) => {
          // It must be gone for good before the former journal goes on, which it would end.
          await this.#fence.guard(async () => {
            if (this.#files.identity(journalName(next.journal)) !== undefined) throw error;
            await this.#files.syncDirectory();
          });
          throw error;
        },
      );
      this.#journal = made;
      this.#older.push(old);
      await this.#fence.guard(() => this.#files.syncDirectory());
      await old.close();
    }
    return this.#image(this.#current);
  }

  #image({ manifest: { epoch } }: JournalFile): Image {
    return imageOf(this.#tables.values(), epoch, this.sequence);
  }

  #between<T>(work: () => Promise<T>): Promise<T> {
    invariant(this.#client !== undefined, 'the log is used before it is open');
    return this.#client.between(work);
  }

  get #current(): JournalFile {
    invariant(this.#journal !== undefined, 'the log is used before it is open');
    return this.#journal;
  }

  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#files.remove(name).catch(() => undefined);
  }
}
