/**
 * How the shared log is found and made. Its keys, below a prefix that ends in a slash:
 *
 *   meta                   {"format":1,"epoch":"9f…","kid":null}
 *   head                   {"sequence":121,"id":"5f0c…-17","chain":"89abcdef"}, which describes the last group
 *   log/0000000000000120   {"id":"5f0c…-17","sequence":120,"commits":[[…],[…]],"crc":"89abcdef"}
 *   turns/5f0c…            left by a node whose append has lost: the next one that wins finds and removes it
 *   snapshot, snapshot/…   see `shared-snapshot.ts`
 *   keys                   the key ring, where the nodes do not share a secret: see `src/auth/keys.ts`
 *
 *   case  what is found                                           what is done
 *   ----  ------------------------------------------------------  -------------------------------------------------
 *   M1    no meta, and nothing else below the prefix               made, with the first head, by one txn
 *   M2    a newer format, other keys below the prefix, or the      refused, 78
 *         `kid` of another secret
 *   M3    no head, a part of a snapshot missing, a chain that      refused, 78: restore a backup
 *         does not fit, a gap after the snapshot
 *   M4    a part of a snapshot missing for the first time          another node has replaced it: begun again, 5 times
 */
import type { JsonObject } from '../../base/json.ts';
import type { Random } from '../../base/system.ts';
import { parseObject } from '../journal/journal-format.ts';
import { newEpoch } from '../log.ts';
import type { AnyTable } from '../memory/table.ts';
import { ClusterError } from '../store.ts';
import { endOf, isAt, put, range, type KeyValue } from './etcd.ts';
import { damaged, headOf, loadSnapshot, type Head, type Place } from './shared-snapshot.ts';

export interface FoundingOptions extends Place {
  /** Makes the log where there is none. */
  readonly creates: boolean;
  /** The id of the key that all nodes make of their secret; `null` where the key ring is in etcd. */
  readonly kid: string | null;
  readonly random: Random;
}

/** A log as a node finds it, with its snapshot in the tables. */
export interface Found {
  readonly epoch: string;
  /** The revisions of etcd that last wrote `meta` and the pointer to the snapshot; 0 for one that is absent. */
  readonly metaRevision: number;
  readonly snapshotRevision: number;
  /** The last group that is in the snapshot. */
  readonly head: Head;
  /** The size of the snapshot. */
  readonly bytes: number;
}

const format = 1;
/** How long members are asked in vain, and how often the reading of a snapshot is begun. */
const openMs = 10_000;
const loadAttemptsMax = 5;

const firstHead: Head = { sequence: 0, id: '', chain: 0 };

/** Writes the first keys of a log; `head` is that of its snapshot, if it has one. */
export function founding({ prefix }: Place, epoch: string, kid: string | null, head = firstHead): JsonObject[] {
  return [put(`${prefix}meta`, JSON.stringify({ format, epoch, kid })), put(`${prefix}head`, JSON.stringify(head))];
}

/** Reads the snapshot into `tables`, and makes the log where there is none: the cases M1 to M4. @throws ClusterError */
export async function findLog(options: FoundingOptions, tables: Map<string, AnyTable>): Promise<Found> {
  const { etcd, prefix, kid, creates, random } = options;
  const patience = AbortSignal.timeout(openMs);
  const success = [range(`${prefix}meta`), range(`${prefix}snapshot`), range(prefix, endOf(prefix), { limit: '1' })];
  await etcd.survey();
  for (let attempt = 1; attempt <= loadAttemptsMax; attempt += 1) {
    const [[meta] = [], [snapshot] = [], [other] = []] = (await etcd.txn({ success }, patience)).found;
    if (meta === undefined) {
      if (other !== undefined || !creates) throw noCluster(prefix, other?.key);
      const first = founding(options, newEpoch(random), kid);
      await etcd.txn({ compare: [isAt(`${prefix}meta`, 0)], success: first });
      continue;
    }
    const found = { epoch: epochOf(meta, kid), metaRevision: meta.revision };
    if (snapshot === undefined) return { ...found, snapshotRevision: 0, head: firstHead, bytes: 0 };
    const bytes = await loadSnapshot(options, snapshot.value, tables);
    if (bytes === undefined) continue;
    return { ...found, snapshotRevision: snapshot.revision, head: headOf(snapshot.value), bytes };
  }
  throw damaged('a part of its snapshot is missing');
}

function epochOf({ value }: KeyValue, expected: string | null): string {
  const { format: found, epoch, kid } = parseObject(value) ?? {};
  if (found === format && kid === expected) return String(epoch);
  const remedy = 'all nodes need the same version, and the same CAIRN_SECRET or none';
  throw new ClusterError(78, `Cannot use the cluster: it has ${String(value)}, which is not of this node; ${remedy}`);
}

/** There is no log below the prefix, and none is made. */
export function noCluster(prefix: string, other: string | undefined): ClusterError {
  const remedy = `use another --cluster-prefix, or remove it: etcdctl del --prefix ${prefix}`;
  const problem = other === undefined ? 'no cluster is there' : `it holds ${other}, and no cluster; ${remedy}`;
  return new ClusterError(78, `Cannot use ${prefix} in etcd: ${problem}`);
}
