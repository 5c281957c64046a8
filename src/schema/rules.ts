import type { Issue } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import {
  boundsOf,
  type BooleanField,
  type Field,
  type ListField,
  type NumberField,
  type ReferenceField,
} from './field.ts';

/** How a value violates a rule: an issue without a pointer. */
type Violation = Omit<Issue, 'pointer'>;

/** The longest address that SMTP carries (RFC 5321 §4.5.3.1.3). */
export const emailLengthMax = 254;

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?';
/**
 * HTML, "valid e-mail address": only ASCII, no quoting, no comments; labels by RFC 1034
 * §3.5.
 */
export const emailPattern = `^[a-zA-Z0-9.!#$%&'*+/=?^_\`{|}~-]+@${label}(?:\\.${label})*$`;
const emailGrammar = new RegExp(emailPattern);

/** Control characters, and the separators of lines and paragraphs. */
const controls = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029';
/** The same without tab, line feed and carriage return, which texts of many lines may have. */
const otherControls = '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u2028\\u2029';
/** The controls of UAX #9, which can make a text look like a different one. */
const bidiControls = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';

const plainAscii = /^[\x20-\x7e]*$/;
const plainLines = /^[\t\n\r\x20-\x7e]*$/;
const lone = {
  code: 'lone_surrogate',
  what: 'unpaired surrogates',
  pattern: /\p{Surrogate}/u,
};
const forbiddenWith = (controls: string) => [
  {
    code: 'control_character',
    what: 'control characters or line separators',
    pattern: new RegExp(`[${controls}]`),
  },
  {
    code: 'bidi_character',
    what: 'bidirectional control characters',
    pattern: new RegExp(`[${bidiControls}]`),
  },
  lone,
];
const forbidden = forbiddenWith(controls);
const forbiddenInLines = forbiddenWith(otherControls);

/**
 * Combining marks alone are not visible, nor are the two symbols that look like spaces.
 */
const visibleCharacter =
  /[^\p{White_Space}\p{Cc}\p{Cf}\p{M}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]/u;

/**
 * Returns the rule for the characters of a text as a regular expression for JSON Schema.
 * It must work in many languages, so it approximates invisible characters by white space.
 */
export function textPattern(min: number, multiline = false): string {
  const excluded = `${multiline ? otherControls : controls}${bidiControls}`;
  const allowed = `[^${excluded}]*`;
  return min === 0 ? `^${allowed}$` : `^${allowed}[^\\s${excluded}]${allowed}$`;
}

/**
 * Returns how `value` violates the rule of a field, if it does. Values are never coerced,
 * and no detail quotes a value.
 */
export function ruleViolation(field: Field, value: JsonValue): Violation | undefined {
  switch (field.kind) {
    case 'number':
    case 'integer':
      return typeof value === 'number'
        ? numberViolation(field, value)
        : notA(numberNames[field.kind]);
    case 'reference':
      return typeof value === 'number'
        ? numberViolation(anyId, value)
        : notA('whole number, the id of a record');
    case 'boolean':
      return typeof value === 'boolean'
        ? undefined
        : violation('wrong_type', 'must be true or false');
    case 'list':
      return listViolations(field, value)[0];
    default:
      return typeof value === 'string' ? stringViolation(field, value) : notA('string');
  }
}

const anyId = { kind: 'integer', min: 1 } as const;

/** Returns how a value violates the rule of a list; `place` is that of an element, or empty. */
export function listViolations(
  { of, max = listLengthMax }: ListField,
  value: JsonValue,
): readonly (Violation & { readonly place: string })[] {
  if (!Array.isArray(value)) return [{ ...notA('list'), place: '' }];
  if (value.length > max) {
    return [{ ...violation('too_long', `must have at most ${max} elements`), place: '' }];
  }
  return value.flatMap((element: JsonValue, index) => {
    const found = ruleViolation(of, element);
    return found === undefined ? [] : [{ ...found, place: `/${index}` }];
  });
}

