import { isScalar, type JsonObject, type Scalar } from '../base/json.ts';
import type { Field, Shape } from './field.ts';

/** The fields that are shown, by name and in order. */
export function readableFields(shape: Shape): [string, Field][] {
  return Object.entries(shape).filter(([, field]) => field.access !== 'write-only');
}

export const readableNames = (shape: Shape): string[] => readableFields(shape).map(([name]) => name);

/**
 * The one place that turns a record into the JSON text that callers see: exactly the fields of `names`, in the
 * shape's order, and nothing else that the record may hold.
 */
export function representationWriter(shape: Shape, names: readonly string[] = readableNames(shape)) {
  const members = readableNames(shape)
    .filter((name) => names.includes(name))
    .map((name) => ({ name, prefix: `${JSON.stringify(name)}:` }));
  return (record: object): string => {
    let json = '';
    for (const { name, prefix } of members) {
      const value = fieldValue(record, name);
      if (value === undefined) continue;
      json += `${json === '' ? '{' : ','}${prefix}${typeof value === 'string' ? JSON.stringify(value) : value}`;
    }
    return json === '' ? '{}' : `${json}}`;
  };
}

/** The same as a value. */
export function representationOf(shape: Shape, record: object): JsonObject {
  const shown: { [name: string]: Scalar } = {};
  for (const [name] of readableFields(shape)) {
    const value = fieldValue(record, name);
    if (value !== undefined) shown[name] = value;
  }
  return shown;
}

/** Whether both have the same values in all fields that callers set and see. */
export function looksSame(shape: Shape, one: object, other: object): boolean {
  return Object.entries(shape).every(
    ([name, { access }]) => access !== 'read-write' || fieldValue(one, name) === fieldValue(other, name),
  );
}

/** The value of a field of a record; `undefined` where an optional one is absent. What is inherited is no scalar. */
export function fieldValue(record: object, name: string): Scalar | undefined {
  const value = isReadable(record) ? record[name] : undefined;
  return isScalar(value) ? value : undefined;
}

/** Every object can be read by name, which an interface does not tell; `Reflect.get` is many times as slow. */
const isReadable = (record: object): record is { readonly [name: string]: unknown } => typeof record === 'object';
