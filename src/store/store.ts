import type { JsonObject } from '../base/json.ts';
import type { Identified, RecordId } from '../base/record-id.ts';

/** A record that does not fit its declaration. */
export interface MisfitCause {
  readonly id: RecordId;
  /** The problem, as a phrase that follows the name of the record. */
  readonly reason: string;
}

/** The members that every record has. */
export interface StoredRecord extends Identified {
  /** Sequence number of the commit that wrote this version. Each version has its own. */
  readonly revision: number;
}

/** A record without the members that the store adds in `insert` and `replace`. */
export type Unstored<R extends StoredRecord> = Omit<R, 'id' | 'revision'>;

/**
 * `full`: the log or the memory has no room, and only removals are accepted.
 * `unavailable`: nothing is accepted until the log answers again.
 * `failed`: nothing is any more, and the process should end.
 */
export type StoreState = 'writable' | 'full' | 'unavailable' | 'failed';

export type Key = string | number;

/** The key of a record in an index, or its keys; `undefined` if the record has none. */
export type Keys = Key | readonly Key[] | undefined;

/** Declares a collection. The store does not know the meaning of its records. */
export interface TableDefinition<R extends StoredRecord> {
  /** 1 to 63 letters of either case, digits, `_` and `-`. */
  readonly name: string;
  /** True for a table of the server itself, such as the sessions: it is not a collection. */
  readonly isServers?: true;
  /** True if records can have ids that are not their numbers. */
  readonly hasKeys?: boolean;
  /** Returns a stored record with its type, or the reason why it does not fit the declaration. */
  readonly parse: (record: JsonObject & StoredRecord) => R | string;
  /**
   * Unique indexes by name. Each returns the key, or `undefined` if a record takes no
   * part.
   */
  readonly unique?: { readonly [index: string]: (record: R) => string | undefined };
  /** Further indexes by name. Several records may have the same key, and a record several. */
  readonly groups?: { readonly [index: string]: (record: R) => Keys };
  /** Group indexes by the ids that callers see of records in the named collection. */
  readonly references?: { readonly [index: string]: string };
  /**
   * What a full store accepts besides removals, because users must sign in to remove anything: all
   * writes of records that serve others, such as sessions, or only changes of records, such as a
   * user's new password.
   */
  readonly whenFull?: 'written' | 'changed';
}

/** The published records of a collection, which are durable. Reads are synchronous. */
export interface Collection<R extends StoredRecord> {
  readonly name: string;
  readonly size: number;
  /** Sequence number of the last commit that changed the collection; 0 before the first. */
  readonly revision: number;
  /** The id that the next new record gets. */
  readonly nextId: number;
  get(id: number): R | undefined;
  /** The record with an id as callers see it. If ids may be texts, a number and its text are one id. */
  withId(id: RecordId): R | undefined;
  /** The record with this key in a unique index. */
  find(index: string, key: string): R | undefined;
  /**
   * The records with this key in a group index: by ascending id, or from an id on, up or down; all,
   * or the first `most`, that pass `test`.
   */
  members(
    index: string,
    key: string | number,
    most?: number,
    from?: From,
    test?: (record: R) => boolean,
  ): R[];
  /** At least as many as have this key in a group index: changes in the making count as well. */
  countAtMost(index: string, key: string | number): number;
  /** The newest records, the one with the highest id first. */
  latest(count: number): R[];
  /** All records at this moment. Later writes do not change the view. */
  view(): View<R>;
  /**
   * Calls `listener` with each record before and after its change, as it is published, until
   * the returned function is called. `undefined` stands for no record.
   */
  follow(listener: ChangeListener<R>): () => void;
}

/** Where an order by ids begins, with this id if it is there, and whether it descends. */
export interface From {
  readonly id: number;
  readonly isDown: boolean;
}

export type ChangeListener<R> = (before: R | undefined, after: R | undefined) => void;

/**
 * A point-in-time view. It costs a pointer for each block, and a copy of each changed
 * block.
 */
export interface View<R extends StoredRecord> {
  readonly size: number;
  readonly revision: number;
  /** The records in blocks of at most 1,024, by ascending id. No block is empty. */
  readonly blocks: readonly (readonly R[])[];
}

/**
 * One transaction, inside the single writer. It sees the published records, the changes
 * of earlier transactions in its batch, and its own. It runs synchronously, so that its
 * decisions (uniqueness, preconditions, permissions) still hold when it is written.
 */
export interface Transaction {
  /** The records of a collection, as this transaction leaves them. */
  of<R extends StoredRecord>(collection: Collection<R>): Records<R>;
  /**
   * Calls `listener` with each further change as it is made. Its error is the error of the work. A
   * record that it returns takes the place of the one that the change has put.
   */
  onChange(listener: (change: RecordChange) => StoredRecord | undefined): void;
  /**
   * Runs work that makes several changes, of which a transaction has all or none. If it throws after
   * the first one, the transaction can only be undone, even if the error is caught.
   */
  whole<T>(work: () => T): T;
  /** Calls `listener` when the transaction is durable and visible, and before its caller knows. */
  onCommit(listener: () => void): void;
}

