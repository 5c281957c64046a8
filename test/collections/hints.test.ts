import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../src/base/json.ts';
import { parseDeclarations } from '../../src/collections/declaration-file.ts';
import { makeShapeTag } from '../../src/collections/declared-rules.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { startApp } from '../support/app.ts';

const orders = {
  name: 'orders', display: '{{{quantity} × {note}}', group: 'Sales', hidden: true,
  fields: {
    quantity: { kind: 'integer', label: 'How many' },
    note: { kind: 'text', optional: true },
    price: { kind: 'number', format: { money: 'EUR' } },
    discount: { kind: 'number', format: 'percent' },
    photo: { kind: 'url', format: 'image' },
    state: { kind: 'choice', values: ['open', 'cancelled'], colors: { cancelled: 'red' } },
    address: { kind: 'object', fields: { city: { kind: 'text', label: 'Town' } } },
  },
} as const;

test('hints are in the OpenAPI document, as they were declared', async (t) => {
  const { client } = await startApp(t, { collections: [declareCollection(orders)] });
  const document = Object((await client.get('/openapi.json')).json);
  const described = document['x-collections'].find(({ name }: JsonObject) => name === 'orders');
  const { display, group, hidden, fields } = described;
  assert.deepEqual({ name: 'orders', display, group, hidden, fields }, orders);
  const { Order: schema } = document.components.schemas;
  assert.equal(schema['x-display'], orders.display);
  assert.deepEqual(schema.properties.quantity['x-hints'], { label: 'How many' });
  assert.deepEqual(schema.properties.price['x-hints'], { format: { money: 'EUR' } });
  assert.deepEqual(schema.properties.state['x-hints'], { colors: { cancelled: 'red' } });
  assert.equal(schema.properties.note['x-hints'], undefined);
});

test('hints are in no entity tag', () => {
  const { display: _, group: _group, hidden: _hidden, ...plain } = orders;
  const quantity = { kind: 'integer' } as const;
  const shapes = [orders, { ...plain, fields: { ...plain.fields, quantity } }].map((one) => declareCollection(one));
  const [tag, other] = shapes.map(({ fields }) => makeShapeTag(fields));
  assert.equal(tag, other);
});

test('a wrong hint is refused at the start, with its place', () => {
  const cases: readonly (readonly [JsonObject, RegExp])[] = [
    [{ display: '{color}' }, /^\/collections\/0\/display must name fields in braces, not "color"$/],
    [{ display: '{notes}' }, /not "notes"; did you mean "note"\?$/],
    [{ display: '{address.city}' }, /display must name fields in braces, not "address.city"/],
    [{ display: 'note' }, /display must name a field in braces, such as "\{name\}"$/],
    [{ display: '{note' }, /display must close each brace: write "\{\{" for one that is shown$/],
    [{ display: '' }, /display must be at least 1 character long/],
    [{ group: 1 }, /group must be a string/],
    [{ hidden: 'yes' }, /hidden must be true or false/],
  ];
  const parse = (collection: JsonObject) => () => parseDeclarations({ collections: [collection] }, []);
  for (const [hint, message] of cases) assert.throws(parse({ ...orders, ...hint }), { message });
  const fields: readonly (readonly [JsonObject, RegExp])[] = [
    [{ kind: 'text', label: '' }, /\/fields\/a\/label must be at least 1 character long/],
    [{ kind: 'text', format: 'percent' }, /\/fields\/a\/format must be left out: it is for .* number and integer/],
    [{ kind: 'number', format: 'image' }, /\/fields\/a\/format must be left out: it is for the kinds text and url/],
    [{ kind: 'number', format: { money: 'Euro' } }, /\/fields\/a\/format must be "image", "percent" or a currency/],
    [{ kind: 'choice', values: ['a'], colors: { b: 'red' } }, /\/colors\/b must be one of the values of a choice/],
    [{ kind: 'choice', values: ['a'], colors: { a: 'beige' } }, /\/fields\/a\/colors\/a must be one of red, orange, /],
    [{ kind: 'text', colors: { a: 'red' } }, /\/fields\/a\/colors\/a must be one of the values of a choice/],
    [{ kind: 'object', fields: { b: { kind: 'text', format: 'percent' } } }, /\/a\/fields\/b\/format must be left/],
  ];
  for (const [a, message] of fields)
    assert.throws(parse({ name: 'as', fields: { a } }), { message }, JSON.stringify(a));
});
