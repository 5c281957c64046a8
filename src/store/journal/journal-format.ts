/**
 * The format of `journal-<n>.jsonl`, version 1.
 *
 *   manifest   {"format":1,"journal":7,"closed":false,"epoch":"9f…","after":120,"predecessor":null,
 *               "collections":{"items":{"through":90,"file":true,"nextId":6}},"crc":"0c8a51f3"}
 *   group      {"sequence":121,"commits":[[["items",{"id":5,"revision":121,…}],["sessions",17]],[…]],"crc":"…"}
 *
 * Every line ends in a line feed and is one line. The first is the manifest; then come groups.
 * - A clean stop ends with a journal whose one line is a manifest that says `closed`, so no byte of it can be lost or
 *   change without notice.
 * - `crc` is the CRC-32 of the line up to the comma before it, started from the `crc` of the line above: a line that
 *   is changed, missing, repeated, or from another journal breaks the chain. The manifest starts from 0.
 * - Spaces may follow the last line: they were written ahead, and lines will take their place. A journal that says
 *   `closed` has none.
 * - A group is one write and one sync. Its commits have the sequence numbers `sequence`, `sequence` + 1, …; the
 *   first is one more than the last of the line above (for the first group, than `after`).
 * - A commit is an array of changes: `["collection", record]` puts a record, `["collection", id]` removes one.
 * - `collections` lists what was there when the journal was begun: up to which sequence its snapshot goes, whether
 *   there is a snapshot at all (a store without commits has none), and which id it would have given next.
 * - `predecessor` stands there for the first edition; a journal continues the one that ends with `after`.
 *
 * Order of barriers: a journal gets its manifest in a temporary file, sync, rename, sync of the directory; only then is
 * a group appended. No group is appended before the last one is synced.
 */
import { crc32 } from 'node:zlib';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { readChunks, type Files } from '../disk/files.ts';
import { isCollectionName, isCount } from '../memory/table.ts';
import { StoreDamageError } from '../store.ts';

const journalFormat = 1;

export interface Manifest {
  /** The journal's number. */
  readonly journal: number;
  /** Whether it ends a clean stop. */
  readonly closed: boolean;
  readonly epoch: string;
  /** Sequence number of the commit before its first one. */
  readonly after: number;
  readonly collections: ReadonlyMap<string, ListedCollection>;
}

export interface ListedCollection {
  /** The last commit that its snapshot holds. */
  readonly through: number;
  /** Whether there is a snapshot. */
  readonly file: boolean;
  /** So that no id is given twice where the snapshot is lost. */
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
  const numbers = names.map((name) => Number(/^journal-([1-9]\d{0,14})\.jsonl$/.exec(name)?.[1]));
  return numbers.filter((number) => number > 0).sort((a, b) => a - b);
}

export function groupBody(sequence: number, commits: readonly string[]): LineBody {
  return `{"sequence":${sequence},"commits":[${commits.join(',')}]`;
}

