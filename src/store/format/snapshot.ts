/**
 * The format of `<collection>.json`, version 1: valid JSON, one record a line, by ascending id.
 *
 *   {"format":1,"collection":"items","epoch":"9f…","through":120,"revision":90,"nextId":6,"records":[
 *   {"id":1,"revision":3,"name":"Pen","price":2.5},
 *   {"id":5,"revision":90,"name":"Ink","price":7}
 *   ],"count":2,"sha256":"…"}
 *
 * - `through` is the sequence number of the last commit in the file, `revision` that of the last
 *   commit that changed the collection, and `nextId` the id of the next record.
 * - `sha256` covers every byte of the lines above the last one. The last line consists of `count`
 *   and the digest, and ends in a line feed; nothing follows. So no byte can change unnoticed.
 *
 * Order of writing: temporary file, sync, rename, sync of the directory.
 */
import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { readChunks, writeAll, writeSynced, type Files } from '../disk/files.ts';
import { parseObject, type Snapshot } from './journal.ts';
import { isCount, type AnyTable } from '../memory/table.ts';
import type { StoredRecord, View } from '../store.ts';

export const snapshotFormat = 1;

/** UTF-16 code units encoded at a time, which hold the event loop for less than 1 ms. */
const sliceLength = 64 * 1024;
/** Bytes between two syncs, so that a sync of the journal never waits for a whole snapshot. */
const bytesPerSync = 1024 * 1024;

/**
 * Returns the file of a collection. Capitals are escaped, because some file systems ignore case,
 * and so is the name of the server's key file.
 */
export function snapshotName(collection: string): string {
  const escaped = collection.replaceAll(
    /^k(?=eys$)|[A-Z]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${escaped}.json`;
}

/** Includes snapshots that are being written. */
export function findSnapshots(
  names: readonly string[],
  tables: ReadonlyMap<string, AnyTable>,
): string[] {
  const own = new Set(Array.from(tables.keys(), snapshotName));
  return names.filter((name) => own.has(name.replace(/\.[\da-f]+\.tmp$/, '')));
}

export interface SnapshotTarget {
  readonly files: Files;
  /** Part of the names of temporary files, so that no two processes write to the same file. */
  readonly mark: string;
  /** Runs work that only the holder of the directory may do. An error in it is final. */
  readonly guard: <T>(work: () => Promise<T>) => Promise<T>;
}

export interface Image {
  readonly epoch: string;
  readonly through: number;
  readonly views: readonly CollectionView[];
}

interface CollectionView extends View<StoredRecord>, Pick<AnyTable, 'name' | 'isServers'> {
  readonly nextId: number;
}

export function takeImage(tables: Iterable<AnyTable>, epoch: string, through: number): Image {
  return { epoch, through, views: takeViews(tables) };
}

export function takeViews(tables: Iterable<AnyTable>): Image['views'] {
  const takeView = (table: AnyTable): CollectionView => ({
    name: table.name,
    isServers: table.isServers,
    nextId: table.nextId,
    ...table.view(),
  });
  return Array.from(tables, takeView);
}

/**
 * Writes one snapshot after another, and returns them by collection. Each replaces the previous one
 * before the next is begun, so that the disk needs room for only one. Yields to other work after
 * each slice.
 */
export async function writeSnapshots(
  { files, mark, guard }: SnapshotTarget,
  image: Image,
): Promise<Map<string, Snapshot>> {
  const written = new Map<string, Snapshot>();
  for (const view of image.views) {
    const name = snapshotName(view.name);
    const temporary = `${name}.${mark}.tmp`;
    const size = await writeSnapshot(files, temporary, image, view);
    written.set(view.name, { through: image.through, size });
    await guard(() => files.rename(temporary, name));
  }
  await guard(() => files.syncDirectory());
  return written;
}

async function writeSnapshot(
  files: Files,
  temporary: string,
  image: Image,
  view: CollectionView,
): Promise<number> {
  let size = 0;
  await writeSynced(files, temporary, 'replace', async (file) => {
    for (const bytes of encode(image, view)) {
      await writeAll(file, bytes, size);
      size += bytes.length;
      if (size % bytesPerSync < bytes.length) await file.sync();
    }
  });
  return size;
}

function* encode(
  { epoch, through }: Image,
  { name: collection, revision, nextId, blocks, size: count }: CollectionView,
): Generator<Buffer> {
  const hash = createHash('sha256');
  const hashed = (text: string): Buffer => {
    const bytes = Buffer.from(text);
    hash.update(bytes);
    return bytes;
  };
  const header = { format: snapshotFormat, collection, epoch, through, revision, nextId };
  let text = `${JSON.stringify({ ...header, records: [] }).slice(0, -2)}\n`;
  let separator = '';
  for (const records of blocks) {
    for (const record of records) {
      text += separator + JSON.stringify(record);
      separator = ',\n';
      if (text.length < sliceLength) continue;
      yield hashed(text);
      text = '';
    }
  }
  yield hashed(separator === '' ? text : `${text}\n`);
  yield Buffer.from(encodeFooter(count, hash.digest('hex')));
}

export function encodeFooter(count: number, digest: string): string {
  return `],"count":${count},"sha256":"${digest}"}\n`;
}

export interface Header {
  readonly epoch: string;
  readonly through: number;
  readonly revision: number;
  readonly nextId: number;
}

/**
 * Reads a collection's snapshot into its empty table. It is parsed in runs of lines, because one
 * `JSON.parse` for many records is fastest. Returns `undefined`, and empties the table, if it is
 * not intact or a record does not fit.
 */
export async function readSnapshot(
  files: Files,
  table: AnyTable,
): Promise<(Header & Snapshot) | undefined> {
  const { name } = table;
  const hash = createHash('sha256');
  let header: Header | undefined;
  /** The bytes from `offset` on. The last line stays here, since it may be the footer. */
  let rest: Buffer = Buffer.alloc(0);
  let offset = 0;
  for await (const chunk of readChunks(files, snapshotName(name))) {
    rest = Buffer.concat([rest, chunk]);
    const end = rest.lastIndexOf(0x0a, rest.length - 2) + 1;
    const run = rest.toString('utf8', 0, end);
    const members = run.slice(0, run.endsWith(',\n') ? -2 : -1);
    const value = parseObject(`${header === undefined ? '' : '{"records":['}${members}]}`);
    header ??= parseHeader(value, name);
    if (header === undefined || !loadRecords(value?.['records'], table)) break;
    hash.update(rest.subarray(0, end));
    offset += end;
    rest = rest.subarray(end);
  }
  const footer = encodeFooter(table.size, hash.digest('hex'));
  if (header === undefined || rest.toString() !== footer) {
    table.clear();
    return undefined;
  }
  table.advance(header.revision, header.nextId);
  return { ...header, size: offset + rest.length };
}

function loadRecords(records: JsonValue | undefined, table: AnyTable): boolean {
  if (!Array.isArray(records)) return false;
  return records.every((record) => isJsonObject(record) && table.load(record) === undefined);
}

/** Returns the header in a parsed first line, if it is one of this collection. */
export function parseHeader(value: JsonObject | undefined, expected: string): Header | undefined {
  const { format, collection, epoch, through, revision, nextId } = value ?? {};
  if (format !== snapshotFormat || collection !== expected) return undefined;
  if (typeof epoch !== 'string' || !isCount(nextId)) return undefined;
  if (!isCount(through) || !isCount(revision) || revision > through) return undefined;
  return { epoch, through, revision, nextId };
}
