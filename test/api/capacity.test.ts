import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTestApp } from '../.support/app.ts';

test('at --records-max creations get 507; reads, changes, removals and sign-ins go on', async (t) => {
  // The members and the administrator are records, too.
  const { as } = await openTestApp(t, { recordsMax: 10 });
  const [admin, hoarder] = [await as('admin'), await as('member')];
  const create = () => hoarder('POST', '/items', { json: { name: 'hoard', price: 1 } });
  const statuses: number[] = [];
  for (let n = 0; n < 20; n += 1) statuses.push((await create()).status);
  const room = statuses.indexOf(507);
  assert.ok(room > 0, statuses.join(' '));
  assert.ok(statuses.slice(room).every((status) => status === 507));

  const refused = await create();
  assert.equal(refused.code, 'storage_full');
  assert.match(refused.body, /"Cannot write: the server keeps at most 10 records: remove some first"/);
  const user = { name: 'Late', email: 'late@example.org', password: 'long enough for this' };
  assert.equal((await admin('POST', '/users', { json: user })).status, 507);
  assert.equal((await admin('GET', '/items')).status, 200);
  assert.equal((await hoarder('PUT', '/items/1', { json: { name: 'changed', price: 2 } })).status, 200);
  const again = await as('member');
  assert.equal((await again('GET', '/items')).status, 200, 'a sign-in adds a session, which is not counted');
  assert.equal((await admin('DELETE', '/items/1')).status, 204);
  const key = { 'idempotency-key': '"k1"' };
  const keyed = () => hoarder('POST', '/items', { fields: key, json: { name: 'hoard', price: 1 } });
  assert.equal((await keyed()).status, 201, 'a key is kept beside the item, and is not counted');
  assert.equal((await keyed()).status, 201, 'the same answer again, though there is no room');
  assert.equal((await create()).status, 507);
  const many = [{ name: 'one', price: 1 }, { name: 'two', price: 2 }];
  assert.equal((await admin('DELETE', '/items/2')).status, 204);
  assert.equal((await hoarder('POST', '/items', { json: many })).status, 507, 'of many, none is created');
  assert.equal((await create()).status, 201);
});
