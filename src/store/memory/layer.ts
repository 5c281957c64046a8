import type { StoredRecord } from '../store.ts';
import { RecordIndex, type Key } from './record-index.ts';
import type { Table } from './table.ts';

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
    const indexes = Array.from(table.indexes, ([name, { keyOf }]) => [name, new RecordIndex(keyOf)] as const);
    this.#indexes = new Map(indexes);
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
