import { invariant } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { givenId, readId, recordId, type RecordId } from '../../base/record-id.ts';
import {
  type ChangeListener,
  type Collection,
  type From,
  type Key,
  type TableDefinition,
  type MisfitCause,
  type RecordChange,
  type Referring,
  type StoredRecord,
  type View,
} from '../store.ts';
import { Blocks } from './blocks.ts';
import { hasKey, RecordIndex, type KeyOf } from './record-index.ts';
import { levelsMax, estimateSize } from './size.ts';

export type AnyTable = Readonly<Pick<Table<StoredRecord>, keyof Table<StoredRecord>>>;

export interface TableChange extends RecordChange {
  readonly collection: AnyTable;
  /** The next id before the change. */
  readonly nextId: number;
}

/** The reason why a table does not accept a record, as the end of a sentence. */
export interface Misfit {
  readonly problem: string;
  /**
   * The record and its problem, to group records with the same problem. Present if the declaration
   * may be wrong instead of the record.
   */
  readonly cause?: MisfitCause;
}

interface Conflict {
  /** D2: a reference to no record; D3: a key that two records share in a unique index. */
  readonly label: 'D2' | 'D3';
  readonly name: string;
  readonly problem: string;
}

/**
 * One collection: the published records, and the pending changes of the batch that is being decided
 * or appended. The indexes hold the keys of both.
 */
export class Table<R extends StoredRecord> implements Collection<R> {
  readonly name: string;
  readonly isServers: boolean;
  readonly whenFull: TableDefinition<StoredRecord>['whenFull'];
  revision = 0;
  nextId = 1;
  readonly #definition: TableDefinition<R>;
  readonly #unique: ReadonlyMap<string, RecordIndex<R>>;
  readonly #groups: ReadonlyMap<string, RecordIndex<R>>;
  /** Ids that differ from record numbers, as texts, if the collection has such ids. */
  readonly #keys: RecordIndex<R> | undefined;
  readonly #indexes: readonly RecordIndex<R>[];
  readonly #blocks: Blocks<R>;
  readonly #followers = new Set<ChangeListener<R>>();
  /** The pending records by id; `undefined` if the batch removes the record. */
  readonly #pending = new Map<number, R | undefined>();
  #nextPendingId = 1;
  readonly #sum: { bytes: number };

  /** `sum` counts the memory of the records and the indexes, including the batch. */
  constructor(definition: TableDefinition<R>, sum: { bytes: number }) {
    const { name, isServers = false, groups = {}, whenFull } = definition;
    const unique = definition.hasKeys
      ? { ...definition.unique, [idIndex]: givenId }
      : definition.unique;
    this.name = name;
    this.isServers = isServers;
    this.whenFull = whenFull;
    this.#definition = definition;
    this.#sum = sum;
    this.#blocks = new Blocks(sum);
    this.#unique = makeIndexes(unique ?? {}, sum);
    this.#keys = this.#unique.get(idIndex);
    this.#groups = makeIndexes(groups, sum);
    this.#indexes = [...this.#unique.values(), ...this.#groups.values()];
  }

