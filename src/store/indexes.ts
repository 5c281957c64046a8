type Key = string | number;

/** Which ids have which key. */
export class Ids {
  /** A lone id stands as itself: most keys have one, and a set costs some 200 bytes. */
  readonly #byKey = new Map<Key, number | Set<number>>();

  /** One of the ids with this key: the only one, where the key is unique. */
  one(key: Key): number | undefined {
    const ids = this.#byKey.get(key);
    return typeof ids === 'object' ? ids.values().next().value : ids;
  }

  all(key: Key): number[] {
    const ids = this.#byKey.get(key) ?? [];
    return typeof ids === 'number' ? [ids] : [...ids];
  }

  /** Follows one record from a key to the next; `undefined` where it has none. */
  move(id: number, from: Key | undefined, to: Key | undefined): void {
    if (from === to) return;
    if (from !== undefined) this.#leave(id, from);
    if (to === undefined) return;
    const ids = this.#byKey.get(to);
    if (ids === undefined) this.#byKey.set(to, id);
    else if (typeof ids === 'number') this.#byKey.set(to, new Set([ids, id]));
    else ids.add(id);
  }

  clear(): void {
    this.#byKey.clear();
  }

  #leave(id: number, key: Key): void {
    const ids = this.#byKey.get(key);
    if (typeof ids === 'object') ids.delete(id);
    if (ids === id || (typeof ids === 'object' && ids.size === 0)) this.#byKey.delete(key);
  }
}
