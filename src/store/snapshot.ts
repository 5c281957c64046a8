/**
 * The format of `<collection>.json`, version 1: valid JSON, one record a line, by ascending id.
 *
 *   {"format":1,"collection":"items","epoch":"9f…","through":120,"revision":90,"nextId":6,"records":[
 *   {"id":1,"revision":3,"name":"Pen","price":2.5},
 *   {"id":5,"revision":90,"name":"Ink","price":7}
 *   ],"count":2,"sha256":"…"}
 *
 * - `through` is the last sequence number whose changes are in it, `revision` the last one that changed the
 *   collection, `nextId` the id that the next record gets.
 * - `sha256` covers every byte of the lines above the last one. The last line is exactly what `count` and the digest
 *   make it, and ends in a line feed; nothing follows. So there is no byte that may change unnoticed.
 *
 * Order of barriers: temporary file, sync, read back, rename, sync of the directory.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { StoreDamageError } from './failures.ts';
import { errorCode, type Files, readChunks, writeAll, writeTemporary } from './files.ts';
import { parseObject, refuseNewer } from './journal-format.ts';
import type { StoredRecord, View } from './store.ts';
import { type AnyTable, isCount } from './table.ts';

export const snapshotFormat = 1;

/** How long a checkpoint may hold the event loop at a time. */
const sliceMs = 1;
/** How much of a snapshot is written at a time. */
const sliceBytes = 256 * 1024;
/** How much is written between two syncs, so that a journal's sync never waits for a whole snapshot. */
const bytesPerSync = 1024 * 1024;
/** How many records are encoded between two looks at the clock. */
const recordsPerLook = 32;

export interface SnapshotHeader {
  readonly epoch: string;
  readonly through: number;
  readonly revision: number;
  readonly nextId: number;
}

export function snapshotName(collection: string): string {
  return `${collection}.json`;
}

/** The collection whose snapshot has this name; `undefined` for other names. */
export function snapshotCollection(name: string): string | undefined {
  return /^([a-z][a-z0-9-]{0,62})\.json$/.exec(name)?.[1];
}

/**
 * Writes a collection's snapshot to the file `temporary`, synced and read back; the caller renames it. Gives way to
 * requests after each slice. Returns the snapshot's size in bytes.
 */
export async function writeSnapshot(
  files: Files,
  clock: Clock,
  temporary: string,
  collection: string,
  header: SnapshotHeader,
  view: View<StoredRecord>,
): Promise<number> {
  const hash = createHash('sha256');
  let size = 0;
  await writeTemporary(files, temporary, async (file) => {
    let synced = 0;
    const write = async (text: string): Promise<void> => {
      const bytes = Buffer.from(text);
      hash.update(bytes);
      await writeAll(file, bytes, size);
      size += bytes.length;
      if (size - synced < bytesPerSync) return;
      synced = size;
      await file.sync();
    };
    for (const text of encodeSlices(clock, encodeHeader(collection, header), view)) await write(text);
    await write(encodeFooter(view.size, hash.copy().digest('hex')));
  });
  const read = createHash('sha256');
  for await (const chunk of readChunks(files, temporary)) read.update(chunk);
  if (read.digest('hex') === hash.digest('hex')) return size;
  throw new Error(`Cannot write ${temporary}: what is read back is not what was written`);
}

function* encodeSlices(clock: Clock, header: string, view: View<StoredRecord>): Generator<string, void, undefined> {
  let text = header;
  let started = clock.elapsed();
  let separator = '';
  let looked = 0;
  for (const records of view.blocks()) {
    for (const record of records) {
      text += separator + JSON.stringify(record);
      separator = ',\n';
      looked += 1;
      if (looked % recordsPerLook !== 0 || (text.length < sliceBytes && clock.elapsed() - started < sliceMs)) continue;
      yield text;
      text = '';
      started = clock.elapsed();
    }
  }
  yield separator === '' ? text : `${text}\n`;
}

/**
 * Reads a collection's snapshot into `table`, which is empty. Returns its header and size, or `undefined` where there
 * is no such file.
 * @throws StoreDamageError
 */
