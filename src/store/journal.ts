import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import { replaceFile, type Files } from './files.ts';
import { JournalFile } from './journal-file.ts';
import { groupBody, journalName, type Line, type Manifest } from './journal-format.ts';
import { acquireLock, type Lock, type LockOptions } from './lock.ts';
import { findStore, replay } from './recovery.ts';
import { reserveName, Room } from './room.ts';
import { viewTables, writeSnapshots, type Checkpoint } from './snapshot.ts';
import type { AnyTable } from './table.ts';

/** Runs `work` between two groups: none is in flight while it runs. */
export type BetweenGroups = <T>(work: () => Promise<T>) => Promise<T>;

/** Where groups become durable, and all that the rest of the store knows of it: another log can take its place. */
export type Journal = Pick<
  FileJournal,
  'open' | 'append' | 'checkpointDue' | 'hasRoom' | 'checkpoint' | 'close' | 'status'
>;

export interface JournalOptions extends LockOptions {
  /** `limits.reserveBytes` when left out. */
  readonly reserveBytes?: number;
  /** Takes what an operator should know, one sentence each; it may name files. `error`: something has to be done. */
  readonly onNotice: (notice: string, level?: 'warn' | 'error') => void;
}

export function newEpoch(random: Random): string {
  return random(8).toString('hex');
}

/** No files at all: what is appended is as durable as the process. */
export function memoryJournal(random: Random): Journal {
  return {
    open: () => Promise.resolve({ epoch: newEpoch(random), sequence: 0 }),
    append: () => Promise.resolve(),
    checkpointDue: false,
    hasRoom: () => Promise.resolve(true),
    checkpoint: () => Promise.resolve(),
    close: () => Promise.resolve(),
    status: () => ({ journalBytes: 0, appendMs: 0, checkpoints: 0, checkpointFailures: 0, checkpointMs: 0 }),
  };
}

/** The journal on files: lock, recovery, groups, checkpoints, and the order in which all of that reaches the disk. */
export class FileJournal {
  readonly #options: JournalOptions;
  readonly #files: Files;
  readonly #tables: Map<string, AnyTable>;
  readonly #room: Room;
  #lock: Lock | undefined;
  #journal: JournalFile | undefined;
  #collections: Manifest['collections'] = new Map();
  #sequence = 0;
  /** The journals since the last checkpoint, the current one left out. */
  #older: string[] = [];
  /** Where directories cannot be synced: files that go at the next checkpoint. */
  #retired: readonly string[] = [];
  #checkpointAt = 0;
  #failure: unknown;
  #status = { appendMs: 0, checkpoints: 0, checkpointFailures: 0, checkpointMs: 0 };

  /** Its tables are empty until it is open. */
  constructor(options: JournalOptions, tables: Map<string, AnyTable>) {
    this.#options = options;
    this.#files = options.files;
    this.#tables = tables;
    this.#room = new Room(options.files, options.random, options.reserveBytes ?? limits.reserveBytes);
  }

  /** Fills the tables with what is durable, and gets ready to append after its last commit: `sequence`, or 0. */
  async open(): Promise<{ readonly epoch: string; readonly sequence: number }> {
    const { onNotice } = this.#options;
    try {
      this.#lock = await this.#room.twice(() => acquireLock(this.#options));
      if (!this.#files.syncsDirectories) {
        onNotice('this Node denies syncs of directories: files are written through, and old journals kept longer');
      }
      return await this.#recover();
    } catch (error) {
      await this.#journal?.discard();
      await this.#lock?.release();
      throw await this.#room.explain(error);
    }
  }

  /**
   * Makes one group durable: the commits that follow the last one. Called again only when the last call has settled.
   * @throws CairnError `storage_full` when nothing was written and what was put aside is given to later groups; after
   *   any other error the outcome is unknown and nothing may be appended any more
   */
  async append(commits: readonly string[]): Promise<void> {
    const started = this.#options.clock.elapsed();
    await this.#guard(async (journal) => {
      await journal.append(groupBody(this.#sequence + 1, commits));
      // Whoever replaced us meanwhile may not have seen this group.
      this.#holdLock();
    });
    this.#status.appendMs += this.#options.clock.elapsed() - started;
    this.#sequence += commits.length;
  }

  /** Whether the journal has outgrown the snapshots. */
  get checkpointDue(): boolean {
    return this.#bytes > this.#checkpointAt;
  }

  /** Whether there is room again after `storage_full`: then some is put aside again. */
  hasRoom(): Promise<boolean> {
    return this.#room.save(this.#current.size);
  }

