type Key = string | number;

/** Which records, by their ids, have which key. */
export class Index<R> {
  /** `undefined` where a record takes no part. */
  readonly key: (record: R) => Key | undefined;
  /** A lone id stands as itself: most keys have one, and a set costs some 200 bytes. */
  readonly #ids = new Map<Key, number | Set<number>>();

  constructor(key: (record: R) => Key | undefined) {
    this.key = key;
  }

  /** One of the ids with this key: the only one, where the key is unique. */
  one(key: Key): number | undefined {
    const ids = this.#ids.get(key);
    return typeof ids === 'object' ? ids.values().next().value : ids;
  }

  all(key: Key): number[] {
    const ids = this.#ids.get(key) ?? [];
    return typeof ids === 'number' ? [ids] : [...ids];
  }

  /** Follows a record from one version to the next; `undefined` where there is none. */
  move(id: number, before: R | undefined, after: R | undefined): void {
    const from = before && this.key(before);
    const to = after && this.key(after);
    if (from === to) return;
    if (from !== undefined) this.#leave(id, from);
    if (to === undefined) return;
    const ids = this.#ids.get(to);
    if (ids === undefined) this.#ids.set(to, id);
    else if (typeof ids === 'number') this.#ids.set(to, new Set([ids, id]));
    else ids.add(id);
  }

  clear(): void {
    this.#ids.clear();
  }

  #leave(id: number, key: Key): void {
    const ids = this.#ids.get(key);
    if (typeof ids === 'object') ids.delete(id);
    if (ids === id || (typeof ids === 'object' && ids.size === 0)) this.#ids.delete(key);
  }
}
