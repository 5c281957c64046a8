export type Key = string | number;

/** The key of a record in an index, or its keys; `undefined` where it takes no part. */
export type Keys = Key | readonly Key[] | undefined;

export type KeyOf<R> = (record: R) => Keys;

/** Whether a key is among `keys`. */
export const hasKey = (keys: Keys, key: Key): boolean =>
  typeof keys === 'object' ? keys.includes(key) : keys === key;

/** A record that has a key. */
export type Holder = readonly [id: number, key: Key];

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

  /** The ids of all keys for which `test` holds; `of` chooses among those of one key. */
  holders(
    test: (key: Key, count: number) => boolean,
    of = (ids: number[]): readonly number[] => ids,
  ): Holder[] {
    const found: Holder[] = [];
    for (const [key, ids] of this.#ids) {
      if (!test(key, typeof ids === 'object' ? ids.size : 1)) continue;
      for (const id of of([...this.ids(key)])) found.push([id, key]);
    }
    return found;
  }

  /** Adds an id to the keys that are not among `others`. */
  add(id: number, keys: Keys, others: Keys): void {
    if (keys === undefined) return;
    if (typeof keys === 'object') {
      for (const key of keys) this.add(id, key, others);
      return;
    }
    if (hasKey(others, keys)) return;
    const ids = this.#ids.get(keys);
    if (ids === undefined) this.#ids.set(keys, id);
    else if (typeof ids === 'object') ids.add(id);
    else if (ids !== id) this.#ids.set(keys, new Set([ids, id]));
  }

  /** Removes an id from the keys that are not among `others`. */
  remove(id: number, keys: Keys, others: Keys): void {
    if (keys === undefined) return;
    if (typeof keys === 'object') {
      for (const key of keys) this.remove(id, key, others);
      return;
    }
    if (hasKey(others, keys)) return;
    const ids = this.#ids.get(keys);
    if (typeof ids === 'object') ids.delete(id);
    if (ids === id || (typeof ids === 'object' && ids.size === 0)) this.#ids.delete(keys);
  }
}
