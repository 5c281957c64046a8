import { isUtf8 } from 'node:buffer';
import { CairnError } from './errors.ts';
import { limits } from './limits.ts';

/** Any JSON value (RFC 8259). */
export type JsonValue = Scalar | null | readonly JsonValue[] | JsonObject;
export type Scalar = string | number | boolean;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

export const isJsonObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isScalar = (value: unknown): value is Scalar =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

/**
 * Parses bytes that must be UTF-8 without a byte order mark (RFC 8259 §8.1).
 * @throws CairnError `malformed_json`
 */
export function parseJsonBytes(bytes: Buffer): JsonValue {
  const text = bytes.toString();
  // Bytes that are not UTF-8 become U+FFFD, so only a text with this character needs the check.
  if (text.includes('\ufffd') && !isUtf8(bytes)) {
    throw new CairnError('malformed_json', 'Cannot read the JSON: it is not valid UTF-8');
  }
  if (text.startsWith('\ufeff')) {
    throw new CairnError(
      'malformed_json',
      'Cannot read the JSON: it begins with a byte order mark',
    );
  }
  return parseJson(text);
}

/**
 * Parses `text` by RFC 8259, and strictly where that RFC leaves a choice. Refuses a
 * member name that is repeated in an object, and nesting deeper than
 * `limits.jsonDepthMax`. `__proto__` is an ordinary name. A number that a double cannot
 * represent exactly becomes NaN, and one that is too large ±Infinity, so that the rules
 * for numbers refuse it and no number is changed silently.
 * @throws CairnError `malformed_json` with line and column; it never quotes the text,
 *   which may be a secret
 */
export function parseJson(text: string): JsonValue {
  return parseFlat(text) ?? new JsonReader(text).document();
}

/**
 * Parses a flat object, or an array of flat objects, by `JSON.parse`, which is much
 * faster than `JsonReader`. Returns `undefined` if the two might differ. The number of
 * colons equals the number of members, so no name is repeated and no object is nested.
 * There is no inner array, and no number is so long that a double might not represent it
 * exactly.
 */
