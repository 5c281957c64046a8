import type { Principal } from '../auth/access.ts';
import type { RecordId } from '../base/record-id.ts';
import type { Collection, From, StoredRecord, Transaction } from '../store/store.ts';
import { mayName } from './named-users.ts';
import {
  decidingNames,
  includes,
  isNamed,
  permissionOf,
  type AccessRules,
  type Permission,
} from './permissions.ts';

/** What decides who sees the records of a collection. */
export interface Readable<R extends StoredRecord = StoredRecord> {
  readonly records: Collection<R>;
  readonly access: AccessRules;
}

/** What a caller sees: single records, or what lists, embedded arrays and the feed show. */
export type Purpose = 'read' | 'list';

/** Returns a record as a transaction leaves it, if the caller may read it. */
export function readable<R extends StoredRecord>(
  tx: Transaction,
  { records, access }: Readable<R>,
  principal: Principal,
  id: RecordId,
): R | undefined {
  const record = tx.of(records).withId(id);
  const isSeen = record && includes(permissionOf(access, principal, 'read'), record);
  return isSeen ? record : undefined;
}

/** Returns what a caller sees of a collection. */
export const readerOf = (of: Readable, principal: Principal, purpose: Purpose): Reader =>
  new Reader(of, permissionOf(of.access, principal, purpose), principal.userId ?? 0);

/**
 * The records of a collection that a caller may see. All ways to them apply the same test. It
 * costs nothing if the caller may see all.
 */
export class Reader {
  readonly #records: Collection<StoredRecord>;
  readonly #access: AccessRules;
  readonly #names: Permission['names'];
  readonly #userId: number;
  readonly isRefused: boolean;
  /** Absent: the caller sees all records. */
  readonly test: Permission['test'];

  constructor(
    { records, access }: Readable,
    { isRefused, test, names }: Permission,
    userId: number,
  ) {
    this.#records = records;
    this.#access = access;
    this.#names = names;
    this.#userId = userId;
    this.isRefused = isRefused;
    this.test = test;
  }

  withId(id: RecordId): StoredRecord | undefined {
    const record = this.#records.withId(id);
    return record === undefined || (this.test?.(record) ?? true) ? record : undefined;
  }

  /**
   * The records that refer to this id by `field`, by ascending id: the first that are seen. The
   * shorter index finds them, so other users' records do not slow it down.
   */
  members(field: string, id: RecordId, most: number): StoredRecord[] {
    const { test } = this;
    if (test === undefined) return this.#records.members(field, id, most);
    if (this.#countAtMost >= this.#records.countAtMost(field, id))
      return this.#records.members(field, id, most, undefined, test);
    const refers = (record: StoredRecord): boolean => isNamed(record, field, id) && test(record);
    const all = this.#indexes.flatMap((name) =>
      this.#records.members(name, this.#userId, most, undefined, refers),
    );
    return inOrder(all).slice(0, most);
  }

  /** The records that are seen, by ascending id, if indexes have at most `most` of them. */
  found(most: number): StoredRecord[] | undefined {
    if (this.test === undefined || this.#countAtMost > most) return undefined;
    const all = this.#indexes.flatMap((name) => this.#records.members(name, this.#userId));
    return (this.#indexes.length === 1 ? all : inOrder(all)).filter(this.test);
  }

  /**
   * The first records that are seen from an id on, up or down, by ascending id; `undefined` if it
   * takes more than one group of indexes.
   */
  foundFrom(place: From, most: number): StoredRecord[] | undefined {
    if (this.test === undefined || this.#names.length > 1) return undefined;
    const all = this.#indexes.flatMap((name) =>
      this.#records.members(name, this.#userId, most, place),
    );
    const seen = inOrder(all).filter(this.test);
    return place.isDown ? seen.slice(-most) : seen.slice(0, most);
  }

  /**
   * Whether records of a block may be seen: so a list passes over other users' records, wherever in
   * an order its own lie.
   */
  mayBeIn(block: readonly StoredRecord[]): boolean {
    if (this.test === undefined) return true;
    return mayName(block, this.#userId, () => decidingNames(this.#access));
  }

  /** How many records the indexes have of which the caller may see some. */
  get #countAtMost(): number {
    let count = 0;
    for (const name of this.#indexes) count += this.#records.countAtMost(name, this.#userId);
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
