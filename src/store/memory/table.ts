import { invariant } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import {
  UniqueKeyError,
  type Collection,
  type CollectionDefinition,
  type StoredRecord,
  type View,
} from '../store.ts';
import { Blocks } from './blocks.ts';
import { RecordIndex, type Key, type KeyOf } from './record-index.ts';

const misfit = 'it does not fit the declaration of';

/** Whether a problem that `load` returned may be one of the declaration instead of the file. */
export const isMisfit = (problem: string): boolean => problem.startsWith(misfit);

/** The part of a table that does not depend on the type of its records. */
export type AnyTable = Readonly<
  Pick<Table<StoredRecord>, 'name' | 'size' | 'revision' | 'nextId' | 'isOrdinary'>
> &
  Pick<
    Table<StoredRecord>,
    'get' | 'view' | 'publish' | 'load' | 'unload' | 'advance' | 'fresh'
  > & { readonly batch: Pick<Layer<StoredRecord>, 'put' | 'clear'> };

/** One collection as it is published, and over it the changes that are not published yet. */
export class Table<R extends StoredRecord> implements Collection<R> {
  readonly name: string;
  readonly indexes: ReadonlyMap<string, RecordIndex<R>>;
  revision = 0;
  nextId = 1;
  /** The changes of the current batch of transactions. */
  readonly batch: Layer<R>;
  readonly #definition: CollectionDefinition<R>;
  readonly #unique: readonly (readonly [index: string, keyOf: KeyOf<R>])[];
  readonly #blocks = new Blocks<R>();

  constructor(definition: CollectionDefinition<R>) {
    const { name, unique = {}, groups } = definition;
    this.name = name;
    this.#definition = definition;
    this.#unique = Object.entries(unique);
    const indexes = Object.entries({ ...groups, ...unique });
    this.indexes = new Map(indexes.map(([index, keyOf]) => [index, new RecordIndex(keyOf)]));
    this.batch = new Layer<R>(this);
  }

  /** Another table of the same collection, without records. */
  fresh(): AnyTable {
    return new Table(this.#definition);
  }

  /** Whether a full store refuses transactions that add to it. */
  get isOrdinary(): boolean {
    return this.#definition.whenFull !== true;
  }

  get size(): number {
    return this.#blocks.size;
  }

  get(id: number): R | undefined {
    // Most records that are written, or read from files, have a new id.
    return id < this.nextId ? this.#blocks.get(id) : undefined;
  }

  find(index: string, key: string): R | undefined {
    const [id] = this.ids(index, key);
    return id === undefined ? undefined : this.get(id);
  }

  members(index: string, key: Key): R[] {
    return recordsOf(this, index, key);
  }

  latest(count: number): R[] {
    return this.#blocks.latest(count);
  }

  view(): View<R> {
    return { size: this.size, revision: this.revision, blocks: this.#blocks.view() };
  }

  ids(index: string, key: Key): Iterable<number> {
    return this.#index(index).ids(key);
  }

  countAtMost(index: string, key: Key): number {
    return this.#index(index).count(key);
  }

  /** The unique index in which another record, published or not, has the key of this one. */
  conflict(id: number, record: R): string | undefined {
    for (const [index, keyOf] of this.#unique) {
      const key = keyOf(record);
      if (key === undefined) continue;
      for (const holder of this.batch.ids(index, key)) if (holder !== id) return index;
    }
    return undefined;
  }

  /** Publishes the new version of a record; `undefined` removes the record. */
  publish(id: number, record: R | undefined, sequence: number): void {
    const before = this.indexes.size === 0 ? undefined : this.get(id);
    for (const index of this.indexes.values()) index.move(id, before, record);
    this.#blocks.set(id, record);
    this.advance(sequence, id + 1);
  }

  /**
   * Publishes a record that was read from a file or a log. Returns the problem, as the
   * end of a sentence, where there is one.
   */
  load(stored: JsonObject): string | undefined {
    if (!isStored(stored)) return 'its id or revision is not a positive integer, or too large';
    const { id } = stored;
    const record = this.#definition.parse(stored);
    if (typeof record !== 'object') {
      return `${misfit} ${this.name}${record === undefined ? '' : `: record ${id} ${record}`}`;
    }
    const taken = this.conflict(id, record);
    if (taken !== undefined) return new UniqueKeyError(this.name, taken).message;
    this.publish(id, record, 0);
    return undefined;
  }

  /**
   * Removes a record that the journal removes. Returns the problem where there is no such
   * record.
   */
  unload(id: number): string | undefined {
    if (this.get(id) === undefined) return 'it removes a record that is not there';
    this.publish(id, undefined, 0);
    return undefined;
  }

  /** Raises the revision and the next id, as a snapshot or a journal says. */
  advance(revision: number, nextId: number): void {
    if (revision > this.revision) this.revision = revision;
    if (nextId > this.nextId) this.nextId = nextId;
  }

  #index(name: string): RecordIndex<R> {
    const found = this.indexes.get(name);
    invariant(found !== undefined, `the collection ${this.name} has no index ${name}`);
    return found;
  }
}

/** The changes of one batch, laid over a table until they are published. */
export class Layer<R extends StoredRecord> {
  readonly #table: Table<R>;
  /** Indexes of the changed records. */
  readonly #indexes: ReadonlyMap<string, RecordIndex<R>>;
  /** The changed records by id; `undefined` where the record is removed. */
  readonly #changes = new Map<number, R | undefined>();
  #nextId = 0;

