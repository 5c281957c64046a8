import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import { test } from 'node:test';

import { startApp } from '../support/app.ts';

test('a patch is a merge patch by either name, and OPTIONS says so', async (t) => {
  const { client, signIn } = await startApp(t);
  const admin = await signIn('admin');
  await admin.post('/items', { json: { name: 'Lamp', price: 1 } });
  const types = ['application/json', 'application/merge-patch+json', 'Application/Merge-Patch+JSON; charset=utf-8'];
  for (const [price, type] of types.entries()) {
    const answer = await admin.patch('/items/1', { headers: { 'content-type': type }, body: `{"price":${price}}` });
    assert.deepEqual([answer.status, answer.json], [200, { id: 1, name: 'Lamp', price }], type);
  }
  for (const type of ['application/json-patch+json', 'text/plain', 'application/json; charset=latin1']) {
    const answer = await admin.patch('/items/1', { headers: { 'content-type': type }, body: '{"price":9}' });
    assert.equal(answer.status, 415, type);
    assert.equal(answer.header('accept-patch'), 'application/merge-patch+json, application/json');
  }
  const merging = await signIn('admin', { 'content-type': 'application/merge-patch+json' });
  const put = await merging.put('/items/1', { body: '{}' });
  assert.deepEqual([put.status, put.header('accept')], [415, 'application/json']);
  assert.equal(put.header('accept-encoding'), undefined);
  const coded = await merging.patch('/items/1', { headers: { 'content-encoding': 'gzip' }, body: '{}' });
  assert.deepEqual([coded.status, coded.header('accept-patch')], [415, undefined]);
  assert.equal(coded.header('accept-encoding'), 'identity');
  const options = await client.send('OPTIONS', '/items/1');
  assert.equal(options.header('accept-patch'), 'application/merge-patch+json, application/json');
  assert.equal((await client.send('OPTIONS', '/items')).header('accept-patch'), undefined);
});

test('RFC 9110 §14.5: PUT with Content-Range is refused', async (t) => {
  const admin = await (await startApp(t)).signIn('admin', { 'content-range': 'bytes 0-9/99' });
  assert.equal((await admin.post('/items', { json: { name: 'Lamp', price: 1 } })).status, 201);
  const answer = await admin.put('/items/1', { json: { name: 'Lamp', price: 2 } });
  assert.deepEqual([answer.status, answer.code], [400, 'malformed_request']);
});

test('RFC 9110 §12.4.1: whatever Accept says, the response is JSON', async (t) => {
  const { client, signIn, createCookie } = await startApp(t);
  const admin = await signIn('admin');
  await admin.post('/items', { json: { name: 'Lamp', price: 1 } });
  const browser = await createCookie('admin');
  for (const accept of ['text/html', 'application/json;q=0', '*/*;q=0', 'nonsense', '']) {
    const answer = await admin.get('/items/1', { headers: { accept } });
    assert.deepEqual([answer.status, answer.header('content-type')], [200, 'application/json'], accept);
    assert.equal(answer.header('vary'), 'Authorization, Cookie, Prefer');
    const dashboard = await client.get('/dashboard', { headers: { accept, cookie: browser } });
    assert.deepEqual([dashboard.status, dashboard.header('content-type')], [200, 'application/json'], accept);
    assert.equal((await client.get('/dashboard', { headers: { accept } })).status, 401, accept);
  }
});

test('every response has one Vary header', async (t) => {
  const { app, createCookie } = await startApp(t, { corsOrigins: ['https://app.example'], withoutPort: true });
  // On a connection, because `Headers` joins fields that come twice.
  const server = createServer(app.handler).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const headers = { cookie: await createCookie('admin') };
  for (const [target, by] of [
    ['/', 'Accept-Encoding, Origin'], ['/openapi.json', 'Accept-Encoding, Origin'], ['/livez', 'Origin'],
    ['/items', 'Authorization, Cookie, Prefer, Origin'], ['/nothing', 'Origin'],
  ]) {
    const asked = request({ port: Object(server.address()).port, path: target, headers, agent: false }).end();
    const [reply]: IncomingMessage[] = await once(asked, 'response');
    const raw = reply?.rawHeaders ?? [];
    reply?.destroy();
    assert.deepEqual(raw.flatMap((name, at) => (name === 'Vary' ? [raw[at + 1]] : [])), [by], target);
  }
});

test('any port of an origin on loopback may be allowed, but of no other origin', async (t) => {
  const { client } = await startApp(t, { corsOrigins: ['http://localhost:*', 'https://a.example'], auth: 'none' });
  const allowed = ['http://localhost', 'http://localhost:1', 'http://localhost:65535', 'https://a.example'];
  const refused = ['http://localhost:1:2', 'http://localhost.evil:1', 'https://localhost:1',
    'http://evil/http://localhost:1', 'http://localhost@evil:1', 'https://a.example:1', 'null', 'http://[::1]:80'];
  for (const origin of [...allowed, ...refused]) {
    const json = { name: 'Lamp', price: 1 };
    const { status, header: field } = await client.post('/items', { json, headers: { origin } });
    const isAllowed = allowed.includes(origin);
    const expected = isAllowed ? [201, origin] : [403, undefined];
    assert.deepEqual([status, field('access-control-allow-origin')], expected, origin);
  }
});

test('a record that is sent back as it was read is accepted', async (t) => {
  const { signIn } = await startApp(t);
  const member = await signIn('member');
  await member.post('/items', { json: { name: 'Lamp', price: 0.1 } });
  for (const target of ['/items/1', '/users/2']) {
    const { json } = await member.get(target);
    for (const method of ['PUT', 'PATCH']) {
      const answer = await member.send(method, target, { json });
      assert.deepEqual([answer.status, answer.json], [200, json], `${method} ${target}`);
    }
  }
  const foreign = await member.patch('/users/2', { json: { id: 3, role: 'admin' } });
  assert.equal(foreign.status, 422);
  assert.deepEqual(
    Object(foreign.json).errors.map((issue: { pointer: string; code: string }) => [issue.pointer, issue.code]),
    [['/id', 'read_only'], ['/role', 'read_only']],
  );
});

test('a price is kept as the double that was sent, or refused', async (t) => {
  const admin = await (await startApp(t)).signIn('admin', { 'content-type': 'application/json' });
  const kept: readonly [sent: string, shown: string][] = [
    ['0.1', '0.1'], ['19.99', '19.99'], ['1e3', '1000'], ['-0', '0'], ['1.50', '1.5'], ['1e12', '1000000000000'],
    ['0.30000000000000004', '0.30000000000000004'], ['123456789.125', '123456789.125'], ['5e-324', '5e-324'],
    ['0.10000000000000001', '0.1'], ['0.12345678901234567890', '0.12345678901234568'],
  ];
  for (const [sent, shown] of kept) {
    const answer = await admin.post('/items', { body: `{"name":"x","price":${sent}}` });
    assert.equal(/"price":([^}]*)/.exec(answer.body)?.[1], shown, sent);
  }
  for (const sent of ['1e400', '-1', '1e13', '"1"', 'null']) {
    const answer = await admin.post('/items', { body: `{"name":"x","price":${sent}}` });
    assert.deepEqual([answer.status, Object(answer.json).errors[0].pointer], [422, '/price'], sent);
  }
  for (const sent of ['9007199254740993', '12345678901234567891']) {
    const { status, code, json } = await admin.post('/items', { body: `{"name":"x","price":${sent}}` });
    assert.deepEqual([status, code], [400, 'malformed_json'], sent);
    assert.match(Object(json).detail, /an integer has more digits than a double holds at line 1, column 21$/);
  }
});
