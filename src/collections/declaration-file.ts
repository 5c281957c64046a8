import { isJsonObject, isScalar, pointerTo, type JsonObject, type JsonValue } from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import {
  boolean, choice, email, integer, number, text, timestamp, type Field, type Shape,
} from '../schema/field.ts';
import { checkAccess, DeclarationError, defineCollection, type CollectionDeclaration } from './collection.ts';

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
  /** Whether there is the collection `items`, as there is by default. */
  readonly items: boolean;
  readonly collections: readonly CollectionDeclaration[];
}

/**
 * Returns what a file of declarations says. `taken`: names that collections cannot have.
 * @throws DeclarationError with the place in the file, for the first mistake
 */
export function parseDeclarations(json: JsonValue, taken: readonly string[]): Declarations {
  const { items, collections = [] } = membersOf(json, '', ['items', 'collections']);
  const hasItems = parseSwitch(items, '/items', true);
  if (!Array.isArray(collections)) fail('/collections', 'must be an array');
  const names = new Set(hasItems ? [...taken, 'items'] : taken);
  const singulars = new Set(hasItems ? ['item'] : []);
  const declarations = collections.map((each: JsonValue, index: number) => {
    const at = `/collections/${index}`;
    const declaration = parseCollection(each, at);
    const { name, singular } = declaration;
    if (names.has(name)) fail(`${at}/name`, `"${name}" is taken`);
    if (singulars.has(singular)) fail(`${at}/singular`, `"${singular}" is the singular of another collection`);
    names.add(name);
    singulars.add(singular);
    return declaration;
  });
  return { items: hasItems, collections: declarations };
}

const collectionMembers = ['name', 'singular', 'fields', 'access', 'timestamps'];

function parseCollection(json: JsonValue, at: string): CollectionDeclaration {
  const { name: given, singular, fields, access = {}, timestamps } = membersOf(json, at, collectionMembers);
  const name = parseText(given, `${at}/name`);
  const definition = {
    name,
    singular: parseText(singular, `${at}/singular`),
    fields: parseFields(fields, `${at}/fields`),
    timestamps: parseSwitch(timestamps, `${at}/timestamps`, false),
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
  return Object.fromEntries(Object.entries(json).map(([name, each]) => [name, parseField(each, at + pointerTo(name))]));
}

/** What each kind of field takes beside `kind`, `optional`, `default`, `example` and `description`. */
const kinds: { readonly [kind: string]: readonly string[] } = {
  text: ['min', 'max'],
  integer: ['min', 'max'],
  number: ['min', 'max'],
  boolean: [],
  choice: ['values'],
  email: [],
  timestamp: [],
};

function parseField(json: JsonValue, at: string): Field {
  const kind = parseText(isJsonObject(json) ? json['kind'] : undefined, `${at}/kind`);
  const own = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (own === undefined) return fail(`${at}/kind`, `must be one of ${Object.keys(kinds).join(', ')}`);
  const members = membersOf(json, at, ['kind', 'optional', 'default', 'example', 'description', ...own]);
  const { default: fallback, description, example } = members;
  const field = plainField(kind, members, at);
  const isOptional = parseSwitch(members['optional'], `${at}/optional`, false);
  if (isOptional && fallback !== undefined) fail(`${at}/default`, 'must be left out where the field is optional');
  return {
    ...field,
    presence: isOptional ? 'optional' : fallback === undefined ? 'required' : 'defaulted',
    ...(example !== undefined && { example: scalar(example, `${at}/example`) }),
    ...(fallback !== undefined && { fallback: scalar(fallback, `${at}/default`) }),
    ...(description !== undefined && { description: parseText(description, `${at}/description`) }),
  };
}

function plainField(kind: string, { min, max, values }: JsonObject, at: string): Field {
  const bounds = {
    ...(min !== undefined && { min: parseNumber(min, `${at}/min`) }),
    ...(max !== undefined && { max: parseNumber(max, `${at}/max`) }),
  };
  switch (kind) {
    case 'text': return text(bounds);
    case 'integer': return integer(bounds);
    case 'number': return number(bounds);
    case 'boolean': return boolean();
    case 'email': return email();
    case 'timestamp': return timestamp();
    default: return choice(parseValues(values, `${at}/values`));
  }
}

function parseValues(json: JsonValue | undefined, at: string): string[] {
  if (!Array.isArray(json) || json.length === 0) return fail(at, 'must be an array with at least one text');
  return json.map((each: JsonValue, index) => parseText(each, `${at}/${index}`));
}

/** The members of an object, all of which have to be known. */
function membersOf(json: JsonValue, at: string, known: readonly string[]): JsonObject {
  if (!isJsonObject(json)) return fail(at, 'must be an object');
  const unknown = Object.keys(json).find((name) => !known.includes(name));
  if (unknown === undefined) return json;
  const meant = nearest(unknown, known);
  return fail(at + pointerTo(unknown), `is not known${meant === undefined ? '' : `; did you mean "${meant}"?`}`);
}

function parseText(json: JsonValue | undefined, at: string): string {
  return typeof json === 'string' && json !== '' ? json : fail(at, 'must be a text');
}

function parseNumber(json: JsonValue, at: string): number {
  return typeof json === 'number' && Number.isFinite(json) ? json : fail(at, 'must be a number');
}

function parseSwitch(json: JsonValue | undefined, at: string, fallback: boolean): boolean {
  return typeof json === 'boolean' ? json : json === undefined ? fallback : fail(at, 'must be true or false');
}

function scalar(json: JsonValue, at: string): string | number | boolean {
  return isScalar(json) ? json : fail(at, 'must be a text, a number, true or false');
}

/** @throws DeclarationError */
function fail(pointer: string, problem: string): never {
  throw new DeclarationError(pointer === '' ? 'the whole' : pointer, pointer, problem);
}
