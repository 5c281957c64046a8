import { unreachable } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import type { Field, Rule, Shape } from './field.ts';
import { emailLengthMax, emailPattern, textPattern } from './rules.ts';

/** `representation`: what is shown; `selection`: the same under `fields=`; the others: bodies that are sent. */
export type Purpose = 'representation' | 'selection' | 'create' | 'replace' | 'patch';

/** JSON Schema 2020-12 for a resource of this shape. Lengths there are code points too (Validation §6.3.1). */
export function resourceSchema(title: string, shape: Shape, purpose: Purpose = 'representation'): JsonObject {
  const isShown = purpose === 'representation' || purpose === 'selection';
  const leftOut = isShown ? 'write-only' : purpose === 'create' ? 'read-only' : undefined;
  const members = Object.entries(shape).filter(([, field]) => field.access !== leftOut);
  const optional = members.filter(([, field]) => !isRequired(field, purpose)).map(([name]) => name);
  const properties = Object.fromEntries(members.map(([name, field]) => [name, fieldSchema(field, purpose)]));
  return objectSchema(title, properties, optional);
}

/** An object with exactly these members, those named in `optional` perhaps absent. */
export function objectSchema(title: string, properties: JsonObject, optional: readonly string[] = []): JsonObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  const needed = required.length > 0 && { required };
  return { title, type: 'object', properties, ...needed, additionalProperties: false };
}

/** The schema of one field's value, as a body or a representation has it. */
function fieldSchema(field: Field, purpose: Purpose): JsonObject {
  const rule = ruleSchema(field.rule);
  const removable = purpose === 'patch' && field.presence === 'optional' && field.access === 'read-write';
  return {
    ...rule,
    ...(removable && typeof rule['type'] === 'string' && { type: [rule['type'], 'null'] }),
    ...(removable && Array.isArray(rule['enum']) && { enum: [...rule['enum'], null] }),
    ...(field.description !== undefined && { description: field.description }),
    ...(purpose === 'create' && field.fallback !== undefined && { default: field.fallback }),
    ...(field.access === 'read-only' && { readOnly: true }),
    ...(field.access === 'write-only' && { writeOnly: true }),
    examples: [field.example],
  };
}

/** The schema of a value that keeps `rule`. */
export function ruleSchema(rule: Rule): JsonObject {
  switch (rule.kind) {
    case 'text':
      return { type: 'string', minLength: rule.min, maxLength: rule.max, pattern: textPattern };
    case 'email':
      return { type: 'string', maxLength: emailLengthMax, pattern: emailPattern };
    case 'password':
      return { type: 'string', format: 'password', minLength: rule.min, maxLength: rule.bytesMax };
    case 'number':
    case 'integer':
      return {
        type: rule.kind,
        ...(rule.min > -Number.MAX_VALUE && { minimum: rule.min }),
        ...(rule.max < Number.MAX_VALUE && { maximum: rule.max }),
      };
    case 'boolean':
      return { type: 'boolean' };
    case 'choice':
      return { type: 'string', enum: rule.values };
    case 'timestamp':
      return { type: 'string', format: 'date-time' };
    default:
      return unreachable(rule);
  }
}

function isRequired(field: Field, purpose: Purpose): boolean {
  if (purpose === 'patch' || purpose === 'selection') return false;
  if (purpose === 'representation') return field.presence !== 'optional';
  return field.presence === 'required' && field.access !== 'read-only';
}
