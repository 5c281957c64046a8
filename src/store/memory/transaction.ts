import { CairnError, invariant } from '../../base/errors.ts';
import { isJsonObject, type JsonValue } from '../../base/json.ts';
import type { RecordId } from '../../base/record-id.ts';
import type { ReadGroup } from '../log.ts';
import {
  UniqueKeyError,
  type Key,
  type Collection,
  type RecordChange,
  type Records,
  type Referring,
  type StoredRecord,
  type Transaction,
  type Unstored,
} from '../store.ts';
import { isCount, Table, undo, type AnyTable, type TableChange, type Misfit } from './table.ts';

/** A call of `write`. Declared as methods, so that the type of the result does not matter. */
interface Call<T> {
  resolve(result: T): void;
  reject(error: unknown): void;
}

/**
 * One call of `write`. A run works on the published records and the batch's changes so far, and its
 * own changes join the batch at once. It may run several times, from the beginning, before the call
 * resolves.
 *
 * A refusal before any change, such as a duplicate key, leaves the transaction usable: its work may
 * catch the error and continue. After an error in the middle of a change, the transaction can only
 * be undone, even if its work catches the error.
 */
export class TableTransaction<T = unknown> implements Transaction {
  changes: TableChange[] = [];
  /** The changes as the log has them; `undefined` without changes. */
  commit: string | undefined;
  /** The commit's number, and so the revision of every record that it writes. */
  sequence = 0;
  /** The transaction can only be used while its work runs. */
  isOpen = false;
  readonly #work: (transaction: Transaction) => T;
  readonly #call: Call<T>;
  #result!: T;
  #failure: { readonly error: unknown } | undefined;
  #onChange: ((change: RecordChange) => StoredRecord | undefined) | undefined;
  #onCommit: (() => void)[] | undefined;

  constructor(work: (transaction: Transaction) => T, call: Call<T>) {
    this.#work = work;
    this.#call = call;
  }