export async function readSnapshot(
  files: Files,
  table: AnyTable,
): Promise<{ header: SnapshotHeader; bytes: number } | undefined> {
  const name = snapshotName(table.name);
  const reader = new SnapshotReader(name, table);
  try {
    for await (const chunk of readChunks(files, name)) reader.take(chunk);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  return { header: reader.end(), bytes: reader.size };
}

/** Takes a snapshot piece by piece; lines are parsed in runs, since one call of `JSON.parse` for many costs least. */
class SnapshotReader {
  size = 0;
  readonly #name: string;
  readonly #table: AnyTable;
  readonly #hash = createHash('sha256');
  /** The beginning of a line whose end is still to come. */
  #rest: Buffer = Buffer.alloc(0);
  /** Where `#rest` begins. */
  #offset = 0;
  #header: SnapshotHeader | undefined;
  #lastId = 0;

  constructor(name: string, table: AnyTable) {
    this.#name = name;
    this.#table = table;
  }

  take(chunk: Buffer): void {
    this.size += chunk.length;
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let start = 0;
    if (this.#header === undefined) {
      start = bytes.indexOf(0x0a) + 1;
      if (start > 0) this.#header = this.#readHeader(bytes.subarray(0, start));
    }
    // The last line may be the footer: it stays until the end of the file is known.
    const end = this.#header === undefined ? 0 : bytes.lastIndexOf(0x0a, bytes.length - 2) + 1;
    if (end > start) this.#readRecords(bytes.subarray(start, end), this.#offset + start);
    this.#hash.update(bytes.subarray(0, Math.max(start, end)));
    this.#offset += Math.max(start, end);
    this.#rest = Buffer.from(bytes.subarray(Math.max(start, end)));
  }

  end(): SnapshotHeader {
    const header = this.#header;
    if (header === undefined) throw this.#damage(0, 'its first line is incomplete');
    const footer = encodeFooter(this.#table.size, this.#hash.digest('hex'));
    const found = this.#rest.toString();
    if (found === footer) {
      this.#table.advance(header.revision, header.nextId);
      return header;
    }
    const wellFormed = parseObject(`{"records":[${found}`) !== undefined;
    if (!wellFormed) throw this.#damage(this.#offset, 'its last line is incomplete');
    const problem = 'its digest does not fit: it was edited by hand, or is damaged';
    throw new StoreDamageError('S2', this.#name, this.#offset, problem);
  }

  #readHeader(line: Buffer): SnapshotHeader {
    refuseNewer(this.#name, line, snapshotFormat);
    const value = parseObject(`${line.toString()}]}`);
    const header = value && parseHeader(value, this.#table.name);
    if (header === undefined) throw this.#damage(0, 'its first line is not a header');
    return header;
  }

  #readRecords(bytes: Buffer, offset: number): void {
    const lines = bytes.toString('utf8', 0, bytes.length - (bytes.at(-2) === 0x2c ? 2 : 1));
    const records = parseObject(`{"records":[${lines}]}`)?.['records'];
    const texts = (): string[] => lines.split('\n');
    const bad = (index: number, problem: string): StoreDamageError => {
      const before = texts().slice(0, index);
      return this.#damage(offset + Buffer.byteLength(before.join('\n')) + (index > 0 ? 1 : 0), problem);
    };
    if (!Array.isArray(records) || records.length === 0) {
      const index = texts().findIndex((text) => parseObject(text.replace(/,$/, '')) === undefined);
      throw bad(Math.max(0, index), 'this line is not a record');
    }
    for (let index = 0; index < records.length; index += 1) {
      const problem = this.#readRecord(records[index]);
      if (problem !== undefined) throw bad(index, problem);
    }
  }

  /** Puts one record into the table; says what is wrong with it, if anything is. */
  #readRecord(record: JsonValue | undefined): string | undefined {
    if (!isJsonObject(record)) return 'it is not a record';
    const { id, revision } = record;
    if (!isCount(id) || id <= this.#lastId) return 'its id does not follow the one before';
    this.#lastId = id;
    const header = this.#header;
    if (header !== undefined && (id >= header.nextId || !isCount(revision) || revision > header.revision)) {
      return 'its id or revision is beyond what the first line says';
    }
    return this.#table.load(record);
  }

  #damage(offset: number, problem: string): StoreDamageError {
    return new StoreDamageError('S1', this.#name, offset, problem);
  }
}

/** The header in a parsed first line; `undefined` where it is none of this collection's. */
export function parseHeader(value: JsonObject, expected: string): SnapshotHeader | undefined {
  const { format, collection, epoch, through, revision, nextId } = value;
  if (format !== snapshotFormat || collection !== expected || typeof epoch !== 'string') return undefined;
  if (!isCount(through) || !isCount(revision) || revision > through || !isCount(nextId)) return undefined;
  return { epoch, through, revision, nextId };
}

function encodeHeader(collection: string, header: SnapshotHeader): string {
  const { epoch, through, revision, nextId } = header;
  const line = JSON.stringify({ format: snapshotFormat, collection, epoch, through, revision, nextId, records: [] });
  return `${line.slice(0, -2)}\n`;
}

function encodeFooter(count: number, digest: string): string {
  return `],"count":${count},"sha256":"${digest}"}\n`;
}
