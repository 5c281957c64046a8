import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isLockedRun, TestClock } from '../support/basics.ts';
import { Passwords } from '../../src/auth/passwords.ts';
import { startApp } from '../support/app.ts';

test('the status shows administrators the version, the records and the store', async (t) => {
  const { client, createToken } = await startApp(t);
  const authorization = `Bearer ${await createToken('admin')}`;
  const before = Object((await client.get('/status', { headers: { authorization } })).json);
  assert.match(before.version, /^\d+\.\d+\.\d+$/);
  assert.equal(before.state, 'writable');
  assert.ok(Date.parse(before.startedAt) <= Date.now());
  await client.post('/items', { headers: { authorization }, json: { name: 'Lamp', price: 5 } });
  const after = Object((await client.get('/status', { headers: { authorization } })).json);
  assert.equal(after.records, before.records + 1);
});

test('with a directory, it shows the free space and the last checkpoint', { skip: isLockedRun }, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-status-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const { client, createToken } = await startApp(t, { directory });
  const fields = { authorization: `Bearer ${await createToken('admin')}` };
  const status = Object((await client.get('/status', { headers: fields })).json);
  assert.ok(status.freeBytes > 0 && status.freeBytes <= status.diskBytes);
  assert.ok(status.journalBytes > 0);
  assert.ok(Date.now() - Date.parse(status.checkpointedAt) < 600_000);
});

test('the status has figures of the last hour, minute by minute', { skip: isLockedRun }, async (t) => {
  const clock = new TestClock();
  const { client, createToken } = await startApp(t, { clock });
  const fields = { authorization: `Bearer ${await createToken('admin')}` };
  const minutes = async (): Promise<unknown[]> =>
    Object((await client.get('/status', { headers: fields })).json).minutes;
  assert.equal((await minutes()).length, 1);
  clock.advance(10 * 60);
  assert.equal((await minutes()).length, 11);
});

test('with full memory, writes that grow are refused, reads go on, and removals make room', async (t) => {
  const { app, signIn, client, createToken, createCookie, credentials } = await startApp(t, { memoryMax: 1 });
  const member = await signIn('member');
  const admin = await signIn('admin');
  // So small that memory is nearly full when one is refused.
  const batch = Array.from({ length: 100 }, (_, n) => ({ name: `Lamp ${n}`, price: n }));
  let answer = await member.post('/items/batch', { json: batch });
  const [first] = Object(answer.json);
  while (answer.status === 201) answer = await member.post('/items/batch', { json: batch });
  assert.deepEqual([answer.status, answer.code], [507, 'storage_full']);
  assert.match(Object(answer.json).detail, /: the records would take 1\d{6} bytes of memory, and may take 1048576: /);
  const ready = await client.get('/readyz');
  assert.deepEqual([ready.status, ready.json], [200, { status: 'ready', writes: 'full' }]);
  assert.equal(app.unready(), undefined);
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const headers = { authorization: `Bearer ${await createToken('member')}`, 'content-type': 'application/json' };
  const target = `http://127.0.0.1:${port}/items/batch`;
  const refused = await fetch(target, { method: 'POST', headers, body: JSON.stringify(batch) });
  assert.equal(refused.status, 507);
  await refused.arrayBuffer();
  const status = Object((await admin.get('/status')).json);
  assert.deepEqual(status.refusals, { ownShare: 0, usedUp: 0, brokenOff: 0, memoryFull: 2, diskFull: 0 });
  assert.equal(status.state, 'full');
  assert.equal(status.memoryMaxBytes, 2 ** 20);
  assert.ok(status.memoryBytes > 2 ** 19 && status.memoryBytes <= 2 ** 20, status.memoryBytes);
  // Users can still sign in to remove something, and change their password; the cookie survives that.
  const { email, password: currentPassword } = credentials('member');
  const password = 'another password for a lamp';
  const fields = { cookie: await createCookie('member'), 'sec-fetch-site': 'same-origin' };
  const changed = await client.patch('/users/2', { headers: fields, json: { password, currentPassword } });
  assert.equal(changed.status, 200, changed.body);
  assert.match(changed.header('set-cookie') ?? '', /./);
  t.mock.method(Passwords.prototype, 'needsRehash', () => true);
  assert.equal((await client.post('/login', { json: { email, password } })).status, 200);
  assert.equal(app.store.state, 'full');
  for (let id = first.id; app.store.state === 'full'; id += 1) {
    assert.equal((await admin.delete(`/items/${id}`)).status, 204);
  }
  assert.deepEqual((await client.get('/readyz')).json, { status: 'ready' });
  assert.equal((await admin.post('/items', { json: { name: 'Lamp', price: 1 } })).status, 201);
});
