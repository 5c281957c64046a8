import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openTestApp } from '../support/app.ts';

test('an item is created, read, replaced, patched, listed and removed', async (t) => {
  const { ask, token } = await openTestApp(t);
  const admin = { authorization: `Bearer ${await token('admin')}` };

  const created = await ask('POST', '/items', { fields: admin, json: { name: 'Lamp', price: 24.5 } });
  assert.equal(created.status, 201);
  assert.deepEqual(created.json, { id: 1, name: 'Lamp', price: 24.5 });
  assert.equal(created.field('location'), '/items/1');

  const read = await ask('GET', '/items/1', { fields: admin });
  assert.deepEqual([read.status, read.json], [200, { id: 1, name: 'Lamp', price: 24.5 }]);
  assert.equal(read.field('etag'), created.field('etag'));

  const replaced = await ask('PUT', '/items/1', { fields: admin, json: { name: 'Desk lamp', price: 30 } });
  assert.deepEqual([replaced.status, replaced.json], [200, { id: 1, name: 'Desk lamp', price: 30 }]);

  const patched = await ask('PATCH', '/items/1', { fields: admin, json: { price: 31 } });
  assert.deepEqual([patched.status, patched.json], [200, { id: 1, name: 'Desk lamp', price: 31 }]);

  const listed = await ask('GET', '/items', { fields: admin });
  assert.deepEqual([listed.status, listed.json], [200, [{ id: 1, name: 'Desk lamp', price: 31 }]]);

  const removed = await ask('DELETE', '/items/1', { fields: admin });
  assert.deepEqual([removed.status, removed.body], [204, '']);
  assert.equal((await ask('GET', '/items/1', { fields: admin })).status, 404);
});

test('a user is created, read, replaced, patched, listed and removed', async (t) => {
  const { ask, token } = await openTestApp(t);
  const admin = { authorization: `Bearer ${await token('admin')}` };
  const grace = { name: 'Grace', email: 'Grace@example.org' };

  const created = await ask('POST', '/users', { fields: admin, json: grace });
  assert.equal(created.status, 201);
  assert.deepEqual(created.json, { id: 3, ...grace, role: 'member' });
  assert.equal(created.field('location'), '/users/3');

  const replaced = await ask('PUT', '/users/3', { fields: admin, json: { ...grace, name: 'Grace Hopper' } });
  assert.deepEqual([replaced.status, replaced.json], [200, { id: 3, ...grace, name: 'Grace Hopper', role: 'member' }]);

  const patched = await ask('PATCH', '/users/3', { fields: admin, json: { name: 'Grace H.' } });
  assert.deepEqual([patched.status, patched.json], [200, { id: 3, ...grace, name: 'Grace H.', role: 'member' }]);

  const listed = await ask('GET', '/users', { fields: admin });
  assert.equal(listed.status, 200);
  assert.equal(Array.isArray(listed.json) && listed.json.length, 3);

  assert.equal((await ask('DELETE', '/users/3', { fields: admin })).status, 204);
  assert.equal((await ask('GET', '/users/3', { fields: admin })).status, 404);
});

test('PUT never creates, and an id is never used again', async (t) => {
  const { ask, token } = await openTestApp(t);
  const admin = { authorization: `Bearer ${await token('admin')}` };
  assert.equal((await ask('PUT', '/items/1', { fields: admin, json: { name: 'Lamp', price: 1 } })).status, 404);
  await ask('POST', '/items', { fields: admin, json: { name: 'Lamp', price: 1 } });
  await ask('DELETE', '/items/1', { fields: admin });
  const next = await ask('POST', '/items', { fields: admin, json: { name: 'Lamp', price: 1 } });
  assert.equal(next.field('location'), '/items/2');
});

test('an item belongs to who created it', async (t) => {
  const { ask, token } = await openTestApp(t);
  const admin = { authorization: `Bearer ${await token('admin')}` };
  const member = { authorization: `Bearer ${await token('member')}` };
  await ask('POST', '/items', { fields: admin, json: { name: 'Lamp', price: 1 } });
  await ask('POST', '/items', { fields: member, json: { name: 'Chair', price: 2 } });

  const foreign = await ask('PATCH', '/items/1', { fields: member, json: { price: 3 } });
  assert.deepEqual([foreign.status, foreign.code], [403, 'not_owner']);
  assert.equal((await ask('PATCH', '/items/2', { fields: member, json: { price: 3 } })).status, 200);
  assert.equal((await ask('DELETE', '/items/2', { fields: admin })).status, 204);
});

test('a member sees themselves alone among users', async (t) => {
  const { ask, token } = await openTestApp(t);
  const member = { authorization: `Bearer ${await token('member')}` };
  assert.equal((await ask('GET', '/users', { fields: member })).code, 'insufficient_scope');
  assert.equal((await ask('GET', '/users/2', { fields: member })).status, 200);
  const [other, absent] = [
    await ask('GET', '/users/1', { fields: member }),
    await ask('GET', '/users/99', { fields: member }),
  ];
  const { instance: _, ...shownOfOther } = Object(other.json);
  const { instance: __, ...shownOfAbsent } = Object(absent.json);
  assert.deepEqual([other.status, shownOfOther], [absent.status, shownOfAbsent]);
});

