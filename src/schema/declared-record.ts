import { isJsonObject, type JsonObject } from '../base/json.ts';
import { keyName } from '../base/record-id.ts';
import { moreName, type CompleteInput, type Shape } from './field.ts';
import { hasType } from './kinds.ts';
import { readableFields } from './record.ts';
import { storedRecordParser, type RecordParser } from './stored.ts';

/**
 * Returns a parser like `storedRecordParser` for records with earlier field names, additional
 * members and chosen ids, which only declared collections have. A field that was an additional
 * member before its declaration gets that value, which is newer than what an earlier declaration
 * left.
 */
export function declaredRecordParser<S extends Shape>(
  shape: S,
  isSound?: (record: CompleteInput<S>) => boolean,
): RecordParser<S> {
  const { id } = shape;
  const parse = storedRecordParser(shape, isSound);
  const fields = readableFields(shape).filter(([, { kind }]) => kind !== 'id');
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
    const key = record[keyName];
    if (id?.kind === 'id' ? !hasType(id, key ?? record['id']) : key !== undefined) {
      const given = key === undefined ? 'number' : typeof key;
      return `has a ${given} as its id, which the declaration does not allow: allow it there`;
    }
    return parse(record);
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
