import {
  dependsOnRecord,
  hasAccess,
  isByRecord,
  isOpen,
  wordsOf,
  type Cell,
  type Principal,
} from '../auth/access.ts';
import type { RecordId } from '../base/record-id.ts';
import { fieldValue } from '../schema/record.ts';
import type { Collection, From, StoredRecord, Transaction } from '../store/store.ts';
import { mayName } from './named-users.ts';

/** What decides who sees the records of a collection. */
export interface Readable<R extends StoredRecord = StoredRecord> {
  readonly records: Collection<R>;
  readonly access: { readonly list: Cell; readonly read: Cell };
}

/** Whether a cell has a word that depends on a record. */
export const isCellByRecord = (cell: Cell): boolean => wordsOf(cell).some(isByRecord);

/**
 * The names of the values by which records decide on a cell: `ownerId`, and fields that refer to
 * users.
 */
const namesIn = (cell: Cell): string[] =>
  wordsOf(cell).flatMap((word) => (isByRecord(word) ? (word === 'owner' ? 'ownerId' : word) : []));

/** The names of the values by which records decide who sees them; none where callers alone do. */
export const decidingNames = ({ list, read }: Readable['access']): string[] => [
  ...new Set([...namesIn(list), ...namesIn(read)]),
];

/** Whether a value of a record names a user, or another record. */
function isNamed(record: object, name: string, id: number | string | undefined): boolean {
  const value = fieldValue(record, name);
  return Array.isArray(value)
    ? value.some((one: unknown) => one === id)
    : id !== undefined && value === id;
}

/** Whether a caller has access to a record. */
export function isAllowed(cell: Cell, principal: Principal, record: object): boolean {
  if (!dependsOnRecord(cell, principal)) return hasAccess(cell, principal);
  return namesIn(cell).some((name) => isNamed(record, name, principal.userId));
}

/**
 * Returns a record as a transaction leaves it, if the caller may read it. Where no word of the cell
 * depends on a record, the route decides, and records that are found in other ways are shown.
 */
export function readable<R extends StoredRecord>(
  tx: Transaction,
  { records, access: { read } }: Readable<R>,
  principal: Principal,
  id: RecordId,
): R | undefined {
  const record = tx.of(records).withId(id);
  if (record === undefined || !isCellByRecord(read)) return record;
  return isAllowed(read, principal, record) ? record : undefined;
}

/** What a caller sees: single records, or what lists, embedded arrays and the feed show. */
export type Purpose = 'read' | 'list';

type Test = (record: object) => boolean;

/**
 * Returns, for each cell that depends on records for a caller, the names of the values that decide;
 * for a cell that no record fulfils, none.
 */
function openCells(
  { list, read }: Readable['access'],
  principal: Principal,
  purpose: Purpose,
): readonly (readonly string[])[] {
  if (!isCellByRecord(list) && !isCellByRecord(read)) return [];
  const isForRoles = purpose === 'list' && !wordsOf(read).some(isOpen);
  const cells = isCellByRecord(read) || isForRoles ? [read] : [];
  if (purpose === 'list' && String(list) !== String(read)) cells.push(list);
  if (cells.some((cell) => !hasAccess(cell, principal))) return [[]];
  return cells.filter((cell) => dependsOnRecord(cell, principal)).map(namesIn);
}

function testBy(cells: readonly (readonly string[])[], userId: number): Test | undefined {
  const [first, second] = cells;
  if (first === undefined) return undefined;
  const [name, other] = first;
  // Most collections have records of one owner.
  if (second === undefined && name === 'ownerId' && other === undefined)
    return (record) => fieldValue(record, 'ownerId') === userId;
  return (record) => cells.every((names) => names.some((one) => isNamed(record, one, userId)));
}

/** Returns the test of the records that a caller may see; `undefined` where these are all. */
export const testOf = (
  access: Readable['access'],
  principal: Principal,
  purpose: Purpose,
): Test | undefined => testBy(openCells(access, principal, purpose), principal.userId ?? 0);

