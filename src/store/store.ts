import type { JsonObject } from '../base/json.ts';
import { refusals, type Refusal, type RefusalLabel } from './recovery/cases.ts';

/** The files are not what the store left, and only the operator can decide. Its message names the file and place. */
export class StoreDamageError extends Error {
  override readonly name = 'StoreDamageError';
  /** The case in `recovery/cases.ts`. */
  readonly label: RefusalLabel;
  readonly file: string;
  /** The byte at which the trouble begins. */
  readonly offset: number;
  /** What to do about it. */
  readonly remedy: string;
  /** Whether a repair loses something. */
  readonly isLoss: boolean;

  constructor(label: RefusalLabel, file: string, offset = 0, detail = '') {
    const { found, remedy, isAccepted }: Refusal = refusals[label];
    super(`Cannot open the store: ${file}, byte ${offset}: ${found}${detail && `: ${detail}`} [${label}]`);
    this.label = label;
    this.file = file;
    this.offset = offset;
    this.remedy = remedy;
    this.isLoss = isAccepted !== true;
  }
}

/** Another process has the directory, or may have it. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
}

/** The log that several nodes share cannot be used, or not any more. Its message says why, and what to do. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  /** What the process should exit with: 75 where a new start mends it. */
  readonly exitCode: 74 | 75 | 78;

  constructor(exitCode: 74 | 75 | 78, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What every record has: its id, and the sequence of the commit that last wrote it. */
export interface StoredRecord {
  /** Positive, monotonic in its collection, never reused. */
  readonly id: number;
  /** The sequence number of the commit that wrote this version; two versions of a record never share one. */
  readonly revision: number;
}

/** What the caller gives to `insert` and `replace`; the store adds `id` and `revision`. */
export type Unstored<R extends StoredRecord> = Omit<R, 'id' | 'revision'>;

/** Declares a collection. The store knows nothing of what its records mean. */
export interface CollectionDefinition<R extends StoredRecord> {
  /** `[a-z][a-z0-9-]{0,62}`; its snapshot is `<name>.json`. */
  readonly name: string;
  /** Turns a record as it stands on disk into a typed one; why it does not fit, or `undefined`, where it does not. */
  readonly parse: (record: JsonObject & StoredRecord) => R | string | undefined;
  /** Unique indexes by name: the key of a record, or `undefined` where it takes no part. */
  readonly unique?: { readonly [index: string]: (record: R) => string | undefined };
  /** Indexes by name whose keys several records may share. */
  readonly groups?: { readonly [index: string]: (record: R) => string | number | undefined };
  /**
   * For records that serve others, such as sessions. Commits to such collections alone are tried when the store is
   * full, too, since a user has to sign in before anything can be removed; `recordsMax` does not count their records.
   */
  readonly whenFull?: boolean;
}

/** A collection as it is published: committed and durable. Reads are synchronous and see nothing that is pending. */
export interface Collection<R extends StoredRecord> {
  readonly name: string;
  readonly size: number;
  /** The sequence of the last commit that changed the collection; 0 before the first. */
  readonly revision: number;
  get(id: number): R | undefined;
  /** The record whose key in this unique index is `key`. */
  find(index: string, key: string): R | undefined;
  /** The records whose key in this group index is `key`, by ascending id. */
  members(index: string, key: string | number): R[];
  /** The newest records, the one with the highest id first. */
  latest(count: number): R[];
  /** All records at this moment, unchanged by later writes. */
  view(): View<R>;
}

/** A point-in-time view. It costs a pointer for each block of records, and a copy of each that is changed later. */
export interface View<R extends StoredRecord> {
  readonly size: number;
  readonly revision: number;
  /** The records in blocks of at most 1,024, by ascending id; never an empty block. */
  readonly blocks: readonly (readonly R[])[];
}

/**
 * One transaction, inside the single writer. It sees committed and pending state, its own changes included. It runs
 * synchronously: what it decides (uniqueness, preconditions, who may) still holds when it is written.
 */
export interface Transaction {
  get<R extends StoredRecord>(collection: Collection<R>, id: number): R | undefined;
  find<R extends StoredRecord>(collection: Collection<R>, index: string, key: string): R | undefined;
  members<R extends StoredRecord>(collection: Collection<R>, index: string, key: string | number): R[];
  /** The record that has had this key in the group index for the longest time. */
  oldest<R extends StoredRecord>(collection: Collection<R>, index: string, key: string | number): R | undefined;
  /** How many records have this key in the group index; those that were changed just now may count twice. */
  countAtMost<R extends StoredRecord>(collection: Collection<R>, index: string, key: string | number): number;
  /** @throws UniqueKeyError */
  insert<R extends StoredRecord>(collection: Collection<R>, record: Unstored<R>): R;
  /** @throws UniqueKeyError; InvariantError when there is no such record */
  replace<R extends StoredRecord>(collection: Collection<R>, id: number, record: Unstored<R>): R;
  /** Does nothing where there is no such record. */
  remove<R extends StoredRecord>(collection: Collection<R>, id: number): void;
}

/** Another record has this key already. The caller decides what that means (`email_taken`, say). */
export class UniqueKeyError extends Error {
  override readonly name = 'UniqueKeyError';

  constructor(collection: string, index: string) {
    super(`Cannot write to ${collection}: its index ${index} has this key already`);
  }
}

/** One record as a commit left it. */
export interface PublishedChange {
  readonly collection: { readonly name: string };
  readonly id: number;
  /** `undefined` where the commit removed it. */
  readonly record: StoredRecord | undefined;
  /** The commit's sequence number. */
  readonly sequence: number;
}

export interface Store {
  /** New at the first start and after a restore, a repair or an accepted hand edit: old entity tags never match. */
  readonly epoch: string;
  /** Registers a collection; every collection is registered before `start`. */
  collection<R extends StoredRecord>(definition: CollectionDefinition<R>): Collection<R>;
  /** Locks the directory, recovers what is on disk and publishes it. */
  start(): Promise<void>;
  /**
   * Runs `work` as one transaction; resolves with its result once it is durable and visible. What `work` throws
   * rejects the promise, and nothing is written.
   * @throws CairnError `storage_full`, `outcome_unknown`, `store_failed`, `store_unavailable`, `overloaded`
   */
  write<T>(work: (transaction: Transaction) => T): Promise<T>;
  /** Publishes what other processes have had acknowledged before the call. @throws CairnError as `write` does */
  confirm(): Promise<void>;
  /** Whether what is published is recent enough for reads. Always, where no other process writes. */
  readonly isCurrent: boolean;
  /**
   * Calls `listener` once for each group of commits, when it is published and before its writers are answered, with
   * the changes in the order in which they were committed.
   */
  onPublished(listener: (changes: readonly PublishedChange[]) => void): void;
  /** Writes snapshots of everything and starts a new journal. Where the disk has no room, it is put off. */
  checkpoint(): Promise<void>;
  /** Checkpoints, marks the stop as clean, unlocks. Writes that wait are answered first. */
  close(): Promise<void>;
  /** How it is doing, for metrics and for readiness. Where it is full, it then looks whether it still is. */
  status(): StoreStatus;
}

/** Figures of the log. */
export interface LogStatus {
  readonly journalBytes: number;
  /** How long all groups together took to be written and synced. */
  readonly appendMs: number;
  readonly checkpoints: number;
  readonly checkpointFailures: number;
  /** How long the last checkpoint took. */
  readonly checkpointMs: number;
  /** When snapshots of everything were last written, since the Unix epoch; the log may not know. */
  readonly checkpointedAt?: number | undefined;
  /** Where several nodes share the log. */
  readonly cluster?: ClusterStatus;
}

export interface ClusterStatus {
  /** Time since the last confirmation. */
  readonly ageMs: number;
  /** Appends that came after those of another node, and the commits that were decided anew. */
  readonly lostAppends: number;
  readonly reruns: number;
  /** Appends whose callers were told that the outcome is unknown. */
  readonly unansweredAppends: number;
  /** The size of etcd's database, and how large it may become; NaN where that is unknown. */
  readonly etcdBytes: number;
  readonly etcdQuotaBytes: number;
}

export interface StoreStatus extends LogStatus {
  /** `full`: only transactions that remove are taken. `failed`: nothing is, and the process should end. */
  readonly state: 'writable' | 'full' | 'failed';
  /** Of the last durable commit. */
  readonly sequence: number;
  /** Since the start. */
  readonly groups: number;
  readonly commits: number;
  readonly collections: readonly { readonly name: string; readonly records: number }[];
}
