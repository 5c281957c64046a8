import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';

import { until } from '../until.ts';
import { CairnError } from '../../../src/base/errors.ts';
import { systemClock } from '../../../src/base/system.ts';
import { ClusterError } from '../../../src/options/cluster/etcd.ts';
import { startNode, type Node } from './nodes.ts';
import { SmallEtcd, type Fault, type SmallRequest } from './small-etcd.ts';

export async function startEtcd(t: TestContext, members = 1): Promise<SmallEtcd> {
  const etcd = await SmallEtcd.start(members);
  t.after(() => etcd.stop());
  return etcd;
}

interface Operation {
  readonly request_put?: { readonly key: string };
  readonly request_range?: { readonly key: string };
}

/** The keys that `success` of a transaction puts. */
export function putsOf({ body }: SmallRequest): string[] {
  const { success = [] } = body as { success?: Operation[] };
  return success.flatMap(({ request_put: put }) => (put ? [Buffer.from(put.key, 'base64').toString()] : []));
}

export const isAppend = (request: SmallRequest): boolean => putsOf(request).some((key) => key.startsWith('cairn/log/'));
export const putsPointer = (request: SmallRequest): boolean => putsOf(request).includes('cairn/snapshot');

export function readsPart({ body }: SmallRequest): boolean {
  const { success = [] } = body as { success?: Operation[] };
  const isPart = (key: string): boolean => Buffer.from(key, 'base64').toString().startsWith('cairn/snapshot/');
  return success.some(({ request_range: range }) => range !== undefined && isPart(range.key));
}

/** Answers the first matching requests with these faults. */
export function fail(etcd: SmallEtcd, which: (request: SmallRequest) => boolean, ...faults: readonly Fault[]): void {
  const rest = [...faults];
  etcd.onRequest = (request) => (which(request) ? rest.shift() : undefined);
}

export const noLeader: Fault = { status: 503, code: 14, message: 'etcdserver: no leader' };
export const spaceExceeded: Fault = { status: 429, code: 8, message: 'etcdserver: mvcc: database space exceeded' };

export const refusedWith = (exitCode: number, message: RegExp) => (error: unknown): boolean => {
  assert.ok(error instanceof ClusterError, String(error));
  assert.match(error.message, message);
  return error.exitCode === exitCode;
};

export const codeIs = (code: string) => (error: unknown): boolean => error instanceof CairnError && error.code === code;

export const groupsIn = (etcd: SmallEtcd): string[] => etcd.list('cairn/log/').map((key) => etcd.get(key) ?? '');

/** Asserts that all nodes have the same records as a node that starts now. */
export async function assertEqual(t: TestContext, etcd: SmallEtcd, ...nodes: readonly Node[]): Promise<void> {
  const fresh = await startNode(t, etcd.addresses);
  for (const node of nodes) {
    await node.store.confirm();
    assert.deepEqual(node.things.view().blocks.flat(), fresh.things.view().blocks.flat());
    assert.equal(node.store.status().sequence, fresh.store.status().sequence);
  }
}

/** Two nodes, and the clock of the second. */
export async function startTwo(t: TestContext) {
  const etcd = await startEtcd(t);
  const clock = { ...systemClock };
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses, { clock })];
  return { etcd, one, two, clock };
}

/** Asserts that `two` of `startTwo` gets the writes of `one` from the watch: for it, no time passes to confirm. */
export async function assertWatched({ one, two, clock }: Awaited<ReturnType<typeof startTwo>>): Promise<void> {
  const stoppedAt = clock.elapsed();
  clock.elapsed = () => stoppedAt;
  await two.store.confirm();
  for (let n = 0; n < 5; n += 1) {
    const count = two.names().length;
    await one.add(`watched ${n}`);
    await until(() => two.names().length > count);
  }
  clock.elapsed = systemClock.elapsed;
}
