import type { StoredRecord } from '../store.ts';
import { RecordIndex, type Key } from './record-index.ts';

/** The records of one collection as they are looked up: a table, or changes laid over one. */
export interface Readable<R extends StoredRecord> {
  /** By name. */
  readonly indexes: ReadonlyMap<string, RecordIndex<R>>;
  /** The id that the next new record gets. */
  readonly nextId: number;
  get(id: number): R | undefined;
  /** The ids of the records with this key in the index, in the order in which they got it. */
  ids(index: string, key: Key): Iterable<number>;
  /** How many records have this key in the index; those that the layer has changed may count twice. */
  countAtMost(index: string, key: Key): number;
}

/** The changes of one batch, laid over a table until they are published. It is emptied after each batch. */
export class Layer<R extends StoredRecord> implements Readable<R> {
  /** Of the records in the layer alone. */
  readonly indexes: ReadonlyMap<string, RecordIndex<R>>;
  readonly #below: Readable<R>;
  /** By id; `undefined` where the record is removed. */
  readonly #changes = new Map<number, R | undefined>();
  #nextId = 0;

  constructor(below: Readable<R>) {
    this.#below = below;
    this.indexes = new Map(
      Array.from(below.indexes, ([name, { keyOf, unique }]) => [name, new RecordIndex(keyOf, unique)]),
    );
  }

  get nextId(): number {
    return Math.max(this.#nextId, this.#below.nextId);
  }

  get(id: number): R | undefined {
    return this.#changes.has(id) ? this.#changes.get(id) : this.#below.get(id);
  }

  *ids(index: string, key: Key): Generator<number, void, undefined> {
    for (const id of this.#below.ids(index, key)) if (!this.#changes.has(id)) yield id;
    yield* this.indexes.get(index)?.ids(key) ?? [];
  }

  countAtMost(index: string, key: Key): number {
    return this.#below.countAtMost(index, key) + (this.indexes.get(index)?.count(key) ?? 0);
  }

  /** Puts a record, or removes it where there is none. */
  put(id: number, record: R | undefined): void {
    for (const index of this.indexes.values()) index.move(id, this.#changes.get(id), record);
    this.#changes.set(id, record);
    this.#nextId = Math.max(this.#nextId, id + 1);
  }

  clear(): void {
    if (this.#changes.size === 0) return;
    this.#changes.clear();
    this.#nextId = 0;
    for (const index of this.indexes.values()) index.clear();
  }
}
