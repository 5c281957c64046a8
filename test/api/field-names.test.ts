import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declareCollection } from '../../src/collections/define.ts';
import type { Field } from '../../src/schema/field.ts';
import { storedRecordParser } from '../../src/schema/stored.ts';
import { startApp } from '../support/app.ts';

const names = [
  'First Name', 'größe', '1st', '_id', 'a/b~c', 'a:b,c', '-x', '👍', 'constructor', 'toJSON', "'\"<&", 'ключ',
];
const rows = declareCollection({
  name: 'rows', fields: Object.fromEntries(names.map((name) => [name, { kind: 'text', optional: true }])),
});

test('a field has any name, and is written, read, patched and refused by it', async (t) => {
  const { signIn } = await startApp(t, { collections: [rows] });
  const ada = await signIn('admin');
  const row = Object.fromEntries(names.map((name, at) => [name, `v${at}`]));
  const made = await ada.post('/rows', { json: row });
  assert.deepEqual(made.json, { id: 1, ...row });
  assert.deepEqual((await ada.put('/rows/1', { json: made.json })).json, made.json);
  for (const name of names) {
    const wrong = await ada.patch('/rows/1', { json: { [name]: 1 } });
    const pointer = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    assert.equal(Object(wrong.json).errors[0].pointer, pointer);
    const { [name]: _, ...others } = Object(made.json);
    assert.deepEqual((await ada.patch('/rows/1', { json: { [name]: null } })).json, others);
    assert.equal((await ada.patch('/rows/1', { json: { [name]: row[name] } })).status, 200);
  }
});

test('fields are filtered and sorted by where a query can have their names', async (t) => {
  const { signIn } = await startApp(t, { collections: [rows] });
  const ada = await signIn('admin');
  const rowOf = (value: string) => Object.fromEntries(names.map((name) => [name, value]));
  await ada.post('/rows/batch', { json: ['b', 'a'].map(rowOf) });
  const document = Object((await ada.get('/openapi.json')).json);
  const described = document.paths['/rows'].get.parameters.map(({ name }: { name: string }) => name);
  for (const name of names) {
    const isQueryable = !['a:b,c', '-x', '👍', "'\"<&"].includes(name);
    assert.equal(described.includes(name), isQueryable, name);
    if (!isQueryable) continue;
    const named = encodeURIComponent(name);
    const found = await ada.get(`/rows?${named}=a`);
    assert.equal(Object(found.json)[0]?.id, 2, name + found.body);
    assert.equal(Object((await ada.get(`/rows?sort=${named}`)).json)[0].id, 2, name);
  }
});

test('a record with some fields has an entity tag that fits into a header, whatever their names', async (t) => {
  const { signIn } = await startApp(t, { collections: [rows] });
  const ada = await signIn('admin');
  await ada.post('/rows', { json: {} });
  const tags = new Set<string>();
  for (const name of names.filter((each) => !each.includes(','))) {
    const target = `/rows/1?fields=${encodeURIComponent(name)}`;
    const tag = (await ada.get(target)).header('etag') ?? '';
    assert.match(tag, /^"[!#-~]+"$/, name);
    assert.equal((await ada.get(target, { headers: { 'if-none-match': tag } })).status, 304, name);
    tags.add(tag);
  }
  assert.equal(tags.size, names.length - 1);
});

test('a name with a dot or a control character, one that is too long, and __proto__ are refused', () => {
  for (const name of ['', 'a.b', 'a\nb', 'x'.repeat(65), '__proto__', '\ud800', 'id', 'revision', 'ownerId']) {
    const fields = JSON.parse(`{${JSON.stringify(name)}:{"kind":"text"}}`);
    assert.throws(() => declareCollection({ name: 'x', fields }), { name: /Error/ }, name);
  }
  declareCollection({ name: 'x', fields: { ['😀'.repeat(64)]: { kind: 'text' } } });
});

const inherited = ['constructor', 'valueOf', 'toString', 'hasOwnProperty', 'isPrototypeOf', 'toLocaleString'];
const kinds: readonly Field[] = [
  { kind: 'text' }, { kind: 'integer' }, { kind: 'boolean' }, { kind: 'choice', values: ['a'] }, { kind: 'timestamp' },
  { kind: 'reference', to: 'rows' }, { kind: 'list', of: { kind: 'json' } }, { kind: 'object', fields: {} },
  { kind: 'json' },
];

test('a stored record has no value for a field with the name of a member that all objects inherit', () => {
  for (const name of inherited) {
    for (const field of kinds) {
      const record = { id: 1 };
      const parse = (one: Field) => storedRecordParser({ [name]: one })(record);
      assert.match(String(parse(field)), new RegExp(`^has no "${name}": add it`), field.kind);
      assert.deepEqual(parse({ ...field, optional: true } as Field), record);
      const given: Field = { kind: 'json', default: 'given' };
      assert.equal(Object.entries(parse(given))[1]?.[1], 'given');
    }
  }
});
