import { isByRecord, isOpen, judge, listWords, type Cell, type Principal } from '../auth/access.ts';
import { fieldValue } from '../schema/record.ts';
import type { CollectionAccess } from './declaration.ts';

/**
 * What a caller may do with the records of a collection: the one place that decides it. HTTP, lists,
 * references, embedding, the feed and programs ask here.
 */

/** The operations on records that exist. `list` stands for all ways to find several of them. */
export type RecordOperation = 'list' | 'read' | 'replace' | 'patch' | 'remove';

/** The rules of access of a collection, or those of its rules that reading takes. */
export type AccessRules = Pick<CollectionAccess, 'list' | 'read'> & Partial<CollectionAccess>;

/** The permission of a caller for one operation. */
export interface Permission {
  /** True if the rule of the operation refuses the caller. */
  readonly isRefused: boolean;
  /** True if the caller may do it to a record. Absent: to all. */
  readonly test?: (record: object) => boolean;
  /**
   * The values by which records decide, each of which has an index: in each group, one must name the
   * caller.
   */
  readonly names: readonly (readonly string[])[];
}

const everything: Permission = { isRefused: false, names: [] };
const nothing: Permission = { isRefused: false, test: () => false, names: [[]] };

/** Returns what a caller may do with the records of a collection. */
export function findPermission(
  access: AccessRules,
  principal: Principal,
  operation: RecordOperation,
): Permission {
  const rules = findRules(access, operation);
  const verdicts = rules.map((rule) => judge(rule, principal));
  const isRefused = verdicts.map((verdict) => verdict !== undefined && verdict !== 'by_record');
  if (isRefused.includes(true)) return { ...nothing, isRefused: isRefused.at(-1) === true };
  const names = rules.filter((_, index) => verdicts[index] === 'by_record').map(namesIn);
  if (names.length === 0) return everything;
  return { isRefused: false, names, test: testBy(names, principal.userId ?? 0) };
}

/** True if a permission includes a record. */
export const includes = ({ test }: Permission, record: object): boolean => test?.(record) ?? true;

/**
 * Returns the rules that must all hold, the operation's own one last. Lists show what may be read;
 * but if all signed-in users may read, how one has signed in decides on single records only.
 */
function findRules(access: AccessRules, operation: RecordOperation): readonly Cell[] {
  const { list, read } = access;
  if (operation !== 'list') return [access[operation] ?? 'admin'];
  if (String(list) === String(read)) return [read];
  const words = listWords(read);
  return words.some(isOpen) && !words.some(isByRecord) ? [list] : [read, list];
}

/** Returns the names of the values by which records decide on a rule: `ownerId`, fields, `id`. */
const namesIn = (rule: Cell): string[] =>
  listWords(rule).flatMap((word) => {
    if (word === 'self') return 'id';
    return isByRecord(word) ? (word === 'owner' ? 'ownerId' : word) : [];
  });

/** The names of the indexed values by which records decide who sees them. */
export const decidingNames = ({ list, read }: AccessRules): string[] =>
  [...new Set([...namesIn(list), ...namesIn(read)])].filter((name) => name !== 'id');

/** True if a value of a record names a user, or another record. */
export function isNamed(record: object, name: string, id: number | string): boolean {
  const value = fieldValue(record, name);
  return Array.isArray(value) ? value.some((one: unknown) => one === id) : value === id;
}

function testBy(
  groups: readonly (readonly string[])[],
  userId: number,
): (record: object) => boolean {
  const [[name, other] = [], second] = groups;
  // Most collections have records of one owner.
  if (name === 'ownerId' && other === undefined && second === undefined)
    return (record) => fieldValue(record, 'ownerId') === userId;
  return (record) => groups.every((names) => names.some((one) => isNamed(record, one, userId)));
}
