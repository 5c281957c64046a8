import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Route } from '../../src/api/call.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { hmacSha256 } from '../../src/auth/jws.ts';
import { secretHash } from '../../src/auth/secrets.ts';
import { limits } from '../../src/base/limits.ts';
import { silentLog } from '../../src/log/log.ts';
import { isLockedRun, TestClock } from '../support/basics.ts';
import {
  createClient,
  startApp,
  type ApiResponse,
  type Client,
  type TestAppOptions,
  type TestUser,
} from '../support/app.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { RawClient } from '../support/http/raw.ts';
import { allRoutes } from '../support/contract.ts';

const start = '2026-01-02T03:04:05.000Z';
const day = 24 * 3600;

async function setUp(t: TestContext, options: TestAppOptions = {}) {
  const clock = new TestClock();
  const events: [string, object][] = [];
  const log = { ...silentLog, security: (...event: [string, object]) => void events.push(event) };
  const opened = await startApp(t, { clock, log, ...options });
  const { signIn, withHeaders, credentials } = opened;
  /** Makes a key of this user as a program does that has signed in. */
  const make = async (who: TestUser, more: object = {}): Promise<ApiResponse> => {
    const json = { name: 'Backup', currentPassword: credentials(who).password, ...more };
    return (await signIn(who)).post('/keys', { json });
  };
  const keyOf = async (who: TestUser, more?: object): Promise<string> =>
    String(Object((await make(who, more)).json).key);
  const withKey = (key: string): Client => withHeaders({ authorization: `Bearer ${key}` });
  return { ...opened, clock, events, make, keyOf, withKey };
}

const refusalOf = ({ json }: ApiResponse) => {
  const { status, code, detail } = Object(json);
  return [status, code, detail];
};
const constant = [
  401, 'invalid_token', 'Cannot accept the access token or API key: it is not valid, has expired or was ended',
];
const issuesOf = ({ json }: ApiResponse): unknown =>
  Object(json).errors?.map(({ pointer, code }: { pointer: string; code: string }) => [pointer, code]);

test('a key is shown once, listed without it, and good until it is removed', async (t) => {
  const { signIn, make, withKey, app, events } = await setUp(t);
  const made = await make('member');
  assert.deepEqual([made.status, made.header('cache-control')], [201, 'no-store'], made.body);
  const { key, ...shown } = Object(made.json);
  assert.match(key, /^cairn_[\w-]{43}$/);
  assert.deepEqual(shown, { id: 1, userId: 2, name: 'Backup', readOnly: false, createdAt: start });

  const script = withKey(key);
  assert.equal(Object((await script.get('/me')).json).id, 2);
  assert.equal((await script.post('/items', { json: { name: 'Lamp', price: 1 } })).status, 201);
  assert.equal((await script.patch('/items/1', { json: { price: 2 } })).status, 200, 'it owns what it made');
  assert.equal((await script.send('HEAD', '/items')).status, 200);

  const [member, admin] = [await signIn('member'), await signIn('admin')];
  const listed = { ...shown, lastUsedAt: '2026-01-02T03:00:00.000Z' };
  assert.deepEqual((await member.get('/keys')).json, [listed]);
  assert.deepEqual((await admin.get('/keys')).json, []);
  assert.deepEqual((await admin.get('/keys?userId=2')).json, [listed]);
  assert.equal((await member.get('/keys?userId=1')).code, 'insufficient_scope');
  assert.equal((await member.get('/keys?userId=0')).code, 'invalid_query');

  const theirs = Object((await make('admin')).json).id;
  assert.equal((await member.delete(`/keys/${theirs}`)).code, 'not_found');
  assert.equal((await member.delete('/keys/99')).code, 'not_found');
  assert.equal((await member.delete('/keys/1')).status, 204);
  assert.deepEqual(refusalOf(await script.get('/me')), constant);
  assert.equal((await member.delete('/keys/1')).code, 'not_found');
  const address = '127.0.0.1';
  assert.deepEqual(events.filter(([event]) => event.startsWith('key_')), [
    ['key_made', { userId: 2, keyId: 1, readOnly: false, address }],
    ['key_made', { userId: 1, keyId: 2, readOnly: false, address }],
    ['key_removed', { userId: 2, keyId: 1, by: 2, address }],
  ]);
  assert.equal(app.store.status().collections.find(({ name }) => name === 'api-keys')?.records, 1);
});

