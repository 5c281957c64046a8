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
import { isCount, Table, type AnyTable, type TableChange, type Misfit } from './table.ts';

/**
 * One run of a transaction's work, on the published records and the changes of its batch
 * so far. Its own changes join those of the batch at once.
 *
 * A refusal before anything was changed, such as a key that is taken, leaves the transaction
 * usable: its work may catch the error and go on. After an error in the middle of a change,
 * the transaction can only be undone, even if its work catches the error.
 */
export class TableTransaction implements Transaction {
  /** In the order in which they were made. */
  readonly changes: TableChange[] = [];
  /** False once the work has returned. Then the transaction refuses to be used. */
  isOpen = true;
  /** That of the commit, which becomes the revision of every record that it writes. */
  readonly sequence: number;
  /** The first error in the middle of a change. */
  #failure: { readonly error: unknown } | undefined;
  #onChange: ((change: RecordChange) => StoredRecord | undefined) | undefined;
  #onCommit: (() => void)[] | undefined;

  constructor(sequence: number) {
    this.sequence = sequence;
  }

  /** Ends the transaction when its work has returned. @throws the error that broke a change off */
  end(): void {
    this.isOpen = false;
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Returns the commit as a JSON array, as the log has it. */
  encode(): string {
    const encoded = this.changes.map(
      ({ collection, id, record }) => `["${collection.name}",${JSON.stringify(record ?? id)}]`,
    );
    return `[${encoded.join(',')}]`;
  }

  /** Whether a full store refuses it: it accepts removals, and what a collection allows then. */
  get grows(): boolean {
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

  /** Calls the listeners of the commit, which is published. */
  committed(): void {
    for (const listener of this.#onCommit ?? []) listener();
  }

  whole<T>(work: () => T): T {
    if (this.#failure !== undefined) throw this.#failure.error;
    const { length } = this.changes;
    try {
      return work();
    } catch (error) {
      if (this.changes.length > length) this.#failure ??= { error };
      throw error;
    }
  }

  /** Puts a record and returns it, or removes it where it is `undefined`. @throws UniqueKeyError */
  change<R extends StoredRecord, T extends R | undefined>(
    table: Table<R>,
    id: number,
    record: T,
  ): T {
    return this.whole(() => this.#change(table, id, record));
  }

  #change<R extends StoredRecord, T extends R | undefined>(
    table: Table<R>,
    id: number,
    record: T,
  ): T {
    const index = record && table.indexWithKeyOf(id, record);
    if (index !== undefined) throw new UniqueKeyError(table.name, index);
    const before = table.getPending(id);
    const nextId = table.nextPendingId;
    const { sequence } = this;
    const change = { collection: table, id, record, before, nextId, sequence };
    this.changes.push(change);
    table.putPending(id, record);
    const amended = this.#onChange?.(change);
    if (amended !== undefined) {
      // The listener has made it from the record, and checked it.
      change.record = amended as T;
      table.putPending(id, change.record);
    }
    return change.record;
  }
}

/** The records of a table in a transaction. */
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
    const { name } = this.#table;
    invariant(this.get(id) === undefined, `there is a record ${id} in ${name} already`);
    if (!isCount(id + 1))
      throw new CairnError('storage_full', `Cannot write to ${name}: it has no more ids to give`);
    const stored = complete<R>(id, this.#transaction.sequence, record);
    return this.#transaction.change(this.#table, id, stored);
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
 * The record as it is stored: `id` and `revision` first, then the members that the caller
 * gave, in their order. The compiler does not see that this is the whole record again:
 * hence the overload.
 */
function complete<R extends StoredRecord>(id: number, revision: number, record: Unstored<R>): R;
function complete(id: number, revision: number, record: object): StoredRecord {
  const stored = { id, revision, ...record };
  // The caller may have spread a whole record into the new one.
  stored.id = id;
  stored.revision = revision;
  return stored;
}

/**
 * Publishes a change of the commit `sequence` that was read from a log. Returns the
 * change, or the problem with it.
 */
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

/** The changes of a group, each with the sequence number of its commit. */
export function* changesOf(group: ReadGroup): Generator<[change: JsonValue, sequence: number]> {
  for (const [at, commit] of group.commits.entries()) {
    for (const change of Array.isArray(commit) ? commit : [commit]) {
      yield [change, group.first + at];
    }
  }
}