export function manifestBody({ collections, ...rest }: Manifest): LineBody {
  const line = { format: journalFormat, ...rest, predecessor: null, collections: Object.fromEntries(collections) };
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
export function decodeLine(line: Buffer, chain: number): { value: JsonObject; chain: number } | undefined {
  const end = line.length - trailerLength;
  if (end < 1) return undefined;
  const next = crc32(line.subarray(0, end), chain);
  if (line.toString('latin1', end) !== `,"crc":"${hex(next)}"}\n`) return undefined;
  const value = parseObject(`${line.toString('utf8', 0, end)}}`);
  return value && { value, chain: next };
}

/** @throws StoreDamageError where the first line claims a newer format than `known`, whether or not its `crc` fits */
export function refuseNewer(file: string, line: Buffer, known: number): void {
  const format = /^\{"format":(\d{1,9}),/.exec(line.toString('latin1', 0, 32))?.[1];
  if (Number(format) > known) throw new StoreDamageError('S4', file, 0, `it is ${format}, this version knows ${known}`);
}

function parseManifest(value: JsonObject | undefined): Manifest | undefined {
  const { format, journal, closed, epoch, after, collections } = value ?? {};
  if (format !== journalFormat || !isCount(journal) || typeof closed !== 'boolean') return undefined;
  if (typeof epoch !== 'string' || !isCount(after) || !isJsonObject(collections)) return undefined;
  const listed = new Map<string, ListedCollection>();
  for (const [name, entry] of Object.entries(collections)) {
    const { through, file, nextId = 0 } = isJsonObject(entry) ? entry : {};
    if (!isCollectionName(name) || !isCount(through) || typeof file !== 'boolean' || !isCount(nextId)) return undefined;
    listed.set(name, { through, file, nextId });
  }
  return { journal, closed, epoch, after, collections: listed };
}

/** The CRC-32 in the journal's spelling. */
function hex(chain: number): string {
  return chain.toString(16).padStart(8, '0');
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

/** Takes damage that was found. Where it returns, the reading goes on with what can still be read. */
export type Report = (damage: StoreDamageError) => void;

/** A journal that is being read; what is said of its end is complete when its groups have been read. */
export interface Journal {
  readonly name: string;
  /** `undefined` where the first line is damaged. */
  readonly manifest: Manifest | undefined;
  /** Sequence number of the last commit so far. */
  sequence: number;
  /** The CRC-32 of the last line so far. */
  chain: number;
  /** A last line that is damaged: in the newest journal, what a write has left that was cut short. */
  torn: Line | undefined;
}

/** Reads a journal's first line. @throws StoreDamageError for a newer format alone */
export async function openJournal(files: Files, number: number): Promise<Journal> {
  const name = journalName(number);
  for await (const { bytes } of lines(files, name)) {
    refuseNewer(name, bytes, journalFormat);
    const first = decodeLine(bytes, 0);
    const read = parseManifest(first?.value);
    const manifest = read?.journal === number ? read : undefined;
    return { name, manifest, sequence: manifest?.after ?? 0, chain: statedChain(bytes), torn: undefined };
  }
  return { name, manifest: undefined, sequence: 0, chain: 0, torn: undefined };
}

/** A group as it stands in a journal. */
export interface JournalGroup {
  readonly offset: number;
  /** Sequence number of its first commit. */
  readonly first: number;
  readonly commits: readonly JsonValue[];
}

/** Reads the lines behind the first one, and judges them. */
export async function* readGroups(
  files: Files,
  journal: Journal,
  report: Report,
): AsyncGenerator<JournalGroup, void, undefined> {
  const { name, manifest } = journal;
  for await (const line of lines(files, name)) {
    const { offset, bytes } = line;
    if (offset === 0) continue;
    if (manifest?.closed === true) report(new StoreDamageError('J4', name, offset));
    if (bytes.every((byte) => byte === 0x20)) return;
    if (journal.torn !== undefined) {
      report(new StoreDamageError('J2', name, journal.torn.offset));
      journal.chain = statedChain(journal.torn.bytes);
      journal.torn = undefined;
    }
    const decoded = decodeLine(bytes, journal.chain);
    if (decoded === undefined) {
      // Torn, should nothing follow.
      journal.torn = line;
      continue;
    }
    journal.chain = decoded.chain;
    const { sequence: first, commits } = decoded.value;
    if (!isCount(first) || !Array.isArray(commits) || commits.length === 0) {
      report(new StoreDamageError('J5', name, offset, 'it is no group'));
      continue;
    }
    if (first !== journal.sequence + 1) {
      report(new StoreDamageError('J3', name, offset, `${first} follows ${journal.sequence}`));
    }
    journal.sequence = first + commits.length - 1;
    yield { offset, first, commits };
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

/** The `crc` that a line says it has: from it the chain goes on, also after a damaged line. */
function statedChain(line: Buffer): number {
  return Number.parseInt(line.toString('latin1', Math.max(0, line.length - 11), line.length - 3), 16) || 0;
}
