import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import { declareCollection } from '../../src/collections/define.ts';
import type { Change } from '../../src/programs/hooks.ts';
import { startApp, type ApiResponse, type Client } from '../support/app.ts';

const lamp = { name: 'Lamp', price: 1 };

test('a record and its collection have strong entity tags that change only when they change', async (t) => {
  const { signIn } = await startApp(t);
  const member = await signIn('member');
  const tagOf = async (target: string): Promise<string> => (await member.get(target)).header('etag') ?? '';
  const created = await member.post('/items', { json: lamp });
  await member.post('/items', { json: lamp });
  const [one, two, all] = [await tagOf('/items/1'), await tagOf('/items/2'), await tagOf('/items')];
  assert.match(one, /^"[\x21\x23-\x7e]+"$/);
  assert.equal(one, created.header('etag'));
  assert.equal(new Set([one, two, await tagOf('/items/1?fields=id')]).size, 3);
  assert.equal(await tagOf('/items/1'), one);

  const patched = await member.patch('/items/1', { json: { price: 2 } });
  assert.equal(patched.header('etag'), await tagOf('/items/1'));
  assert.notEqual(await tagOf('/items/1'), one);
  assert.equal(await tagOf('/items/2'), two);
  assert.notEqual(await tagOf('/items'), all);
});

test('RFC 9110 §15.4.5: 304 has the fields by which caches choose and name what they have', async (t) => {
  const { signIn } = await startApp(t, { withoutPort: true });
  const [caller, holder] = [await signIn('member'), await signIn('member', { 'if-none-match': '*' })];
  for (const target of ['/me', '/openapi.json', '/users/2']) {
    const [full, held] = [await caller.get(target), await holder.get(target)];
    assert.deepEqual([full.status, held.status], [200, 304]);
    for (const name of ['cache-control', 'vary', 'etag', 'content-location']) {
      assert.equal(held.header(name), full.header(name), `${target} ${name}`);
    }
  }
});

const targets = ['/items/1', '/items', '/items?limit=1&sort=price', '/items/1?fields=name', '/users/1'];

/** Values of If-None-Match that an entity tag matches. */
const listMatches = (etag: string): string[] => [etag, `W/${etag}`, `"x", ${etag}`, `"a,b",${etag}`, '*'];

/** An administrator of an app with one item. */
async function openWithItem(t: TestContext) {
  const { client, signIn } = await startApp(t);
  const admin = await signIn('admin');
  await admin.post('/items', { json: lamp });
  return { client, signIn, admin };
}

/** Reads with the current tag in If-None-Match, in each way in which it may be written. */
async function* readsWithTag(client: Awaited<ReturnType<typeof openWithItem>>['admin']) {
  for (const target of targets) {
    const etag = (await client.get(target)).header('etag') ?? '';
    for (const condition of listMatches(etag)) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await client.send(method, target, { headers: { 'if-none-match': condition } });
        yield { answer, etag, read: `${method} ${target} ${condition}` };
      }
    }
  }
}

test('RFC 9110 §13.1.2: a caller that has the current version gets 304 without a body', async (t) => {
  const { admin } = await openWithItem(t);
  for await (const { answer, read } of readsWithTag(admin)) {
    assert.deepEqual([answer.status, answer.body], [304, ''], read);
  }
});

test('RFC 9110 §13.1.2: a caller that has another version gets the current one', async (t) => {
  const { admin } = await openWithItem(t);
  for (const target of targets) {
    assert.equal((await admin.get(target, { headers: { 'if-none-match': '"x"' } })).status, 200);
  }
});

test('a 304 has the entity tag, Cache-Control and Vary, but no Content-Type', async (t) => {
  const { admin } = await openWithItem(t);
  for await (const { answer, etag } of readsWithTag(admin)) {
    const headers = ['etag', 'cache-control', 'vary', 'content-type'].map((name) => answer.header(name));
    assert.deepEqual(headers, [etag, 'private, no-cache', 'Authorization, Cookie, Prefer', undefined]);
  }
});

test('a client that has the current OpenAPI document gets 304', async (t) => {
  const { client } = await startApp(t);
  const description = await client.get('/openapi.json');
  assert.equal(description.header('cache-control'), 'private, no-cache');
  const fields = { 'if-none-match': description.header('etag') ?? '' };
  assert.equal((await client.get('/openapi.json', { headers: fields })).status, 304);
});

test('a list with a total has another entity tag than without', async (t) => {
  const { signIn, admin } = await openWithItem(t);
  const counting = await signIn('admin', { prefer: 'count=exact' });
  const uncounted = (await admin.get('/items')).header('etag') ?? '';
  const counted = await counting.get('/items', { headers: { 'if-none-match': uncounted } });
  assert.deepEqual([counted.status, counted.header('x-total-count')], [200, '1']);
  for (const condition of [counted.header('etag') ?? '', '*']) {
    const again = await counting.get('/items', { headers: { 'if-none-match': condition } });
    assert.deepEqual([again.status, again.header('etag')], [304, counted.header('etag')]);
  }
});

