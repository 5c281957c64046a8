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
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { readChunks, readWhole, writeAll, writeSynced, type Files } from '../disk/files.ts';
import { lines, parseObject, refuseNewer, type Report } from '../journal/journal-format.ts';
import { isCount, isMisfit, type AnyTable } from '../memory/table.ts';
import { StoreDamageError, type StoredRecord, type View } from '../store.ts';

const snapshotFormat = 1;

/** How much of a snapshot is encoded at a time, in UTF-16 code units: that holds the event loop for less than 1 ms. */
const sliceLength = 64 * 1024;
/** How much is written between two syncs, so that a journal's sync never waits for a whole snapshot. */
const bytesPerSync = 1024 * 1024;

export function snapshotName(collection: string): string {
  return `${collection}.json`;
}

/** Where a store is written. */
export interface Target {
  readonly files: Files;
  /** Part of the names of temporary files, so that no other process writes to ours. */
  readonly mark: string;
  /** Runs what only the process may do that has the directory; for good when it fails. */
  readonly guard: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Every collection at one moment. */
export interface Image {
  readonly epoch: string;
  /** Sequence number of the last commit that is in it. */
  readonly through: number;
  readonly views: readonly (View<StoredRecord> & { readonly name: string; readonly nextId: number })[];
}

/** Views `tables` as they are now. */
export function imageOf(tables: Iterable<AnyTable>, epoch: string, through: number): Image {
  const views = Array.from(tables, (table) => ({ name: table.name, nextId: table.nextId, ...table.view() }));
  return { epoch, through, views };
}

/**
 * Writes one snapshot after the other to a temporary file that takes the place of the former one, whose room is then
 * free for the next. Gives way to other work after each slice. `onWritten` is called with the bytes of the temporary
 * file so far. Returns the sizes of the snapshots.
 */
export async function writeSnapshots(
  { files, mark, guard }: Target,
  { epoch, through, views }: Image,
  onWritten: (bytes: number) => void = () => undefined,
): Promise<number[]> {
  const sizes: number[] = [];
  try {
    for (const { name, revision, nextId, ...view } of views) {
      const temporary = `${snapshotName(name)}.${mark}.tmp`;
      const header = { format: snapshotFormat, collection: name, epoch, through, revision, nextId };
      sizes.push(await writeSnapshot(files, temporary, header, view, onWritten));
      await guard(() => files.rename(temporary, snapshotName(name)));
    }
  } finally {
    onWritten(0);
  }
  await guard(() => files.syncDirectory());
  return sizes;
}

/** Writes one snapshot, syncs it and reads it back. Returns its size. */
async function writeSnapshot(
  files: Files,
  temporary: string,
  header: JsonObject,
  view: Records,
  onWritten: (bytes: number) => void,
): Promise<number> {
  const hash = createHash('sha256');
  let size = 0;
  await writeSynced(files, temporary, 'replace', async (file) => {
    for (const text of encodeSlices(header, view, () => hash.copy().digest('hex'))) {
      const bytes = Buffer.from(text);
      hash.update(bytes);
      await writeAll(file, bytes, size);
      size += bytes.length;
      onWritten(size);
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

/** What a snapshot says in its first line. */
export interface SnapshotHeader {
  readonly epoch: string;
  readonly through: number;
  readonly revision: number;
  readonly nextId: number;
}

export interface ReadSnapshot {
  /** `undefined` where it cannot be read. */
  readonly header: SnapshotHeader | undefined;
  /** In bytes. */
  readonly size: number;
}

/**
 * Reads a collection's snapshot into its table in `tables`, which is empty. What is intact is read in runs of lines,
 * since one call of `JSON.parse` for many costs least; all else by `salvageSnapshot`.
 */
export async function readSnapshot(
  files: Files,
  tables: Map<string, AnyTable>,
  table: AnyTable,
  report: Report,
): Promise<ReadSnapshot> {
  const hash = createHash('sha256');
  let header: SnapshotHeader | undefined;
  /** What was read from `offset` on. Its last line may be the footer: it stays until the end of the file is known. */
  let rest: Buffer = Buffer.alloc(0);
  let offset = 0;
  for await (const chunk of readChunks(files, snapshotName(table.name))) {
    rest = Buffer.concat([rest, chunk]);
    const end = rest.lastIndexOf(0x0a, rest.length - 2) + 1;
    let run = rest.toString('utf8', 0, end);
    if (header === undefined) {
      const start = run.indexOf('\n') + 1;
      header = parseHeader(parseObject(`${run.slice(0, start)}]}`), table.name);
      run = run.slice(start);
    }
    if (header === undefined || !loadRun(run, table)) break;
    hash.update(rest.subarray(0, end));
    offset += end;
    rest = rest.subarray(end);
  }
  if (header === undefined || rest.toString() !== encodeFooter(table.size, hash.digest('hex'))) {
    return salvageSnapshot(files, tables, table.fresh(), report);
  }
  table.advance(header.revision, header.nextId);
  return { header, size: offset + rest.length };
}

/** Puts the records of some lines into `table`. Returns false where one of them is none. */
function loadRun(run: string, table: AnyTable): boolean {
  const records = parseObject(`{"records":[${run.slice(0, run.endsWith(',\n') ? -2 : -1)}]}`)?.['records'];
  return Array.isArray(records) && records.every((each) => isJsonObject(each) && table.load(each) === undefined);
}

/** Reads what can be read of a snapshot that is damaged or was edited, into a table that it puts in `tables`. */
async function salvageSnapshot(
  files: Files,
  tables: Map<string, AnyTable>,
  table: AnyTable,
  report: Report,
): Promise<ReadSnapshot> {
  const name = snapshotName(table.name);
  let isLossy = false;
  const lose = (offset: number, problem: string): void => {
    isLossy = true;
    report(new StoreDamageError(isMisfit(problem) ? 'D1' : 'S1', name, offset, problem));
  };
  tables.set(table.name, table);
  const { head, records, size } = await readRecords(files, name, lose);
  const header = parseHeader(head, table.name);
  if (header === undefined) lose(0, 'it is no header');
  for (const { offset, record } of records) {
    // A record that was added by hand needs no revision of its own; its id stays in front.
    const stored: JsonObject | undefined = record && { id: 0, revision: header?.through ?? 0, ...record };
    const id = stored?.['id'];
    if (stored === undefined) lose(offset, 'it is no record');
    else if (isCount(id) && table.get(id) !== undefined) lose(offset, `another record has the id ${id}`);
    else {
      const problem = table.load(stored);
      if (problem !== undefined) lose(offset, problem);
    }
  }
  table.advance(header?.revision ?? 0, header?.nextId ?? 0);
  if (!isLossy) report(new StoreDamageError('S2', name));
  return { header, size };
}

/** The members before the records, and the records with their places: line by line, or else of JSON in any form. */
async function readRecords(files: Files, name: string, lose: (offset: number, problem: string) => void) {
  const records: { readonly offset: number; readonly record: JsonObject | undefined }[] = [];
  let head: JsonObject | undefined;
  let size = 0;
  let footer = '';
  for await (const { offset, bytes } of lines(files, name)) {
    if (offset === 0) refuseNewer(name, bytes, snapshotFormat);
    if (!isUtf8(bytes)) lose(offset, 'it has bytes that are not UTF-8');
    const line = bytes.toString().trim();
    size = offset + bytes.length;
    if (offset === 0 && line.endsWith('[')) head = parseObject(`${line}]}`);
    else if (line.startsWith('],"count":')) footer = line;
    else if (line !== '') records.push({ offset, record: parseObject(line.replace(/,$/, '')) });
  }
  if (head !== undefined && footer !== '' && records.every(({ record }) => record !== undefined)) {
    return { head, records, size };
  }
  const bytes = (await readWhole(files, name)) ?? Buffer.alloc(0);
  // Some editors put a byte order mark in front, which has three bytes.
  const whole = parseObject(bytes) ?? parseObject(bytes.subarray(3));
  const all = whole?.['records'];
  if (Array.isArray(all)) {
    const found = all.map((record) => ({ offset: 0, record: isJsonObject(record) ? record : undefined }));
    return { head: whole, records: found, size };
  }
  if (footer === '') lose(size, 'its last line is missing');
  return { head, records, size };
}

/** The header in a parsed first line; `undefined` where it is none of this collection's. */
function parseHeader(value: JsonObject | undefined, expected: string): SnapshotHeader | undefined {
  const { format, collection, epoch, through, revision, nextId } = value ?? {};
  if (format !== snapshotFormat || collection !== expected || typeof epoch !== 'string') return undefined;
  if (!isCount(through) || !isCount(revision) || revision > through || !isCount(nextId)) return undefined;
  return { epoch, through, revision, nextId };
}

function encodeFooter(count: number, digest: string): string {
  return `],"count":${count},"sha256":"${digest}"}\n`;
}
