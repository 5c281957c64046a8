import type { Issue } from '../base/errors.ts';

/** The rules of texts, and violations. Values are never coerced, and never quoted in a detail. */

/** A violation of a rule: an issue without a pointer. */
export type Violation = Omit<Issue, 'pointer'>;

/** The longest address that SMTP carries (RFC 5321 §4.5.3.1.3). */
export const emailLengthMax = 254;

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?';
/** HTML, "valid e-mail address": only ASCII, no quoting, no comments; labels by RFC 1034 §3.5. */
export const emailPattern = `^[a-zA-Z0-9.!#$%&'*+/=?^_\`{|}~-]+@${label}(?:\\.${label})*$`;
export const emailGrammar = new RegExp(emailPattern);

/** Control characters, line separators and paragraph separators. */
const controls = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029';
/** The same without tab, line feed and carriage return, which multiline texts may have. */
const otherControls = '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u2028\\u2029';
/** The controls of UAX #9, which can make a text look like another. */
const bidiControls = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';

const plainAscii = /^[\x20-\x7e]*$/;
const plainLines = /^[\t\n\r\x20-\x7e]*$/;
export const loneSurrogate = {
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
  loneSurrogate,
];
const forbidden = forbiddenWith(controls);
const forbiddenInLines = forbiddenWith(otherControls);

/**
 * A character that is visible by itself. A combining mark is not, and U+2800 and U+1D159 look like
 * spaces.
 */
const visibleCharacter =
  /[^\p{White_Space}\p{Cc}\p{Cf}\p{M}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]/u;

/**
 * Invisible characters up to U+FFFF, for a pattern of JSON Schema. It leaves out white space and
 * most ranges of combining marks.
 */
const invisibles =
  '\\u00ad\\u0300-\\u036f\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u115f\\u1160\\u17b4\\u17b5' +
  '\\u180b-\\u180f\\u200b-\\u200d\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb';

/**
 * Returns the rule for the characters of a text as a JSON Schema pattern. It must work in many
 * languages, so it knows only the `invisibles`.
 */
export function textPattern(min: number, multiline = false): string {
  const excluded = `${multiline ? otherControls : controls}${bidiControls}`;
  const allowed = `[^${excluded}]*`;
  return min === 0 ? `^${allowed}$` : `^${allowed}[^\\s${invisibles}${excluded}]${allowed}$`;
}

export function violation(code: string, detail: string): Violation {
  return { code, detail };
}

export const notA = (type: string): Violation => violation('wrong_type', `must be a ${type}`);

export const tooLong = (most: string): Violation =>
  violation('too_long', `must be at most ${most} long`);
export const characters = (count: number): string =>
  count === 1 ? '1 character' : `${count} characters`;

export function lengthViolation(value: string, min: number, max: number): Violation | undefined {
  if (isShorter(value, min))
    return violation('too_short', `must be at least ${characters(min)} long`);
  return isShorter(value, max + 1) ? undefined : tooLong(characters(max));
}

/** True if `value` has fewer than `points` code points. Counts only if necessary. */
function isShorter(value: string, points: number): boolean {
  if (value.length < points) return true;
  if (value.length >= 2 * points) return false;
  let count = 0;
  for (const _ of value) count += 1;
  return count < points;
}

export function characterViolation(
  value: string,
  min: number,
  multiline = false,
): Violation | undefined {
  const isPlain = (multiline ? plainLines : plainAscii).test(value);
  const found = isPlain ? undefined : forbiddenIn(value, multiline ? forbiddenInLines : forbidden);
  return found ?? (min === 0 || visibleCharacter.test(value) ? undefined : invisible);
}

const invisible: Violation = {
  code: 'invisible',
  detail: 'must have at least one visible character',
};

export function forbiddenIn(value: string, characters: typeof forbidden): Violation | undefined {
  const found = characters.find(({ pattern }) => pattern.test(value));
  return found && violation(found.code, `must not contain ${found.what}`);
}
