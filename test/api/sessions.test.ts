import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { parseKeyRing, serialiseKeyRing } from '../../src/auth/keys.ts';
import { rotateKeyRing } from '../../src/cli/keys.ts';
import { createGenerator, TestClock, createRandom } from '../support/basics.ts';
import { RawClient } from '../support/http/raw.ts';
import { readCookie, startApp, type ApiResponse, type TestAppOptions } from '../support/app.ts';
import { createApp } from '../support/inside.ts';

const day = 24 * 3600;

async function setUp(t: TestContext, options: TestAppOptions = {}) {
  const clock = new TestClock();
  const opened = await startApp(t, { clock, ...options });
  const { client, credentials } = opened;
  const refresh = (token: string) => client.post('/tokens', { json: { refresh_token: token } });
  const family = async (who: 'admin' | 'member' = 'member') =>
    refreshTokenIn(await client.post('/tokens', { json: credentials(who) }));
  return { ...opened, clock, refresh, family };
}

const refreshTokenIn = ({ json }: ApiResponse): string => String(Object(json).refresh_token);
const bearerIn = ({ json }: ApiResponse) => ({ authorization: `Bearer ${String(Object(json).access_token)}` });
const sessionsIn = ({ json }: ApiResponse): { id: number; kind: string; current: boolean }[] =>
  Array.isArray(json) ? json : [];

test('RFC 6749 section 5.1: the response of POST /tokens, for a password and for a refresh token', async (t) => {
  const { client, credentials, refresh } = await setUp(t);
  const first = await client.post('/tokens', { json: credentials('member') });
  const second = await refresh(refreshTokenIn(first));
  for (const answer of [first, second]) {
    assert.equal(answer.status, 201);
    assert.equal(answer.header('cache-control'), 'no-store');
    assert.deepEqual(Object.keys(Object(answer.json)), ['access_token', 'token_type', 'expires_in', 'refresh_token']);
    assert.deepEqual([Object(answer.json).token_type, Object(answer.json).expires_in], ['Bearer', 900]);
    assert.equal((await client.get('/users/2', { headers: bearerIn(answer) })).status, 200);
  }
  assert.notEqual(refreshTokenIn(first), refreshTokenIn(second));
});

test('a refresh token replaces e-mail and password, and is refused together with them', async (t) => {
  const { client, credentials, family } = await setUp(t);
  const token = await family();
  for (const json of [{}, { refresh_token: token, ...credentials('member') }, { refresh_token: '' },
    { refresh_token: 1 }, { refresh_token: null }, { email: 'member@example.org' }]) {
    assert.equal((await client.post('/tokens', { json })).status, 422, JSON.stringify(json));
  }
});

test('after a lost response, the same token gets the same successor for 30 s', async (t) => {
  const { clock, refresh, family } = await setUp(t);
  const token = await family();
  const successor = refreshTokenIn(await refresh(token));
  clock.advance(30);
  const again = await refresh(token);
  assert.deepEqual([again.status, refreshTokenIn(again)], [201, successor]);
  assert.equal((await refresh(successor)).status, 201, 'and it is good');
});

test('a token that is used again after its successor was used ends the family', async (t) => {
  const { refresh, family } = await setUp(t);
  const [first, other] = [await family(), await family()];
  const second = refreshTokenIn(await refresh(first));
  const third = refreshTokenIn(await refresh(second));
  const reused = await refresh(first);
  assert.deepEqual([reused.status, reused.code], [401, 'invalid_credentials']);
  assert.equal((await refresh(third)).status, 401);
  assert.equal((await refresh(other)).status, 201, 'another family of the same user');
});

test('a token that is used again after 30 s ends the family, also when its successor was not used', async (t) => {
  const { clock, refresh, family } = await setUp(t);
  const first = await family();
  const second = refreshTokenIn(await refresh(first));
  clock.advance(31);
  assert.equal((await refresh(first)).status, 401);
  assert.equal((await refresh(second)).status, 401);
});

test('50 concurrent refreshes get the same valid successor', async (t) => {
  const { refresh, family } = await setUp(t);
  const token = await family();
  const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(token)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
  const successors = new Set(answers.map(refreshTokenIn));
  assert.equal(successors.size, 1);
  for (const successor of successors) assert.equal((await refresh(successor)).status, 201);
});

test('a client that loses responses, retries in time and works in parallel is never logged out', async (t) => {
  const { below } = createGenerator('lost answers');
  const { clock, refresh, family } = await setUp(t);
  let token = await family();
  for (let step = 0; step < 200; step += 1) {
    const answers = await Promise.all(Array.from({ length: 1 + below(4) }, () => refresh(token)));
    for (const { status } of answers) assert.equal(status, 201, `step ${step}`);
    clock.advance(below(31));
    // The last answer is lost now and then, and what is asked again has to be so within 30 s of the first time.
    if (below(3) === 0) {
      const again = await refresh(token);
      if (again.status !== 201) assert.fail(`step ${step}: the answer was lost`);
    }
    token = refreshTokenIn(answers[0] ?? assert.fail());
  }
});

