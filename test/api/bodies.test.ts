import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Users } from '../../src/accounts/users.ts';
import type { Transaction } from '../../src/store/store.ts';
import { noContent } from '../../src/api/replies.ts';
import { newRecord } from '../../src/api/body.ts';
import { withBody } from '../../src/api/call.ts';
import { localAdministrator } from '../../src/auth/access.ts';
import type { JsonValue } from '../../src/base/json.ts';
import { startApp } from '../support/app.ts';
import { allRoutes } from '../support/contract.ts';

const deep = (depth: number): string => `{"name":"a","price":1,"x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;

/** Bodies sent to create an item, with the status, and the code of the problem or of each issue. */
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
  ['{"name":"a","price":9007199254740993}', 400, 'malformed_json'],
  ['{"name":"a","price":01}', 400, 'malformed_json'],
  [deep(32), 422, 'unknown_field'],
  ['{"name":"a","price":1,"__proto__":{"price":2}}', 422, 'unknown_field'],
  ['{"name":"a","price":1,"constructor":{"prototype":{}}}', 422, 'unknown_field'],
  ['{"name":"a","price":1,"toString":null}', 422, 'unknown_field'],
  ['{"name":"a","price":1,"ownerId":1,"revision":1}', 422, 'unknown_field', 'unknown_field'],
  ['{"name":"a","price":1,"id":1}', 422, 'read_only'],
  ['[]', 422, 'too_short'],
  [`[${'{},'.repeat(1000)}{}]`, 422, 'too_long'],
  [`[${'0,'.repeat(99_000)}0]`, 422, 'too_long'],
  [`[${'0,'.repeat(500_000)}0]`, 413, 'content_too_large'],
  ['[{"name":"a","price":1},{"name":"b"}]', 422, 'required'],
  ['[[{"name":"a","price":1}]]', 422, 'wrong_type'],
  ['[{"name":"a","price":1},null,1]', 422, 'wrong_type', 'wrong_type'],
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
  ['{"name":"","price":1}', 422, 'too_short'],
  [`{"name":"${'a'.repeat(201)}","price":1}`, 422, 'too_long'],
  [`{"name":"${'😀'.repeat(201)}","price":1}`, 422, 'too_long'],
  ['{"name":"a\\u0000","price":1}', 422, 'control_character'],
  ['{"name":"a\\u202eb","price":1}', 422, 'bidi_character'],
  ['{"name":"\\ud800","price":1}', 422, 'lone_surrogate'],
  ['{"name":"\\u200fa","price":1}', 422, 'bidi_character'],
  ['{"name":"a\\u2028b","price":1}', 422, 'control_character'],
  ['{"name":" \\u200b\\u3164","price":1}', 422, 'invisible'],
  ['{"name":"a\\nb","price":-1,"x":1}', 422, 'control_character', 'too_small', 'unknown_field'],
];

test('a body that breaks rules is refused with all issues, and the next request is served', async (t) => {
  const admin = await (await startApp(t)).signIn('admin', { 'content-type': 'application/json' });
  for (const [body, status, ...codes] of rows) {
    await t.test(`${status} ${codes.join(', ')}: ${JSON.stringify(body.toString()).slice(0, 70)}`, async () => {
      const target = body.toString().startsWith('[') ? '/items/batch' : '/items';
      const answer = await admin.post(target, { body });
      const { errors } = Object(answer.json);
      const found = errors === undefined ? [answer.code] : errors.map((issue: { code: string }) => issue.code);
      assert.deepEqual([answer.status, ...found], [status, ...codes]);
      assert.equal((await admin.get('/items')).body, '[]');
    });
  }
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, 1]));
  const { json } = await admin.post('/items', { json: many });
  assert.match(Object(json).detail, /: over 100 fields break a rule$/);
  assert.equal(Object(json).errors.length, 100);
  const longest = { name: '😀'.repeat(200), price: 1e12 };
  assert.equal((await admin.post('/items', { json: longest })).status, 201);
});

test('a password is validated even beside a name and an address that are not texts', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  const json = { name: { toString: 1, valueOf: 1 }, email: [{ toString: null }], password: 'a good and long password' };
  for (const [method, target] of [['POST', '/users'], ['PATCH', '/users/2']] as const) {
    const answer = await admin.send(method, target, { json });
    const codes = Object(answer.json).errors.map((issue: { code: string }) => issue.code);
    assert.deepEqual([answer.status, ...codes], [422, 'wrong_type', 'wrong_type'], method);
  }
});

test('every body in the route table is validated', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  await admin.post('/items', { json: { name: 'Lamp', price: 1 } });
  const rows = (await allRoutes()).filter((route) => 'body' in route && route.body !== undefined);
  assert.ok(rows.length >= 10);
  for (const { method, path } of rows) {
    for (const more of [{}, { refresh_token: 'x' }]) {
      const isMany = path.endsWith('/batch');
      const one = { further: 1, ...more };
      const json = isMany ? [one] : one;
      const { status, json: problem } = await admin.send(method, path.replace('{id}', '1'), { json });
      assert.equal(status, 422, `${method} ${path}`);
      const pointers = Object(problem).errors.map(({ pointer }: { pointer: string }) => pointer);
      assert.ok(pointers.includes(isMany ? '/0/further' : '/further'), `${method} ${path}: ${pointers}`);
    }
  }
});

test('storing an unvalidated body, or a row with a handler of another body, does not compile', () => {
  const wrong = {
    store: (users: Users, tx: Transaction, body: JsonValue) =>
      // @ts-expect-error: only `acceptNew` makes a `NewUser` of a body
      users.create(tx, localAdministrator, body),
    bind: () =>
      withBody({
        method: 'POST', path: '/named', access: 'public', body: newRecord({ shape: { name: { kind: 'text' } } }),
        // @ts-expect-error: the body of this route has no such member
        handle: ({ body }) => noContent([body.token]),
      }),
    // @ts-expect-error: the handler is missing
    forget: () => withBody({ method: 'POST', path: '/', access: 'public', body: newRecord({ shape: {} }) }),
  };
  assert.equal(Object.keys(wrong).length, 3);
});
