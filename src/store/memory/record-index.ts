import { firstIndex } from '../../base/search.ts';
import type { From, Key, Keys } from '../store.ts';
import { estimateSize } from './size.ts';

export type KeyOf<R> = (record: R) => Keys;

export const hasKey = (keys: Keys, key: Key): boolean =>
  typeof keys === 'object' ? keys.includes(key) : keys === key;

/**
 * Returns the keys that are not among `others`. Both may be long, but usually differ in one place.
 */
function without(keys: Keys, others: Keys): readonly Key[] {
  if (keys === undefined || keys === others) return none;
  if (typeof keys !== 'object') return hasKey(others, keys) ? none : [keys];
  if (others === undefined) return keys;
  if (typeof others !== 'object') return keys.filter((key) => key !== others);
  let [start, end, otherEnd] = [0, keys.length, others.length];
  while (start < end && keys[start] === others[start]) start += 1;
  while (end > start && keys[end - 1] === others[otherEnd - 1])
    [end, otherEnd] = [end - 1, otherEnd - 1];
  const rest = keys.slice(start, end);
  if (rest.length <= few) return rest.filter((key) => !others.includes(key));
  const known = new Set(others);
  return rest.filter((key) => !known.has(key));
}

const none: readonly Key[] = [];

/** Up to this number, a linear search is faster than a set. */
const few = 4;

/**
 * The memory of a key and its id without its text, of having several ids, and of each further id.
 */
const keyBytes = 80;
const sizeOfKey = (key: Key): number =>
  keyBytes + (typeof key === 'string' ? estimateSize(key) : 0);
const idsBytes = 256;
const idBytes = 16;

const blockLengthMax = 1024;

/** Ids in ascending order, in blocks, so that a change among many moves only a few. */
class SortedIds {
  size = 0;
  readonly #blocks: number[][] = [[]];

  constructor(...ids: number[]) {
    for (const id of ids) this.add(id);
  }

  *from({ id, isDown }: From): Generator<number, void, undefined> {
    const { number, block, index } = this.#locate(id);
    if (isDown) {
      yield* block.slice(0, index + Number(block[index] === id)).reverse();
      for (let at = number - 1; at >= 0; at -= 1) yield* (this.#blocks[at] ?? []).toReversed();
    } else {
      yield* block.slice(index);
      for (let at = number + 1; at < this.#blocks.length; at += 1) yield* this.#blocks[at] ?? [];
    }
  }

  add(id: number): boolean {
    const { number, block, index } = this.#locate(id);
    if (block[index] === id) return false;
    block.splice(index, 0, id);
    this.size += 1;
    if (block.length <= blockLengthMax) return true;
    // Most ids are added at the end, so the full block stays full.
    const kept = index === blockLengthMax ? blockLengthMax : blockLengthMax / 2;
    this.#blocks.splice(number + 1, 0, block.splice(kept));
    return true;
  }

  delete(id: number): boolean {
    const { number, block, index } = this.#locate(id);
    if (block[index] !== id) return false;
    block.splice(index, 1);
    this.size -= 1;
    if (block.length === 0 && this.#blocks.length > 1) this.#blocks.splice(number, 1);
    return true;
  }

  /** Finds the position of the id, even if it is missing. */
  #locate(id: number): { number: number; block: number[]; index: number } {
    const behind = firstIndex(this.#blocks, ([first = 0]) => first > id);
    const number = Math.max(behind - 1, 0);
    const block = this.#blocks[number] ?? [];
    return { number, block, index: firstIndex(block, (each) => each >= id) };
  }
}

export class RecordIndex<R> {
  readonly keyOf: KeyOf<R>;
  /** Most keys have one id, which is stored directly. */
  readonly #ids = new Map<Key, number | SortedIds>();
  readonly #sum: { bytes: number };

  constructor(keyOf: KeyOf<R>, sum: { bytes: number }) {
    this.keyOf = keyOf;
    this.#sum = sum;
  }

  /** Returns the ids in ascending order, or from one on, up or down. */
  ids(key: Key, from: From = { id: 0, isDown: false }): Iterable<number> {
    const ids = this.#ids.get(key);
    if (typeof ids === 'object') return ids.from(from);
    const isThere = ids !== undefined && (from.isDown ? ids <= from.id : ids >= from.id);
    return isThere ? [ids] : [];
  }

  count(key: Key): number {
    const ids = this.#ids.get(key);
    if (ids === undefined) return 0;
    return typeof ids === 'object' ? ids.size : 1;
  }

  *keys(test: (key: Key, count: number) => boolean): Generator<Key, void, undefined> {
    for (const [key, ids] of this.#ids) {
      if (test(key, typeof ids === 'object' ? ids.size : 1)) yield key;
    }
  }

  /** Skips the first `skipped` ids of each key. */
  holders(keys: Iterable<Key>, skipped = 0): number[] {
    return Array.from(keys, (key) => [...this.ids(key)].slice(skipped)).flat();
  }

  /**
   * Replaces the keys of a pending version with the next one's. The published version's keys stay
   * until the next one is published.
   */
  stage(id: number, published: Keys, pending: Keys, next: Keys): void {
    for (const key of without(pending, published)) this.#remove(id, key);
    for (const key of without(next, published)) this.#add(id, key);
  }

  publish(id: number, published: Keys, next: Keys): void {
    for (const key of without(published, next)) this.#remove(id, key);
    // Adds nothing if the version was pending.
    for (const key of without(next, published)) this.#add(id, key);
  }

  #add(id: number, key: Key): void {
    const ids = this.#ids.get(key);
    if (typeof ids === 'object') {
      if (ids.add(id)) this.#sum.bytes += idBytes;
    } else if (ids === undefined) {
      this.#ids.set(key, id);
      this.#sum.bytes += sizeOfKey(key);
    } else if (ids !== id) {
      this.#ids.set(key, new SortedIds(ids, id));
      this.#sum.bytes += idsBytes + idBytes;
    }
  }

  #remove(id: number, key: Key): void {
    const ids = this.#ids.get(key);
    if (typeof ids === 'object') {
      if (ids.delete(id)) this.#sum.bytes -= idBytes;
      if (ids.size > 0) return;
      this.#sum.bytes -= idsBytes - idBytes;
    } else if (ids !== id) return;
    this.#ids.delete(key);
    this.#sum.bytes -= sizeOfKey(key);
  }
}
