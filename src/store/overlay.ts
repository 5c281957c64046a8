import { UniqueKeyError, type StoredRecord } from './store.ts';
import { Table } from './table.ts';

/** A decision of one commit about one record, whatever collection it is in. */
export interface Change {
  readonly overlay: {
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

/** A table that can be written to: what is published, and what is pending beside it. */
export class WritableTable<R extends StoredRecord> extends Table<R> {
  readonly pending = new Overlay<R>(this);
}

/**
 * What is decided but not yet durable, laid over one table. Only transactions look through it; readers see the table.
 * When a change is published its entries go, unless a later change has taken their place.
 */
export class Overlay<R extends StoredRecord> {
  nextId = 1;
  size = 0;
  readonly #table: Table<R>;
  /** By id: the newest change of the record. */
  readonly #records = new Map<number, RecordChange<R>>();
  /** By unique index and key: the newest change that took the key or gave it up. */
  readonly #keys = new Map<string, RecordChange<R>>();

  constructor(table: Table<R>) {
    this.#table = table;
  }

  get(id: number): R | undefined {
    const change = this.#records.get(id);
    return change === undefined ? this.#table.get(id) : change.record;
  }

  find(index: string, key: string): R | undefined {
    const holder = this.#holder(index, key);
    return holder === undefined ? undefined : this.get(holder);
  }

  members(index: string, key: string | number): R[] {
    const keyOf = this.#table.groupIndex(index).key;
    const members = this.#table.members(index, key).filter((record) => !this.#records.has(record.id));
    for (const { record } of this.#records.values()) {
      if (record !== undefined && keyOf(record) === key) members.push(record);
    }
    return members.sort((a, b) => a.id - b.id);
  }

  /**
   * Decides one change of the commit `sequence`, and lays it; `undefined` removes the record.
   * @throws UniqueKeyError, before anything is changed
   */
  change(id: number, record: R | undefined, sequence: number): Change {
    for (const [name, index] of this.#table.unique) {
      const key = record && index.key(record);
      const holder = key === undefined ? undefined : this.#holder(name, key);
      if (holder !== undefined && holder !== id) throw new UniqueKeyError(this.#table.name, name);
    }
    const change = { overlay: this, id, record, sequence };
    this.lay(change);
    return change;
  }

  /** Goes back to what the table says. */
  clear(): void {
    this.#records.clear();
    this.#keys.clear();
    this.nextId = this.#table.nextId;
    this.size = this.#table.size;
  }

  lay(change: RecordChange<R>): void {
    const { id, record } = change;
    const before = this.get(id);
    for (const key of this.#keysOf(before, record)) this.#keys.set(key, change);
    this.#records.set(id, change);
    this.size += (record === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
    if (id >= this.nextId) this.nextId = id + 1;
  }

  publish(change: RecordChange<R>): void {
    const { id, record, sequence } = change;
    for (const key of this.#keysOf(this.#table.get(id), record)) {
      if (this.#keys.get(key) === change) this.#keys.delete(key);
    }
    if (this.#records.get(id) === change) this.#records.delete(id);
    this.#table.publish(id, record, sequence);
  }

  /** The id of the record that has this key. */
  #holder(name: string, key: string): number | undefined {
    const index = this.#table.uniqueIndex(name);
    const change = this.#keys.get(`${name} ${key}`);
    if (change === undefined) return index.ids.get(key);
    return change.record !== undefined && index.key(change.record) === key ? change.id : undefined;
  }

  /** The keys that a record has before and after a change, as they stand in `#keys`. */
  #keysOf(before: R | undefined, after: R | undefined): string[] {
    const keys: string[] = [];
    for (const [name, index] of this.#table.unique) {
      for (const record of [before, after]) {
        const key = record && index.key(record);
        if (key !== undefined) keys.push(`${name} ${key}`);
      }
    }
    return keys;
  }
}
