import { isJsonObject, type JsonObject, type JsonValue, type Scalar } from '../base/json.ts';
import { keyName } from '../base/record-id.ts';
import {
  anyJson,
  moreName,
  oncePerShape,
  valueName,
  type Field,
  type Shape,
  type Value,
} from './field.ts';
import { isSearched } from './kinds.ts';

/** Returns the visible fields, in order. */
export function readableFields(shape: Shape): [string, Field][] {
  return Object.entries(shape).filter(([, field]) => !field.writeOnly);
}

export const readableNames = (shape: Shape): string[] =>
  readableFields(shape).map(([name]) => name);

/**
 * Names that work in queries, which split texts at these characters, and where "-" begins a
 * direction.
 */
const isQueryable = /^[\p{L}\p{N}_][^:,()[\]\\]*$/u;

/** Returns the fields that queries can name, with paths for those in objects: `address.city`. */
export function readablePaths(shape: Shape): [path: string, Field][] {
  const fields = readableFields(shape).filter(([name]) => isQueryable.test(name));
  return fields.flatMap(([name, field]): [string, Field][] =>
    field.kind === 'object'
      ? [[name, field], ...readablePaths(field.fields).map(([path, one]) => below(name, path, one))]
      : [[name, field]],
  );
}

/** The paths that `q` searches: fields, and all additional members together. */
export const searchedPaths = (shape: Shape): string[] =>
  Object.entries(shape).flatMap(([name, field]) => {
    const isShown = name === moreName || !field.writeOnly;
    return isShown && isSearched(field) ? name : [];
  });

const below = (name: string, path: string, field: Field): [string, Field] => [
  `${name}.${path}`,
  field,
];

/** Returns the field at a path. An undeclared member, or one inside a `json` field, is any JSON. */
export function fieldAt(shape: Shape, path: string): Field | undefined {
  const [name = '', rest] = path.split(/\.(.*)/s);
  const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
  if (field === undefined) return Object.hasOwn(shape, moreName) && name ? anyJson : undefined;
  if (rest === undefined) return field.writeOnly ? undefined : field;
  if (field.kind === 'json') return anyJson;
  if (field.kind !== 'object') return undefined;
  return fieldAt(field.fields, rest) ?? (field.additional ? anyJson : undefined);
}

/** The path of the owner, which records do not show. No query path begins with a dot. */
export const ownerPath = '.owner';

/** The path of a record's number if callers chose its `id`. */
const numberName = '.number';

const hasGivenIds = (shape: Shape): boolean => shape['id']?.kind === 'id';

/** The name of the last term of every order, which is unique. */
export const lastOrderTerm = (shape: Shape): string => (hasGivenIds(shape) ? numberName : 'id');

/** Returns the id that callers know. */
const idIn = (record: object): Value | undefined =>
  fieldValue(record, keyName) ?? fieldValue(record, 'id');

export function readerAt(shape: Shape, path: string): (record: object) => Value | undefined {
  if (path === numberName) return (record) => fieldValue(record, 'id');
  if (path === ownerPath) return (record) => fieldValue(record, 'ownerId');
  if (path === 'id' && hasGivenIds(shape)) return idIn;
  if (path === moreName) return readMore;
  const [first = ''] = path.split('.');
  if (Object.hasOwn(shape, moreName) && !Object.hasOwn(shape, first)) return memberAt(path);
  return path.includes('.') ? walk(path) : (record) => fieldValue(record, path);
}

/** Returns the reader of an additional member. A name with dots takes precedence over a path. */
function memberAt(path: string): (record: object) => Value | undefined {
  const read = walk(path);
  if (!path.includes('.')) return (record) => read(readMore(record));
  return (record) => {
    const members = readMore(record);
    return Object.hasOwn(members, path) ? fieldValue(members, path) : read(members);
  };
}

function walk(path: string): (record: object) => Value | undefined {
  const names = path.split('.');
  return (record) => {
    let value = fieldValue(record, names[0] ?? '');
    for (let depth = 1; depth < names.length; depth += 1) {
      if (typeof value !== 'object' || value === null) return undefined;
      const name: string = names[depth] ?? '';
      value = Object.hasOwn(value, name) ? fieldValue(value, name) : undefined;
    }
    return value;
  };
}

export type Write = (record: object) => string;

/**
 * Returns a function that writes a record as JSON for callers, with exactly the fields `names`, in
 * the shape's order. All responses with records are written here.
 */
export function representationWriter(shape: Shape, names?: readonly string[]): Write {
  return names === undefined ? wholeWriter(shape) : newWriter(shape, names);
}

