import type { RecordId } from '../base/record-id.ts';
import type { From, StoredRecord } from '../store/store.ts';
import { mayName } from './named-users.ts';
import { decidingNames, isNamed, type AccessRules, type Permission } from './permissions.ts';
import { addIndexedReader, Reader, type Readable } from './reader.ts';

/**
 * The records that name a caller, as owner or in fields: indexes find them. It is loaded with the
 * checks of declarations, since only a declared collection has such rules of access.
 */
class IndexedReader extends Reader {
  readonly #access: AccessRules;
  readonly #names: Permission['names'];
  readonly #userId: number;

  constructor({ records, access }: Readable, permission: Permission, userId: number) {
    super(records, permission);
    this.#access = access;
    this.#names = permission.names;
    this.#userId = userId;
  }

  /**
   * The records that refer to this id by `field`, by ascending id: the first that are seen. The
   * shorter index finds them, so other users' records do not slow it down.
   */
  override members(field: string, id: RecordId, most: number): StoredRecord[] {
    const { test } = this;
    if (test === undefined) return this.records.members(field, id, most);
    if (this.#countAtMost >= this.records.countAtMost(field, id))
      return this.records.members(field, id, most, undefined, test);
    const refers = (record: StoredRecord): boolean => isNamed(record, field, id) && test(record);
    const all = this.#indexes.flatMap((name) =>
      this.records.members(name, this.#userId, most, undefined, refers),
    );
    return inOrder(all).slice(0, most);
  }

  /** The records that are seen, by ascending id, if indexes have at most `most` of them. */
  override found(most: number): StoredRecord[] | undefined {
    if (this.test === undefined || this.#countAtMost > most) return undefined;
    const all = this.#indexes.flatMap((name) => this.records.members(name, this.#userId));
    return (this.#indexes.length === 1 ? all : inOrder(all)).filter(this.test);
  }

  /**
   * The first records that are seen from an id on, up or down, by ascending id; `undefined` if it
   * takes more than one group of indexes.
   */
  override foundFrom(place: From, most: number): StoredRecord[] | undefined {
    if (this.test === undefined || this.#names.length > 1) return undefined;
    const all = this.#indexes.flatMap((name) =>
      this.records.members(name, this.#userId, most, place),
    );
    const seen = inOrder(all).filter(this.test);
    return place.isDown ? seen.slice(-most) : seen.slice(0, most);
  }

  /**
   * True if records of a block may be seen: so a list passes over other users' records, wherever in
   * an order its own lie.
   */
  override mayBeIn(block: readonly StoredRecord[]): boolean {
    if (this.test === undefined) return true;
    return mayName(block, this.#userId, () => decidingNames(this.#access));
  }

  /** The number of records that the indexes have, some of which the caller may see. */
  get #countAtMost(): number {
    let count = 0;
    for (const name of this.#indexes) count += this.records.countAtMost(name, this.#userId);
    return count;
  }

  /** The indexes that find them: of the rule of lists, which is seldom the wider one. */
  get #indexes(): readonly string[] {
    return this.#names.at(-1) ?? [];
  }
}

/** Returns each record once, by ascending id. */
const inOrder = (records: readonly StoredRecord[]): StoredRecord[] =>
  [...new Set(records)].sort((a, b) => a.id - b.id);

addIndexedReader((of, permission, userId) => new IndexedReader(of, permission, userId));
