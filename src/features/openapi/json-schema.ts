import type { JsonObject } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { splitShape, type Field, type Shape } from '../../schema/field.ts';
import { makeExample, valueSchema } from '../../schema/kinds.ts';

/** The purpose of a schema: a response (`representation`) or a request body. */
export type SchemaPurpose = 'representation' | 'create' | 'replace' | 'patch';

/**
 * Returns JSON Schema 2020-12 for a resource. Its lengths are code points (Validation §6.3.1).
 * `more` are schemas of additional, optional members.
 */
export function resourceSchema(
  title: string,
  shape: Shape,
  purpose: SchemaPurpose = 'representation',
  more: JsonObject = {},
): JsonObject {
  const { fields, takesMore, value } = splitShape(shape);
  if (value !== undefined) return fieldSchema(value, purpose);
  const members = Object.entries(fields).filter(([, { kind, readOnly, writeOnly }]) =>
    purpose === 'representation' ? !writeOnly : purpose !== 'create' || !readOnly || kind === 'id',
  );
  const optional = members.filter(([, field]) => !isRequired(field, purpose)).map(([name]) => name);
  const properties = Object.fromEntries(
    members.map(([name, field]) => [name, fieldSchema(field, purpose)]),
  );
  const schema = objectSchema(title, { ...properties, ...more }, [
    ...optional,
    ...Object.keys(more),
  ]);
  // Without this rule, JSON Schema allows additional members.
  const { additionalProperties: _, ...open } = schema;
  return takesMore ? open : schema;
}

/** Allows exactly these members; those in `optional` may be absent. */
export function objectSchema(
  title: string,
  properties: JsonObject,
  optional: readonly string[] = [],
): JsonObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return {
    title,
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

export function manySchema(schema: JsonObject): JsonObject {
  return { type: 'array', items: schema, minItems: 1, maxItems: limits.elementsMax };
}

export function fieldSchema(field: Field, purpose: SchemaPurpose): JsonObject {
  const { readOnly, writeOnly, default: fallback } = field;
  return {
    ...valueSchema(field, purpose === 'patch'),
    // With `default`, generated clients would have to send the field.
    ...(purpose === 'create' && fallback !== undefined && { 'x-default': fallback }),
    ...(readOnly && purpose !== 'create' && { readOnly }),
    ...(writeOnly && { writeOnly }),
    examples: [makeExample(field)],
  };
}

/** True if a field is always present in a body or response. */
export function isRequired(field: Field, purpose: SchemaPurpose): boolean {
  if (purpose === 'patch') return false;
  if (purpose === 'representation') return field.optional !== true;
  return !field.optional && field.default === undefined && !field.readOnly;
}
