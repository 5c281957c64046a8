/**
 * Finds or creates the shared log. Its keys, below a prefix that ends in a slash:
 *
 *   meta                   {"format":2,"epoch":"9f…","kid":null,"declaration":"1ab2c3d4"}
 *   declaration            {"books.title":{"kind":"text",…},…}; meta has its CRC-32
 *   head                   {"sequence":121,"id":"5f0c…-17","chain":2309737967,"bytes":4711}
 *   log/0000000000000120   {"id":"5f0c…-17","sequence":120,"commits":[[…],[…]],"crc":"…"}
 *   turns/5f0c…            left by a node that lost a race; the next winner removes it
 *   snapshot, snapshot/…   see `shared-snapshot.ts`
 *   admin-password         the first administrator's, if generated
 *   keys                   the key ring, if the nodes share no secret: see `auth/keys.ts`
 *
 *   case  what is found                                 what is done
 *   ----  --------------------------------------------  ----------------------------------
 *   M1    no key below the prefix                       one transaction writes meta and the
 *                                                       first head
 *   M2    no meta but other keys, another format, or    refused, 78
 *         the `kid` of another secret
 *   D0–1  the declaration of this node                  see `declaration.ts`
 *   M3    no head, a part of the snapshot missing, a    refused, 78: restore a backup
 *         chain that does not match, or a gap after
 *         the snapshot
 *   M4    a part of the snapshot missing for the first  another node has replaced the
 *         time                                          snapshot: read again, 5 times
 */
import { crc32 } from 'node:zlib';
import type { Random } from '../../base/system.ts';
import { hex, parseObject } from '../../store/format/journal.ts';
import { newEpoch } from '../../store/log.ts';
import type { Tables } from '../../store/memory/table.ts';
import { joinDeclarations, type Declaration } from './declaration.ts';
import { ClusterError, rangeEnd, isAt, put, range, type KeyValue, type Txn } from './etcd.ts';
import { firstHead } from './group-format.ts';
import {
  damaged,
  loadSnapshot,
  noSnapshot,
  parsePointer,
  type LogPlace,
  type SharedSnapshot,
} from './shared-snapshot.ts';

export interface FoundingOptions extends LogPlace {
  readonly creates: boolean;
  readonly declaration?: Declaration | undefined;
  /** The id of the key derived from the nodes' secret; `null` if the ring is in etcd. */
  readonly kid: string | null;
  readonly random: Random;
}

interface FoundLog {
  readonly epoch: string;
  readonly metaRevision: number;
  readonly snapshot: SharedSnapshot;
}

const format = 2;
/** The longest time that a start or a command waits for a member. */
export const openMs = 10_000;
const loadAttemptsMax = 5;

/**
 * Returns a transaction that etcd refuses if its quota is used up, because it could write. It never
 * does, since the key `meta` always exists.
 */
export function roomTest(prefix: string): Txn {
  return { compare: [isAt(`${prefix}meta`, 0)], success: [put(`${prefix}turns/`, '')] };
}

/** The value of the key `meta`. Without a digest, the next node writes its declaration. */
export function encodeMeta(epoch: string, kid: string | null, digest?: string): string {
  return JSON.stringify({ format, epoch, kid, declaration: digest });
}

/** Cases M1 to M4. Loads the snapshot into `tables`. @throws ClusterError */
export async function findLog(options: FoundingOptions, tables: Tables): Promise<FoundLog> {
  const { etcd, prefix, kid, creates, random } = options;
  await etcd.survey(`${prefix}meta`);
  for (let attempt = 1; attempt <= loadAttemptsMax; attempt += 1) {
    const [meta, declared, pointer, other] = await readKeys(options);
    if (meta === undefined) {
      if (other !== undefined || !creates) throw noCluster(prefix, other?.key);
      const head = put(`${prefix}head`, JSON.stringify(firstHead));
      const made = [put(`${prefix}meta`, encodeMeta(newEpoch(random), kid)), head];
      await etcd.txn({ compare: [isAt(`${prefix}meta`, 0)], success: made });
      continue;
    }
    const epoch = readEpoch(meta, kid);
    if (epoch === undefined) throw otherLog(meta);
    joined(options, meta, declared);
    const snapshot = pointer === undefined ? noSnapshot : parsePointer(pointer);
    if (snapshot === undefined) throw damaged('the pointer to its snapshot cannot be read');
    const isLoaded = await loadSnapshot(options, snapshot, tables);
    if (isLoaded) return { epoch, metaRevision: meta.revision, snapshot };
  }
  throw damaged('a part of its snapshot is missing');
}

/**
 * Adds this node's declaration to the log's, once all of the log could be read. Returns the
 * revision of `meta`. @throws ClusterError
 */
export async function addDeclaration(options: FoundingOptions): Promise<number> {
  const { etcd, prefix, kid } = options;
  for (;;) {
    const [meta, declared] = await readKeys(options);
    const epoch = meta && readEpoch(meta, kid);
    if (meta === undefined || epoch === undefined) throw otherLog(meta);
    const text = joined(options, meta, declared);
    if (text === undefined) return meta.revision;
    const key = `${prefix}meta`;
    const success = [
      put(key, encodeMeta(epoch, kid, digestText(text))),
      put(`${prefix}declaration`, text),
    ];
    await etcd.txn({ compare: [isAt(key, meta.revision)], success });
  }
}

async function readKeys({ etcd, prefix }: LogPlace): Promise<(KeyValue | undefined)[]> {
  const first = range(prefix, rangeEnd(prefix), { limit: '1', keys_only: true });
  const names = ['meta', 'declaration', 'snapshot'];
  const success = [...names.map((name) => range(prefix + name)), first];
  const { found } = await etcd.txn({ success }, AbortSignal.timeout(openMs));
  return found.map(([key]) => key);
}

/** Returns the log's new declaration if it changes. @throws ClusterError */
function joined(
  { declaration }: FoundingOptions,
  meta: KeyValue,
  declared: KeyValue | undefined,
): string | undefined {
  const digest = parseObject(meta.value)?.['declaration'];
  const text = digest === undefined ? '{}' : String(declared?.value);
  if (digest !== undefined && digest !== digestText(text))
    throw damaged('its declaration was changed');
  if (declaration === undefined) return undefined;
  const next = JSON.stringify(joinDeclarations(declaration, parseObject(text) ?? {}));
  return next === text ? undefined : next;
}

function digestText(text: string): string {
  return hex(crc32(text));
}

/** Returns `undefined` if this version or this secret cannot use the log. */
export function readEpoch({ value }: KeyValue, expected: string | null): string | undefined {
  const { format: found, epoch, kid } = parseObject(value) ?? {};
  return found === format && kid === expected ? String(epoch) : undefined;
}

function otherLog(meta: KeyValue | undefined): ClusterError {
  const problem = `its key meta is ${String(meta?.value)}, which does not match this node`;
  const remedy = 'all nodes need the same version, and the same CAIRN_SECRET or none';
  return new ClusterError(78, `Cannot use the cluster: ${problem}; ${remedy}`);
}

/** `other` is a key found below the prefix. */
export function noCluster(prefix: string, other: string | undefined): ClusterError {
  const remedy = `use another --cluster-prefix, or remove it: etcdctl del --prefix ${prefix}`;
  const problem =
    other === undefined
      ? 'no cluster is there; start a server first, or check --cluster-prefix'
      : `it holds ${other}, and no cluster; ${remedy}`;
  return new ClusterError(78, `Cannot use ${prefix} in etcd: ${problem}`);
}