test('a member gives themselves no other role, id or hash of a password', async (t) => {
  const { ask, token } = await openTestApp(t);
  const member = { authorization: `Bearer ${await token('member')}` };
  const before = await ask('GET', '/users/2', { fields: member });
  for (const [sent, code] of [
    [{ role: 'admin' }, 'read_only'], [{ id: 1 }, 'read_only'], [{ passwordHash: 'x' }, 'unknown_field'],
    [{ revision: 9 }, 'unknown_field'],
  ] as const) {
    for (const method of ['PATCH', 'PUT']) {
      const answer = await ask(method, '/users/2', { fields: member, json: { ...Object(before.json), ...sent } });
      assert.deepEqual([answer.status, Object(answer.json).errors.map((issue: { code: string }) => issue.code)],
        [422, [code]]);
    }
  }
  const after = await ask('GET', '/users/2', { fields: member });
  assert.deepEqual([after.json, after.field('etag')], [before.json, before.field('etag')]);
});

test('the last administrator stays', async (t) => {
  const { ask, token } = await openTestApp(t);
  const admin = { authorization: `Bearer ${await token('admin')}` };
  assert.equal((await ask('DELETE', '/users/1', { fields: admin })).code, 'last_admin');
  assert.equal((await ask('PATCH', '/users/1', { fields: admin, json: { role: 'member' } })).code, 'last_admin');
  // Who has no password cannot sign in: they take nobody's place, and may go.
  const powerless = { name: 'Bob', email: 'bob@example.org', role: 'admin' };
  assert.equal((await ask('POST', '/users', { fields: admin, json: powerless })).status, 201);
  assert.equal((await ask('DELETE', '/users/1', { fields: admin })).code, 'last_admin');
  assert.equal((await ask('PATCH', '/users/1', { fields: admin, json: { role: 'member' } })).code, 'last_admin');
  assert.equal((await ask('DELETE', '/users/3', { fields: admin })).status, 204);
  assert.equal((await ask('PATCH', '/users/2', { fields: admin, json: { role: 'admin' } })).status, 200);
  assert.equal((await ask('DELETE', '/users/1', { fields: admin })).status, 204);
});

test('a demoted administrator cannot promote themselves back by the token they hold', async (t) => {
  const { ask, token } = await openTestApp(t);
  const admin = { authorization: `Bearer ${await token('admin')}` };
  await ask('PATCH', '/users/2', { fields: admin, json: { role: 'admin' } });
  assert.equal((await ask('PATCH', '/users/1', { fields: admin, json: { role: 'member' } })).status, 200);
  const back = await ask('PATCH', '/users/1', { fields: admin, json: { role: 'admin' } });
  assert.deepEqual([back.status, back.code], [403, 'actor_changed']);
});

test('a session begins at /login, shows the dashboard, and ends at /logout', async (t) => {
  const { ask, credentials } = await openTestApp(t);
  const login = await ask('POST', '/login', { json: credentials('member') });
  assert.equal(login.status, 200);
  const cookie = /^(sid=[\w-]{43}); Path=\/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict$/.exec(
    login.field('set-cookie') ?? '',
  )?.[1];
  assert.ok(cookie);

  const dashboard = await ask('GET', '/dashboard', { fields: { cookie } });
  assert.equal(dashboard.status, 200);
  assert.deepEqual(Object(dashboard.json).user, { id: 2, name: 'Mia', email: 'member@example.org', role: 'member' });

  const logout = await ask('POST', '/logout', { fields: { cookie } });
  assert.equal(logout.status, 204);
  assert.match(logout.field('set-cookie') ?? '', /^sid=; Path=\/; Max-Age=0;/);
  assert.equal((await ask('GET', '/dashboard', { fields: { cookie } })).code, 'invalid_session');
  assert.equal((await ask('POST', '/logout', { fields: { cookie } })).status, 204);
});

test('the dashboard takes a session and no bearer token', async (t) => {
  const { ask, token } = await openTestApp(t);
  assert.equal((await ask('GET', '/dashboard')).code, 'authentication_required');
  const bearer = await ask('GET', '/dashboard', { fields: { authorization: `Bearer ${await token('admin')}` } });
  assert.deepEqual([bearer.status, bearer.code], [403, 'session_required']);
  const browser = await ask('GET', '/dashboard', { fields: { accept: 'text/html,*/*;q=0.8' } });
  assert.deepEqual([browser.status, browser.field('location')], [303, '/']);
});

test('wrong credentials and an unknown user are answered alike', async (t) => {
  const { ask, credentials } = await openTestApp(t);
  for (const path of ['/login', '/tokens']) {
    const wrong = await ask('POST', path, { json: { ...credentials('member'), password: 'not the password' } });
    const unknown = await ask('POST', path, { json: { ...credentials('member'), email: 'nobody@example.org' } });
    const { instance: _, ...first } = Object(wrong.json);
    const { instance: __, ...second } = Object(unknown.json);
    assert.deepEqual([wrong.status, first], [401, second]);
    assert.equal(wrong.code, 'invalid_credentials');
  }
});

