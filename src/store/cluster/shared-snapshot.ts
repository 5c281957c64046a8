/**
 * Snapshots of the shared log. Keys, below the prefix of `shared-log.ts`:
 *
 *   snapshot               {"name":"c0ffee…","head":{…},"parts":7}
 *   snapshot/c0ffee…/0     {"collection":"items","revision":90,"nextId":6,"records":[{…},{…}],"crc":"…"}, gzip
 *
 * `head` describes the last group whose changes are in it. The parts are lines as in `journal-format.ts`, the `crc` of
 * each started from that of the one before. They are written first, below a name that no other
 * snapshot has; then one txn swaps the pointer and removes all other parts.
 *
 *   case  what is found                                           what is done
 *   ----  ------------------------------------------------------  -------------------------------------------------
 *   S1    two nodes write a snapshot at once                       one pointer wins; the loser removes its chunks
 *   S2    whether the pointer was written is unknown               it is read: ours has our name
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { decodeLine, encodeLine, parseObject } from '../journal/journal-format.ts';
import { isCollectionName, isCount, tableOf, type AnyTable } from '../memory/table.ts';
import type { Image } from '../recovery/snapshot.ts';
import { ClusterError } from '../store.ts';
import { endOf, put, range, remove, type Etcd } from './etcd.ts';

/** Where in etcd a log is. */
export interface Place {
  readonly etcd: Etcd;
  /** Begins all its keys, and ends in a slash. */
  readonly prefix: string;
}

/** Describes the last group of a log. */
export interface Head {
  /** Sequence number of its last commit. */
  readonly sequence: number;
  /** That of no other group. */
  readonly id: string;
  /** The CRC-32 that the line of the next group goes on from. */
  readonly chain: number;
}

/** How much text of records a part has before its last one: that holds the event loop for some 2 ms. */
const partLength = 128 * 1024;

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

/** The last group whose changes are in a snapshot, by its pointer. @throws ClusterError */
export function headOf(pointer: Buffer): Head {
  const { head } = parseObject(pointer) ?? {};
  const { sequence, id, chain } = isJsonObject(head) ? head : {};
  if (isCount(sequence) && typeof id === 'string' && isCount(chain)) return { sequence, id, chain };
  throw damaged('the pointer to its snapshot cannot be read');
}

/**
 * Loads a snapshot into the tables, to which it adds carried collections. Returns its size before compression, or
 * `undefined` where a part of it is missing; then the tables are as before. @throws ClusterError
 */
export async function loadSnapshot(
  { etcd, prefix }: Place, pointer: Buffer, tables: Map<string, AnyTable>,
): Promise<number | undefined> {
  const { name, parts } = parseObject(pointer) ?? {};
  const contents: Buffer[] = [];
  while (contents.length !== parts) {
    const { found } = await etcd.txn({ success: [range(`${prefix}snapshot/${String(name)}/${contents.length}`)] });
    const [part] = found[0] ?? [];
    if (part === undefined) return undefined;
    contents.push(part.value);
  }
  let bytes = 0;
  let chain = 0;
  for (const content of contents) {
    const line = await decompress(content).catch(() => Buffer.alloc(0));
    const decoded = decodeLine(line, chain);
    if (decoded === undefined) throw damaged('a part of its snapshot was changed');
    loadPart(decoded.value, tables);
    bytes += line.length;
    chain = decoded.chain;
  }
  return bytes;
}

function loadPart({ collection, revision, nextId, records }: JsonObject, tables: Map<string, AnyTable>): void {
  const isNamed = typeof collection === 'string' && isCollectionName(collection);
  if (!isNamed || !isCount(revision) || !isCount(nextId) || !Array.isArray(records)) {
    throw damaged('a part of its snapshot cannot be read');
  }
  const table = tableOf(tables, collection);
  for (const record of records) {
    const problem = isJsonObject(record) ? table.load(record) : 'it is no record';
    if (problem !== undefined) throw damaged(`a record of ${collection} cannot be used: ${problem}`);
  }
  table.advance(revision, nextId);
}

/**
 * Writes a snapshot, and does `also` in the txn that swaps the pointer, if `compare` holds then. Returns its size
 * before compression and the revision of etcd that wrote the pointer; `undefined` where `compare` did not hold.
 */
export async function writeSnapshot(
  { etcd, prefix }: Place,
  { views, head, name }: Pick<Image, 'views'> & { readonly head: Head; readonly name: string },
  { compare, also = [] }: { readonly compare: readonly JsonObject[]; readonly also?: readonly JsonObject[] },
): Promise<{ readonly bytes: number; readonly revision: number } | undefined> {
  const all = `${prefix}snapshot/`;
  const own = `${all}${name}/`;
  let parts = 0;
  let chain = 0;
  let bytes = 0;
  for (const body of bodiesOf(views)) {
    const line = encodeLine(body, chain);
    await etcd.txn({ success: [put(own + parts, await compress(line.bytes))] });
    chain = line.chain;
    bytes += line.bytes.length;
    parts += 1;
  }
  const pointer = JSON.stringify({ name, head, parts });
  const swap = [put(`${prefix}snapshot`, pointer), remove(all, own), remove(endOf(own), endOf(all)), ...also];
  const answer = await etcd.txn({ compare, success: swap, failure: [range(`${prefix}snapshot`)] });
  const [[found] = []] = answer.found;
  if (answer.succeeded) return { bytes, revision: answer.revision };
  if (found?.value.toString() === pointer) return { bytes, revision: found.revision };
  await etcd.txn({ success: [remove(own, endOf(own))] });
  return undefined;
}

function* bodiesOf(views: Image['views']): Generator<string> {
  for (const { name, revision, nextId, blocks } of views) {
    const start = `{"collection":"${name}","revision":${revision},"nextId":${nextId},"records":[`;
    let records = '';
    for (const block of blocks) {
      for (const record of block) {
        if (records.length > partLength) {
          yield `${start}${records}]`;
          records = '';
        }
        records += (records === '' ? '' : ',') + JSON.stringify(record);
      }
    }
    yield `${start}${records}]`;
  }
}

/** The key of the group whose first sequence number this is. */
export function groupKey(prefix: string, sequence: number): string {
  return `${prefix}log/${String(sequence).padStart(16, '0')}`;
}

/** Removes the groups that come before this sequence number, some at a time. */
export async function trimLog({ etcd, prefix }: Place, sequence: number): Promise<void> {
  const [log, end] = [`${prefix}log/`, groupKey(prefix, sequence)];
  for (;;) {
    const { found } = await etcd.txn({ success: [range(log, end, { limit: '1000', keys_only: true })] });
    const last = found[0]?.at(-1);
    if (last === undefined) return;
    await etcd.txn({ success: [remove(log, `${last.key}\0`)] });
  }
}

export function damaged(problem: string): ClusterError {
  return new ClusterError(78, `Cannot use the cluster: ${problem}; restore a backup`);
}