test('the refreshes of one network do not delay another network', async (t) => {
  const { client } = await setUp(t, { withoutPort: true });
  const order: string[] = [];
  const refuse = async (address: string): Promise<void> => {
    const { status } = await client.post('/tokens', { json: { refresh_token: 'x'.repeat(67) }, address });
    assert.equal(status, 401);
    order.push(address);
  };
  const [flood, other] = ['192.0.2.1', '198.51.100.1'];
  await Promise.all([...Array.from({ length: 20 }, () => refuse(flood)), refuse(other)]);
  assert.ok(order.indexOf(other) <= 2, order.join());
});

test('a family ends after 14 idle days, and after 30 in any case', async (t) => {
  const { clock, refresh, family } = await setUp(t);
  const idle = await family();
  let token = await family();
  for (let week = 1; week <= 4; week += 1) {
    clock.advance(7 * day);
    token = refreshTokenIn(await refresh(token));
    if (week === 2) assert.equal((await refresh(idle)).status, 401);
  }
  clock.advance(2 * day - 1);
  token = refreshTokenIn(await refresh(token));
  clock.advance(1);
  assert.equal((await refresh(token)).status, 401);
});

test('RFC 7009 section 2.2: revoking ends the family, and reveals nothing about the token', async (t) => {
  const { client, refresh, family } = await setUp(t);
  const revoke = (token: string) => client.post('/tokens/revoke', { json: { refresh_token: token } });
  const first = await family();
  const second = refreshTokenIn(await refresh(first));
  for (const token of [first, first, 'x', 'x'.repeat(67)]) {
    const answer = await revoke(token);
    assert.deepEqual([answer.status, answer.body], [204, '']);
  }
  assert.equal((await refresh(second)).status, 401);
});

test('refresh tokens and sessions survive a restart and a rotation of the keys', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const json = { email: 'a@example.org', password: 'a good password, long' };
  const options = { directory, scryptCost: 1, administrator: json };
  const post = async (app: Awaited<ReturnType<typeof createApp>>, target: string, body: object) => {
    const fields = { 'content-type': 'application/json' };
    const reply = await app.inject({ method: 'POST', target, fields, body: JSON.stringify(body) });
    return { ...reply, json: JSON.parse(reply.body) };
  };
  const first = await createApp(options);
  const login = await post(first, '/login', json);
  const cookie = /sid=[\w-]+/.exec(String(login.fields.raw))?.[0] ?? '';
  const token = (await post(first, '/tokens', json)).json.refresh_token;
  const successor = (await post(first, '/tokens', { refresh_token: token })).json.refresh_token;
  await first.close();

  const file = join(directory, 'keys.json');
  const ring = rotateKeyRing(parseKeyRing(readFileSync(file)), createRandom('rotate'), Date.now());
  writeFileSync(file, serialiseKeyRing(ring));
  const second = await createApp(options);
  t.after(() => second.close());
  assert.equal((await second.inject({ target: '/dashboard', fields: { cookie } })).status, 200);
  assert.equal((await post(second, '/tokens', { refresh_token: token })).json.refresh_token, successor);
  assert.equal((await post(second, '/tokens', { refresh_token: successor })).status, 201);
});

test('a successor that was sent survives a crash, and a lost one can be requested again', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-'));
  const copy = mkdtempSync(join(tmpdir(), 'cairn-'));
  for (const made of [directory, copy]) t.after(() => rmSync(made, { recursive: true }));
  const { client, credentials } = await startApp(t, { directory });
  const grant = (json: object) => client.post('/tokens', { json });
  const first = refreshTokenIn(await grant(credentials('member')));
  const second = refreshTokenIn(await grant({ refresh_token: first }));
  // A crash would leave the disk as it is now.
  for (const name of readdirSync(directory)) {
    if (/^(keys|users|items|sessions|journal)/.test(name)) copyFileSync(join(directory, name), join(copy, name));
  }
  const after = await createApp({ directory: copy, scryptCost: 1 });
  t.after(() => after.close());
  const refresh = async (token: string) => {
    const fields = { 'content-type': 'application/json' };
    const body = JSON.stringify({ refresh_token: token });
    const reply = await after.inject({ method: 'POST', target: '/tokens', fields, body });
    return { status: reply.status, token: JSON.parse(reply.body).refresh_token };
  };
  assert.deepEqual(await refresh(first), { status: 201, token: second });
  assert.equal((await refresh(second)).status, 201);
});

test('an app in memory has no keys to reload, and logs nobody out', async (t) => {
  const { app, client, createToken } = await startApp(t);
  const fields = { authorization: `Bearer ${await createToken('admin')}` };
  await app.reloadKeys();
  assert.equal((await client.get('/users/1', { headers: fields })).status, 200);
});

