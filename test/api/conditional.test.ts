import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { openTestApp, type Answer } from '../support/app.ts';

const lamp = { name: 'Lamp', price: 1 };

test('a record and its collection have strong entity tags that change with them, and only then', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('member')}` };
  const tagOf = async (target: string): Promise<string> => (await ask('GET', target, { fields })).field('etag') ?? '';
  const created = await ask('POST', '/items', { fields, json: lamp });
  await ask('POST', '/items', { fields, json: lamp });
  const [one, two, all] = [await tagOf('/items/1'), await tagOf('/items/2'), await tagOf('/items')];
  assert.match(one, /^"[\x21\x23-\x7e]+"$/);
  assert.equal(one, created.field('etag'));
  assert.equal(new Set([one, two, await tagOf('/items/1?fields=id')]).size, 3);
  assert.equal(await tagOf('/items/1'), one);

  const patched = await ask('PATCH', '/items/1', { fields, json: { price: 2 } });
  assert.equal(patched.field('etag'), await tagOf('/items/1'));
  assert.notEqual(await tagOf('/items/1'), one);
  assert.equal(await tagOf('/items/2'), two);
  assert.notEqual(await tagOf('/items'), all);
});

test('RFC 9110 §13.1.2: what the caller has is answered with 304, lists too', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  await ask('POST', '/items', { fields, json: lamp });
  for (const target of ['/items/1', '/items', '/items?limit=1&sort=price', '/items/1?fields=name', '/users/1']) {
    const etag = (await ask('GET', target, { fields })).field('etag') ?? '';
    for (const condition of [etag, `W/${etag}`, `"x", ${etag}`, `"a,b",${etag}`, '*']) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await ask(method, target, { fields: { ...fields, 'if-none-match': condition } });
        assert.deepEqual([answer.status, answer.body], [304, ''], `${target} ${condition}`);
        assert.equal(answer.field('etag'), etag);
        assert.equal(answer.field('cache-control'), 'private, no-cache');
        assert.equal(answer.field('vary'), 'Authorization, Cookie, Accept, Prefer');
        assert.equal(answer.field('content-type'), undefined);
      }
    }
    assert.equal((await ask('GET', target, { fields: { ...fields, 'if-none-match': '"x"' } })).status, 200);
  }
  const description = await ask('GET', '/openapi.json');
  const held = { 'if-none-match': description.field('etag') ?? '' };
  assert.equal(description.field('cache-control'), 'private, no-cache');
  assert.equal((await ask('GET', '/openapi.json', { fields: held })).status, 304);
  const counting = { ...fields, prefer: 'count=exact' };
  const uncounted = (await ask('GET', '/items', { fields })).field('etag') ?? '';
  const counted = await ask('GET', '/items', { fields: { ...counting, 'if-none-match': uncounted } });
  assert.deepEqual([counted.status, counted.field('x-total-count')], [200, '1'], 'who has no count does not have it');
  for (const condition of [counted.field('etag') ?? '', '*']) {
    const again = await ask('GET', '/items', { fields: { ...counting, 'if-none-match': condition } });
    assert.deepEqual([again.status, again.field('etag')], [304, counted.field('etag')]);
  }
  for (const prefer of ['count=exact', 'count=none']) {
    const same = await ask('GET', '/items', { fields: { ...fields, prefer, 'if-match': uncounted } });
    assert.equal(same.status, 200, 'of the same version');
  }
  const malformed = await ask('GET', '/items/1', { fields: { ...fields, 'if-none-match': 'x' } });
  assert.deepEqual([malformed.status, malformed.code], [400, 'malformed_request']);
});

test('RFC 9110 §13.1.1: a write goes on only for the version that was named', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  const etag = (await ask('POST', '/items', { fields, json: lamp })).field('etag') ?? '';
  const stale = ['"x"', `W/${etag}`, `"x", "y"`, '"a,b"'];
  for (const condition of stale) {
    for (const [method, json] of [['PUT', lamp], ['PATCH', { price: 5 }], ['DELETE', undefined]] as const) {
      const asked = { fields: { ...fields, 'if-match': condition }, ...(json && { json }) };
      const answer = await ask(method, '/items/1', asked);
      assert.deepEqual([answer.status, answer.code], [412, 'precondition_failed'], `${method} ${condition}`);
    }
  }
  assert.equal((await ask('GET', '/items/1', { fields })).field('etag'), etag);
  const put = await ask('PUT', '/items/1', { fields: { ...fields, 'if-match': `"x", ${etag}` }, json: lamp });
  assert.equal(put.status, 200);
  const patch = await ask('PATCH', '/items/1', { fields: { ...fields, 'if-match': '*' }, json: { price: 2 } });
  assert.equal(patch.status, 200);
  const none = await ask('PATCH', '/items/1', { fields: { ...fields, 'if-none-match': '*' }, json: { price: 3 } });
  assert.equal(none.status, 412);
  assert.equal((await ask('DELETE', '/items/1', { fields: { ...fields, 'if-match': '*' } })).status, 204);
  assert.equal((await ask('PUT', '/items/1', { fields: { ...fields, 'if-match': '*' }, json: lamp })).status, 404);
});

test('RFC 9110 §13.1.1: what has no version is not written for one', async (t) => {
  const { ask, token, cookie } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('member')}`, 'if-match': '"x"' };
  const session = { cookie: await cookie('member'), 'if-match': '"x"' };
  const refused = [
    await ask('POST', '/items', { fields, json: lamp }),
    await ask('DELETE', '/sessions/4', { fields: session }),
    await ask('POST', '/logout', { fields: session }),
  ];
  for (const { status, code } of refused) assert.deepEqual([status, code], [412, 'precondition_failed']);
  const malformed = await ask('POST', '/items', { fields: { ...fields, 'if-match': 'x' }, json: lamp });
  assert.deepEqual([malformed.status, malformed.code], [400, 'malformed_request']);
  const unasked = await ask('POST', '/logout', { fields: { 'if-none-match': 'x' } });
  assert.equal(unasked.status, 204, 'it says nothing here');
  assert.equal((await ask('GET', '/items', { fields: { authorization: fields.authorization } })).body, '[]');
  assert.equal((await ask('GET', '/dashboard', { fields: session })).status, 200);
  assert.equal((await ask('POST', '/items', { fields: { ...fields, 'if-match': '*' }, json: lamp })).status, 201);
});

