/**
 * The format of `journal-<n>.jsonl`, version 2. Version 1 is read in the same way. The number was
 * raised so that earlier programs, which do not know references, refuse a store that may have some.
 *
 *   manifest   {"format":2,"journal":7,"closed":false,"epoch":"9f…","after":120,
 *               "collections":{"items":{"through":90,"file":true,"nextId":6,"server":false}},
 *               "crc":"0c8a51f3"}
 *   group      {"sequence":121,"commits":[[["items",{"id":5,"revision":121,…}],
 *               ["sessions",17]],[…]],"crc":"…"}
 *
 * Each is one line that ends in a line feed. The first line is the manifest, the others are groups.
 * - A clean stop leaves a journal with only a manifest that says `closed`. So none of its bytes can
 *   be lost or change unnoticed.
 * - `crc` is the CRC-32 of the line up to the comma before it. It starts from the `crc` of the
 *   previous line, so a line that is changed, missing, repeated or from another journal breaks the
 *   chain. The manifest starts from 0.
 * - Spaces may follow the last line, written ahead for later lines. A journal that says `closed`
 *   has none.
 * - A group is one write and one sync. Its commits are numbered from `sequence`, which follows the
 *   last commit of the previous line, or `after`.
 * - A commit is an array of changes: `["collection", record]` puts a record, and
 *   `["collection", id]` removes one.
 * - `collections` lists the collections that existed when the journal was begun: `through` is the
 *   last commit in the snapshot, `file` is true if there is a snapshot (a store without commits has
 *   none), `nextId` is the id of the next record, and `server` is true for the server's own tables.
 *   Earlier editions wrote no `server`.
 * - A journal continues the previous one, which ends with the commit `after`. Further lines there
 *   were cut short, or written by a process that had lost the directory: none was acknowledged.
 *
 * Order of writing: the manifest, its sync, and a sync of the directory. Only then is a group
 * appended, or room written ahead, and each group only after the sync of the previous one. So a
 * journal with only a part of its manifest was never used.
 */
import { crc32 } from 'node:zlib';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { readLines, type Files, type Line } from '../disk/files.ts';
import type { ReadGroup } from '../log.ts';
import { isCollectionName, isCount, isServerTable, type AnyTable } from '../memory/table.ts';
import { FoundDamage } from './damage.ts';

const journalFormat = 2;

export interface Manifest {
  readonly journal: number;
  readonly closed: boolean;
  readonly epoch: string;
  readonly after: number;
  readonly collections: ReadonlyMap<string, ListedCollection>;
}

export interface ListedCollection {
  readonly through: number;
  readonly file: boolean;
  /** The id of the next record, so that none is given twice if the snapshot is lost. */
  readonly nextId: number;
  readonly server: boolean;
}

export interface Snapshot {
  readonly through: number;
  /** In bytes; 0 if there is no readable one. */
  readonly size: number;
}

/** A line without its `crc` and without the closing brace. */
export type LineBody = string;

/** `,"crc":"xxxxxxxx"}` and the line feed. */
const trailerLength = 19;

export function journalName(number: number): string {
  return `journal-${number}.jsonl`;
}

export function journalNumbers(names: readonly string[]): number[] {
  const numbers = names.map((name) => Number(/^journal-([1-9]\d{0,14})\.jsonl$/.exec(name)?.[1]));
  return numbers.filter((number) => number > 0).sort((a, b) => a - b);
}

export function groupBody(sequence: number, commits: readonly string[]): LineBody {
  return `{"sequence":${sequence},"commits":[${commits.join(',')}]`;
}

export function listing(
  collections: Iterable<Pick<AnyTable, 'name' | 'nextId' | 'isServers'>>,
  snapshots: ReadonlyMap<string, Snapshot>,
): Map<string, ListedCollection> {
  return new Map(
    Array.from(collections, ({ name, nextId, isServers: server }) => {
      const { through = 0, size = 0 } = snapshots.get(name) ?? {};
      return [name, { through, file: size > 0, nextId, server }];
    }),
  );
}

export function manifestBody({ collections, ...rest }: Manifest): LineBody {
  const line = { format: journalFormat, ...rest, collections: Object.fromEntries(collections) };
  return JSON.stringify(line).slice(0, -1);
}

export interface EncodedLine {
  readonly bytes: Buffer;
  readonly chain: number;
}

export function encodeLine(body: LineBody, chain: number): EncodedLine {
  const bytes = Buffer.from(`${body},"crc":"00000000"}\n`);
  const end = bytes.length - trailerLength;
  const next = crc32(bytes.subarray(0, end), chain);
  bytes.write(hex(next), end + 8, 'latin1');
  return { bytes, chain: next };
}

/** Returns `undefined` if the line is cut short or does not fit the chain. */
export function decodeLine(
  line: Buffer,
  chain: number,
): { value: JsonObject; chain: number } | undefined {
  const end = line.length - trailerLength;
  if (end < 1) return undefined;
  const next = crc32(line.subarray(0, end), chain);
  if (line.toString('latin1', end) !== `,"crc":"${hex(next)}"}\n`) return undefined;
  const value = parseObject(`${line.toString('utf8', 0, end)}}`);
  return value && { value, chain: next };
}