test('reloaded keys take effect at once, and log nobody out', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const { app, client, credentials, createToken } = await startApp(t, { directory });
  const before = await createToken('admin');
  const file = join(directory, 'keys.json');
  const old = parseKeyRing(readFileSync(file));
  const ring = rotateKeyRing(old, createRandom('rotate'), Date.now());
  writeFileSync(file, serialiseKeyRing(ring));
  await app.reloadKeys();
  const after = await createToken('admin');
  const kidOf = (jwt: string): unknown => JSON.parse(Buffer.from(jwt.split('.')[0] ?? '', 'base64url').toString()).kid;
  assert.deepEqual([kidOf(before), kidOf(after)], [old.keys[0].kid, ring.keys[0].kid]);
  for (const jwt of [before, after]) {
    assert.equal((await client.get('/users/1', { headers: { authorization: `Bearer ${jwt}` } })).status, 200);
  }
  writeFileSync(file, '{}');
  await assert.rejects(app.reloadKeys(), { name: 'KeyRingError' });
  assert.equal((await client.get('/users/1', { headers: { authorization: `Bearer ${after}` } })).status, 200);

  const kept = refreshTokenIn(await client.post('/tokens', { json: credentials('admin') }));
  rmSync(file);
  await app.reloadKeys();
  for (const jwt of [before, after]) {
    assert.equal((await client.get('/users/1', { headers: { authorization: `Bearer ${jwt}` } })).status, 401);
  }
  assert.equal((await client.post('/tokens', { json: { refresh_token: kept } })).status, 201);
});

test('a user sees and ends their own sessions, and no others', async (t) => {
  const { client, createCookie, family, refresh, signInBrowser } = await setUp(t);
  const browser = await signInBrowser('member');
  await createCookie('admin');
  const token = await family();
  const listed = await browser.get('/sessions', { headers: { 'user-agent': 'test' } });
  assert.equal(listed.status, 200);
  assert.equal(listed.header('etag'), undefined);
  const [own, program] = sessionsIn(listed);
  assert.deepEqual(own, {
    id: own?.id,
    userId: 2,
    kind: 'cookie',
    createdAt: '2026-01-02T03:04:05.000Z',
    lastSeenAt: '2026-01-02T03:04:05.000Z',
    expiresAt: '2026-01-02T15:04:05.000Z',
    address: '127.0.0.1',
    agent: '',
    current: true,
  });
  assert.deepEqual([program?.kind, program?.current, sessionsIn(listed).length], ['refresh', false, 2]);
  assert.doesNotMatch(listed.body, /hash/i);

  const administrators = sessionsIn(
    await client.get('/sessions', { headers: { cookie: await createCookie('admin') } }),
  );
  for (const id of [administrators[0]?.id ?? 0, 999, 0]) {
    const refused = await browser.delete(`/sessions/${id}`);
    assert.deepEqual([refused.status, refused.code], [404, 'not_found']);
  }
  assert.equal((await browser.get('/sessions?userId=1')).code, 'insufficient_scope');
  assert.equal((await browser.delete(`/sessions/${program?.id}`)).status, 204);
  assert.equal((await refresh(token)).status, 401);
  assert.equal((await browser.delete(`/sessions/${own?.id}`)).status, 204);
  assert.equal((await browser.get('/sessions')).code, 'invalid_session');
});

test("an administrator sees and ends anyone's sessions", async (t) => {
  const { client, createCookie, signIn } = await setUp(t);
  const admin = await signIn('admin');
  const theirs = await createCookie('member');
  const [session] = sessionsIn(await admin.get('/sessions?userId=2'));
  assert.equal(session?.kind, 'cookie');
  assert.equal((await admin.delete(`/sessions/${session?.id}`)).status, 204);
  assert.equal((await client.get('/dashboard', { headers: { cookie: theirs } })).code, 'invalid_session');
  for (const id of [99, 1e15, Number.MAX_SAFE_INTEGER]) {
    assert.deepEqual((await admin.get(`/sessions?userId=${id}`)).json, []);
  }
  for (const query of ['userId=x', 'userId=0', 'userId=1&userId=2', 'limit=1', 'userId=', 'userId=9007199254740992']) {
    assert.equal((await admin.get(`/sessions?${query}`)).code, 'invalid_query', query);
  }
});

test('the actor of a removal is checked again inside the transaction', async (t) => {
  const { client, createToken, createCookie } = await setUp(t);
  const [former, other] = [{ authorization: `Bearer ${await createToken('member')}` }, await createToken('admin')];
  await createCookie('member');
  const [session] = sessionsIn(await client.get('/sessions', { headers: former }));
  await client.patch('/users/2', { headers: { authorization: `Bearer ${other}` }, json: { role: 'admin' } });
  const refused = await client.delete(`/sessions/${session?.id}`, { headers: former });
  assert.deepEqual([refused.status, refused.code], [403, 'actor_changed']);
});

test('signing out everywhere ends the sessions of browsers and of programs', async (t) => {
  const { client, createCookie, family, refresh } = await setUp(t);
  const [one, two, other] = [await createCookie('member'), await createCookie('member'), await createCookie('admin')];
  const token = await family();
  assert.equal((await client.post('/logout', { headers: { cookie: one }, json: { everywhere: true } })).status, 204);
  for (const cookie of [one, two]) assert.equal((await client.get('/dashboard', { headers: { cookie } })).status, 401);
  assert.equal((await refresh(token)).status, 401);
  assert.equal((await client.get('/dashboard', { headers: { cookie: other } })).status, 200);
});

