import { keyRingOfSecret, newKeyRing, parseKeyRing, serialiseKeyRing, type KeyRing } from '../auth/keys.ts';
import type { ClusterOptions } from '../config/settings.ts';
import { Etcd, isAt, put, range } from '../store/cluster/etcd.ts';
import { SharedLog } from '../store/cluster/shared-log.ts';
import type { Place } from '../store/cluster/shared-snapshot.ts';
import type { Log } from '../store/log.ts';
import type { AnyTable } from '../store/memory/table.ts';
import type { CompleteOptions } from './options.ts';

/** This process as a node of a cluster. */
export interface ClusterNode extends Place {
  /** The id of the key made of `secret`; `null` where the key ring is in etcd. */
  readonly kid: string | null;
  /** Makes the log of the store. */
  log(tables: Map<string, AnyTable>): Log;
  /** The key ring, which is made where there is none. Comes after the start of the store. @throws KeyRingError */
  loadKeys(): Promise<KeyRing>;
  /** Called with each further ring. */
  onKeys: (ring: KeyRing) => void;
}

/** Prepares a node; nothing is asked before its store starts. */
export function joinCluster(cluster: ClusterOptions, options: CompleteOptions, creates = true): ClusterNode {
  const { secret, clock, random, log } = options;
  const { members, prefix = 'cairn/', maxAgeMs = 5000, tls = {}, user } = cluster;
  const etcd = new Etcd({ members, tls, user }, random(1)[0] ?? 0);
  const given = secret === undefined ? undefined : keyRingOfSecret(secret, clock.now());
  const kid = given?.keys[0].kid ?? null;
  let ring = given;
  const node: ClusterNode = {
    etcd,
    prefix,
    kid,
    log: (tables) => new SharedLog({
      etcd, prefix, kid, creates, maxAgeMs, clock, random,
      onNotice: (notice, level = 'warn') => log.message(level, `The cluster says: ${notice}`),
      onKeys(content) {
        if (given === undefined) node.onKeys((ring = parseKeyRing(content)));
      },
    }, tables),
    async loadKeys() {
      if (ring === undefined) {
        const first = serialiseKeyRing(newKeyRing(random, clock.now()));
        const key = `${prefix}keys`;
        const make = { compare: [isAt(key, 0)], success: [put(key, first)], failure: [range(key)] };
        const [[other] = []] = (await etcd.txn(make)).found;
        ring = parseKeyRing(other?.value ?? Buffer.from(first));
      }
      return ring;
    },
    onKeys: () => undefined,
  };
  return node;
}
