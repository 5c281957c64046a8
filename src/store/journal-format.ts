/**
 * The format of `journal-<n>.jsonl`, version 1.
 *
 *   manifest   {"format":1,"journal":7,"closed":false,"epoch":"9f…","after":120,
 *               "predecessor":{"journal":6,"chain":"89abcdef"},
 *               "collections":{"items":{"through":90,"file":true,"nextId":6}},"crc":"0c8a51f3"}
 *   group      {"sequence":121,"commits":[[["items",{"id":5,"revision":121,…}],["sessions",17]],[…]],"crc":"…"}
 *
 * Every line ends in a line feed and is one line. The first is the manifest; then come groups.
 * - A clean stop ends with a journal whose one line is a manifest that says `closed`: so there is no byte of it that
 *   could be lost or change without notice.
 * - `crc` is the CRC-32 of the line up to the comma before it, started from the `crc` of the line above: a line that
 *   is changed, missing, repeated, or from another journal breaks the chain. The manifest starts from 0.
 * - Spaces may follow the last line: they were written ahead, and lines will take their place. A journal that says
 *   `closed` has none.
 * - A group is one write and one sync. Its commits have the sequence numbers `sequence`, `sequence` + 1, …; the
 *   first is one more than the last of the line above (for the first group, than `after`).
 * - A commit is an array of changes: `["collection", record]` puts a record, `["collection", id]` removes one.
 * - `collections` lists what was there when the journal was begun: up to which sequence its snapshot goes, whether
 *   there is a snapshot at all (a new collection has none), and which id it would have given next.
 * - `predecessor` is the journal that holds what comes before `after`; null where nothing before it is needed.
 *
 * Order of barriers: a journal gets its manifest (and at a start what was replayed) in a temporary file, sync,
 * rename, sync of the directory; only then is a group appended. No group is appended before the last one is synced.
 */
import { crc32 } from 'node:zlib';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { readChunks, type Files } from './files.ts';
import { StoreDamageError } from './store.ts';
import { isCollectionName, isCount } from './table.ts';

export const journalFormat = 1;

export interface Manifest {
  readonly journal: number;
  readonly closed: boolean;
  readonly epoch: string;
  readonly after: number;
  readonly predecessor: { readonly journal: number; readonly chain: number } | undefined;
  readonly collections: ReadonlyMap<string, ListedCollection>;
}

export interface ListedCollection {
  /** What its snapshot holds; where it has none, the sequence after which it was new. */
  readonly through: number;
  readonly file: boolean;
  /** So that no id is given twice where the snapshot is lost; 0 where a former version did not write it. */
  readonly nextId: number;
}

/** A line without its `crc`, as text that lacks the closing brace. */
export type LineBody = string;

/** `,"crc":"xxxxxxxx"}` and the line feed. */
const trailerLength = 19;

export function journalName(number: number): string {
  return `journal-${number}.jsonl`;
}

/** The numbers of the journals among `names`, ascending. */
export function journalNumbers(names: readonly string[]): number[] {
  const numbers = names.map((name) => Number(/^journal-([1-9]\d{0,14})\.jsonl$/.exec(name)?.[1] ?? 0));
  return numbers.filter((number) => number > 0).sort((a, b) => a - b);
}

export function groupBody(sequence: number, commits: readonly string[]): LineBody {
  return `{"sequence":${sequence},"commits":[${commits.join(',')}]`;
}

export function manifestBody(manifest: Manifest): LineBody {
  const { journal, closed, epoch, after, predecessor } = manifest;
  const before = predecessor && { journal: predecessor.journal, chain: hex(predecessor.chain) };
  const collections = Object.fromEntries(manifest.collections);
  const line = { format: journalFormat, journal, closed, epoch, after, predecessor: before ?? null, collections };
  return JSON.stringify(line).slice(0, -1);
}

/** The bytes of one line, its `crc` included, and the chain's new value. */
export function encodeLine(body: LineBody, chain: number): { bytes: Buffer; chain: number } {
  const bytes = Buffer.from(`${body},"crc":"00000000"}\n`);
  const end = bytes.length - trailerLength;
  const next = crc32(bytes.subarray(0, end), chain);
  bytes.write(hex(next), end + 8, 'latin1');
  return { bytes, chain: next };
}

/** The content of a line and the chain's new value; `undefined` where it is cut short or does not fit the chain. */
export function decodeLine(line: Buffer, chain: number) {
  const end = line.length - trailerLength;
  if (end < 1) return undefined;
  const next = crc32(line.subarray(0, end), chain);
  if (line.toString('latin1', end) !== `,"crc":"${hex(next)}"}\n`) return undefined;
  const body: LineBody = line.toString('utf8', 0, end);
  const value = parseObject(`${body}}`);
  return value && { body, value, chain: next };
}

