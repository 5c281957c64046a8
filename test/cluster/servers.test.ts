import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';

import { joinCluster } from '../../src/options/cluster/node.ts';
import { completeOptions, type AppOptions } from '../../src/programs/options.ts';
import { newKeyRing, serialiseKeyRing } from '../../src/auth/keys.ts';
import { systemClock, systemRandom } from '../../src/base/system.ts';
import { rotateKeyRing } from '../../src/cli/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { silentLog } from '../../src/log/log.ts';
import { noLeader, isRefusal, SetClock, startEtcd } from '../support/cluster/nodes.ts';
import type { SmallEtcd } from '../support/cluster/small-etcd.ts';
import { createApp, type App, type PlainReply } from '../support/inside.ts';
import { waitUntil } from '../support/basics.ts';

const credentials = { email: 'admin@example.org', password: 'administrator of the cluster' };

async function startServer(t: TestContext, etcd: SmallEtcd, options: AppOptions = {}): Promise<App> {
  const app = await createApp({
    cluster: { members: etcd.addresses }, scryptCost: 1, administrator: credentials, ...options,
  });
  t.after(() => app.close());
  return app;
}

const startServers = (t: TestContext, etcd: SmallEtcd, options?: AppOptions): Promise<[App, App]> =>
  Promise.all([startServer(t, etcd, options), startServer(t, etcd, options)]);

type Fields = Readonly<Record<string, string>>;

function ask(app: App, method: string, target: string, fields: Fields = {}, json?: unknown): Promise<PlainReply> {
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  const typed = json === undefined ? {} : { 'content-type': 'application/json' };
  return app.inject({ method, target, fields: { ...typed, ...fields }, address: '127.0.0.1', ...body });
}

const signIn = async (app: App): Promise<Fields> => {
  const { status, body } = await ask(app, 'POST', '/tokens', {}, credentials);
  assert.equal(status, 201, body);
  return { authorization: `Bearer ${JSON.parse(body).access_token}` };
};

async function cookieOf(app: App): Promise<Fields> {
  const { fields } = await ask(app, 'POST', '/login', {}, credentials);
  return { cookie: /^sid=[\w-]*/.exec(fields.get('set-cookie') ?? '')?.[0] ?? '' };
}

const codeOf = ({ body }: PlainReply): unknown => JSON.parse(body).code;

test('servers that start together create one administrator', async (t) => {
  const etcd = await startEtcd(t);
  const apps = await Promise.all([1, 2, 3].map((n) => startServer(t, etcd, {
    administrator: {
      email: `a${n}@example.org`, password: () => 'password of all servers',
    },
  })));
  for (const app of apps) {
    await app.store.confirm();
    assert.equal(app.users.records.size, 1);
  }
});

test('servers that start together share one key ring', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd);
  const token = await signIn(one);
  assert.equal((await ask(two, 'GET', '/items', token)).status, 200);
  assert.equal((await ask(two, 'GET', '/items', { authorization: 'Bearer none' })).status, 401);
});

const secret = 'the secret of the cluster, which is long enough';

test('servers with the same CAIRN_SECRET need no key ring in etcd', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd, { secret });
  assert.equal((await ask(two, 'GET', '/items', await signIn(one))).status, 200);
  assert.equal(etcd.get('cairn/keys'), undefined);
});

test('a server with another CAIRN_SECRET, or without one, is refused', async (t) => {
  const etcd = await startEtcd(t);
  await startServer(t, etcd, { secret });
  const other = startServer(t, etcd, { secret: 'another secret, which is just as long as that' });
  await assert.rejects(other, isRefusal(78, /the same CAIRN_SECRET/));
  await assert.rejects(startServer(t, etcd), isRefusal(78, /the same CAIRN_SECRET/));
});

test('entity tags and If-Match work across servers', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd);
  const token = await signIn(one);
  const created = await ask(one, 'POST', '/items', token, { name: 'Lamp', price: 1 });
  assert.equal(created.status, 201);
  await two.store.confirm();
  const first = created.fields.get('etag') ?? '';
  assert.equal((await ask(two, 'GET', '/items/1', token)).fields.get('etag'), first);
  etcd.losesEvents = true;
  const change = { name: 'Lamp', price: 2 };
  const changed = await ask(two, 'PUT', '/items/1', { ...token, 'if-match': first }, change);
  assert.equal(changed.status, 200);
  // This server has not heard of the change.
  assert.equal((await ask(one, 'PUT', '/items/1', { ...token, 'if-match': first }, change)).status, 412);
  const etag = changed.fields.get('etag') ?? '';
  assert.equal((await ask(one, 'PUT', '/items/1', { ...token, 'if-match': etag }, change)).status, 200);
});