  addTo(tables: Tables): void {
    tables.add(this.#definition);
  }

  get size(): number {
    return this.#blocks.size;
  }

  get(id: number): R | undefined {
    // Most records that are written or loaded have a new id.
    return id < this.nextId ? this.#blocks.get(id) : undefined;
  }

  withId(id: RecordId, version: Version = 'published'): R | undefined {
    if (this.#keys === undefined) return typeof id === 'number' ? this.#at(id, version) : undefined;
    const found = this.#firstWith(this.#keys, String(id), version);
    if (found !== undefined) return found;
    const number = Number(id);
    // A number has one spelling.
    if (String(number) !== String(id)) return undefined;
    const own = this.#at(number, version);
    return own && givenId(own) === undefined ? own : undefined;
  }

  find(index: string, key: Key, version: Version = 'published'): R | undefined {
    return this.#firstWith(this.#of(this.#unique, index), key, version);
  }

  members(
    index: string,
    key: Key,
    most = Infinity,
    from?: From,
    test: (record: R) => boolean = () => true,
  ): R[] {
    const found: R[] = [];
    const group = this.#of(this.#groups, index);
    // A generator would cost as much as the records.
    for (const id of group.ids(key, from)) {
      const record = this.#holder(group, key, id, 'published');
      if (record !== undefined && test(record) && found.push(record) >= most) break;
    }
    return found;
  }

  latest(count: number): R[] {
    return this.#blocks.latest(count);
  }

  view(): View<R> {
    return { size: this.size, revision: this.revision, blocks: this.#blocks.view() };
  }

  follow(listener: ChangeListener<R>): () => void {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  getPending(id: number): R | undefined {
    const pending = this.#pending.get(id);
    return pending !== undefined || this.#pending.has(id) ? pending : this.get(id);
  }

  referringPending(index: string, key: Key): Referring<R> {
    const group = this.#of(this.#groups, index);
    return {
      countAtMost: group.count(key),
      [Symbol.iterator]: () => this.#pendingWith(group, key),
    };
  }

  countAtMost(index: string, key: Key): number {
    return this.#of(this.#groups, index).count(key);
  }

  /** The next number that no record has as its public id, since a given id moves no counter. */
  get freePendingId(): number {
    let id = this.nextPendingId;
    while (this.#keys !== undefined && this.withId(recordId(id), 'pending') !== undefined) id += 1;
    return id;
  }

  get nextPendingId(): number {
    return Math.max(this.#nextPendingId, this.nextId);
  }

  putPending(id: number, record: R | undefined): void {
    const published = this.get(id);
    const pending = this.getPending(id);
    this.#count(pending, record);
    for (const index of this.#indexes) {
      const findKeys = (version: R | undefined) => version && index.keyOf(version);
      index.stage(id, findKeys(published), findKeys(pending), findKeys(record));
    }
    if (record === published) this.#pending.delete(id);
    else this.#pending.set(id, record);
    this.#nextPendingId = Math.max(this.#nextPendingId, id + 1);
  }

  undo(id: number, before: R | undefined, nextId: number): void {
    this.putPending(id, before);
    this.#nextPendingId = nextId;
  }

  /** Does nothing if a later change of the batch has replaced it. */
  publishPending(id: number, record: R | undefined, sequence: number): void {
    if (this.getPending(id) === record) {
      this.#pending.delete(id);
      this.#publish(id, record);
    }
    this.advance(sequence, id + 1);
  }

  /**
   * Returns a unique index in which another record, published or pending, has this record's key.
   */
  indexWithKeyOf(id: number, record: R): string | undefined {
    for (const [name, index] of this.#unique) {
      const key = index.keyOf(record);
      if (key === undefined || typeof key === 'object') continue;
      for (const holder of this.#pendingWith(index, key)) {
        if (holder.id !== id) return name;
      }
    }
    return undefined;
  }

  /**
   * Finds values that contradict other records, which loading does not check: duplicate keys of
   * unique indexes, and references to no record of `tables`. Nothing may be pending.
   */
  *conflicts(tables: ReadonlyMap<string, AnyTable>): Generator<Conflict, void, undefined> {
    for (const [field, index] of this.#unique) {
      const shared = index.keys((_, count) => count > 1);
      const which = 'that an earlier record has';
      yield* this.#conflict('D3', field, index.holders(shared, 1), which);
    }
    for (const [field, to] of Object.entries(this.#definition.references ?? {})) {
      const target = tables.get(to);
      const index = this.#of(this.#groups, field);
      const dangling = index.keys((key) => target?.withId(recordId(key)) === undefined);
      const which = `that is not a record of ${to}`;
      yield* this.#conflict('D2', field, index.holders(dangling), which);
    }
  }

  *#conflict(
    label: Conflict['label'],
    field: string,
    holders: readonly number[],
    which: string,
  ): Generator<Conflict> {
    const ids = [...new Set(holders)].sort((a, b) => a - b);
    if (ids.length === 0) return;
    const shown = ids.slice(0, 3).join(', ') + (ids.length > 3 ? ', …' : '');
    const count =
      ids.length === 1 ? '1 record has' : `${ids.length.toLocaleString('en')} records have`;
    yield { label, name: this.name, problem: `${count} a "${field}" ${which}: ${shown}` };
  }

  /** Publishes a record from a file or a log, or returns its problem. Nothing may be pending. */
  load(stored: JsonObject): Misfit | undefined {
    if (!isStored(stored)) {
      return { problem: 'its id or revision is not a positive integer, or too large' };
    }
    const { id } = stored;
    const record = this.#definition.parse(stored);
    if (typeof record === 'string') {
      const named = JSON.stringify(readId(stored));
      const problem = `it does not fit the declaration of ${this.name}: record ${named} ${record}`;
      return { problem, cause: { id: readId(stored), reason: record } };
    }
    const bytes = estimateSize(record);
    if (bytes === Infinity) return { problem: `a record is nested more than ${levelsMax} deep` };
    this.#count(this.get(id), record, bytes);
    this.#publish(id, record);
    this.advance(0, id + 1);
    return undefined;
  }

  /** Removes a record, or returns the problem. Nothing may be pending. */
  unload(id: number): Misfit | undefined {
    if (this.get(id) === undefined) return { problem: 'it removes a record that is not there' };
    this.#put(id, undefined);
    return undefined;
  }

  /** Removes all records; their ids stay taken. Nothing may be pending. */
  clear(): void {
    for (const { id } of this.#blocks.view().flat()) this.#put(id, undefined);
  }

  advance(revision: number, nextId: number): void {
    if (revision > this.revision) this.revision = revision;
    if (nextId > this.nextId) this.nextId = nextId;
  }

  #put(id: number, record: R | undefined): void {
    this.#count(this.get(id), record);
    this.#publish(id, record);
  }

  #count(before: R | undefined, record: R | undefined, bytes = estimateSize(record)): void {
    this.#sum.bytes += bytes - estimateSize(before);
    this.#definition.onCount?.(before, record);
  }

  #publish(id: number, record: R | undefined): void {
    const needsBefore = this.#indexes.length > 0 || this.#followers.size > 0;
    const before = needsBefore ? this.get(id) : undefined;
    for (const index of this.#indexes) {
      index.publish(id, before && index.keyOf(before), record && index.keyOf(record));
    }
    this.#blocks.set(id, record);
    for (const listener of this.#followers) listener(before, record);
  }

  #at(id: number, version: Version): R | undefined {
    return version === 'pending' ? this.getPending(id) : this.get(id);
  }

  /** Returns the record with this id, which the index has for the key, if this version has it. */
  #holder(index: RecordIndex<R>, key: Key, id: number, version: Version): R | undefined {
    const record = this.#at(id, version);
    if (record === undefined || !this.#pending.has(id)) return record;
    return hasKey(index.keyOf(record), key) ? record : undefined;
  }

  #firstWith(index: RecordIndex<R>, key: Key, version: Version): R | undefined {
    for (const id of index.ids(key)) {
      const record = this.#holder(index, key, id, version);
      if (record !== undefined) return record;
    }
    return undefined;
  }

  *#pendingWith(index: RecordIndex<R>, key: Key): Generator<R, void, undefined> {
    for (const id of index.ids(key)) {
      const record = this.#holder(index, key, id, 'pending');
      if (record !== undefined) yield record;
    }
  }

  #of(indexes: ReadonlyMap<string, RecordIndex<R>>, name: string): RecordIndex<R> {
    const found = indexes.get(name);
    invariant(found !== undefined, `the collection ${this.name} has no index ${name}`);
    return found;
  }
}

type Version = 'published' | 'pending';

/** The index of ids that differ from record numbers. No index of a field has this name. */
const idIndex = 'id';

function makeIndexes<R>(
  keys: { readonly [index: string]: KeyOf<R> },
  sum: { bytes: number },
): ReadonlyMap<string, RecordIndex<R>> {
  const entries = Object.entries(keys);
  return new Map(entries.map(([index, keyOf]) => [index, new RecordIndex(keyOf, sum)]));
}

export class Tables extends Map<string, AnyTable> {
  bytes = 0;

