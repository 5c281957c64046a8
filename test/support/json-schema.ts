import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';

const annotations = new Set([
  'title', 'description', 'examples', 'example', 'x-default', 'readOnly', 'writeOnly', 'format',
  '$ref', '$comment',
]);

/**
 * What is wrong with `value` by a JSON Schema, each with its place; nothing when it is valid. It knows the keywords
 * that Cairn's documents use and throws for any other, so that none is passed over.
 */
export function violations(
  document: JsonObject,
  schema: JsonValue | undefined,
  value: JsonValue,
  place = '',
): string[] {
  if (!isJsonObject(schema)) throw new Error(`There is no schema for ${place}`);
  const found: string[] = [];
  const check = (holds: boolean, keyword: string): void => {
    if (!holds) found.push(`${place} breaks "${keyword}"`);
  };
  const inner = (part: JsonValue | undefined, member: JsonValue, at = place): void => {
    found.push(...violations(document, part, member, at));
  };
  if (typeof schema['$ref'] === 'string') inner(resolve(document, schema['$ref']), value);
  const object = isJsonObject(value) ? value : undefined;
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {};
  for (const [keyword, rule] of Object.entries(schema)) {
    if (annotations.has(keyword) || keyword.startsWith('x-')) continue;
    if (keyword === 'type') check([rule].flat().some((type) => hasType(String(type), value)), keyword);
    else if (keyword === 'properties') {
      for (const [name, member] of Object.entries(object ?? {})) {
        if (Object.hasOwn(properties, name)) inner(properties[name], member, `${place}/${name}`);
      }
    } else if (keyword === 'required' && Array.isArray(rule)) {
      for (const name of rule) check(object === undefined || Object.hasOwn(object, String(name)), `required ${name}`);
    } else if (keyword === 'additionalProperties' && rule === false) {
      for (const name of Object.keys(object ?? {})) check(Object.hasOwn(properties, name), `no other member: ${name}`);
    } else if (keyword === 'additionalProperties' && isJsonObject(rule)) {
      for (const [name, member] of Object.entries(object ?? {})) {
        if (!Object.hasOwn(properties, name)) inner(rule, member, `${place}/${name}`);
      }
    } else if (keyword === 'items') {
      if (Array.isArray(value)) value.forEach((element, index) => inner(rule, element, `${place}/${index}`));
    } else if ((keyword === 'anyOf' || keyword === 'oneOf') && Array.isArray(rule)) {
      const fitting = rule.filter((part) => violations(document, part, value, place).length === 0).length;
      check(keyword === 'anyOf' ? fitting > 0 : fitting === 1, keyword);
    } else if (keyword === 'allOf' && Array.isArray(rule)) rule.forEach((part) => inner(part, value));
    else if (keyword === 'enum' && Array.isArray(rule)) check(rule.some((choice) => choice === value), keyword);
    else if (keyword === 'const') check(rule === value, keyword);
    else if (keyword === 'minimum') check(typeof value !== 'number' || value >= Number(rule), keyword);
    else if (keyword === 'maximum') check(typeof value !== 'number' || value <= Number(rule), keyword);
    else if (keyword === 'minLength') check(typeof value !== 'string' || [...value].length >= Number(rule), keyword);
    else if (keyword === 'maxLength') check(typeof value !== 'string' || [...value].length <= Number(rule), keyword);
    else if (keyword === 'minItems') check(!Array.isArray(value) || value.length >= Number(rule), keyword);
    else if (keyword === 'maxItems') check(!Array.isArray(value) || value.length <= Number(rule), keyword);
    else if (keyword === 'pattern') {
      check(typeof value !== 'string' || new RegExp(String(rule), 'u').test(value), keyword);
    } else throw new Error(`Unknown keyword "${keyword}" at ${place}`);
  }
  return found;
}

/** What a reference within the document leads to. */
export function resolve(document: JsonObject, reference: string): JsonValue | undefined {
  let place: JsonValue | undefined = document;
  for (const part of reference.replace(/^#\//, '').split('/')) {
    const name: string = part.replaceAll('~1', '/').replaceAll('~0', '~');
    place = isJsonObject(place) ? place[name] : undefined;
  }
  return place;
}

function hasType(type: string, value: JsonValue): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isJsonObject(value);
  return typeof value === type;
}
