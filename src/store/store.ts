import type { JsonObject } from '../base/json.ts';
import type { Identified, RecordId } from '../base/record-id.ts';

export interface MisfitCause {
  readonly id: RecordId;
  /** The problem, as a phrase that follows the name of the record. */
  readonly reason: string;
}

export interface StoredRecord extends Identified {
  /** Sequence number of the commit that wrote this version, unique to it. */
  readonly revision: number;
}

/** A record without the members that the store adds in `insert` and `replace`. */
export type Unstored<R extends StoredRecord> = Omit<R, 'id' | 'revision'>;

/**
 * `full`: the log or the memory has no room, and only removals are accepted. `unavailable`: nothing
 * is accepted until the log responds again. `failed`: nothing ever is, and the process should end.
 */
export type StoreState = 'writable' | 'full' | 'unavailable' | 'failed';

export type Key = string | number;

/** The key or keys of a record in an index; `undefined` if it has none. */
export type Keys = Key | readonly Key[] | undefined;

/** Declares a collection. The store does not know the meaning of its records. */
export interface TableDefinition<R extends StoredRecord> {
  /** 1 to 63 letters of either case, digits, `_` and `-`. */
  readonly name: string;
  /** True for a table of the server itself, such as the sessions. */
  readonly isServers?: true;
  /** True if records can have ids that differ from their numbers. */
  readonly hasKeys?: boolean;
  /** Returns a stored record with its type, or the reason why it does not fit the declaration. */
  readonly parse: (record: JsonObject & StoredRecord) => R | string;
  /** Unique indexes by name. Each returns the record's key, or `undefined` to leave it out. */
  readonly unique?: { readonly [index: string]: (record: R) => string | undefined };
  /** Other indexes by name. Records may share a key, and a record may have several. */
  readonly groups?: { readonly [index: string]: (record: R) => Keys };
  /** Group indexes whose keys are ids of records in the named collection. */
  readonly references?: { readonly [index: string]: string };
  /**
   * Writes that a full store accepts in addition to removals, because users must sign in to remove
   * anything: all writes of auxiliary records, such as sessions, or only changes of records, such
   * as a user's new password.
   */
  readonly whenFull?: 'written' | 'changed';
  /** Called with each record before and after a change, also as the running batch makes or undoes it. */
  readonly onCount?: ChangeListener<R>;
}

/** The published records of a collection, which are durable. Reads are synchronous. */
export interface Collection<R extends StoredRecord> {
  readonly name: string;
  readonly size: number;
  /** 0 before the first commit. */
  readonly revision: number;
  readonly nextId: number;
  get(id: number): R | undefined;
  /** Finds a record by its public id. If ids may be texts, a number and its text are one id. */
  withId(id: RecordId): R | undefined;
  find(index: string, key: string): R | undefined;
  /**
   * Returns records by key of a group index, by ascending id, or from an id on, up or down: all, or
   * the first `most`, that pass `test`.
   */
  members(
    index: string,
    key: string | number,
    most?: number,
    from?: From,
    test?: (record: R) => boolean,
  ): R[];
  /** An upper bound: pending changes count as well. */
  countAtMost(index: string, key: string | number): number;
  /** Highest id first. */
  latest(count: number): R[];
  /** A snapshot of all records, unaffected by later writes. */
  view(): View<R>;
  /**
   * Calls `listener` with each record before and after its change, as it is published. Returns a
   * function to stop.
   */
  follow(listener: ChangeListener<R>): () => void;
}

/** The starting point of an order by id, inclusive, and its direction. */
export interface From {
  readonly id: number;
  readonly isDown: boolean;
}

export type ChangeListener<R> = (before: R | undefined, after: R | undefined) => void;

/** A point-in-time view. It costs a pointer for each block, and a copy of each changed block. */
export interface View<R extends StoredRecord> {
  readonly size: number;
  readonly revision: number;
  /** The records in blocks of at most 1,024, by ascending id. No block is empty. */
  readonly blocks: readonly (readonly R[])[];
}

/**
 * One transaction, inside the single writer. It sees the published records, the changes of earlier
 * transactions in its batch, and its own. It runs synchronously, so that its decisions (uniqueness,
 * preconditions, permissions) still hold when it is written.
 */
