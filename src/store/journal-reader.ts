import type { JsonValue } from '../base/json.ts';
import { StoreDamageError } from './failures.ts';
import { type Files, readChunks } from './files.ts';
import {
  claimedFormat,
  decodeLine,
  journalFormat,
  journalName,
  type LineBody,
  type Manifest,
  parseManifest,
} from './journal-format.ts';
import { isCount } from './table.ts';

/** What a write that was cut short has left at the end of the newest journal. */
export interface TornTail {
  readonly journal: number;
  readonly offset: number;
  readonly bytes: Buffer;
}

export interface GroupLine {
  readonly offset: number;
  readonly first: number;
  readonly last: number;
  readonly commits: readonly JsonValue[];
  readonly body: LineBody;
}

export interface Line {
  readonly offset: number;
  /** Without its line feed. */
  readonly bytes: Buffer;
  /** Whether a line feed ends it. */
  readonly whole: boolean;
  /** Whether the file ends with it. */
  readonly last: boolean;
}

/**
 * Reads one journal and judges its lines, by the cases J1 to J9 of `recovery.ts`. What it found is complete when
 * `groups` has come to its end.
 */
export class JournalReader {
  readonly name: string;
  readonly manifest: Manifest;
  /** Of the last commit so far. */
  sequence: number;
  /** The CRC-32 of the last good line so far. */
  chain: number;
  /** Where the good lines end. */
  size = 0;
  torn: TornTail | undefined;
  readonly #files: Files;

  private constructor(files: Files, manifest: Manifest, chain: number) {
    this.#files = files;
    this.name = journalName(manifest.journal);
    this.manifest = manifest;
    this.sequence = manifest.after;
    this.chain = chain;
  }

  /** Reads the manifest. */
  static async open(files: Files, number: number): Promise<JournalReader> {
    const name = journalName(number);
    for await (const line of lines(files, name)) {
      const format = claimedFormat(line.bytes);
      if (format !== undefined && format > journalFormat) {
        const problem = `it has format ${format}; this version knows ${journalFormat}`;
        throw new StoreDamageError('S4', 'newer_format', name, 0, problem);
      }
      const decoded = line.whole ? decodeFirst(line.bytes) : undefined;
      if (decoded?.manifest.journal !== number) break;
      return new JournalReader(files, decoded.manifest, decoded.chain);
    }
    throw new StoreDamageError('J9', 'damaged', name, 0, 'its first line is damaged');
  }

  async *groups(): AsyncGenerator<GroupLine, void, undefined> {
    for await (const line of lines(this.#files, this.name)) {
      const begins = this.size === 0;
      if (begins) {
        this.size = line.bytes.length + 1;
        continue;
      }
      if (this.manifest.closed) throw this.#damage('J4', line, 'something follows the line that closed it');
      const group = this.#readLine(line);
      if (group === undefined) return;
      this.size = line.offset + line.bytes.length + 1;
      this.sequence = group.last;
      yield group;
    }
  }

  /** A group; `undefined` where the line is torn. */
  #readLine(line: Line): GroupLine | undefined {
    const decoded = line.whole ? decodeLine(line.bytes, this.chain) : undefined;
    if (decoded === undefined) {
      if (!line.last) throw this.#damage('J2', line, 'this line is damaged, missing, repeated or of another journal');
      const bytes = line.whole ? Buffer.concat([line.bytes, Buffer.from('\n')]) : line.bytes;
      this.torn = { journal: this.manifest.journal, offset: line.offset, bytes };
      return undefined;
    }
    this.chain = decoded.chain;
    const { sequence: first, commits } = decoded.value;
    if (!isCount(first) || !Array.isArray(commits) || commits.length === 0) {
      throw this.#damage('J5', line, 'this line is no group');
    }
    if (first !== this.sequence + 1) {
      throw this.#damage('J3', line, `the sequence goes on with ${first} after ${this.sequence}`);
    }
    return { offset: line.offset, first, last: first + commits.length - 1, commits, body: decoded.body };
  }

  #damage(label: string, line: Line, problem: string): StoreDamageError {
    return new StoreDamageError(label, 'damaged', this.name, line.offset, problem);
  }
}

/** Splits a file at its line feeds. */
export async function* lines(files: Files, name: string): AsyncGenerator<Line, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  let offset = 0;
  let previous: Line | undefined;
  for await (const chunk of readChunks(files, name)) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      if (previous !== undefined) yield previous;
      previous = { offset, bytes: rest.subarray(0, end), whole: true, last: false };
      offset += end + 1;
      rest = rest.subarray(end + 1);
    }
  }
  if (previous !== undefined) yield { ...previous, last: rest.length === 0 };
  if (rest.length > 0) yield { offset, bytes: rest, whole: false, last: true };
}

/** The manifest in a journal's first line; `undefined` where the line is damaged. */
export function decodeFirst(line: Buffer): { manifest: Manifest; chain: number } | undefined {
  // Its chain starts from its predecessor's, which it names itself: the digits are checked by the rest of the line.
  const claimed = /"predecessor":\{"journal":\d+,"chain":"([0-9a-f]{8})"\}/.exec(line.toString('latin1'))?.[1];
  const decoded = decodeLine(line, Number.parseInt(claimed ?? '0', 16));
  const manifest = decoded && parseManifest(decoded.value);
  return decoded && manifest && { manifest, chain: decoded.chain };
}
