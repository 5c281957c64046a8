import { unreachable, type Issue } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import type { Field, Rule } from './field.ts';

/** Why a value breaks a rule: an issue that does not know yet where it is. */
type Fault = Omit<Issue, 'pointer'>;

/** The longest address that SMTP carries (RFC 5321 §4.5.3.1.3). */
export const emailLengthMax = 254;

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?';
/** HTML, "valid e-mail address": ASCII alone, no quoting, no comments; labels by RFC 1034 §3.5. */
export const emailPattern = `^[a-zA-Z0-9.!#$%&'*+/=?^_\`{|}~-]+@${label}(?:\\.${label})*$`;
const emailGrammar = new RegExp(emailPattern);

const plainAscii = /^[\x20-\x7e]*$/;
/** The embeddings, overrides and isolates of UAX #9, which can make a text look like another one. */
const bidiCharacter = /[\u202a-\u202e\u2066-\u2069]/;
const controlCharacter = /\p{Cc}/u;
const loneSurrogate = /\p{Surrogate}/u;

/** The rule about single characters of a text as a regular expression of JSON Schema. */
export const textPattern = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069]*$';

/** What `value` breaks in `rule`, or `undefined`. No value is coerced, and no detail quotes one. */
export function faultOf(rule: Rule, value: JsonValue): Fault | undefined {
  switch (rule.kind) {
    case 'number':
    case 'integer':
      return typeof value === 'number' ? numberFault(rule, value) : notA(numberNames[rule.kind]);
    case 'boolean':
      return typeof value === 'boolean' ? undefined : fault('wrong_type', 'must be true or false');
    default:
      return typeof value === 'string' ? textFault(rule, value) : notA('string');
  }
}

/** How a declared field breaks its own rule, to follow "the field has"; `undefined` where it does not. */
export function contradictionOf({ rule, presence, example, fallback }: Field): string | undefined {
  if ('max' in rule) {
    const counted = rule.kind !== 'text' || [rule.min, rule.max].every((length) => Number.isSafeInteger(length));
    const lowest = rule.kind === 'text' ? 0 : -Infinity;
    if (!counted || !(rule.min >= lowest && rule.max >= rule.min)) return 'bounds that no value can keep';
  }
  const exampleFault = faultOf(rule, example);
  if (exampleFault !== undefined) return `an example that ${exampleFault.detail}`;
  const fallbackFault = presence === 'defaulted' ? faultOf(rule, fallback ?? null) : undefined;
  return fallbackFault && `a fallback that ${fallbackFault.detail}`;
}

function fault(code: string, detail: string): Fault {
  return { code, detail };
}

const notA = (type: string): Fault => fault('wrong_type', `must be a ${type}`);

type NumberRule = Extract<Rule, { readonly kind: 'number' | 'integer' }>;
const numberNames = { number: 'number', integer: 'whole number' } as const;

function numberFault({ kind, min, max }: NumberRule, value: number): Fault | undefined {
  if (Number.isNaN(value)) return fault('inexact', 'must have no more digits than a double-precision number keeps');
  if (!Number.isFinite(value)) return fault('not_finite', 'must be a finite number');
  if (value < min) return fault('too_small', `must be at least ${min}`);
  if (value > max) return fault('too_large', `must be at most ${max}`);
  return kind === 'number' || Number.isInteger(value) ? undefined : notA(numberNames[kind]);
}

function textFault(rule: Exclude<Rule, NumberRule | { readonly kind: 'boolean' }>, value: string): Fault | undefined {
  switch (rule.kind) {
    case 'text':
      return lengthFault(value, rule.min, rule.max) ?? characterFault(value);
    case 'email':
      if (value.length > emailLengthMax) return tooLong(characters(emailLengthMax));
      return emailGrammar.test(value) ? undefined : fault('not_an_email', 'must be an e-mail address');
    case 'password':
      if (isShorter(value, rule.min)) return lengthFault(value, rule.min, Infinity);
      return Buffer.byteLength(value) > rule.bytesMax ? tooLong(`${rule.bytesMax} bytes`) : surrogateFault(value);
    case 'choice':
      return rule.values.includes(value) ? undefined : fault('not_allowed', `must be one of ${rule.values.join(', ')}`);
    case 'timestamp':
      // Only the form that `Date.toISOString` gives, so that the order of the texts is the order of the moments.
      if (value.length === 24 && new Date(value).toJSON() === value) return undefined;
      return fault('not_a_timestamp', 'must be like 2026-01-31T12:00:00.000Z');
    default:
      return unreachable(rule);
  }
}

const tooLong = (most: string): Fault => fault('too_long', `must be at most ${most} long`);

function lengthFault(value: string, min: number, max: number): Fault | undefined {
  if (isShorter(value, min)) return fault('too_short', `must be at least ${characters(min)} long`);
  if (!isShorter(value, max + 1)) return tooLong(characters(max));
  return undefined;
}

/** Whether `value` has fewer than `points` code points; it counts only where the code units leave it open. */
function isShorter(value: string, points: number): boolean {
  if (value.length < points) return true;
  if (value.length >= 2 * points) return false;
  let count = 0;
  for (const _ of value) count += 1;
  return count < points;
}

const characters = (count: number): string => (count === 1 ? '1 character' : `${count} characters`);

function characterFault(value: string): Fault | undefined {
  if (plainAscii.test(value)) return undefined;
  if (controlCharacter.test(value)) return fault('control_character', 'must not contain control characters');
  if (bidiCharacter.test(value)) return fault('bidi_character', 'must not contain bidirectional control characters');
  return surrogateFault(value);
}

function surrogateFault(value: string): Fault | undefined {
  return loneSurrogate.test(value) ? fault('lone_surrogate', 'must not contain half of a surrogate pair') : undefined;
}