/**
 * The records of a collection that a caller may see. All ways to them apply the same test. It
 * costs nothing where the caller may see all.
 */
export class Reader {
  readonly #records: Collection<StoredRecord>;
  readonly #access: Readable['access'];
  /** Absent: the caller sees all records. */
  readonly test: Test | undefined;
  /** For each cell that depends on records: the names of the indexes that find them. */
  readonly #cells: readonly (readonly string[])[];
  readonly #userId: number;

  constructor(of: Readable, principal: Principal, purpose: Purpose) {
    this.#records = of.records;
    this.#access = of.access;
    this.#userId = principal.userId ?? 0;
    this.#cells = openCells(of.access, principal, purpose);
    this.test = testBy(this.#cells, this.#userId);
  }

  withId(id: RecordId): StoredRecord | undefined {
    const record = this.#records.withId(id);
    return record === undefined || this.test === undefined || this.test(record)
      ? record
      : undefined;
  }

  /**
   * The records that refer to this id by `field`, by ascending id: the first that are seen. The
   * shorter index finds them, so that records which others have take no longer than one's own.
   */
  members(field: string, id: RecordId, most: number): StoredRecord[] {
    const { test } = this;
    if (test === undefined) return this.#records.members(field, id, most);
    if (this.#ownAtMost >= this.#records.countAtMost(field, id))
      return this.#records.members(field, id, most, undefined, test);
    const refers: Test = (record) => isNamed(record, field, id) && test(record);
    const all = this.#names.flatMap((name) =>
      this.#records.members(name, this.#userId, most, undefined, refers),
    );
    return inOrder(all).slice(0, most);
  }

  /** The records that are seen, by ascending id, where indexes have at most `most` of them. */
  found(most: number): StoredRecord[] | undefined {
    if (this.test === undefined || this.#ownAtMost > most) return undefined;
    const all = this.#names.flatMap((name) => this.#records.members(name, this.#userId));
    const once = this.#names.length === 1 ? all : inOrder(all);
    return once.filter(this.test);
  }

  /** How many records the indexes have of which the caller may see some. */
  get #ownAtMost(): number {
    let count = 0;
    for (const name of this.#names) count += this.#records.countAtMost(name, this.#userId);
    return count;
  }

  /** The names of the indexes that find them: of the cell of lists, which is seldom the wider one. */
  get #names(): readonly string[] {
    return this.#cells.at(-1) ?? [];
  }

  /**
   * The first records that are seen from an id on, up or down, by ascending id; `undefined` where
   * it takes more than one cell.
   */
  foundFrom(place: From, most: number): StoredRecord[] | undefined {
    const [names, ...others] = this.#cells;
    if (names === undefined || others.length > 0) return undefined;
    const all = names.flatMap((name) => this.#records.members(name, this.#userId, most, place));
    const seen = inOrder(all).filter((record) => this.test?.(record));
    return place.isDown ? seen.slice(-most) : seen.slice(0, most);
  }

  /**
   * Whether records of a block may be seen: so a list passes over what others have, wherever in an
   * order its own lies.
   */
  mayBeIn(block: readonly StoredRecord[]): boolean {
    if (this.test === undefined) return true;
    return mayName(block, this.#userId, () => decidingNames(this.#access));
  }
}

/** Returns each record once, by ascending id. */
const inOrder = (records: readonly StoredRecord[]): StoredRecord[] =>
  [...new Set(records)].sort((a, b) => a.id - b.id);

const readers = new WeakMap<object, Reader>();

/**
 * Returns what a caller sees of a collection. Where no cell of it depends on records, all callers
 * share one reader.
 */
export function readerOf(of: Readable, principal: Principal, purpose: Purpose): Reader {
  const known = readers.get(of);
  if (known !== undefined) return known;
  const reader = new Reader(of, principal, purpose);
  if (decidingNames(of.access).length === 0) readers.set(of, reader);
  return reader;
}
