import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startApp } from '../support/app.ts';

test('an item is created, read, replaced, patched, listed and removed', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');

  const created = await admin.post('/items', { json: { name: 'Lamp', price: 24.5 } });
  assert.equal(created.status, 201);
  assert.deepEqual(created.json, { id: 1, name: 'Lamp', price: 24.5 });
  assert.equal(created.header('location'), '/items/1');

  const read = await admin.get('/items/1');
  assert.deepEqual([read.status, read.json], [200, { id: 1, name: 'Lamp', price: 24.5 }]);
  assert.equal(read.header('etag'), created.header('etag'));

  const replaced = await admin.put('/items/1', { json: { name: 'Desk lamp', price: 30 } });
  assert.deepEqual([replaced.status, replaced.json], [200, { id: 1, name: 'Desk lamp', price: 30 }]);

  const patched = await admin.patch('/items/1', { json: { price: 31 } });
  assert.deepEqual([patched.status, patched.json], [200, { id: 1, name: 'Desk lamp', price: 31 }]);

  const listed = await admin.get('/items');
  assert.deepEqual([listed.status, listed.json], [200, [{ id: 1, name: 'Desk lamp', price: 31 }]]);

  const removed = await admin.delete('/items/1');
  assert.deepEqual([removed.status, removed.body], [204, '']);
  assert.equal((await admin.get('/items/1')).status, 404);
});

test("GET /me returns the caller's own record and its path, with a token or a cookie", async (t) => {
  const { app, client, signIn, signInBrowser } = await startApp(t);
  const [member, browser] = [await signIn('member'), await signInBrowser('member')];
  const record = await member.get('/users/2');
  for (const asks of [member, browser]) {
    const me = await asks.get('/me');
    assert.deepEqual([me.status, me.json], [200, record.json]);
    assert.deepEqual([me.header('content-location'), me.header('etag')], ['/users/2', record.header('etag')]);
    assert.equal((await asks.get('/me', { headers: { 'if-none-match': me.header('etag') ?? '' } })).status, 304);
  }
  assert.equal((await client.get('/me')).code, 'authentication_required');
  assert.equal((await member.get('/me?id=1')).code, 'invalid_query');
  await (await signIn('admin')).delete('/users/2');
  assert.equal((await member.get('/me')).status, 404, 'the token outlives the user');
  assert.equal(app.users.records.size, 1);
});

test('a user is created, read, replaced, patched, listed and removed', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  const grace = { name: 'Grace', email: 'Grace@example.org' };

  const created = await admin.post('/users', { json: grace });
  assert.equal(created.status, 201);
  assert.deepEqual(created.json, { id: 3, ...grace, role: 'member' });
  assert.equal(created.header('location'), '/users/3');

  const replaced = await admin.put('/users/3', { json: { ...grace, name: 'Grace Hopper' } });
  assert.deepEqual([replaced.status, replaced.json], [200, { id: 3, ...grace, name: 'Grace Hopper', role: 'member' }]);

  const patched = await admin.patch('/users/3', { json: { name: 'Grace H.' } });
  assert.deepEqual([patched.status, patched.json], [200, { id: 3, ...grace, name: 'Grace H.', role: 'member' }]);

  const listed = await admin.get('/users');
  assert.equal(listed.status, 200);
  assert.equal(Array.isArray(listed.json) && listed.json.length, 3);

  assert.equal((await admin.delete('/users/3')).status, 204);
  assert.equal((await admin.get('/users/3')).status, 404);
});

test('PUT never creates, and an id is never used again', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  assert.equal((await admin.put('/items/1', { json: { name: 'Lamp', price: 1 } })).status, 404);
  await admin.post('/items', { json: { name: 'Lamp', price: 1 } });
  await admin.delete('/items/1');
  const next = await admin.post('/items', { json: { name: 'Lamp', price: 1 } });
  assert.equal(next.header('location'), '/items/2');
});

test('an item belongs to the user who created it', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  const member = await signIn('member');
  await admin.post('/items', { json: { name: 'Lamp', price: 1 } });
  await member.post('/items', { json: { name: 'Chair', price: 2 } });

  const foreign = await member.patch('/items/1', { json: { price: 3 } });
  assert.deepEqual([foreign.status, foreign.code], [403, 'not_owner']);
  assert.equal((await member.patch('/items/2', { json: { price: 3 } })).status, 200);
  assert.equal((await admin.delete('/items/2')).status, 204);
});

test('a member sees only their own user', async (t) => {
  const { signIn } = await startApp(t);
  const member = await signIn('member');
  assert.equal((await member.get('/users')).code, 'insufficient_scope');
  assert.equal((await member.get('/users/2')).status, 200);
  const [other, absent] = [
    await member.get('/users/1'),
    await member.get('/users/99'),
  ];
  const { instance: _, ...shownOfOther } = Object(other.json);
  const { instance: __, ...shownOfAbsent } = Object(absent.json);
  assert.deepEqual([other.status, shownOfOther], [absent.status, shownOfAbsent]);
});

