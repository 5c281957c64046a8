import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Passwords } from '../../src/auth/passwords.ts';
import { secretHash } from '../../src/auth/secrets.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { silentLog } from '../../src/log/log.ts';
import { startApp, type ApiResponse, type RequestOptions, type TestAppOptions } from '../support/app.ts';
import { TestClock } from '../support/basics.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';

const eve = { name: 'Eve', email: 'eve@example.org' };
const password = 'a good and long password';

/** An app with a user Eve, number 3, who has no password. */
async function setUp(t: TestContext, options: TestAppOptions = {}) {
  const clock = new TestClock();
  const events: [string, object][] = [];
  const log = { ...silentLog, security: (...event: [string, object]) => void events.push(event) };
  const opened = await startApp(t, { clock, log, ...options });
  const admin = await opened.signIn('admin');
  assert.equal((await admin.post('/users', { json: eve })).status, 201);
  const invite = (id = 3): Promise<ApiResponse> => admin.post(`/users/${id}/invitation`);
  const tokenOf = (answer: ApiResponse): string => String(Object(answer.json).path).replace('/#/invite/', '');
  const accept = (token: string, more: object = {}, asked: RequestOptions = {}): Promise<ApiResponse> =>
    opened.client.post('/invitations', { json: { token, password, ...more }, ...asked });
  const logIn = (secret = password): Promise<ApiResponse> =>
    opened.client.post('/login', { json: { email: eve.email, password: secret } });
  return { ...opened, clock, events, admin, invite, tokenOf, accept, logIn };
}

const refusalOf = ({ json, header }: ApiResponse): unknown => {
  const { status, code, detail } = Object(json);
  return [status, code, detail, header('cache-control')];
};
const refused = [
  401, 'invalid_credentials',
  'Cannot accept the invitation: it is not valid, has expired or was used; ask for a new one', 'no-store',
];

test('an invitation lets a user choose a password, once', async (t) => {
  const { invite, tokenOf, accept, logIn, events, client } = await setUp(t);
  const invited = await invite();
  assert.deepEqual([invited.status, invited.header('cache-control')], [201, 'no-store']);
  assert.match(String(Object(invited.json).path), /^\/#\/invite\/[\w-]{43}$/);
  const token = tokenOf(invited);
  const accepted = await accept(token);
  assert.deepEqual([accepted.status, accepted.body, accepted.header('cache-control')], [204, '', 'no-store']);
  assert.equal((await logIn()).status, 200);
  assert.deepEqual(refusalOf(await accept(token)), refused);
  const seen = events.filter(([event]) => /invitation|password/.test(event));
  assert.deepEqual(seen, [
    ['invitation_made', { userId: 3, by: 1, address: '127.0.0.1' }],
    ['password_changed', { userId: 3, by: 3, address: '127.0.0.1' }],
  ]);
  assert.equal((await client.get('/readyz')).status, 200);
});

test('every bad invitation gets the same refusal', async (t) => {
  const { invite, tokenOf, accept, clock, createToken: tokenFor, createCookie } = await setUp(t);
  const former = tokenOf(await invite());
  const current = tokenOf(await invite());
  const others = [
    former,
    'x'.repeat(43),
    current.slice(1),
    await tokenFor('admin'),
    (await createCookie('admin')).slice(4),
  ];
  for (const token of others) assert.deepEqual(refusalOf(await accept(token)), refused, token);
  clock.advance(24 * 3600 - 1);
  assert.equal((await accept(current, { password: 'short' })).status, 422, 'it is good until its last second');
  clock.advance(1);
  assert.deepEqual(refusalOf(await accept(current)), refused);
});

test('an invitation ends with a password, another address or role, and the user; not with another name', async (t) => {
  const changes: readonly [status: number, method: string, json?: object][] = [
    [204, 'PATCH', { name: 'Eva' }],
    [401, 'PATCH', { password: 'another good password' }],
    [401, 'PATCH', { email: 'eva@example.org' }],
    [401, 'PATCH', { role: 'admin' }],
    [401, 'DELETE'],
  ];
  for (const [status, method, json] of changes) {
    const { admin, invite, tokenOf, accept } = await setUp(t);
    const token = tokenOf(await invite());
    const { status: done } = await admin.send(method, '/users/3', json === undefined ? {} : { json });
    assert.ok(done < 300);
    assert.equal((await accept(token)).status, status, `${method} ${JSON.stringify(json)}`);
  }
});

test('only administrators invite, not by an API key, and only users without a password', async (t) => {
  const { client, signIn, invite, admin, credentials } = await setUp(t);
  const path = '/users/3/invitation';
  assert.equal((await client.post(path)).status, 401);
  assert.equal((await (await signIn('member')).post(path)).status, 403);
  const made = await admin.post('/keys', {
    json: { name: 'x', currentPassword: credentials('admin').password },
  });
  const fields = { authorization: `Bearer ${Object(made.json).key}` };
  assert.deepEqual([(await client.post(path, { headers: fields })).status, (await invite(9)).status], [403, 404]);
  const { status, code } = await invite(2);
  assert.deepEqual([status, code], [409, 'conflict']);
});

test('a demoted administrator cannot invite with an old token', async (t) => {
  const { invite, admin, app } = await setUp(t);
  const boss = { name: 'Bo', email: 'bo@example.org', role: 'admin', password };
  assert.equal((await admin.post('/users', { json: boss })).status, 201);
  await app.program.users.change(1, { role: 'member' });
  assert.equal((await invite()).code, 'actor_changed');
});

test('the rules for passwords hold, and a refused one leaves the invitation good', async (t) => {
  const { invite, tokenOf, accept } = await setUp(t);
  const token = tokenOf(await invite());
  for (const bad of ['short', 'passwordpassword', 'eve@example.org 1', 'x'.repeat(1025)]) {
    const answer = await accept(token, { password: bad });
    assert.deepEqual([answer.status, answer.code], [422, 'validation_failed'], bad);
  }
  assert.equal((await accept(token)).status, 204);
});

test('an unknown invitation costs no hash, and guesses from a network are slowed down', async (t) => {
  const { accept, invite, tokenOf } = await setUp(t, { withoutPort: true });
  const token = tokenOf(await invite());
  const hashed = t.mock.method(Passwords.prototype, 'hash');
  const statuses: number[] = [];
  for (let count = 0; count < 31; count += 1) statuses.push((await accept(`guess ${count}`)).status);
  assert.deepEqual(statuses, [...new Array<number>(30).fill(401), 429]);
  const waiting = await accept(token);
  assert.deepEqual([waiting.status, waiting.header('retry-after')], [429, '10']);
  assert.equal(hashed.mock.callCount(), 0);
  assert.equal((await accept(token, {}, { address: '192.0.2.1' })).status, 204, 'other networks go on');
});

test('of two simultaneous acceptances, one sets its password', async (t) => {
  const { invite, tokenOf, accept, logIn } = await setUp(t);
  const token = tokenOf(await invite());
  const answers = await Promise.all([accept(token), accept(token, { password: `${password}!` })]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 401]);
  const statuses = [(await logIn()).status, (await logIn(`${password}!`)).status];
  assert.deepEqual(statuses, answers.map(({ status }) => (status === 204 ? 200 : 401)));
});