const wholeWriter = oncePerShape((shape) => newWriter(shape));

function newWriter(shape: Shape, names?: readonly string[]): Write {
  if (Object.hasOwn(shape, valueName))
    return (record) => JSON.stringify(fieldValue(record, valueName));
  const members = readableNames(shape)
    .filter((name) => names?.includes(name) ?? true)
    .map((name) => {
      const prefix = `${JSON.stringify(name)}:`;
      return { name: storedName(shape, name), first: `{${prefix}`, next: `,${prefix}` };
    });
  const hasMore = names === undefined && Object.hasOwn(shape, moreName);
  return (record) => {
    let json = '';
    for (const { name, first, next } of members) {
      let value = fieldValue(record, name);
      if (value === undefined && name === keyName) value = fieldValue(record, 'id');
      if (value === undefined) continue;
      json += (json === '' ? first : next) + writeValue(value);
    }
    if (hasMore) {
      for (const [name, value] of Object.entries(readMore(record))) {
        json += `${json === '' ? '{' : ','}${JSON.stringify(name)}:${JSON.stringify(value)}`;
      }
    }
    return json === '' ? '{}' : `${json}}`;
  };
}

const storedName = (shape: Shape, name: string): string =>
  name === 'id' && hasGivenIds(shape) ? keyName : name;

export function readMore(record: object): JsonObject {
  const more = fieldValue(record, moreName);
  return isJsonObject(more) ? more : {};
}

/** Returns a record's visible fields as a value. */
export function toRepresentation(shape: Shape, record: object): JsonObject {
  const shown: { [name: string]: Value } = {};
  for (const [name] of readableFields(shape)) {
    const stored = storedName(shape, name);
    const value = stored === keyName ? idIn(record) : fieldValue(record, stored);
    if (value !== undefined) shown[name] = value;
  }
  // Assigning `__proto__` would not create a member.
  return Object.hasOwn(shape, moreName)
    ? Object.fromEntries([...Object.entries(shown), ...Object.entries(readMore(record))])
    : shown;
}

/** Returns a record as callers see it: its fields, or the value of a single resource. */
export function toShown(shape: Shape, record: object): JsonValue {
  if (Object.hasOwn(shape, valueName)) return fieldValue(record, valueName) ?? null;
  return toRepresentation(shape, record);
}

/** True if all fields that callers can set and see are equal. */
export function looksSame(shape: Shape, one: object, other: object): boolean {
  return Object.entries(shape).every(
    ([name, { readOnly, writeOnly }]) =>
      readOnly ||
      (writeOnly && name !== moreName) ||
      isSameValue(fieldValue(one, name), fieldValue(other, name)),
  );
}

/** Writes JSON. A short text is searched faster for what needs an escape than V8 writes it. */
function writeValue(value: Value): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const isQuotable = typeof value === 'string' && value.length < 200 && !escaped.test(value);
  return isQuotable ? `"${value}"` : JSON.stringify(value);
}

const escaped = /["\\\u0000-\u001f\ud800-\udfff]/;

/** True if two values are equal, with the members of objects in the same order. */
export function isSameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!isCompound(one) || !isCompound(other)) return false;
  if (Array.isArray(one) || Array.isArray(other)) return isSameList(one, other);
  const [names, others] = [Object.keys(one), Object.keys(other)];
  return (
    names.length === others.length &&
    names.every((name, at) => name === others[at] && isSameValue(one[name], other[name]))
  );
}

const isSameList = (one: unknown, other: unknown): boolean =>
  Array.isArray(one) &&
  Array.isArray(other) &&
  one.length === other.length &&
  one.every((each, at) => isSameValue(each, other[at]));

const isCompound = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null;

/**
 * Returns the value of a field; `undefined` if it is absent or inherited. Only for checked records;
 * `scalarValue` is for bodies.
 */
export function fieldValue(record: object, name: string): Value | undefined {
  // Any object can be read by name; `Reflect.get` is many times slower. Inherited members are
  // functions or objects.
  const value = (record as { readonly [name: string]: Value | (() => void) })[name];
  if (typeof value === 'object') return Object.hasOwn(record, name) ? value : undefined;
  return typeof value === 'function' ? undefined : value;
}

/** Returns the value of a field if it is a scalar; also `undefined` if it is null. */
export function scalarValue(record: object, name: string): Scalar | undefined {
  const value = fieldValue(record, name);
  return typeof value === 'object' ? undefined : value;
}
