/**
 * Reads files such as json-server has, of any length: one JSON object whose members are arrays
 * of records, `{ "posts": [{ "id": 1, "title": "…" }], "comments": [] }`. The file is read in
 * chunks. Only the place of each record is looked for here; its content is parsed for itself.
 */
import { createReadStream, statSync } from 'node:fs';
import { CairnError, FatalError } from '../base/errors.ts';
import {
  isJsonObject,
  parseJsonBytes,
  pointerTo,
  type JsonObject,
  type JsonValue,
} from '../base/json.ts';
import { limits } from '../base/limits.ts';

/** A record and its place, or the reason why there is none at that place. */
export interface FileRecord {
  readonly collection: string;
  /** A JSON Pointer such as `/posts/3`. */
  readonly pointer: string;
  readonly record: JsonObject | undefined;
  /** A phrase such as "must be an object"; `undefined` for a record and for an empty array. */
  readonly problem?: string;
}

/** Receives the part of the file that has been read, from 0 to 1. */
export type Progress = (part: number) => void;

/**
 * Reads a file, and yields its records in order, chunk by chunk.
 * @throws FatalError where the file is not there, or no such object
 */
export async function* readRecords(
  file: string,
  onProgress: Progress,
): AsyncGenerator<FileRecord[]> {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new FatalError(64, `Cannot read ${file}: there is no such file`);
  const { size } = found;
  const scanner = new Scanner(file);
  let read = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: limits.bodyBytesMax })) {
    if (!Buffer.isBuffer(chunk)) continue;
    yield scanner.scan(chunk);
    read += chunk.length;
    onProgress(size === 0 ? 1 : read / size);
  }
  scanner.end();
}

/** What the next byte may begin, apart from white space. */
type Expected = 'the object' | 'a name' | 'a colon' | 'a value' | 'an element' | 'the end';

const [quote, comma, colon, backslash] = [0x22, 0x2c, 0x3a, 0x5c];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];
const isSpace = (byte: number): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

class Scanner {
  readonly #file: string;
  #expected: Expected = 'the object';
  /** Whether a comma has to come before the next name or element. */
  #isAfterValue = false;
  #collection = '';
  #index = 0;
  /** The bytes before this chunk. */
  #passed = 0;
  #found: FileRecord[] = [];
  /** The part of a name, an element or a value that former chunks have had. */
  #parts: Buffer[] = [];
  #partsLength = 0;
  #isInside = false;
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  constructor(file: string) {
    this.#file = file;
  }

  /** Returns the records that end in this chunk. */
  scan(chunk: Buffer): FileRecord[] {
    this.#found = [];
    for (let at = 0; at < chunk.length;) {
      at = this.#isInside ? this.#inside(chunk, at) : this.#between(chunk, at);
    }
    this.#passed += chunk.length;
    return this.#found;
  }

