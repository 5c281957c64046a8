import assert from 'node:assert/strict';
import { test } from 'node:test';

import { serviceRoutes } from '../../src/api/routes.ts';
import { text } from '../../src/schema/field.ts';
import { openTestApp } from '../support/app.ts';

const deep = (depth: number): string => `{"name":"a","price":1,"x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;

/** What is sent to create an item, and what it gets: the status, and the code of the problem or of each issue. */
const rows: readonly [body: string | Buffer, status: number, ...codes: string[]][] = [
  ['', 400, 'malformed_json'],
  [' ', 400, 'malformed_json'],
  ['{"name":"a","price":1}x', 400, 'malformed_json'],
  ['{"name":"a","price":1,}', 400, 'malformed_json'],
  ['{"name":"a","name":"b","price":1}', 400, 'malformed_json'],
  ['{"name":"a","price":1,"pri\\u0063e":2}', 400, 'malformed_json'],
  ['{"__proto__":1,"__proto__":2}', 400, 'malformed_json'],
  [deep(33), 400, 'malformed_json'],
  [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400, 'malformed_json'],
  ['\ufeff{"name":"a","price":1}', 400, 'malformed_json'],
  [Buffer.from('{"name":"a","price":1}', 'utf16le'), 400, 'malformed_json'],
  ["{'name':'a','price':1}", 400, 'malformed_json'],
  ['{"name":"a","price":NaN}', 400, 'malformed_json'],
  ['{"name":"a","price":01}', 400, 'malformed_json'],
  [deep(32), 422, 'unknown_field'],
  ['{"name":"a","price":1,"__proto__":{"price":2}}', 422, 'unknown_field'],
  ['{"name":"a","price":1,"constructor":{"prototype":{}}}', 422, 'unknown_field'],
  ['{"name":"a","price":1,"toString":null}', 422, 'unknown_field'],
  ['{"name":"a","price":1,"ownerId":1,"revision":1}', 422, 'unknown_field', 'unknown_field'],
  ['{"name":"a","price":1,"id":1}', 422, 'read_only'],
  ['[]', 422, 'wrong_type'],
  ['[{"name":"a","price":1}]', 422, 'wrong_type'],
  ['"x"', 422, 'wrong_type'],
  ['1', 422, 'wrong_type'],
  ['null', 422, 'wrong_type'],
  ['{}', 422, 'required', 'required'],
  ['{"name":null,"price":null}', 422, 'wrong_type', 'wrong_type'],
  ['{"name":1,"price":"1"}', 422, 'wrong_type', 'wrong_type'],
  ['{"name":["a"],"price":{}}', 422, 'wrong_type', 'wrong_type'],
  ['{"name":"a","price":1e400}', 422, 'not_finite'],
  ['{"name":"a","price":-1}', 422, 'too_small'],
  ['{"name":"a","price":1e13}', 422, 'too_large'],
  ['{"name":"a","price":0.12345678901234567890}', 422, 'inexact'],
  ['{"name":"","price":1}', 422, 'too_short'],
  [`{"name":"${'a'.repeat(201)}","price":1}`, 422, 'too_long'],
  [`{"name":"${'😀'.repeat(201)}","price":1}`, 422, 'too_long'],
  ['{"name":"a\\u0000","price":1}', 422, 'control_character'],
  ['{"name":"a\\u202eb","price":1}', 422, 'bidi_character'],
  ['{"name":"\\ud800","price":1}', 422, 'lone_surrogate'],
  ['{"name":"a\\nb","price":-1,"x":1}', 422, 'control_character', 'too_small', 'unknown_field'],
];

test('a body that breaks a rule is refused with all that is wrong, and the next request is served', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}`, 'content-type': 'application/json' };
  for (const [body, status, ...codes] of rows) {
    await t.test(`${status} ${codes.join(', ')}: ${JSON.stringify(body.toString()).slice(0, 70)}`, async () => {
      const answer = await ask('POST', '/items', { fields, body });
      const { errors } = Object(answer.json);
      const found = errors === undefined ? [answer.code] : errors.map((issue: { code: string }) => issue.code);
      assert.deepEqual([answer.status, ...found], [status, ...codes]);
      assert.equal((await ask('GET', '/items', { fields })).body, '[]');
    });
  }
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, 1]));
  const { json } = await ask('POST', '/items', { fields, json: many });
  assert.match(Object(json).detail, /: at least 100 fields break a rule$/);
  const longest = { name: '😀'.repeat(200), price: 1e12 };
  assert.equal((await ask('POST', '/items', { fields, json: longest })).status, 201);
});

test('a password is looked at beside a name and an address that are no texts, and cannot be made any', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  const json = { name: { toString: 1, valueOf: 1 }, email: [{ toString: null }], password: 'a good and long password' };
  for (const [method, target] of [['POST', '/users'], ['PATCH', '/users/2']] as const) {
    const answer = await ask(method, target, { fields, json });
    const codes = Object(answer.json).errors.map((issue: { code: string }) => issue.code);
    assert.deepEqual([answer.status, ...codes], [422, 'wrong_type', 'wrong_type'], method);
  }
});

test('what a row of the route table says of a body is what is taken', async (t) => {
  const { ask } = await openTestApp(t);
  const { login, logout, createToken, revokeToken } = serviceRoutes;
  const bodies = [
    [login.path, login.body, {}], [logout.path, logout.body, {}], [createToken.path, createToken.body, {}],
    [createToken.path, createToken.body.or, { refresh_token: 'x' }], [revokeToken.path, revokeToken.body, {}],
  ] as const;
  const rows = Object.values(serviceRoutes).filter((row) => 'body' in row);
  assert.deepEqual(new Set(bodies.map(([path]) => path)), new Set(rows.map(({ path }) => path)));
  for (const [path, body, json] of bodies) {
    const { shape } = body;
    Reflect.set(body, 'shape', { ...shape, further: text() });
    const { status, json: problem } = await ask('POST', path, { json });
    Reflect.set(body, 'shape', shape);
    assert.equal(status, 422, path);
    const pointers = Object(problem).errors.map(({ pointer }: { pointer: string }) => pointer);
    assert.ok(pointers.includes('/further'), `${path}: ${pointers}`);
  }
});
