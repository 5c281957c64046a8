import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openTestApp } from '../support/app.ts';

async function withItems(t: Parameters<typeof openTestApp>[0], prices: readonly number[]) {
  const opened = await openTestApp(t);
  const fields = { authorization: `Bearer ${await opened.token('member')}` };
  for (const price of prices) await opened.ask('POST', '/items', { fields, json: { name: `Item ${price}`, price } });
  const list = (query: string, more: Readonly<Record<string, string>> = {}) =>
    opened.ask('GET', `/items${query}`, { fields: { ...fields, ...more } });
  return { ...opened, fields, list };
}

test('a list without a limit is all of it, as an array', async (t) => {
  const { list } = await withItems(t, []);
  const none = await list('');
  assert.deepEqual([none.status, none.body, none.field('link')], [200, '[]', undefined]);
});

test('pages lead from one to the next by their Link fields', async (t) => {
  const { list } = await withItems(t, [3, 1, 2, 5, 4, 2]);
  const seen: number[][] = [];
  let query = '?limit=2&sort=-price&price:lt=5&fields=id';
  for (;;) {
    const page = await list(query);
    assert.equal(page.status, 200);
    seen.push(Object(page.json).map(({ id }: { id: number }) => id));
    const next = /^<\/items(\?[^>]*)>; rel="next"$/.exec(page.field('link') ?? '')?.[1];
    if (next === undefined) break;
    query = next;
  }
  assert.deepEqual(seen, [[5, 1], [3, 6], [2]]);
});

test('the next page is asked for as this one was, by another cursor alone', async (t) => {
  const { list } = await withItems(t, [1, 2, 3, 4]);
  const query = '?n%61me:in=Item+1,Item%202,b%2Cc,Item%203&limit=1&fields=id%2Cname&name:ne=>,';
  const links = [];
  for (let next: string | undefined = query; next !== undefined; ) {
    const page = await list(next);
    assert.equal(page.status, 200);
    next = /^<\/items(\?[^>]*)>; rel="next"$/.exec(page.field('link') ?? '')?.[1];
    if (next !== undefined) links.push(next.replace(/&cursor=[\w-]+$/, '&cursor='));
  }
  assert.deepEqual(links, [1, 2].map(() => `${query.replace('>', '%3E')}&cursor=`));
});

test('the link to the next page is hardly longer than what was asked for', async (t) => {
  const { list } = await withItems(t, [1, 2]);
  const ids = Array.from({ length: 2900 }, (_, index) => index + 1).join(',');
  const link = (await list(`?limit=1&id:in=${ids}`)).field('link') ?? '';
  assert.ok(link.length < ids.length + 200);
});

test('a list that is asked for again is the same, and another as soon as something is written', async (t) => {
  const { list, ask, fields } = await withItems(t, [3, 1, 2]);
  const query = '?limit=2&sort=-price';
  const first = await list(query);
  const again = await list(query);
  assert.deepEqual([again.body, again.field('link'), again.field('etag')],
    [first.body, first.field('link'), first.field('etag')]);
  assert.equal((await list(query, { prefer: 'count=exact' })).field('x-total-count'), '3');
  assert.equal((await list(query)).field('x-total-count'), undefined);
  assert.equal((await list(query, { 'if-none-match': first.field('etag') ?? '' })).status, 304);
  assert.equal((await list(query, { 'if-match': '"another"' })).status, 412);
  await ask('PUT', '/items/2', { fields, json: { name: 'Item 2', price: 9 } });
  const changed = await list(query);
  assert.deepEqual(Object(changed.json).map(({ id }: { id: number }) => id), [2, 1]);
  assert.notEqual(changed.field('etag'), first.field('etag'));
});

test('more lists than are kept are answered as well', async (t) => {
  const { list } = await withItems(t, [3, 1, 2]);
  for (let round = 0; round < 2; round += 1) {
    for (let price = 0; price < 80; price += 1) {
      const { json } = await list(`?price:gte=${price}&fields=id`);
      assert.equal(Object(json).length, [3, 1, 2].filter((one) => one >= price).length);
    }
  }
});

test('the count of all that passes the filters comes when it is asked for', async (t) => {
  const { list } = await withItems(t, [3, 1, 2]);
  const counted = await list('?limit=1&price:gte=2', { prefer: 'count=exact' });
  assert.equal(counted.field('x-total-count'), '2');
  assert.equal(counted.field('preference-applied'), 'count=exact');
  assert.equal(Object(counted.json).length, 1);
  assert.equal((await list('?limit=1')).field('x-total-count'), undefined);
  assert.equal((await list('', { prefer: 'count=exact' })).field('x-total-count'), '3');
});

test('HEAD is GET without the content', async (t) => {
  const { ask, list, fields } = await withItems(t, [3, 1, 2]);
  const [get, head] = [await list('?limit=1'), await ask('HEAD', '/items?limit=1', { fields })];
  assert.deepEqual([head.status, head.body], [200, '']);
  assert.deepEqual([head.field('link'), head.field('etag')], [get.field('link'), get.field('etag')]);
});

test('what is unknown or repeated in a query is refused, on every route', async (t) => {
  const { ask, list, fields, token, cookie } = await withItems(t, [1]);
  const queries = [
    '?colour=red', '?limit=0', '?limit=1&limit=2', '?sort=owner', '?ownerId=1', '?cursor=x', '?price=%ff',
  ];
  for (const query of queries) {
    const answer = await list(query);
    assert.deepEqual([answer.status, answer.code], [400, 'invalid_query'], query);
  }
  const admin = { authorization: `Bearer ${await token('admin')}` };
  const session = { cookie: await cookie('member') };
  const targets: readonly [target: string, fields: Readonly<Record<string, string>>][] = [
    ['/items/1?limit=1', fields], ['/items/1?fields=id&fields=id', fields], ['/users?password=x', admin],
    ['/users?passwordHash=x', admin], ['/dashboard?x', session], ['/livez?x=1', {}], ['/sessions?limit=1', session],
  ];
  for (const [target, asker] of targets) {
    const answer = await ask('GET', target, { fields: asker });
    assert.deepEqual([answer.status, answer.code], [400, 'invalid_query'], target);
  }
  assert.equal((await ask('POST', '/items?x=1', { fields, json: { name: 'x', price: 1 } })).code, 'invalid_query');
});

test('users are found by e-mail address as they are unique by it', async (t) => {
  const { ask, token } = await openTestApp(t);
  const fields = { authorization: `Bearer ${await token('admin')}` };
  const found = await ask('GET', '/users?email=ADMIN%40Example.ORG&fields=email', { fields });
  assert.deepEqual(found.json, [{ email: 'admin@example.org' }]);
  const byRole = await ask('GET', '/users?role=member&sort=-email', { fields });
  assert.deepEqual(Object(byRole.json).map(({ id }: { id: number }) => id), [2]);
});