test('pages of other sites accept no invitation, and no idempotency key is taken', async (t) => {
  const { invite, tokenOf, accept, admin } = await setUp(t, { corsOrigins: ['https://app.example'] });
  const token = tokenOf(await invite());
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://app.example' }]) {
    const { status, code } = await accept(token, {}, { headers });
    assert.deepEqual([status, code], [403, 'cross_site']);
  }
  const headers = { 'idempotency-key': 'k' };
  assert.equal((await accept(token, {}, { headers })).status, 400);
  assert.equal((await admin.post('/users/3/invitation', { headers })).status, 400);
});

test('an invitation is not a session, and only its hash is stored', async (t) => {
  const directory = temporaryDirectory(t);
  const { invite, tokenOf, admin, app } = await setUp(t, { directory });
  const token = tokenOf(await invite());
  assert.deepEqual((await admin.get('/sessions?userId=3')).json, []);
  await app.close();
  const stored = readFileSync(join(directory, 'sessions.json'), 'utf8');
  assert.ok(!stored.includes(token) && stored.includes(secretHash(token)));
  const { accept } = await reopened(t, directory);
  assert.equal((await accept(token)).status, 204, 'it is good after a restart');
});

async function reopened(t: TestContext, directory: string) {
  const { client } = await startApp(t, { directory, clock: new TestClock() });
  return { accept: (token: string) => client.post('/invitations', { json: { token, password } }) };
}

test('a base path is part of the path of an invitation', async (t) => {
  const { invite } = await setUp(t, { basePath: '/api' });
  assert.match(String(Object((await invite()).json).path), /^\/api\/#\/invite\//);
});

test('a collection called invitations takes over the path, and the log says so', async (t) => {
  const told: string[] = [];
  const log = { ...silentLog, message: (_: string, text: string) => void told.push(text) };
  const invitations = declareCollection({ name: 'invitations', fields: { text: { kind: 'text' } } });
  const { signIn } = await startApp(t, { collections: [invitations], log });
  const admin = await signIn('admin');
  assert.equal((await admin.post('/invitations', { json: { text: 'a party' } })).status, 201);
  assert.equal((await admin.post('/users/2/invitation')).status, 404);
  assert.ok(told.includes('Nobody can be invited: a collection has the path /invitations'));
});
