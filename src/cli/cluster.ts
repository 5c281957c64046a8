import { joinCluster, type ClusterNode } from '../app/cluster.ts';
import { keyFile } from '../app/data.ts';
import { completeOptions } from '../app/options.ts';
import { newKeyRing, parseKeyRing, rotateKeyRing, serialiseKeyRing, type KeyRing } from '../auth/keys.ts';
import { invariant } from '../base/errors.ts';
import { systemClock as clock, systemRandom as random } from '../base/system.ts';
import type { Config } from '../config/config.ts';
import { UsageError } from '../config/settings.ts';
import { isAt, put, range } from '../store/cluster/etcd.ts';
import { founding, noCluster } from '../store/cluster/founding.ts';
import { writeSnapshot } from '../store/cluster/shared-snapshot.ts';
import { newEpoch } from '../store/log.ts';
import { openStore } from '../store/open-store.ts';
import type { AnyTable } from '../store/memory/table.ts';
import type { Copy } from '../store/recovery/offline.ts';
import { imageOf, type Image } from '../store/recovery/snapshot.ts';
import { ClusterError } from '../store/store.ts';

/** Reaches the cluster that the options of a server name. It is not made where it is not there. */
export function openTools({ cluster, secret }: Config): ClusterTools {
  invariant(cluster !== undefined, 'the options name a cluster');
  return new ClusterTools(joinCluster(cluster, completeOptions({ cluster, secret }), false));
}

/** What commands do with a cluster. */
export class ClusterTools {
  readonly node: ClusterNode;

  constructor(node: ClusterNode) {
    this.node = node;
  }

  /** What a cluster holds, as a node that starts now finds it. */
  async read(): Promise<Copy> {
    const { node } = this;
    let tables = new Map<string, AnyTable>();
    const store = openStore({ clock, random, log: (given) => node.log((tables = given)) });
    await store.start();
    const image = imageOf(tables.values(), store.epoch, store.status().sequence);
    const [, ring] = node.kid === null ? await this.readRing() : [];
    await store.close();
    return { image, alongside: new Map(ring && [[keyFile, Buffer.from(serialiseKeyRing(ring))]]) };
  }

  /** Makes a cluster of what was copied. @throws ClusterError where there is anything below the prefix already */
  async write({ views, epoch, through }: Image): Promise<void> {
    const { etcd, prefix, kid } = this.node;
    await etcd.survey();
    const patience = AbortSignal.timeout(10_000);
    const below = range(prefix, `${prefix.slice(0, -1)}0`, { limit: '1', keys_only: true });
    const [[other] = []] = (await etcd.txn({ success: [below] }, patience)).found;
    const head = { sequence: through, id: '', chain: 0 };
    const snapshot = { views, head, name: random(8).toString('hex') };
    const compare = [isAt(`${prefix}meta`, 0)];
    const isEmpty = other === undefined;
    const also = founding(this.node, epoch, kid, head);
    if (isEmpty && (await writeSnapshot(this.node, snapshot, { compare, also })) !== undefined) return;
    throw new ClusterError(78, `Cannot restore to ${prefix} in etcd: it is not empty; use another --cluster-prefix`);
  }

  /** Gives a cluster a new epoch, so that nodes of before end, and old entity tags match nothing. */
  async renewEpoch(): Promise<void> {
    const { etcd, prefix, kid } = this.node;
    const [[meta] = []] = (await etcd.txn({ success: [range(`${prefix}meta`)] }, AbortSignal.timeout(10_000))).found;
    if (meta === undefined) throw noCluster(prefix, undefined);
    const [first] = founding(this.node, newEpoch(random), kid);
    await etcd.txn({ compare: [isAt(`${prefix}meta`, meta.revision)], success: first === undefined ? [] : [first] });
  }

  /** The key ring in etcd and its revision; 0 where there is none. @throws UsageError where the nodes share a secret */
  async readRing(): Promise<[revision: number, ring?: KeyRing]> {
    const { etcd, prefix, kid } = this.node;
    if (kid !== null) throw new UsageError('Cannot list or rotate keys: the only key is CAIRN_SECRET; change it there');
    const success = [range(`${prefix}keys`), range(`${prefix}meta`)];
    const [[found] = [], [meta] = []] = (await etcd.txn({ success }, AbortSignal.timeout(10_000))).found;
    if (meta === undefined) throw noCluster(prefix, undefined);
    return found === undefined ? [0] : [found.revision, parseKeyRing(found.value)];
  }

  /** Rotates the ring in etcd, and returns the id of the new key. */
  async rotateRing(): Promise<string> {
    const { etcd, prefix } = this.node;
    for (;;) {
      const [revision, ring = newKeyRing(random, clock.now())] = await this.readRing();
      const next = rotateKeyRing(ring, random, clock.now());
      const compare = [isAt(`${prefix}keys`, revision)];
      const { succeeded } = await etcd.txn({ compare, success: [put(`${prefix}keys`, serialiseKeyRing(next))] });
      if (succeeded) return next.keys[0].kid;
    }
  }
}
