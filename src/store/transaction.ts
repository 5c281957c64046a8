import { invariant } from '../base/invariant.ts';
import type { Collection, StoredRecord, Transaction, Unstored } from './store.ts';
import { Table } from './table.ts';

/**
 * One transaction under way. Its changes lie over the tables as pending; `encoded` is its commit as the journal has
 * it: an array of changes, each `["collection", record]` or, for a removal, `["collection", id]`.
 */
export class PendingTransaction implements Transaction {
  readonly sequence: number;
  encoded = '';
  /** Whether it removes records and inserts none, so that it may use the disk's last reserve. */
  #inserts = false;
  #removes = false;
  #open = true;
  readonly #undo: (() => void)[] = [];
  readonly #publish: (() => void)[] = [];

  constructor(sequence: number) {
    this.sequence = sequence;
  }

  get changes(): number {
    return this.#publish.length;
  }

  get shrinks(): boolean {
    return this.#removes && !this.#inserts;
  }

  get<R extends StoredRecord>(collection: Collection<R>, id: number): R | undefined {
    return this.#table(collection).pending.get(id);
  }

  find<R extends StoredRecord>(collection: Collection<R>, index: string, key: string): R | undefined {
    return this.#table(collection).pending.find(index, key);
  }

  members<R extends StoredRecord>(collection: Collection<R>, index: string, key: string | number): R[] {
    return this.#table(collection).pending.members(index, key);
  }

  size<R extends StoredRecord>(collection: Collection<R>): number {
    return this.#table(collection).pending.size;
  }

  insert<R extends StoredRecord>(collection: Collection<R>, record: Unstored<R>): R {
    const table = this.#table(collection);
    const id = table.pending.nextId;
    const stored = this.#put(table, id, record);
    table.pending.nextId = id + 1;
    this.#undo.push(() => {
      table.pending.nextId = id;
    });
    this.#inserts = true;
    return stored;
  }

  replace<R extends StoredRecord>(collection: Collection<R>, id: number, record: Unstored<R>): R {
    const table = this.#table(collection);
    invariant(table.pending.get(id) !== undefined, `there is no record ${id} in ${table.name} to replace`);
    return this.#put(table, id, record);
  }

  remove<R extends StoredRecord>(collection: Collection<R>, id: number): void {
    const table = this.#table(collection);
    if (table.pending.get(id) === undefined) return;
    this.#change(table, id, undefined);
    this.#encode(table.name, String(id));
    this.#removes = true;
  }

  /** Ends the work: nothing may be changed through it any more. */
  end(): void {
    this.#open = false;
  }

  /** Takes back every change. */
  undo(): void {
    for (const step of this.#undo.reverse()) step();
  }

  /** Publishes every change. */
  publish(): void {
    for (const step of this.#publish) step();
  }

  #put<R extends StoredRecord>(table: Table<R>, id: number, record: Unstored<R>): R {
    const stored = complete<R>(id, this.sequence, record);
    const encoded = JSON.stringify(stored);
    this.#change(table, id, stored);
    this.#encode(table.name, encoded);
    return stored;
  }

  #change<R extends StoredRecord>(table: Table<R>, id: number, record: R | undefined): void {
    const { sequence } = this;
    this.#undo.push(table.pending.put(id, record, sequence));
    this.#publish.push(() => {
      table.pending.publish(id, record, sequence);
    });
  }

  #encode(name: string, value: string): void {
    this.encoded += `${this.encoded === '' ? '[' : ','}["${name}",${value}]`;
  }

  #table<R extends StoredRecord>(collection: Collection<R>): Table<R> {
    invariant(this.#open, 'a transaction is used after its work has returned');
    invariant(collection instanceof Table, 'a collection that this store did not make');
    return collection;
  }
}

/**
 * The record as it is stored: `id` and `revision` first, then what the caller gave in its own order. The compiler does
 * not see that a record without two members, together with these two, is the record again: hence the overload.
 */
function complete<R extends StoredRecord>(id: number, revision: number, record: Unstored<R>): R;
function complete(id: number, revision: number, record: object): StoredRecord {
  const stored = { id, revision, ...record };
  // The caller may have spread a whole record into the new one.
  stored.id = id;
  stored.revision = revision;
  return stored;
}
