import { isScalar, type JsonObject, type Scalar } from '../base/json.ts';
import type { Field, Shape } from './field.ts';

/** Returns the fields that are shown, in order. */
export function readableFields(shape: Shape): [string, Field][] {
  return Object.entries(shape).filter(([, field]) => !field.writeOnly);
}

export const readableNames = (shape: Shape): string[] =>
  readableFields(shape).map(([name]) => name);

/**
 * Returns a function that writes a record as JSON for callers: exactly the fields
 * `names`, in the order of the shape. All responses with records are written here.
 */
export function representationWriter(
  shape: Shape,
  names: readonly string[] = readableNames(shape),
) {
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

/** Returns the fields of a record that are shown, as a value. */
export function representationOf(shape: Shape, record: object): JsonObject {
  const shown: { [name: string]: Scalar } = {};
  for (const [name] of readableFields(shape)) {
    const value = fieldValue(record, name);
    if (value !== undefined) shown[name] = value;
  }
  return shown;
}

/** Whether both have equal values in all fields that callers can set and see. */
export function looksSame(shape: Shape, one: object, other: object): boolean {
  return Object.entries(shape).every(
    ([name, { readOnly, writeOnly }]) =>
      readOnly || writeOnly || fieldValue(one, name) === fieldValue(other, name),
  );
}

/**
 * Returns the value of a field; `undefined` if it is absent. Inherited members are not
 * scalars.
 */
export function fieldValue(record: object, name: string): Scalar | undefined {
  // Any object can be read by name; `Reflect.get` is many times slower.
  const value = (record as { readonly [name: string]: unknown })[name];
  return isScalar(value) ? value : undefined;
}
