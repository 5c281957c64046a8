import { invariant } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { UniqueKeyError, type Collection, type CollectionDefinition, type StoredRecord, type View } from '../store.ts';
import { Blocks } from './blocks.ts';
import { Layer, type Readable } from './layer.ts';
import { RecordIndex, type Key } from './record-index.ts';

const misfit = 'it does not fit the declaration of';

/** Whether a problem that `load` returned is one of the declaration, and so perhaps none of the file. */
export const isMisfit = (problem: string): boolean => problem.startsWith(misfit);

/** What recovery, checkpoints and the writer need of a table, whatever its records are. */
export type AnyTable = Readonly<Pick<Table<StoredRecord>, 'name' | 'size' | 'revision' | 'nextId' | 'isOrdinary'>> &
  Pick<Table<StoredRecord>, 'get' | 'view' | 'publish' | 'load' | 'unload' | 'advance' | 'fresh'> & {
    readonly batch: { put(id: number, record: StoredRecord | undefined): void; clear(): void };
  };

/** One collection as it is published, and over it the changes that the writer has not published yet. */
export class Table<R extends StoredRecord> implements Collection<R>, Readable<R> {
  readonly name: string;
  readonly definition: CollectionDefinition<R>;
  readonly indexes: ReadonlyMap<string, RecordIndex<R>>;
  revision = 0;
  nextId = 1;
  /** What the transactions of the current batch have decided. */
  readonly batch: Layer<R>;
  readonly #blocks = new Blocks<R>();

  constructor(definition: CollectionDefinition<R>) {
    const { name, unique = {}, groups = {} } = definition;
    this.name = name;
    this.definition = definition;
    const entries = Object.entries({ ...groups, ...unique });
    this.indexes = new Map(entries.map(([index, keyOf]) => [index, new RecordIndex(keyOf, index in unique)]));
    this.batch = new Layer<R>(this);
  }

  /** Another table of the same collection, with nothing in it. */
  fresh(): AnyTable {
    return new Table(this.definition);
  }

  /** Whether a full store refuses what adds to it. */
  get isOrdinary(): boolean {
    return this.definition.whenFull !== true;
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

  /** The name of a unique index in which another record of `readable` has the key of this one, if there is one. */
  conflict(readable: Readable<R>, id: number, record: R): string | undefined {
    for (const [name, { unique, keyOf }] of this.indexes) {
      const taken = unique ? keyOf(record) : undefined;
      if (taken === undefined) continue;
      for (const holder of readable.ids(name, taken)) if (holder !== id) return name;
    }
    return undefined;
  }

  /** Publishes one change of the commit `sequence`: the record's new version, or `undefined` where it is removed. */
  publish(id: number, record: R | undefined, sequence: number): void {
    const before = this.indexes.size === 0 ? undefined : this.get(id);
    for (const index of this.indexes.values()) index.move(id, before, record);
    this.#blocks.set(id, record);
    this.revision = sequence;
    if (id >= this.nextId) this.nextId = id + 1;
  }

  /**
   * Publishes a record as it stands on disk, in the place of the one with its id; returns what is wrong with it, as
   * the end of a sentence, or `undefined`.
   */
  load(stored: JsonObject): string | undefined {
    if (!isStored(stored)) return 'its id or revision is not a positive integer, or too large';
    const { id } = stored;
    const record = this.definition.parse(stored);
    if (typeof record !== 'object') {
      return `${misfit} ${this.name}${record === undefined ? '' : `: record ${id} ${record}`}`;
    }
    const taken = this.conflict(this, id, record);
    if (taken !== undefined) return new UniqueKeyError(this.name, taken).message;
    this.publish(id, record, this.revision);
    return undefined;
  }

  /** Removes a record as the journal says; returns what is wrong, or `undefined` where the record was there. */
  unload(id: number): string | undefined {
    if (this.get(id) === undefined) return 'it removes a record that is not there';
    this.publish(id, undefined, this.revision);
    return undefined;
  }

  #index(name: string): RecordIndex<R> {
    const found = this.indexes.get(name);
    invariant(found !== undefined, `the collection ${this.name} has no index ${name}`);
    return found;
  }

  /** Sets what a snapshot's header or the journal says of the collection as a whole. */
  advance(revision: number, nextId: number): void {
    this.revision = Math.max(this.revision, revision);
    this.nextId = Math.max(this.nextId, nextId);
  }
}

/** The records with this key, by ascending id. */
export function recordsOf<R extends StoredRecord>(readable: Readable<R>, index: string, key: Key): R[] {
  const ids = [...readable.ids(index, key)].sort((a, b) => a - b);
  return ids.flatMap((id) => readable.get(id) ?? []);
}

/** The table of this name. Where the program does not know the collection, one is added that carries its records. */
export function tableOf(tables: Map<string, AnyTable>, name: string): AnyTable {
  const table = tables.get(name) ?? new Table({ name, parse: (record) => record });
  tables.set(name, table);
  return table;
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

/** Whether `value` is an integer from 0 to 2^52, so that counting on from it stays among the exact numbers. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 52;
}

/** Whether a collection may have this name. The name becomes a file's, also where it was read from a file. */
export function isCollectionName(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}$/.test(name);
}