  /**
   * Writes everything, as it is between two groups, to snapshots. An error of the disk that loses nothing is reported
   * as a notice; after any thrown error nothing may be appended any more.
   */
  async checkpoint(between: BetweenGroups): Promise<void> {
    if (this.#allInSnapshots) return;
    const { clock, onNotice } = this.#options;
    const started = clock.elapsed();
    try {
      const old = this.#current;
      const checkpoint = await between(() => this.#rotate());
      if (old !== this.#current) await old.end();
      const publish: Files['rename'] = (from, to) => this.#guard(() => this.#files.rename(from, to));
      const bytes = await writeSnapshots(this.#files, this.#room, checkpoint, publish);
      await this.#guard(() => this.#files.syncDirectory());
      this.#collections = checkpoint.collections;
      await this.#retire(this.#older);
      this.#older = [];
      this.#room.olderBytes = 0;
      this.#checkpointAt = Math.max(bytes, limits.checkpointBytesMin);
      this.#status.checkpoints += 1;
    } catch (error) {
      if (this.#failure !== undefined) throw error;
      this.#checkpointAt = this.#bytes + limits.checkpointBytesMin;
      onNotice(`a checkpoint was put off: ${reasonOf(error)}`, 'error');
      this.#status.checkpointFailures += 1;
    }
    this.#status.checkpointMs = clock.elapsed() - started;
  }

  /** Marks a clean stop (unless something failed) and lets everything go. */
  async close(clean: boolean): Promise<void> {
    const old = this.#current;
    try {
      if (clean && this.#allInSnapshots) {
        await this.#beginNext({ closed: true, predecessor: undefined });
        await this.#retire([old.name]);
      }
    } catch (error) {
      this.#options.onNotice(`the stop could not be marked as clean: ${reasonOf(error)}`);
    }
    for (const journal of new Set([old, this.#current])) await journal.close();
    await this.#lock?.release();
  }

  status() {
    return { journalBytes: this.#bytes, ...this.#status };
  }

  get #current(): JournalFile {
    invariant(this.#journal !== undefined, 'the journal is used before it is open');
    return this.#journal;
  }

  get #allInSnapshots(): boolean {
    return [...this.#collections.values()].every(({ through, file }) => file && through === this.#sequence);
  }

  get #bytes(): number {
    return this.#room.olderBytes + this.#current.size;
  }

  async #recover() {
    const found = await findStore(this.#files, this.#tables);
    const { after, collections, epoch = newEpoch(this.#options.random) } = found;
    this.#room.left = found.temporary;
    const manifest = { journal: found.journal + 1, closed: false, epoch, after, predecessor: undefined, collections };
    const journal = await JournalFile.begin(this.#files, manifest, this.#room);
    this.#journal = journal;
    const { sequence, commits, closed, torn } = await replay(found, this.#tables, (body) => journal.copy(body));
    if (torn !== undefined) await this.#keepTorn(torn);
    this.#holdLock();
    await journal.publish();
    await this.#files.syncDirectory();
    await this.#retire(found.obsolete);
    this.#collections = collections;
    this.#sequence = sequence;
    this.#checkpointAt = Math.max(found.snapshotBytes, limits.checkpointBytesMin);
    if (this.#files.identity(reserveName) === undefined) await this.#room.save(journal.size);
    if (!closed) this.#options.onNotice(`the last stop was not clean: ${commits} commits were replayed`);
    return { epoch, sequence };
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

  /** Goes on in a new journal, and views everything at the seam. */
  async #rotate(): Promise<Checkpoint> {
    const old = this.#current;
    // Else the last checkpoint has failed, and nothing was written since.
    if (this.#older.length === 0 || old.manifest.after < this.#sequence) {
      await this.#beginNext({ closed: false, predecessor: { journal: old.manifest.journal, chain: old.chain } });
      this.#older.push(old.name);
      this.#room.olderBytes += old.size;
    }
    const { epoch, journal } = this.#current.manifest;
    // Without a sync, the name of the new one may not be there after a crash: the one before was ours, too.
    const durable = journal - (this.#files.syncsDirectories ? 0 : 1);
    return viewTables(this.#tables.values(), epoch, this.#sequence, durable);
  }

  /** Begins and publishes the next journal, and goes on in it. What fails before it has its name loses nothing. */
  async #beginNext(part: Pick<Manifest, 'closed' | 'predecessor'>): Promise<void> {
    const { epoch, journal } = await this.#guard(async ({ manifest }) => manifest);
    const now = { epoch, journal: journal + 1, after: this.#sequence, collections: this.#collections };
    const next = await JournalFile.begin(this.#files, { ...now, ...part }, this.#room);
    try {
      await next.publish();
    } catch (error) {
      // We stay in the old one. Should the new one be there in spite of the error, the fence finds it.
      await next.discard();
      throw error;
    }
    this.#journal = next;
    await this.#guard(() => this.#files.syncDirectory());
  }

  /** Does what only the holder may. After any error but a lack of room, nothing is written any more. */
  async #guard<T>(work: (journal: JournalFile) => Promise<T>): Promise<T> {
    if (this.#failure !== undefined) throw this.#failure;
    const journal = this.#current;
    try {
      this.#holdLock();
      if (this.#files.identity(journalName(journal.manifest.journal + 1)) !== undefined) {
        throw new Error('Cannot write: another process has begun a journal');
      }
      return await work(journal);
    } catch (error) {
      if (!(error instanceof CairnError)) this.#failure = error;
      throw error;
    }
  }

  #holdLock(): void {
    if (this.#lock?.held() !== true) throw new Error('Cannot write: the lock file is not ours any more');
  }

  async #retire(names: readonly string[]): Promise<void> {
    const going = this.#files.syncsDirectories ? names : this.#retired;
    this.#retired = names;
    for (const name of going) await this.#files.remove(name).catch(() => undefined);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
