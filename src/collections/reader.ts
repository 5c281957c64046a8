import type { Principal } from '../auth/access.ts';
import { invariant } from '../base/errors.ts';
import type { RecordId } from '../base/record-id.ts';
import type { Collection, From, StoredRecord, Transaction } from '../store/store.ts';
import { includes, findPermission, type AccessRules, type Permission } from './permissions.ts';

export interface Readable<R extends StoredRecord = StoredRecord> {
  readonly records: Collection<R>;
  readonly access: AccessRules;
}

export type Purpose = 'read' | 'list';

export function readIfAllowed<R extends StoredRecord>(
  tx: Transaction,
  { records, access }: Readable<R>,
  principal: Principal,
  id: RecordId,
): R | undefined {
  const record = tx.of(records).withId(id);
  const isSeen = record && includes(findPermission(access, principal, 'read'), record);
  return isSeen ? record : undefined;
}

export function makeReader(of: Readable, principal: Principal, purpose: Purpose): Reader {
  const permission = findPermission(of.access, principal, purpose);
  const isByIndex = purpose === 'list' && permission.names.length > 0;
  if (!isByIndex) return new Reader(of.records, permission);
  invariant(makeIndexed !== undefined, 'the reader by indexes is loaded with the declaration');
  return makeIndexed(of, permission, principal.userId ?? 0);
}

type MakeIndexed = (of: Readable, permission: Permission, userId: number) => Reader;
let makeIndexed: MakeIndexed | undefined;

/** Adds the reader for declared collections whose lists depend on the record. */
export function addIndexedReader(make: MakeIndexed): void {
  makeIndexed = make;
}

/**
 * The records that a caller may see: all, none, or those that pass a test. Free if the caller may
 * see all.
 */
export class Reader {
  protected readonly records: Collection<StoredRecord>;
  readonly isRefused: boolean;
  readonly test: Permission['test'];

  constructor(records: Collection<StoredRecord>, { isRefused, test }: Permission) {
    this.records = records;
    this.isRefused = isRefused;
    this.test = test;
  }

  withId(id: RecordId): StoredRecord | undefined {
    const record = this.records.withId(id);
    return record === undefined || (this.test?.(record) ?? true) ? record : undefined;
  }

  /** The first visible records whose `field` refers to this id, by ascending id. */
  members(field: string, id: RecordId, most: number): StoredRecord[] {
    return this.records.members(field, id, most, undefined, this.test);
  }

  /** The visible records by ascending id, if indexes have at most `most` of them. */
  found(_most: number): StoredRecord[] | undefined {
    return this.test === undefined ? undefined : [];
  }

  /**
   * The first visible records from an id on, up or down, by ascending id; `undefined` if that takes
   * more than one group of indexes.
   */
  foundFrom(_place: From, most: number): StoredRecord[] | undefined {
    return this.found(most);
  }

  /** True if a block may have visible records. */
  mayBeIn(_block: readonly StoredRecord[]): boolean {
    return this.test === undefined;
  }
}
