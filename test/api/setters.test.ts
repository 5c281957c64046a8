import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { JsonObject } from '../../src/base/json.ts';
import { parseDeclarations } from '../../src/collections/declaration-file.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { toNewRecord } from '../../src/collections/file-records.ts';
import type { Hooks } from '../../src/index.ts';
import { startApp } from '../support/app.ts';

const admins = { set: ['admin'] } as const;
const orders = declareCollection({
  name: 'orders',
  fields: {
    note: { kind: 'text', optional: true },
    price: { kind: 'number', default: 0, ...admins },
    state: { kind: 'choice', values: ['new', 'paid'], default: 'new', set: ['admin', 'clerk'] },
    wish: { kind: 'text', optional: true, set: ['owner'] },
    mark: { kind: 'json', optional: true, nullable: true, ...admins },
    shipping: {
      kind: 'object', optional: true, nullable: true,
      fields: {
        city: { kind: 'text', optional: true }, cost: { kind: 'number', optional: true, ...admins },
        to: { kind: 'object', optional: true, fields: { code: { kind: 'text', optional: true, ...admins } } },
      },
    },
  },
  access: { replace: ['owner', 'member'], patch: ['owner', 'member'] },
});

/** Opens an app, in which `mia` owns order 1, and an administrator has set all that she may not. */
async function open(t: TestContext) {
  const opened = await startApp(t, { collections: [orders], roles: ['clerk'] });
  const [mia, admin] = [await opened.signIn('member'), await opened.signIn('admin')];
  const made = await mia.post('/orders', { json: { note: 'Hi', shipping: { city: 'Rome' } } });
  assert.deepEqual(made.json, { id: 1, note: 'Hi', price: 0, state: 'new', shipping: { city: 'Rome' } });
  const shipping = { cost: 5, to: { code: 'x' } };
  const changed = await admin.patch('/orders/1', { json: { price: 9, state: 'paid', mark: { a: 1 }, shipping } });
  const stored = Object(changed.json);
  assert.deepEqual([changed.status, stored.price, stored.shipping], [200, 9, { city: 'Rome', ...shipping }]);
  const issuesOf = async (method: string, path: string, json: unknown) => {
    const { status, json: answer } = await mia.send(method, path, { json: Object(json) });
    return status === 422 ? Object(answer).errors.map((each: any) => `${each.pointer} ${each.code}`) : status;
  };
  return { ...opened, mia, admin, stored, issuesOf };
}

test('a new record may have the default of a field that its creator may not set, and nothing else', async (t) => {
  const { issuesOf, admin } = await open(t);
  const shipping = { to: {} };
  const accepted = [{}, { price: 0, state: 'new' }, { price: -0 }, { mark: null }, { wish: 'a' }, { shipping }];
  for (const json of accepted) assert.equal(await issuesOf('POST', '/orders', json), 201, JSON.stringify(json));
  const refused: readonly (readonly [object, ...string[]])[] = [
    [{ price: 1 }, '/price'], [{ state: 'paid', price: 2 }, '/price', '/state'], [{ mark: 0 }, '/mark'],
    [{ shipping: { cost: 1 } }, '/shipping/cost'], [{ shipping: { to: { code: 'y' } } }, '/shipping/to/code'],
    [{ price: 'high' }, '/price'],
  ];
  for (const [json, ...pointers] of refused)
    assert.deepEqual(await issuesOf('POST', '/orders', json), pointers.map((pointer) => `${pointer} read_only`));
  assert.deepEqual(await issuesOf('POST', '/orders/batch', [{}, { price: 1 }]), ['/1/price read_only']);
  assert.equal((await admin.post('/orders', { json: { price: 1, wish: 'b', state: 'paid' } })).status, 201);
});

test('a replacement keeps what its caller may not set, also within objects, and may repeat it', async (t) => {
  const { issuesOf, admin, mia, stored } = await open(t);
  const { price, state, mark } = stored;
  const kept = { id: 1, price, state, mark };
  const put = async (json: object) => (await mia.put('/orders/1', { json })).json;
  assert.deepEqual(await put(stored), stored);
  const own = { cost: 5, to: { code: 'x' } };
  const moved = { ...kept, note: 'B', shipping: { city: 'Oslo', ...own } };
  assert.deepEqual(await put({ note: 'B', shipping: { city: 'Oslo' } }), moved);
  assert.deepEqual(await put({ price: 9.0 }), { ...kept, shipping: own });
  const refused: readonly (readonly [object, ...string[]])[] = [
    [{ price: 0 }, '/price'], [{ mark: null }, '/mark'], [{ shipping: null }, '/shipping/cost', '/shipping/to/code'],
    [{ shipping: { to: null } }, '/shipping/to/code'], [{ shipping: { cost: 6 } }, '/shipping/cost'],
  ];
  for (const [json, ...pointers] of refused) {
    const issues = await issuesOf('PUT', '/orders/1', json);
    const found = issues.filter((issue: string) => issue.endsWith('read_only'));
    assert.deepEqual(found, pointers.map((one) => `${one} read_only`));
  }
  // An administrator resets a field with a default only by naming it.
  assert.deepEqual((await admin.put('/orders/1', { json: {} })).json, { id: 1, price, state });
});

