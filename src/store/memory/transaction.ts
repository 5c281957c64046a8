import { CairnError, invariant } from '../../base/errors.ts';
import { isJsonObject, type JsonValue } from '../../base/json.ts';
import type { ForeignGroup } from '../log.ts';
import {
  UniqueKeyError,
  type Collection,
  type PublishedChange,
  type StoredRecord,
  type Transaction,
  type Unstored,
} from '../store.ts';
import type { Key } from './record-index.ts';
import { isCount, recordsOf, Table, type AnyTable } from './table.ts';

/** A change of one record, before it is published. */
export interface Change extends PublishedChange {
  readonly collection: AnyTable;
}

/**
 * One run of a transaction's work, on the published records and the changes of its batch
 * so far. Its own changes join those of the batch at once.
 */
export class TableTransaction implements Transaction {
  /** In the order in which they were made. */
  readonly changes: Change[] = [];
  /** False once the work has returned. Then the transaction refuses to be used. */
  isOpen = true;
  /** Records that it adds to ordinary collections; negative where it removes more. */
  added = 0;
  readonly #sequence: number;
  #encoded = '';
  #inserts = false;
  #removes = false;
  /** Whether it changes an ordinary collection, which is one without `whenFull`. */
  #isOrdinary = false;

  /** `sequence` is that of the commit, and becomes the revision of every record it writes. */
  constructor(sequence: number) {
    this.#sequence = sequence;
  }

  /** The commit as a JSON array, as the log has it. */
  get encoded(): string {
    return `${this.#encoded}]`;
  }

  /** Whether a full store refuses it. Removals are accepted, and so are special collections. */
  get grows(): boolean {
    const shrinks = this.#removes && !this.#inserts;
    return this.#isOrdinary && !shrinks;
  }

  get<R extends StoredRecord>(collection: Collection<R>, id: number): R | undefined {
    return this.#table(collection).batch.get(id);
  }

  find<R extends StoredRecord>(
    collection: Collection<R>,
    index: string,
    key: string,
  ): R | undefined {
    return this.oldest(collection, index, key);
  }

  members<R extends StoredRecord>(collection: Collection<R>, index: string, key: Key): R[] {
    return recordsOf(this.#table(collection).batch, index, key);
  }

  oldest<R extends StoredRecord>(
    collection: Collection<R>,
    index: string,
    key: Key,
  ): R | undefined {
    const { batch } = this.#table(collection);
    for (const id of batch.ids(index, key)) return batch.get(id);
    return undefined;
  }

  countAtMost<R extends StoredRecord>(collection: Collection<R>, index: string, key: Key): number {
    return this.#table(collection).batch.countAtMost(index, key);
  }

  insert<R extends StoredRecord>(collection: Collection<R>, record: Unstored<R>): R {
    const { nextId } = this.#table(collection).batch;
    if (!isCount(nextId + 1)) {
      const message = `Cannot write to ${collection.name}: it has no more ids to give`;
      throw new CairnError('storage_full', message);
    }
    return this.#put(collection, nextId, record, 1);
  }

  replace<R extends StoredRecord>(collection: Collection<R>, id: number, record: Unstored<R>): R {
    const known = this.get(collection, id) !== undefined;
    invariant(known, `there is no record ${id} in ${collection.name} to replace`);
    return this.#put(collection, id, record, 0);
  }

  remove<R extends StoredRecord>(collection: Collection<R>, id: number): void {
    if (this.get(collection, id) === undefined) return;
    this.#change(this.#table(collection), id, undefined, -1);
  }

  #put<R extends StoredRecord>(
    collection: Collection<R>,
    id: number,
    record: Unstored<R>,
    added: number,
  ): R {
    const table = this.#table(collection);
    const stored = complete<R>(id, this.#sequence, record);
    const taken = table.conflict(id, stored);
    if (taken !== undefined) throw new UniqueKeyError(table.name, taken);
    this.#change(table, id, stored, added);
    return stored;
  }

  #change<R extends StoredRecord>(
    table: Table<R>,
    id: number,
    record: R | undefined,
    added: number,
  ): void {
    table.batch.put(id, record);
    this.changes.push({ collection: table, id, record, sequence: this.#sequence });
    this.#inserts ||= added > 0;
    this.#removes ||= added < 0;
    if (table.isOrdinary) {
      this.#isOrdinary = true;
      this.added += added;
    }
    const separator = this.#encoded === '' ? '[' : ',';
    this.#encoded += `${separator}["${table.name}",${JSON.stringify(record ?? id)}]`;
  }

  #table<R extends StoredRecord>(collection: Collection<R>): Table<R> {
    invariant(this.isOpen, 'a transaction is used after its work has returned');
    invariant(collection instanceof Table, 'a collection that this store did not make');
    return collection;
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
): PublishedChange | string {
  if (!Array.isArray(change)) return 'a change is not a pair';
  const [name, value] = change;
  const table = typeof name === 'string' ? tables.get(name) : undefined;
  if (table === undefined) return 'it names a collection that the manifest does not list';
  const record = isJsonObject(value) ? value : undefined;
  const id = record?.['id'] ?? value;
  if (!isCount(id)) return 'a change is neither a record nor an id';
  if (record !== undefined && record['revision'] !== sequence) {
    return 'a record does not have the revision of its commit';
  }
  const problem = record === undefined ? table.unload(id) : table.load(record);
  table.advance(sequence, id + 1);
  return problem ?? { collection: table, id, record: table.get(id), sequence };
}

/** The changes of a group, each with the sequence number of its commit. */
export function* changesOf(group: ForeignGroup): Generator<[change: JsonValue, sequence: number]> {
  for (const [at, commit] of group.commits.entries()) {
    for (const change of Array.isArray(commit) ? commit : [commit]) {
      yield [change, group.first + at];
    }
  }
}
