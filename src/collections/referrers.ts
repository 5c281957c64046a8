import { recordId, type RecordId } from '../base/record-id.ts';
import { fieldValue } from '../schema/record.ts';

/** The index of the records that refer by a field, for each user that a deciding value names. */
export const referrersOf = (field: string, deciding: string): string => `${field}.${deciding}`;
export const referrerKey = (userId: unknown, id: unknown): RecordId => recordId(`${userId} ${id}`);

/**
 * Returns the group indexes by which the referring records are found that a user may see. To test
 * all that refer would cost a page more than its length, and tell how many are hidden.
 */
export function referrerGroups(
  fields: readonly string[],
  deciding: readonly string[],
): { readonly [index: string]: (record: object) => string[] } {
  const groups = fields.flatMap((field) =>
    deciding.map((name) => {
      const keysOf = (record: object): string[] =>
        [fieldValue(record, name)]
          .flat()
          .flatMap((user) =>
            [fieldValue(record, field) ?? []].flat().map((id) => String(referrerKey(user, id))),
          );
      return [referrersOf(field, name), keysOf] as const;
    }),
  );
  return Object.fromEntries(groups);
}
