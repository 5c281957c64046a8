import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declareCollection } from '../../src/collections/define.ts';
import { startApp } from '../support/app.ts';

test('records-per-owner bounds the records of one owner over all collections', async (t) => {
  const fields = { text: { kind: 'text' } } as const;
  const notes = declareCollection({ name: 'notes', singular: 'note', fields });
  const { app, signIn, createToken } = await startApp(t, { collections: [notes], recordsPerOwner: 3 });
  const [member, admin] = [await signIn('member'), await signIn('admin')];
  const lamp = { name: 'Lamp', price: 1 };
  assert.equal((await member.post('/items', { json: lamp })).status, 201);
  const tooMany = await member.post('/items/batch', { json: [lamp, lamp, lamp] });
  assert.deepEqual([tooMany.status, tooMany.code], [507, 'too_many_records']);
  assert.equal((await member.post('/items/batch', { json: [lamp] })).status, 201);
  assert.equal((await member.post('/notes', { json: { text: 'a' } })).status, 201);
  const refused = await member.post('/notes', { json: { text: 'b' } });
  assert.equal(refused.status, 507);
  assert.equal(Object(refused.json).detail, 'Cannot write: you own 3 records, and may own 3: remove some');
  assert.equal((await member.patch('/items/1', { json: { price: 2 } })).status, 200);
  for (let count = 0; count < 4; count += 1) {
    assert.equal((await admin.post('/notes', { json: { text: 'c' } })).status, 201);
  }
  assert.equal((await member.delete('/items/1')).status, 204);
  assert.equal((await member.post('/notes', { json: { text: 'b' } })).status, 201);
  assert.equal((await member.post('/notes', { json: { text: 'd' } })).status, 507);
  const port = await app.listen({ port: 0 });
  const headers = { authorization: `Bearer ${await createToken('member')}`, 'content-type': 'application/json' };
  const sent = { method: 'POST', headers, body: '{"text":"e"}' };
  assert.equal((await fetch(`http://127.0.0.1:${port}/notes`, sent)).status, 507);
  const { refusals } = Object((await admin.get('/status')).json);
  assert.deepEqual([refusals.memoryFull, refusals.diskFull], [0, 0], 'the server has room');
});
