import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';

import { systemClock, systemRandom, type Clock } from '../../../src/base/system.ts';
import { Etcd, type EtcdOptions } from '../../../src/options/cluster/etcd.ts';
import { SharedLog, type SharedLogOptions } from '../../../src/options/cluster/shared-log.ts';
import { openStore } from '../../../src/store/open-store.ts';
import type { Writer } from '../../../src/store/writer.ts';
import type { Tables } from '../../../src/store/memory/table.ts';
import type { Collection, StoredRecord } from '../../../src/store/store.ts';

export interface Thing extends StoredRecord {
  readonly name: string;
  /** The operation that wrote it, if the test needs it. */
  readonly by?: string;
}

export interface NodeOptions extends Partial<Omit<SharedLogOptions, 'etcd'>> {
  readonly etcd?: Partial<EtcdOptions>;
  /** The index of the member that is asked first. */
  readonly first?: number;
  /** The name of the collection; `things` if absent. */
  readonly collection?: string;
}

/** One node of a cluster: a store over the log in etcd, with a collection of things. */
export interface Node {
  readonly store: Writer;
  readonly things: Collection<Thing>;
  readonly notices: string[];
  /** The failures that ended it. */
  readonly failures: unknown[];
  /** The key ring in etcd. */
  keysSeen: string;
  add(name: string): Promise<Thing>;
  names(): string[];
  close(): Promise<void>;
}

/** Makes the log of a node. */
export function sharedLog(members: readonly string[], options: Omit<NodeOptions, 'collection'> = {}) {
  const { etcd, first = 0, ...log } = options;
  return (tables: Tables) => new SharedLog({
    etcd: new Etcd({ members, ...etcd }, first),
    prefix: 'cairn/',
    kid: null,
    creates: true,
    maxAgeMs: 5000,
    clock: systemClock,
    random: systemRandom,
    onNotice: () => undefined,
    onKeys: () => undefined,
    ...log,
  }, tables);
}

/** Makes a node that has not started. */
export function makeNode(members: readonly string[], options: NodeOptions = {}): Node {
  const { collection = 'things', clock = systemClock, ...log } = options;
  const notices: string[] = [];
  const failures: unknown[] = [];
  const store = openStore({
    clock,
    random: systemRandom,
    onFailure: (error) => void failures.push(error),
    log: sharedLog(members, {
      clock,
      onNotice: (notice) => void notices.push(notice),
      onKeys: (content) => void (node.keysSeen = String(content)),
      ...log,
    }),
  });
  const things = store.collection<Thing>({
    name: collection,
    parse: ({ name, by = '', ...rest }) =>
      typeof name === 'string' && typeof by === 'string' ? { ...rest, name, ...(by !== '' && { by }) } : 'is none',
    unique: { name: ({ name }) => name },
  });
  const node: Node = {
    store, things, notices, failures,
    keysSeen: '',
    add: (name) => store.write((transaction) => transaction.of(things).insert({ name })),
    names: () => things.view().blocks.flat().map(({ name }) => name),
    close: () => store.close(),
  };
  return node;
}

export async function startNode(t: TestContext, members: readonly string[], options: NodeOptions = {}): Promise<Node> {
  const node = makeNode(members, options);
  t.after(() => node.close());
  await node.store.start();
  return node;
}

/** A clock that a test can advance. */
export class SetClock implements Clock {
  offsetMs = 0;
  now(): number {
    return Date.now() + this.offsetMs;
  }
  elapsed(): number {
    return performance.now() + this.offsetMs;
  }
}

/** A figure of a node's log, which the metrics show as `cairn_cluster_…`. */
export function figure(store: Pick<Writer, 'status'>, name: string): number {
  const found = store.status().figures?.find(([, each]) => each === `cairn_cluster_${name}`);
  assert.ok(found !== undefined, name);
  return found[3];
}
