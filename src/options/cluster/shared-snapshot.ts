/**
 * Snapshots of the shared log. Their keys, below the prefix of `shared-log.ts`:
 *
 *   snapshot               {"name":"c0ffee…","parts":7,"head":{…}}
 *   snapshot/c0ffee…/0     {"collection":"items","revision":90,"nextId":6,
 *                           "records":[{…},{…}],"crc":"…"}, compressed with gzip
 *
 * - The key `snapshot` is the pointer: it names the parts of the current snapshot.
 * - `head` describes the last group with changes in the snapshot.
 * - A part is a line as in `store/format/journal.ts`. Its `crc` continues the previous part's.
 *
 * A node first writes the parts under a new name. Then one transaction swaps the pointer and
 * removes all other parts.
 *
 *   case  what is found                        what is done
 *   ----  -----------------------------------  --------------------------------------------
 *   S1    two nodes write a snapshot at once   one swaps the pointer; the other removes its
 *                                              parts
 *   S2    the swap was not answered            the pointer is read: if it is this one, the
 *                                              swap succeeded
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { decodeLine, encodeLine, parseObject } from '../../store/format/journal.ts';
import type { Image } from '../../store/format/snapshot.ts';
import {
  isCollectionName,
  isCount,
  findOrAddTable,
  type Tables,
  type Misfit,
} from '../../store/memory/table.ts';
import { misfit } from './declaration.ts';
import { ClusterError, rangeEnd, put, range, remove, type Etcd, type KeyValue } from './etcd.ts';
import { firstHead, groupKey, type GroupHead } from './group-format.ts';

export interface LogPlace {
  readonly etcd: Etcd;
  /** Ends in a slash. */
  readonly prefix: string;
}

export interface SharedSnapshot {
  readonly name: string;
  readonly parts: number;
  readonly head: GroupHead;
  /** 0 without a pointer. */
  readonly revision: number;
}

/** The records of a log after its group `head`. */
export interface LogImage extends Pick<Image, 'views'> {
  readonly head: GroupHead;
}

export const noSnapshot: SharedSnapshot = { name: '', parts: 0, head: firstHead, revision: 0 };

/** A part is complete when its records have this length: encoding it takes some 2 ms. */
export const partLength = 128 * 1024;

const compress = promisify(gzip);
const decompress = promisify(gunzip);

export function parsePointer({ value, revision }: KeyValue): SharedSnapshot | undefined {
  const { name, parts, head } = parseObject(value) ?? {};
  const { sequence, id, chain, bytes } = isJsonObject(head) ? head : {};
  if (typeof name !== 'string' || !isCount(parts) || typeof id !== 'string') return undefined;
  if (!isCount(sequence) || !isCount(chain) || !isCount(bytes)) return undefined;
  return { name, parts, revision, head: { sequence, id, chain, bytes } };
}

/**
 * Loads a snapshot into the tables, with a table for each unregistered collection. Returns false,
 * and changes nothing, if a part is missing.
 * @throws ClusterError
 */
export async function loadSnapshot(
  { etcd, prefix }: LogPlace,
  { name, parts }: SharedSnapshot,
  tables: Tables,
): Promise<boolean> {
  const contents: Buffer[] = [];
  while (contents.length < parts) {
    const key = `${prefix}snapshot/${name}/${contents.length}`;
    const [[part] = []] = (await etcd.txn({ success: [range(key)] })).found;
    if (part === undefined) return false;
    contents.push(part.value);
  }
  let chain = 0;
  for (const content of contents) {
    const line = await decompress(content).catch(() => Buffer.alloc(0));
    const decoded = decodeLine(line, chain);
    if (decoded === undefined) throw damaged('a part of its snapshot was changed');
    loadPart(decoded.value, tables);
    chain = decoded.chain;
  }
  return true;
}

function loadPart(part: JsonObject, tables: Tables): void {
  const { collection, revision, nextId, records } = part;
  const isNamed = typeof collection === 'string' && isCollectionName(collection);
  if (!isNamed || !isCount(revision) || !isCount(nextId) || !Array.isArray(records)) {
    throw damaged('a part of its snapshot cannot be read');
  }
  const table = findOrAddTable(tables, collection);
  for (const record of records) {
    const problem = isJsonObject(record) ? table.load(record) : { problem: 'it is not a record' };
    if (problem !== undefined) throw unreadable(collection, problem);
  }
  table.advance(revision, nextId);
}

/**
 * Writes a snapshot under `name`, and makes it the current one if `compare` holds, in one
 * transaction with `also`. Returns `undefined` if it did not hold.
 */
export async function writeSnapshot(
  { etcd, prefix }: LogPlace,
  { views, head }: LogImage,
  name: string,
  compare: readonly JsonObject[],
  also: readonly JsonObject[] = [],
): Promise<SharedSnapshot | undefined> {
  const all = `${prefix}snapshot/`;
  const own = `${all}${name}/`;
  let parts = 0;
  let chain = 0;
  for (const body of encodeParts(views)) {
    const line = encodeLine(body, chain);
    await etcd.txn({ success: [put(own + parts, await compress(line.bytes))] });
    chain = line.chain;
    parts += 1;
  }
  const key = `${prefix}snapshot`;
  const written = JSON.stringify({ name, parts, head });
  const others = [remove(all, own), remove(rangeEnd(own), rangeEnd(all))];
  const success = [put(key, written), ...others, ...also, range(key)];
  const { found } = await etcd.txn({ compare, success, failure: [range(key)] });
  const [pointer] = found.at(-1) ?? [];
  if (pointer?.value.toString() === written) return parsePointer(pointer);
  await etcd.txn({ success: [remove(own, rangeEnd(own))] });
  return undefined;
}

function* encodeParts(views: Image['views']): Generator<string> {
  for (const { name, revision, nextId, blocks } of views) {
    const collection = `{"collection":"${name}","revision":${revision},"nextId":${nextId}`;
    let records = '';
    for (const block of blocks) {
      for (const record of block) {
        if (records.length > partLength) {
          yield `${collection},"records":[${records}]`;
          records = '';
        }
        records += (records === '' ? '' : ',') + JSON.stringify(record);
      }
    }
    yield `${collection},"records":[${records}]`;
  }
}

/** 1,000 at a time. */
export async function trimLog({ etcd, prefix }: LogPlace, sequence: number): Promise<void> {
  const log = `${prefix}log/`;
  const end = groupKey(prefix, sequence);
  for (;;) {
    const page = range(log, end, { limit: '1000', keys_only: true });
    const last = (await etcd.txn({ success: [page] })).found[0]?.at(-1);
    if (last === undefined) return;
    await etcd.txn({ success: [remove(log, `${last.key}\0`)] });
  }
}

export function unreadable(collection: string, { problem, cause }: Misfit): ClusterError {
  if (cause !== undefined) return misfit(`record ${cause.id} of ${collection} ${cause.reason}`);
  return damaged(`a record of ${collection} cannot be used: ${problem}`);
}

export function damaged(problem: string): ClusterError {
  return new ClusterError(78, `Cannot use the cluster: ${problem}; restore a backup`);
}
