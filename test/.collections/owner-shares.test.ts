import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openTestApp } from '../.support/app.ts';

const item = (length: number) => ({ json: { name: 'x'.repeat(length), price: 1 } });

test('while memory is scarce, an owner with most of the records adds none, and the others go on', async (t) => {
  const { app, ask, as, credentials } = await openTestApp(t, { withoutPort: true });
  const [admin, mia] = [await as('admin'), await as('member')];
  const eve = { ...credentials('member'), email: 'eve@example.org', name: 'Eve' };
  await admin('POST', '/users', { json: eve });
  const { name: _, ...signIn } = eve;
  const { access_token: token } = Object((await ask('POST', '/tokens', { json: signIn })).json);
  const fields = { authorization: `Bearer ${token}` };
  const many = { json: Array.from({ length: 40 }, () => item(100).json) };
  assert.equal((await mia('POST', '/items/batch', many)).status, 201);
  for (const who of [admin, mia]) assert.equal((await who('POST', '/items', item(1))).status, 201);
  assert.equal((await ask('POST', '/items', { fields, ...item(100) })).status, 201);

  let isScarce = true;
  Object.defineProperty(app.store, 'isScarce', { get: () => isScarce });
  await mia('POST', '/items', item(1));
  // By now, the owners are counted.
  await new Promise(setImmediate);
  for (const [method, target] of [['POST', '/items'], ['PUT', '/items/1']] as const) {
    const refused = await mia(method, target, item(101));
    assert.deepEqual([refused.status, refused.code], [507, 'storage_full']);
    assert.match(Object(refused.json).detail, /the records of this owner take more than their share of it/);
  }
  assert.equal((await ask('POST', '/items', { fields, ...item(100) })).status, 201);
  assert.equal((await admin('POST', '/items', item(100))).status, 201);
  assert.equal((await admin('PUT', '/items/1', item(102))).status, 200);

  // Removals are counted, too.
  for (let id = 1; id <= 40; id += 1) assert.equal((await mia('DELETE', `/items/${id}`)).status, 204);
  assert.equal((await mia('POST', '/items', item(1))).status, 201);
  for (let added = 0; added < 3; added += 1) await mia('POST', '/items', item(200));
  assert.equal((await mia('POST', '/items', item(1))).status, 507);
  isScarce = false;
  assert.equal((await mia('POST', '/items', item(1))).status, 201);
});
