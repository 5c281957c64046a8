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
import { joinCluster, type ClusterNode, type NodeOptions } from './node.ts';
import { writeSnapshot } from './shared-snapshot.ts';

/** The work of commands on a cluster. Only servers make one, when their store starts. */
export class ClusterTools implements SharedTools {
  readonly place: ClusterNode;

  constructor(cluster: ClusterOptions, options: NodeOptions, purpose: SharedPurpose) {
    this.place = joinCluster(cluster, options, purpose);
  }

  /** Reads all records and the key ring, as a node does that starts now. */
  async read(): Promise<{ readonly image: Image; readonly keys: Buffer | undefined }> {
    const { place: node } = this;
    const { store, tables } = await this.#open();
    const image = imageOf(tables.values(), store.epoch, store.sequence);
    const ring = node.kid === null ? await node.changeKeys((found) => found) : undefined;
    await store.close();
    return { image, keys: ring && Buffer.from(serialiseKeyRing(ring)) };
  }

  /** Makes a cluster of a copy. @throws ClusterError where the prefix has one already */
  async write({ views, through }: Image): Promise<void> {
    const { place: node } = this;
    const key = `${node.prefix}head`;
    const name = random(8).toString('hex');
    const { metaRevision } = await findLog({ ...node, creates: true, random }, new Tables());
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
    const { etcd, prefix, kid } = this.place;
    const { store } = await this.#open();
    await store.checkpoint();
    const key = `${prefix}meta`;
    const [[meta] = []] = (await etcd.txn({ success: [range(key)] })).found;
    const compare = [isAt(key, meta?.revision ?? 0)];
    await etcd.txn({ compare, success: [put(key, metaOf(newEpoch(random), kid))] });
    await store.close();
  }

  /** Keeps a password, unless another node has kept one before. Returns the one that is kept. */
  async keep(password: string) {
    const key = this.#passwordKey;
    const compare = [isAt(key, 0)];
    const kept = range(key);
    const { found } = await this.place.etcd.txn({
      compare,
      success: [put(key, password), kept],
      failure: [kept],
    });
    const where = `etcd: see "etcdctl get --print-value-only ${key}"`;
    return { password: String(found.at(-1)?.[0]?.value), where };
  }

  /** Removes the password. */
  forget(): Promise<unknown> {
    return this.place.etcd.txn({ success: [remove(this.#passwordKey)] });
  }

  /** @throws ClusterError where etcd accepts no writes */
  async testRoom(): Promise<void> {
    await this.place.etcd.txn(roomTest(this.place.prefix), AbortSignal.timeout(openMs));
  }

  get #passwordKey(): string {
    return `${this.place.prefix}admin-password`;
  }

  async #open() {
    let tables = new Tables();
    const store = openStore({ clock, random, log: (given) => this.place.log((tables = given)) });
    await store.start();
    return { store, tables };
  }
}
