import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { declareCollection } from '../../src/collections/define.ts';
import { startApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { createApp } from '../support/inside.ts';

const settings = declareCollection({
  name: 'settings',
  single: true,
  fields: {
    theme: { kind: 'choice', values: ['light', 'dark'], default: 'light' },
    motto: { kind: 'text', optional: true },
  },
  additional: true,
  timestamps: true,
});
const motd = declareCollection({
  name: 'motd', single: true, value: { kind: 'json' }, access: { read: 'public', replace: 'user', patch: 'user' },
});
const address = declareCollection({
  name: 'address', single: true,
  value: { kind: 'object', fields: { city: { kind: 'text' }, zip: { kind: 'text', optional: true } } },
});

test('the first PUT creates a single resource, and later ones change it', async (t) => {
  const { client, signIn } = await startApp(t, { collections: [settings] });
  const [ada, mia] = [await signIn('admin'), await signIn('member')];
  assert.equal((await ada.get('/settings')).status, 404);
  assert.equal((await ada.patch('/settings', { json: {} })).status, 404);
  assert.equal((await client.get('/settings')).status, 401);
  assert.equal((await mia.put('/settings', { json: {} })).status, 403);
  const onlyNew = { 'if-none-match': '*' };
  const ifMatch = { 'if-match': '"x"' };
  assert.equal((await ada.put('/settings', { json: {}, headers: ifMatch })).status, 412);
  const made = await ada.put('/settings', { json: { motto: 'Ad astra', revision: 7 }, headers: onlyNew });
  assert.equal(made.status, 201);
  assert.deepEqual({ ...Object(made.json), createdAt: 0, updatedAt: 0 }, {
    theme: 'light', motto: 'Ad astra', createdAt: 0, updatedAt: 0, revision: 7,
  });
  assert.equal((await ada.put('/settings', { json: {}, headers: onlyNew })).status, 412);
  const changed = await ada.patch('/settings', { json: { theme: 'dark', motto: null } });
  assert.equal(changed.status, 200);
  assert.deepEqual([Object(changed.json).theme, Object(changed.json).motto], ['dark', undefined]);
  const read = await mia.get('/settings', { headers: { 'if-none-match': String(changed.header('etag')) } });
  assert.equal(read.status, 304);
  assert.equal((await ada.delete('/settings')).header('allow'), 'GET, HEAD, OPTIONS, PATCH, PUT');
  const refused = await ada.put('/settings', { json: { theme: 'red' } });
  assert.deepEqual(Object(refused.json).errors[0].pointer, '/theme');
});

test('a single resource keeps the values of undeclared fields, even when it is written again', async (t) => {
  const directory = temporaryDirectory(t);
  const text = { kind: 'text', optional: true } as const;
  const written = async (fields: { readonly [name: string]: typeof text }, method: string, json: object) => {
    const plain = declareCollection({ name: 'plain', single: true, fields });
    const app = await createApp({ directory, auth: 'none', collections: [plain] });
    const request = { method, target: '/plain', fields: { 'content-type': 'application/json' } };
    const { body } = await app.inject({ ...request, body: JSON.stringify(json) });
    await app.close();
    return JSON.parse(body);
  };
  await written({ a: text, b: text }, 'PUT', { a: '1', b: 'keep' });
  assert.deepEqual(await written({ a: text }, 'PATCH', { a: '2' }), { a: '2' });
  assert.deepEqual(await written({ a: text }, 'PUT', { a: '3' }), { a: '3' });
  assert.deepEqual(await written({ a: text, b: text }, 'PATCH', {}), { a: '3', b: 'keep' });
});

test('a single resource can be any value', async (t) => {
  const { signIn } = await startApp(t, { collections: [motd, address] });
  const mia = await signIn('member');
  for (const value of [null, 0, '', 'Hello', [1, [null]], { a: { b: 1 } }]) {
    assert.ok((await mia.put('/motd', { json: value })).status < 202);
    assert.deepEqual((await mia.get('/motd')).json, value);
  }
  assert.deepEqual((await mia.patch('/motd', { json: { a: { c: 2 } } })).json, { a: { b: 1, c: 2 } });
  assert.deepEqual((await mia.patch('/motd', { json: null })).json, null);
  const ada = await signIn('admin');
  const wrong = await ada.put('/address', { json: { zip: 1 } });
  assert.deepEqual(Object(wrong.json).errors.map(({ pointer }: { pointer: string }) => pointer), ['/city', '/zip']);
  assert.equal(Object((await ada.put('/address', { json: 1 })).json).errors[0].pointer, '');
  assert.equal((await ada.put('/address', { json: { city: 'Ur', zip: '1' } })).status, 201);
  assert.deepEqual((await ada.patch('/address', { json: { zip: null } })).json, { city: 'Ur' });
});

test('a change of a single resource is an event without an id', async (t) => {
  const { app, signIn, createToken } = await startApp(t, { collections: [motd] });
  const authorization = `Bearer ${await createToken('member')}`;
  const stop = new AbortController();
  const { body } = await app.inject({ target: '/openapi.json' });
  assert.ok(body.includes('"replaceMotd"'));
  const server = createServer(app.handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = Object(server.address());
  const feed = await fetch(`http://127.0.0.1:${port}/changes`, { headers: { authorization }, signal: stop.signal });
  await (await signIn('member')).put('/motd', { json: 'one' });
  let text = '';
  for await (const piece of feed.body ?? []) {
    text += Buffer.from(piece).toString();
    if (text.includes('"record"')) break;
  }
  stop.abort();
  assert.match(text, /event: created\ndata: \{"collection":"motd","id":null,"record":"one"\}/);
});

test('a declaration of a single resource is checked', () => {
  const declare = (more: object) => () => declareCollection({ name: 'x', single: true, ...more });
  assert.throws(declare({}), /\/fields must be an object that names the fields/);
  assert.throws(declare({ value: { kind: 'text' }, timestamps: true }), /\/timestamps is not a known member/);
  assert.throws(declare({ value: { kind: 'text' }, access: { read: 'owner' } }), /\/access\/read must be one of/);
  assert.throws(declare({ fields: {}, access: { remove: 'admin' } }), /\/access\/remove is not a known member/);
  assert.throws(declare({ fields: { aId: { kind: 'reference', to: 'x' } } }), /\/aId must not refer/);
});
