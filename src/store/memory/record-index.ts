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

  /** Follows a record from one version to the next; `undefined` stands for no record. */
  move(id: number, before: R | undefined, after: R | undefined): void {
    const from = before && this.keyOf(before);
    const to = after && this.keyOf(after);
    if (from === to) return;
    if (from !== undefined) this.#remove(id, from);
    if (to === undefined) return;
    const ids = this.#ids.get(to);
    if (ids === undefined) this.#ids.set(to, id);
    else if (typeof ids === 'number') this.#ids.set(to, new Set([ids, id]));
    else ids.add(id);
  }

  clear(): void {
    this.#ids.clear();
  }

  #remove(id: number, key: Key): void {
    const ids = this.#ids.get(key);
    if (typeof ids === 'object') ids.delete(id);
    if (ids === id || (typeof ids === 'object' && ids.size === 0)) this.#ids.delete(key);
  }
}
