import assert from 'node:assert/strict';
import { test } from 'node:test';

import { declareCollection } from '../../src/collections/define.ts';
import { startApp } from '../support/app.ts';

async function withItems(t: Parameters<typeof startApp>[0], prices: readonly number[]) {
  const opened = await startApp(t);
  const fields = { authorization: `Bearer ${await opened.createToken('member')}` };
  for (const price of prices)
    await opened.client.post('/items', { headers: fields, json: { name: `Item ${price}`, price } });
  const list = (query: string, more: Readonly<Record<string, string>> = {}) =>
    opened.client.get(`/items${query}`, { headers: { ...fields, ...more } });
  return { ...opened, fields, list };
}

test('a list without a limit has all records, as an array', async (t) => {
  const { list } = await withItems(t, []);
  const none = await list('');
  assert.deepEqual([none.status, none.body, none.header('link')], [200, '[]', undefined]);
});

test('pages lead from one to the next by their Link fields', async (t) => {
  const { list } = await withItems(t, [3, 1, 2, 5, 4, 2]);
  const seen: number[][] = [];
  let query = '?limit=2&sort=-price&price:lt=5&fields=id';
  for (;;) {
    const page = await list(query);
    assert.equal(page.status, 200);
    seen.push(Object(page.json).map(({ id }: { id: number }) => id));
    const next = /^<\/items(\?[^>]*)>; rel="next"$/.exec(page.header('link') ?? '')?.[1];
    if (next === undefined) break;
    query = next;
  }
  assert.deepEqual(seen, [[5, 1], [3, 6], [2]]);
});

test('the link to the next page differs from the request only in the cursor', async (t) => {
  const { list } = await withItems(t, [1, 2, 3, 4]);
  const query = '?n%61me:in=Item+1,Item%202,b%2Cc,Item%203&limit=1&fields=id%2Cname&name:ne=>,';
  const links = [];
  for (let next: string | undefined = query; next !== undefined; ) {
    const page = await list(next);
    assert.equal(page.status, 200);
    next = /^<\/items(\?[^>]*)>; rel="next"$/.exec(page.header('link') ?? '')?.[1];
    if (next !== undefined) links.push(next.replace(/&cursor=[\w-]+$/, '&cursor='));
  }
  assert.deepEqual(links, [1, 2].map(() => `${query.replace('>', '%3E')}&cursor=`));
});

test('the link to the next page is hardly longer than the request', async (t) => {
  const { list } = await withItems(t, [1, 2]);
  const ids = Array.from({ length: 2900 }, (_, index) => index + 1).join(',');
  const link = (await list(`?limit=1&id:in=${ids}`)).header('link') ?? '';
  assert.ok(link.length < ids.length + 200);
});

test('a list has the same entity tag until something is written', async (t) => {
  const { list, client, fields } = await withItems(t, [3, 1, 2]);
  const query = '?limit=2&sort=-price';
  const first = await list(query);
  const again = await list(query);
  assert.deepEqual([again.body, again.header('link'), again.header('etag')],
    [first.body, first.header('link'), first.header('etag')]);
  assert.equal((await list(query, { prefer: 'count=exact' })).header('x-total-count'), '3');
  assert.equal((await list(query)).header('x-total-count'), undefined);
  assert.equal((await list(query, { 'if-none-match': first.header('etag') ?? '' })).status, 304);
  assert.equal((await list(query, { 'if-match': '"another"' })).status, 412);
  await client.put('/items/2', { headers: fields, json: { name: 'Item 2', price: 9 } });
  const changed = await list(query);
  assert.deepEqual(Object(changed.json).map(({ id }: { id: number }) => id), [2, 1]);
  assert.notEqual(changed.header('etag'), first.header('etag'));
});

test('the total of matching records is sent on request', async (t) => {
  const { list } = await withItems(t, [3, 1, 2]);
  const counted = await list('?limit=1&price:gte=2', { prefer: 'count=exact' });
  assert.equal(counted.header('x-total-count'), '2');
  assert.equal(counted.header('preference-applied'), 'count=exact');
  assert.equal(Object(counted.json).length, 1);
  assert.equal((await list('?limit=1')).header('x-total-count'), undefined);
  for (const prefer of ['count=exact', 'Count=exact', 'respond-async , count=exact,x']) {
    assert.equal((await list('', { prefer })).header('x-total-count'), '3', prefer);
  }
  for (const prefer of ['', 'count', 'count=none', 'xcount=exact', 'count=exactly']) {
    assert.equal((await list('', { prefer })).header('x-total-count'), undefined, prefer);
  }
});

