import { isByRecord, isOpen, judge, listWords, type Cell, type Principal } from '../auth/access.ts';
import { fieldValue } from '../schema/record.ts';
import type { CollectionAccess } from './declaration.ts';

/**
 * Decides what a caller may do with a collection's records, for HTTP, lists, references, embedding,
 * the feed and programs.
 */

/** The operations on existing records. `list` stands for all ways to find several. */
export type RecordOperation = 'list' | 'read' | 'replace' | 'patch' | 'remove';

export type AccessRules = Pick<CollectionAccess, 'list' | 'read'> & Partial<CollectionAccess>;

export interface Permission {
  /** True if the operation's rule refuses the caller. */
  readonly isRefused: boolean;
  /** True if the caller may do it to a record. If absent, to all. */
  readonly test?: (record: object) => boolean;
  /** The indexed values by which records decide: in each group, one must name the caller. */
  readonly names: readonly (readonly string[])[];
}

const everything: Permission = { isRefused: false, names: [] };
const nothing: Permission = { isRefused: false, test: () => false, names: [] };

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

export const includes = ({ test }: Permission, record: object): boolean => test?.(record) ?? true;

/**
 * Returns the rules that must all pass, the operation's own last. Lists show only readable records.
 * But if all signed-in users may read, the way of signing in matters only for single records.
 */
function findRules(access: AccessRules, operation: RecordOperation): readonly Cell[] {
  const { list, read } = access;
  if (operation !== 'list') return [access[operation] ?? 'admin'];
  if (String(list) === String(read)) return [read];
  const words = listWords(read);
  return words.some(isOpen) && !words.some(isByRecord) ? [list] : [read, list];
}

/** Returns the names of the values that decide a rule: `ownerId`, fields, `id`. */
const namesIn = (rule: Cell): string[] =>
  listWords(rule).flatMap((word) => {
    if (word === 'self') return 'id';
    return isByRecord(word) ? (word === 'owner' ? 'ownerId' : word) : [];
  });

/** The names of the indexed values by which records decide who sees them. */
export const decidingNames = ({ list, read }: AccessRules): string[] =>
  [...new Set([...namesIn(list), ...namesIn(read)])].filter((name) => name !== 'id');

/** True if a record's value names a user or another record. */
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