export interface Transaction {
  of<R extends StoredRecord>(collection: Collection<R>): Records<R>;
  /**
   * Calls `listener` with each later change. If it throws, the work fails with its error. If it
   * returns a record, that record is stored instead.
   */
  onChange(listener: (change: RecordChange) => StoredRecord | undefined): void;
  /**
   * Runs work with several changes as a unit. If it throws after the first change, the transaction
   * can only be undone, even if the error is caught.
   */
  whole<T>(work: () => T): T;
  /** Calls `listener` when the transaction is durable and visible, before its caller knows. */
  onCommit(listener: () => void): void;
}

/** The read-only part of a transaction. Published records have it as well. */
export interface ReadTransaction {
  of<R extends StoredRecord>(
    collection: Collection<R>,
  ): Pick<Records<R>, 'get' | 'withId' | 'find'>;
}

export const published: ReadTransaction = { of: (collection) => collection };

/** The records of a collection in a transaction, which alone can change them. */
export interface Records<R extends StoredRecord> {
  /** The number of the next new record, which no other record has as its public id. */
  readonly nextId: number;
  get(id: number): R | undefined;
  withId(id: RecordId): R | undefined;
  find(index: string, key: string): R | undefined;
  /** The records must not change during iteration. */
  referring(index: string, key: string | number): Referring<R>;
  /**
   * Gives the record the next id, or `id`, which must be unused, for one that comes from elsewhere.
   * @throws UniqueKeyError; CairnError `storage_full` if there are no more ids
   */
  insert(record: Unstored<R>, id?: number): R;
  /** @throws UniqueKeyError; InvariantError if there is no such record */
  replace(id: number, record: Unstored<R>): R;
  remove(id: number): void;
}

/** Records with the same key, by ascending id, looked up during iteration. */
export interface Referring<R extends StoredRecord> extends Iterable<R> {
  /** An upper bound: changed records may count twice. */
  readonly countAtMost: number;
}

/** Another record has this key already. The caller turns this into an error of its own. */
export class UniqueKeyError extends Error {
  override readonly name = 'UniqueKeyError';

  constructor(collection: string, index: string) {
    super(`Cannot write to ${collection}: its index ${index} has this key already`);
  }
}

export interface RecordChange {
  readonly collection: { readonly name: string };
  readonly id: number;
  readonly record: StoredRecord | undefined;
  readonly before: StoredRecord | undefined;
  readonly sequence: number;
}

export interface Store {
  /**
   * New at the first start and after a restore or a repair, so that old entity tags never match.
   */
  readonly epoch: string;
  /** Must be called before `start`. */
  collection<R extends StoredRecord>(definition: TableDefinition<R>): Collection<R>;
  /** Locks the directory, and recovers and publishes the records. */
  start(): Promise<void>;
  /**
   * Runs `work` as one transaction. Resolves with its result when it is durable and visible. If
   * `work` throws, the promise rejects, and nothing is written. Callers take turns, one write each;
   * without `caller`, the program is the caller.
   * @throws CairnError `storage_full`, `outcome_unknown`, `store_failed`, `store_unavailable`,
   *   `overloaded`, `draining`
   */
  write<T>(work: (transaction: Transaction) => T, caller?: string): Promise<T>;
  /** Publishes all commits that other processes had acknowledged before. @throws as `write` */
  confirm(): Promise<void>;
  readonly sequence: number;
  readonly state: StoreState;
  /** True if `state` is `full` only for lack of memory. */
  readonly isMemoryFull: boolean;
  readonly memoryMaxBytes: number;
  readonly size: number;
  /**
   * Calls `listener` with each group of commits, when it is published and before its callers know.
   * The changes are in the order of the commits.
   */
  onPublished(listener: (changes: readonly RecordChange[]) => void): void;
  /** Writes snapshots and begins a new journal, once the disk has room. */
  checkpoint(): Promise<void>;
  /** Finishes the waiting writes, and marks the stop as clean. */
  close(): Promise<void>;
  status(): StoreStatus;
}

export interface LogStatus {
  readonly journalBytes: number;
  readonly appendMs: number;
  readonly checkpoints: number;
  readonly checkpointFailures: number;
  /**
   * When the snapshots last held everything, since the Unix epoch; `undefined` if not since the
   * start.
   */
  readonly checkpointedAt?: number | undefined;
  readonly figures?: readonly Figure[];
}

export type Figure = readonly [
  kind: 'gauge' | 'counter',
  name: string,
  help: string,
  value: number,
];

export interface StoreStatus
  extends LogStatus, Pick<Store, 'state' | 'sequence' | 'memoryMaxBytes'> {
  readonly groups: number;
  readonly commits: number;
  readonly memoryBytes: number;
  readonly collections: readonly { readonly name: string; readonly records: number }[];
}
