import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import {
  hasCode,
  checkConformance,
  makeNode,
  isRefusal,
  sharedLog,
  startNode,
} from '../../test/support/cluster/nodes.ts';
import { Proxy } from './proxy.ts';
import { waitUntilHealthy, noEtcd, RealEtcd, type RealEtcdOptions } from './real-etcd.ts';
import { makeBlog } from '../../test/support/store/crashes.ts';
import { seedNumbers } from '../../test/support/store/fixtures.ts';
import { askBlogs } from '../../test/support/store/histories.ts';
import { waitUntil } from '../../test/support/basics.ts';

/** The cases that depend on etcd itself. `cases.test.ts` has all cases, over the small etcd. */

async function startEtcd(t: TestContext, options: RealEtcdOptions = {}): Promise<RealEtcd> {
  const etcd = await RealEtcd.start(options);
  t.after(() => etcd.stop());
  return etcd;
}

async function post(etcd: RealEtcd, path: string, body: object, token = ''): Promise<Record<string, unknown>> {
  const headers = token === '' ? {} : { authorization: token };
  const response = await fetch(etcd.addresses[0] + path, { method: 'POST', body: JSON.stringify(body), headers });
  const text = await response.text();
  assert.ok(response.ok, `${path}: ${text}`);
  return JSON.parse(text);
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('a real etcd behaves like the simulated one', { skip: noEtcd }, async (t) => {
  const etcd = await startEtcd(t);
  await checkConformance(t, etcd.addresses[0] ?? '');
});

test('a full etcd accepts writes again once there is room', { skip: noEtcd }, async (t) => {
  const etcd = await startEtcd(t, { flags: ['--quota-backend-bytes', '4000000'] });
  const node = await startNode(t, etcd.addresses);
  const fill = async (): Promise<void> => {
    for (let n = 0; ; n += 1) await node.add(`${n} ${'x'.repeat(300_000)}`);
  };
  await assert.rejects(fill(), hasCode('storage_full'));
  await node.store.confirm();
  assert.equal(node.store.status().state, 'full');
  const idle = await startNode(t, etcd.addresses);
  await waitUntil(() => idle.store.status().state === 'full');
  const { header } = await post(etcd, '/v3/kv/range', { key: base64('none') });
  await etcd.kill(0);
  etcd.launch(0, '--quota-backend-bytes', '100000000');
  // The member is not healthy until the alarm is off.
  while ((await etcd.leader()) !== 0) await delay(50);
  await post(etcd, '/v3/maintenance/alarm', {
    action: 'DEACTIVATE', memberID: String(Object(header).member_id), alarm: 'NOSPACE',
  });
  await waitUntil(() => [node, idle].every(({ store }) => store.status().state === 'writable'));
  await node.add('again');
  assert.deepEqual([...node.failures, ...idle.failures], []);
  const [full, again] = idle.notices;
  assert.match(`${full} ${again}`, /the quota of etcd is used up.*alarm disarm.* etcd accepts writes again/);
});

test('a node notices that etcd was restored', { skip: noEtcd }, async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  await node.add('a');
  const backup = `${etcd.directory}/backup`;
  await etcd.kill(0);
  cpSync(etcd.dataOf(0), backup, { recursive: true });
  etcd.launch(0);
  await waitUntilHealthy(etcd.addresses[0] ?? '');
  await node.add('b');
  await etcd.kill(0);
  rmSync(etcd.dataOf(0), { recursive: true });
  cpSync(backup, etcd.dataOf(0), { recursive: true });
  etcd.launch(0);
  await waitUntil(() => node.failures.length === 1);
  assert.ok(isRefusal(75, /start the node again/)(node.failures[0]));
  const next = await startNode(t, etcd.addresses);
  await next.add('c');
  assert.deepEqual(next.names(), ['a', 'c']);
});

