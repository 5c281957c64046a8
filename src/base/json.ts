import { isUtf8 } from 'node:buffer';
import { CairnError } from './errors.ts';
import { limits } from './limits.ts';

/** Any value that JSON can carry (RFC 8259). Objects have no prototype surprises: keys are data. */
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
  // What is not UTF-8 becomes U+FFFD, so that only a text with this character has to be looked at.
  if (text.includes('\ufffd') && !isUtf8(bytes)) {
    throw new CairnError('malformed_json', 'Cannot read the JSON: it is not valid UTF-8');
  }
  if (text.startsWith('\ufeff')) {
    throw new CairnError('malformed_json', 'Cannot read the JSON: it begins with a byte order mark');
  }
  return parseJson(text);
}

/**
 * Parses `text` as RFC 8259 has it, and more strictly where that RFC leaves a choice: a member name that occurs twice
 * in an object is refused, and so is nesting deeper than `limits.jsonDepthMax`. `__proto__` is a name like any other.
 * A number that a double cannot give back as it was sent becomes NaN, one that is too large ±Infinity, so that a rule
 * about numbers refuses it and none is changed silently.
 * @throws CairnError `malformed_json`, with the line and the column; it never quotes the text, which may be a secret
 */
export function parseJson(text: string): JsonValue {
  return parsePlainObject(text) ?? new JsonReader(text).document();
}

/**
 * The object in a text that JSON.parse reads as `JsonReader` would, in a third of the time: one with a colon for each
 * member, so that none is repeated or nested, and without arrays and numbers that a double may not hold exactly.
 */
function parsePlainObject(text: string): JsonObject | undefined {
  if (text.includes('[') || /:\s*-?(?:[\d.]{16}|[\d.]+[eE])/.test(text)) return undefined;
  let colons = 0;
  for (let at = text.indexOf(':'); at !== -1; at = text.indexOf(':', at + 1)) colons += 1;
  try {
    const value: JsonValue = JSON.parse(text);
    return isJsonObject(value) && Object.keys(value).length === colons ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The object in `bytes`; `undefined` for anything else that they may hold. */
export function parseJsonObject(bytes: Buffer): JsonObject | undefined {
  try {
    const value = parseJsonBytes(bytes);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The part of a JSON Pointer (RFC 6901 §3) that leads to the member `name`. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Applies a merge patch (RFC 7396 §2). Neither argument is changed. */
export function mergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const merged = new Map(Object.entries(isJsonObject(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const closingBracket = 0x5d;
const closingBrace = 0x7d;

const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/** V8 makes a substring of this length or more a window on its parent, and so keeps the whole text alive. */
const sharedSubstringLength = 13;

/** Recursive descent over one text. `#at` is the index of the next character. */
class JsonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    const value = this.#value(0);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#error('expected the end');
    return value;
  }

  #value(depth: number): JsonValue {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(depth + 1);
      case '[':
        return this.#array(depth + 1);
      case '"':
        return this.#string();
      case 't':
        return this.#literal('true', true);
      case 'f':
        return this.#literal('false', false);
      case 'n':
        return this.#literal('null', null);
      default:
        return this.#number();
    }
  }

  #object(depth: number): JsonObject {
    this.#open(depth);
    const object: { [name: string]: JsonValue } = {};
    if (this.#skipped(closingBrace)) return object;
    do {
      this.#skipSpace();
      const start = this.#at;
      if (this.#text.charCodeAt(start) !== quote) throw this.#error('expected a member name');
      const name = this.#string();
      if (Object.hasOwn(object, name)) throw this.#error('duplicate member name', start);
      if (!this.#skipped(colon)) throw this.#error('expected ":"');
      const value = this.#value(depth);
      if (name === '__proto__') {
        // An assignment would set the prototype.
        Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
      } else {
        object[name] = value;
      }
    } while (this.#skipped(comma));
    if (!this.#skipped(closingBrace)) throw this.#error('expected "," or "}"');
    return object;
  }

  #array(depth: number): JsonValue[] {
    this.#open(depth);
    const array: JsonValue[] = [];
    if (this.#skipped(closingBracket)) return array;
    do array.push(this.#value(depth));
    while (this.#skipped(comma));
    if (!this.#skipped(closingBracket)) throw this.#error('expected "," or "]"');
    return array;
  }

  #string(): string {
    const start = this.#at;
    let escaped = false;
    for (let end = start + 1; end < this.#text.length; end += 1) {
      const code = this.#text.charCodeAt(end);
      if (code === quote) {
        this.#at = end + 1;
        if (escaped || end - start > sharedSubstringLength) return this.#copyString(start, end + 1);
        return this.#text.slice(start + 1, end);
      }
      if (code < 0x20) throw this.#error('control character in a string', end);
      if (code === backslash) {
        escaped = true;
        end += 1;
      }
    }
    throw this.#error('unexpected end of a string', this.#text.length);
  }

  /** Decodes escapes, and makes a string that does not keep the text alive: it may be stored for years. */
  #copyString(start: number, end: number): string {
    try {
      return String(JSON.parse(this.#text.slice(start, end)));
    } catch {
      throw this.#error('invalid escape in a string', start);
    }
  }

  #number(): number {
    numberPattern.lastIndex = this.#at;
    if (!numberPattern.test(this.#text)) throw this.#error('expected a value');
    const lexeme = this.#text.slice(this.#at, numberPattern.lastIndex);
    this.#at = numberPattern.lastIndex;
    return exactNumber(lexeme);
  }

  #literal<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#error('expected a value');
    this.#at += word.length;
    return value;
  }

  #open(depth: number): void {
    if (depth > limits.jsonDepthMax) throw this.#error(`nested more than ${limits.jsonDepthMax} deep`);
    this.#at += 1;
  }

  /** Steps over `code` if it comes next, after white space. */
  #skipped(code: number): boolean {
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#at) !== code) return false;
    this.#at += 1;
    return true;
  }

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at += 1;
    }
  }

  #error(what: string, at = this.#at): CairnError {
    let line = 1;
    let lineStart = 0;
    for (let index = 0; index < at; index += 1) {
      if (this.#text.charCodeAt(index) !== 0x0a) continue;
      line += 1;
      lineStart = index + 1;
    }
    const column = at - lineStart + 1;
    return new CairnError('malformed_json', `Cannot read the JSON: ${what} at line ${line}, column ${column}`);
  }
}

/** The number that `lexeme` denotes; NaN where its shortest form denotes another decimal, ±Infinity beyond a double. */
function exactNumber(lexeme: string): number {
  const value = Number(lexeme);
  // Up to 15 significant digits always survive.
  if (lexeme.length <= 15 && !/[eE]/.test(lexeme)) return value;
  if (!Number.isFinite(value)) return value;
  return significand(lexeme) === significand(String(value)) ? value : NaN;
}

/**
 * The significant digits of a decimal, without leading and trailing zeros. A double is so near to its lexeme that
 * equal digits mean equal numbers: another power of ten would be another double.
 */
function significand(decimal: string): string {
  const digits = decimal.replace(/[eE].*/, '').replace(/[-.]/g, '');
  let start = 0;
  let end = digits.length;
  while (digits[start] === '0') start += 1;
  while (end > start && digits[end - 1] === '0') end -= 1;
  return digits.slice(start, end);
}
