import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createApp } from '../support/inside.ts';
import { projectDirectory } from '../support/source.ts';

/** A module of the page that touches no DOM. */
const load = (name: string): Promise<any> =>
  import(pathToFileURL(join(projectDirectory, 'src', 'web', name)).href);
const { lineReader, toTable, withChanges } = await load('api/cells.js');
const { readCsv, writeCsv } = await load('lib/csv.js');
const { readCollections } = await load('api/model.js');

const things = {
  name: 'things',
  additional: true,
  id: { kind: 'any', given: true },
  fields: {
    title: { kind: 'text', optional: true },
    notes: { kind: 'text', multiline: true, optional: true },
    done: { kind: 'boolean', optional: true },
    price: { kind: 'number', optional: true },
    due: { kind: 'timestamp', optional: true },
    tags: { kind: 'list', of: { kind: 'text' }, optional: true },
    lines: {
      kind: 'list',
      of: { kind: 'object', fields: { quantity: { kind: 'integer' } } },
      optional: true,
    },
    address: {
      kind: 'object',
      optional: true,
      fields: { city: { kind: 'text' }, zip: { kind: 'text', optional: true } },
    },
    anything: { kind: 'json', optional: true },
    open: {
      kind: 'object',
      additional: true,
      optional: true,
      fields: { known: { kind: 'text', optional: true } },
    },
  },
} as const;

/** The collection as the page reads it. */
async function described(): Promise<any> {
  const app = await createApp({ scryptCost: 1, auth: 'none', collections: [things] });
  const { body } = await app.inject({ target: '/openapi.json' });
  await app.close();
  return readCollections(JSON.parse(body)).find(({ name }: { name: string }) => name === 'things');
}
const collection = await described();

function fromCsv(text: string, decimal = '.'): { record: any; problems: string[] }[] {
  const {
    rows: [head, ...rows],
  } = readCsv(text);
  const read = lineReader(collection, decimal);
  return rows.map((row: string[]) => {
    const source = Object.fromEntries(
      head.map((name: string, index: number) => [name, row[index]]),
    );
    const { changes, problems } = read(source);
    return { record: withChanges({}, changes), problems };
  });
}

const records: readonly object[] = [
  { id: 1, title: 'Plain', done: true, price: 0.1 + 0.2, due: '2026-01-31T12:00:00.001Z' },
  { id: '1', title: '', notes: 'two\r\nlines', done: false, price: -5 },
  { id: 'x', title: '=1+1', tags: ['a', 'b\nc', ''], lines: [{ quantity: 2 }, { quantity: 3 }] },
  { id: 4, notes: '\t=1', tags: [], address: { city: 'Rome' } },
  {
    id: 5,
    title: '＝1',
    address: { city: '"Köln"', zip: '0815' },
    anything: { a: [1, null, 'x'] },
  },
  { id: 6, title: '\ufeff', anything: '12345', open: { known: 'k', more: { deep: true } } },
  { id: 7, title: "'quoted", anything: 'text', color: 'red', number: 12345, text: '12345' },
  { id: 8, title: 'yes', anything: false, list: [1, 'two', { three: null }], yes: true },
  { id: 9, title: ' ', notes: '\n=1', anything: 1e21, text: 'true', price: 1e-7 },
];

test('records written as CSV are read back unchanged', () => {
  const text = writeCsv(toTable(collection.fields, records));
  const read = fromCsv(text);
  assert.deepEqual(
    read.flatMap(({ problems }) => problems),
    [],
  );
  assert.deepEqual(
    read.map(({ record }) => record),
    records,
  );
});

test('no cell of a CSV file begins like a formula', () => {
  for (const text of ['=1', '+1', '-1', '@a', '\t=1', '\n=1', '\r=1', '＝1', '＋1', '－1', '＠a']) {
    assert.match(writeCsv([[text]]), /^"?'/u, text);
    assert.deepEqual(readCsv(writeCsv([[text]])).rows, [[text]]);
  }
});

test('a boolean in a CSV file may have the usual spellings; others are refused', () => {
  const yes = ['TRUE', 'Yes', '1', 'true', 'y', 'on'];
  const no = ['FALSE', 'No', '0', 'false', 'n', 'off'];
  const read = fromCsv(`done\n${[...yes, ...no, 'maybe'].join('\n')}\n`);
  assert.deepEqual(
    read.slice(0, 12).map(({ record }) => record.done),
    [...yes.map(() => true), ...no.map(() => false)],
  );
  assert.deepEqual(read[12]?.problems, ['Done must be true or false.']);
});

test('values of a JSON file keep their types, and those of another type are refused', () => {
  const read = lineReader(collection);
  for (const record of records) {
    const { changes, problems } = read(record);
    assert.deepEqual(problems, []);
    assert.deepEqual(withChanges({}, changes), record);
  }
  const { problems } = read({ title: 12345, done: 'true', price: '5', tags: 'a', address: [] });
  assert.deepEqual(problems, [
    'Title must be a text.',
    'Done must be true or false.',
    'Price must be a number.',
    'Tags must be a list.',
    'Address must be an object.',
  ]);
});

test('a file of a spreadsheet with semicolons has decimal commas', () => {
  const [one, other] = fromCsv('title;price\nLamp;12,50\nChair;12.50\n', ',');
  assert.equal(one?.record.price, 12.5);
  assert.deepEqual(other?.problems, ['Price must be a number such as 1250,5.']);
});

test('an empty cell removes a value, and an object is removed if all its cells are empty', () => {
  const read = lineReader(collection, '.');
  const stored = { id: 5, title: 'Lamp', price: 3, address: { city: 'Rome', zip: '1' } };
  const { changes, problems } = read({
    price: undefined,
    'address.city': undefined,
    'address.zip': undefined,
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(withChanges(stored, changes), { id: 5, title: 'Lamp' });
  const some = read({ 'address.city': 'Oslo', 'address.zip': undefined });
  assert.deepEqual(withChanges(stored, some.changes), { ...stored, address: { city: 'Oslo' } });
  const without = { ...stored, address: null };
  assert.deepEqual(withChanges(without, changes), { id: 5, title: 'Lamp' });
  assert.deepEqual(withChanges(without, some.changes), { ...stored, address: { city: 'Oslo' } });
});

test('a member without a value of an object that is absent removes nothing beside it', () => {
  const changes = [{ path: ['address', 'city'], value: undefined }];
  assert.deepEqual(withChanges({ id: 1, city: 'Rome' }, changes), { id: 1, city: 'Rome' });
});