test('a node continues while its etcd tokens keep expiring', { skip: noEtcd }, async (t) => {
  const etcd = await startEtcd(t, { flags: ['--auth-token-ttl', '3'] });
  const user = { name: 'root', password: 'secret' };
  await post(etcd, '/v3/auth/user/add', user);
  await post(etcd, '/v3/auth/user/grant', { user: 'root', role: 'root' });
  await post(etcd, '/v3/auth/enable', {});
  const node = await startNode(t, etcd.addresses, { etcd: { user } });
  for (let round = 0; round < 5; round += 1) {
    await node.add(`n${round}`);
    // A restart forgets all tokens.
    await etcd.kill(0);
    etcd.launch(0);
  }
  await delay(4000);
  await node.add('last');
  assert.equal(node.names().length, 6);
  await assert.rejects(
    makeNode(etcd.addresses, { etcd: { user: { ...user, password: 'wrong' } } }).store.start(),
    isRefusal(78, /authentication failed/),
  );
  await assert.rejects(makeNode(etcd.addresses).store.start(), isRefusal(78, /user name is empty/));
});

test('a node that slept through the removal of its groups stops writing', { skip: noEtcd }, async (t) => {
  const etcd = await startEtcd(t);
  const proxy = await Proxy.start(etcd.addresses[0] ?? '');
  t.after(() => proxy.stop());
  const [one, sleeper] = [await startNode(t, etcd.addresses), await startNode(t, [proxy.address])];
  await one.add('a');
  await waitUntil(() => sleeper.names().length === 1);
  proxy.mode = 'hold';
  const late = assert.rejects(sleeper.add('late'), hasCode('outcome_unknown'));
  for (const name of ['b', 'c', 'd']) {
    await one.add(name);
    await one.store.checkpoint();
  }
  await one.add('e');
  proxy.mode = 'pass';
  await late;
  await waitUntil(() => sleeper.failures.length === 1);
  assert.ok(isRefusal(75, /start the node again/)(sleeper.failures[0]));
  const fresh = await startNode(t, etcd.addresses);
  assert.deepEqual(fresh.names().filter((name) => name !== 'late'), ['a', 'b', 'c', 'd', 'e']);
});

test('running nodes stop writing after a change of the format', { skip: noEtcd }, async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  await node.add('a');
  await post(etcd, '/v3/kv/put', { key: base64('cairn/meta'), value: base64('{"format":3,"epoch":"x","kid":null}') });
  await assert.rejects(node.add('b'), hasCode('outcome_unknown'));
  assert.ok(isRefusal(75, /new epoch or format/)(node.failures[0]));
  await assert.rejects(makeNode(etcd.addresses).store.start(), isRefusal(78, /all nodes need the same version/));
});

test('references and unique values hold across five nodes while a member of etcd is killed', {
  skip: noEtcd,
}, async (t) => {
  const etcd = await startEtcd(t, { members: 3 });
  const nodes = [0, 1, 2, 3, 4].map((first) => makeBlog({ log: sharedLog(etcd.addresses, { first: first % 3 }) }));
  for (const { store } of nodes) {
    await store.start();
    t.after(() => store.close());
  }
  const seed = Number(process.env['CAIRN_TEST_SEED'] ?? 1);
  // No checkpoints: a node of a member that is silent for seconds could miss two of them, which ends it (A4).
  const asking = askBlogs(seedNumbers(seed), [...nodes, ...nodes, ...nodes, ...nodes], 200, 0);
  await waitUntil(() => (nodes[0]?.store.status().sequence ?? 0) > 300);
  await etcd.kill(1);
  await delay(2000);
  etcd.launch(1);
  const { done, failed, model } = await asking;
  const late = makeBlog({ log: sharedLog(etcd.addresses) });
  await late.store.start();
  assert.equal(late.content(), model.content());
  const { sequence } = late.store.status();
  await late.store.close();
  t.diagnostic(`seed ${seed}: ${done} operations in one order, ${failed} without an outcome, ${sequence} commits`);
});
