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
  return parseFlat(text) ?? new JsonReader(text).document();
}

/**
 * Reads a flat object, or an array of flat objects, by `JSON.parse`, in a fraction of the time that `JsonReader` takes.
 * Returns `undefined` where the two might differ. Each colon belongs to a member that is left after parsing, so none is
 * repeated or nested; no array is inside, and no number is so long that a double might not hold it exactly.
 */
function parseFlat(text: string): JsonValue | undefined {
  if (text.lastIndexOf('[') > 0 || /[:[,]\s*-?(?:[\d.]{16}|[\d.]+[eE])/.test(text)) return undefined;
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

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/;
const wholeNumber = new RegExp(`^${number.source}$`);
const space = /[ \t\n\r]*/y;
const scalar = new RegExp(`${number.source}|true|false|null`, 'y');

/** Recursive descent over one text, which says where a text is not acceptable. */
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
    if (this.#values > limits.jsonValuesMax) throw this.#error(`over ${limits.jsonValuesMax} values`);
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

  /** Reads from bracket to bracket. */
  #list(close: '}' | ']', depth: number, readElement: () => void): void {
    if (depth > limits.jsonDepthMax) throw this.#error(`nested more than ${limits.jsonDepthMax} deep`);
    this.#at += 1;
    for (let isFirst = true; this.#next() !== close; isFirst = false) {
      if (!isFirst) this.#expect(',', `expected "," or "${close}"`);
      readElement();
    }
    this.#at += 1;
  }

  /** Reads from quote to quote. A regular expression that skips escapes would run out of stack on a long string. */
  #string(): string {
    const start = this.#at;
    do {
      this.#at += this.#text[this.#at] === '\\' ? 2 : 1;
    } while (this.#at < this.#text.length && this.#text[this.#at] !== '"');
    this.#at += 1;
    try {
      // A copy: a slice of the text would keep all of it in memory for as long as the value is stored.
      return String(JSON.parse(this.#text.slice(start, this.#at)));
    } catch {
      throw this.#error('a string is not closed, or has a control character or an invalid escape', start);
    }
  }

  #expect(character: string, what: string): void {
    if (this.#next() !== character) throw this.#error(what);
    this.#at += 1;
  }

  /** Skips white space. Returns the character behind it, which is empty at the end. */
  #next(): string {
    this.#match(space);
    return this.#text.charAt(this.#at);
  }

  /** Skips what a sticky pattern matches here, and returns it. */
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

/** The number that `text` is in JSON; NaN for what is none, and as `parseJson` has it. */
export function parseJsonNumber(text: string): number {
  return wholeNumber.test(text) ? exactNumber(text) : NaN;
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
  // Zeros at the end are looked at from their first one only: from each, it would take the square of their number.
  return decimal.replace(/[eE].*/, '').replace(/[-.]/g, '').replace(/^0+|(?<!0)0+$/g, '');
}
