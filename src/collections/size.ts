import { moreName, type Field, type Input, type Shape } from '../schema/field.ts';
import { validationFailed } from '../schema/validate.ts';
import { levelsMax, sizeOf, sizeOfOwnNames } from '../store/memory/size.ts';
import type { SizeOf } from '../store/store.ts';

/**
 * Checks that a record is not larger than a body can be, `bytesMax`: patches could make it grow. Its
 * size is the length of its JSON text.
 * @throws CairnError `validation_failed`
 */
export function checkSize(record: Input<Shape>, bytesMax: number): void {
  const json = JSON.stringify(record);
  if (json.length <= bytesMax / 3) return;
  // Callers have the further members next to the others.
  const wrapping = record[moreName] === undefined ? 0 : `"${moreName}":{}`.length;
  if (Buffer.byteLength(json) - wrapping <= bytesMax) return;
  const detail = `must be at most ${bytesMax} bytes of JSON`;
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

/** True if values of a field have members that are not declared. */
function isOpen(field: Field | undefined): boolean {
  if (field?.kind === 'list') return isOpen(field.of);
  if (field?.kind !== 'object') return field?.kind === 'json';
  return field.additional === true || Object.values(field.fields).some(isOpen);
}