test('an Idempotency-Key prevents a second creation on another server', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd);
  const token = { ...(await signIn(one)), 'idempotency-key': '"8e03978e-40d5-43dd-bc93-6894a57f9324"' };
  etcd.losesEvents = true;
  const first = await ask(one, 'POST', '/items', token, { name: 'Lamp', price: 1 });
  const again = await ask(two, 'POST', '/items', token, { name: 'Lamp', price: 1 });
  assert.deepEqual([first.status, again.status, again.body], [201, 201, first.body]);
  assert.equal(again.fields.get('idempotency-replayed'), 'true');

  // The reply is sent to etcd with the records, so a body with a key has half the room.
  const large = { name: 'x'.repeat(600 * 1024), price: 1 };
  assert.equal((await ask(one, 'POST', '/items', token, large)).status, 413);
  const { 'idempotency-key': _, ...keyless } = token;
  assert.equal((await ask(one, 'POST', '/items', keyless, large)).status, 422);
});

/** A listener of the change feed: what it was sent, as `event collection id`, and the id of the last event. */
function follow(t: TestContext, app: App, fields: Fields) {
  const controller = new AbortController();
  let text = '';
  const { signal } = controller;
  const onPiece = (piece: string): void => void (text += piece);
  const ended = app.inject({ target: '/changes', fields, address: '127.0.0.1', signal, onPiece });
  t.after(() => controller.abort());
  return {
    events: () => Array.from(
      text.matchAll(/^event: (\w+)\ndata: {"collection":"(\w+)","id":(\d+)/gm),
      ([, ...parts]) => parts.join(' '),
    ),
    isReset: () => text.includes('event: reset'),
    isOpen: () => text !== '',
    lastId: () => Array.from(text.matchAll(/^id: (.*)$/gm)).at(-1)?.[1] ?? '',
    async leave() {
      controller.abort();
      await ended;
    },
  };
}

test('the change feed resumes on another node without gaps or repetitions', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd);
  const token = await signIn(one);
  await two.store.confirm();
  const add = async (app: App, name: string) =>
    assert.equal((await ask(app, 'POST', '/items', token, { name, price: 1 })).status, 201);
  const first = follow(t, one, token);
  await waitUntil(first.isOpen);
  await add(two, 'a');
  await add(one, 'b');
  await waitUntil(() => first.events().length === 2);
  assert.deepEqual(first.events(), ['created items 1', 'created items 2']);

  // The other node has not heard of the last change that the listener knows of.
  etcd.losesEvents = true;
  await add(one, 'c');
  await waitUntil(() => first.events().length === 3);
  await first.leave();
  const second = follow(t, two, { ...token, 'last-event-id': first.lastId() });
  await waitUntil(second.isOpen);
  assert.deepEqual([second.isReset(), second.events()], [false, []]);
  etcd.losesEvents = false;
  await add(one, 'd');
  await add(two, 'e');
  await waitUntil(() => second.events().length === 2);
  assert.deepEqual(second.events(), ['created items 4', 'created items 5']);

  // A listener that comes back also gets the changes that it has missed.
  const third = follow(t, one, { ...token, 'last-event-id': first.lastId() });
  await waitUntil(() => third.events().length === 2);
  assert.deepEqual([third.isReset(), third.events()], [false, second.events()]);
});

test('a read with another node\'s entity tag returns that revision or a later one', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd);
  const token = await signIn(one);
  await two.store.confirm();
  etcd.losesEvents = true;
  const created = await ask(one, 'POST', '/items', token, { name: 'Lamp', price: 1 });
  const made = created.fields.get('etag') ?? '';
  assert.equal((await ask(two, 'GET', '/items/1', { ...token, 'if-none-match': made })).status, 304);
  await ask(one, 'PATCH', '/items/1', token, { price: 2 });
  const list = (await ask(one, 'GET', '/items', token)).fields.get('etag') ?? '';
  assert.equal((await ask(two, 'GET', '/items', { ...token, 'if-none-match': list })).status, 304);
  const stale = await ask(two, 'GET', '/items/1', { ...token, 'if-none-match': made });
  assert.deepEqual([stale.status, JSON.parse(stale.body).price], [200, 2]);
  const requests = etcd.requests.length;
  await ask(two, 'GET', '/items/1', { ...token, 'if-none-match': made });
  assert.equal(etcd.requests.length, requests, 'what is known here is not asked for');
});

test('with confirmed sessions, a session that ended on another server cannot read', async (t) => {
  const etcd = await startEtcd(t);
  const cluster = { members: etcd.addresses, sessions: 'confirmed' } as const;
  const [one, two] = await startServers(t, etcd, { cluster });
  const cookie = await cookieOf(one);
  assert.equal((await ask(two, 'GET', '/dashboard', cookie)).status, 200);
  etcd.losesEvents = true;
  assert.equal((await ask(one, 'POST', '/logout', cookie)).status, 204);
  assert.equal((await ask(two, 'GET', '/dashboard', cookie)).status, 401);
});

