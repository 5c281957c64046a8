import { invariant } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { Blocks } from './blocks.ts';
import { UniqueKeyError, type Collection, type CollectionDefinition, type StoredRecord, type View } from './store.ts';

/** What recovery, checkpoints and the writer need of a table, whatever its records are. */
export type AnyTable = Readonly<Pick<Table<StoredRecord>, 'name' | 'size' | 'revision' | 'nextId'>> &
  Pick<Table<StoredRecord>, 'get' | 'view' | 'load' | 'unload' | 'advance'> & {
    readonly pending: { clear(): void };
    /** Another of the same collection, with nothing in it. */
    fresh(): AnyTable;
  };

type Key = string | number;

/** Which records, by their ids, have which key. */
class Index<R> {
  /** `undefined` where a record takes no part. */
  readonly key: (record: R) => Key | undefined;
  /** A lone id stands as itself: most keys have one, and a set costs some 200 bytes. */
  readonly #ids = new Map<Key, number | Set<number>>();

  constructor(key: (record: R) => Key | undefined) {
    this.key = key;
  }

  /** One of the ids with this key: the only one, where the key is unique. */
  one(key: Key): number | undefined {
    const ids = this.#ids.get(key);
    return typeof ids === 'object' ? ids.values().next().value : ids;
  }

  all(key: Key): number[] {
    const ids = this.#ids.get(key) ?? [];
    return typeof ids === 'number' ? [ids] : [...ids];
  }

  /** Follows a record from one version to the next; `undefined` where there is none. */
  move(id: number, before: R | undefined, after: R | undefined): void {
    const from = before && this.key(before);
    const to = after && this.key(after);
    if (from === to) return;
    if (from !== undefined) this.#leave(id, from);
    if (to === undefined) return;
    const ids = this.#ids.get(to);
    if (ids === undefined) this.#ids.set(to, id);
    else if (typeof ids === 'number') this.#ids.set(to, new Set([ids, id]));
    else ids.add(id);
  }

  clear(): void {
    this.#ids.clear();
  }

  #leave(id: number, key: Key): void {
    const ids = this.#ids.get(key);
    if (typeof ids === 'object') ids.delete(id);
    if (ids === id || (typeof ids === 'object' && ids.size === 0)) this.#ids.delete(key);
  }
}

/** One collection, as it is published, and beside it what is pending. */
export class Table<R extends StoredRecord> implements Collection<R> {
  readonly name: string;
  /** Each twice: of the records as they are published, and of those with a pending change, as it leaves them. */
  readonly indexes: { name: string; unique: boolean; published: Index<R>; pending: Index<R> }[] = [];
  revision = 0;
  nextId = 1;
  readonly pending = new Pending<R>(this);
  readonly definition: CollectionDefinition<R>;
  readonly #blocks = new Blocks<R>();

  constructor(definition: CollectionDefinition<R>) {
    this.name = definition.name;
    this.definition = definition;
    const { unique = {}, groups = {} } = definition;
    for (const [name, key] of Object.entries({ ...groups, ...unique })) {
      this.indexes.push({ name, unique: name in unique, published: new Index(key), pending: new Index(key) });
    }
  }

  fresh(): AnyTable {
    return new Table(this.definition);
  }

  get size(): number {
    return this.#blocks.size;
  }

  get(id: number): R | undefined {
    // Most that is written, or read from files, has a new id.
    return id < this.nextId ? this.#blocks.get(id) : undefined;
  }

  find(index: string, key: string): R | undefined {
    const id = this.index(index).published.one(key);
    return id === undefined ? undefined : this.#blocks.get(id);
  }

  members(index: string, key: Key): R[] {
    return recordsOf(this, this.index(index).published.all(key));
  }

  latest(count: number): R[] {
    return this.#blocks.latest(count);
  }

  view(): View<R> {
    return this.#blocks.view(this.revision);
  }

  index(name: string) {
    const index = this.indexes.find((each) => each.name === name);
    invariant(index !== undefined, `the collection ${this.name} has no index ${name}`);
    return index;
  }

  /** Publishes one change of the commit `sequence`: the record's new version, or that it is gone. */
  publish(id: number, record: R | undefined, sequence: number): void {
    const before = this.get(id);
    for (const { published } of this.indexes) published.move(id, before, record);
    if (record === undefined) this.#blocks.remove(id);
    else this.#blocks.put(record);
    this.revision = sequence;
    if (id >= this.nextId) this.nextId = id + 1;
  }