/** @throws StoreDamageError where the first line claims a newer format than `known`, whether or not its `crc` fits */
export function refuseNewer(file: string, line: Buffer, known: number): void {
  const format = Number(/^\{"format":(\d{1,9}),/.exec(line.toString('latin1', 0, 32))?.[1] ?? 0);
  if (format <= known) return;
  throw new StoreDamageError('S4', file, 0, `it has format ${format}; this version knows ${known}`);
}

/** The manifest in a journal's first line; `undefined` where the line is damaged. */
export function decodeFirst(line: Buffer): { manifest: Manifest; chain: number } | undefined {
  const decoded = decodeLine(line, 0);
  const manifest = decoded && parseManifest(decoded.value);
  return decoded && manifest && { manifest, chain: decoded.chain };
}

function parseManifest(value: JsonObject): Manifest | undefined {
  const { format, journal, closed, epoch, after, predecessor, collections } = value;
  if (format !== journalFormat || !isCount(journal) || typeof closed !== 'boolean') return undefined;
  if (typeof epoch !== 'string' || !isCount(after)) return undefined;
  const listed = isJsonObject(collections) ? parseListed(collections) : undefined;
  if (listed === undefined) return undefined;
  const rest = { journal, closed, epoch, after, collections: listed };
  if (predecessor === null) return { ...rest, predecessor: undefined };
  if (!isJsonObject(predecessor)) return undefined;
  const { journal: number, chain } = predecessor;
  if (!isCount(number) || typeof chain !== 'string' || !/^[0-9a-f]{8}$/.test(chain)) return undefined;
  return { ...rest, predecessor: { journal: number, chain: Number.parseInt(chain, 16) } };
}

/** The CRC-32 in the journal's spelling. */
function hex(chain: number): string {
  return chain.toString(16).padStart(8, '0');
}

function parseListed(collections: JsonObject): Map<string, ListedCollection> | undefined {
  const listed = new Map<string, ListedCollection>();
  for (const [name, entry] of Object.entries(collections)) {
    if (!isCollectionName(name)) return undefined;
    const { through, file, nextId = 0 } = isJsonObject(entry) ? entry : {};
    if (!isCount(through) || typeof file !== 'boolean' || !isCount(nextId)) return undefined;
    listed.set(name, { through, file, nextId });
  }
  return listed;
}

/** Parses JSON text that should be an object; `undefined` for everything else, and for what no string can hold. */
export function parseObject(text: string | Buffer): JsonObject | undefined {
  try {
    const value: JsonValue = JSON.parse(String(text));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A line as it stands in a file, its line feed included where it has one. */
export interface Line {
  readonly offset: number;
  readonly bytes: Buffer;
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
  /** A last line that is damaged: of the newest journal, what a write has left that was cut short. */
  torn: Line | undefined;
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
    for await (const { bytes } of lines(files, name)) {
      refuseNewer(name, bytes, journalFormat);
      const first = decodeFirst(bytes);
      if (first?.manifest.journal === number) return new JournalReader(files, first.manifest, first.chain);
      break;
    }
    throw new StoreDamageError('J9', name, 0, 'its first line is damaged');
  }

  async *groups() {
    for await (const line of lines(this.#files, this.name)) {
      const { offset, bytes } = line;
      if (offset > 0) {
        if (this.manifest.closed) throw this.#damage('J4', offset, 'something follows the line that closed it');
        if (isPadding(bytes)) return;
        if (this.torn !== undefined) {
          const problem = 'this line is damaged, missing, repeated or of another journal';
          throw this.#damage('J2', this.torn.offset, problem);
        }
        const decoded = decodeLine(bytes, this.chain);
        if (decoded === undefined) {
          // Torn, should nothing follow.
          this.torn = line;
          continue;
        }
        const { sequence: first, commits } = decoded.value;
        if (!isCount(first) || !Array.isArray(commits) || commits.length === 0) {
          throw this.#damage('J5', offset, 'this line is no group');
        }
        if (first !== this.sequence + 1) {
          throw this.#damage('J3', offset, `the sequence goes on with ${first} after ${this.sequence}`);
        }
        this.chain = decoded.chain;
        this.sequence += commits.length;
        yield { offset, first, last: this.sequence, commits, body: decoded.body };
      }
      this.size = offset + bytes.length;
    }
  }

  #damage(label: string, offset: number, problem: string): StoreDamageError {
    return new StoreDamageError(label, this.name, offset, problem);
  }
}

/** Splits a file after its line feeds. */
export async function* lines(files: Files, name: string): AsyncGenerator<Line, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  let offset = 0;
  for await (const chunk of readChunks(files, name)) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(0x0a) + 1; end > 0; end = rest.indexOf(0x0a) + 1) {
      yield { offset, bytes: rest.subarray(0, end) };
      offset += end;
      rest = rest.subarray(end);
    }
  }
  if (rest.length > 0) yield { offset, bytes: rest };
}

/** Whether these bytes are what was written ahead of the lines to come. */
export function isPadding(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20);
}

/** The `crc` that a line says it has: from there the chain goes on after a damaged line. */
export function statedChain(line: Buffer): number | undefined {
  const claimed = /,"crc":"([0-9a-f]{8})"\}\n$/.exec(line.toString('latin1', Math.max(0, line.length - 19)))?.[1];
  return claimed === undefined ? undefined : Number.parseInt(claimed, 16);
}