test('the order: authorization, 404, 428, 422, 412', async (t) => {
  const { ask, token } = await openTestApp(t, { requireIfMatch: true });
  const admin = { authorization: `Bearer ${await token('admin')}` };
  const member = { authorization: `Bearer ${await token('member')}` };
  await ask('POST', '/items', { fields: admin, json: lamp });
  const outcome = async (asker: object, target: string, json: unknown, tag?: string): Promise<unknown> => {
    const fields = { ...asker, ...(tag !== undefined && { 'if-match': tag }) };
    return (await ask('PUT', target, { fields, json })).status;
  };
  const bad = { name: '' };
  assert.equal(await outcome({}, '/items/1', bad), 401);
  assert.equal(await outcome(member, '/items/1', bad), 403);
  assert.equal(await outcome(admin, '/items/9', bad), 404);
  assert.equal(await outcome(admin, '/items/1', bad), 428);
  assert.equal(await outcome(admin, '/items/1', bad, '"x"'), 422);
  assert.equal(await outcome(admin, '/items/1', lamp, '"x"'), 412);
  assert.equal(await outcome(admin, '/items/1', lamp, '*'), 200);
  assert.equal(await outcome(admin, '/users/2', {}), 428);
  assert.equal((await ask('DELETE', '/items/1', { fields: admin })).status, 428);
});

const update = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status).sort();

test('of 40 writers that saw the same version one wins, and no update is lost', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-race-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const { ask, token } = await openTestApp(t, { directory });
  const fields = { authorization: `Bearer ${await token('admin')}` };
  let etag = (await ask('POST', '/items', { fields, json: { name: 'Counter', price: 0 } })).field('etag');
  const writers = Array.from({ length: 40 }, (_, writer) => writer);
  const asked = (writer: number) => ({
    fields: { ...fields, 'if-match': etag ?? '' },
    json: { name: `by ${writer}`, price: writer },
  });
  for (let round = 0; round < 5; round += 1) {
    const method = round % 2 === 0 ? 'PUT' : 'PATCH';
    const answers = await Promise.all(writers.map((writer) => ask(method, '/items/1', asked(writer))));
    assert.deepEqual(update(answers), [200, ...Array.from({ length: 39 }, () => 412)]);
    const winner = answers.find(({ status }) => status === 200);
    const read = await ask('GET', '/items/1', { fields });
    assert.equal(read.body, winner?.body);
    etag = read.field('etag');
  }

  // Everybody adds 1 and tries again until it worked: the sum is right.
  await ask('PUT', '/items/1', { fields, json: { name: 'Counter', price: 0 } });
  const add = async (): Promise<void> => {
    for (;;) {
      const read = await ask('GET', '/items/1', { fields });
      const json = { price: Number(Object(read.json).price) + 1 };
      const tag = { 'if-match': read.field('etag') ?? '' };
      const answer = await ask('PATCH', '/items/1', { fields: { ...fields, ...tag }, json });
      if (answer.status === 200) return;
      assert.equal(answer.status, 412, answer.body);
      // Without a socket nothing here waits, and the disk's answer would never get its turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await Promise.all(Array.from({ length: 20 }, add));
  assert.equal(Object((await ask('GET', '/items/1', { fields })).json).price, 20);
});

test('of a removal and a change for the same version one wins', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  for (let id = 1; id <= 10; id += 1) {
    const tag = (await ask('POST', '/items', { fields, json: lamp })).field('etag') ?? '';
    const conditional = { ...fields, 'if-match': tag };
    const change = (): Promise<Answer> => ask('PATCH', `/items/${id}`, { fields: conditional, json: { price: 2 } });
    const remove = (): Promise<Answer> => ask('DELETE', `/items/${id}`, { fields: conditional });
    const [changed, removed] = await Promise.all([change(), remove()]);
    const outcome = `${changed.status} ${removed.status}`;
    assert.ok(outcome === '200 412' || outcome === '404 204', outcome);
  }
});

test('no entity tag of an earlier epoch matches, sessions and dashboard have none', async (t) => {
  const { ask, token, cookie } = await openTestApp(t);
  const other = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  const theirs = { authorization: `Bearer ${await other.token('admin')}` };
  const etag = (await ask('POST', '/items', { fields, json: lamp })).field('etag') ?? '';
  assert.notEqual((await other.ask('POST', '/items', { fields: theirs, json: lamp })).field('etag'), etag);
  const session = { cookie: await cookie('member') };
  for (const target of ['/sessions', '/dashboard']) {
    const answer = await ask('GET', target, { fields: session });
    assert.deepEqual([answer.field('etag'), answer.field('cache-control')], [undefined, 'no-store']);
  }
});
