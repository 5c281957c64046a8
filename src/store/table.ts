import { invariant } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { Blocks } from './blocks.ts';
import { GroupIndex, UniqueIndex } from './indexes.ts';
import { UniqueKeyError, type Collection, type CollectionDefinition, type StoredRecord, type View } from './store.ts';

/** What recovery, checkpoints and the writer need of a table, whatever its records are. */
export type AnyTable = Readonly<Pick<Table<StoredRecord>, 'name' | 'size' | 'revision' | 'nextId'>> &
  Pick<Table<StoredRecord>, 'get' | 'view' | 'load' | 'unload' | 'advance'>;

/** One collection, as it is published. */
export class Table<R extends StoredRecord> implements Collection<R> {
  readonly name: string;
  readonly unique = new Map<string, UniqueIndex<R>>();
  readonly groups = new Map<string, GroupIndex<R>>();
  readonly whenFull: boolean;
  revision = 0;
  nextId = 1;
  readonly #blocks = new Blocks<R>();
  readonly #parse: CollectionDefinition<R>['parse'];

  constructor(definition: CollectionDefinition<R>) {
    this.name = definition.name;
    this.whenFull = definition.whenFull === true;
    this.#parse = definition.parse;
    for (const [name, key] of Object.entries(definition.unique ?? {})) this.unique.set(name, new UniqueIndex(key));
    for (const [name, key] of Object.entries(definition.groups ?? {})) this.groups.set(name, new GroupIndex(key));
  }

  get size(): number {
    return this.#blocks.size;
  }

  get(id: number): R | undefined {
    // Most that is written, or read from files, has a new id.
    return id < this.nextId ? this.#blocks.get(id) : undefined;
  }

  find(index: string, key: string): R | undefined {
    const id = this.uniqueIndex(index).ids.get(key);
    return id === undefined ? undefined : this.#blocks.get(id);
  }

  members(index: string, key: string | number): R[] {
    const members: R[] = [];
    for (const id of this.groupIndex(index).ids(key)) {
      const record = this.#blocks.get(id);
      if (record !== undefined) members.push(record);
    }
    return members;
  }

  latest(count: number): R[] {
    return this.#blocks.latest(count);
  }

  view(): View<R> {
    return this.#blocks.view(this.revision);
  }

  uniqueIndex(name: string): UniqueIndex<R> {
    const index = this.unique.get(name);
    invariant(index !== undefined, `the collection ${this.name} has no unique index ${name}`);
    return index;
  }

  groupIndex(name: string): GroupIndex<R> {
    const index = this.groups.get(name);
    invariant(index !== undefined, `the collection ${this.name} has no group index ${name}`);
    return index;
  }

  /** Publishes one change of the commit `sequence`: the record's new version, or that it is gone. */
  publish(id: number, record: R | undefined, sequence: number): void {
    const before = this.get(id);
    for (const index of this.unique.values()) index.change(before, record);
    for (const index of this.groups.values()) index.change(before, record);
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
    const record = this.#parse(stored);
    if (typeof record !== 'object') {
      return `it does not fit the declaration of ${this.name}${record === undefined ? '' : `: record ${id} ${record}`}`;
    }
    for (const [name, index] of this.unique) {
      const key = index.key(record);
      const holder = key === undefined ? undefined : index.ids.get(key);
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

/** A table of a collection that the program does not know: its records stay as they are. */
export function carriedTable(name: string): AnyTable {
  return new Table({ name, parse: (record) => record });
}

function isStored(record: JsonObject): record is JsonObject & StoredRecord {
  return isCount(record['id']) && record['id'] > 0 && isCount(record['revision']);
}

/** Whether `value` is an integer from 0 to 2^52: whoever counts on from it stays among the numbers that are exact. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 52;
}

/** Whether a collection may have this name: it becomes a file's, also where it was read from a file. */
export function isCollectionName(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}$/.test(name);
}