test('HEAD is GET without the content', async (t) => {
  const { client, list, fields } = await withItems(t, [3, 1, 2]);
  const [get, head] = [await list('?limit=1'), await client.send('HEAD', '/items?limit=1', { headers: fields })];
  assert.deepEqual([head.status, head.body], [200, '']);
  assert.deepEqual([head.header('link'), head.header('etag')], [get.header('link'), get.header('etag')]);
});

test('unknown and repeated query parameters are refused on every route', async (t) => {
  const { client, list, fields, createToken, createCookie } = await withItems(t, [1]);
  const queries = [
    '?colour=red', '?limit=0', '?limit=1&limit=2', '?sort=owner', '?ownerId=1', '?cursor=x', '?price=%ff',
  ];
  for (const query of queries) {
    const answer = await list(query);
    assert.deepEqual([answer.status, answer.code], [400, 'invalid_query'], query);
  }
  const admin = { authorization: `Bearer ${await createToken('admin')}` };
  const session = { cookie: await createCookie('member') };
  const targets: readonly [target: string, fields: Readonly<Record<string, string>>][] = [
    ['/items/1?limit=1', fields], ['/items/1?fields=id&fields=id', fields], ['/users?password=x', admin],
    ['/users?passwordHash=x', admin], ['/dashboard?x', session], ['/livez?x=1', {}], ['/sessions?limit=1', session],
  ];
  for (const [target, asker] of targets) {
    const answer = await client.get(target, { headers: asker });
    assert.deepEqual([answer.status, answer.code], [400, 'invalid_query'], target);
  }
  assert.equal(
    (await client.post('/items?x=1', { headers: fields, json: { name: 'x', price: 1 } })).code,
    'invalid_query',
  );
});

test('users are found by e-mail address in any letter case', async (t) => {
  const { client, createToken } = await startApp(t);
  const fields = { authorization: `Bearer ${await createToken('admin')}` };
  const found = await client.get('/users?email=ADMIN%40Example.ORG&fields=email', { headers: fields });
  assert.deepEqual(found.json, [{ email: 'admin@example.org' }]);
  const byRole = await client.get('/users?role=member&sort=-email', { headers: fields });
  assert.deepEqual(Object(byRole.json).map(({ id }: { id: number }) => id), [2]);
});

/** The same query as these clients write it, with the values of the first one. */
const clients: { readonly [name: string]: readonly string[] } = {
  'plain text': ['name:in=Lamp,a\\,b,c%20d', 'sort=-price,name', 'fields=name,price'],
  URLSearchParams: [{ 'name:in': 'Lamp,a\\,b,c d' }, { sort: '-price,name' }, { fields: 'name,price' }].map((value) =>
    String(new URLSearchParams(Object.entries(value))),
  ),
  'curl -G --data-urlencode': ['name:in=Lamp%2ca%5c%2cb%2cc+d', 'sort=-price%2cname', 'fields=name%2cprice'],
  'httpie and requests': ['name%3Ain=Lamp%2Ca%5C%2Cb%2Cc+d', 'sort=-price%2Cname', 'fields=name%2Cprice'],
  'urllib with quote': ['name%3Ain=Lamp%2Ca%5C%2Cb%2Cc%20d', 'sort=-price%2Cname', 'fields=name%2Cprice'],
  'a generated client': ['name%3Ain=Lamp,a%5C%2Cb,c%20d', 'sort=-price,name', 'fields=name,price'],
};

test('in, sort and fields are accepted as ordinary clients encode them', async (t) => {
  const member = await (await startApp(t)).signIn('member');
  for (const [name, price] of [['Lamp', 1], ['a,b', 2], ['c d', 2], ['a', 3], ['b', 3]] as const) {
    await member.post('/items', { json: { name, price } });
  }
  for (const [client, pieces] of Object.entries(clients)) {
    const { status, json } = await member.get(`/items?${pieces.join('&')}`);
    const expected = [{ name: 'a,b', price: 2 }, { name: 'c d', price: 2 }, { name: 'Lamp', price: 1 }];
    assert.deepEqual([status, json], [200, expected], client);
  }
});

