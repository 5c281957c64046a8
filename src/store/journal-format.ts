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
export function hex(chain: number): string {
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