/** A transaction as checks see it, which also look at what is published. */
export interface Reader {
  of<R extends StoredRecord>(
    collection: Collection<R>,
  ): Pick<Records<R>, 'get' | 'withId' | 'find'>;
}

/** Reads the published records. */
export const published: Reader = { of: (collection) => collection };

/** The records of a collection in a transaction, which alone can change them. */
export interface Records<R extends StoredRecord> {
  /** The number of the next new record, which no other record has as the id that callers see. */
  readonly nextId: number;
  get(id: number): R | undefined;
  withId(id: RecordId): R | undefined;
  /** The record with this key in a unique index. */
  find(index: string, key: string): R | undefined;
  /** The records with this key in a group index. They must not change while they are read. */
  referring(index: string, key: string | number): Referring<R>;
  /**
   * Gives the record the next id, or `id`, which no record has, for one that had it elsewhere.
   * @throws UniqueKeyError; CairnError `storage_full` if there are no more ids
   */
  insert(record: Unstored<R>, id?: number): R;
  /** @throws UniqueKeyError; InvariantError if there is no such record */
  replace(id: number, record: Unstored<R>): R;
  /** Does nothing if there is no such record. */
  remove(id: number): void;
}

/** Records with the same key, by ascending id. They are looked up as they are read. */
export interface Referring<R extends StoredRecord> extends Iterable<R> {
  /** At least as many as there are: changed records may count twice. */
  readonly countAtMost: number;
}

/** Another record has this key already. The caller turns this into an error of its own. */
export class UniqueKeyError extends Error {
  override readonly name = 'UniqueKeyError';

  constructor(collection: string, index: string) {
    super(`Cannot write to ${collection}: its index ${index} has this key already`);
  }
}

/** A change of one record by a commit. */
export interface RecordChange {
  readonly collection: { readonly name: string };
  readonly id: number;
  /** `undefined` if the commit removed it. */
  readonly record: StoredRecord | undefined;
  /** The record before the change; `undefined` if it is new. */
  readonly before: StoredRecord | undefined;
  /** The commit's sequence number. */
  readonly sequence: number;
}

export interface Store {
  /**
   * New at the first start and after a restore or a repair, so that old entity tags never
   * match.
   */
  readonly epoch: string;
  /** Registers a collection. Must be called before `start`. */
  collection<R extends StoredRecord>(definition: TableDefinition<R>): Collection<R>;
  /** Locks the directory, and recovers and publishes the records. */
  start(): Promise<void>;
  /**
   * Runs `work` as one transaction. Resolves with its result when it is durable and
   * visible. An error that `work` throws rejects the promise, and nothing is written. Callers
   * take turns, one write each. Without `caller`, the program is the caller.
   * @throws CairnError `storage_full`, `outcome_unknown`, `store_failed`, `store_unavailable`,
   *   `overloaded`, `draining`
   */
  write<T>(work: (transaction: Transaction) => T, caller?: string): Promise<T>;
  /**
   * Publishes all commits of other processes that were acknowledged before. @throws as
   * `write`
   */
  confirm(): Promise<void>;
  /** Sequence number of the last published commit. */
  readonly sequence: number;
  readonly state: StoreState;
  /** True if `state` is `full` only for lack of memory. */
  readonly isMemoryFull: boolean;
  /** The most memory that the records may take, as it is counted. */
  readonly memoryMaxBytes: number;
  /** The number of records in all collections. */
  readonly size: number;
  /**
   * Calls `listener` for each group of commits, when it is published and before its
   * callers are answered. The changes are in the order of the commits.
   */
  onPublished(listener: (changes: readonly RecordChange[]) => void): void;
  /** Writes snapshots and begins a new journal. Does so later if the disk has no room. */
  checkpoint(): Promise<void>;
  /** Answers the writes that wait, writes snapshots, marks the stop as clean, and unlocks. */
  close(): Promise<void>;
  /** Figures for the metrics. */
  status(): StoreStatus;
}

/** Figures of the log. */
export interface LogStatus {
  readonly journalBytes: number;
  /** The time that it took to write and sync all groups together. */
  readonly appendMs: number;
  readonly checkpoints: number;
  readonly checkpointFailures: number;
  /**
   * When the snapshots last held everything, since the Unix epoch; `undefined` if they have
   * not since the start.
   */
  readonly checkpointedAt?: number | undefined;
  /** Further figures of this kind of log, for the metrics. */
  readonly figures?: readonly Figure[];
}

/** A figure with its name and its explanation, as metrics show it. */
export type Figure = readonly [
  kind: 'gauge' | 'counter',
  name: string,
  help: string,
  value: number,
];

export interface StoreStatus
  extends LogStatus, Pick<Store, 'state' | 'sequence' | 'memoryMaxBytes'> {
  /** Groups since the start, and their commits. */
  readonly groups: number;
  readonly commits: number;
  /** The memory of the records, as it is counted. */
  readonly memoryBytes: number;
  readonly collections: readonly { readonly name: string; readonly records: number }[];
}