test('q finds each word in any text field, and combines with the other list parameters', async (t) => {
  const admin = await (await startApp(t)).signIn('admin');
  for (const name of ['Desk LAMP', 'Größe L', 'lamp shade', 'Cup', 'Straßenlampe']) {
    await admin.post('/items', { json: { name, price: name.length } });
  }
  const namesOf = async (query: string) => {
    const { json } = await admin.get(`/items?fields=name&${query}`);
    return Object(json).map(({ name }: { name: string }) => name);
  };
  assert.deepEqual(await namesOf('q=lamp'), ['Desk LAMP', 'lamp shade', 'Straßenlampe']);
  assert.deepEqual(await namesOf('q=LAMP&sort=-name&price:gt=9'), ['lamp shade', 'Straßenlampe']);
  assert.deepEqual(await namesOf('q=GRO%CC%88%C3%9F'), ['Größe L']);
  assert.deepEqual(await namesOf('q=grosse'), [], 'simple folding keeps lengths');
  assert.deepEqual(await namesOf('q=gro%C3%9F'), ['Größe L']);
  assert.deepEqual(await namesOf('q=%20SHADE++lamp%09'), ['lamp shade']);
  assert.deepEqual(await namesOf('q=lamp+cup'), []);
  const page = await admin.get('/items?q=lamp&sort=name&limit=2', { headers: { prefer: 'count=exact' } });
  assert.equal(page.header('x-total-count'), '3');
  const [, next = ''] = /<\/items\?([^>]*)>/.exec(page.header('link') ?? '') ?? [];
  assert.deepEqual(await namesOf(next), ['lamp shade']);
  assert.equal((await admin.get(`/items?${next.replace('lamp', 'lamps')}`)).code, 'invalid_query');
  const people = await admin.get('/users?q=EXAMPLE.org&fields=id');
  assert.deepEqual(people.json, [{ id: 1 }, { id: 2 }]);
  const inTwoFields = await admin.get('/users?q=example.org+mia&fields=id');
  assert.deepEqual(inTwoFields.json, [{ id: 2 }]);
});

test('owner=me lists what the caller created', async (t) => {
  const fields = { text: { kind: 'text' } } as const;
  const optional = { list: 'optional', read: 'optional' } as const;
  const notes = declareCollection({ name: 'notes', singular: 'note', fields, access: optional });
  const open = { list: 'public', read: 'public' } as const;
  const news = declareCollection({ name: 'news', singular: 'message', fields, access: open });
  const app = await startApp(t, { collections: [notes, news] });
  const [admin, member] = [await app.signIn('admin'), await app.signIn('member')];
  for (const ask of [admin, member, member]) await ask.post('/items', { json: { name: 'Lamp', price: 1 } });
  const idsOf = async (ask: typeof admin, query: string) => (await ask.get(`/items?fields=id&${query}`)).json;
  assert.deepEqual(await idsOf(admin, 'owner=me'), [{ id: 1 }]);
  assert.deepEqual(await idsOf(member, 'owner=me&sort=-id'), [{ id: 3 }, { id: 2 }]);
  const counted = await member.get('/items?owner=me&limit=1', { headers: { prefer: 'count=exact' } });
  assert.equal(counted.header('x-total-count'), '2');
  // A list that depends on the caller has no entity tag.
  assert.equal(counted.header('etag'), undefined);
  // A cursor of one caller's list is of no use to another.
  const link = (await member.get('/items?owner=me&limit=1')).header('link') ?? '';
  const [, next = ''] = /<([^>]*)>/.exec(link) ?? [];
  assert.deepEqual(Object((await member.get(next)).json).map(({ id }: { id: number }) => id), [3]);
  assert.equal((await admin.get(next)).code, 'invalid_query');
  // A caller who has not signed in has no records, and a list that looks at no credentials cannot know the caller.
  await member.post('/notes', { json: { text: 'x' } });
  assert.equal(Object((await member.get('/notes?owner=me')).json).length, 1);
  const refused = await app.client.get('/notes?owner=me');
  assert.deepEqual([refused.status, refused.code], [401, 'authentication_required']);
  assert.equal(refused.header('www-authenticate'), 'Bearer');
  for (const target of ['/news?owner=me', '/users?owner=me', '/items/1?owner=me', '/items?owner=1']) {
    assert.deepEqual([(await admin.get(target)).code], ['invalid_query'], target);
  }
});

