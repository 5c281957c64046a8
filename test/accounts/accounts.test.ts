import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localTarget } from '../../src/collections/resource.ts';
import { Passwords } from '../../src/auth/passwords.ts';
import { CairnError } from '../../src/base/errors.ts';
import { systemClock, systemRandom } from '../../src/base/system.ts';
import { limits } from '../../src/base/limits.ts';
import { silentLog, type LogDetails, type SecurityEvent } from '../../src/log/log.ts';
import type { SessionRecord } from '../../src/accounts/records.ts';
import { NodeFiles } from '../../src/store/disk/node-files.ts';
import { openStore } from '../../src/store/open-store.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { startApp } from '../support/app.ts';
import { createApp } from '../support/inside.ts';

test('a change of an e-mail address is logged as a security event, without the address', async (t) => {
  const events: [SecurityEvent, unknown][] = [];
  const log = { ...silentLog, security: (...event: [SecurityEvent, unknown]) => void events.push(event) };
  const { signIn } = await startApp(t, { log });
  const admin = await signIn('admin');
  const renamed = { name: 'Mia M.', email: 'member@example.org' };
  events.length = 0;
  await admin.put('/users/2', { json: renamed });
  assert.deepEqual(events, []);
  await admin.patch('/users/2', { json: { email: 'mia@example.org' } });
  assert.deepEqual(events, [['email_changed', { userId: 2, by: 1, address: '127.0.0.1' }]]);
});

test('every security event caused by a request has the network address of the caller', async (t) => {
  const events: [SecurityEvent, LogDetails][] = [];
  const log = { ...silentLog, security: (...event: [SecurityEvent, LogDetails]) => void events.push(event) };
  const { client, signIn, signInBrowser, credentials } = await startApp(t, { log });
  const [admin, session, member] = [await signIn('admin'), await signInBrowser('admin'), await signInBrowser('member')];
  const json = credentials('member');
  const refreshToken = async () => String(Object((await client.post('/tokens', { json })).json).refresh_token);
  const [first, revoked] = [await refreshToken(), await refreshToken()];
  events.length = 0;
  const address = '192.0.2.7';
  const refresh = (token: string) => client.post('/tokens', { json: { refresh_token: token }, address });
  const { refresh_token: second } = Object((await refresh(first)).json);
  await refresh(second);
  await refresh(first);
  await client.post('/tokens/revoke', { json: { refresh_token: revoked }, address });
  const secret = { password: 'another good password', currentPassword: json.password };
  await member.patch('/users/2', { json: { ...secret, currentPassword: 'guessed' }, address });
  await member.patch('/users/2', { json: secret, address });
  await admin.patch('/users/2', { json: { role: 'admin', email: 'mia@example.org' }, address });
  await admin.post('/users', { json: { name: 'Bob', email: 'bob@example.org' }, address });
  await admin.delete('/users/3', { address });
  await admin.delete('/sessions/1', { address });
  await session.post('/logout', { address });
  assert.deepEqual(events.map(([event]) => event), [
    'refresh_token_reused', 'session_ended', 'login_failed', 'password_changed', 'email_changed', 'role_changed',
    'user_created', 'user_removed', 'session_ended', 'logout',
  ]);
  assert.deepEqual(events.filter(([, details]) => details['address'] !== address), []);
});

test('a session that makes room for another, and refused guesses of a password, are logged', async (t) => {
  const events: [SecurityEvent, LogDetails][] = [];
  const log = { ...silentLog, security: (...event: [SecurityEvent, LogDetails]) => void events.push(event) };
  const { client, signIn, credentials } = await startApp(t, { log });
  const member = await signIn('member');
  const address = '192.0.2.7';
  const signInAgain = async (): Promise<void> => {
    const { status } = await client.post('/tokens', { json: credentials('member'), address });
    assert.equal(status, 201);
  };
  const [, first] = events.find(([event, { userId }]) => event === 'login' && userId === 2) ?? [];
  for (let more = 1; more < limits.sessionsPerUserMax; more += 1) await signInAgain();
  events.length = 0;
  await signInAgain();
  const { sessionId } = first ?? {};
  assert.deepEqual(events[0], ['session_ended', { userId: 2, sessionId, address }]);
  assert.deepEqual(events.map(([event]) => event), ['session_ended', 'login']);
  events.length = 0;
  const json = { password: 'another good password', currentPassword: 'guessed' };
  for (let guesses = 0; guesses < 6; guesses += 1) await member.patch('/users/2', { json, address });
  const told = (event: SecurityEvent) => [event, { userId: 2, address }];
  assert.deepEqual(events, [...new Array(5).fill(told('login_failed')), told('login_throttled')]);
});

test('of two first users that are added at once only one is made', async (t) => {
  const app = await createApp({});
  t.after(() => app.close());
  const first = (name: string) => ({ name, role: 'admin', email: `${name}@example.org` });
  // Without passwords to hash, both are decided in one batch.
  await Promise.all([app.users.addFirst(first('ada')), app.users.addFirst(first('bob'))]);
  assert.deepEqual(app.users.records.latest(9).map(({ name }) => name), ['ada']);
});