  add<R extends StoredRecord>(definition: TableDefinition<R>): Table<R> {
    const table = new Table(definition, this);
    this.set(table.name, table);
    return table;
  }
}

export function* conflictsIn(tables: ReadonlyMap<string, AnyTable>) {
  for (const table of tables.values()) yield* table.conflicts(tables);
}

/** Reverts pending changes, last one first. */
export function undo(changes: readonly TableChange[]): void {
  for (const { collection, id, before, nextId } of changes.toReversed()) {
    collection.undo(id, before, nextId);
  }
}

/** Returns the table of this name. Adds one if the program does not know the collection. */
export function findOrAddTable(
  tables: Tables,
  name: string,
  isServers = isServerTable(name),
): AnyTable {
  const owner = isServers ? { isServers } : {};
  return tables.get(name) ?? tables.add({ name, ...owner, parse: (record) => record });
}

/** True for the names of the server's own tables, when nothing else tells them apart. */
export function isServerTable(name: string): boolean {
  return ['users', 'sessions', 'api-keys', 'idempotency-keys'].includes(name);
}

export function countRecords(
  tables: ReadonlyMap<string, AnyTable>,
): { readonly name: string; readonly records: number }[] {
  return Array.from(tables.values(), ({ name, size }) => ({ name, records: size }));
}

function isStored(record: JsonObject): record is JsonObject & StoredRecord {
  const { id, revision } = record;
  return isCount(id) && id > 0 && isCount(id + 1) && isCount(revision);
}

/** True for an integer from 0 to 2^52, so that slightly larger numbers are still exact. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 52;
}

/** True if a collection may have this name, which becomes the name of a file. */
export function isCollectionName(name: string): boolean {
  return /^[\w-]{1,63}$/.test(name);
}