test('filters repeat, have alternatives, and ask whether a field exists', async (t) => {
  const boxes = declareCollection({
    name: 'boxes',
    singular: 'box',
    fields: {
      title: { kind: 'text' },
      tags: { kind: 'list', of: { kind: 'text' } },
      notes: { kind: 'list', of: { kind: 'text' }, optional: true },
      dueAt: { kind: 'timestamp', optional: true },
    },
    access: { list: 'public', create: 'public' },
  });
  const { client } = await startApp(t, { collections: [boxes] });
  const tags = [['red'], ['red', 'oak'], ['oak'], []];
  for (const each of tags) await client.post('/boxes', { json: { title: `Box ${each.join('-')}`, tags: each } });
  const ids = async (query: string) => {
    const { json } = await client.get(`/boxes?${query}`);
    return Object(json).map(({ id }: { id: number }) => id);
  };
  assert.deepEqual(await ids('id=3&id=1'), [1, 3]);
  assert.deepEqual(await ids('id[]=3&id[]=1&id[]=99'), [1, 3]);
  assert.deepEqual(await ids('id:ne=3&id:ne=1'), [2, 4]);
  assert.deepEqual(await ids('tags:has=red&tags:has=oak'), [2]);
  assert.deepEqual(await ids('title:ends=oak'), [2, 3]);
  assert.deepEqual(await ids('title:ends=%20&id=4&id=1'), [4]);
  assert.deepEqual(await ids('or=(id:eq:4,tags:has:oak)'), [2, 3, 4]);
  assert.deepEqual(await ids('or=(id:eq:4,tags:has:oak)&id:ne=3'), [2, 4]);
  const due = { title: 'Due', tags: [], notes: ['x'], dueAt: '2026-01-31T12:00:00.000Z' };
  await client.post('/boxes', { json: due });
  assert.deepEqual(await ids('dueAt:exists=true'), [5]);
  assert.deepEqual(await ids('notes:exists=false&sort=-id'), [4, 3, 2, 1]);
  assert.deepEqual(await ids('or=(notes:exists:true,id:lte:1)'), [1, 5]);
});

test('a page by number has the total, and links to the first, previous, next and last page', async (t) => {
  const { list } = await withItems(t, [3, 1, 2, 5, 4, 2, 9]);
  const page = async (query: string) => {
    const { status, json, header: field } = await list(query);
    const links = (field('link') ?? '').matchAll(/<\/items\?[^>]*offset=(\d+)[^>]*>; rel="(\w+)"/g);
    return {
      status, total: field('x-total-count'), ids: Object(json).map(({ id }: { id: number }) => id),
      links: Object.fromEntries([...links].map(([, offset, relation]) => [relation, Number(offset)])),
    };
  };
  assert.deepEqual(await page('?limit=3&offset=3'),
    { status: 200, total: '7', ids: [4, 5, 6], links: { first: 0, prev: 0, next: 6, last: 6 } });
  assert.deepEqual(await page('?limit=3&offset=0'),
    { status: 200, total: '7', ids: [1, 2, 3], links: { first: 0, next: 3, last: 6 } });
  assert.deepEqual(await page('?limit=3&offset=4&sort=-price'),
    { status: 200, total: '7', ids: [3, 6, 2], links: { first: 0, prev: 1, last: 6 } });
  assert.deepEqual(await page('?limit=2&offset=2&price:lt=5&sort=-id'),
    { status: 200, total: '5', ids: [3, 2], links: { first: 0, prev: 0, next: 4, last: 4 } });
  assert.deepEqual(await page('?limit=3&offset=100'),
    { status: 200, total: '7', ids: [], links: { first: 0, prev: 6, last: 6 } });
  assert.deepEqual(await page('?limit=3&offset=0&price=77'),
    { status: 200, total: '0', ids: [], links: { first: 0, last: 0 } });
  assert.deepEqual((await page('?limit=1&offset=999999999999999&sort=-id')).ids, []);
  assert.deepEqual(await page('?offset=3'),
    { status: 200, total: '7', ids: [4, 5, 6, 7], links: { first: 0, prev: 0, last: 0 } });
  for (const query of ['limit=3&offset=-1', 'limit=3&offset=1.5', 'limit=3&offset=', 'limit=3&offset=1e15',
    'limit=3&until=end', 'limit=3&offset=1&cursor=x', 'limit=3&offset=1&offset=2']) {
    assert.equal((await list(`?${query}`)).status, 400, query);
  }
  const plain = await list('?limit=3&offset=3');
  assert.equal(plain.header('preference-applied'), undefined);
  const tag = plain.header('etag') ?? '';
  assert.equal((await list('?limit=3&offset=3', { 'if-none-match': tag })).status, 304);
});

