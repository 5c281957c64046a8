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
  for (let at = text.indexOf(':'); at !== -1; at = text.indexOf(':', at + 1)) {
    colons += 1;
    if (colons === limits.jsonValuesMax) return undefined;
  }
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

const space = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/;
const wholeNumber = new RegExp(`^${number.source}$`);
const lexeme = new RegExp(`[{}[\\]:,]|${number.source}|true|false|null`, 'y');

/** Recursive descent over one text; `#token` is the lexeme at `#start`, empty where there is none. */
class JsonReader {
  readonly #text: string;
  #start = 0;
  #token = '';
  #values = 0;

  constructor(text: string) {
    this.#text = text;
    this.#step();
  }

  document(): JsonValue {
    const value = this.#value(0);
    if (this.#start < this.#text.length) throw this.#error('expected the end');
    return value;
  }

  #value(depth: number): JsonValue {
    const token = this.#token;
    this.#values += 1;
    if (this.#values > limits.jsonValuesMax) throw this.#error(`over ${limits.jsonValuesMax} values`);
    if (token === '{') return this.#object(depth + 1);
    if (token === '[') return this.#array(depth + 1);
    if (this.#text[this.#start] !== '"' && !/^[tfn\d-]/.test(token)) throw this.#error('expected a value');
    const value = /^[\d-]/.test(token) ? exactNumber(token) : this.#parsed();
    this.#step();
    return value;
  }

  #object(depth: number): JsonObject {
    const members = new Map<string, JsonValue>();
    this.#list('}', depth, () => {
      if (!this.#token.startsWith('"')) throw this.#error('expected a member name');
      const name = String(this.#parsed());
      if (members.has(name)) throw this.#error('duplicate member name');
      this.#step();
      this.#expect(':', 'expected ":"');
      members.set(name, this.#value(depth));
    });
    return Object.fromEntries(members);
  }

  #array(depth: number): JsonValue[] {
    const elements: JsonValue[] = [];
    this.#list(']', depth, () => elements.push(this.#value(depth)));
    return elements;
  }

  /** From bracket to bracket. */
  #list(close: '}' | ']', depth: number, take: () => void): void {
    if (depth > limits.jsonDepthMax) throw this.#error(`nested more than ${limits.jsonDepthMax} deep`);
    this.#step();
    for (let isFirst = true; this.#token !== close; isFirst = false) {
      if (!isFirst) this.#expect(',', `expected "," or "${close}"`);
      take();
    }
    this.#step();
  }

  #expect(token: string, what: string): void {
    if (this.#token !== token) throw this.#error(what);
    this.#step();
  }

  #step(): void {
    space.lastIndex = this.#start + this.#token.length;
    space.test(this.#text);
    this.#start = lexeme.lastIndex = space.lastIndex;
    this.#token = (this.#text[this.#start] === '"' ? this.#quoted() : lexeme.exec(this.#text)?.[0]) ?? '';
  }

  /** From quote to quote; a regular expression that counts escapes would run out of stack on a long one. */
  #quoted(): string | undefined {
    for (let end = this.#start + 1; end < this.#text.length; end += 1) {
      const code = this.#text.charCodeAt(end);
      if (code === 0x22) return this.#text.slice(this.#start, end + 1);
      if (code === 0x5c) end += 1;
    }
    return undefined;
  }

  /** What the token stands for. A copy: a part of the text would keep all of it alive, for years if it is stored. */
  #parsed(): JsonValue {
    try {
      const value: JsonValue = JSON.parse(this.#token);
      return value;
    } catch {
      throw this.#error('a string is not closed, or has a control character or an invalid escape');
    }
  }

  #error(what: string): CairnError {
    const lines = this.#text.slice(0, this.#start).split('\n');
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