test('a member cannot change their own role, id or password hash', async (t) => {
  const { signIn } = await startApp(t);
  const member = await signIn('member');
  const before = await member.get('/users/2');
  for (const [sent, code] of [
    [{ role: 'admin' }, 'read_only'], [{ id: 1 }, 'read_only'], [{ passwordHash: 'x' }, 'unknown_field'],
    [{ revision: 9 }, 'unknown_field'],
  ] as const) {
    for (const method of ['PATCH', 'PUT']) {
      const answer = await member.send(method, '/users/2', { json: { ...Object(before.json), ...sent } });
      assert.deepEqual([answer.status, Object(answer.json).errors.map((issue: { code: string }) => issue.code)],
        [422, [code]]);
    }
  }
  const after = await member.get('/users/2');
  assert.deepEqual([after.json, after.header('etag')], [before.json, before.header('etag')]);
});

test('the last administrator cannot be removed or demoted', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  assert.equal((await admin.delete('/users/1')).code, 'last_admin');
  assert.equal((await admin.patch('/users/1', { json: { role: 'member' } })).code, 'last_admin');
  // An administrator without a password cannot sign in, so they do not count and may be removed.
  const powerless = { name: 'Bob', email: 'bob@example.org', role: 'admin' };
  assert.equal((await admin.post('/users', { json: powerless })).status, 201);
  assert.equal((await admin.delete('/users/1')).code, 'last_admin');
  assert.equal((await admin.patch('/users/1', { json: { role: 'member' } })).code, 'last_admin');
  assert.equal((await admin.delete('/users/3')).status, 204);
  assert.equal((await admin.patch('/users/2', { json: { role: 'admin' } })).status, 200);
  assert.equal((await admin.delete('/users/1')).status, 204);
});

test('a demoted administrator cannot use an old token to promote themselves', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  await admin.patch('/users/2', { json: { role: 'admin' } });
  assert.equal((await admin.patch('/users/1', { json: { role: 'member' } })).status, 200);
  const back = await admin.patch('/users/1', { json: { role: 'admin' } });
  assert.deepEqual([back.status, back.code], [403, 'actor_changed']);
});

test('a session begins at /login, shows the dashboard, and ends at /logout', async (t) => {
  const { client, credentials } = await startApp(t);
  const login = await client.post('/login', { json: credentials('member') });
  assert.equal(login.status, 200);
  const cookie = /^(sid=[\w-]{43}); Path=\/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict$/.exec(
    login.header('set-cookie') ?? '',
  )?.[1];
  assert.ok(cookie);

  const dashboard = await client.get('/dashboard', { headers: { cookie } });
  assert.equal(dashboard.status, 200);
  assert.deepEqual(Object(dashboard.json).user, { id: 2, name: 'Mia', email: 'member@example.org', role: 'member' });

  const logout = await client.post('/logout', { headers: { cookie } });
  assert.equal(logout.status, 204);
  assert.match(logout.header('set-cookie') ?? '', /^sid=; Path=\/; Max-Age=0;/);
  assert.equal((await client.get('/dashboard', { headers: { cookie } })).code, 'invalid_session');
  assert.equal((await client.post('/logout', { headers: { cookie } })).status, 204);
});

test('the dashboard takes a session and no bearer token', async (t) => {
  const { client, signIn } = await startApp(t);
  assert.equal((await client.get('/dashboard')).code, 'authentication_required');
  const bearer = await (await signIn('admin')).get('/dashboard');
  assert.deepEqual([bearer.status, bearer.code], [403, 'session_required']);
});

test('a wrong password and an unknown user get the same response', async (t) => {
  const { client, credentials } = await startApp(t);
  for (const path of ['/login', '/tokens']) {
    const wrong = await client.post(path, { json: { ...credentials('member'), password: 'not the password' } });
    const unknown = await client.post(path, { json: { ...credentials('member'), email: 'nobody@example.org' } });
    const { instance: _, ...first } = Object(wrong.json);
    const { instance: __, ...second } = Object(unknown.json);
    assert.deepEqual([wrong.status, first], [401, second]);
    assert.equal(wrong.code, 'invalid_credentials');
  }
});

test('anonymous callers may send 64 KiB, signed-in ones 1 MiB', async (t) => {
  const { client, signIn } = await startApp(t, { registration: 'open' });
  const member = await signIn('member');
  const json = (bytes: number) => ({ name: 'x'.repeat(bytes - '{"name":""}'.length) });
  for (const target of ['/login', '/tokens', '/tokens/revoke', '/logout', '/users']) {
    assert.equal((await client.post(target, { json: json(64 * 1024) })).status, 422, target);
    assert.equal((await client.post(target, { json: json(64 * 1024 + 1) })).status, 413, target);
  }
  for (const target of ['/users', '/items']) {
    assert.equal((await member.post(target, { json: json(1024 * 1024) })).status, 422, target);
    assert.equal((await member.post(target, { json: json(1024 * 1024 + 1) })).status, 413, target);
  }
});