test('a token that begins with cairn_ but is not a key is refused like any bad token', async (t) => {
  const { keyOf, withKey } = await setUp(t);
  const key = await keyOf('member');
  const others = ['cairn_', `${key}x`, key.slice(0, -1), key.toUpperCase(), 'cairn_a.b.c', `cairn_${'x'.repeat(4096)}`];
  for (const other of [...others, 'a.b.c']) {
    const answer = await withKey(other).get('/items');
    assert.deepEqual(refusalOf(answer), constant, other);
    assert.equal(answer.header('www-authenticate'), 'Bearer error="invalid_token"');
  }
  assert.equal((await withKey(key).get('/items')).status, 200);
});

test('an API key cannot manage credentials or users, and a read-only one writes nothing', async (t) => {
  const { keyOf, withKey, client, signIn } = await setUp(t, { registration: 'open' });
  await (await signIn('admin')).post('/items', { json: { name: 'Lamp', price: 1 } });
  const whole = withKey(await keyOf('admin'));
  const reading = withKey(await keyOf('admin', { readOnly: true }));
  const bodies: Readonly<Record<string, unknown>> = { createManyItems: [{ name: 'Lamp', price: 1 }] };
  const documented = Object((await client.get('/openapi.json')).json).paths;
  const table: readonly Route[] = await allRoutes(undefined, { registration: 'open' });
  for (const { method, path, access, operationId = '', body } of table) {
    if (access === 'public') continue;
    const target = path.replace('{id}', '1');
    const json = bodies[operationId] ?? { name: 'Lamp', price: 1 };
    const asked = body === undefined ? {} : { json };
    const codes = [await whole.send(method, target, asked), await reading.send(method, target, asked)].map(
      ({ code }) => code,
    );
    const isRefused = /^\/(keys|sessions)/.test(path) || (path.startsWith('/users') && method !== 'GET');
    const refused = access === 'session' ? 'session_required' : isRefused ? 'insufficient_scope' : undefined;
    const writes = method === 'GET' ? undefined : 'insufficient_scope';
    assert.deepEqual(codes, [refused, refused ?? writes], operationId);
    const { security } = documented[path][method.toLowerCase()];
    assert.equal(security.some((each: object) => 'apiKey' in each), refused === undefined, operationId);
  }
});

test('creating a key requires the current password, and guesses at it are counted', async (t) => {
  const { make, signIn, credentials, client, signInBrowser } = await setUp(t);
  const json = { name: 'Backup' };
  const [member, browser] = [await signIn('member'), await signInBrowser('member')];
  for (const caller of [member, browser]) {
    const missing = await caller.post('/keys', { json });
    assert.deepEqual([missing.status, issuesOf(missing)], [422, [['/currentPassword', 'required']]]);
  }
  assert.equal((await client.post('/keys', { json })).code, 'authentication_required');
  for (let guess = 0; guess < 5; guess += 1) {
    const wrong = await make('member', { currentPassword: `guess ${guess}` });
    assert.deepEqual(issuesOf(wrong), [['/currentPassword', 'wrong_password']]);
  }
  const slowed = await make('member');
  assert.deepEqual([slowed.status, slowed.header('retry-after')], [429, '60']);
  assert.equal((await make('admin', { currentPassword: credentials('admin').password })).status, 201);

  const cross = await browser.post('/keys', { json, headers: { 'sec-fetch-site': 'cross-site' } });
  assert.equal(cross.code, 'cross_site');
  // A token from before a sign-out everywhere is of no use either.
  await browser.post('/logout', { json: { everywhere: true } });
  assert.equal((await member.post('/keys', { json })).code, 'actor_changed');
});

test('a user without a password needs none to make a key', async (t) => {
  const secret = 'the secret that signs in these tests';
  const { app, client } = await setUp(t, { secret });
  const { id } = await app.program.users.create({ name: 'Bot', email: 'bot@example.org' });
  const iat = Date.parse(start) / 1000;
  const parts = [{ alg: 'HS256' }, { userId: id, role: 'member', iat, exp: iat + 60 }];
  const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const fields = { authorization: `Bearer ${signed}.${hmacSha256(Buffer.from(secret))(signed)}` };
  assert.equal((await client.post('/keys', { headers: fields, json: { name: 'Robot' } })).status, 201);
});

test('bad input for a key is refused with its place', async (t) => {
  const { make, signIn } = await setUp(t);
  const cases: readonly [object, unknown][] = [
    [{ name: '' }, [['/name', 'too_short']]],
    [{ name: 'x'.repeat(201) }, [['/name', 'too_long']]],
    [{ readOnly: 'yes' }, [['/readOnly', 'wrong_type']]],
    [{ expiresAt: start }, [['/expiresAt', 'too_small']]],
    [{ userId: 1 }, [['/userId', 'unknown_field']]],
    [{ key: 'cairn_mine', hash: 'x' }, [['/key', 'unknown_field'], ['/hash', 'unknown_field']]],
  ];
  for (const [more, issues] of cases) {
    const answer = await make('member', more);
    assert.deepEqual([answer.status, issuesOf(answer)], [422, issues], JSON.stringify(more));
  }
  const keyed = { json: { name: 'Backup' }, headers: { 'idempotency-key': 'one' } };
  assert.equal((await (await signIn('member')).post('/keys', keyed)).code, 'malformed_request');
});

