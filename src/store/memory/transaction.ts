import { CairnError, invariant } from '../../base/errors.ts';
import { isJsonObject, type JsonValue } from '../../base/json.ts';
import type { ReadGroup } from '../log.ts';
import {
  UniqueKeyError,
  type Collection,
  type PublishedChange,
  type StoredRecord,
  type Transaction,
  type Unstored,
} from '../store.ts';
import type { Key } from './record-index.ts';
import { isCount, Table, type AnyTable, type TableChange, type Misfit } from './table.ts';

/**
 * One run of a transaction's work, on the published records and the changes of its batch
 * so far. Its own changes join those of the batch at once.
 */
export class TableTransaction implements Transaction {
  /** In the order in which they were made. */
  readonly changes: TableChange[] = [];
  /** False once the work has returned. Then the transaction refuses to be used. */
  isOpen = true;
  /** That of the commit, which becomes the revision of every record that it writes. */
  readonly sequence: number;
  #encoded = '';

  constructor(sequence: number) {
    this.sequence = sequence;
  }

  /** The commit as a JSON array, as the log has it. */
  get encoded(): string {
    return `${this.#encoded}]`;
  }

  /** Whether a full store refuses it. Removals are accepted, and so are special collections. */
  get grows(): boolean {
    const removes = this.changes.some(({ record }) => record === undefined);
    const inserts = this.changes.some(({ before }) => before === undefined);
    const isOrdinary = this.changes.some(({ collection }) => collection.isOrdinary);
    return isOrdinary && (inserts || !removes);
  }

  get<R extends StoredRecord>(collection: Collection<R>, id: number): R | undefined {
    return this.#table(collection).getPending(id);
  }

  find<R extends StoredRecord>(
    collection: Collection<R>,
    index: string,
    key: string,
  ): R | undefined {
    return this.#table(collection).findPending(index, key);
  }

  members<R extends StoredRecord>(collection: Collection<R>, index: string, key: Key): R[] {
    return this.#table(collection).membersPending(index, key);
  }

  oldest<R extends StoredRecord>(
    collection: Collection<R>,
    index: string,
    key: Key,
  ): R | undefined {
    return this.#table(collection).oldestPending(index, key);
  }

  countAtMost<R extends StoredRecord>(collection: Collection<R>, index: string, key: Key): number {
    return this.#table(collection).countAtMost(index, key);
  }

  insert<R extends StoredRecord>(
    collection: Collection<R>,
    record: Unstored<R>,
    id = this.#table(collection).nextPendingId,
  ): R {
    const isFree = this.get(collection, id) === undefined;
    invariant(isFree, `there is a record ${id} in ${collection.name} already`);
    if (!isCount(id + 1)) {
      const message = `Cannot write to ${collection.name}: it has no more ids to give`;
      throw new CairnError('storage_full', message);
    }
    return this.#put(collection, id, record);
  }

  replace<R extends StoredRecord>(collection: Collection<R>, id: number, record: Unstored<R>): R {
    const known = this.get(collection, id) !== undefined;
    invariant(known, `there is no record ${id} in ${collection.name} to replace`);
    return this.#put(collection, id, record);
  }

  remove<R extends StoredRecord>(collection: Collection<R>, id: number): void {
    if (this.get(collection, id) === undefined) return;
    this.#change(this.#table(collection), id, undefined);
  }

  #put<R extends StoredRecord>(collection: Collection<R>, id: number, record: Unstored<R>): R {
    const table = this.#table(collection);
    const stored = complete<R>(id, this.sequence, record);
    const index = table.indexWithKeyOf(id, stored);
    if (index !== undefined) throw new UniqueKeyError(table.name, index);
    this.#change(table, id, stored);
    return stored;
  }

  #change<R extends StoredRecord>(table: Table<R>, id: number, record: R | undefined): void {
    const [before, nextId] = [table.getPending(id), table.nextPendingId];
    table.putPending(id, record);
    const { sequence } = this;
    this.changes.push({ collection: table, id, record, before, nextId, sequence });
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
): PublishedChange | Misfit {
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
