import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CairnError, type Issue } from '../../src/base/errors.ts';
import type { Change } from '../../src/programs/hooks.ts';
import { startApp } from '../support/app.ts';

const lamps = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `Lamp ${index}`, price: index }));

test('a batch creates all its records in one commit, and the response has them in order', async (t) => {
  const { app, signIn } = await startApp(t);
  const member = await signIn('member');
  const { commits } = app.store.status();
  const answer = await member.post('/items/batch', { json: lamps(1000) });
  assert.equal(answer.status, 201);
  assert.deepEqual(answer.json, lamps(1000).map((lamp, index) => ({ id: index + 1, ...lamp })));
  assert.deepEqual([answer.header('location'), answer.header('etag')], [undefined, undefined]);
  assert.equal(answer.header('cache-control'), 'no-store');
  assert.equal(app.store.status().commits, commits + 1);
  assert.deepEqual((await member.get('/items?owner=me')).json, answer.json);
  const one = await member.post('/items/batch', { json: lamps(1) });
  assert.deepEqual([one.status, one.json], [201, [{ id: 1001, name: 'Lamp 0', price: 0 }]]);
});

test('a thousand records of the largest size fit into a batch', async (t) => {
  const member = await (await startApp(t)).signIn('member');
  const json = lamps(1000).map(() => ({ name: '😀'.repeat(200), price: 123456789.12345 }));
  assert.equal((await member.post('/items/batch', { json })).status, 201);
});

test('one invalid element refuses the whole batch, and the pointer names it', async (t) => {
  const member = await (await startApp(t)).signIn('member');
  const json = [...lamps(3), { name: 'Lamp', price: -1 }, { name: '', price: 1 }, null, { name: 'a', price: 1, x: 1 }];
  const answer = await member.post('/items/batch', { json });
  assert.equal(answer.status, 422);
  const found = Object(answer.json).errors.map(({ pointer, code }: Issue) => `${pointer} ${code}`);
  assert.deepEqual(found, ['/3/price too_small', '/4/name too_short', '/5 wrong_type', '/6/x unknown_field']);
  assert.equal((await member.get('/items')).body, '[]');
});

test('a batch reports no more issues than a single record', async (t) => {
  const member = await (await startApp(t)).signIn('member');
  const answer = await member.post('/items/batch', { json: lamps(1000).map(() => ({ name: 1, price: '' })) });
  assert.equal(Object(answer.json).errors.length, 100);
});

test('/batch accepts only an array, and the list only one record', async (t) => {
  const member = await (await startApp(t)).signIn('member');
  for (const [target, json, detail] of [
    ['/items', lamps(1), 'must be an object; post an array of them to /items/batch'],
    ['/items', 1, 'must be an object'],
    ['/items/batch', lamps(1)[0], 'must be an array'],
    ['/items/batch', [], 'must have 1 to 1000 elements'],
  ] as const) {
    const answer = await member.post(target, { json });
    assert.deepEqual([answer.status, Object(answer.json).errors[0].detail], [422, detail], target);
  }
  const other = await member.get('/items/batch');
  assert.deepEqual([other.status, other.header('allow')], [405, 'OPTIONS, POST']);
  assert.equal((await member.post('/users/batch', { json: [] })).status, 405);
});

test('users are created one by one', async (t) => {
  const admin = await (await startApp(t)).signIn('admin');
  const answer = await admin.post('/users', { json: [{ name: 'Eve', email: 'eve@example.org' }] });
  assert.deepEqual([answer.status, Object(answer.json).errors[0].code], [422, 'wrong_type']);
});

test('hooks see each record of a batch, and refusing one refuses all', async (t) => {
  const seen: string[] = [];
  const told: string[] = [];
  const nameOf = ({ operation, after }: Change): string => `${operation} ${after?.['name']}`;
  const issues = [{ pointer: '/name', code: 'taken', detail: 'must be another' }];
  const hooks = {
    beforeWrite(change: Change): undefined {
      seen.push(nameOf(change));
      if (change.after?.['name'] !== 'Lamp 2') return;
      throw new CairnError('validation_failed', 'Cannot accept it', { issues });
    },
    afterWrite: (change: Change) => void told.push(nameOf(change)),
  };
  const member = await (await startApp(t, { hooks })).signIn('member');
  seen.length = told.length = 0;
  const refused = await member.post('/items/batch', { json: lamps(4) });
  assert.deepEqual([refused.status, Object(refused.json).errors[0].pointer], [422, '/2/name']);
  assert.deepEqual([seen, told], [['create Lamp 0', 'create Lamp 1', 'create Lamp 2'], []]);
  assert.equal((await member.get('/items')).body, '[]');
  assert.equal((await member.post('/items/batch', { json: lamps(2) })).status, 201);
  assert.deepEqual(told, ['create Lamp 0', 'create Lamp 1']);
});
