import { joinCluster, type ClusterNode } from '../app/cluster.ts';
import { keyFile } from '../app/data.ts';
import { completeOptions } from '../app/options.ts';
import { serialiseKeyRing } from '../auth/keys.ts';
import { systemClock as clock, systemRandom as random } from '../base/system.ts';
import type { ClusterOptions } from '../config/settings.ts';
import { ClusterError, hasValue, isAt, put, range } from '../store/cluster/etcd.ts';
import { findLog, metaOf } from '../store/cluster/founding.ts';
import { firstHead } from '../store/cluster/group-format.ts';
import { writeSnapshot } from '../store/cluster/shared-snapshot.ts';
import { newEpoch } from '../store/log.ts';
import { openStore } from '../store/open-store.ts';
import type { AnyTable } from '../store/memory/table.ts';
import type { Copy } from '../store/recovery/offline.ts';
import { imageOf, type Image } from '../store/recovery/snapshot.ts';

/** Reaches a cluster. Does not make one. */
export function openTools(cluster: ClusterOptions, secret: string | undefined): ClusterTools {
  return new ClusterTools(joinCluster(cluster, completeOptions({ cluster, secret }), false));
}

/** The work of commands on a cluster. */
export class ClusterTools {
  readonly node: ClusterNode;

  constructor(node: ClusterNode) {
    this.node = node;
  }

  /** Reads all records and the key ring, as a node does that starts now. */
  async read(): Promise<Copy> {
    const { node } = this;
    const { store, tables } = await this.#open();
    const image = imageOf(tables.values(), store.epoch, store.status().sequence);
    const ring = node.kid === null ? await node.changeKeys((found) => found) : undefined;
    await store.close();
    const keys = ring && Buffer.from(serialiseKeyRing(ring));
    return { image, alongside: new Map(keys && [[keyFile, keys]]) };
  }

  /** Makes a cluster of a copy. @throws ClusterError where the prefix has one already */
  async write({ views, through }: Image): Promise<void> {
    const { node } = this;
    const [key, name] = [`${node.prefix}head`, random(8).toString('hex')];
    const { metaRevision } = await findLog({ ...node, creates: true, random }, new Map());
    const isEmpty = hasValue(key, JSON.stringify(firstHead));
    const compare = [isAt(`${node.prefix}meta`, metaRevision), isEmpty];
    const head = { ...firstHead, sequence: through };
    const also = [put(key, JSON.stringify(head))];
    if (await writeSnapshot(node, { views, head }, name, compare, also)) return;
    const problem = 'it is not empty; use another --cluster-prefix';
    throw new ClusterError(78, `Cannot restore to ${node.prefix} in etcd: ${problem}`);
  }

  /**
   * Gives the cluster a new epoch: running nodes end, no former entity tag matches, and the next
   * node declares what records look like. A snapshot first replaces versions of records that do
   * not fit its declaration any more.
   */
  async renewEpoch(): Promise<void> {
    const { etcd, prefix, kid } = this.node;
    const { store } = await this.#open();
    await store.checkpoint();
    const key = `${prefix}meta`;
    const [[meta] = []] = (await etcd.txn({ success: [range(key)] })).found;
    const compare = [isAt(key, meta?.revision ?? 0)];
    await etcd.txn({ compare, success: [put(key, metaOf(newEpoch(random), kid))] });
    await store.close();
  }

  async #open() {
    let tables = new Map<string, AnyTable>();
    const store = openStore({ clock, random, log: (given) => this.node.log((tables = given)) });
    await store.start();
    return { store, tables };
  }
}