function parseFlat(text: string): JsonValue | undefined {
  if (text.lastIndexOf('[') > 0 || /[:[,]\s*-?(?:[\d.]{16}|[\d.]+[eE])/.test(text))
    return undefined;
  let colons = 0;
  for (let at = text.indexOf(':'); at !== -1; at = text.indexOf(':', at + 1)) {
    colons += 1;
    if (colons === limits.jsonValuesMax) return undefined;
  }
  try {
    const value: JsonValue = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    const objects: readonly JsonValue[] = Array.isArray(value) ? value : [value];
    let names = 0;
    for (const object of objects) names += isJsonObject(object) ? Object.keys(object).length : 0;
    return names === colons && names + objects.length < limits.jsonValuesMax ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Parses an object; returns `undefined` if the bytes are no JSON object. */
export function parseJsonObject(bytes: Buffer): JsonObject | undefined {
  try {
    const value = parseJsonBytes(bytes);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the part of a JSON Pointer (RFC 6901 §3) that names a member. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Applies a merge patch (RFC 7396 §2). Changes neither argument. */
export function mergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const merged = new Map(Object.entries(isJsonObject(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/;
const wholeNumber = new RegExp(`^${number.source}$`);
const space = /[ \t\n\r]*/y;
const scalar = new RegExp(`${number.source}|true|false|null`, 'y');

/** A recursive-descent parser of one text, whose errors name the place. */
class JsonReader {
  readonly #text: string;
  #at = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    const value = this.#value(1);
    if (this.#next() !== '') throw this.#error('expected the end');
    return value;
  }

  #value(depth: number): JsonValue {
    const first = this.#next();
    this.#values += 1;
    if (this.#values > limits.jsonValuesMax)
      throw this.#error(`over ${limits.jsonValuesMax} values`);
    if (first === '{') return this.#object(depth);
    if (first === '[') return this.#array(depth);
    if (first === '"') return this.#string();
    const lexeme = this.#match(scalar);
    if (lexeme === '') throw this.#error('expected a value');
    return /[a-z]$/.test(lexeme) ? JSON.parse(lexeme) : exactNumber(lexeme);
  }

  #object(depth: number): JsonObject {
    const members = new Map<string, JsonValue>();
    this.#list('}', depth, () => {
      if (this.#next() !== '"') throw this.#error('expected a member name');
      const start = this.#at;
      const name = this.#string();
      if (members.has(name)) throw this.#error('duplicate member name', start);
      this.#expect(':', 'expected ":"');
      members.set(name, this.#value(depth + 1));
    });
    return Object.fromEntries(members);
  }

  #array(depth: number): JsonValue[] {
    const elements: JsonValue[] = [];
    this.#list(']', depth, () => elements.push(this.#value(depth + 1)));
    return elements;
  }

  /** Parses the elements between two brackets. */
  #list(close: '}' | ']', depth: number, readElement: () => void): void {
    if (depth > limits.jsonDepthMax)
      throw this.#error(`nested more than ${limits.jsonDepthMax} deep`);
    this.#at += 1;
    for (let isFirst = true; this.#next() !== close; isFirst = false) {
      if (!isFirst) this.#expect(',', `expected "," or "${close}"`);
      readElement();
    }
    this.#at += 1;
  }

  /**
   * Parses a string. A regular expression that skips escapes would overflow the stack on
   * a long one.
   */
  #string(): string {
    const start = this.#at;
    do {
      this.#at += this.#text[this.#at] === '\\' ? 2 : 1;
    } while (this.#at < this.#text.length && this.#text[this.#at] !== '"');
    this.#at += 1;
    try {
      // JSON.parse makes a copy. A slice would keep the whole text in memory with the value.
      return String(JSON.parse(this.#text.slice(start, this.#at)));
    } catch {
      throw this.#error(
        'a string is not closed, or has a control character or an invalid escape',
        start,
      );
    }
  }

  #expect(character: string, what: string): void {
    if (this.#next() !== character) throw this.#error(what);
    this.#at += 1;
  }

  /** Skips white space. Returns the next character, or an empty text at the end. */
  #next(): string {
    this.#match(space);
    return this.#text.charAt(this.#at);
  }

  /** Returns the text that a sticky pattern matches here, and moves behind it. */
  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [matched = ''] = pattern.exec(this.#text) ?? [];
    this.#at += matched.length;
    return matched;
  }

  #error(what: string, at = this.#at): CairnError {
    const lines = this.#text.slice(0, at).split('\n');
    const place = `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
    return new CairnError('malformed_json', `Cannot read the JSON: ${what} at ${place}`);
  }
}

/** Parses one number like `parseJson`; returns NaN for a text that is no JSON number. */
export function parseJsonNumber(text: string): number {
  return wholeNumber.test(text) ? exactNumber(text) : NaN;
}

/**
 * Returns the value of a number; NaN if a double cannot represent it exactly, ±Infinity
 * if it is too large.
 */
function exactNumber(lexeme: string): number {
  const value = Number(lexeme);
  // A double represents up to 15 significant digits exactly.
  if (lexeme.length <= 15 && !/[eE]/.test(lexeme)) return value;
  if (!Number.isFinite(value)) return value;
  return significand(lexeme) === significand(String(value)) ? value : NaN;
}

/**
 * Returns the significant digits of a decimal, without leading and trailing zeros. The
 * double is so near to the text that equal digits mean equal numbers: another power of
 * ten is another double.
 */
function significand(decimal: string): string {
  // The look-behind matches trailing zeros only from their first one. Else the time would be quadratic.
  return decimal
    .replace(/[eE].*/, '')
    .replace(/[-.]/g, '')
    .replace(/^0+|(?<!0)0+$/g, '');
}
