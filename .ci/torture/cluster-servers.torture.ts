import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { noEtcd, RealEtcd } from './real-etcd.ts';
import {
  startCairn,
  loaderFlags,
  startProcess,
  temporaryDirectory,
  type Running,
} from '../../test/support/cli/spawn.ts';
import { projectDirectory } from '../../test/support/source.ts';

/** Whole servers over a real etcd, as an operator runs them. */

const password = 'correct horse battery';
const environment = { CAIRN_SCRYPT_COST: '14', CAIRN_ADMIN_PASSWORD: password, CAIRN_LOG_LEVEL: 'warn' };

interface Server {
  readonly running: Running;
  readonly origin: string;
}

async function serve(t: TestContext, options: readonly string[]): Promise<Server> {
  const words = ['serve', '--port', '0', '--log', 'none', ...options];
  const running = startCairn(t, words, environment);
  const [, origin = ''] = await running.find(/serves (http:\S+)/);
  return { running, origin };
}

async function signIn(origin: string): Promise<string> {
  const body = JSON.stringify({ email: 'admin@localhost.localdomain', password });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${origin}/tokens`, { method: 'POST', headers, body });
  const { access_token } = Object(await response.json());
  return `Bearer ${access_token}`;
}

async function addItem(origin: string, authorization: string, name: string): Promise<number> {
  const headers = { authorization, 'content-type': 'application/json' };
  const body = JSON.stringify({ name, price: 1 });
  return (await fetch(`${origin}/items`, { method: 'POST', headers, body })).status;
}

async function namesAt(origin: string, authorization: string): Promise<string[]> {
  const response = await fetch(`${origin}/items`, { headers: { authorization } });
  const items: { name: string }[] = Object(await response.json());
  return items.map(({ name }) => name).sort();
}

test('three nodes lose no write when each is killed under load', {
  skip: noEtcd,
}, async (t) => {
  const etcd = await RealEtcd.start({ members: 3 });
  t.after(() => etcd.stop());
  const cluster = ['--cluster', etcd.addresses.join(',')];
  const servers = await Promise.all([1, 2, 3].map(() => serve(t, cluster)));
  const authorization = await signIn(servers[0]?.origin ?? '');
  const acknowledged: string[] = [];
  const failures: string[] = [];
  let longestMs = 0;
  let isGoing = true;
  /** The index of the killed node; -1 if all are up. */
  let down = -1;
  const callers = servers.map(async (_, index) => {
    for (let n = 0; isGoing; n += 1) {
      if (down === index) {
        await delay(20);
        continue;
      }
      const name = `item ${index} ${n}`;
      const { origin = '' } = servers[index] ?? {};
      const started = performance.now();
      const status = await addItem(origin, authorization, name).catch(() => 0);
      if (down === index) continue;
      longestMs = Math.max(longestMs, performance.now() - started);
      if (status === 201) acknowledged.push(name);
      else failures.push(`${name}: ${status}`);
    }
  });
  for (const index of servers.keys()) {
    await delay(1000);
    down = index;
    servers[index]?.running.child.kill('SIGKILL');
    await delay(1000);
    servers[index] = await serve(t, cluster);
    down = -1;
  }
  await delay(1000);
  isGoing = false;
  await Promise.all(callers);
  t.diagnostic(`${acknowledged.length} items; the longest answer took ${longestMs.toFixed(0)} ms`);
  assert.deepEqual(failures, [], 'at the other nodes nothing fails');
  const expected = [...acknowledged].sort();
  for (const { origin } of servers) {
    const names = new Set(await namesAt(origin, authorization));
    assert.deepEqual(expected.filter((name) => !names.has(name)), []);
  }
  await restoreElsewhere(t, etcd, servers[0]?.origin ?? '', authorization);
});

async function restoreElsewhere(t: TestContext, etcd: RealEtcd, origin: string, authorization: string): Promise<void> {
  const cluster = ['--cluster', etcd.addresses.join(',')];
  const backup = join(temporaryDirectory(t), 'backup');
  for (const words of [['backup', backup, ...cluster], ['restore', backup, ...cluster, '--cluster-prefix', 'new/']]) {
    const command = startCairn(t, words, environment);
    assert.equal(await command.ended, 0, command.err);
  }
  const restored = await serve(t, [...cluster, '--cluster-prefix', 'new/']);
  const again = await signIn(restored.origin);
  assert.deepEqual(await namesAt(restored.origin, again), await namesAt(origin, authorization));
  assert.equal(await addItem(restored.origin, again, 'after the restore'), 201);
}

test('a field that is added node by node under load is not lost', { skip: noEtcd }, async (t) => {
  const etcd = await RealEtcd.start({ members: 3 });
  t.after(() => etcd.stop());
  const cluster = ['--cluster', etcd.addresses.join(',')];
  const declare = (name: string, fields: object): string => {
    const file = join(temporaryDirectory(t), name);
    writeFileSync(file, JSON.stringify({ collections: [{ name: 'books', singular: 'book', fields }] }));
    return file;
  };
  const title = { kind: 'text' };
  const former = declare('former.json', { title });
  const next = declare('next.json', { title, note: { ...title, optional: true } });
  const unfit = declare('unfit.json', { title: { kind: 'integer' } });
  const servers = await Promise.all([1, 2].map(() => serve(t, [...cluster, '--collections', former])));
  const authorization = await signIn(servers[0]?.origin ?? '');
  const headers = { authorization, 'content-type': 'application/json' };
  const ask = async (index: number, method: string, path: string, body?: object): Promise<[number, unknown]> => {
    const sent = body && { body: JSON.stringify(body) };
    const response = await fetch(`${servers[index]?.origin}${path}`, { method, headers, ...sent });
    return [response.status, await response.json()];
  };
  assert.equal((await ask(0, 'POST', '/books', { title: 'Emma' }))[0], 201);

  const refused = startCairn(
    t,
    ['serve', '--port', '0', '--log', 'json', ...cluster, '--collections', unfit],
    environment,
  );
  assert.equal(await refused.ended, 78);
  assert.match(refused.err, /books\.title .*\[D1\].*cairn cluster new-epoch/);
  assert.doesNotMatch(refused.err, /\n\s+at /);

  const statuses = new Set<number>();
  let isGoing = true;
  const callers = [1, 2].map(async (caller) => {
    for (let n = 0; isGoing; n += 1) {
      const [status] = await ask(0, 'PATCH', '/books/1', { title: `Emma ${caller} ${n}` });
      statuses.add(status);
    }
  });
  servers[1]?.running.child.kill('SIGTERM');
  servers[1] = await serve(t, [...cluster, '--collections', next]);
  assert.equal((await ask(1, 'PATCH', '/books/1', { note: 'by Austen' }))[0], 200);
  await delay(1000);
  isGoing = false;
  await Promise.all(callers);
  assert.deepEqual([...statuses], [200]);
  const [, shown] = await ask(0, 'GET', '/books/1');
  assert.ok(!('note' in Object(shown)), 'the node with the former declaration does not show it');
  servers[0]?.running.child.kill('SIGTERM');
  servers[0] = await serve(t, [...cluster, '--collections', next]);
  assert.equal(Object((await ask(0, 'GET', '/books/1'))[1]).note, 'by Austen');
});

test('writes continue within seconds after the leader of etcd is killed', { skip: noEtcd }, async (t) => {
  const etcd = await RealEtcd.start({ members: 3 });
  t.after(() => etcd.stop());
  const { origin } = await serve(t, ['--cluster', etcd.addresses.join(',')]);
  const authorization = await signIn(origin);
  const outages: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const leader = Math.max(0, await etcd.leader());
    await etcd.kill(leader);
    const killedAt = performance.now();
    assert.equal(await addItem(origin, authorization, `round ${round}`), 201);
    outages.push(performance.now() - killedAt);
    etcd.launch(leader);
    await delay(3000);
  }
  t.diagnostic(`writes were answered after ${outages.map((ms) => ms.toFixed(0)).join(', ')} ms`);
  // Three seconds if nothing else runs; elections take longer on a busy machine.
  assert.ok(Math.max(...outages) < 30_000);
});

test('a node reports the loss of etcd\'s majority once, and its return once', { skip: noEtcd }, async (t) => {
  const etcd = await RealEtcd.start({ members: 3 });
  t.after(() => etcd.stop());
  const options = ['serve', '--port', '0', '--log', 'json', '--cluster', etcd.addresses.join(',')];
  const node = startCairn(t, options, environment);
  const [, origin = ''] = await node.find(/Cairn serves (http:[^"]+)/);
  const authorization = await signIn(origin);
  const untilReadyIs = async (wanted: number): Promise<void> => {
    while ((await fetch(`${origin}/readyz`)).status !== wanted) await delay(100);
  };
  const figure = async (name: string): Promise<number> => {
    const page = await (await fetch(`${origin}/metrics`, { headers: { authorization } })).text();
    return Number(page.split('\n').find((line) => line.startsWith(`${name} `))?.split(' ').at(-1));
  };
  await Promise.all([0, 1].map((member) => etcd.kill(member)));
  const killedAt = performance.now();
  await untilReadyIs(503);
  t.diagnostic(`not ready after ${(performance.now() - killedAt).toFixed(0)} ms`);
  while ((await figure('cairn_cluster_age_seconds')) < 6) await delay(100);
  assert.equal(await figure('cairn_store_state{state="unavailable"}'), 1);
  assert.equal(await addItem(origin, authorization, 'while most are down'), 503);
  for (const member of [0, 1]) etcd.launch(member);
  await untilReadyIs(200);
  while ((await figure('cairn_store_state{state="writable"}')) !== 1) await delay(100);
  assert.equal(await addItem(origin, authorization, 'afterwards'), 201);
  const told = node.out.split('\n').filter((line) => line.includes('The cluster says: etcd '));
  assert.equal(told.length, 2, told.join('\n'));
  assert.match(told.join('\n'), /etcd does not answer, and no write.*endpoint status.*\n.*etcd accepts writes again/);
});

test('the script in the README starts a cluster', { skip: noEtcd }, async (t) => {
  const script = join(projectDirectory, '.ci', 'programs', 'try-cluster.ts');
  const trial = startProcess(t, [...loaderFlags, script], {});
  const [, secret = ''] = await trial.find(/with the password (\S+)\n/);
  await trial.find(/(?:npx tsx|node) src\/main.ts serve --cluster/);
  const origins = [...trial.out.matchAll(/Cairn: (http:\S+)\//g)].map(([, origin = '']) => origin);
  assert.equal(origins.length, 2);
  const body = JSON.stringify({ email: 'admin@localhost.localdomain', password: secret });
  const headers = { 'content-type': 'application/json' };
  for (const origin of origins) {
    assert.equal((await fetch(`${origin}/tokens`, { method: 'POST', headers, body })).status, 201);
  }
  const [, pid] = /\(process (\d+)\)/.exec(trial.out) ?? [];
  process.kill(Number(pid), 'SIGKILL');
  trial.child.kill('SIGINT');
  if (trial.child.exitCode === null) await once(trial.child, 'exit');
  assert.equal(await trial.ended, 0);
});