/** The most elements of a list whose declaration does not say it. */
export const listLengthMax = 50;

/** Whether a value has the type of a field: it fits its rule, apart from its bounds. */
export function hasType(field: Field, value: unknown): boolean {
  switch (field.kind) {
    case 'number':
    case 'integer':
    case 'reference':
      return typeof value === 'number' && Number.isFinite(value);
    case 'list':
      return Array.isArray(value) && value.every((element) => hasType(field.of, element));
    case 'boolean':
      return typeof value === 'boolean';
    default:
      return typeof value === 'string' && (field.kind !== 'choice' || field.values.includes(value));
  }
}

function violation(code: string, detail: string): Violation {
  return { code, detail };
}

const notA = (type: string): Violation => violation('wrong_type', `must be a ${type}`);

const numberNames = { number: 'number', integer: 'whole number' } as const;

function numberViolation(field: NumberField, value: number): Violation | undefined {
  const { kind } = field;
  const { min, max } = boundsOf(field);
  if (!Number.isFinite(value)) return violation('not_finite', 'must be a finite number');
  if (value < min) return violation('too_small', `must be at least ${min}`);
  if (value > max) return violation('too_large', `must be at most ${max}`);
  return kind === 'number' || Number.isInteger(value) ? undefined : notA(numberNames[kind]);
}

type StringField = Exclude<Field, NumberField | BooleanField | ReferenceField | ListField>;

function stringViolation(field: StringField, value: string): Violation | undefined {
  switch (field.kind) {
    case 'text': {
      const { min, max } = boundsOf(field);
      return lengthViolation(value, min, max) ?? characterViolation(value, min, field.multiline);
    }
    case 'email':
      if (value.length > emailLengthMax) return tooLong(characters(emailLengthMax));
      return emailGrammar.test(value)
        ? undefined
        : violation('not_an_email', 'must be an e-mail address');
    case 'password': {
      const { min = 1, bytesMax = limits.passwordBytesMax } = field;
      if (Buffer.byteLength(value) > bytesMax) return tooLong(`${bytesMax} bytes`);
      return lengthViolation(value, min, Infinity) ?? forbiddenIn(value, [lone]);
    }
    case 'choice':
      if (field.values.includes(value)) return undefined;
      return violation('not_allowed', `must be one of ${field.values.join(', ')}`);
    case 'timestamp':
      // Only the form of `Date.toISOString`, so that texts are ordered by time.
      if (value.length === 24 && new Date(value).toJSON() === value) return undefined;
      return violation('not_a_timestamp', 'must be like 2026-01-31T12:00:00.000Z');
  }
}

const tooLong = (most: string): Violation => violation('too_long', `must be at most ${most} long`);
const characters = (count: number): string => (count === 1 ? '1 character' : `${count} characters`);

function lengthViolation(value: string, min: number, max: number): Violation | undefined {
  if (isShorter(value, min))
    return violation('too_short', `must be at least ${characters(min)} long`);
  return isShorter(value, max + 1) ? undefined : tooLong(characters(max));
}

/** Whether `value` has fewer than `points` code points. Counts them only if necessary. */
function isShorter(value: string, points: number): boolean {
  if (value.length < points) return true;
  if (value.length >= 2 * points) return false;
  let count = 0;
  for (const _ of value) count += 1;
  return count < points;
}

function characterViolation(value: string, min: number, multiline = false): Violation | undefined {
  const isPlain = (multiline ? plainLines : plainAscii).test(value);
  const found = isPlain ? undefined : forbiddenIn(value, multiline ? forbiddenInLines : forbidden);
  return found ?? (min === 0 || visibleCharacter.test(value) ? undefined : invisible);
}

const invisible: Violation = {
  code: 'invisible',
  detail: 'must have at least one visible character',
};

function forbiddenIn(value: string, characters: typeof forbidden): Violation | undefined {
  const found = characters.find(({ pattern }) => pattern.test(value));
  return found && violation(found.code, `must not contain ${found.what}`);
}
