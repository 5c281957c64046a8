import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import { allCommands } from '../../src/cli/commands.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { startCairn, temporaryDirectory } from '../support/cli/spawn.ts';
import { runCommand, type Outcome } from '../support/cli/terminal.ts';
import { injectFaults, listPuts, startEtcd } from '../support/cluster/nodes.ts';
import type { SmallEtcd, SmallRequest } from '../support/cluster/small-etcd.ts';
import { createApp } from '../support/inside.ts';

const password = 'a password of the tests';

type Cairn = (words: string, environment?: Readonly<Record<string, string>>) => Promise<Outcome>;

/** Runs commands with a cluster, and with `password` on standard input. */
function cairnWith(etcd: SmallEtcd): Cairn {
  return async (words, environment = {}) => runCommand(
    await allCommands(), words.split(' '), password, { CAIRN_CLUSTER: etcd.addresses.join(','), ...environment },
  );
}

async function startServer(t: TestContext, etcd: SmallEtcd, options: object = {}) {
  const app = await createApp({ cluster: { members: etcd.addresses }, scryptCost: 1, ...options });
  t.after(() => app.close());
  return app;
}

test('a collection called users is not restored to a cluster, where its records would become users', async (t) => {
  const etcd = await startEtcd(t);
  const directory = temporaryDirectory(t);
  const collections = [declareCollection({ name: 'users', fields: {}, additional: true })];
  const open = await createApp({ auth: 'none', users: false, items: false, collections, directory });
  await open.collection('users').create({ name: 'Eve', email: 'eve@example.org', role: 'admin', passwordHash: 'x' });
  await open.close();
  const { code, err } = await cairnWith(etcd)(`restore ${directory}`);
  assert.equal(code, 78);
  assert.match(err, /^Cannot restore to cairn\/ in etcd: users is a collection, and in a cluster a table of/);
  assert.equal(etcd.get('cairn/head'), undefined);
  const app = await startServer(t, etcd, { collections: [] });
  assert.equal(app.users.records.find('email', 'eve@example.org'), undefined);
});

test('users are added, listed and changed while servers run', async (t) => {
  const etcd = await startEtcd(t);
  const cairn = cairnWith(etcd);
  const app = await startServer(t, etcd);
  assert.deepEqual(await cairn('user add ada@example.org --role admin --scrypt-cost 14'), {
    code: 0, out: '1\tadmin\tada@example.org\tada\n', err: '',
  });
  await app.store.confirm();
  assert.equal(app.users.records.get(1)?.email, 'ada@example.org');
  const login = { method: 'POST', target: '/tokens', fields: { 'content-type': 'application/json' } };
  const body = JSON.stringify({ email: 'ada@example.org', password });
  assert.equal((await app.inject({ ...login, body })).status, 201);
  assert.equal((await cairn('user add mia@example.org --scrypt-cost 14')).code, 0);
  assert.equal((await cairn('user set-role mia@example.org admin')).code, 0);
  assert.match((await cairn('user list')).out, /1\tadmin\tada.*\n2\tadmin\tmia/);
});

test('only servers create the keys of a cluster', async (t) => {
  const [etcd, fresh] = [await startEtcd(t), await startEtcd(t)];
  const app = await startServer(t, etcd);
  await app.program.users.create({ name: 'Ada', email: 'ada@example.org', role: 'admin', password });
  const directory = join(temporaryDirectory(t), 'backup');
  assert.equal((await cairnWith(etcd)(`backup ${directory}`)).code, 0);
  rmSync(join(directory, 'keys.json'));
  const cairn = cairnWith(fresh);
  assert.equal((await cairn(`restore ${directory}`)).code, 0);
  assert.equal((await cairn('user add mia@example.org --scrypt-cost 14')).code, 0);
  assert.equal(fresh.get('cairn/keys'), undefined);
});