/** @throws FoundDamage if a first line claims a newer format, even if its `crc` is wrong */
export function refuseNewer(file: string, line: Buffer, known: number): void {
  const format = Number(/^\{"format":(\d{1,9}),/.exec(line.toString('latin1', 0, 32))?.[1]);
  if (!(format > known)) return;
  const detail = `it is ${format}, this version knows ${known}`;
  throw new FoundDamage({ label: 'S4', file, detail });
}

function parseManifest(value: JsonObject | undefined): Manifest | undefined {
  const { format, journal, closed, epoch, after, collections } = value ?? {};
  if (format !== journalFormat && format !== 1) return undefined;
  if (!isCount(journal) || typeof closed !== 'boolean') return undefined;
  if (typeof epoch !== 'string' || !isCount(after) || !isJsonObject(collections)) return undefined;
  const listed = new Map<string, ListedCollection>();
  for (const [name, entry] of Object.entries(collections)) {
    const {
      through,
      file,
      nextId = 0,
      server = isServerTable(name),
    } = isJsonObject(entry) ? entry : {};
    if (!isCollectionName(name) || !isCount(through)) return undefined;
    if (typeof file !== 'boolean' || !isCount(nextId)) return undefined;
    if (typeof server !== 'boolean') return undefined;
    listed.set(name, { through, file, nextId, server });
  }
  return { journal, closed, epoch, after, collections: listed };
}

export function hex(chain: number): string {
  return chain.toString(16).padStart(8, '0');
}

/** Parses a JSON object. Returns `undefined` for any other text, and one too long for a string. */
export function parseObject(text: string | Buffer): JsonObject | undefined {
  try {
    const value: JsonValue = JSON.parse(String(text));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

interface JournalGroup extends ReadGroup {
  readonly offset: number;
}

/** The first line after the manifest that does not fit. Nothing after it is trusted. */
interface BadLine {
  readonly offset: number;
  readonly detail: string | undefined;
  /** True for the last line, if it may be a write that was cut short and shows no further lines. */
  isTorn: boolean;
  following: number;
}

/** Reads a journal up to a line that does not fit. */
export class JournalReader {
  readonly name: string;
  /** `undefined` if the first line is damaged. */
  readonly manifest: Manifest | undefined;
  /** True for an incomplete manifest, as a crash leaves it. */
  readonly isUnfinished: boolean;
  sequence: number;
  last: Line | undefined;
  badLine: BadLine | undefined;
  readonly #files: Files;
  #chain: number;

  private constructor(files: Files, number: number, first: Buffer, isAlone: boolean) {
    this.#files = files;
    this.name = journalName(number);
    const decoded = decodeLine(first, 0);
    const manifest = parseManifest(decoded?.value);
    this.manifest = manifest?.journal === number ? manifest : undefined;
    this.sequence = this.manifest?.after ?? 0;
    this.#chain = decoded?.chain ?? 0;
    // Room or the end of a group means that the manifest was once complete.
    const isUsed = first.at(-1) === 0x20 || first.includes('],"crc":"');
    this.isUnfinished = this.manifest === undefined && isAlone && !isUsed;
  }

  /** Reads the first line. @throws FoundDamage for a newer format */
  static async open(files: Files, number: number): Promise<JournalReader> {
    const name = journalName(number);
    let first: Buffer = Buffer.alloc(0);
    let isAlone = true;
    for await (const { offset, bytes } of readLines(files, name)) {
      isAlone = offset === 0;
      if (!isAlone) break;
      first = bytes;
    }
    refuseNewer(name, first, journalFormat);
    return new JournalReader(files, number, first, isAlone);
  }

  /**
   * Reads the groups. Stops after the commit `end`, where the next journal begins: later lines were
   * never acknowledged.
   */
  async *groups(end: number): AsyncGenerator<JournalGroup, void, undefined> {
    for await (const line of readLines(this.#files, this.name)) {
      if (this.sequence >= end) return;
      if (line.offset === 0) continue;
      // Room may follow a torn write, whose end can reach the disk before its beginning.
      const isRoom = line.bytes.every((byte) => byte === 0x20);
      if (isRoom && this.manifest?.closed === false) return;
      if (this.badLine === undefined) {
        const group = this.#parse(line);
        if (group !== undefined) yield group;
      } else {
        this.badLine.following += 1;
        this.badLine.isTorn = false;
      }
    }
  }

  #parse(line: Line): JournalGroup | undefined {
    const { offset, bytes } = line;
    const decoded = this.manifest?.closed === true ? undefined : decodeLine(bytes, this.#chain);
    const { sequence: first, commits } = decoded?.value ?? {};
    const isGroup = isCount(first) && Array.isArray(commits) && commits.length > 0;
    if (decoded !== undefined && isGroup && first === this.sequence + 1) {
      this.#chain = decoded.chain;
      this.sequence += commits.length;
      this.last = line;
      return { offset, first, commits };
    }
    const gap = isGroup ? `${first} follows ${this.sequence}` : 'it is not a group';
    const isCutShort = this.manifest?.closed === false && !holdsLine(bytes, this.#chain);
    const isTorn = decoded === undefined && isCutShort;
    this.badLine = { offset, detail: decoded && gap, isTorn, following: 0 };
    return undefined;
  }
}

/**
 * True if a bad line begins with a complete one and continues: it lost its line feed, and skipping
 * it would lose acknowledged groups. Zeros from the end of one group into the last one look the
 * same as a write that was cut short.
 */
function holdsLine(line: Buffer, before: number): boolean {
  const mark = ',"crc":"';
  let chain = before;
  let done = 0;
  for (let at = line.indexOf(mark); at >= 0; at = line.indexOf(mark, at + 1)) {
    chain = crc32(line.subarray(done, at), chain);
    done = at;
    const end = at + mark.length + 9;
    if (line.toString('latin1', at + mark.length, end) !== `${hex(chain)}"`) continue;
    return !/^\}?[ \0]*\n?$/.test(line.toString('latin1', end));
  }
  return false;
}