  constructor(table: Table<R>) {
    this.#table = table;
    this.#indexes = new Map(
      Array.from(table.indexes, ([name, { keyOf }]) => [name, new RecordIndex(keyOf)]),
    );
  }

  /** The id that the next new record gets. */
  get nextId(): number {
    return Math.max(this.#nextId, this.#table.nextId);
  }

  get(id: number): R | undefined {
    return this.#changes.has(id) ? this.#changes.get(id) : this.#table.get(id);
  }

  /** The ids of the records with this key in the index, in the order in which they got it. */
  *ids(index: string, key: Key): Generator<number, void, undefined> {
    for (const id of this.#table.ids(index, key)) if (!this.#changes.has(id)) yield id;
    yield* this.#indexes.get(index)?.ids(key) ?? [];
  }

  /** How many records have this key in the index. Changed records may count twice. */
  countAtMost(index: string, key: Key): number {
    return this.#table.countAtMost(index, key) + (this.#indexes.get(index)?.count(key) ?? 0);
  }

  /** Puts a record, or removes it where `record` is `undefined`. */
  put(id: number, record: R | undefined): void {
    for (const index of this.#indexes.values()) index.move(id, this.#changes.get(id), record);
    this.#changes.set(id, record);
    this.#nextId = Math.max(this.#nextId, id + 1);
  }

  clear(): void {
    if (this.#changes.size === 0) return;
    this.#changes.clear();
    this.#nextId = 0;
    for (const index of this.#indexes.values()) index.clear();
  }
}

/** The records with this key, by ascending id. */
export function recordsOf<R extends StoredRecord>(
  records: Pick<Layer<R>, 'get'> & { ids(index: string, key: Key): Iterable<number> },
  index: string,
  key: Key,
): R[] {
  const ids = [...records.ids(index, key)].sort((a, b) => a - b);
  return ids.flatMap((id) => records.get(id) ?? []);
}

/** The table of this name. Adds one where the program does not know the collection. */
export function tableOf(tables: Map<string, AnyTable>, name: string): AnyTable {
  const table = tables.get(name) ?? new Table({ name, parse: (record) => record });
  tables.set(name, table);
  return table;
}

/** How many records each collection has. */
export function countsOf(
  tables: ReadonlyMap<string, AnyTable>,
): { readonly name: string; readonly records: number }[] {
  return Array.from(tables.values(), ({ name, size }) => ({ name, records: size }));
}

function isStored(record: JsonObject): record is JsonObject & StoredRecord {
  const { id, revision } = record;
  return isCount(id) && id > 0 && isCount(id + 1) && isCount(revision);
}

/**
 * Whether `value` is an integer from 0 to 2^52, so that numbers a little above it are
 * exact.
 */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 52;
}

/** Whether a collection may have this name. It becomes the name of a file, whoever chose it. */
export function isCollectionName(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}$/.test(name);
}
