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
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { readChunks, writeAll, writeSynced, type Files } from './files.ts';
import { parseObject, refuseNewer, type Manifest } from './journal-format.ts';
import type { Room } from './room.ts';
import { StoreDamageError, type StoredRecord, type View } from './store.ts';
import { isCount, type AnyTable } from './table.ts';

export const snapshotFormat = 1;

/** How much of a snapshot is encoded at a time, in UTF-16 code units: that holds the event loop for less than 1 ms. */
const sliceLength = 64 * 1024;
/** How much is written between two syncs, so that a journal's sync never waits for a whole snapshot. */
const bytesPerSync = 1024 * 1024;

export function snapshotName(collection: string): string {
  return `${collection}.json`;
}

/** Every collection at one moment, on its way into snapshots. */
export type Checkpoint = ReturnType<typeof viewTables>;

/** Views `tables` as they are now. `journal`: the number of a durable one of ours; 0 where there is none. */
export function viewTables(tables: Iterable<AnyTable>, epoch: string, through: number, journal: number) {
  const views = Array.from(tables, (table) => ({ name: table.name, nextId: table.nextId, ...table.view() }));
  /** What a manifest lists from now on. */
  const collections: Manifest['collections'] = new Map(
    views.map(({ name, nextId }) => [name, { through, file: true, nextId }]),
  );
  return { epoch, through, journal, views, collections };
}

/**
 * Writes one snapshot after the other to a temporary file, synced and read back, that `publish` renames: so the room
 * that the older one took is free for the next. Gives way to requests after each slice. Returns the bytes of all.
 */
export async function writeSnapshots(files: Files, room: Room, checkpoint: Checkpoint, publish: Files['rename']) {
  const { epoch, through, journal, views } = checkpoint;
  let bytes = 0;
  try {
    for (const { name, revision, nextId, ...view } of views) {
      // Not the name that another process would use: should we be frozen and replaced, we rename only our own file.
      const temporary = `${snapshotName(name)}.${journal}.tmp`;
      const header = { format: snapshotFormat, collection: name, epoch, through, revision, nextId };
      bytes += await writeSnapshot(files, room, temporary, header, view);
      await publish(temporary, snapshotName(name));
      room.snapshotBytes = 0;
    }
    return bytes;
  } finally {
    room.snapshotBytes = 0;
  }
}

/** Returns its size. The room is told what is written so far. */
async function writeSnapshot(files: Files, room: Room, temporary: string, header: JsonObject, view: Records) {
  const hash = createHash('sha256');
  let size = 0;
  await writeSynced(files, temporary, 'replace', async (file) => {
    for (const text of encodeSlices(header, view, () => hash.copy().digest('hex'))) {
      const bytes = Buffer.from(text);
      hash.update(bytes);
      await writeAll(file, bytes, size);
      size += bytes.length;
      room.snapshotBytes = size;
      if (size % bytesPerSync < bytes.length) await file.sync();
    }
    await file.sync();
    const read = createHash('sha256');
    for await (const chunk of readChunks(files, temporary)) read.update(chunk);
    if (read.digest('hex') === hash.digest('hex')) return;
    throw new Error(`Cannot write ${temporary}: what is read back is not what was written`);
  });
  return size;
}

type Records = Pick<View<StoredRecord>, 'size' | 'blocks'>;

/** `digest`: of all that was yielded before. */
function* encodeSlices(header: JsonObject, { size, blocks }: Records, digest: () => string) {
  let text = `${JSON.stringify({ ...header, records: [] }).slice(0, -2)}\n`;
  let separator = '';
  for (const records of blocks) {
    for (const record of records) {
      text += separator + JSON.stringify(record);
      separator = ',\n';
      if (text.length < sliceLength) continue;
      yield text;
      text = '';
    }
  }
  yield separator === '' ? text : `${text}\n`;
  yield encodeFooter(size, digest());
}

/**
 * Reads a collection's snapshot into `table`, which is empty. Returns its header and size in bytes. Lines are parsed in
 * runs, since one call of `JSON.parse` for many costs least.
 * @throws StoreDamageError
 */
export async function readSnapshot(files: Files, table: AnyTable) {
  const name = snapshotName(table.name);
  const damage = (at: number, problem: string, label = 'S1'): StoreDamageError =>
    new StoreDamageError(label, name, at, problem);
  const hash = createHash('sha256');
  let header: ReturnType<typeof parseHeader>;
  /** What was read from `offset` on, and not yet judged. */
  let rest: Buffer = Buffer.alloc(0);
  let offset = 0;
  for await (const chunk of readChunks(files, name)) {
    rest = Buffer.concat([rest, chunk]);
    const start = header === undefined ? rest.indexOf(0x0a) + 1 : 0;
    if (header === undefined && start > 0) {
      refuseNewer(name, rest, snapshotFormat);
      header = parseHeader(parseObject(`${rest.toString('utf8', 0, start)}]}`), table.name);
      if (header === undefined) throw damage(0, 'its first line is not a header');
    }
    if (header === undefined) continue;
    // The last line may be the footer: it stays until the end of the file is known.
    const end = Math.max(start, rest.lastIndexOf(0x0a, rest.length - 2) + 1);
    if (end > start) {
      const run = rest.toString('utf8', start, end - (rest[end - 2] === 0x2c ? 2 : 1));
      loadRun(run, table, (at, problem) => damage(offset + start + at, problem));
    }
    hash.update(rest.subarray(0, end));
    offset += end;
    rest = rest.subarray(end);
  }
  if (header === undefined) throw damage(0, 'its first line is incomplete');
  const found = rest.toString();
  if (found !== encodeFooter(table.size, hash.digest('hex'))) {
    if (parseObject(`{"records":[${found}`) === undefined) throw damage(offset, 'its last line is incomplete');
    throw damage(offset, 'its digest does not fit: it was edited by hand, or is damaged', 'S2');
  }
  table.advance(header.revision, header.nextId);
  return { ...header, bytes: offset + rest.length };
}

/** Puts the records of some lines into `table`. @throws what `damage` makes of the first line that is bad */
function loadRun(run: string, table: AnyTable, damage: (at: number, problem: string) => StoreDamageError): void {
  const damaged = (index: number, problem: string): StoreDamageError =>
    damage(Buffer.byteLength(run.split('\n').slice(0, index).concat('').join('\n')), problem);
  const records = parseObject(`{"records":[${run}]}`)?.['records'];
  if (!Array.isArray(records) || records.length === 0) {
    const index = run.split('\n').findIndex((line) => parseObject(line.replace(/,$/, '')) === undefined);
    throw damaged(Math.max(0, index), 'this line is not a record');
  }
  for (let index = 0; index < records.length; index += 1) {
    const record: JsonValue | undefined = records[index];
    const id = isJsonObject(record) ? record['id'] : undefined;
    const follows = isJsonObject(record) && isCount(id) && id >= table.nextId;
    const problem = follows ? table.load(record) : 'it is no record whose id follows the one before';
    if (problem !== undefined) throw damaged(index, problem);
  }
}

/** The header in a parsed first line; `undefined` where it is none of this collection's. */
export function parseHeader(value: JsonObject | undefined, expected: string) {
  const { format, collection, epoch, through, revision, nextId } = value ?? {};
  if (format !== snapshotFormat || collection !== expected || typeof epoch !== 'string') return undefined;
  if (!isCount(through) || !isCount(revision) || revision > through || !isCount(nextId)) return undefined;
  return { epoch, through, revision, nextId };
}

function encodeFooter(count: number, digest: string): string {
  return `],"count":${count},"sha256":"${digest}"}\n`;
}