test('If-Match accepts the entity tag of a list with or without its total', async (t) => {
  const { admin } = await openWithItem(t);
  const uncounted = (await admin.get('/items')).header('etag') ?? '';
  for (const prefer of ['count=exact', 'count=none']) {
    const same = await admin.get('/items', { headers: { prefer, 'if-match': uncounted } });
    assert.equal(same.status, 200, prefer);
  }
});

test('a malformed If-None-Match is 400', async (t) => {
  const { admin } = await openWithItem(t);
  const malformed = await admin.get('/items/1', { headers: { 'if-none-match': 'x' } });
  assert.deepEqual([malformed.status, malformed.code], [400, 'malformed_request']);
});

test('RFC 9110 §13.1.1: a write needs the version that If-Match names', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  const etag = (await admin.post('/items', { json: lamp })).header('etag') ?? '';
  const stale = ['"x"', `W/${etag}`, `"x", "y"`, '"a,b"'];
  for (const condition of stale) {
    for (const [method, json] of [['PUT', lamp], ['PATCH', { price: 5 }], ['DELETE', undefined]] as const) {
      const answer = await admin.send(method, '/items/1', {
        headers: { 'if-match': condition },
        ...(json && { json }),
      });
      assert.deepEqual([answer.status, answer.code], [412, 'precondition_failed'], `${method} ${condition}`);
      assert.equal(answer.header('etag'), etag, 'the version that there is');
    }
  }
  const read = await admin.get('/items/1', { headers: { 'if-match': '"x"' } });
  assert.deepEqual([read.status, read.header('etag')], [412, etag]);
  assert.equal((await admin.get('/items/1')).header('etag'), etag);
  const put = await admin.put('/items/1', { headers: { 'if-match': `"x", ${etag}` }, json: lamp });
  assert.equal(put.status, 200);
  const patch = await admin.patch('/items/1', { headers: { 'if-match': '*' }, json: { price: 2 } });
  assert.equal(patch.status, 200);
  const none = await admin.patch('/items/1', { headers: { 'if-none-match': '*' }, json: { price: 3 } });
  assert.equal(none.status, 412);
  assert.equal((await admin.delete('/items/1', { headers: { 'if-match': '*' } })).status, 204);
  assert.equal((await admin.put('/items/1', { headers: { 'if-match': '*' }, json: lamp })).status, 404);
});

test('a change to the same values writes nothing, and the entity tag stays', async (t) => {
  const seen: Change[] = [];
  const afterWrite = (change: Change): void => void seen.push(change);
  const { app, signIn } = await startApp(t, { hooks: { afterWrite } });
  const admin = await signIn('admin');
  const user = { name: 'Mia', email: 'member@example.org', role: 'member' };
  const rows = [
    ['PATCH', '/items/1', { price: 1 }], ['PATCH', '/items/1', {}], ['PUT', '/items/1', lamp],
    ['PATCH', '/users/2', { name: 'Mia' }], ['PUT', '/users/2', user],
  ] as const;
  await admin.post('/items', { json: lamp });
  const tagsOf = async (target: string) =>
    [(await admin.get(target)).header('etag'), (await admin.get(target.slice(0, 6))).header('etag')];
  const written = [app.store.status().commits, seen.length];
  for (const [method, target, json] of rows) {
    const before = await tagsOf(target);
    const answer = await admin.send(method, target, { json });
    assert.deepEqual([answer.status, answer.header('etag')], [200, before[0]], `${method} ${target}`);
    assert.deepEqual(await tagsOf(target), before);
    const stale = await admin.send(method, target, { json, headers: { 'if-match': '"x"' } });
    assert.equal(stale.status, 412, 'and the condition counts all the same');
  }
  assert.deepEqual([app.store.status().commits, seen.length], written);
  for (const [target, json] of [['/items/1', { price: 2 }], ['/users/2', { email: 'Member@example.org' }]] as const) {
    const before = await tagsOf(target);
    assert.notEqual((await admin.patch(target, { json })).header('etag'), before[0]);
  }
});

test('RFC 9110 §13.1.1: If-Match refuses a write to a resource without versions', async (t) => {
  const { client, signIn, signInBrowser } = await startApp(t);
  const member = await signIn('member', { 'if-match': '"x"' });
  const browser = await signInBrowser('member', { 'if-match': '"x"' });
  const refused = [
    await member.post('/items', { json: lamp }),
    await browser.delete('/sessions/4'),
    await browser.post('/logout'),
  ];
  for (const { status, code } of refused) assert.deepEqual([status, code], [412, 'precondition_failed']);
  const malformed = await member.post('/items', { headers: { 'if-match': 'x' }, json: lamp });
  assert.deepEqual([malformed.status, malformed.code], [400, 'malformed_request']);
  const unasked = await client.post('/logout', { headers: { 'if-none-match': 'x' } });
  assert.equal(unasked.status, 204, 'it says nothing here');
  assert.equal((await (await signIn('member')).get('/items')).body, '[]');
  assert.equal((await browser.get('/dashboard')).status, 200);
  assert.equal((await member.post('/items', { headers: { 'if-match': '*' }, json: lamp })).status, 201);
});

