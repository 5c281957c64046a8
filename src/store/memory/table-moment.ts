import type { Collection, Moment, StoredRecord } from '../store.ts';
import { RecordIndex, type Key } from './record-index.ts';

/** The records of a table at a moment: those that were changed since are kept as they were. */
export class TableMoment<R extends StoredRecord> implements Moment<R> {
  readonly end: () => void;
  readonly #now: Pick<Collection<R>, 'get' | 'follow'>;
  readonly #membersNow: (index: string, key: Key) => Iterable<R>;
  /** The records that were changed since, as they were; `undefined` where there was none. */
  readonly #former = new Map<number, R | undefined>();
  readonly #formerIndexes = new Map<string, RecordIndex<R>>();

  constructor(
    now: Pick<Collection<R>, 'get' | 'follow'>,
    indexes: ReadonlyMap<string, RecordIndex<R>>,
    membersNow: (index: string, key: Key) => Iterable<R>,
  ) {
    this.#now = now;
    this.#membersNow = membersNow;
    for (const [name, { keyOf }] of indexes) this.#formerIndexes.set(name, new RecordIndex(keyOf));
    this.end = now.follow((before, _, id) => this.#keep(id, before));
  }

  get(id: number): R | undefined {
    return this.#former.has(id) ? this.#former.get(id) : this.#now.get(id);
  }

  members(index: string, key: Key, most: number): R[] {
    const found: R[] = [];
    for (const record of this.#membersNow(index, key)) {
      if (found.length === most) break;
      if (!this.#former.has(record.id)) found.push(record);
    }
    for (const id of this.#formerIndexes.get(index)?.ids(key) ?? []) {
      const record = this.#former.get(id);
      if (record !== undefined) found.push(record);
    }
    return found.sort((a, b) => a.id - b.id).slice(0, most);
  }

  #keep(id: number, before: R | undefined): void {
    if (this.#former.has(id)) return;
    this.#former.set(id, before);
    if (before === undefined) return;
    for (const index of this.#formerIndexes.values()) {
      index.add(id, index.keyOf(before), undefined);
    }
  }
}