test('a change of a user is validated once, and again only if the user has changed meanwhile', async (t) => {
  const { app } = await startApp(t);
  const { users, store } = app;
  const validated: unknown[] = [];
  const draft = {
    kind: 'patch',
    against(stored: object) {
      validated.push(Reflect.get(stored, 'name'));
      return { name: 'Mia N.', email: 'member@example.org', role: 'member' };
    },
  } as const;
  const target = localTarget(2);
  const change = async (rename?: string) => {
    validated.length = 0;
    const prepared = await users.prepareChange(target, draft);
    if (rename !== undefined) await app.program.users.change(2, { name: rename });
    await store.write((tx) => users.change(tx, target, draft, prepared));
    return validated;
  };
  assert.deepEqual(await change(), ['Mia']);
  assert.deepEqual(await change('Mia M.'), ['Mia N.', 'Mia M.']);
});

test('a session without a valid user id or time is refused at the start', async (t) => {
  const session = { kind: 'cookie', lookupHash: 'x', address: '', agent: '' } as const;
  const starts = async (createdAt: number, userId = 1): Promise<string> => {
    const directory = temporaryDirectory(t);
    const store = openStore({ files: new NodeFiles(directory), clock: systemClock, random: systemRandom });
    const sessions = store.collection<SessionRecord>({ name: 'sessions', isServers: true, parse: () => 'is none' });
    await store.start();
    await store.write((transaction) =>
      transaction.of(sessions).insert({ ...session, userId, createdAt, lastSeenAt: createdAt }),
    );
    await store.close();
    try {
      await (await createApp({ directory })).close();
    } catch (error) {
      return error instanceof Error ? error.message : '';
    }
    return 'started';
  };
  assert.equal(await starts(1_900_000_000_000), 'started');
  for (const time of [9e15, -9e15, 8.64e15, -1]) {
    assert.match(await starts(time), /it does not fit the declaration of sessions/, String(time));
  }
  assert.match(await starts(1_900_000_000_000, 1.5), /it does not fit the declaration of sessions/);
});

test('of two users that are created at once with one e-mail address, one is refused', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  const json = { name: 'Bob', email: 'bob@example.org', password: 'correct horse battery' };
  const both = await Promise.all([admin.post('/users', { json }), admin.post('/users', { json })]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 409]);
  assert.deepEqual(both.flatMap(({ code }) => code ?? []), ['email_taken']);
});

test('a sign-in hashes the password anew only if the configured cost has changed', async (t) => {
  const directory = temporaryDirectory(t);
  const administrator = { email: 'ada@example.org', password: 'correct horse battery' };
  const signIn = async (scryptCost: number): Promise<string | undefined> => {
    const app = await createApp({ directory, administrator, scryptCost });
    const body = JSON.stringify(administrator);
    const fields = { 'content-type': 'application/json' };
    assert.equal((await app.inject({ method: 'POST', target: '/tokens', fields, body })).status, 201);
    const hash = app.users.records.get(1)?.passwordHash;
    await app.close();
    return hash;
  };
  const [first, second, third] = [await signIn(1), await signIn(1), await signIn(2)];
  assert.equal(second, first);
  assert.match(first ?? '', /ln=1,/);
  assert.match(third ?? '', /ln=2,/);
});

test('a sign-in goes on if the server is too busy to hash the password anew', async (t) => {
  const { client, credentials } = await startApp(t);
  t.mock.method(Passwords.prototype, 'needsRehash', () => true);
  t.mock.method(Passwords.prototype, 'hash', () => Promise.reject(new CairnError('overloaded', 'Busy')));
  assert.equal((await client.post('/tokens', { json: credentials('admin') })).status, 201);
});

test('the log has the user of a request who is signed in', async (t) => {
  const administrator = { email: 'ada@example.org', password: 'correct horse battery' };
  let resolve: (users: readonly (number | undefined)[]) => void = () => undefined;
  const answered = new Promise<readonly (number | undefined)[]>((settle) => (resolve = settle));
  const users: (number | undefined)[] = [];
  const request = ({ userId }: { readonly userId: number | undefined }): void => {
    if (users.push(userId) === 3) resolve(users);
  };
  const app = await createApp({ administrator, scryptCost: 1, log: { ...silentLog, request } });
  t.after(app.close);
  const url = `http://127.0.0.1:${await app.listen({ port: 0 })}`;
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify(administrator);
  const tokens = await (await fetch(`${url}/tokens`, { method: 'POST', headers, body })).json();
  await fetch(`${url}/items`, { headers: { Authorization: `Bearer ${Object(tokens).access_token}` } });
  await fetch(`${url}/items`);
  assert.deepEqual(await answered, [undefined, 1, undefined]);
});
