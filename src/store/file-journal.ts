import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import { replaceFile, type Files } from './files.ts';
import { JournalFile } from './journal-file.ts';
import { groupBody, journalName, type Manifest } from './journal-format.ts';
import type { Line } from './journal-reader.ts';
import type { BetweenGroups, Journal, JournalStatus } from './journal.ts';
import { acquireLock, type Lock, type LockOptions } from './lock.ts';
import { findStore, replay } from './recovery.ts';
import { createRoom, reserveName, type Room } from './room.ts';
import { viewTables, type Checkpoint } from './snapshot.ts';
import type { AnyTable } from './table.ts';

export interface FileJournalOptions extends LockOptions {
  readonly reserveBytes: number;
  /** What an operator should know, one sentence each. */
  readonly onNotice: (notice: string, level?: 'warn' | 'error') => void;
}

export function newEpoch(random: Random): string {
  return random(8).toString('hex');
}

/** The journal on files: lock, recovery, groups, checkpoints, and the order in which all of that reaches the disk. */
export class FileJournal implements Journal {
  readonly #options: FileJournalOptions;
  readonly #files: Files;
  readonly #room: Room;
  /** Small against the reserve, which has to have room for it. */
  readonly #padding: Buffer;
  #lock: Lock | undefined;
  #journal: JournalFile | undefined;
  #tables: ReadonlyMap<string, AnyTable> = new Map();
  #collections: Manifest['collections'] = new Map();
  #epoch = '';
  #sequence = 0;
  /** Of the journals since the last checkpoint, the current one left out. */
  #olderBytes = 0;
  #older: string[] = [];
  /** Where directories cannot be synced: files that go at the next checkpoint. */
  #retired: readonly string[] = [];
  #checkpointAt = 0;
  #failure: unknown;
  #status = { appendMs: 0, checkpoints: 0, checkpointFailures: 0, checkpointMs: 0 };

  constructor(options: FileJournalOptions) {
    this.#options = options;
    this.#files = options.files;
    this.#padding = Buffer.alloc(options.reserveBytes / 4, ' ');
    this.#room = createRoom(options.files, options.random, options.reserveBytes);
  }

  async open(tables: Map<string, AnyTable>) {
    const { onNotice } = this.#options;
    try {
      await this.#files.prepare();
      if (!this.#files.syncsDirectories) {
        onNotice('this Node denies syncs of directories: files are written through, and old journals kept longer');
      }
      this.#lock = await this.#room.twice(() => acquireLock(this.#options));
      await this.#recover(tables);
    } catch (error) {
      await this.#journal?.discard();
      await this.#lock?.release();
      await this.#files.close();
      throw await this.#room.explain(error);
    }
    return { epoch: this.#epoch, sequence: this.#sequence };
  }

  async append(sequence: number, commits: readonly string[]): Promise<void> {
    const started = this.#options.clock.elapsed();
    await this.#guard(async (journal) => {
      this.#fence(journal);
      try {
        await journal.append(groupBody(sequence, commits), this.#padding, () => this.#room.look(this.#bytes));
      } catch (error) {
        if (error instanceof CairnError) await this.#room.spend();
        throw error;
      }
      // Whoever replaced us meanwhile may not have seen this group.
      this.#holdLock();
    });
    this.#status.appendMs += this.#options.clock.elapsed() - started;
    this.#sequence = sequence + commits.length - 1;
  }

  get checkpointDue(): boolean {
    return this.#bytes > this.#checkpointAt;
  }

  hasRoom(): Promise<boolean> {
    return this.#room.save(this.#bytes);
  }

