import { limits } from '../base/limits.ts';
import type { RecordId } from '../base/record-id.ts';
import { fieldValue } from '../schema/record.ts';
import { pairKey, type Collection, type Pairs, type StoredRecord } from '../store/store.ts';

/** The index of the records that refer by a field, for each user that a deciding value names. */
const referrersOf = (field: string, deciding: string): string => `${field}.${deciding}`;

/** Whether an index of both would have too many keys for a record: one for each pair. */
const areLists = (...names: string[]): boolean => names.every((name) => name.endsWith('Ids'));

/** The records that name a user, by the ids to which they refer: made once for many look-ups. */
export type Referrers = Map<string, ReadonlyMap<unknown, StoredRecord[]>>;

/**
 * Returns at least the first `most` records that refer to an id by a field and name a user in
 * `deciding`. Of two lists, the shorter way is taken, so that it takes no longer than what the user
 * may see; `made` keeps that way for the next id.
 */
export function referring(
  records: Collection<StoredRecord>,
  field: string,
  id: RecordId,
  deciding: string,
  userId: number,
  most: number,
  made: Referrers,
): StoredRecord[] {
  const name = referrersOf(field, deciding);
  if (!areLists(field, deciding)) return records.members(name, pairKey(userId, id), most);
  const known = made.get(name);
  if (known === undefined && records.countAtMost(field, id) <= limits.embeddedMax)
    return records.members(field, id);
  const all = known ?? byReference(records.members(deciding, userId), field);
  made.set(name, all);
  return all.get(id) ?? [];
}

function byReference(
  records: readonly StoredRecord[],
  field: string,
): Map<unknown, StoredRecord[]> {
  const found = new Map<unknown, StoredRecord[]>();
  for (const record of records)
    for (const id of new Set(valuesOf(record, field))) {
      const others = found.get(id);
      if (others === undefined) found.set(id, [record]);
      else others.push(record);
    }
  return found;
}

/** Returns the values of a field, which is a list or not. */
function valuesOf(record: object, name: string): readonly unknown[] {
  const value = fieldValue(record, name) ?? [];
  return Array.isArray(value) ? value : [value];
}

/**
 * Returns the group indexes by which the referring records are found that a user may see. To test
 * all that refer would cost a page more than its length, and tell how many are hidden.
 */
export function referrerGroups(
  fields: readonly string[],
  deciding: readonly string[],
): { readonly [index: string]: (record: object) => Pairs } {
  const groups = fields.flatMap((field) =>
    deciding.flatMap((name) => {
      if (areLists(field, name)) return [];
      const keysOf = (record: object): Pairs => ({
        users: valuesOf(record, name),
        ids: valuesOf(record, field),
      });
      return [[referrersOf(field, name), keysOf] as const];
    }),
  );
  return Object.fromEntries(groups);
}
