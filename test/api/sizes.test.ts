import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { startApp } from '../support/app.ts';

const max = limits.recordBytesMax;
const documents = declareCollection({
  name: 'documents', additional: true,
  fields: {
    one: { kind: 'json', bytesMax: max, optional: true },
    two: { kind: 'json', bytesMax: max, optional: true },
  },
});
const whole = declareCollection({ name: 'whole', single: true, value: { kind: 'json', bytesMax: max } });
const text = (length: number): string => 'x'.repeat(length);

const isCluster = process.env['CAIRN_TEST_STORE'] === 'cluster';

test('a text has up to a million characters', async (t) => {
  const notes = declareCollection({ name: 'notes', fields: { text: { kind: 'text', max: 1_000_000 } } });
  const { signIn } = await startApp(t, { collections: [notes] });
  const ada = await signIn('admin');
  const long = { text: 'é'.repeat(1_000_000) };
  assert.equal((await ada.post('/notes', { json: long })).status, isCluster ? 413 : 201);
  assert.equal((await ada.post('/notes', { json: { text: text(1_000_001) } })).status, 422);
});

test('in a cluster, a body is no larger than a group of commits', { skip: !isCluster && 'one machine' }, async (t) => {
  const { signIn } = await startApp(t, { collections: [documents] });
  const ada = await signIn('admin');
  assert.equal((await ada.post('/documents', { json: { one: text(limits.bodyBytesMax) } })).status, 413);
  assert.equal((await ada.post('/documents', { json: { one: text(limits.bodyBytesMax / 2) } })).status, 201);
});

test('a record is as large as a body, and patches do not make it larger', {
  skip: isCluster && 'a group of commits of a cluster has 1 MiB',
}, async (t) => {
  const { signIn } = await startApp(t, { collections: [documents, whole] });
  const ada = await signIn('admin');
  const empty = JSON.stringify({ one: '' }).length;
  assert.equal((await ada.post('/documents', { json: { one: text(max - empty) } })).status, 201);
  assert.equal((await ada.post('/documents', { json: { one: text(max) } })).status, 413);
  assert.equal(JSON.stringify((await ada.get('/documents/1')).json).length, max + '"id":1,'.length);
  const grown = await ada.patch('/documents/1', { json: { two: 'y' } });
  assert.equal(grown.status, 422);
  assert.deepEqual(Object(grown.json).errors, [
    { pointer: '', code: 'too_large', detail: `must be at most ${max} bytes of JSON` },
  ]);
  assert.equal((await ada.patch('/documents/1', { json: { one: 'y', two: text(100) } })).status, 200);
  assert.equal((await ada.patch('/documents/1', { json: { [text(max / 2)]: 1 } })).status, 200);
  assert.equal((await ada.patch('/documents/1', { json: { [`y${text(max / 2)}`]: 1 } })).status, 422);
  assert.equal((await ada.post('/documents/batch', { json: [{ one: text(limits.bodyBytesMax) }] })).status, 413);
  assert.equal((await ada.post('/items', { json: { name: text(limits.bodyBytesMax), price: 1 } })).status, 413);
  assert.equal((await ada.put('/whole', { json: text(max - 2) })).status, 201, 'its JSON has as many bytes');
  assert.equal((await ada.put('/whole', { json: { a: text(max / 2) } })).status, 200);
  assert.equal((await ada.patch('/whole', { json: { b: text(max / 2) } })).status, 422);
});

test('a body has a limited number of values and members, so that it is parsed quickly', async (t) => {
  const { signIn } = await startApp(t, { collections: [documents] });
  const ada = await signIn('admin');
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]));
  const full = await ada.post('/documents', { json: members(limits.jsonMembersMax - 5) });
  assert.equal((await ada.put('/documents/1', { json: full.json })).status, 200, 'it can be sent back');
  // Only a body is counted: a patch may add to a record what it may have itself.
  assert.equal((await ada.patch('/documents/1', { json: { one: members(10) } })).status, 200);
  assert.equal((await ada.post('/documents', { json: { two: members(4000) } })).status, 201);
  const merged = await ada.patch('/documents/2', { json: { two: { x: 1, ...members(4996) } } });
  assert.equal(Object.keys(Object(merged.json).two).length, 4997);
  const wide = await ada.post('/documents', { json: { one: members(limits.jsonMembersMax + 1) } });
  assert.deepEqual([wide.status, wide.code], [413, 'content_too_large']);
  const many = (count: number) => ({ json: { one: Array.from({ length: count }, () => 0) } });
  assert.equal((await ada.post('/documents', many(limits.jsonValuesMax - 6))).status, 201);
  assert.equal((await ada.post('/documents', many(limits.jsonValuesMax))).status, 413);
});