test('a server refreshes from etcd before it refuses an unknown session, user or refresh token', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd);
  await two.store.confirm();
  etcd.losesEvents = true;
  const cookie = await cookieOf(one);
  assert.equal((await ask(two, 'GET', '/dashboard', cookie)).status, 200);
  assert.equal((await ask(one, 'POST', '/logout', cookie)).status, 204);
  // A read may miss the logout for some ms; a write does not.
  const write = await ask(two, 'DELETE', '/users/1', { ...cookie, origin: 'http://localhost', host: 'localhost' });
  assert.equal(codeOf(write), 'actor_changed');

  const member = { name: 'Mia', email: 'mia@example.org', role: 'member', password: 'member of the cluster' };
  const token = await signIn(one);
  assert.equal((await ask(one, 'POST', '/users', token, member)).status, 201);
  const { email, password } = member;
  const { status, body } = await ask(two, 'POST', '/tokens', {}, { email, password });
  assert.equal(status, 201, body);
  const { refresh_token } = JSON.parse(body);
  const [again, anew] = [await ask(one, 'POST', '/tokens', {}, { refresh_token }), await signIn(two)];
  assert.equal(again.status, 201);
  assert.equal((await ask(one, 'POST', '/users', token, { ...member, email: 'nia@example.org' })).status, 201);
  assert.equal((await ask(two, 'PATCH', '/users/3', anew, { name: 'Nia' })).status, 200);
});

test('an API key works on every server at once', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd);
  await two.store.confirm();
  etcd.losesEvents = true;
  const token = await signIn(one);
  const made = await ask(one, 'POST', '/keys', token, { name: 'Backup', currentPassword: credentials.password });
  assert.equal(made.status, 201, made.body);
  const script = { authorization: `Bearer ${JSON.parse(made.body).key}` };
  assert.equal((await ask(two, 'GET', '/items', script)).status, 200);
  assert.equal((await ask(one, 'DELETE', '/keys/1', token)).status, 204);
  await two.store.confirm();
  const unknown = await ask(two, 'GET', '/items', script);
  assert.deepEqual([unknown.status, codeOf(unknown)], [401, 'invalid_token']);
});

test('a server loads a key that it does not know', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = await startServers(t, etcd);
  await two.store.confirm();
  const { keys } = JSON.parse(etcd.get('cairn/keys') ?? '');
  const retired = { ...keys[0], retiredAt: new Date().toISOString() };
  const signing = { secret: Buffer.alloc(32, 7).toString('base64url'), createdAt: new Date().toISOString() };
  const former = await signIn(one);
  etcd.put('cairn/keys', JSON.stringify({ format: 'cairn-keys-1', keys: [signing, retired] }));
  await one.store.confirm();
  const token = await signIn(one);
  for (const fields of [token, former]) assert.equal((await ask(two, 'GET', '/items', fields)).status, 200);
});

test('a malformed key ring in etcd does not stop a running node', async (t) => {
  const etcd = await startEtcd(t);
  const lines: string[] = [];
  const log = { info() {}, warn() {}, error: (line: string) => void lines.push(line) };
  const app = await startServer(t, etcd, { log });
  const token = await signIn(app);
  const good = etcd.get('cairn/keys') ?? '';
  for (const content of ['', '{}', 'no JSON', good.replace('createdAt', 'madeAt')]) {
    etcd.put('cairn/keys', content);
    await app.store.confirm();
    await waitUntil(() => lines.length > 0);
    const remedy = /Cannot read the key ring: .*; it is cairn\/keys in etcd\. The previous keys stay/;
    assert.match(lines.splice(0).join(), remedy);
    assert.equal((await ask(app, 'POST', '/items', token, { name: 'Lamp', price: 1 })).status, 201, content);
  }
  await assert.rejects(startServer(t, etcd), /Cannot read the key ring: .*cairn\/keys in etcd/);
});

test('a key ring from another node wins over the first ring that a node is creating', async (t) => {
  const etcd = await startEtcd(t);
  const node = joinCluster({ members: etcd.addresses }, completeOptions({}), 'serve');
  const store = openStore({ clock: systemClock, random: systemRandom, log: node.log });
  t.after(() => store.close());
  await store.start();
  const used: string[] = [];
  node.onRing = ({ keys: [{ kid }] }) => void used.push(kid);
  const rotated = rotateKeyRing(newKeyRing(systemRandom, 0), systemRandom, 1);
  const txn = node.etcd.txn.bind(node.etcd);
  let hasRotated = false;
  node.etcd.txn = async (...words) => {
    const answer = await txn(...words);
    if (etcd.get('cairn/keys') === undefined || hasRotated) return answer;
    hasRotated = true;
    etcd.put('cairn/keys', serialiseKeyRing(rotated));
    await store.confirm();
    return answer;
  };
  await node.loadKeys();
  assert.equal(used.at(-1), rotated.keys[0].kid);
});

