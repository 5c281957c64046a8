import {
  isJsonObject,
  isScalar,
  pointerTo,
  type JsonObject,
  type JsonValue,
  type Scalar,
} from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import {
  boolean,
  choice,
  email,
  integer,
  number,
  text,
  timestamp,
  type Field,
  type Shape,
} from '../schema/field.ts';
import {
  checkAccess,
  DeclarationError,
  defineCollection,
  type CollectionDeclaration,
} from './collection.ts';

/**
 * Declarations of collections as data:
 *
 *   { "items": false,
 *     "collections": [{
 *       "name": "books", "singular": "book", "timestamps": true,
 *       "fields": {
 *         "title": { "kind": "text", "min": 1, "max": 200 },
 *         "pages": { "kind": "integer", "min": 1, "optional": true },
 *         "state": { "kind": "choice", "values": ["new", "read"], "default": "new" } },
 *       "access": { "list": "public", "read": "public" } }] }
 */
export interface Declarations {
  /** Whether the collection `items` exists, which is the default. */
  readonly items: boolean;
  readonly collections: readonly CollectionDeclaration[];
}

/**
 * Parses a file of declarations. `taken`: names that collections cannot have.
 * @throws DeclarationError with the place in the file, for the first mistake
 */
export function parseDeclarations(json: JsonValue, taken: readonly string[]): Declarations {
  const { items, collections = [] } = membersOf(json, '', ['items', 'collections']);
  const hasItems = parseBoolean(items, '/items', true);
  if (!Array.isArray(collections)) fail('/collections', 'must be an array');
  const names = new Set(hasItems ? [...taken, 'items'] : taken);
  const singulars = new Set(hasItems ? ['item'] : []);
  const declarations = collections.map((each: JsonValue, index: number) => {
    const at = `/collections/${index}`;
    const declaration = parseCollection(each, at);
    const { name, singular } = declaration;
    if (names.has(name)) fail(`${at}/name`, `"${name}" is taken`);
    if (singulars.has(singular))
      fail(`${at}/singular`, `"${singular}" is the singular of another collection`);
    names.add(name);
    singulars.add(singular);
    return declaration;
  });
  return { items: hasItems, collections: declarations };
}

const collectionMembers = ['name', 'singular', 'fields', 'access', 'timestamps'];

function parseCollection(json: JsonValue, at: string): CollectionDeclaration {
  const {
    name: given,
    singular,
    fields,
    access = {},
    timestamps,
  } = membersOf(json, at, collectionMembers);
  const name = parseText(given, `${at}/name`);
  const definition = {
    name,
    singular: parseText(singular, `${at}/singular`),
    fields: parseFields(fields, `${at}/fields`),
    timestamps: parseBoolean(timestamps, `${at}/timestamps`, false),
  };
  if (!isJsonObject(access)) return fail(`${at}/access`, 'must be an object');
  const words: object = access;
  try {
    checkAccess(name, words);
    return defineCollection({ ...definition, access: words });
  } catch (error) {
    if (!(error instanceof DeclarationError)) throw error;
    return fail(at + error.pointer, error.problem);
  }
}

function parseFields(json: JsonValue | undefined, at: string): Shape {
  if (!isJsonObject(json)) return fail(at, 'must be an object that names the fields');
  return Object.fromEntries(
    Object.entries(json).map(([name, each]) => [name, parseField(each, at + pointerTo(name))]),
  );
}

/** The options of a field, parsed from its own members. */
interface FieldOptions {
  readonly min?: number;
  readonly max?: number;
  readonly values?: readonly string[];
  readonly description?: string;
}

/** Each kind of field: its constructor, and the members that only this kind has. */
const kinds: {
  readonly [kind: string]: readonly [(options: FieldOptions) => Field, ...string[]];
} = {
  text: [text, 'min', 'max'],
  integer: [integer, 'min', 'max'],
  number: [number, 'min', 'max'],
  boolean: [boolean],
  choice: [({ values = [] }) => choice(values), 'values'],
  email: [email],
  timestamp: [timestamp],
};

function parseField(json: JsonValue, at: string): Field {
  const kind = parseText(isJsonObject(json) ? json['kind'] : undefined, `${at}/kind`);
  const found = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (found === undefined)
    return fail(`${at}/kind`, `must be one of ${Object.keys(kinds).join(', ')}`);
  const [make, ...own] = found;
  const members = membersOf(json, at, [
    'kind',
    'optional',
    'default',
    'example',
    'description',
    ...own,
  ]);
  const { min, max, values, default: fallback, description, example } = members;
  const field = make({
    ...(min !== undefined && { min: parseNumber(min, `${at}/min`) }),
    ...(max !== undefined && { max: parseNumber(max, `${at}/max`) }),
    ...(own.includes('values') && { values: parseValues(values, `${at}/values`) }),
    ...(description !== undefined && {
      description: parseText(description, `${at}/description`),
    }),
  });
  const isOptional = parseBoolean(members['optional'], `${at}/optional`, false);
  if (isOptional && fallback !== undefined)
    fail(`${at}/default`, 'must be left out where the field is optional');
  return {
    ...field,
    presence: isOptional ? 'optional' : fallback === undefined ? 'required' : 'defaulted',
    ...(example !== undefined && { example: parseScalar(example, `${at}/example`) }),
    ...(fallback !== undefined && { fallback: parseScalar(fallback, `${at}/default`) }),
  };
}

function parseValues(json: JsonValue | undefined, at: string): string[] {
  if (!Array.isArray(json) || json.length === 0)
    return fail(at, 'must be a non-empty array of strings');
  return json.map((each: JsonValue, index) => parseText(each, `${at}/${index}`));
}

/** Returns an object that has only known members. */
function membersOf(json: JsonValue, at: string, known: readonly string[]): JsonObject {
  if (!isJsonObject(json)) return fail(at, 'must be an object');
  const unknown = Object.keys(json).find((name) => !known.includes(name));
  if (unknown === undefined) return json;
  const meant = nearest(unknown, known);
  return fail(
    at + pointerTo(unknown),
    `is not a known member${meant === undefined ? '' : `; did you mean "${meant}"?`}`,
  );
}

function parseText(json: JsonValue | undefined, at: string): string {
  return typeof json === 'string' && json !== '' ? json : fail(at, 'must be a non-empty string');
}

function parseNumber(json: JsonValue, at: string): number {
  return typeof json === 'number' && Number.isFinite(json) ? json : fail(at, 'must be a number');
}

function parseBoolean(json: JsonValue | undefined, at: string, fallback: boolean): boolean {
  return typeof json === 'boolean'
    ? json
    : json === undefined
      ? fallback
      : fail(at, 'must be true or false');
}

function parseScalar(json: JsonValue, at: string): Scalar {
  return isScalar(json) ? json : fail(at, 'must be a string, a number, true or false');
}

/** @throws DeclarationError */
function fail(pointer: string, problem: string): never {
  throw new DeclarationError(pointer === '' ? 'the document' : pointer, pointer, problem);
}