test('a new password renews the session that changes it and ends all others', async (t) => {
  const { client, createCookie, family, refresh, credentials } = await setUp(t);
  const [mine, other, token] = [await createCookie('member'), await createCookie('member'), await family()];
  const change = { password: 'quite another password', currentPassword: credentials('member').password };
  const changed = await client.patch('/users/2', { headers: { cookie: mine }, json: change });
  assert.deepEqual([changed.status, changed.header('cache-control')], [200, 'no-store']);
  assert.doesNotMatch(changed.body, /password/i);
  const renewed = readCookie(changed);
  for (const ended of [mine, other]) {
    assert.equal((await client.get('/dashboard', { headers: { cookie: ended } })).status, 401);
  }
  assert.equal((await refresh(token)).status, 401);
  assert.equal((await client.get('/dashboard', { headers: { cookie: renewed } })).status, 200);
  const { email } = credentials('member');
  assert.equal((await client.post('/login', { json: credentials('member') })).status, 401);
  assert.equal((await client.post('/login', { json: { email, password: change.password } })).status, 200);
});

test('a session that ends while its request is being read writes nothing more', async (t) => {
  const { signIn, signInBrowser } = await setUp(t, { withoutPort: true, scryptCost: 10 });
  const browser = await signInBrowser('admin');
  // The password is hashed on another thread: the session has ended before that is done.
  const json = { name: 'Eve', email: 'eve@example.org', role: 'admin', password: 'correct horse battery staple' };
  const [made, left] = await Promise.all([
    browser.post('/users', { json }),
    browser.post('/logout'),
  ]);
  assert.deepEqual([left.status, made.status, made.code], [204, 403, 'actor_changed']);
  const admin = await signIn('admin');
  assert.equal(Object((await admin.get('/users')).json).length, 2);
});

test('a new password requires the current one, and guesses at it are slowed down', async (t) => {
  const { credentials, signInBrowser } = await setUp(t);
  const browser = await signInBrowser('member');
  const password = 'quite another password';
  const without = await browser.patch('/users/2', { json: { password } });
  assert.deepEqual([without.status, Object(without.json).errors[0].pointer], [422, '/currentPassword']);
  const all = await browser.patch('/users/2', { json: { password: 'short', name: '' } });
  const pointers = Object(all.json).errors.map(({ pointer }: { pointer: string }) => pointer);
  assert.deepEqual(pointers, ['/name', '/password', '/currentPassword']);
  const removed = await browser.patch('/users/2', { json: { password: null } });
  assert.deepEqual([removed.status, Object(removed.json).errors[0].code], [422, 'wrong_type']);
  for (let guess = 0; guess < 5; guess += 1) {
    const wrong = await browser.patch('/users/2', { json: { password, currentPassword: `guess ${guess}` } });
    assert.deepEqual([wrong.status, Object(wrong.json).errors[0].code], [422, 'wrong_password']);
  }
  const currentPassword = credentials('member').password;
  const throttled = await browser.patch('/users/2', { json: { password, currentPassword } });
  assert.deepEqual([throttled.status, throttled.header('retry-after')], [429, '60']);
  assert.equal((await browser.patch('/users/2', { json: { name: 'Maria' } })).status, 200);
});

test("other people's failures do not keep a signed-in user from changing the password", async (t) => {
  const { client, credentials, signInBrowser } = await setUp(t, { withoutPort: true });
  const browser = await signInBrowser('member');
  const { email: address, password: currentPassword } = credentials('member');
  // The guessed name need not be an address: it may also be the server's own name for the account.
  for (const email of [address, 'user 2']) {
    for (let guess = 0; guess < 30; guess += 1) {
      const json = { email, password: 'a guess of somebody' };
      assert.equal((await client.post('/login', { json, address: `192.0.2.${guess}` })).status, 401);
    }
  }
  assert.equal((await client.post('/login', { json: credentials('member'), address: '192.0.2.99' })).status, 429);
  const json = { password: 'quite another password', currentPassword };
  assert.equal((await browser.patch('/users/2', { json })).status, 200);
});

test("two administrators may set a user's password at the same time", async (t) => {
  const { client, credentials, signIn } = await setUp(t, { withoutPort: true });
  const admin = await signIn('admin');
  const passwords = ['quite another password', 'quite a third password'];
  const answers = await Promise.all(
    passwords.map((password) => admin.patch('/users/2', { json: { password } })),
  );
  assert.deepEqual(answers.map(({ status }) => status), [200, 200]);
  const { email } = credentials('member');
  const logins = await Promise.all(passwords.map((password) => client.post('/login', { json: { email, password } })));
  assert.deepEqual(logins.map(({ status }) => status).sort(), [200, 401]);
});