  /** Undoes the changes if the work fails, or if `checkRoom` refuses them. */
  run(sequence: number, checkRoom: () => void): void {
    this.sequence = sequence;
    this.changes = [];
    this.commit = this.#failure = this.#onChange = this.#onCommit = undefined;
    this.isOpen = true;
    try {
      this.#result = this.#work(this);
      const isSynchronous = !(this.#result instanceof Promise);
      invariant(isSynchronous, 'the work of a transaction must not be asynchronous');
      this.#assertWhole();
      if (this.#grows) checkRoom();
      if (this.changes.length > 0) this.commit = encodeCommit(this.changes);
    } catch (error) {
      undo(this.changes);
      this.#failure = { error };
    }
    this.isOpen = false;
  }

  /** Settles the call once the outcome of the last run has been published. */
  answer(): void {
    if (this.#failure !== undefined) return this.reject(this.#failure.error);
    for (const listener of this.#onCommit ?? []) listener();
    this.#call.resolve(this.#result);
  }

  reject(error: unknown): void {
    this.#call.reject(error);
  }

  /** True if a full store refuses it: it accepts removals, and writes that a collection permits. */
  get #grows(): boolean {
    let [removes, inserts, isOrdinary] = [false, false, false];
    for (const { record, before, collection } of this.changes) {
      removes ||= record === undefined;
      const isNew = before === undefined;
      if (collection.whenFull === 'written' || (collection.whenFull && !isNew)) continue;
      inserts ||= isNew;
      isOrdinary = true;
    }
    return isOrdinary && (inserts || !removes);
  }

  of<R extends StoredRecord>(collection: Collection<R>): Records<R> {
    invariant(collection instanceof Table, 'a collection that this store did not make');
    return new TableRecords(this, collection);
  }

  onChange(listener: (change: RecordChange) => StoredRecord | undefined): void {
    this.#onChange = listener;
  }

  onCommit(listener: () => void): void {
    (this.#onCommit ??= []).push(listener);
  }

  whole<V>(work: () => V): V {
    this.#assertWhole();
    const { length } = this.changes;
    try {
      return work();
    } catch (error) {
      if (this.changes.length > length) this.#failure ??= { error };
      throw error;
    }
  }

  /** @throws the first error in the middle of a change, after which nothing counts */
  #assertWhole(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Puts a record and returns it, or removes it if it is `undefined`. @throws UniqueKeyError */
  change<R extends StoredRecord, V extends R | undefined>(
    table: Table<R>,
    id: number,
    record: V,
  ): V {
    this.#assertWhole();
    const index = record && table.indexWithKeyOf(id, record);
    if (index !== undefined) throw new UniqueKeyError(table.name, index);
    const { sequence } = this;
    const before = table.getPending(id);
    const change = { collection: table, id, record, before, nextId: table.nextPendingId, sequence };
    this.changes.push(change);
    try {
      table.putPending(id, record);
      const amended = this.#onChange?.(change);
      if (amended !== undefined) {
        // The listener has made it from the record, and checked it.
        change.record = amended as V;
        table.putPending(id, change.record);
      }
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
    return change.record;
  }
}

function encodeCommit(changes: readonly TableChange[]): string {
  return JSON.stringify(
    changes.map(({ collection, id, record }) => [collection.name, record ?? id]),
  );
}

class TableRecords<R extends StoredRecord> implements Records<R> {
  readonly #transaction: TableTransaction;
  readonly #records: Table<R>;

  constructor(transaction: TableTransaction, table: Table<R>) {
    this.#transaction = transaction;
    this.#records = table;
  }

  get nextId(): number {
    return this.#table.freePendingId;
  }

  get(id: number): R | undefined {
    return this.#table.getPending(id);
  }

  withId(id: RecordId): R | undefined {
    return this.#table.withId(id, 'pending');
  }

  find(index: string, key: string): R | undefined {
    return this.#table.find(index, key, 'pending');
  }

  referring(index: string, key: Key): Referring<R> {
    return this.#table.referringPending(index, key);
  }

  insert(record: Unstored<R>, id = this.#table.nextPendingId): R {
    const table = this.#table;
    const { name } = table;
    invariant(table.getPending(id) === undefined, `there is a record ${id} in ${name} already`);
    if (!isCount(id + 1))
      throw new CairnError('storage_full', `Cannot write to ${name}: it has no more ids to give`);
    const stored = complete<R>(id, this.#transaction.sequence, record);
    return this.#transaction.change(table, id, stored);
  }

  replace(id: number, record: Unstored<R>): R {
    const isKnown = this.get(id) !== undefined;
    invariant(isKnown, `there is no record ${id} in ${this.#table.name} to replace`);
    const stored = complete<R>(id, this.#transaction.sequence, record);
    return this.#transaction.change(this.#table, id, stored);
  }

  remove(id: number): void {
    if (this.get(id) !== undefined) this.#transaction.change(this.#table, id, undefined);
  }

  get #table(): Table<R> {
    invariant(this.#transaction.isOpen, 'a transaction is used after its work has returned');
    return this.#records;
  }
}

/**
 * Returns the record as stored: `id` and `revision` first, then the caller's members in their
 * order. The overload exists because the compiler does not see that this is the whole record.
 */
function complete<R extends StoredRecord>(id: number, revision: number, record: Unstored<R>): R;
function complete(id: number, revision: number, record: object): StoredRecord {
  const stored = { id, revision, ...record };
  // The caller may have spread a whole record into the new one.
  stored.id = id;
  stored.revision = revision;
  return stored;
}

/** Publishes a change from a log. Returns it, or its problem. */
export function applyChange(
  change: JsonValue,
  sequence: number,
  tables: ReadonlyMap<string, AnyTable>,
): RecordChange | Misfit {
  if (!Array.isArray(change)) return { problem: 'a change is not a pair' };
  const [name, value] = change;
  const table = typeof name === 'string' ? tables.get(name) : undefined;
  if (table === undefined) {
    return { problem: 'it names a collection that the manifest does not list' };
  }
  const record = isJsonObject(value) ? value : undefined;
  const id = record?.['id'] ?? value;
  if (!isCount(id)) return { problem: 'a change is neither a record nor an id' };
  if (record !== undefined && record['revision'] !== sequence) {
    return { problem: 'a record does not have the revision of its commit' };
  }
  const before = table.get(id);
  const misfit = record === undefined ? table.unload(id) : table.load(record);
  table.advance(sequence, id + 1);
  return misfit ?? { collection: table, id, record: table.get(id), before, sequence };
}

export function* listChanges(group: ReadGroup): Generator<[change: JsonValue, sequence: number]> {
  for (const [at, commit] of group.commits.entries()) {
    for (const change of Array.isArray(commit) ? commit : [commit]) {
      yield [change, group.first + at];
    }
  }
}
