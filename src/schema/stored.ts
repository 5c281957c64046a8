import { isJsonObject, type JsonObject } from '../base/json.ts';
import { keyName } from '../base/record-id.ts';
import { moreName, type CompleteInput, type Shape } from './field.ts';
import { hasType, findKind } from './kinds.ts';
import { fieldValue, readableFields } from './record.ts';

/**
 * Returns a parser of records from a file. For an invalid record, it returns the problem, worded to
 * follow the record's name.
 *
 * It checks types but not rules, which may have changed since the record was written, and fills in
 * defaults. A field that used to be an additional member gets that value, which is newer than what
 * an earlier declaration of the field left.
 */
export function storedRecordParser<S extends Shape>(
  shape: S,
  isSound: (record: CompleteInput<S>) => boolean = () => true,
): <R extends JsonObject>(record: R) => (R & CompleteInput<S>) | string {
  const { id } = shape;
  const fields = readableFields(shape)
    .filter(([, { kind }]) => kind !== 'id')
    .map(([name, field]) => [name, field, findKind(field)] as const);
  const renamed = fields.flatMap(([name, { renamedFrom }]) =>
    renamedFrom === undefined ? [] : [[name, renamedFrom] as const],
  );
  // The owner, which every record has, is not taken from callers' input.
  const settable = fields.flatMap(([name, { readOnly, default: fallback, renamedFrom = name }]) =>
    readOnly && fallback === undefined ? [] : [name, renamedFrom],
  );
  return <R extends JsonObject>(stored: R) => {
    let record = withDeclared(stored, settable);
    for (const [name, former] of renamed) {
      if (Object.hasOwn(record, name) || !Object.hasOwn(record, former)) continue;
      record = { ...record, [name]: record[former] };
      Reflect.deleteProperty(record, former);
    }
    // Every start runs this for every record.
    for (const [name, field, kind] of fields) {
      const value = fieldValue(record, name);
      if (kind.hasType(value, field)) continue;
      if (value === null && field.nullable) continue;
      if (value !== undefined)
        return `has a "${name}" that is not of kind ${field.kind}: correct it by hand`;
      if (field.default !== undefined) record = { ...record, [name]: field.default };
      else if (field.readOnly)
        return `has no "${name}", which the server sets: add it by hand, as other records have it`;
      else if (!field.optional)
        return `has no "${name}": add it by hand, or make a new field optional or give it a default`;
    }
    const key = record[keyName];
    if (id?.kind === 'id' ? !hasType(id, key ?? record['id']) : key !== undefined) {
      const given = key === undefined ? 'number' : typeof key;
      return `has a ${given} as its id, which the declaration does not allow: allow it there`;
    }
    // The loop has checked each field.
    const typed = record as R & CompleteInput<S>;
    return isSound(typed) ? typed : unsound;
  };
}

/** Moves additional members with these names to the record's fields. */
function withDeclared<R extends JsonObject>(record: R, names: readonly string[]): R {
  const more = record[moreName];
  if (!isJsonObject(more) || !names.some((name) => Object.hasOwn(more, name))) return record;
  const members = Object.entries(more);
  const declared = members.filter(([name]) => names.includes(name));
  const others = members.filter(([name]) => !names.includes(name));
  const moved = { ...record, ...Object.fromEntries(declared) };
  if (others.length > 0) return { ...moved, [moreName]: Object.fromEntries(others) };
  Reflect.deleteProperty(moved, moreName);
  return moved;
}

const unsound = 'has values that the server never writes together: correct it by hand';
