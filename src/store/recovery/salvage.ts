/** Reads snapshots that are damaged or were edited. Only a start that finds one loads this. */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { readLines, readWhole, type Files } from '../disk/files.ts';
import type { Report } from '../format/damage.ts';
import { parseObject, refuseNewer } from '../format/journal.ts';
import {
  encodeFooter,
  parseHeader,
  snapshotFormat,
  snapshotName,
  type Header,
} from '../format/snapshot.ts';
import { isCount, type AnyTable, type Misfit } from '../memory/table.ts';

interface Entry {
  readonly offset: number;
  /** `undefined` if it is not a JSON object. */
  readonly record: JsonObject | undefined;
}

/**
 * Reads as much as possible of a snapshot that is damaged, was edited, or has records that do not
 * fit. Returns its header. Records are compared with the declaration only if the digest is right:
 * otherwise damage would look like a mistake in the declaration.
 */
export async function salvageSnapshot(
  files: Files,
  table: AnyTable,
  report: Report,
): Promise<Header | undefined> {
  const name = snapshotName(table.name);
  let isLossy = false;
  let isIntact = false;
  const lose = (offset: number, { problem, cause }: Misfit): void => {
    isLossy = true;
    const place = { file: name, offset, detail: problem };
    if (cause !== undefined && isIntact) report({ label: 'D1', ...place, misfit: cause });
    else report({ label: 'S1', ...place });
  };
  const found = await readEntries(files, name, lose);
  const { head, entries } = found;
  isIntact = found.isIntact;
  const header = parseHeader(head, table.name);
  if (header === undefined) lose(0, { problem: 'it is not a header' });
  for (const { offset, record } of entries) {
    // A record added by hand needs no revision.
    const stored = record && { id: 0, revision: header?.through ?? 0, ...record };
    const misfit =
      stored === undefined ? { problem: 'it is not a record' } : loadOnce(stored, table);
    if (misfit !== undefined) lose(offset, misfit);
  }
  table.advance(header?.revision ?? 0, header?.nextId ?? 0);
  if (!isLossy) report({ label: 'S2', file: name });
  return header;
}

/** Refuses a record whose id is taken. Returns the problem, if any. */
function loadOnce(stored: JsonObject, table: AnyTable): Misfit | undefined {
  const { id } = stored;
  const isTaken = isCount(id) && table.get(id) !== undefined;
  if (isTaken) return { problem: `another record has the id ${id}` };
  return table.load(stored);
}

/**
 * Reads the header and the records: line by line or, if that fails, as JSON in any layout, as an
 * editor or another tool leaves it.
 */
async function readEntries(
  files: Files,
  name: string,
  lose: (offset: number, misfit: Misfit) => void,
): Promise<{ head: JsonObject | undefined; entries: Entry[]; isIntact: boolean }> {
  const entries: Entry[] = [];
  const hash = createHash('sha256');
  let head: JsonObject | undefined;
  let hasFooter = false;
  let isIntact = false;
  for await (const { offset, bytes } of readLines(files, name)) {
    if (offset === 0) refuseNewer(name, bytes, snapshotFormat);
    if (!isUtf8(bytes)) lose(offset, { problem: 'it has bytes that are not UTF-8' });
    const line = bytes.toString().trim();
    // Further lines change this again.
    isIntact = bytes.toString() === encodeFooter(entries.length, hash.copy().digest('hex'));
    hash.update(bytes);
    if (offset === 0 && line.endsWith('[')) head = parseObject(`${line}]}`);
    else if (line.startsWith('],"count":')) hasFooter = true;
    else if (line !== '') entries.push({ offset, record: parseObject(line.replace(/,$/, '')) });
  }
  const isWhole = head !== undefined && hasFooter;
  if (isWhole && entries.every(({ record }) => record !== undefined)) {
    return { head, entries, isIntact };
  }
  const bytes = (await readWhole(files, name)) ?? Buffer.alloc(0);
  // Some editors put a byte order mark in front.
  const hasMark = bytes.subarray(0, 3).toString() === '\uFEFF';
  const whole = parseObject(hasMark ? bytes.subarray(3) : bytes);
  const records = whole?.['records'];
  if (!Array.isArray(records)) {
    if (!hasFooter) lose(bytes.length, { problem: 'its last line is missing' });
    return { head, entries, isIntact };
  }
  const toEntry = (value: JsonValue): Entry => ({
    offset: 0,
    record: isJsonObject(value) ? value : undefined,
  });
  return { head: whole, entries: records.map(toEntry), isIntact };
}