test('a key has the role that its user has now', async (t) => {
  const { keyOf, withKey, signIn } = await setUp(t);
  const script = withKey(await keyOf('member'));
  const admin = await signIn('admin');
  assert.equal((await script.get('/users')).code, 'insufficient_scope');
  await admin.patch('/users/2', { json: { role: 'admin' } });
  assert.equal((await script.get('/users')).status, 200);
  await admin.patch('/users/2', { json: { role: 'member' } });
  assert.equal((await script.get('/users')).code, 'insufficient_scope');
});

test('a reset, a new password and a removal end the keys, unless keepKeys is sent', async (t) => {
  const { client, signIn, withKey, credentials, events } = await setUp(t);
  const admin = await signIn('admin');
  let { password } = credentials('member');
  const asMember = createClient(async (method, target, asked) => {
    const { json } = await client.post('/tokens', { json: { ...credentials('member'), password } });
    return withKey(Object(json).access_token).send(method, target, asked);
  });
  /** True if a new key outlives this change. */
  const survives = async (change: (next: string) => Promise<ApiResponse>): Promise<boolean> => {
    const made = await asMember.post('/keys', { json: { name: 'Backup', currentPassword: password } });
    const script = withKey(Object(made.json).key);
    assert.equal((await script.get('/me')).status, 200);
    const next = `${password}!`;
    const { status, body } = await change(next);
    assert.ok(status < 300, body);
    password = next;
    return (await script.get('/me')).status === 200;
  };
  const own = (more: object) => (next: string) =>
    asMember.patch('/users/2', { json: { password: next, currentPassword: password, ...more } });
  const reset = (more: object) => (next: string) => admin.patch('/users/2', { json: { password: next, ...more } });
  const replaced = { name: 'Mia', email: credentials('member').email };
  assert.equal(await survives(own({ keepKeys: true })), true);
  assert.equal(await survives(own({ keepKeys: false })), false);
  assert.equal(await survives(own({})), false);
  assert.equal(await survives((next) => asMember.put('/users/2', {
    json: { ...replaced, password: next, currentPassword: password, keepKeys: true },
  })), true);
  assert.equal(await survives(reset({})), false);
  assert.equal(await survives(reset({ keepKeys: true })), false, 'a reset is for an account that others may have');
  assert.equal(await survives(() => admin.delete('/users/2')), false);
  const ended = events.filter(([event]) => event === 'key_removed').map(([, details]) => Object(details).keyId);
  assert.deepEqual(ended.sort(), [1, 2, 3, 4, 5, 6, 7]);
});

test('a key ends when it expires', async (t) => {
  const { clock, make, keyOf, withKey, signIn } = await setUp(t);
  const expiresAt = '2026-01-03T03:04:05.000Z';
  const made = await make('member', { expiresAt });
  assert.equal(Object(made.json).expiresAt, expiresAt);
  const [script, other] = [withKey(Object(made.json).key), withKey(await keyOf('member'))];
  clock.advance(day - 1);
  assert.equal((await script.get('/me')).status, 200);
  clock.advance(1);
  assert.deepEqual(refusalOf(await script.get('/me')), constant);
  assert.equal((await other.get('/me')).status, 200);
  assert.equal(Object((await (await signIn('member')).get('/keys')).json).length, 1);
});

test('the last use is stored to the hour, and written once an hour', async (t) => {
  const { clock, keyOf, withKey, signIn, app } = await setUp(t);
  const script = withKey(await keyOf('member'));
  const lastUse = async () => Object((await (await signIn('member')).get('/keys')).json)[0].lastUsedAt;
  const revision = () => app.store.sequence;
  assert.equal(await lastUse(), undefined);
  await script.get('/me');
  await app.program.users.create({ name: 'Eve', email: 'eve@example.org' });
  const before = revision();
  for (let use = 0; use < 10; use += 1) await script.get('/items');
  await script.post('/items', { json: { name: 'Lamp', price: 1 } });
  assert.equal(revision(), before + 1, 'the item alone was written');
  assert.equal(await lastUse(), '2026-01-02T03:00:00.000Z');
  clock.advance(3600);
  const written = t.mock.method(app.store, 'write');
  await Promise.all(Array.from({ length: 20 }, () => script.get('/me')));
  if (!isLockedRun) assert.equal(written.mock.callCount(), 1, 'of many uses at once, one is written');
  written.mock.restore();
  await app.program.users.create({ name: 'Mo', email: 'mo@example.org' });
  assert.equal(await lastUse(), '2026-01-02T04:00:00.000Z');
  clock.step(-30 * 60);
  await script.get('/me');
  assert.equal(await lastUse(), '2026-01-02T04:00:00.000Z', 'a clock that is set back writes nothing');
});

