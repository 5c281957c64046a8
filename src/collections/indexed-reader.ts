import type { RecordId } from '../base/record-id.ts';
import type { From, StoredRecord } from '../store/store.ts';
import { mayName } from './named-users.ts';
import { decidingNames, isNamed, type AccessRules, type Permission } from './permissions.ts';
import { addIndexedReader, Reader, type Readable } from './reader.ts';

/**
 * Finds the records that name a caller, as owner or in fields, by indexes. Loaded with the checks
 * of declarations, since only declared collections have such access rules.
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
   * The first visible records whose `field` refers to this id, by ascending id. The shorter index
   * finds them, so other users' records do not slow it down.
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

  /** The visible records by ascending id, if indexes have at most `most` of them. */
  override found(most: number): StoredRecord[] | undefined {
    if (this.test === undefined || this.#countAtMost > most) return undefined;
    const all = this.#indexes.flatMap((name) => this.records.members(name, this.#userId));
    return (this.#indexes.length === 1 ? all : inOrder(all)).filter(this.test);
  }

  /**
   * The first visible records from an id on, up or down, by ascending id; `undefined` if that takes
   * more than one group of indexes.
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
   * True if a block may have visible records. A list thus skips other users' records, wherever its
   * own are in an order.
   */
  override mayBeIn(block: readonly StoredRecord[]): boolean {
    if (this.test === undefined) return true;
    return mayName(block, this.#userId, () => decidingNames(this.#access));
  }

  /** The number of records in the indexes, including some that are not visible. */
  get #countAtMost(): number {
    let count = 0;
    for (const name of this.#indexes) count += this.records.countAtMost(name, this.#userId);
    return count;
  }

  /** The indexes of the rule for lists, which is rarely the wider one. */
  get #indexes(): readonly string[] {
    return this.#names.at(-1) ?? [];
  }
}

const inOrder = (records: readonly StoredRecord[]): StoredRecord[] =>
  [...new Set(records)].sort((a, b) => a.id - b.id);

addIndexedReader((of, permission, userId) => new IndexedReader(of, permission, userId));
