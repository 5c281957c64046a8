import type { JsonObject } from '../base/json.ts';

/** The files are not what the store left, and only the operator can decide. Its message names the file and place. */
export class StoreDamageError extends Error {
  override readonly name = 'StoreDamageError';
  /** The case of the table in `recovery.ts`. */
  readonly label: string;
  readonly file: string;
  /** The byte at which the trouble begins. */
  readonly offset: number;
  /** Not where a repair would only lose what is there, and what is elsewhere. */
  readonly repairable: boolean;

  constructor(label: string, file: string, offset: number, problem: string) {
    super(`Cannot open the store: ${file}, byte ${offset}: ${problem} [${label}]`);
    this.label = label;
    this.file = file;
    this.offset = offset;
    this.repairable = !['S4', 'N3', 'N4', 'J11'].includes(label);
  }
}

/** Another process has the directory, or may have it. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
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
  /** Some commits to it alone are taken when the disk is full, too: who cannot sign in cannot remove anything. */
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
   * @throws CairnError `storage_full`, `outcome_unknown`, `store_failed`, `overloaded`
   */
  write<T>(work: (transaction: Transaction) => T): Promise<T>;
  /** Writes snapshots of everything and starts a new journal. Where the disk has no room, it is put off. */
  checkpoint(): Promise<void>;
  /** Checkpoints, marks the stop as clean, unlocks. Writes that wait are answered first. */
  close(): Promise<void>;
  /** How it is doing, for metrics and for readiness. Where it is full, it then looks whether it still is. */
  status(): StoreStatus;
}

export interface StoreStatus {
  /** `full`: only transactions that remove are taken. `failed`: nothing is, and the process should end. */
  readonly state: 'writable' | 'full' | 'failed';
  /** Of the last durable commit. */
  readonly sequence: number;
  /** Since the start. */
  readonly groups: number;
  readonly commits: number;
  readonly collections: readonly { readonly name: string; readonly records: number }[];
  readonly journalBytes: number;
  /** How long all groups together took to be written and synced. */
  readonly appendMs: number;
  readonly checkpoints: number;
  readonly checkpointFailures: number;
  /** How long the last checkpoint took. */
  readonly checkpointMs: number;
}
