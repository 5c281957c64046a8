import { limits } from '../base/limits.ts';
import { moreName, type Field, type Input, type Shape } from '../schema/field.ts';
import { validationFailed } from '../schema/validate.ts';
import { levelsMax, sizeOf, sizeOfOwnNames } from '../store/memory/size.ts';
import type { SizeOf } from '../store/store.ts';

/**
 * Checks that a record is not larger than one that can be sent back as it was read: patches could
 * make it grow.
 * @throws CairnError `validation_failed`
 */
export function checkSize(record: Input<Shape>): void {
  // The further members lie one level deeper here, which makes the text no shorter.
  if (JSON.stringify(record).length < smallLength) return;
  // A spread of both would take a time that grows with the square of the members.
  const { [moreName]: more } = record;
  const parts = more === undefined ? [record] : [record, more, { [moreName]: 0 }];
  const members = parts.flatMap((part) => Object.entries(part ?? {}));
  const json = JSON.stringify(Object.fromEntries(members));
  let detail = `must be at most ${limits.recordBytesMax} bytes of JSON`;
  if (Buffer.byteLength(json) <= limits.recordBytesMax) {
    const excess = excessIn(Object.fromEntries(members), { values: 0 });
    if (excess === undefined) return;
    detail = `must not have ${excess}`;
  }
  throw validationFailed([{ pointer: '', code: 'too_large', detail }]);
}

/**
 * Returns how to tell the memory that a record with these fields takes as it is stored: the names
 * in its `json` values and of its further members are its own.
 */
export function sizerOf(fields: Shape): SizeOf {
  const open = new Set(Object.keys(fields).filter((name) => isOpen(fields[name])));
  if (open.size === 0) return sizeOf;
  return (record) => {
    if (record === undefined) return 0;
    const members = Object.entries(record);
    const closed = members.filter(([name]) => !open.has(name));
    let size = sizeOf(Object.fromEntries(closed));
    for (const [name, value] of members)
      if (open.has(name)) size += 8 + sizeOf(value, sizeOfOwnNames, levelsMax - 1);
    return size;
  };
}

/** Whether values of a field have members that are not declared. */
function isOpen(field: Field | undefined): boolean {
  if (field?.kind === 'list') return isOpen(field.of);
  if (field?.kind !== 'object') return field?.kind === 'json';
  return field.additional === true || Object.values(field.fields).some(isOpen);
}

/**
 * Returns what a record has too much of; `undefined` if it is within all bounds. To parse its text
 * would take a hundred times as long. `passed` counts its values.
 */
function excessIn(value: unknown, passed: { values: number }, depth = 1): string | undefined {
  passed.values += 1;
  const [valuesMax, membersMax] = [limits.jsonValuesMax, limits.jsonMembersMax];
  if (passed.values > valuesMax - ownMembers) return `over ${valuesMax - ownMembers} values`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > limits.jsonDepthMax) return `values nested more than ${limits.jsonDepthMax} deep`;
  const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  if (parts !== value && parts.length > membersMax - ownMembers)
    return `over ${membersMax - ownMembers} members in one object`;
  for (const part of parts) {
    const excess = excessIn(part, passed, depth + 1);
    if (excess !== undefined) return excess;
  }
  return undefined;
}

/** The server adds at most `id` and two timestamps, and `.more` is no member. */
const ownMembers = 4;
/** A shorter record is within all bounds: a member takes five characters at least, `"":1,`. */
const smallLength = 5 * (limits.jsonMembersMax - ownMembers);
