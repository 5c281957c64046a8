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
 * Decodes UTF-8 without a byte order mark (RFC 8259 §8.1).
 * @throws CairnError `malformed_json`
 */
export function decodeText(bytes: Buffer): string {
  const text = bytes.toString();
  // Invalid bytes become U+FFFD, so only a text with this character needs the check.
  if (text.includes('\ufffd') && !isUtf8(bytes)) {
    throw new CairnError('malformed_json', 'Cannot read the JSON: it is not valid UTF-8');
  }
  if (text.startsWith('\ufeff')) {
    throw new CairnError(
      'malformed_json',
      'Cannot read the JSON: it begins with a byte order mark',
    );
  }
  return text;
}

/** @throws CairnError as `decodeText` and `parseJson` do */
export function parseJsonBytes(bytes: Buffer): JsonValue {
  return parseJson(decodeText(bytes));
}

/**
 * Parses `text` by RFC 8259, with the choices that it leaves open made strictly: see `scan`.
 * `__proto__` is an ordinary name.
 * @throws CairnError `malformed_json` and `content_too_large` with line and column; they never
 *   quote the text, which may be a secret
 */
export function parseJson(text: string): JsonValue {
  scan(text, limits.jsonValuesMax, limits.jsonMembersMax);
  return JSON.parse(text);
}

/**
 * Validates a text without building its values, and returns their number. In addition to
 * `JSON.parse`, it refuses repeated member names in an object, nesting deeper than
 * `limits.jsonDepthMax`, more than `valuesMax` values, more than `membersMax` members in one
 * object, and integers that a double cannot hold. (Numbers that are too large become ±Infinity,
 * which the rules for numbers refuse.)
 * @throws CairnError `malformed_json`, `content_too_large`
 */
export function scan(text: string, valuesMax: number, membersMax = Infinity): number {
  const scanner = new Scanner(text, valuesMax, membersMax);
  scanner.document();
  return scanner.values;
}

/** Returns `undefined` for anything else. */
export function parseJsonObject(bytes: Buffer): JsonObject | undefined {
  try {
    const value = parseJsonBytes(bytes);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** RFC 6901 §3. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/;
const wholeNumber = new RegExp(`^${number.source}$`);
const numberHere = new RegExp(number, 'y');
const wordHere = /true|false|null/y;
const space = /[ \t\n\r]*/y;
const escapeSequence = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

/** A recursive-descent parser that builds no values. Its errors have line and column. */
class Scanner {
  values = 0;
  readonly #text: string;
  readonly #valuesMax: number;
  readonly #membersMax: number;
  #at = 0;

  constructor(text: string, valuesMax: number, membersMax: number) {
    this.#text = text;
    this.#valuesMax = valuesMax;
    this.#membersMax = membersMax;
  }

  document(): void {
    this.#value(1);
    if (this.#next() !== '') throw this.#error('expected the end');
  }

  #value(depth: number): void {
    const first = this.#next();
    this.values += 1;
    if (this.values > this.#valuesMax) throw this.#tooMany(`over ${this.#valuesMax} values`);
    if (first === '{') this.#object(depth);
    else if (first === '[') this.#list(']', depth, () => this.#value(depth + 1));
    else if (first === '"') this.#string();
    else this.#scalar(first);
  }

  #object(depth: number): void {
    const names = new Set<string>();
    this.#list('}', depth, () => {
      if (this.#next() !== '"') throw this.#error('expected a member name in double quotes');
      const start = this.#at;
      const raw = this.#string();
      const name = raw.includes('\\') ? String(JSON.parse(raw)) : raw.slice(1, -1);
      if (names.has(name)) throw this.#error('duplicate member name', start);
      names.add(name);
      if (names.size > this.#membersMax)
        throw this.#tooMany(`over ${this.#membersMax} members in one object`);
      this.#expect(':', 'expected ":"');
      this.#value(depth + 1);
    });
  }

  #list(close: '}' | ']', depth: number, passElement: () => void): void {
    if (depth > limits.jsonDepthMax)
      throw this.#error(`nested more than ${limits.jsonDepthMax} deep`);
    this.#at += 1;
    for (let isFirst = true; this.#next() !== close; isFirst = false) {
      if (!isFirst) this.#expect(',', `expected "," or "${close}"`);
      passElement();
    }
    this.#at += 1;
  }

  #string(): string {
    const start = this.#at;
    for (let at = start + 1; ;) {
      const code = this.#text.charCodeAt(at);
      if (code === 0x22) {
        this.#at = at + 1;
        return this.#text.slice(start, this.#at);
      }
      const next = code === 0x5c ? this.#after(escapeSequence, at) : at + Number(code >= 0x20);
      if (next === at) {
        const what = 'a string is not closed, or has a control character or an invalid escape';
        throw this.#error(what, start);
      }
      at = next;
    }
  }

  #scalar(first: string): void {
    const start = this.#at;
    const isWord = first >= 'a';
    this.#at = this.#after(isWord ? wordHere : numberHere, start);
    if (this.#at === start) throw this.#error('expected a value');
    if (isWord || isExact(this.#text.slice(start, this.#at))) return;
    throw this.#error('an integer has more digits than a double holds', start);
  }

  #expect(character: string, what: string): void {
    if (this.#next() !== character) throw this.#error(what);
    this.#at += 1;
  }

  /** Skips white space. Empty at the end. */
  #next(): string {
    if (this.#text.charCodeAt(this.#at) <= 0x20) this.#at = this.#after(space, this.#at);
    return this.#text.charAt(this.#at);
  }

  /** Returns the end of the pattern's match at `at`, or `at`. */
  #after(pattern: RegExp, at: number): number {
    pattern.lastIndex = at;
    return pattern.test(this.#text) ? pattern.lastIndex : at;
  }

  #tooMany(what: string): CairnError {
    return new CairnError('content_too_large', this.#error(what).message);
  }

  #error(what: string, at = this.#at): CairnError {
    const lines = this.#text.slice(0, at).split('\n');
    const place = `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
    return new CairnError('malformed_json', `Cannot read the JSON: ${what} at ${place}`);
  }
}

/** NaN for any other text, and for an inexact number. */
export function parseJsonNumber(text: string): number {
  return wholeNumber.test(text) && isExact(text) ? Number(text) : NaN;
}

/**
 * False for an integer that a double cannot hold. A fraction with more digits is simply rounded: C
 * prints 0.10000000000000001.
 */
function isExact(lexeme: string): boolean {
  // A double represents up to 15 significant digits exactly.
  if (lexeme.length <= 15 && !/[eE]/.test(lexeme)) return true;
  const value = Number(lexeme);
  if (!Number.isInteger(value) || !isWhole(lexeme)) return true;
  return significand(lexeme) === significand(String(value));
}

/** True without a fraction, whatever the exponent. */
function isWhole(lexeme: string): boolean {
  const [digits = '', exponent = '0'] = lexeme.toLowerCase().split('e');
  const fraction = (digits.split('.')[1] ?? '').length;
  const zeros = /(?<!0)0*$/.exec(digits.replace('.', ''))?.[0].length ?? 0;
  return fraction - zeros <= Number(exponent);
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