test('of two password changes with the same current password, only the first succeeds', async (t) => {
  const { credentials, signIn } = await setUp(t, { withoutPort: true });
  const member = await signIn('member');
  const currentPassword = credentials('member').password;
  const passwords = ['quite another password', 'quite a third password'];
  const answers = await Promise.all(
    passwords.map((password) => member.patch('/users/2', { json: { password, currentPassword } })),
  );
  // The token of the second one is older than the new password.
  const outcomes = answers.map(({ status, code }) => String(code ?? status));
  assert.deepEqual(outcomes.sort(), ['200', 'actor_changed']);
});

test("changing your own e-mail address requires the current password, like a new password", async (t) => {
  const { signIn, credentials } = await setUp(t);
  const [member, admin] = [await signIn('member'), await signIn('admin')];
  const change = (json: object): Promise<ApiResponse> => member.patch('/users/2', { json });
  const issueOf = ({ json }: ApiResponse) => Object(json).errors?.[0];
  const without = await change({ email: 'mia@example.org' });
  assert.deepEqual([without.status, issueOf(without).pointer, issueOf(without).code],
    [422, '/currentPassword', 'required']);
  const wrong = await change({ email: 'mia@example.org', currentPassword: 'a guess' });
  assert.deepEqual([wrong.status, issueOf(wrong).code], [422, 'wrong_password']);
  assert.equal((await change({ email: 'MEMBER@example.org' })).status, 200, 'capitals make no other address');
  const currentPassword = credentials('member').password;
  assert.equal((await change({ email: 'mia@example.org', currentPassword })).status, 200);
  assert.equal((await admin.patch('/users/2', { json: { email: 'mia.m@example.org' } })).status, 200);
});

/** Changes that end all of the member's sessions at once. */
const signOuts: Readonly<Record<string, (opened: Awaited<ReturnType<typeof setUp>>) => Promise<ApiResponse>>> = {
  'a new password': async ({ signInBrowser, credentials }) => {
    const json = { password: 'quite another password', currentPassword: credentials('member').password };
    return (await signInBrowser('member')).patch('/users/2', { json });
  },
  "an administrator's reset": async ({ signIn }) =>
    (await signIn('admin')).patch('/users/2', { json: { password: 'quite another password' } }),
  'a sign-out everywhere': async ({ signInBrowser }) =>
    (await signInBrowser('member')).post('/logout', { json: { everywhere: true } }),
};
for (const [what, signOut] of Object.entries(signOuts)) {
  test(`after ${what} an older token writes no users or sessions, but a new one does`, async (t) => {
    const opened = await setUp(t);
    const { client, signIn, clock, credentials } = opened;
    const stolen = await signIn('member');
    assert.ok((await signOut(opened)).status < 300);
    // The thief could not start a session, but may know of one.
    const password = what.includes('everywhere') ? credentials('member').password : 'quite another password';
    const granted = await client.post('/tokens', { json: { email: credentials('member').email, password } });
    const [session] = sessionsIn(await stolen.get('/sessions'));
    const writes: readonly [method: string, target: string, json?: object][] = [
      ['PATCH', '/users/2', { name: 'Mallory' }], ['DELETE', '/users/2'], ['DELETE', `/sessions/${session?.id}`],
    ];
    for (const [method, target, json] of writes) {
      const answer = await stolen.send(method, target, json && { json });
      assert.deepEqual([answer.status, answer.code], [403, 'actor_changed'], `${method} ${target}`);
    }
    assert.equal((await stolen.get('/users/2')).status, 200, 'until it ends, it reads');
    const fields = bearerIn(granted);
    assert.equal((await client.patch('/users/2', { headers: fields, json: { name: 'Mia M.' } })).status, 200);
    clock.advance(900);
    assert.equal((await stolen.get('/users/2')).status, 401);
  });
}

test("a token from before a sign-out cannot guess the password or use up its user's attempts", async (t) => {
  const opened = await setUp(t);
  const { signIn, client, credentials } = opened;
  const stolen = await signIn('member');
  await signOuts['a sign-out everywhere']?.(opened);
  const change = (currentPassword: string) => ({ json: { currentPassword, password: 'quite another password' } });
  for (let guess = 0; guess < 8; guess += 1) {
    const { status, code } = await stolen.patch('/users/2', change(`guess number ${guess}`));
    assert.deepEqual([status, code], [403, 'actor_changed']);
  }
  const refused = await stolen.put('/users/2', { json: { name: '' } });
  assert.equal(refused.code, 'actor_changed', 'whether it may comes before what is wrong with the body');
  const fields = bearerIn(await client.post('/tokens', { json: credentials('member') }));
  const own = await client.patch('/users/2', { headers: fields, ...change(credentials('member').password) });
  assert.equal(own.status, 200);
});

