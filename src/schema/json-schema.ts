import type { JsonObject } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { boundsOf, type Field, type Shape, type Value } from './field.ts';
import { emailLengthMax, emailPattern, listLengthMax, textPattern } from './rules.ts';

/** What a schema is for: a response (`representation`) or a body. */
export type Purpose = 'representation' | 'create' | 'replace' | 'patch';

/**
 * Returns JSON Schema 2020-12 for a resource. Its lengths are code points (Validation
 * §6.3.1). `more` are the schemas of further members, which are optional.
 */
export function resourceSchema(
  title: string,
  shape: Shape,
  purpose: Purpose = 'representation',
  more: JsonObject = {},
): JsonObject {
  const members = Object.entries(shape).filter(([, { readOnly, writeOnly }]) =>
    purpose === 'representation' ? !writeOnly : purpose !== 'create' || !readOnly,
  );
  const optional = members.filter(([, field]) => !isRequired(field, purpose)).map(([name]) => name);
  const properties = Object.fromEntries(
    members.map(([name, field]) => [name, fieldSchema(field, purpose)]),
  );
  return objectSchema(title, { ...properties, ...more }, [...optional, ...Object.keys(more)]);
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

/** Returns the schema of an array of such values, for one request. */
export function manySchema(schema: JsonObject): JsonObject {
  return { type: 'array', items: schema, minItems: 1, maxItems: limits.elementsMax };
}

/** Returns the schema of a field's value in a body or response. */
function fieldSchema(field: Field, purpose: Purpose): JsonObject {
  const { optional, readOnly, writeOnly, description, default: fallback } = field;
  const { type, enum: values, ...others } = typeSchema(field);
  const isRemovable = purpose === 'patch' && optional && !readOnly && !writeOnly;
  const none = isRemovable ? [null] : [];
  return {
    type: isRemovable ? [type, 'null'] : type,
    ...(values !== undefined && { enum: [...values, ...none] }),
    ...others,
    ...boundsSchema(field),
    ...(description !== undefined && { description }),
    // With `default`, generated clients would have to send the field.
    ...(purpose === 'create' && fallback !== undefined && { 'x-default': fallback }),
    ...(readOnly && { readOnly }),
    ...(writeOnly && { writeOnly }),
    examples: [exampleOf(field)],
  };
}

/** Returns an allowed value of a field: the declared one, or one that its bounds allow. */
export function exampleOf(field: Field): Value {
  if (field.example !== undefined) return field.example;
  switch (field.kind) {
    case 'text': {
      const { min, max } = boundsOf(field);
      return 'text'.padEnd(min, '.').slice(0, max);
    }
    case 'number':
    case 'integer': {
      const { min, max } = boundsOf(field);
      const isWhole = field.kind === 'integer';
      return Math.min(Math.max(isWhole ? Math.ceil(min) : min, 0), isWhole ? Math.floor(max) : max);
    }
    case 'email':
      return 'ada@example.org';
    case 'password':
      return 'correct horse battery staple'.padEnd(field.min ?? 1, ' and so on');
    case 'boolean':
      return true;
    case 'choice':
      return field.values[0] ?? '';
    case 'timestamp':
      return '2026-01-31T12:00:00.000Z';
    case 'reference':
      return 1;
    case 'list':
      return field.max === 0 ? [] : [exampleOf(field.of)].flat();
  }
}

/**
 * Returns the type without bounds. An `enum` always has a `type`, for code generators.
 */
export function typeSchema(field: Field): {
  readonly type: string;
  readonly format?: string;
  readonly enum?: readonly string[];
} {
  switch (field.kind) {
    case 'password':
      return { type: 'string', format: 'password' };
    case 'timestamp':
      return { type: 'string', format: 'date-time' };
    case 'choice':
      return { type: 'string', enum: field.values };
    case 'text':
    case 'email':
      return { type: 'string' };
    case 'reference':
      return { type: 'integer' };
    case 'list':
      return { type: 'array' };
    default:
      return { type: field.kind };
  }
}

/** What the pattern of a text only approximates. */
const visible = {
  $comment: 'One character must be visible: no white space, mark or format character.',
};

function boundsSchema(field: Field): JsonObject {
  switch (field.kind) {
    case 'text': {
      const { min, max } = boundsOf(field);
      const { multiline } = field;
      return {
        minLength: min,
        maxLength: max,
        pattern: textPattern(min, multiline),
        ...(min > 0 && visible),
        ...(multiline && { 'x-multiline': true }),
      };
    }
    case 'email':
      return { maxLength: emailLengthMax, pattern: emailPattern };
    case 'password':
      return { minLength: field.min ?? 1, maxLength: field.bytesMax ?? limits.passwordBytesMax };
    case 'reference':
      return { minimum: 1, 'x-references': field.to };
    case 'list': {
      const { of, max = listLengthMax } = field;
      return { items: { ...typeSchema(of), ...boundsSchema(of) }, maxItems: max };
    }
    case 'number':
    case 'integer': {
      const { min, max } = boundsOf(field);
      return {
        ...(min > -Number.MAX_VALUE && { minimum: min }),
        ...(max < Number.MAX_VALUE && { maximum: max }),
      };
    }
    default:
      return {};
  }
}

function isRequired(field: Field, purpose: Purpose): boolean {
  if (purpose === 'patch') return false;
  if (purpose === 'representation') return field.optional !== true;
  return !field.optional && field.default === undefined && !field.readOnly;
}
