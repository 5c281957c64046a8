import { CairnError, invariant } from '../base/errors.ts';
import type { Collection, StoredRecord, Transaction, Unstored } from './store.ts';
import { isCount, Table, type Change, type Pending } from './table.ts';

/** One transaction under way. Its changes are laid over the tables as they are made. */
export class PendingTransaction implements Transaction {
  readonly changes: Change[] = [];
  /** Its commit as the journal has it, without the closing bracket. */
  encoded = '';
  /** Whether all that it changes is in collections that are written to when the disk is full. */
  whenFull = true;
  inserts = false;
  removes = false;
  /** Until its work has returned: then nothing may be changed through it any more. */
  isOpen = true;
  readonly #sequence: number;

  constructor(sequence: number) {
    this.#sequence = sequence;
  }

  get<R extends StoredRecord>(collection: Collection<R>, id: number): R | undefined {
    return this.#pending(collection).get(id);
  }

  find<R extends StoredRecord>(collection: Collection<R>, index: string, key: string): R | undefined {
    return this.members(collection, index, key)[0];
  }

  members<R extends StoredRecord>(collection: Collection<R>, index: string, key: string | number): R[] {
    return this.#pending(collection).members(index, key);
  }

  insert<R extends StoredRecord>(collection: Collection<R>, record: Unstored<R>): R {
    this.inserts = true;
    const { nextId } = this.#pending(collection);
    if (isCount(nextId + 1)) return this.#put(collection, nextId, record);
    throw new CairnError('storage_full', `Cannot write to ${collection.name}: its ids have come to their end`);
  }

  replace<R extends StoredRecord>(collection: Collection<R>, id: number, record: Unstored<R>): R {
    const known = this.#pending(collection).get(id) !== undefined;
    invariant(known, `there is no record ${id} in ${collection.name} to replace`);
    return this.#put(collection, id, record);
  }

  remove<R extends StoredRecord>(collection: Collection<R>, id: number): void {
    const pending = this.#pending(collection);
    if (pending.get(id) === undefined) return;
    this.removes = true;
    this.#add(collection, pending.change(id, undefined, this.#sequence), String(id));
  }

  #put<R extends StoredRecord>(collection: Collection<R>, id: number, record: Unstored<R>): R {
    const stored = complete<R>(id, this.#sequence, record);
    const encoded = JSON.stringify(stored);
    this.#add(collection, this.#pending(collection).change(id, stored, this.#sequence), encoded);
    return stored;
  }

  #add(collection: Collection<StoredRecord>, change: Change, value: string): void {
    this.changes.push(change);
    this.whenFull &&= collection instanceof Table && collection.definition.whenFull === true;
    this.encoded += `${this.encoded === '' ? '[' : ','}["${collection.name}",${value}]`;
  }

  #pending<R extends StoredRecord>(collection: Collection<R>): Pending<R> {
    invariant(this.isOpen, 'a transaction is used after its work has returned');
    invariant(collection instanceof Table, 'a collection that this store did not make');
    return collection.pending;
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