test('a refresh just before a sign-out everywhere gets no token that survives it', async (t) => {
  const { app, client, clock, createCookie, family, refresh } = await setUp(t, { withoutPort: true });
  const [mine, token] = [await createCookie('member'), await family()];
  const [, refreshed, , signedOut] = await Promise.all([
    app.store.write(() => undefined),
    refresh(token),
    app.store.write(() => clock.advance(1)),
    client.post('/logout', { headers: { cookie: mine }, json: { everywhere: true } }),
  ]);
  assert.deepEqual([refreshed.status, signedOut.status], [201, 204]);
  const refused = await client.patch('/users/2', { headers: bearerIn(refreshed), json: { name: 'Mallory' } });
  assert.deepEqual([refused.status, refused.code], [403, 'actor_changed']);
});

test('a token of the same second does not survive another sign-out everywhere', async (t) => {
  const opened = await setUp(t);
  for (let round = 0; round < 3; round += 1) {
    await signOuts['a sign-out everywhere']?.(opened);
    const stolen = await opened.signIn('member');
    await signOuts['a sign-out everywhere']?.(opened);
    assert.equal((await stolen.patch('/users/2', { json: { name: 'Mallory' } })).code, 'actor_changed');
  }
});

test('old tokens stay refused when a demoted administrator is promoted again', async (t) => {
  const { signIn } = await setUp(t);
  const admin = await signIn('admin');
  const setRole = async (role: string) => {
    assert.equal((await admin.patch('/users/2', { json: { role } })).status, 200);
  };
  await setRole('admin');
  const former = await signIn('member');
  assert.equal((await former.patch('/users/2', { json: { name: 'Mia M.' } })).status, 200);
  await setRole('member');
  await setRole('admin');
  assert.equal((await former.patch('/users/1', { json: { name: 'Mallory' } })).code, 'actor_changed');
  assert.equal((await (await signIn('member')).patch('/users/2', { json: { name: 'Mia' } })).status, 200);
});

test('a sign-in while the clock is half a minute behind revives no token', async (t) => {
  const opened = await setUp(t);
  const { signIn, clock } = opened;
  clock.step(20);
  const stolen = await signIn('member');
  clock.step(10);
  await signOuts['a sign-out everywhere']?.(opened);
  clock.step(-30);
  const own = await signIn('member');
  assert.equal((await stolen.patch('/users/2', { json: { name: 'Mallory' } })).code, 'actor_changed');
  assert.equal((await own.patch('/users/2', { json: { name: 'Mia M.' } })).status, 200);
});

test('a sign-out everywhere while the clock was ahead does not refuse later tokens', async (t) => {
  const opened = await setUp(t);
  const { client, clock, credentials } = opened;
  clock.step(10 * 365 * day);
  await signOuts['a sign-out everywhere']?.(opened);
  clock.step(-10 * 365 * day);
  const fields = bearerIn(await client.post('/tokens', { json: credentials('member') }));
  assert.equal((await client.patch('/users/2', { headers: fields, json: { name: 'Mia M.' } })).status, 200);
});

test('a sign-in gets no session if the password changes while it is compared', async (t) => {
  const { client, credentials, signIn } = await setUp(t, { withoutPort: true, scryptCost: 10 });
  const admin = await signIn('admin');
  const login = (email: string) => client.post('/login', { json: { ...credentials('member'), email } });
  // Two passwords are hashed at a time, so the last sign-in's turn comes when the new password is there.
  const [changed] = await Promise.all([
    admin.patch('/users/2', { json: { password: 'quite another password' } }),
    ...['x@example.org', 'y@example.org', 'z@example.org', credentials('member').email].map(login),
  ]);
  assert.equal(changed.status, 200);
  assert.deepEqual((await admin.get('/sessions?userId=2')).json, []);
});

test("an administrator who sets a user's password ends only that user's sessions", async (t) => {
  const { client, createCookie } = await setUp(t);
  const [admin, member] = [await createCookie('admin'), await createCookie('member')];
  const json = { password: 'quite another password' };
  const changed = await client.patch('/users/2', { headers: { cookie: admin }, json });
  assert.deepEqual([changed.status, changed.header('set-cookie')], [200, undefined]);
  assert.equal((await client.get('/dashboard', { headers: { cookie: member } })).status, 401);
  assert.equal((await client.get('/dashboard', { headers: { cookie: admin } })).status, 200);
});

test("changing a user's role or removing the user ends their sessions in the same commit", async (t) => {
  const { app, client, createCookie, family, refresh, signIn } = await setUp(t);
  const admin = await signIn('admin');
  for (const [method, json] of [['PATCH', { role: 'admin' }], ['DELETE', undefined]] as const) {
    const [session, program] = [await createCookie('member'), await family()];
    const { sequence } = app.store.status();
    const answer = await admin.send(method, '/users/2', { ...(json && { json }) });
    assert.ok(answer.status < 300);
    assert.equal(app.store.status().sequence, sequence + 1);
    assert.equal((await client.get('/dashboard', { headers: { cookie: session } })).status, 401);
    assert.equal((await refresh(program)).status, 401);
  }
});

