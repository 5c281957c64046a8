import type { JsonObject } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Field, Rule, Shape } from './field.ts';
import { emailLengthMax, emailPattern, textPattern } from './rules.ts';

/** What a schema is for: a response (`representation`) or a body. */
export type Purpose = 'representation' | 'create' | 'replace' | 'patch';

/**
 * Returns JSON Schema 2020-12 for a resource. Its lengths are code points (Validation
 * §6.3.1).
 */
export function resourceSchema(
  title: string,
  shape: Shape,
  purpose: Purpose = 'representation',
): JsonObject {
  const leftOut =
    purpose === 'representation' ? 'write-only' : purpose === 'create' ? 'read-only' : undefined;
  const members = Object.entries(shape).filter(([, field]) => field.access !== leftOut);
  const optional = members.filter(([, field]) => !isRequired(field, purpose)).map(([name]) => name);
  const properties = Object.fromEntries(
    members.map(([name, field]) => [name, fieldSchema(field, purpose)]),
  );
  return objectSchema(title, properties, optional);
}

/**
 * Returns the schema of an object with exactly these members, of which some are optional.
 */
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

/** Returns the schema of one such value, or of an array for one request. */
export function oneOrManySchema(schema: JsonObject): JsonObject {
  return {
    oneOf: [schema, { type: 'array', items: schema, minItems: 1, maxItems: limits.elementsMax }],
  };
}

/** Returns the schema of a field's value in a body or response. */
function fieldSchema(field: Field, purpose: Purpose): JsonObject {
  const { rule, presence, access, description, fallback, example } = field;
  const { type, enum: values, ...others } = typeSchema(rule);
  const isRemovable = purpose === 'patch' && presence === 'optional' && access === 'read-write';
  const none = isRemovable ? [null] : [];
  return {
    type: isRemovable ? [type, 'null'] : type,
    ...(values !== undefined && { enum: [...values, ...none] }),
    ...others,
    ...boundsSchema(rule),
    ...(description !== undefined && { description }),
    ...(purpose === 'create' && fallback !== undefined && { default: fallback }),
    ...(access === 'read-only' && { readOnly: true }),
    ...(access === 'write-only' && { writeOnly: true }),
    examples: [example],
  };
}

/**
 * Returns the type without bounds. An `enum` always has a `type`, for code generators.
 */
export function typeSchema(rule: Rule): {
  readonly type: string;
  readonly format?: string;
  readonly enum?: readonly string[];
} {
  switch (rule.kind) {
    case 'password':
      return { type: 'string', format: 'password' };
    case 'timestamp':
      return { type: 'string', format: 'date-time' };
    case 'choice':
      return { type: 'string', enum: rule.values };
    case 'text':
    case 'email':
      return { type: 'string' };
    default:
      return { type: rule.kind };
  }
}

function boundsSchema(rule: Rule): JsonObject {
  switch (rule.kind) {
    case 'text':
      return { minLength: rule.min, maxLength: rule.max, pattern: textPattern(rule.min) };
    case 'email':
      return { maxLength: emailLengthMax, pattern: emailPattern };
    case 'password':
      return { minLength: rule.min, maxLength: rule.bytesMax };
    case 'number':
    case 'integer':
      return {
        ...(rule.min > -Number.MAX_VALUE && { minimum: rule.min }),
        ...(rule.max < Number.MAX_VALUE && { maximum: rule.max }),
      };
    default:
      return {};
  }
}

function isRequired(field: Field, purpose: Purpose): boolean {
  if (purpose === 'patch') return false;
  if (purpose === 'representation') return field.presence !== 'optional';
  return field.presence === 'required' && field.access !== 'read-only';
}
