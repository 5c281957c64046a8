/**
 * How a node finds or makes the shared log. Its keys, below a prefix that ends in a slash:
 *
 *   meta                   {"format":1,"epoch":"9f…","kid":null}
 *   head                   {"sequence":121,"id":"5f0c…-17","chain":2309737967,"bytes":4711}
 *   log/0000000000000120   {"id":"5f0c…-17","sequence":120,"commits":[[…],[…]],"crc":"…"}
 *   turns/5f0c…            left by a node that lost a race; the next winner removes it
 *   snapshot, snapshot/…   see `shared-snapshot.ts`
 *   keys                   the key ring, where the nodes share no secret: see `auth/keys.ts`
 *
 *   case  what is found                                 what is done
 *   ----  --------------------------------------------  ----------------------------------
 *   M1    no key below the prefix                       one transaction writes meta and the
 *                                                       first head
 *   M2    no meta but other keys, a newer format, or    refused, 78
 *         the `kid` of another secret
 *   M3    no head, a part of the snapshot missing, a    refused, 78: restore a backup
 *         chain that does not match, or a gap after
 *         the snapshot
 *   M4    a part of the snapshot missing for the first  another node has replaced the
 *         time                                          snapshot: read again, 5 times
 */
import type { Random } from '../../base/system.ts';
import { parseObject } from '../journal/journal-format.ts';
import { newEpoch } from '../log.ts';
import type { AnyTable } from '../memory/table.ts';
import { ClusterError } from '../cluster/etcd.ts';
import { endOf, isAt, put, range, type KeyValue } from './etcd.ts';
import { firstHead } from './group-format.ts';
import {
  damaged,
  loadSnapshot,
  noSnapshot,
  parsePointer,
  type Place,
  type Snapshot,
} from './shared-snapshot.ts';

export interface FoundingOptions extends Place {
  /** Whether to make the log where there is none. */
  readonly creates: boolean;
  /** The id of the key that all nodes derive from their secret; `null`: the ring is in etcd. */
  readonly kid: string | null;
  readonly random: Random;
}

/** A log as a node finds it. */
export interface FoundLog {
  readonly epoch: string;
  /** The revision of etcd that last wrote `meta`. */
  readonly metaRevision: number;
  readonly snapshot: Snapshot;
}

const format = 1;
/** How long a start or a command asks members that do not answer. */
export const openMs = 10_000;
const loadAttemptsMax = 5;

/** The value of the key `meta`. */
export function metaOf(epoch: string, kid: string | null): string {
  return JSON.stringify({ format, epoch, kid });
}

/**
 * Finds the log, or makes it, and loads its snapshot into `tables`: the cases M1 to M4.
 * @throws ClusterError
 */
export async function findLog(
  options: FoundingOptions,
  tables: Map<string, AnyTable>,
): Promise<FoundLog> {
  const { etcd, prefix, kid, creates, random } = options;
  const meta = `${prefix}meta`;
  const first = range(prefix, endOf(prefix), { limit: '1', keys_only: true });
  const success = [range(meta), range(`${prefix}snapshot`), first];
  const patience = AbortSignal.timeout(openMs);
  await etcd.survey(meta);
  for (let attempt = 1; attempt <= loadAttemptsMax; attempt += 1) {
    const { found } = await etcd.txn({ success }, patience);
    const [[value] = [], [pointer] = [], [other] = []] = found;
    if (value === undefined) {
      if (other !== undefined || !creates) throw noCluster(prefix, other?.key);
      const head = put(`${prefix}head`, JSON.stringify(firstHead));
      const made = [put(meta, metaOf(newEpoch(random), kid)), head];
      await etcd.txn({ compare: [isAt(meta, 0)], success: made });
      continue;
    }
    const epoch = epochOf(value, kid);
    const snapshot = pointer === undefined ? noSnapshot : parsePointer(pointer);
    if (snapshot === undefined) throw damaged('the pointer to its snapshot cannot be read');
    const isLoaded = await loadSnapshot(options, snapshot, tables);
    if (isLoaded) return { epoch, metaRevision: value.revision, snapshot };
  }
  throw damaged('a part of its snapshot is missing');
}

function epochOf({ value }: KeyValue, expected: string | null): string {
  const { format: found, epoch, kid } = parseObject(value) ?? {};
  if (found === format && kid === expected) return String(epoch);
  const problem = `its key meta is ${String(value)}, which does not match this node`;
  const remedy = 'all nodes need the same version, and the same CAIRN_SECRET or none';
  throw new ClusterError(78, `Cannot use the cluster: ${problem}; ${remedy}`);
}

/** The error where there is no log below the prefix, but perhaps `other`. */
export function noCluster(prefix: string, other: string | undefined): ClusterError {
  const remedy = `use another --cluster-prefix, or remove it: etcdctl del --prefix ${prefix}`;
  const problem =
    other === undefined ? 'no cluster is there' : `it holds ${other}, and no cluster; ${remedy}`;
  return new ClusterError(78, `Cannot use ${prefix} in etcd: ${problem}`);
}