test('changing the name or e-mail address ends no session', async (t) => {
  const { signInBrowser, credentials } = await setUp(t);
  const browser = await signInBrowser('member');
  const currentPassword = credentials('member').password;
  const json = { name: 'Maria', email: 'maria@example.org', currentPassword };
  assert.equal((await browser.patch('/users/2', { json })).status, 200);
  assert.equal((await browser.get('/dashboard')).status, 200);
});

test('a user has at most 50 sessions, and another one ends the oldest', async (t) => {
  const { client, createCookie } = await setUp(t);
  const cookies = [];
  for (let index = 0; index < 52; index += 1) cookies.push(await createCookie('member'));
  const answers = await Promise.all(cookies.map((cookie) => client.get('/dashboard', { headers: { cookie } })));
  assert.deepEqual(answers.map(({ status }) => status), [401, 401, ...new Array<number>(50).fill(200)]);
});

test('an ended session does not count, and cannot be ended again', async (t) => {
  const { client, clock, createCookie, family, refresh, signInBrowser } = await setUp(t);
  const token = await family();
  for (let index = 0; index < 48; index += 1) await createCookie('member');
  const browser = await signInBrowser('member');
  const idle = sessionsIn(await browser.get('/sessions')).at(-1);
  clock.advance(13 * 3600);
  const refreshed = await refresh(token);
  const refused = await client.delete(`/sessions/${idle?.id}`, { headers: bearerIn(refreshed) });
  assert.deepEqual([idle?.current, refused.status], [true, 404]);
  await createCookie('member');
  assert.deepEqual(
    sessionsIn(await client.get('/sessions', { headers: bearerIn(refreshed) })).map(({ kind }) => kind),
    ['refresh', 'cookie'],
  );
  assert.equal((await refresh(refreshTokenIn(refreshed))).status, 201);
});

test('ended sessions are not shown, and are removed when new ones start', async (t) => {
  const { app, clock, createCookie, signInBrowser } = await setUp(t);
  for (let index = 0; index < 10; index += 1) await createCookie('member');
  clock.advance(12 * 3600);
  const browser = await signInBrowser('admin');
  assert.deepEqual((await browser.get('/sessions?userId=2')).json, []);
  const records = app.store.status().collections.find(({ name }) => name === 'sessions')?.records;
  // The cookie of just now, and the refresh tokens of the set-up.
  assert.equal(records, 2);
});

test('a session in use lives until its absolute limit, and its use is rarely written', async (t) => {
  const { app, clock, signInBrowser } = await setUp(t, { withoutPort: true });
  const browser = await signInBrowser('member');
  const { commits } = app.store.status();
  for (let hour = 1; hour < 7 * 24; hour += 1) {
    clock.advance(3600);
    for (let use = 0; use < 3; use += 1) assert.equal((await browser.get('/items')).status, 200);
    // Nobody waits for the writes, so let them come to their turn.
    await turn();
  }
  const written = app.store.status().commits - commits;
  assert.ok(written <= 7 * 24, `${written} commits`);
  clock.advance(3600);
  assert.equal((await browser.get('/items')).code, 'invalid_session');
});

test('a session that is not used ends after the idle time', async (t) => {
  const { clock, signInBrowser } = await setUp(t);
  const browser = await signInBrowser('member');
  clock.advance(12 * 3600 - 1);
  assert.equal((await browser.get('/items')).status, 200);
  clock.advance(12 * 3600);
  assert.equal((await browser.get('/items')).code, 'invalid_session');
});

test('a login rehashes the password if the cost has changed, even with many logins at once', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const administrator = { email: 'a@example.org', password: 'a good password, long' };
  await (await createApp({ directory, administrator, scryptCost: 1 })).close();
  const app = await createApp({ directory, scryptCost: 2 });
  t.after(() => app.close());
  const login = () =>
    app.inject({
      method: 'POST',
      target: '/login',
      fields: { 'content-type': 'application/json' },
      body: JSON.stringify(administrator),
    });
  assert.match(app.users.records.get(1)?.passwordHash ?? '', /ln=1,/);
  const statuses = await Promise.all([login(), login(), login(), login()]);
  assert.deepEqual(statuses.map(({ status }) => status), [200, 200, 200, 200]);
  assert.match(app.users.records.get(1)?.passwordHash ?? '', /ln=2,/);
  assert.equal((await login()).status, 200);
});