  end(): void {
    if (this.#isInside || this.#expected !== 'the end') this.#refuse(0, 'the file ends too early');
  }

  /** Passes one byte between values, or begins one. Returns the next place. */
  #between(chunk: Buffer, at: number): number {
    const byte = chunk[at] ?? 0;
    if (isSpace(byte)) return at + 1;
    const [expected, isAfter] = [this.#expected, this.#isAfterValue];
    const isList = expected === 'a name' || expected === 'an element';
    const close = expected === 'a name' ? closeBrace : closeBracket;
    if (isList && byte === close && (isAfter || this.#index === 0)) {
      if (expected === 'an element' && !isAfter) this.#add(pointerTo(this.#collection), undefined);
      this.#expected = expected === 'a name' ? 'the end' : 'a name';
      this.#isAfterValue = true;
    } else if (isList && isAfter && byte === comma) {
      this.#isAfterValue = false;
      this.#index += 1;
    } else if (expected === 'the object' && byte === openBrace) {
      this.#expected = 'a name';
    } else if (expected === 'a colon' && byte === colon) {
      this.#expected = 'a value';
    } else if (expected === 'a value' && byte === openBracket) {
      [this.#expected, this.#index, this.#isAfterValue] = ['an element', 0, false];
    } else if (isAfter || !(isList || expected === 'a value')) {
      this.#refuse(at, `expected ${isList ? 'a comma or the end of the list' : expected}`);
    } else if (expected === 'a name' && byte !== quote) {
      this.#refuse(at, 'expected a name in quotes');
    } else {
      [this.#isInside, this.#parts, this.#partsLength, this.#depth] = [true, [], 0, 0];
      return at;
    }
    return at + 1;
  }

  /** Passes bytes up to the end of a value, or of the chunk. Returns the next place. */
  #inside(chunk: Buffer, from: number): number {
    let [depth, isText, isEscaped] = [this.#depth, this.#isText, this.#isEscaped];
    let at = from;
    let isDone = false;
    for (; at < chunk.length && !isDone; at += 1) {
      const byte = chunk[at] ?? 0;
      if (isText) {
        if (isEscaped) isEscaped = false;
        else if (byte === backslash) isEscaped = true;
        else if (byte === quote) [isText, isDone] = [false, depth === 0];
      } else if (byte === quote) isText = true;
      else if (byte === openBrace || byte === openBracket) depth += 1;
      else if (byte === closeBrace || byte === closeBracket) {
        // A number or a word ends where its array or object ends.
        if (depth === 0) break;
        depth -= 1;
        isDone = depth === 0;
      } else if (depth === 0 && (byte === comma || isSpace(byte))) break;
    }
    [this.#depth, this.#isText, this.#isEscaped] = [depth, isText, isEscaped];
    this.#partsLength += at - from;
    if (this.#partsLength > limits.bodyBytesMax && this.#expected !== 'a value') {
      this.#refuse(at, `a record is longer than ${limits.bodyBytesMax} bytes`);
    }
    if (this.#expected !== 'a value') this.#parts.push(chunk.subarray(from, at));
    if (isDone || at < chunk.length) this.#finish(at);
    return at;
  }

  #finish(at: number): void {
    this.#isInside = false;
    const bytes = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
    this.#parts = [];
    if (this.#expected === 'a name') {
      const name: unknown = this.#parse(bytes, at);
      this.#collection = String(name);
      this.#expected = 'a colon';
      return;
    }
    const pointer = pointerTo(this.#collection);
    if (this.#expected === 'a value') {
      // Newer versions of json-server write it, for editors.
      if (this.#collection !== '$schema')
        this.#add(pointer, undefined, 'it must be an array of records');
      this.#expected = 'a name';
    } else {
      const value = this.#parse(bytes, at);
      const record = isJsonObject(value) ? value : undefined;
      this.#add(
        `${pointer}/${this.#index}`,
        record,
        record ? undefined : 'a record must be an object',
      );
    }
    // A name and its value count as one.
    this.#index = Math.max(this.#index, this.#expected === 'a name' ? 1 : 0);
    this.#isAfterValue = true;
  }

  #add(pointer: string, record: JsonObject | undefined, problem?: string): void {
    const found = { collection: this.#collection, pointer, record };
    this.#found.push(problem === undefined ? found : { ...found, problem });
  }

  #parse(bytes: Buffer | undefined, at: number) {
    try {
      return parseJsonBytes(bytes ?? Buffer.alloc(0));
    } catch (error) {
      if (!(error instanceof CairnError)) throw error;
      return this.#refuse(at, error.message.replace('Cannot read the JSON: ', ''));
    }
  }

  #refuse(at: number, problem: string): never {
    const place = this.#passed + at;
    throw new FatalError(65, `Cannot read ${this.#file}: ${problem}, at byte ${place}`);
  }
}

/**
 * Returns an id, or a value of a field such as `postId` or `tagIds`, as a number where it is a
 * text of digits: newer versions of json-server write ids so. Returns other values as they are.
 */
export function numberOf(name: string, value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((element: JsonValue) => numberOf(name, element));
  const isId = /^id$|Ids?$/.test(name) && typeof value === 'string';
  return isId && /^[1-9]\d{0,14}$/.test(value) ? Number(value) : value;
}

/** Mistakes of a file, grouped by cause, with how often each occurs and its first places. */
export class Mistakes {
  readonly #places = new Map<string, { count: number; readonly first: string[] }>();

  /** `problem` is a phrase such as "posts: title must be given". */
  add(problem: string, pointer: string): void {
    const known = this.#places.get(problem);
    if (known === undefined) this.#places.set(problem, { count: 1, first: [pointer] });
    else {
      known.count += 1;
      if (known.first.length < 3) known.first.push(pointer);
    }
  }

  /** One line for each cause. */
  get lines(): string[] {
    return Array.from(this.#places, ([problem, { count, first }]) => {
      const times = count === 1 ? '' : `${count.toLocaleString('en')} times, first `;
      return `${problem} (${times}${first.join(', ')})`;
    });
  }
}
