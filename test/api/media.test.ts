import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openTestApp } from '../support/app.ts';

test('a patch is a merge patch by either name, and OPTIONS says so', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  await ask('POST', '/items', { fields, json: { name: 'Lamp', price: 1 } });
  const types = ['application/json', 'application/merge-patch+json', 'Application/Merge-Patch+JSON; charset=utf-8'];
  for (const [price, type] of types.entries()) {
    const asked = { fields: { ...fields, 'content-type': type }, body: `{"price":${price}}` };
    const answer = await ask('PATCH', '/items/1', asked);
    assert.deepEqual([answer.status, answer.json], [200, { id: 1, name: 'Lamp', price }], type);
  }
  for (const type of ['application/json-patch+json', 'text/plain', 'application/json; charset=latin1']) {
    const answer = await ask('PATCH', '/items/1', { fields: { ...fields, 'content-type': type }, body: '{"price":9}' });
    assert.equal(answer.status, 415, type);
    assert.equal(answer.field('accept-patch'), 'application/merge-patch+json, application/json');
  }
  const merged = { ...fields, 'content-type': 'application/merge-patch+json' };
  const put = await ask('PUT', '/items/1', { fields: merged, body: '{}' });
  assert.deepEqual([put.status, put.field('accept')], [415, 'application/json']);
  assert.equal(put.field('accept-encoding'), undefined);
  const coded = await ask('PATCH', '/items/1', { fields: { ...merged, 'content-encoding': 'gzip' }, body: '{}' });
  assert.deepEqual([coded.status, coded.field('accept-patch')], [415, undefined]);
  assert.equal(coded.field('accept-encoding'), 'identity');
  const options = await ask('OPTIONS', '/items/1');
  assert.equal(options.field('accept-patch'), 'application/merge-patch+json, application/json');
  assert.equal((await ask('OPTIONS', '/items')).field('accept-patch'), undefined);
});

test('RFC 9110 §14.5: a part is not taken for the whole', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}`, 'content-range': 'bytes 0-9/99' };
  assert.equal((await ask('POST', '/items', { fields, json: { name: 'Lamp', price: 1 } })).status, 201);
  const answer = await ask('PUT', '/items/1', { fields, json: { name: 'Lamp', price: 2 } });
  assert.deepEqual([answer.status, answer.code], [400, 'malformed_request']);
});

test('RFC 9110 §12.5.1: what cannot be shown as asked is 406', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  await ask('POST', '/items', { fields, json: { name: 'Lamp', price: 1 } });
  const statusFor = async (accept: string): Promise<number> =>
    (await ask('GET', '/items/1', { fields: { ...fields, accept } })).status;
  for (const accept of ['*/*', 'application/*', 'application/json;q=0.1, text/html', 'text/html, */*;q=0.01', '']) {
    assert.equal(await statusFor(accept), 200, accept);
  }
  for (const accept of ['text/html', 'application/json;q=0', '*/*;q=0', 'application/json;q=0, */*']) {
    assert.equal(await statusFor(accept), 406, accept);
  }
  const refused = await ask('POST', '/items', {
    fields: { ...fields, accept: 'text/html' },
    json: { name: 'Chair', price: 1 },
  });
  assert.equal(refused.status, 406);
  assert.equal((await ask('GET', '/items/2', { fields })).status, 404);
  // There is nothing to show, so nothing is wrong.
  assert.equal((await ask('DELETE', '/items/1', { fields: { ...fields, accept: 'text/html' } })).status, 204);
});

test('RFC 7240 §4.2: who wants no content back gets none', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}`, prefer: 'respond-async, return=minimal' };
  const created = await ask('POST', '/items', { fields, json: { name: 'Lamp', price: 1 } });
  assert.deepEqual([created.status, created.body, created.field('location')], [201, '', '/items/1']);
  assert.deepEqual([created.field('cache-control'), created.field('x-content-type-options')], ['no-store', 'nosniff']);
  for (const [method, json] of [['PUT', { name: 'Lamp', price: 2 }], ['PATCH', { price: 3 }]] as const) {
    const answer = await ask(method, '/items/1', { fields, json });
    assert.deepEqual([answer.status, answer.body], [204, '']);
    assert.equal(answer.field('preference-applied'), 'return=minimal');
    assert.equal(answer.field('etag'), (await ask('GET', '/items/1', { fields })).field('etag'));
  }
  const other = await ask('PATCH', '/items/1', { fields: { ...fields, prefer: 'return=representation' }, json: {} });
  assert.deepEqual([other.status, other.json], [200, { id: 1, name: 'Lamp', price: 3 }]);
});

test('a record that is sent back as it was read is accepted', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('member')}` };
  await ask('POST', '/items', { fields, json: { name: 'Lamp', price: 0.1 } });
  for (const target of ['/items/1', '/users/2']) {
    const { json } = await ask('GET', target, { fields });
    for (const method of ['PUT', 'PATCH']) {
      const answer = await ask(method, target, { fields, json });
      assert.deepEqual([answer.status, answer.json], [200, json], `${method} ${target}`);
    }
  }
  const foreign = await ask('PATCH', '/users/2', { fields, json: { id: 3, role: 'admin' } });
  assert.equal(foreign.status, 422);
  assert.deepEqual(
    Object(foreign.json).errors.map((issue: { pointer: string; code: string }) => [issue.pointer, issue.code]),
    [['/id', 'read_only'], ['/role', 'read_only']],
  );
});

test('a price is kept exactly as it was sent, or refused', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}`, 'content-type': 'application/json' };
  const kept: readonly [sent: string, shown: string][] = [
    ['0.1', '0.1'], ['19.99', '19.99'], ['1e3', '1000'], ['-0', '0'], ['1.50', '1.5'], ['1e12', '1000000000000'],
    ['0.30000000000000004', '0.30000000000000004'], ['123456789.125', '123456789.125'], ['5e-324', '5e-324'],
  ];
  for (const [sent, shown] of kept) {
    const answer = await ask('POST', '/items', { fields, body: `{"name":"x","price":${sent}}` });
    assert.equal(/"price":([^}]*)/.exec(answer.body)?.[1], shown, sent);
  }
  for (const sent of ['0.12345678901234567890', '9007199254740993', '1e400', '-1', '1e13', '"1"', 'null']) {
    const answer = await ask('POST', '/items', { fields, body: `{"name":"x","price":${sent}}` });
    assert.deepEqual([answer.status, Object(answer.json).errors[0].pointer], [422, '/price'], sent);
  }
});
