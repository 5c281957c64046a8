import type { SharedPurpose, SharedTools } from '../../api/shared-place.ts';
import { serialiseKeyRing } from '../../auth/keys.ts';
import { systemClock as clock, systemRandom as random } from '../../base/system.ts';
import type { ClusterOptions } from '../../config/options.ts';
import { imageOf, type Image } from '../../store/format/snapshot.ts';
import { newEpoch } from '../../store/log.ts';
import { Tables } from '../../store/memory/table.ts';
import { openStore } from '../../store/open-store.ts';
import { ClusterError, hasValue, isAt, put, range, remove } from './etcd.ts';
import { findLog, metaOf, openMs, roomTest } from './founding.ts';
import { firstHead } from './group-format.ts';
import { joinCluster, type NodeOptions } from './node.ts';
import { writeSnapshot } from './shared-snapshot.ts';

/** Joins a cluster as a node that can do the work of commands, too. @throws OptionError */
export function joinWithTools(
  cluster: ClusterOptions,
  options: NodeOptions,
  purpose: SharedPurpose,
): SharedTools {
  const node = joinCluster(cluster, options, purpose);
  const { etcd, prefix, kid } = node;
  const passwordKey = `${prefix}admin-password`;
  /** Only servers make a cluster, when their store starts. */
  const open = async () => {
    let tables = new Tables();
    const store = openStore({ clock, random, log: (given) => node.log((tables = given)) });
    await store.start();
    return { store, tables };
  };
  return Object.assign(node, {
    async read() {
      const { store, tables } = await open();
      const image = imageOf(tables.values(), store.epoch, store.sequence);
      const ring = kid === null ? await node.changeKeys((found) => found) : undefined;
      await store.close();
      return { image, keys: ring && Buffer.from(serialiseKeyRing(ring)) };
    },

    /** @throws ClusterError where the prefix has a cluster already */
    async write({ views, through }: Image) {
      const key = `${prefix}head`;
      const name = random(8).toString('hex');
      const { metaRevision } = await findLog({ ...node, creates: true, random }, new Tables());
      const isEmpty = hasValue(key, JSON.stringify(firstHead));
      const compare = [isAt(`${prefix}meta`, metaRevision), isEmpty];
      const head = { ...firstHead, sequence: through };
      const also = [put(key, JSON.stringify(head))];
      if (await writeSnapshot(node, { views, head }, name, compare, also)) return;
      const problem = 'it is not empty; use another --cluster-prefix';
      throw new ClusterError(78, `Cannot restore to ${prefix} in etcd: ${problem}`);
    },

    /**
     * Running nodes end, no former entity tag matches, and the next node declares what records look
     * like. A snapshot first replaces versions of records that do not fit its declaration any more.
     */
    async renewEpoch() {
      const { store } = await open();
      await store.checkpoint();
      const key = `${prefix}meta`;
      const [[meta] = []] = (await etcd.txn({ success: [range(key)] })).found;
      const compare = [isAt(key, meta?.revision ?? 0)];
      await etcd.txn({ compare, success: [put(key, metaOf(newEpoch(random), kid))] });
      await store.close();
    },

    async keep(password: string) {
      const compare = [isAt(passwordKey, 0)];
      const kept = range(passwordKey);
      const success = [put(passwordKey, password), kept];
      const { found } = await etcd.txn({ compare, success, failure: [kept] });
      const where = `etcd: see "etcdctl get --print-value-only ${passwordKey}"`;
      return { password: String(found.at(-1)?.[0]?.value), where };
    },

    forget: () => etcd.txn({ success: [remove(passwordKey)] }),

    /** @throws ClusterError */
    async testRoom() {
      await etcd.txn(roomTest(prefix), AbortSignal.timeout(openMs));
    },
  });
}