test('a user has at most 50 keys, and expired ones make room', async (t) => {
  const { clock, client, credentials, signIn, withKey } = await setUp(t);
  const { json } = await client.post('/tokens', { json: credentials('member') });
  const member = withKey(Object(json).access_token);
  const body = { name: 'Backup', currentPassword: credentials('member').password };
  const expiresAt = '2026-01-02T03:05:05.000Z';
  for (let made = 0; made < limits.apiKeysPerUserMax; made += 1)
    assert.equal((await member.post('/keys', { json: { ...body, ...(made === 0 && { expiresAt }) } })).status, 201);
  const refused = await member.post('/keys', { json: body });
  assert.deepEqual(refusalOf(refused).slice(0, 2), [422, 'write_refused']);
  clock.advance(60);
  assert.equal((await member.post('/keys', { json: body })).status, 201);
  assert.equal((await member.post('/keys', { json: body })).status, 422);
  assert.equal((await (await signIn('admin')).post('/keys', {
    json: { name: 'x', currentPassword: credentials('admin').password },
  })).status, 201, 'others have theirs');
});

test('a request writes nothing if its key is removed while the body arrives', { skip: isLockedRun }, async (t) => {
  const { app, keyOf, signIn } = await setUp(t);
  const key = await keyOf('member');
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const client = new RawClient(port);
  t.after(() => client.socket.destroy());
  const body = JSON.stringify({ name: 'Lamp', price: 1 });
  client.send(`POST /items HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`);
  assert.equal((await client.reply('POST')).status, 100);
  assert.equal((await (await signIn('member')).delete('/keys/1')).status, 204);
  assert.equal((await client.send(body).reply('POST')).status, 401);
});

for (const credential of ['key', 'session'] as const) {
  test(`a request by ${credential} writes nothing if its administrator loses the role while the body arrives`, {
    skip: isLockedRun,
  }, async (t) => {
    const notices = declareCollection({
      name: 'notices', fields: { text: { kind: 'text' } }, access: { create: 'admin' },
    });
    const { app, signIn, client, keyOf, createCookie: cookieOf } = await setUp(t, { collections: [notices] });
    const admin = await signIn('admin');
    const boss = { name: 'Bo', email: 'bo@example.org', password: 'a boss of the whole house', role: 'admin' };
    assert.equal((await admin.post('/users', { json: boss })).status, 201);
    const { email, password } = boss;
    const key = await keyOf('admin');
    const cookie = await cookieOf('admin');
    const field = credential === 'key' ? `Authorization: Bearer ${key}` : `Cookie: ${cookie}`;
    const { access_token } = Object((await client.post('/tokens', { json: { email, password } })).json);
    const port = await app.listen({ port: 0, host: '127.0.0.1' });
    const raw = new RawClient(port);
    t.after(() => raw.socket.destroy());
    const body = JSON.stringify({ text: 'Closed' });
    raw.send(`POST /notices HTTP/1.1\r\nHost: localhost\r\n${field}\r\nSec-Fetch-Site: same-origin\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`);
    assert.equal((await raw.reply('POST')).status, 100);
    const fields = { authorization: `Bearer ${access_token}` };
    assert.equal((await client.patch('/users/1', { headers: fields, json: { role: 'member' } })).status, 200);
    // The sessions of a demoted user end; the keys stay, with less to open.
    assert.equal((await raw.send(body).reply('POST')).status, credential === 'key' ? 403 : 401);
    assert.deepEqual((await client.get('/notices', { headers: fields })).json, []);
  });
}

test('only the hash of a key is stored, and the key works after a restart', async (t) => {
  const directory = temporaryDirectory(t);
  const first = await setUp(t, { directory });
  const key = await first.keyOf('member', { readOnly: true });
  await first.app.close();
  const content = readFileSync(join(directory, 'api-keys.json'), 'utf8');
  assert.ok(!content.includes(key) && content.includes(secretHash(key)));
  const { withKey } = await setUp(t, { directory });
  assert.equal(Object((await withKey(key).get('/me')).json).id, 2);
});

test('without authentication there are no keys', async (t) => {
  const { client } = await startApp(t, { auth: 'none' });
  assert.equal((await client.get('/keys')).code, 'not_found');
  const { paths } = Object((await client.get('/openapi.json')).json);
  assert.ok(!('/keys' in paths));
});
