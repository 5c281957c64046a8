import type { GroupIndex, UniqueIndex } from './indexes.ts';
import { type StoredRecord, UniqueKeyError } from './store.ts';

/** What is published: the table that an overlay lies upon. */
export interface Published<R extends StoredRecord> {
  readonly name: string;
  readonly size: number;
  readonly nextId: number;
  readonly unique: ReadonlyMap<string, UniqueIndex<R>>;
  get(id: number): R | undefined;
  members(index: string, key: string | number): R[];
  uniqueIndex(name: string): UniqueIndex<R>;
  groupIndex(name: string): GroupIndex<R>;
  publish(id: number, record: R | undefined, sequence: number): void;
}

/** Something pending, and the commit that made it so. */
interface Pending<T> {
  readonly sequence: number;
  readonly value: T;
}

/**
 * What is decided but not yet durable, laid over one table. Only transactions look through it; readers see the table.
 * Each entry knows its commit: when that is published, the entry goes, unless a later one has taken its place.
 */
export class Overlay<R extends StoredRecord> {
  nextId = 1;
  size = 0;
  readonly #table: Published<R>;
  /** By id: the newest version, or that the record is gone. */
  readonly #records = new Map<number, Pending<R | undefined>>();
  /** By unique index and key: who has the key, or that nobody has. */
  readonly #keys = new Map<string, Map<string, Pending<number | undefined>>>();

  constructor(table: Published<R>) {
    this.#table = table;
    for (const name of table.unique.keys()) this.#keys.set(name, new Map());
  }

  get(id: number): R | undefined {
    const pending = this.#records.get(id);
    return pending === undefined ? this.#table.get(id) : pending.value;
  }

  find(index: string, key: string): R | undefined {
    const holder = this.#holder(index, key);
    return holder === undefined ? undefined : this.get(holder);
  }

  members(index: string, key: string | number): R[] {
    const keyOf = this.#table.groupIndex(index).key;
    const members = this.#table.members(index, key).filter((record) => !this.#records.has(record.id));
    for (const { value } of this.#records.values()) {
      if (value !== undefined && keyOf(value) === key) members.push(value);
    }
    return members.sort((a, b) => a.id - b.id);
  }

  /**
   * Lays one change of the commit `sequence` over the table; `undefined` for a removal. Returns what takes it back.
   * @throws UniqueKeyError, before anything is changed
   */
  put(id: number, record: R | undefined, sequence: number): () => void {
    const before = this.get(id);
    if (record !== undefined) this.#checkKeys(id, record);
    const undo = [lay(this.#records, id, { sequence, value: record })];
    for (const [name, index] of this.#table.unique) {
      const keys = this.#keys.get(name);
      const oldKey = before && index.key(before);
      const newKey = record && index.key(record);
      if (keys === undefined || oldKey === newKey) continue;
      if (oldKey !== undefined) undo.push(lay(keys, oldKey, { sequence, value: undefined }));
      if (newKey !== undefined) undo.push(lay(keys, newKey, { sequence, value: id }));
    }
    const growth = (record === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
    this.size += growth;
    return () => {
      this.size -= growth;
      for (const step of undo.reverse()) step();
    };
  }

  /** Publishes one change of the commit `sequence` to the table below. */
  publish(id: number, record: R | undefined, sequence: number): void {
    const before = this.#table.get(id);
    this.#table.publish(id, record, sequence);
    settle(this.#records, id, sequence);
    for (const [name, index] of this.#table.unique) {
      const keys = this.#keys.get(name);
      if (keys === undefined || keys.size === 0) continue;
      const oldKey = before && index.key(before);
      const newKey = record && index.key(record);
      if (oldKey !== undefined) settle(keys, oldKey, sequence);
      if (newKey !== undefined) settle(keys, newKey, sequence);
    }
  }

  /** Goes back to what the table below says. */
  clear(): void {
    this.#records.clear();
    for (const keys of this.#keys.values()) keys.clear();
    this.nextId = this.#table.nextId;
    this.size = this.#table.size;
  }

  #holder(index: string, key: string): number | undefined {
    const published = this.#table.uniqueIndex(index).ids;
    const pending = this.#keys.get(index)?.get(key);
    return pending === undefined ? published.get(key) : pending.value;
  }

  #checkKeys(id: number, record: R): void {
    for (const [name, index] of this.#table.unique) {
      const key = index.key(record);
      const holder = key === undefined ? undefined : this.#holder(name, key);
      if (holder !== undefined && holder !== id) throw new UniqueKeyError(this.#table.name, name);
    }
  }
}

/** Sets an entry and returns what sets it back. */
function lay<K, V>(map: Map<K, V>, key: K, value: V): () => void {
  const before = map.get(key);
  map.set(key, value);
  return () => {
    if (before === undefined) map.delete(key);
    else map.set(key, before);
  };
}

/** Removes an entry that the commit `sequence` made; a later commit's entry stays. */
function settle<K, T>(map: Map<K, Pending<T>>, key: K, sequence: number): void {
  if (map.get(key)?.sequence === sequence) map.delete(key);
}
