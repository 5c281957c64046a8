/** A unique index of published records: which id has a key. */
export class UniqueIndex<R extends { readonly id: number }> {
  readonly key: (record: R) => string | undefined;
  readonly ids = new Map<string, number>();

  constructor(key: (record: R) => string | undefined) {
    this.key = key;
  }

  /** Follows one record from a version to the next; `undefined` where there is none. */
  change(before: R | undefined, after: R | undefined): void {
    const oldKey = before && this.key(before);
    const newKey = after && this.key(after);
    if (oldKey === newKey) return;
    // Within one commit another record may already have taken the key over.
    if (oldKey !== undefined && this.ids.get(oldKey) === before?.id) this.ids.delete(oldKey);
    if (newKey !== undefined && after !== undefined) this.ids.set(newKey, after.id);
  }
}

/** An index of published records whose keys several may share. */
export class GroupIndex<R extends { readonly id: number }> {
  readonly key: (record: R) => string | number | undefined;
  /** A lone id stands as itself: most groups have one member, and a set costs some 200 bytes. */
  readonly #groups = new Map<string | number, number | Set<number>>();

  constructor(key: (record: R) => string | number | undefined) {
    this.key = key;
  }

  /** The ids under `key`, ascending. */
  ids(key: string | number): number[] {
    const group = this.#groups.get(key);
    if (group === undefined) return [];
    return typeof group === 'number' ? [group] : [...group].sort((a, b) => a - b);
  }

  /** Follows one record from a version to the next; `undefined` where there is none. */
  change(before: R | undefined, after: R | undefined): void {
    const oldKey = before && this.key(before);
    const newKey = after && this.key(after);
    if (oldKey === newKey) return;
    if (oldKey !== undefined && before !== undefined) this.#leave(oldKey, before.id);
    if (newKey !== undefined && after !== undefined) this.#join(newKey, after.id);
  }

  #join(key: string | number, id: number): void {
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, id);
    else if (typeof group === 'number') this.#groups.set(key, new Set([group, id]));
    else group.add(id);
  }

  #leave(key: string | number, id: number): void {
    const group = this.#groups.get(key);
    if (typeof group === 'object') group.delete(id);
    if (typeof group === 'number' || group?.size === 0) this.#groups.delete(key);
  }
}