test('a patch may not change or remove what its caller may not set', async (t) => {
  const { issuesOf, mia, stored } = await open(t);
  const same = [{}, { price: 9, mark: { a: 1 } }, { shipping: { cost: 5 } }, { shipping: { to: { code: 'x' } } }];
  for (const json of same) assert.deepEqual((await mia.patch('/orders/1', { json })).json, stored);
  const refused: readonly (readonly [object, ...string[]])[] = [
    [{ price: null }, '/price'], [{ mark: null }, '/mark'], [{ mark: { b: 1 } }, '/mark'],
    [{ shipping: null }, '/shipping/cost', '/shipping/to/code'], [{ shipping: { to: null } }, '/shipping/to/code'],
  ];
  for (const [json, ...pointers] of refused)
    assert.deepEqual(await issuesOf('PATCH', '/orders/1', json), pointers.map((pointer) => `${pointer} read_only`));
  assert.equal(await issuesOf('POST', '/orders', {}), 201);
  const absent = await mia.patch('/orders/2', { json: { mark: null, shipping: { cost: null } } });
  assert.deepEqual(absent.json, { id: 2, price: 0, state: 'new', shipping: {} });
});

test('an owner may set fields for owners, but another user who may change the record may not', async (t) => {
  const { issuesOf, admin, mia } = await open(t);
  assert.equal(Object((await mia.patch('/orders/1', { json: { wish: 'red' } })).json).wish, 'red');
  await admin.post('/orders', { json: { wish: 'blue' } });
  assert.equal(await issuesOf('PATCH', '/orders/2', { note: 'Seen' }), 200);
  assert.deepEqual(await issuesOf('PATCH', '/orders/2', { wish: 'red' }), ['/wish read_only']);
});

test('a change with an old version is 412, before field rules are checked', async (t) => {
  const { mia } = await open(t);
  const { status } = await mia.patch('/orders/1', { json: { price: 1 }, headers: { 'if-match': '"old"' } });
  assert.equal(status, 412);
});

test('a program without `as`, a hook and an import may set every field, a program with `as` may not', async (t) => {
  const hooks: Hooks = { beforeWrite: ({ collection }) => (collection === 'orders' ? { price: 3 } : undefined) };
  const { app, signIn } = await startApp(t, { collections: [orders], roles: ['clerk'], hooks });
  const mia = await signIn('member');
  assert.equal(Object((await mia.post('/orders', { json: {} })).json).price, 3);
  const records = app.collection(orders);
  assert.equal((await records.create({ state: 'paid' })).state, 'paid');
  const userId: number = Object((await mia.get('/me')).json).id;
  await assert.rejects(records.create({ state: 'paid' }, { as: userId }), { code: 'validation_failed' });
  assert.equal(toNewRecord(orders, { price: 7 }).fields['price'], 7);
  await assert.rejects(app.write((tx) => tx.collection(orders).change(1, { state: 'paid' }), { as: userId }),
    { code: 'validation_failed' });
});

test('who may set fields is checked at the start, and is in the OpenAPI document', async (t) => {
  const { client } = await open(t);
  const document = Object((await client.get('/openapi.json')).json);
  const { price, shipping } = document.components.schemas.Order.properties;
  const { cost } = shipping.properties;
  assert.deepEqual([price['x-set'], price.readOnly, cost['x-set']], [['admin'], undefined, ['admin']]);
  const parse = (a: JsonObject, create: string | string[] = 'user') => () =>
    parseDeclarations({ roles: ['clerk'], collections: [{ name: 'as', fields: { a }, access: { create } }] }, []);
  const text = { kind: 'text' };
  const refused: readonly (readonly [() => unknown, RegExp])[] = [
    ...['public', 'optional', 'user', 'session', 'self', 'a', 'waiter'].map((word) => [
      parse({ ...text, optional: true, set: [word] }),
      /a\/set\/0 must be one of owner, admin, member, clerk,/,
    ] as const),
    [parse({ ...text, set: [] }), /a\/set must have at least one value/],
    [parse({ ...text, set: 'admin' }), /a\/set must be a list/],
    [parse({ kind: 'list', of: { kind: 'object', fields: { b: { ...text, optional: true, ...admins } } } }),
      /a must not have "set" within a list/],
    [parse({ ...text, ...admins }), /a needs a default, or must be optional/],
    [parse({ ...text, set: ['clerk'] }, ['clerk', 'member']), /a needs a default/],
    [parse({ ...text, set: ['owner'] }, 'optional'), /a needs a default/],
    [parse({ kind: 'object', fields: { b: { ...text, ...admins } } }), /a\/fields\/b needs a default/],
  ];
  for (const [declare, message] of refused) assert.throws(declare, { message });
  parse({ ...text, ...admins }, 'admin')();
  parse({ ...text, set: ['clerk'] }, ['clerk', 'admin'])();
  parse({ ...text, set: ['owner'] })();
});

const plans = declareCollection({
  name: 'plans',
  fields: {
    note: { kind: 'text', optional: true },
    terms: {
      kind: 'object', nullable: true, default: { city: 'Rome', days: 1 },
      fields: { city: { kind: 'text' }, days: { kind: 'integer', optional: true, ...admins } },
    },
    look: {
      kind: 'object', nullable: true, default: { color: 'red' },
      fields: { color: { kind: 'text', optional: true, set: ['owner'] } },
    },
  },
});

test('a replacement without an object that has a default keeps all of its members', async (t) => {
  const { signIn } = await startApp(t, { collections: [plans] });
  const mia = await signIn('member');
  const terms = { city: 'Oslo', days: 1 };
  assert.equal((await mia.post('/plans', { json: { terms } })).status, 201);
  const { status, json } = await mia.put('/plans/1', { json: { note: 'x' } });
  assert.deepEqual([status, json], [200, { id: 1, note: 'x', terms, look: { color: 'red' } }]);
});

test('a creator may send null for a nullable object with members that owners may set', async (t) => {
  const { signIn } = await startApp(t, { collections: [plans] });
  const made = await (await signIn('member')).post('/plans', { json: { look: null } });
  assert.deepEqual([made.status, Object(made.json).look], [201, null]);
});