test('a server that loses etcd serves reads for a while, then only /livez', async (t) => {
  const etcd = await startEtcd(t);
  const clock = new SetClock();
  const app = await startServer(t, etcd, { clock, cluster: { members: etcd.addresses, maxAgeMs: 60_000 } });
  const token = await signIn(app);
  etcd.onRequest = () => noLeader;
  assert.equal((await ask(app, 'GET', '/items', token)).status, 200);
  clock.offsetMs += 60_000;
  assert.equal(app.unready(), 'store_unavailable');
  const refused = await ask(app, 'GET', '/items', token);
  assert.deepEqual([refused.status, codeOf(refused)], [503, 'store_unavailable']);
  assert.equal(refused.fields.get('retry-after'), '2');
  assert.equal((await ask(app, 'GET', '/readyz')).status, 503);
  assert.equal((await ask(app, 'GET', '/livez')).status, 200);
  assert.match((await ask(app, 'GET', '/metrics', token)).body, /^cairn_store_state\{state="unavailable"\} 1$/m);
  etcd.onRequest = () => undefined;
  await waitUntil(() => app.unready() === undefined);
  assert.equal((await ask(app, 'GET', '/items', token)).status, 200);
});

test('with clocks 10 minutes apart, only access tokens from the future are refused', async (t) => {
  const etcd = await startEtcd(t);
  const clock = new SetClock();
  clock.offsetMs = 600_000;
  const [one, ahead] = [await startServer(t, etcd), await startServer(t, etcd, { clock })];
  const [token, future] = [await signIn(one), await signIn(ahead)];
  assert.equal((await ask(ahead, 'GET', '/items', token)).status, 200);
  assert.equal(codeOf(await ask(one, 'GET', '/items', future)), 'invalid_token');
  const [cookie, futureCookie] = [await cookieOf(one), await cookieOf(ahead)];
  assert.equal((await ask(ahead, 'GET', '/dashboard', cookie)).status, 200);
  assert.equal((await ask(one, 'GET', '/dashboard', cookie)).status, 200);
  assert.equal((await ask(one, 'GET', '/dashboard', futureCookie)).status, 200);
  const lamp = { name: 'Lamp', price: 1 };
  const created = await ask(ahead, 'POST', '/items', future, lamp);
  const changed = await ask(one, 'PUT', '/items/1', { ...token, 'if-match': created.fields.get('etag') ?? '' }, {
    ...lamp, price: 2,
  });
  assert.deepEqual([created.status, changed.status], [201, 200]);
});

test('a program is told that its app must be restarted', async (t) => {
  const etcd = await startEtcd(t);
  const failures: unknown[] = [];
  const app = await startServer(t, etcd, { onFailure: (error) => void failures.push(error), log: silentLog });
  etcd.put('cairn/meta', '{"format":3}');
  await waitUntil(() => failures.length === 1);
  assert.ok(isRefusal(75, /start the node again/)(failures[0]));
  assert.equal(app.unready(), 'store_failed');
});

test('metrics show the state of the node', async (t) => {
  const etcd = await startEtcd(t);
  const app = await startServer(t, etcd);
  const { body: page } = await ask(app, 'GET', '/metrics', await signIn(app));
  const counters = ['lost_appends_total 0', 'reruns_total 0', 'unknown_appends_total 0'];
  for (const name of counters) {
    assert.ok(page.includes(`\ncairn_cluster_${name}\n`), name);
  }
  assert.match(page, /\ncairn_cluster_age_seconds 0\.\d+\n/);
});

test('a server is refused if the cluster\'s records violate its references or unique fields', async (t) => {
  const etcd = await startEtcd(t);
  const declare = (more: object) => declareCollection(Object({
    name: 'posts', singular: 'post', fields: { postId: { kind: 'integer', ...more } },
  }));
  const first = await startServer(t, etcd, { collections: [declare({})] });
  for (const postId of [1, 7, 1]) await first.collection('posts').create({ postId });
  for (const more of [{ kind: 'reference', to: 'posts' }, { unique: true }]) {
    const starting = startServer(t, etcd, { collections: [declare(more)] });
    await assert.rejects(starting, isRefusal(78, /posts.*postId.* \[D1\]/));
  }
  await first.collection('posts').create({ postId: 9 });
});