  /**
   * Puts a record as it stands on disk, replacing the one with its id; `undefined` when it is well, else what is
   * wrong with it, as the end of a sentence.
   */
  load(stored: JsonObject): string | undefined {
    if (!isStored(stored)) return 'its id or revision is not a positive integer, or too large';
    const { id } = stored;
    const record = this.definition.parse(stored);
    if (typeof record !== 'object') {
      return `it does not fit the declaration of ${this.name}${record === undefined ? '' : `: record ${id} ${record}`}`;
    }
    for (const { name, unique, published } of this.indexes) {
      const key = unique ? published.key(record) : undefined;
      const holder = key === undefined ? undefined : published.one(key);
      if (holder !== undefined && holder !== id) return new UniqueKeyError(this.name, name).message;
    }
    this.publish(id, record, this.revision);
    return undefined;
  }

  /** Removes a record as the journal says; `undefined` when it was there, else what is wrong. */
  unload(id: number): string | undefined {
    if (this.get(id) === undefined) return 'it removes a record that is not there';
    this.publish(id, undefined, this.revision);
    return undefined;
  }

  /** Sets what a snapshot's header or the journal says of the collection as a whole. */
  advance(revision: number, nextId: number): void {
    this.revision = Math.max(this.revision, revision);
    this.nextId = Math.max(this.nextId, nextId);
  }
}

/** A decision of one commit about one record, whatever collection it is in. */
export interface Change {
  readonly pending: {
    /** Makes it pending. */
    lay(change: Change): void;
    /** Makes it visible to readers; what was laid before it is published already. */
    publish(change: Change): void;
  };
}

interface RecordChange<R extends StoredRecord> extends Change {
  readonly id: number;
  /** `undefined` where it is removed. */
  readonly record: R | undefined;
  readonly sequence: number;
}

/**
 * What is decided but not yet durable, laid over one table. Only transactions look through it; readers see the table.
 * When a change is published it goes, unless a later one has taken its place.
 */
export class Pending<R extends StoredRecord> {
  nextId = 1;
  readonly #table: Table<R>;
  /** By id: the newest change of the record. */
  readonly #changes = new Map<number, RecordChange<R>>();

  constructor(table: Table<R>) {
    this.#table = table;
  }

  get(id: number): R | undefined {
    const change = this.#changes.get(id);
    return change === undefined ? this.#table.get(id) : change.record;
  }

  members(index: string, key: Key): R[] {
    const { published, pending } = this.#table.index(index);
    const unchanged = published.all(key).filter((id) => !this.#changes.has(id));
    return recordsOf(this, [...unchanged, ...pending.all(key)]);
  }

  /**
   * Decides one change of the commit `sequence`, and lays it; `undefined` removes the record.
   * @throws UniqueKeyError, before anything is changed
   */
  change(id: number, record: R | undefined, sequence: number): Change {
    for (const { name, unique, published } of this.#table.indexes) {
      const taken = unique && record ? published.key(record) : undefined;
      if (taken === undefined || this.members(name, taken).every((holder) => holder.id === id)) continue;
      throw new UniqueKeyError(this.#table.name, name);
    }
    const change = { pending: this, id, record, sequence };
    this.lay(change);
    return change;
  }

  /** Goes back to what the table says. */
  clear(): void {
    this.#changes.clear();
    for (const { pending } of this.#table.indexes) pending.clear();
    this.nextId = this.#table.nextId;
  }

  lay(change: RecordChange<R>): void {
    const { id, record } = change;
    this.#move(id, record);
    this.#changes.set(id, change);
    if (id >= this.nextId) this.nextId = id + 1;
  }

  publish(change: RecordChange<R>): void {
    const { id, record, sequence } = change;
    if (this.#changes.get(id) === change) {
      this.#move(id, undefined);
      this.#changes.delete(id);
    }
    this.#table.publish(id, record, sequence);
  }

  /** Indexes `record` in the place of what is pending of it. */
  #move(id: number, record: R | undefined): void {
    const before = this.#changes.get(id)?.record;
    for (const { pending } of this.#table.indexes) pending.move(id, before, record);
  }
}

/** By ascending id. */
function recordsOf<R>(from: { get(id: number): R | undefined }, ids: number[]): R[] {
  const records: R[] = [];
  for (const id of ids.sort((a, b) => a - b)) {
    const record = from.get(id);
    if (record !== undefined) records.push(record);
  }
  return records;
}

/** A table of a collection that the program does not know: its records stay as they are. */
export function carriedTable(name: string): AnyTable {
  return new Table({ name, parse: (record) => record });
}

/** How many records each collection has. */
export function countsOf(tables: ReadonlyMap<string, AnyTable>): { readonly name: string; readonly records: number }[] {
  return Array.from(tables.values(), ({ name, size }) => ({ name, records: size }));
}

function isStored(record: JsonObject): record is JsonObject & StoredRecord {
  const { id, revision } = record;
  // After the id comes another one.
  return isCount(id) && id > 0 && isCount(id + 1) && isCount(revision);
}

/** Whether `value` is an integer from 0 to 2^52: whoever counts on from it stays among the numbers that are exact. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 52;
}

/** Whether a collection may have this name: it becomes a file's, also where it was read from a file. */
export function isCollectionName(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}$/.test(name);
}