/** Each begins a write of the member's whose body is not all there yet when their stay comes to its end. */
const ends: Readonly<Record<string, (asked: Awaited<ReturnType<typeof setUp>>, cookie: string) => Promise<unknown>>> = {
  'a sign-out': ({ client }, cookie) => client.post('/logout', { headers: { cookie } }),
  'a sign-out everywhere': async ({ client, createCookie }) =>
    client.post('/logout', { headers: { cookie: await createCookie('member') }, json: { everywhere: true } }),
  'the removal of the user': async ({ client, createToken }) =>
    client.delete('/users/2', { headers: { authorization: `Bearer ${await createToken('admin')}` } }),
};
for (const [what, end] of Object.entries(ends)) {
  test(`after ${what} a request whose body is still arriving writes nothing`, async (t) => {
    const opened = await setUp(t, { withoutPort: true });
    const { app, client, createCookie } = opened;
    const sid = await createCookie('member');
    const item = { name: 'Lamp', price: 1 };
    await client.post('/items', { headers: { cookie: sid }, json: item });
    const port = await app.listen({ port: 0, host: '127.0.0.1' });
    const body = '{"name":"Lamp","price":2}';
    const clients = ['POST /items', 'PUT /items/1', 'PATCH /items/1', 'PATCH /users/2'].map((line) =>
      new RawClient(port).send(`${line} HTTP/1.1\r\nHost: a\r\nCookie: ${sid}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`));
    while (app.load().inFlight < clients.length) await turn();
    await end(opened, sid);
    for (const client of clients) {
      assert.equal((await client.send(body.slice(5)).reply()).status, 401);
      client.socket.destroy();
    }
    const fields = { authorization: `Bearer ${await opened.createToken('admin')}` };
    assert.deepEqual((await client.get('/items', { headers: fields })).json, [{ id: 1, ...item }]);
  });
}

const decade = 10 * 365 * day;

test('sessions from a clock that was ahead count as new', async (t) => {
  const { clock, createCookie, family, refresh, client } = await setUp(t);
  clock.step(decade);
  const [sid, token] = [await createCookie('member'), await family()];
  clock.step(-decade);
  assert.equal((await client.get('/dashboard', { headers: { cookie: sid } })).status, 200);
  assert.equal((await refresh(token)).status, 201);
});

test('a clock that starts in 1970 ends no earlier session', async (t) => {
  const { clock, createCookie, family, refresh, client } = await setUp(t);
  const [sid, token] = [await createCookie('member'), await family()];
  const sinceEpoch = Math.floor(clock.now() / 1000) - 60;
  clock.step(-sinceEpoch);
  for (let count = 0; count < 3; count += 1) await createCookie('admin');
  clock.advance(60);
  clock.step(sinceEpoch);
  assert.equal((await client.get('/dashboard', { headers: { cookie: sid } })).status, 200);
  assert.equal((await refresh(token)).status, 201);
});

test('setting the clock back ends no session that was used meanwhile', async (t) => {
  const { clock, createCookie, family, refresh, client } = await setUp(t);
  const [sid, token] = [await createCookie('member'), await family()];
  const dashboard = () => client.get('/dashboard', { headers: { cookie: sid } });
  const lastSeenAt = async () => Date.parse(Object((await dashboard()).json).session.lastSeenAt);
  clock.step(day / 12);
  while ((await lastSeenAt()) < clock.now()) await turn();
  const refreshed = refreshTokenIn(await refresh(token));
  clock.step(-day / 12);
  assert.equal((await dashboard()).status, 200);
  assert.equal((await refresh(refreshed)).status, 201);
  clock.advance((7 / 12) * day);
  assert.equal((await dashboard()).status, 401, 'it ends by the time of its last use');
});

test('access tokens and the throttle work after the clock steps ten years forward and back', async (t) => {
  const { client, signIn, clock, credentials } = await setUp(t);
  for (const step of [decade, -decade]) {
    const member = await signIn('member');
    const wrong = { ...credentials('member'), password: 'a guess at a password' };
    const address = `192.0.2.${step > 0 ? 1 : 2}`;
    const guess = async () => (await client.post('/login', { json: wrong, address })).status;
    for (let count = 0; count < 5; count += 1) assert.equal(await guess(), 401);
    assert.equal(await guess(), 429);
    clock.step(step);
    assert.equal((await member.get('/items')).code, 'invalid_token', 'it has expired, or is from the future');
    assert.equal(await guess(), 429, 'to set the clock buys no further guess');
    assert.equal((await (await signIn('member')).get('/items')).status, 200, 'signing in goes on');
    clock.advance(60);
    assert.equal(await guess(), 401);
    clock.step(-step);
  }
});

test('Session-User names the owner of the cookie; a request with the cookie of another user is refused', async (t) => {
  const { signInBrowser, signIn } = await setUp(t);
  const [mia, program] = [await signInBrowser('member'), await signIn('member')];
  const item = { name: 'Lamp', price: 1 };
  const named = (user: string) => ({ headers: { 'session-user': user } });
  assert.equal((await mia.post('/items', { json: item, ...named('2') })).status, 201);
  for (const user of ['1', '02', '2, 2', 'Mia', '']) {
    const refused = await mia.post('/items', { json: item, ...named(user) });
    assert.deepEqual([refused.status, refused.code], [409, 'other_user'], user);
  }
  assert.equal((await mia.get('/items', named('1'))).code, 'other_user');
  assert.equal((await mia.post('/logout', { json: {}, ...named('1') })).code, 'other_user');
  assert.deepEqual(Object((await mia.get('/items')).json).length, 1);
  // A bearer token names its user by itself.
  assert.equal((await program.get('/items', named('1'))).status, 200);
  assert.equal((await mia.post('/logout', { json: {}, ...named('2') })).status, 204);
});