test('a backup of a cluster opens on a single machine and restores to a new cluster', async (t) => {
  const [etcd, fresh] = [await startEtcd(t), await startEtcd(t)];
  const cairn = cairnWith(etcd);
  const app = await startServer(t, etcd);
  await app.program.users.create({ name: 'Ada', email: 'ada@example.org', role: 'admin', password });
  const directory = join(temporaryDirectory(t), 'backup');
  const backedUp = await cairn(`backup ${directory}`);
  assert.deepEqual([backedUp.code, backedUp.err], [0, '']);
  assert.match(backedUp.out, /users: 1 record\n[^]*Copied to .*; keys.json signs tokens/);
  assert.ok(readdirSync(directory).includes('keys.json'));
  assert.match(readFileSync(join(directory, 'users.json'), 'utf8'), /ada@example.org/);

  const alone = await createApp({ directory, scryptCost: 1 });
  assert.equal(alone.users.records.size, 1);
  assert.equal(alone.store.epoch, app.store.epoch);
  await alone.close();

  const restored = await cairnWith(fresh)(`restore ${directory}`);
  assert.deepEqual([restored.code, restored.err], [0, '']);
  assert.match(restored.out, /Copied to cairn\/ in etcd\nEverybody has to sign in again/);
  const other = await startServer(t, fresh);
  assert.deepEqual(other.users.records.get(1), app.users.records.get(1));
  assert.notEqual(other.store.epoch, app.store.epoch);
  assert.equal((await other.program.users.create({ name: 'Mia', email: 'mia@example.org', role: 'member' })).id, 2);

  const again = await cairnWith(fresh)(`restore ${directory}`);
  assert.equal(again.code, 78);
  assert.match(again.err, /^Cannot restore to cairn\/ in etcd: it is not empty; use another --cluster-prefix \(see /);
  assert.equal((await cairnWith(fresh)(`restore ${directory} --cluster-prefix other/`)).code, 0);
});

test('every node uses a key that was rotated in etcd', async (t) => {
  const etcd = await startEtcd(t);
  const cairn = cairnWith(etcd);
  await startServer(t, etcd);
  const [before = ''] = (await cairn('keys list')).out.split('\t');
  const rotated = await cairn('keys rotate');
  assert.match(rotated.out, /^[\w-]{11} signs from now on, on all nodes\n$/);
  const { out } = await cairn('keys list');
  assert.match(out, new RegExp(`^${rotated.out.slice(0, 11)}\tmade .*\tsigns\n${before}\tmade .*\tretired`));
  const secret = await cairn('keys rotate', { CAIRN_SECRET: 'a secret that is as long as it has to be' });
  assert.deepEqual([secret.code, secret.err.includes('CAIRN_SECRET')], [64, true]);
});

test('the generated password is stored in etcd until it is changed', async (t) => {
  const etcd = await startEtcd(t);
  const data = join(temporaryDirectory(t), 'none');
  const words = ['--cluster', etcd.addresses.join(), '--port', '0', '--log', 'none'];
  const servers = [1, 2].map(() => startCairn(t, words, { CAIRN_SCRYPT_COST: '14', CAIRN_DATA: data }));
  const [[, one = ''] = []] = await Promise.all(servers.map((server) => server.find(/serves (http:\S+)/)));
  const kept = etcd.get('cairn/admin-password') ?? '';
  const puts = etcd.requests.map(listPuts);
  const keptAt = puts.findIndex((keys) => keys.includes('cairn/admin-password'));
  const madeAt = puts.findIndex((keys) => keys.some((key) => key.startsWith('cairn/log/')));
  assert.ok(keptAt >= 0 && keptAt < madeAt, `${keptAt}, ${madeAt}`);
  for (const { err } of servers) {
    if (err !== '') assert.match(err, /is in etcd: see "etcdctl get --print-value-only cairn\/admin-password"/);
  }
  assert.ok(servers.some(({ err }) => err !== ''));
  assert.ok(!existsSync(data), 'a node has no data directory');
  const headers = { 'content-type': 'application/json' };
  const signIn = (secret: string) => fetch(`${one}/tokens`, {
    method: 'POST', headers, body: JSON.stringify({ email: 'admin@localhost.localdomain', password: secret }),
  });
  assert.equal((await signIn(kept)).status, 201);
  const changed = await cairnWith(etcd)('user set-password admin@localhost.localdomain --scrypt-cost 14');
  assert.deepEqual([changed.code, etcd.get('cairn/admin-password')], [0, undefined]);
  assert.equal((await signIn(password)).status, 201);
});

test('checking a cluster reads it like a node and writes nothing', async (t) => {
  const etcd = await startEtcd(t);
  const run = cairnWith(etcd);
  assert.match((await run('check')).err, /no cluster is there/);
  const app = await startServer(t, etcd);
  await app.program.users.create({ name: 'Ada', email: 'ada@example.org', role: 'admin', password });
  const { revision } = etcd;
  const [well, file] = [await run('check'), join(temporaryDirectory(t), 'collections.json')];
  assert.deepEqual([well.code, well.err], [0, '']);
  assert.match(well.out, /^ok +users: 1 record$/m);
  assert.match(well.out, /^warning +No collections are compared .*--collections$/m);
  assert.match(well.out, /^ok +cairn\/ in etcd holds all commits up to 1$/m);
  assert.match(well.out, /^ok +etcd accepts writes$/m);
  writeFileSync(file, '{}');
  assert.match((await run(`check --collections ${file}`)).out, /^ok +The declared collections fit/m);
  writeFileSync(file, JSON.stringify({ collections: [
    { name: 'books', singular: 'book', fields: { itemId: { kind: 'reference', to: 'items' } } },
  ] }));
  const unfit = await run(`check --collections ${file}`);
  assert.deepEqual([unfit.code, unfit.out], [78, '']);
  assert.match(unfit.err, /books\.itemId .*\[D1\]/);
  etcd.quota = 0;
  const full = await run('check');
  assert.equal(full.code, 78);
  assert.match(full.out, /^failure +No write succeeds: .*database space exceeded; see "etcdctl alarm list"$/m);
  assert.equal(etcd.revision, revision);
});

test('checking a cluster reports records that violate stricter bounds', async (t) => {
  const etcd = await startEtcd(t);
  const collections = [declareCollection({ name: 'notes', fields: { text: { kind: 'text' } } })];
  const app = await startServer(t, etcd, { collections });
  await app.collection('notes').create({ text: 'longer than it may be' });
  const file = join(temporaryDirectory(t), 'collections.json');
  writeFileSync(file, JSON.stringify({ collections: [{ name: 'notes', fields: { text: { kind: 'text', max: 3 } } }] }));
  const { code, out } = await cairnWith(etcd)(`check --collections ${file}`);
  assert.equal(code, 0, out);
  assert.match(out, /^warning +notes: text must .*3.* \(\/1\/text\): it stays until it is written again$/m);
});

test('a new epoch ends running nodes', async (t) => {
  const etcd = await startEtcd(t);
  const failures: unknown[] = [];
  const app = await startServer(t, etcd, { onFailure: (error: unknown) => void failures.push(error) });
  assert.equal((await cairnWith(etcd)('cluster new-epoch')).code, 0);
  await assert.rejects(app.store.confirm());
  assert.match(String(failures[0]), /new epoch or format/);
  assert.notEqual((await startServer(t, etcd)).store.epoch, app.store.epoch);
});

test('keys are rotated once even if the first response is lost', async (t) => {
  const etcd = await startEtcd(t);
  await startServer(t, etcd);
  injectFaults(etcd, (request) => listPuts(request).includes('cairn/keys'), 'apply-unanswered');
  const { out } = await cairnWith(etcd)('keys rotate');
  const { keys } = JSON.parse(etcd.get('cairn/keys') ?? '');
  assert.equal(keys.length, 2);
  assert.match((await cairnWith(etcd)('keys list')).out, new RegExp(`^${out.slice(0, 11)}\tmade .*\tsigns\n`));
});

test('a new epoch is written once even if the first response is lost', async (t) => {
  const etcd = await startEtcd(t);
  await (await startServer(t, etcd)).close();
  const former = etcd.get('cairn/meta');
  const written = new Set<string | undefined>();
  const putsMeta = (request: SmallRequest): boolean => listPuts(request).includes('cairn/meta');
  etcd.onRequest = (request) => {
    written.add(etcd.get('cairn/meta'));
    return putsMeta(request) && written.size === 1 ? 'apply-unanswered' : undefined;
  };
  assert.equal((await cairnWith(etcd)('cluster new-epoch')).code, 0);
  written.add(etcd.get('cairn/meta'));
  assert.equal(written.size, 2, 'nodes that start between two of them would end');
  assert.ok(written.has(former));
});

test('an unusable cluster is reported by one line and an exit code', async (t) => {
  const etcd = await startEtcd(t);
  etcd.put('elsewhere/key', 'of another program');
  const { revision } = etcd;
  const cairn = cairnWith(etcd);
  const [directory, secret] = [temporaryDirectory(t), 'a secret that is as long as it has to be'];
  const cases: [string, Readonly<Record<string, string>>, number, RegExp][] = [
    ['user list', {}, 78, /^Cannot use cairn\/ in etcd: no cluster is there; start a server first, .* \(see /],
    ['user list --cluster-prefix elsewhere/', {}, 78, /holds elsewhere\/key, and no cluster; use another --/],
    ['keys rotate', {}, 78, /no cluster is there/],
    ['cluster new-epoch', {}, 78, /no cluster is there/],
    ['cluster new-epoch', { CAIRN_CLUSTER: '' }, 64, /--cluster must name the cluster/],
    ['user list', { CAIRN_CLUSTER: 'http://10.0.0.1:2379' }, 64, /CAIRN_CLUSTER .*http: only on loopback/],
    ['user list --cluster etcd:2379', {}, 64, /--cluster "etcd:2379": must be addresses such as/],
    ['user list --cluster-prefix cairn', {}, 64, /--cluster-prefix "cairn": must be a text that ends in a slash/],
    ['user list --cluster-cert x.pem', {}, 64, /--cluster-cert and --cluster-key: each needs the other/],
    ['user list --cluster-user cairn', {}, 64, /--cluster-user and CAIRN_CLUSTER_PASSWORD: each needs the other/],
    [`restore ${directory}`, {}, 64, /no store is there/],
    ['user list', { CAIRN_SECRET: secret }, 78, /no cluster is there/],
  ];
  for (const [words, environment, code, message] of cases) {
    const outcome = await cairn(words, environment);
    assert.deepEqual([outcome.code, outcome.out], [code, ''], `${words}: ${outcome.err}`);
    assert.match(outcome.err.trimEnd(), message);
    assert.equal(outcome.err.split('\n').length, 2, outcome.err);
  }
  assert.equal(etcd.revision, revision, 'nothing was written');
});
