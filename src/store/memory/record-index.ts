export type Key = string | number;

/** Returns the key of a record in an index; `undefined` where the record takes no part. */
export type KeyOf<R> = (record: R) => Key | undefined;

/** The ids of records by a key. */
export class RecordIndex<R> {
  readonly keyOf: KeyOf<R>;
  /** Most keys have one id. It is kept by itself, because a set takes some 200 bytes. */
  readonly #ids = new Map<Key, number | Set<number>>();

  constructor(keyOf: KeyOf<R>) {
    this.keyOf = keyOf;
  }

  /** The ids with this key, in the order in which they got it. */
  ids(key: Key): Iterable<number> {
    const ids = this.#ids.get(key);
    return typeof ids === 'number' ? [ids] : (ids ?? []);
  }

  /** How many ids have this key. */
  count(key: Key): number {
    const ids = this.#ids.get(key);
    return typeof ids === 'object' ? ids.size : ids === undefined ? 0 : 1;
  }

  add(id: number, key: Key): void {
    const ids = this.#ids.get(key);
    if (ids === undefined) this.#ids.set(key, id);
    else if (typeof ids === 'object') ids.add(id);
    else if (ids !== id) this.#ids.set(key, new Set([ids, id]));
  }

  remove(id: number, key: Key): void {
    const ids = this.#ids.get(key);
    if (typeof ids === 'object') ids.delete(id);
    if (ids === id || (typeof ids === 'object' && ids.size === 0)) this.#ids.delete(key);
  }
}