const badBodies: readonly [title: string, body: string, type: string, status: number, code: string][] = [
  ['malformed JSON', '{"name":', 'application/json', 400, 'malformed_json'],
  ['a duplicate key', '{"name":"a","name":"b","price":1}', 'application/json', 400, 'malformed_json'],
  ['another type', 'name=Lamp', 'text/plain', 415, 'unsupported_media_type'],
  ['an array', '[]', 'application/json', 422, 'validation_failed'],
  ['too large a body', `"${'x'.repeat(1024 * 1024)}"`, 'application/json', 413, 'content_too_large'],
  ['an unknown field', '{"name":"a","price":1,"owner":1}', 'application/json', 422, 'validation_failed'],
];
for (const [title, body, type, status, code] of badBodies) {
  test(`${title} is answered with ${status} ${code}, and nothing is changed`, async (t) => {
    const { signIn } = await startApp(t);
    const admin = await signIn('admin');
    const answer = await admin.post('/items', { headers: { 'content-type': type }, body });
    assert.deepEqual([answer.status, answer.code], [status, code]);
    assert.equal(answer.header('content-type'), 'application/problem+json');
    assert.deepEqual((await admin.get('/items')).json, []);
  });
}

test('all broken fields are reported at once, with their pointers', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  const answer = await admin.post('/items', { json: { name: '', price: -1, colour: 'red' } });
  assert.deepEqual(
    Object(answer.json).errors.map((issue: { pointer: string; code: string }) => [issue.pointer, issue.code]),
    [
      ['/name', 'too_short'],
      ['/price', 'too_small'],
      ['/colour', 'unknown_field'],
    ],
  );
});

test('a bad password is reported along with all other mistakes', async (t) => {
  const { client } = await startApp(t, { registration: 'open' });
  const answer = await client.post('/users', { json: { name: '', email: 'ada@example.org', password: 'short' } });
  assert.deepEqual(
    Object(answer.json).errors.map((issue: { pointer: string; code: string }) => [issue.pointer, issue.code]),
    [
      ['/name', 'too_short'],
      ['/password', 'too_short'],
    ],
  );
});

test('open registration throttles callers that create many users, signed in or not, but no sign-ins', async (t) => {
  const { client, signIn } = await startApp(t, { registration: 'open' });
  for (const [address, asker] of [['192.0.2.1', client], ['192.0.2.2', await signIn('member')]] as const) {
    const statuses: number[] = [];
    for (let count = 1; count <= 31; count += 1) {
      const json = { name: 'Ada', email: `ada${count}@${address}.example` };
      statuses.push((await asker.post('/users', { json, address })).status);
    }
    assert.deepEqual([statuses.indexOf(429), statuses.length], [30, 31]);
    const credentials = { email: 'admin@example.org', password: 'administrator of the tests' };
    assert.equal((await client.post('/tokens', { json: credentials, address })).status, 201);
  }
});

test('a caller that tries many e-mail addresses to learn which are taken is throttled', async (t) => {
  const { signIn, credentials } = await startApp(t);
  const member = await signIn('member');
  const codes: unknown[] = [];
  const json = { email: 'admin@example.org', currentPassword: credentials('member').password };
  for (let count = 1; count <= 31; count += 1) codes.push((await member.patch('/users/2', { json })).code);
  assert.deepEqual([codes.indexOf('too_many_requests'), codes[0]], [30, 'email_taken']);
  assert.equal((await member.patch('/users/2', { json: { name: 'Mia M.' } })).status, 200, 'all else goes on');
  const admin = await signIn('admin');
  assert.equal((await admin.patch('/users/2', { json: { email: 'mia@example.org' } })).status, 200);
});

test('405 lists the methods that the path supports', async (t) => {
  const { client } = await startApp(t);
  const answer = await client.post('/items/1', { json: {} });
  assert.deepEqual([answer.status, answer.code], [405, 'method_not_allowed']);
  assert.equal(answer.header('allow'), 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT');
  const options = await client.send('OPTIONS', '/items/1');
  assert.deepEqual([options.status, options.header('allow')], [204, 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT']);
  assert.equal((await client.get('/nothing')).code, 'not_found');
});

test('404 for an unknown path differs from 404 for an absent record', async (t) => {
  const { signIn } = await startApp(t);
  const member = await signIn('member');
  const detailOf = async (target: string): Promise<unknown> => {
    const answer = await member.get(target);
    assert.deepEqual([answer.status, answer.code], [404, 'not_found']);
    assert.ok(answer.json instanceof Object && 'detail' in answer.json);
    return answer.json.detail;
  };
  const absent = 'Cannot find the record: no record has this id';
  for (const target of ['/items/99', '/users/99', '/users/1', '/items/x']) assert.equal(await detailOf(target), absent);
  const unknown = 'Cannot find the path: no route has it; /openapi.json has all paths';
  for (const target of ['/item/7', '/itmes?limit=1', '/Users', '/qqq', '/%00', `/${'q'.repeat(10_000)}`]) {
    assert.equal(await detailOf(target), unknown);
  }
});

test('a malformed id gets 404, like an absent one', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  await admin.post('/items', { json: { name: 'Lamp', price: 1 } });
  for (const id of ['1e0', '0x1', '+1', '01', '9007199254740993', '1.0', 'one', '-1']) {
    assert.equal((await admin.get(`/items/${id}`)).status, 404, id);
  }
});