test('the order: authorization, 404, 428, 412, 422', async (t) => {
  const fields = { name: { kind: 'text', min: 1 } } as const;
  const settings = declareCollection({ name: 'settings', single: true, fields });
  const { client, signIn } = await startApp(t, { requireIfMatch: true, collections: [settings] });
  const [admin, member] = [await signIn('admin'), await signIn('member')];
  await admin.post('/items', { json: lamp });
  const bad = { name: '' };
  const rows: readonly [number, Client, target: string, json: object, tag?: string][] = [
    [401, client, '/items/1', bad],
    [403, member, '/items/1', bad],
    [404, admin, '/items/9', bad],
    [428, admin, '/items/1', bad],
    [412, admin, '/items/1', bad, '"x"'],
    [422, admin, '/items/1', bad, '*'],
    [200, admin, '/items/1', lamp, '*'],
    [428, admin, '/users/2', bad],
    [412, admin, '/users/2', bad, '"x"'],
    [422, admin, '/users/2', bad, '*'],
    [412, admin, '/settings', bad, '"x"'],
    [201, admin, '/settings', { name: 'a' }],
    [428, admin, '/settings', bad],
    [412, admin, '/settings', bad, '"x"'],
    [422, admin, '/settings', bad, '*'],
  ];
  for (const [status, asker, target, json, tag] of rows) {
    const headers = tag === undefined ? {} : { 'if-match': tag };
    const answer = await asker.put(target, { headers, json });
    assert.equal(answer.status, status, `${target} ${JSON.stringify(json)} ${tag}`);
  }
  assert.equal((await admin.delete('/items/1')).status, 428);
});

const update = (answers: readonly ApiResponse[]): number[] => answers.map(({ status }) => status).sort();

test('one of 40 writers with the same version wins, and no update is lost', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-race-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const { signIn } = await startApp(t, { directory });
  const admin = await signIn('admin');
  let etag = (await admin.post('/items', { json: { name: 'Counter', price: 0 } })).header('etag');
  const writers = Array.from({ length: 40 }, (_, writer) => writer);
  const asked = (writer: number, round: number) => ({
    headers: { 'if-match': etag ?? '' },
    json: { name: `by ${writer} in round ${round}`, price: writer },
  });
  for (let round = 0; round < 5; round += 1) {
    const method = round % 2 === 0 ? 'PUT' : 'PATCH';
    const answers = await Promise.all(writers.map((writer) => admin.send(method, '/items/1', asked(writer, round))));
    assert.deepEqual(update(answers), [200, ...Array.from({ length: 39 }, () => 412)]);
    const winner = answers.find(({ status }) => status === 200);
    const read = await admin.get('/items/1');
    assert.equal(read.body, winner?.body);
    etag = read.header('etag');
  }

  // Everybody adds 1 and tries again until it worked: the sum is right.
  await admin.put('/items/1', { json: { name: 'Counter', price: 0 } });
  const add = async (): Promise<void> => {
    for (;;) {
      const read = await admin.get('/items/1');
      const json = { price: Number(Object(read.json).price) + 1 };
      const fields = { 'if-match': read.header('etag') ?? '' };
      const answer = await admin.patch('/items/1', { headers: fields, json });
      if (answer.status === 200) return;
      assert.equal(answer.status, 412, answer.body);
      // Without a socket nothing here waits, and the disk's answer would never get its turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await Promise.all(Array.from({ length: 20 }, add));
  assert.equal(Object((await admin.get('/items/1')).json).price, 20);
});

test('either a removal or a change of the same version wins', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  for (let id = 1; id <= 10; id += 1) {
    const tag = (await admin.post('/items', { json: lamp })).header('etag') ?? '';
    const fields = { 'if-match': tag };
    const [changed, removed] = await Promise.all([
      admin.patch(`/items/${id}`, { headers: fields, json: { price: 2 } }),
      admin.delete(`/items/${id}`, { headers: fields }),
    ]);
    const outcome = `${changed.status} ${removed.status}`;
    assert.ok(outcome === '200 412' || outcome === '404 204', outcome);
  }
});

test('entity tags of an earlier epoch do not match, and sessions and the dashboard have none', async (t) => {
  const { signIn, signInBrowser } = await startApp(t);
  const other = await (await startApp(t)).signIn('admin');
  const admin = await signIn('admin');
  const etag = (await admin.post('/items', { json: lamp })).header('etag') ?? '';
  assert.notEqual((await other.post('/items', { json: lamp })).header('etag'), etag);
  const browser = await signInBrowser('member');
  for (const target of ['/sessions', '/dashboard']) {
    const answer = await browser.get(target);
    assert.deepEqual([answer.header('etag'), answer.header('cache-control')], [undefined, 'no-store']);
  }
});