test('who has not signed in may send 64 KiB, and who has 1 MiB', async (t) => {
  const { ask, token } = await openTestApp(t, { registration: 'open' });
  const fields = { authorization: `Bearer ${await token('member')}` };
  const json = (bytes: number) => ({ name: 'x'.repeat(bytes - '{"name":""}'.length) });
  for (const target of ['/login', '/tokens', '/tokens/revoke', '/logout', '/users']) {
    assert.equal((await ask('POST', target, { json: json(64 * 1024) })).status, 422, target);
    assert.equal((await ask('POST', target, { json: json(64 * 1024 + 1) })).status, 413, target);
  }
  for (const target of ['/users', '/items']) {
    assert.equal((await ask('POST', target, { fields, json: json(1024 * 1024) })).status, 422, target);
    assert.equal((await ask('POST', target, { fields, json: json(1024 * 1024 + 1) })).status, 413, target);
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
    const { ask, token } = await openTestApp(t);
    const fields = { authorization: `Bearer ${await token('admin')}` };
    const answer = await ask('POST', '/items', { fields: { ...fields, 'content-type': type }, body });
    assert.deepEqual([answer.status, answer.code], [status, code]);
    assert.equal(answer.field('content-type'), 'application/problem+json');
    assert.deepEqual((await ask('GET', '/items', { fields })).json, []);
  });
}

test('all broken fields are reported at once, with their pointers', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  const answer = await ask('POST', '/items', { fields, json: { name: '', price: -1, colour: 'red' } });
  assert.deepEqual(
    Object(answer.json).errors.map((issue: { pointer: string; code: string }) => [issue.pointer, issue.code]),
    [
      ['/name', 'too_short'],
      ['/price', 'too_small'],
      ['/colour', 'unknown_field'],
    ],
  );
});

test('what is wrong with a password is reported along with everything else', async (t) => {
  const { ask } = await openTestApp(t, { registration: 'open' });
  const answer = await ask('POST', '/users', { json: { name: '', email: 'ada@example.org', password: 'short' } });
  assert.deepEqual(
    Object(answer.json).errors.map((issue: { pointer: string; code: string }) => [issue.pointer, issue.code]),
    [
      ['/name', 'too_short'],
      ['/password', 'too_short'],
    ],
  );
});

test('open registration slows down who makes one user after another, signed in or not, and no sign-in', async (t) => {
  const { ask, token } = await openTestApp(t, { registration: 'open' });
  const member = { authorization: `Bearer ${await token('member')}` };
  for (const [address, fields] of [['192.0.2.1', {}], ['192.0.2.2', member]] as const) {
    const statuses: number[] = [];
    for (let count = 1; count <= 31; count += 1) {
      const json = { name: 'Ada', email: `ada${count}@${address}.example` };
      statuses.push((await ask('POST', '/users', { json, address, fields })).status);
    }
    assert.deepEqual([statuses.indexOf(429), statuses.length], [30, 31]);
    const credentials = { email: 'admin@example.org', password: 'administrator of the tests' };
    assert.equal((await ask('POST', '/tokens', { json: credentials, address })).status, 201);
  }
});

test('who asks for one e-mail address after another, to learn which are taken, is slowed down', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('member')}` };
  const codes: unknown[] = [];
  for (let count = 1; count <= 31; count += 1) {
    codes.push((await ask('PATCH', '/users/2', { fields, json: { email: 'admin@example.org' } })).code);
  }
  assert.deepEqual([codes.indexOf('too_many_requests'), codes[0]], [30, 'email_taken']);
  assert.equal((await ask('PATCH', '/users/2', { fields, json: { name: 'Mia M.' } })).status, 200, 'all else goes on');
  const admin = { authorization: `Bearer ${await token('admin')}` };
  assert.equal((await ask('PATCH', '/users/2', { fields: admin, json: { email: 'mia@example.org' } })).status, 200);
});

test('a known path with another method is told what there is', async (t) => {
  const { ask } = await openTestApp(t);
  const answer = await ask('POST', '/items/1', { json: {} });
  assert.deepEqual([answer.status, answer.code], [405, 'method_not_allowed']);
  assert.equal(answer.field('allow'), 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT');
  const options = await ask('OPTIONS', '/items/1');
  assert.deepEqual([options.status, options.field('allow')], [204, 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT']);
  assert.equal((await ask('GET', '/nothing')).code, 'not_found');
});

test('a malformed id is an absent one', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  await ask('POST', '/items', { fields, json: { name: 'Lamp', price: 1 } });
  for (const id of ['1e0', '0x1', '+1', '01', '9007199254740993', '1.0', 'one', '-1']) {
    assert.equal((await ask('GET', `/items/${id}`, { fields })).status, 404, id);
  }
});