test('a next link contains its cursor once, however the request spelled it', async (t) => {
  const { list } = await withItems(t, [1, 2, 3, 4, 5]);
  for (const query of ['?limit=2&offset[]=0', '?limit=2&offset%5B%5D=0', '?limit[]=2']) {
    const link = (await list(query)).header('link') ?? '';
    const next = /<\/items(\?[^>]*)>; rel="next"/.exec(link)?.[1] ?? '';
    const page = await list(next);
    assert.deepEqual([page.status, Object(page.json).map(({ id }: { id: number }) => id)], [200, [3, 4]], next);
  }
});

test('an operand that is not a number is explained in plain words', async (t) => {
  const { list } = await withItems(t, []);
  const detailOf = async (query: string) => Object((await list(query)).json).detail;
  assert.match(await detailOf('?price=abc'), /"price" must be a number$/);
  assert.match(await detailOf('?id=9007199254740993'), /"id" must not have more digits than a double can hold$/);
});

test('an unknown name in a part of `or` is refused, with the names that it takes', async (t) => {
  const { list } = await withItems(t, []);
  const { json } = await list('?or=(colour:eq:1)');
  assert.match(Object(json).detail, /"colour:eq" is not a known parameter; this list filters by id, name, price$/);
});

const optional = { optional: true, nullable: true } as const;
const ofAllKinds = declareCollection({
  name: 'all', additional: true, id: { kind: 'any' },
  fields: {
    text: { kind: 'text', ...optional }, integer: { kind: 'integer', ...optional },
    number: { kind: 'number', ...optional },
    boolean: { kind: 'boolean', ...optional }, choice: { kind: 'choice', values: ['a', 'b'], ...optional },
    email: { kind: 'email', ...optional }, timestamp: { kind: 'timestamp', ...optional },
    url: { kind: 'url', ...optional }, allId: { kind: 'reference', to: 'all', ...optional }, json: { kind: 'json' },
    like: { kind: 'json', like: 'number', optional: true },
    place: { kind: 'object', fields: { city: { kind: 'text', optional: true } }, additional: true, optional: true },
  },
});
const valuesOf: Readonly<Record<string, readonly unknown[]>> = {
  text: ['a', 'b'], integer: [1, 2], number: [0.5, 2], boolean: [true, false], choice: ['a', 'b'],
  email: ['a@x.org', 'B@x.org'], timestamp: ['2026-01-31T12:00:00.000Z', '2026-01-31T12:00:00.001Z'],
  url: ['https://a.org/', 'https://b.org/'], allId: [1, 2], json: [1, 'a', null, [], { a: 1 }, true],
  like: [1, 'a', null],
  more: [1, 'a', null, [2], false], 'place.city': ['a', 'b'], 'place.more': [1, null, {}], 'json.deep': [1], id: [],
};

test('pages lead to the next one with every sort field, present or absent', async (t) => {
  const { client } = await startApp(t, { collections: [ofAllKinds], auth: 'none' });
  const create = (json: object) => client.post('/all', { json: { json: 0, ...json } });
  for (let count = 0; count < 3; count += 1) assert.equal((await create({})).status, 201);
  for (const [path, values] of Object.entries(valuesOf)) {
    const [name = '', below] = path.split('.');
    for (const value of values) {
      const written = await create({ [name]: below === undefined ? value : { [below]: value } });
      assert.equal(written.status, 201, `${path} ${JSON.stringify(value)}: ${written.body}`);
    }
    if (name in ofAllKinds.fields && !['json', 'like', 'place', 'id'].includes(name)) await create({ [name]: null });
  }
  const all = Object((await client.get('/all')).json).map(({ id }: { id: unknown }) => id);
  for (const path of Object.keys(valuesOf)) {
    const other = path === 'number' ? 'integer' : 'number';
    for (const sort of [path, `-${path}`, `${path},-${other}`, `-${other},${path}`]) {
      const seen: unknown[] = [];
      for (let next: string | undefined = `/all?sort=${sort}&limit=3&fields=id`; next !== undefined;) {
        const page: Awaited<ReturnType<typeof client.get>> = await client.get(next);
        assert.equal(page.status, 200, `${next}: ${page.body}`);
        seen.push(...Object(page.json).map(({ id }: { id: unknown }) => id));
        next = /<([^>]*)>; rel="next"/.exec(page.header('link') ?? '')?.[1];
      }
      assert.deepEqual(new Set(seen), new Set(all), sort);
      assert.equal(seen.length, all.length, sort);
    }
  }
});