  async checkpoint(between: BetweenGroups): Promise<void> {
    if (this.#allInSnapshots) return;
    const started = this.#options.clock.elapsed();
    const done = await this.#tryCheckpoint(between);
    this.#status.checkpointMs = this.#options.clock.elapsed() - started;
    this.#status[done ? 'checkpoints' : 'checkpointFailures'] += 1;
  }

  async close(clean: boolean): Promise<void> {
    if (clean && this.#allInSnapshots) {
      await this.#markClosed().catch((error: unknown) => {
        this.#options.onNotice(`the stop could not be marked as clean: ${reasonOf(error)}`);
      });
    }
    await this.#journal?.close();
    await this.#lock?.release();
    await this.#files.close();
  }

  status(): JournalStatus {
    return { journalBytes: this.#bytes, ...this.#status };
  }

  get #allInSnapshots(): boolean {
    return [...this.#collections.values()].every(({ through, file }) => file && through === this.#sequence);
  }

  get #bytes(): number {
    return this.#olderBytes + (this.#journal?.size ?? 0);
  }

  async #recover(tables: Map<string, AnyTable>): Promise<void> {
    const found = await findStore(this.#files, tables);
    const { after, collections, epoch = newEpoch(this.#options.random) } = found;
    this.#room.left.push(...found.temporary);
    const manifest = { journal: found.journal + 1, closed: false, epoch, after, predecessor: undefined, collections };
    const journal = await JournalFile.begin(this.#files, manifest, this.#room.twice);
    this.#journal = journal;
    const { sequence, commits, closed, torn } = await replay(found, tables, (body) => journal.copy(body));
    this.#epoch = epoch;
    if (torn !== undefined) await this.#keepTorn(torn);
    this.#holdLock();
    await journal.publish();
    await this.#files.syncDirectory();
    await this.#retire(found.obsolete);
    this.#tables = tables;
    this.#collections = collections;
    this.#sequence = sequence;
    this.#setCheckpointAt(found.snapshotBytes);
    if (this.#files.identity(reserveName) === undefined) await this.#room.save(this.#bytes);
    if (!closed) this.#options.onNotice(`the last stop was not clean: ${commits} commits were replayed`);
  }

  /** Keeps what a torn write left, before the journal that ends in it goes. */
  async #keepTorn({ file, offset, bytes }: Line & { readonly file: string }): Promise<void> {
    const name = file.replace('.jsonl', '.torn');
    await this.#room.twice(() => replaceFile(this.#files, name, bytes));
    this.#options.onNotice(
      `${file} ends at byte ${offset} in a line that does not fit: taken for a write that ` +
        `was cut short; its ${bytes.length} bytes are kept in ${name}`,
    );
  }

  async #tryCheckpoint(between: BetweenGroups): Promise<boolean> {
    const old = this.#journal;
    const checkpoint = await between(() => this.#rotate());
    if (checkpoint === undefined) return false;
    if (old !== this.#journal) await old?.end();
    let bytes: number;
    try {
      const publish: Files['rename'] = (from, to) =>
        this.#guard((journal) => {
          this.#fence(journal);
          return this.#files.rename(from, to);
        });
      bytes = await checkpoint.write(this.#epoch, publish, this.#room.snapshotting);
    } catch (error) {
      if (this.#failure !== undefined) throw error;
      this.#postpone(error);
      return false;
    }
    await this.#guard(() => this.#files.syncDirectory());
    this.#collections = checkpoint.collections;
    await this.#retire(this.#older);
    this.#older = [];
    this.#olderBytes = 0;
    this.#setCheckpointAt(bytes);
    return true;
  }

  /** Goes on in a new journal, and views everything at the seam. `undefined` where the disk has no room. */
  async #rotate(): Promise<Checkpoint | undefined> {
    return this.#guard(async (old) => {
      this.#fence(old);
      let journal: JournalFile | undefined = old;
      // Else the last checkpoint has failed, and nothing was written since.
      if (this.#older.length === 0 || old.manifest.after < this.#sequence) {
        const predecessor = { journal: old.manifest.journal, chain: old.chain };
        journal = await this.#beginNext(old, { closed: false, predecessor });
        if (journal === undefined) return undefined;
        this.#journal = journal;
        this.#older.push(old.name);
        this.#olderBytes += old.size;
      }
      // Without a sync, the name of the new one may not be there after a crash: the one before was ours, too.
      const durable = journal.manifest.journal - (this.#files.syncsDirectories ? 0 : 1);
      return viewTables(this.#files, this.#tables.values(), this.#sequence, durable);
    });
  }

  /** Writes the journal that says that everything is in the snapshots. */
  async #markClosed(): Promise<void> {
    await this.#guard(async (old) => {
      this.#fence(old);
      const last = await this.#beginNext(old, { closed: true, predecessor: undefined });
      await last?.close();
      if (last !== undefined) await this.#retire([old.name]);
    });
  }

  /** Begins and publishes the journal after `old`; `undefined` where the disk refuses. */
  async #beginNext(old: JournalFile, part: Pick<Manifest, 'closed' | 'predecessor'>): Promise<JournalFile | undefined> {
    const journal = old.manifest.journal + 1;
    const now = { epoch: this.#epoch, after: this.#sequence, collections: this.#collections };
    let next: JournalFile | undefined;
    try {
      next = await JournalFile.begin(this.#files, { journal, ...now, ...part }, this.#room.twice);
      await next.publish();
    } catch (error) {
      // Nothing is lost: we stay in the old one. Should the new one be there in spite of the error, the fence finds it.
      await next?.discard();
      this.#postpone(error);
      return undefined;
    }
    await this.#files.syncDirectory();
    return next;
  }

  /** After any error but a lack of room, nothing is appended any more. */
  async #guard<T>(work: (journal: JournalFile) => Promise<T>): Promise<T> {
    if (this.#failure !== undefined) throw this.#failure;
    invariant(this.#journal !== undefined, 'the journal is used before it is open');
    try {
      return await work(this.#journal);
    } catch (error) {
      if (!(error instanceof CairnError)) this.#failure = error;
      throw error;
    }
  }

  /** Throws where another process has taken the directory over. */
  #fence(journal: JournalFile): void {
    this.#holdLock();
    if (this.#files.identity(journalName(journal.manifest.journal + 1)) !== undefined) {
      throw new Error('another process has begun a journal');
    }
  }

  #holdLock(): void {
    if (this.#lock?.held() !== true) throw new Error('the lock file is not ours any more');
  }

  async #retire(names: readonly string[]): Promise<void> {
    const going = this.#files.syncsDirectories ? names : this.#retired;
    this.#retired = names;
    for (const name of going) await this.#files.remove(name).catch(() => undefined);
  }

  #setCheckpointAt(snapshotBytes: number): void {
    this.#checkpointAt = Math.max(snapshotBytes, limits.checkpointBytesMin);
  }

  #postpone(error: unknown): void {
    this.#checkpointAt = this.#bytes + limits.checkpointBytesMin;
    this.#options.onNotice(`a checkpoint was put off: ${reasonOf(error)}`, 'error');
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
