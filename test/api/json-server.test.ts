/**
 * Requests of json-server's clients with `--dialect json-server`, and their responses. A release test sends the same
 * requests to json-server.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { get as getSecurely } from 'node:https';
import { test, type TestContext } from 'node:test';

import { limits } from '../../src/base/limits.ts';
import { recordBytesMax } from '../../src/options/dialect/bodies.ts';
import { declareCollection } from '../../src/collections/define.ts';
import type { CollectionDeclaration } from '../../src/collections/declaration.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { makeCertificate } from '../support/http/raw.ts';
import { createApp } from '../support/inside.ts';
import { isLockedRun } from '../support/basics.ts';

const open = ['posts', 'comments', 'likes', 'empty'].map((name) =>
  declareCollection({ name, fields: {}, additional: true }));
const records = {
  posts: [
    { title: 'A first post', views: 100, author: { name: 'Ada' }, tags: ['red', 'blue'] },
    { title: 'b second', views: 20, author: { name: 'Mia' }, date: '2021-05-01' },
    { title: 'C third (old)', views: 3, rating: null },
    { title: 'a first again', views: 20, ownId: 'x+y&z' },
  ],
  comments: [{ body: 'nice', postId: 1 }, { body: 'so', postId: '1' }, { body: 'nice', postId: 2 }],
  likes: [{ commentId: 1 }, { commentId: 3 }],
};

async function opened(t: TestContext, collections: readonly CollectionDeclaration[] = open) {
  const only = { auth: 'none', users: false, items: false } as const;
  const app = await createApp({ ...only, dialect: 'json-server', collections });
  t.after(app.close);
  const send = async (method: string, target: string, json?: unknown, fields = {}) => {
    const body = json === undefined ? {} : { body: JSON.stringify(json) };
    const reply = await app.inject({ method, target, fields, ...body });
    const { status } = reply;
    return { status, json: JSON.parse(reply.body), field: (name: string) => reply.fields.get(name) };
  };
  const ids = async (target: string): Promise<number[]> => {
    const { status, json } = await send('GET', target);
    assert.equal(status, 200, JSON.stringify(json));
    return (Array.isArray(json) ? json : json.data).map(({ id }: { id: number }) => id);
  };
  return { app, send, ids };
}

/** The same with records. */
async function filled(t: TestContext) {
  const it = await opened(t);
  for (const [name, some] of Object.entries(records))
    for (const record of some) assert.equal((await it.send('POST', `/${name}`, record)).status, 201);
  return it;
}

const lists: readonly (readonly [query: string, ids: readonly number[]])[] = [
  // The order.
  ['_sort=title', [1, 3, 4, 2]],
  ['_sort=views,title&_order=DESC,ASC', [1, 4, 2, 3]],
  ['_sort=-views,id', [1, 2, 4, 3]],
  ['_sort=author.name', [1, 2, 3, 4]],
  ['_sort=nothing&_order=desc', [1, 2, 3, 4]],
  ['_sort=tags', [1, 2, 3, 4]],
  ['_sort=-views,nothing,author.name,date,title', [1, 2, 4, 3]],
  ['_sort=views,views', [3, 2, 4, 1]],
  // Bounds that a form left empty.
  ['views_gte=&views_lte=', [1, 2, 3, 4]],
  ['views_gte=20&views_lte=', [1, 2, 4]],
  ['title_like=', [1, 2, 3, 4]],
  ['views:gt=&title=b+second', [2]],
  // Percent signs that begin nothing, and bytes that are not UTF-8.
  ['title=100%&_limit=2', []],
  ['title_like=%', []],
  ['q=%zz', []],
  ['nothing=%ff%fe', [1, 2, 3, 4]],
  ['title=%ff', []],
  // Parts.
  ['_start=1&_end=3', [2, 3]],
  ['_start=1&_limit=2', [2, 3]],
  ['_start=1', [1, 2, 3, 4]],
  ['_limit=3', [1, 2, 3]],
  ['_limit=0', []],
  ['_start=3&_end=2', []],
  ['_end=2000', [1, 2, 3, 4]],
  ['_page=2&_limit=3', [4]],
  ['_page=0&_limit=3', [1, 2, 3]],
  ['_page=9', []],
  ['_page=2&_per_page=3', [4]],
  ['_page=9&_per_page=3', [4]],
  // Values.
  ['views=20', [2, 4]],
  ['views=20&views=3', [2, 3, 4]],
  ['id=1&id=3', [1, 3]],
  ['id[]=1&id[]=3', [1, 3]],
  ['id=1&id=3&_sort=id&_order=desc', [3, 1]],
  ['author.name=Ada', [1]],
  ['views=', []],
  ['views=abc&title=b+second', []],
  ['id=abc', []],
  // Operators of either version.
  ['views_gte=20&views_lte=50', [2, 4]],
  ['date_gte=2021', [2]],
  ['views_ne=20', [1, 3]],
  ['id_ne=1&id_ne=2', [3, 4]],
  ['rating_ne=5', []],
  ['title_like=FIRST', [1, 4]],
  ['title_like=first&title_like=third', [1, 3, 4]],
  ['title_like=(old)', [3]],
  ['title_like=^a', []],
  ['tags_like=BLU', [1]],
  ['views:gt=20', [1]],
  ['views:lt=20', [3]],
  ['views:in=3,100', [1, 3]],
  ['title:contains=FIRST', [1, 4]],
  ['title:startsWith=C', [3]],
  ['title:endsWith=post', [1]],
  ['tags:has=red', [1]],
  ['author:exists=false', [3, 4]],
  // Operators of what is within a member.
  ['author.name_like=AD', [1]],
  ['author.name_gte=B', [2]],
  ['author.name_ne=Ada', [2]],
  ['author.name_like=x&views=20', []],
  ['author.name:contains=mi', [2]],
  ['author.name:in=Ada,Mia', [1, 2]],
  ['author.name:lt=B&views:gte=3', [1]],
  ['tags.0_like=re', [1]],
  ['author.nothing_gte=1', []],
  // A search.
  ['q=MIA', [2]],
  ['q=', [1, 2, 3, 4]],
  ['q=first&_limit=1', [1]],
  // Names that no record has, and names that one record has.
  ['nothing=1', [1, 2, 3, 4]],
  ['nothing=1&views=3', [3]],
  ['_=1700000000000', [1, 2, 3, 4]],
  ['nothing_gte=1', []],
  ['rating=1', []],
];

test('lists accept the parameters of both versions', async (t) => {
  const { ids } = await filled(t);
  for (const [query, expected] of lists) assert.deepEqual(await ids(`/posts?${query}`), expected, query);
  assert.deepEqual(await ids('/empty?_sort=x&_order=ASC&_start=0&_end=10&y=1'), []);
});

test('a slice has its total, a page of 0.17 has links, and a page of 1.0 has an envelope', async (t) => {
  const { send } = await filled(t);
  const page = await send('GET', '/posts?_page=2&views_gte=3&_limit=1');
  assert.deepEqual([page.field('x-total-count'), page.json.length], ['4', 1]);
  const to = (number: number) => `http://localhost/posts?_page=${number}&views_gte=3&_limit=1`;
  assert.equal(page.field('link'),
    `<${to(1)}>; rel="first", <${to(1)}>; rel="prev", <${to(3)}>; rel="next", <${to(4)}>; rel="last"`);
  for (const query of ['_page=1', '_page=7&_limit=2', '_start=0&_end=2']) {
    const { field } = await send('GET', `/posts?${query}`);
    assert.deepEqual([field('x-total-count'), field('link')], ['4', undefined], query);
  }
  const { json } = await send('GET', '/posts?_page=2&_per_page=3&_sort=-id');
  const [{ id, views }] = json.data;
  assert.deepEqual({ ...json, data: [id, views] },
    { first: 1, prev: 1, next: null, last: 2, pages: 2, items: 4, data: [1, 100] });
  const none = await send('GET', '/empty?_page=1&_per_page=3');
  assert.deepEqual(none.json, { first: 1, prev: null, next: null, last: 1, pages: 1, items: 0, data: [] });
});

test('a slice may be longer than a page of Cairn, and an envelope is streamed', async (t) => {
  const { app, send } = await opened(t);
  const text = 'x'.repeat(200);
  for (let batch = 0; batch < 3; batch += 1) {
    const many = Array.from({ length: 500 }, (_, index) => ({ text, n: batch * 500 + index }));
    assert.equal((await send('POST', '/empty/batch', many)).status, 201);
  }
  const { json } = await send('GET', '/empty?_start=100&_end=1400&_sort=n&_order=desc');
  assert.deepEqual([json.length, json[0].n, json.at(-1).n], [1300, 1399, 100]);
  const { data, items } = (await send('GET', '/empty?_page=1&_per_page=1200')).json;
  assert.deepEqual([data.length, items], [1200, 1500]);
  // HEAD keeps no place of a long answer.
  const port = await app.listen({ port: 0 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let time = 0; time <= limits.listsPerCallerMax; time += 1) {
    for (const query of ['', '?_page=1&_per_page=1200&_embed=likes']) {
      const fetched = await app.fetch(new Request(`http://cairn/empty${query}`, { method: 'HEAD' }));
      const sent = get({ port, agent, method: 'HEAD', path: `/empty${query}` });
      const [response] = await once(sent, 'response');
      response.resume();
      assert.deepEqual([fetched.status, response.statusCode], [200, 200], query);
    }
  }
  agent.destroy();
});

test('nonsensical parameters are refused, and so is _where', async (t) => {
  const { send } = await filled(t);
  const refused = [
    '_limit=abc', '_limit=-1', '_page=1.5', '_start=1e3&_limit=2', '_where={"views":{"gt":1}}',
    'views:foo=1', `title_like=${'x'.repeat(65)}`, '_embed=unknown', '_expand=unknown',
  ];
  for (const query of refused) {
    const { status, json } = await send('GET', `/posts?${query}`);
    assert.deepEqual([status, json.code], [400, 'invalid_query'], query);
  }
  const { detail } = (await send('GET', '/posts?_where={}')).json;
  assert.match(detail, /"_where" is not supported: filter by views_gte, views:gt or or=\(…\)$/);
  assert.equal((await send('GET', '/posts/99')).status, 404);
  assert.equal((await send('GET', '/posts/1/nothing')).status, 404);
  assert.equal((await send('GET', '/posts/%zz/comments')).status, 400);
});

test('a member is filtered by its name, even if it has a dot or is named like a parameter of Cairn', async (t) => {
  const { send, ids } = await opened(t);
  for (const limit of [5, 10]) await send('POST', '/empty', { limit, sort: 'x', 'a.b': limit, offset: 0 });
  const cases: Readonly<Record<string, readonly number[]>> = {
    'limit=5': [1], 'sort=x': [1, 2], 'a.b=10': [2], 'offset=1': [], 'limit=10&_limit=1': [2], 'a.b_gte=6': [2],
    '_sort=-a.b': [2, 1],
  };
  for (const [query, expected] of Object.entries(cases))
    assert.deepEqual(await ids(`/empty?${query}`), expected, query);
});

test('the query of a write is ignored', async (t) => {
  const { send } = await filled(t);
  assert.equal((await send('POST', '/posts?_=1&x=%', { title: 'x' })).status, 201);
  assert.equal((await send('PATCH', '/posts/5?_embed=comments', { title: 'y' })).json.title, 'y');
  assert.equal((await send('DELETE', '/posts/5?_dependent=comments')).status, 200);
});

test('collections may be named like paths of the server, which then move below /-/', async (t) => {
  const collections = ['status', 'changes', 'metrics'].map((name) =>
    declareCollection({ name, fields: {}, additional: true }));
  const { send, ids } = await opened(t, [...open, ...collections]);
  for (const name of ['status', 'changes', 'metrics']) {
    assert.equal((await send('POST', `/${name}`, { a: 1 })).status, 201, name);
    assert.deepEqual(await ids(`/${name}`), [1]);
  }
  assert.equal((await send('GET', '/-/status')).json.records, 3);
  const { paths } = (await send('GET', '/openapi.json')).json;
  for (const path of ['/-/status', '/-/changes', '/-/metrics']) assert.ok(path in paths, path);
  assert.ok('post' in paths['/status']);
  const only = { auth: 'none', users: false, items: false } as const;
  const message = /^Cannot serve the collection status: .* or use --dialect json-server$/;
  await assert.rejects(createApp({ ...only, collections }), { name: 'OptionError', message });
});

test('a name is ignored only while no record has the member', async (t) => {
  const { send, ids } = await filled(t);
  assert.deepEqual(await ids('/posts?colour=red'), [1, 2, 3, 4]);
  await send('PATCH', '/posts/2', { colour: 'red' });
  assert.deepEqual(await ids('/posts?colour=red'), [2]);
  await send('PUT', '/posts/2', { title: 'b second' });
  assert.deepEqual(await ids('/posts?colour=red'), [1, 2, 3, 4]);
  assert.equal((await send('GET', '/posts/2?colour=red')).status, 200);
  assert.equal((await send('GET', '/posts/2?id=2')).status, 200);
});

test('related records are embedded by members that end in Id', async (t) => {
  const { send } = await filled(t);
  const bodies = (comments: readonly { body: string }[]) => comments.map(({ body }) => body);
  const [first, second, third] = (await send('GET', '/posts?_embed=comments&_embed=likes')).json;
  assert.deepEqual([bodies(first.comments), bodies(second.comments), third.comments, first.likes],
    [['nice', 'so'], ['nice'], [], []]);
  assert.deepEqual(bodies((await send('GET', '/posts/1?_embed=comments')).json.comments), ['nice', 'so']);
  for (const query of ['_expand=post', '_embed=post']) {
    const { post } = (await send('GET', `/comments/2?${query}`)).json;
    assert.deepEqual([post.id, post.views], [1, 100], query);
  }
  await send('POST', '/comments', { body: 'lost', postId: 99, post: 'its own' });
  assert.deepEqual((await send('GET', '/comments/4?_expand=post')).json, { id: 4, body: 'lost', postId: 99 });
  const page = (await send('GET', '/comments?_page=1&_per_page=2&_expand=post')).json;
  assert.deepEqual(page.data.map(({ post }: { post: { id: number } }) => post.id), [1, 1]);
});

test('lists and records have entity tags, which follow what they embed', async (t) => {
  const { app, send } = await filled(t);
  const page = '/posts?_page=1&_per_page=2&_embed=comments';
  for (const target of ['/posts?_sort=views', page, '/posts/1?_embed=comments']) {
    const { json, field } = await send('GET', target);
    const read = () => app.inject({ target, fields: { 'if-none-match': field('etag') ?? '' } });
    assert.equal((await read()).status, 304, target);
    await send('POST', target.includes('_embed') ? '/comments' : '/posts', { postId: 1 });
    assert.notDeepEqual(JSON.parse((await read()).body), json, target);
  }
});

test('the records of a record are listed and created below it', async (t) => {
  const { send, ids } = await filled(t);
  assert.deepEqual(await ids('/posts/1/comments'), [1, 2]);
  assert.deepEqual(await ids('/posts/1/comments?_sort=id&_order=desc&_limit=1'), [2]);
  assert.deepEqual(await ids('/posts/99/comments'), []);
  assert.deepEqual(await ids('/posts/1/empty'), []);
  const typed = { 'content-type': 'application/json' };
  const made = await send('POST', '/posts/2/comments', { body: 'below', postId: 9 }, typed);
  assert.deepEqual([made.status, made.json, made.field('location')],
    [201, { id: 4, body: 'below', postId: 2 }, '/comments/4']);
  assert.equal((await send('POST', '/posts/2/comments', 'no object')).status, 422);
  assert.equal((await send('PUT', '/posts/2/comments', {})).status, 405);
});

test('PATCH assigns top-level members, PUT replaces, and neither changes an id', async (t) => {
  const { send } = await filled(t);
  const patched = await send('PATCH', '/posts/1', { id: 9, views: null, author: { city: 'Rome' } });
  assert.deepEqual(patched.json,
    { id: 1, title: 'A first post', views: null, author: { city: 'Rome' }, tags: ['red', 'blue'] });
  assert.deepEqual((await send('PUT', '/posts/1', { id: 9, title: 'put' })).json, { id: 1, title: 'put' });
  assert.equal((await send('PATCH', '/posts/1', [])).status, 422);
  assert.equal((await send('PUT', '/posts/99', {})).status, 404);
  assert.deepEqual((await send('POST', '/posts', { id: 77, title: 'made' })).json, { id: 5, title: 'made' });
});

const skip = isLockedRun && 'certificates are made by another program';
test('the links of a page say https if the request came over TLS', { skip }, async (t) => {
  const tls = makeCertificate(temporaryDirectory(t), 'localhost');
  if (tls === undefined) return t.skip('there is no openssl here');
  const { app } = await filled(t);
  const port = await app.listen({ port: 0, host: '127.0.0.1', tls });
  const asked = getSecurely({
    host: '127.0.0.1', port, path: '/posts?_page=1&_limit=1', rejectUnauthorized: false, agent: false,
    headers: { host: `localhost:${port}` },
  });
  const [reply] = await once(asked, 'response');
  reply.resume();
  assert.match(reply.headers.link, new RegExp(`^<https://localhost:${port}/posts[?]_page=1&_limit=1>; rel="first"`));
});

/** Names of collections, and of the members that refer to them: as json-server 0.17.4 calls them, or as records do. */
const relations: readonly (readonly [parent: string, child: string, member: string, inRecords?: true])[] = [
  ['movies', 'reviews', 'movieId'], ['heroes', 'powers', 'heroId'], ['statuses', 'tasks', 'statusId'],
  ['series', 'episodes', 'seriesId'], ['buses', 'trips', 'busId'], ['children', 'toys', 'childId'],
  ['people', 'pets', 'personId'], ['data', 'points', 'datumId'], ['media', 'captions', 'mediaId'],
  ['product', 'sales', 'productId'], ['Posts', 'Comments', 'PostId'], ['Posts', 'Comments', 'postId', true],
  ['cookies', 'jars', 'cookieId', true], ['blog_posts', 'likes', 'blogPostId', true],
];

for (const [parent, child, member, inRecords] of relations) {
  test(`${child} belong to ${parent} by ${member}${inRecords ? ', as their records say' : ''}`, async (t) => {
    const both = [parent, child].map((name) =>
      declareCollection({ name, id: { kind: 'any' }, fields: {}, additional: true }));
    const { send, ids } = await opened(t, both);
    const bare = member.replace(/Id$/, '');
    for (const id of ['a', 7]) await send('POST', `/${parent}`, { id });
    if (inRecords) await send('POST', `/${child}`, { id: 'other', [member]: 'none' });
    const made = await send('POST', `/${parent}/a/${child}`, { id: 'x' });
    assert.deepEqual(made.json, { id: 'x', [member]: 'a' });
    await send('POST', `/${child}`, { id: 'y', [member]: '7' });
    assert.deepEqual([await ids(`/${parent}/a/${child}`), await ids(`/${parent}/7/${child}`)], [['x'], ['y']]);
    assert.equal((await send('GET', `/${parent}/7?_embed=${child}`)).json[child][0].id, 'y');
    for (const parameter of ['_expand', '_embed'])
      assert.equal((await send('GET', `/${child}/x?${parameter}=${bare}`)).json[bare].id, 'a', parameter);
    assert.equal((await send('DELETE', `/${parent}/a`)).status, 200);
    assert.equal((await send('GET', `/${child}/x`)).status, 404);
    assert.equal((await send('GET', `/${child}/y`)).status, 200);
  });
}

test('a member that could refer to two collections means the plural one, as in json-server', async (t) => {
  const singulars = { product: 'oneProduct', products: 'product', sales: 'sale' };
  const { send } = await opened(t, Object.entries(singulars).map(([name, singular]) =>
    declareCollection({ name, singular, fields: {}, additional: true })));
  for (const name of ['product', 'products']) await send('POST', `/${name}`, { of: name });
  await send('POST', '/sales', { productId: 1 });
  assert.equal((await send('GET', '/sales/1?_expand=product')).json.product.of, 'products');
  await send('DELETE', '/product/1');
  assert.equal((await send('GET', '/sales/1')).status, 200);
  await send('DELETE', '/products/1');
  assert.equal((await send('GET', '/sales/1')).status, 404);
});

test('names of collections in a path are found in either case', async (t) => {
  const { send, ids } = await filled(t);
  assert.deepEqual([await ids('/Posts?views=3'), await ids('/POSTS/1/Comments')], [[3], [1, 2]]);
  assert.equal((await send('POST', '/Likes', {})).field('location'), '/likes/3');
  assert.equal((await send('GET', '/OpenAPI.json')).status, 404);
});

test('a path may end in a slash', async (t) => {
  const { send, ids } = await filled(t);
  assert.deepEqual(await ids('/posts/?_limit=1&title_like=/'), []);
  assert.deepEqual([await ids('/posts/?_limit=1'), await ids('/posts/1/comments/')], [[1], [1, 2]]);
  assert.equal((await send('POST', '/posts/', { title: 'x' })).field('location'), '/posts/5');
  assert.equal((await send('PATCH', '/posts/5/', { title: 'y' })).json.title, 'y');
  for (const path of ['/posts//', '//posts']) assert.equal((await send('GET', path)).status, 404, path);
});

test("members named like the server's own are ordinary members", async (t) => {
  const { send, ids } = await filled(t);
  for (const [ownerId, revision] of [['7', 3], [7, 9], ['x', { of: 2 }]])
    await send('POST', '/empty', { ownerId, revision });
  for (const [query, expected] of [
    ['ownerId=7', [1, 2]], ['ownerId=7&revision=9', [2]], ['ownerId_ne=7', [3]], ['revision_gte=4', [2]],
    ['revision.of=2', [3]], ['_sort=-revision&revision_gte=1', [2, 1]], ['_sort=ownerId&_order=desc', [3, 1, 2]],
  ] satisfies [string, number[]][]) assert.deepEqual(await ids(`/empty?${query}`), expected, query);
});

/** Bodies that json-server takes, with their media types, and the records that they make. */
const bodies: readonly (readonly [type: string | undefined, body: string, record: unknown])[] = [
  ['application/json', '{"title":"a"}', { title: 'a' }],
  ['text/plain;charset=UTF-8', '{"title":"a"}', { title: 'a' }],
  ['text/plain', '{"title":"a"}', { title: 'a' }],
  ['application/vnd.api+json', '{"title":"a"}', { title: 'a' }],
  [undefined, '{"title":"a"}', { title: 'a' }],
  ['application/x-www-form-urlencoded', 'title=a+b%26c&tag=x&tag=y', { title: 'a b&c', tag: ['x', 'y'] }],
  ['application/x-www-form-urlencoded; charset=UTF-8', 'title=%E2%82%AC', { title: '€' }],
  ['application/json', '', {}],
  ['application/x-www-form-urlencoded', '', {}],
  [undefined, '', {}],
];

for (const [type, body, record] of bodies) {
  test(`POST, PUT and PATCH accept ${JSON.stringify(body)} as ${type ?? 'no type'}`, async (t) => {
    const { app } = await opened(t);
    const fields = type === undefined ? {} : { 'Content-Type': type };
    const send = async (method: string, target: string) => {
      const { status, body: reply } = await app.inject({ method, target, fields, body });
      return [status, JSON.parse(reply)];
    };
    assert.deepEqual(await send('POST', '/posts'), [201, { id: 1, ...Object(record) }]);
    assert.deepEqual(await send('PUT', '/posts/1'), [200, { id: 1, ...Object(record) }]);
    assert.deepEqual(await send('PATCH', '/posts/1'), [200, { id: 1, ...Object(record) }]);
    assert.deepEqual(await send('POST', '/posts/1/comments'), [201, { id: 1, ...Object(record), postId: 1 }]);
  });
}

test('a body that is not JSON is refused, whatever its type says', async (t) => {
  const { app } = await opened(t);
  for (const type of ['text/plain', 'application/json', 'multipart/form-data; boundary=x']) {
    const fields = { 'Content-Type': type };
    const { status } = await app.inject({ method: 'POST', target: '/posts', fields, body: 'a=1' });
    assert.equal(status, 400, type);
  }
});

test('numbers are accepted as C and PHP print them, and an integer that a double cannot hold is refused', async (t) => {
  const { app } = await opened(t);
  const post = async (body: string) => app.inject({ method: 'POST', target: '/posts', body });
  assert.equal((await post('{"price":0.10000000000000001}')).body, '{"id":1,"price":0.1}');
  const refused = await post('{"count":9007199254740993}');
  assert.equal(refused.status, 400);
  assert.match(refused.body, /line 1, column 10/);
});

test('values of 3 MiB, 6,000 members and 160,000 numbers are stored, and depth is bounded', async (t) => {
  const { send } = await opened(t);
  const picture = 'x'.repeat(3 * 2 ** 20);
  const words = Object.fromEntries(Array.from({ length: 6000 }, (_, index) => [`word${index}`, 'w']));
  const grid = Array.from({ length: 400 }, (_, row) => Array.from({ length: 400 }, (_, column) => row * column));
  for (const [index, record] of [{ picture }, words, { grid }].entries()) {
    const id = index + 1;
    assert.equal((await send('POST', '/posts', record)).status, 201);
    assert.deepEqual((await send('GET', `/posts/${id}`)).json, { id, ...record });
    assert.equal((await send('PUT', `/posts/${id}`, record)).status, 200);
    assert.equal((await send('PATCH', `/posts/${id}`, { seen: true })).json.seen, true);
  }
  assert.equal((await send('POST', '/posts/2/comments', { picture })).json.postId, 2);
  const deep = JSON.parse(`${'['.repeat(33)}${']'.repeat(33)}`);
  assert.equal((await send('POST', '/posts', { deep })).status, 400);
});

test('a body of 10 MiB is accepted, and one beyond the bound is not', async (t) => {
  const { app } = await opened(t);
  const port = await app.listen({ port: 0 });
  const post = async (length: number) => {
    const body = JSON.stringify({ text: 'x'.repeat(length) });
    return (await fetch(`http://127.0.0.1:${port}/posts`, { method: 'POST', body })).status;
  };
  assert.equal(await post(10 * 2 ** 20), 201);
  const list = await (await fetch(`http://127.0.0.1:${port}/posts`)).text();
  assert.ok(list.length > 10 * 2 ** 20);
  const body = Buffer.alloc(recordBytesMax + 1, ' ');
  const { status } = await app.inject({ method: 'POST', target: '/posts', body });
  assert.equal(status, 413);
});

test('large bodies are handled one after the other', async (t) => {
  const { app } = await opened(t);
  const body = JSON.stringify({ text: 'x'.repeat(3 * 2 ** 20) });
  const sent = Array.from({ length: 4 }, () => app.inject({ method: 'POST', target: '/posts', body }));
  const small = app.inject({ method: 'POST', target: '/likes', body: '{}' });
  assert.equal((await small).status, 201);
  for (const { status, fields } of await Promise.all(sent)) {
    if (status === 503) assert.equal(fields.get('retry-after'), '1');
    else assert.equal(status, 201);
  }
});

test('DELETE responds with an object, and removes what refers to the record', async (t) => {
  const { send, ids } = await filled(t);
  const removed = await send('DELETE', '/posts/1');
  assert.deepEqual([removed.status, removed.json], [200, {}]);
  assert.deepEqual([await ids('/posts'), await ids('/comments'), await ids('/likes')], [[2, 3, 4], [3], [2]]);
  assert.equal((await send('DELETE', '/posts/1')).status, 404);
  await send('PATCH', '/likes/2', { likeId: 2, commentId: 3 });
  assert.equal((await send('DELETE', '/comments/3')).status, 200);
  assert.deepEqual([await ids('/comments'), await ids('/likes')], [[], []]);
});

test('declared fields and references keep their rules', async (t) => {
  const posts = declareCollection({
    name: 'posts',
    fields: {
      title: { kind: 'text', min: 1 },
      note: { kind: 'text', optional: true },
      views: { kind: 'integer', min: 0, default: 0 },
    },
  });
  const comments = declareCollection({ name: 'comments', fields: { postId: { kind: 'reference', to: 'posts' } } });
  const { send, ids } = await opened(t, [posts, comments]);
  assert.equal((await send('POST', '/posts', { title: '' })).status, 422);
  await send('POST', '/posts', { title: 'x', note: 'n' });
  assert.equal((await send('POST', '/posts/1/comments', {})).status, 201);
  assert.equal((await send('POST', '/posts/2/comments', {})).status, 422);
  assert.deepEqual((await send('PATCH', '/posts/1', { note: null })).json, { id: 1, title: 'x', views: 0 });
  assert.equal((await send('PATCH', '/posts/1', { title: null })).status, 422);
  assert.equal((await send('DELETE', '/posts/1')).json.code, 'still_referenced');
  assert.deepEqual([await ids('/posts?views=x'), await ids('/posts?views_ne=x')], [[], [1]]);
  assert.deepEqual([await ids('/posts?nothing=1'), await ids('/posts?nothing:gt=1')], [[1], []]);
  assert.equal((await send('DELETE', '/comments/1')).status, 200);
  assert.equal((await send('DELETE', '/posts/1')).status, 200);
});

test("Cairn's own parameters work as usual", async (t) => {
  const { send, ids, app } = await filled(t);
  const page = await send('GET', '/posts?limit=2&sort=-id');
  assert.match(page.field('link') ?? '', /^<\/posts\?limit=2&sort=-id&cursor=[\w-]+>; rel="next"$/);
  assert.deepEqual(await ids('/posts?limit=2&views:gte=20'), [1, 2]);
  assert.deepEqual((await send('GET', '/posts/1?fields=id')).json, { id: 1 });
  const tag = page.field('etag') ?? '';
  assert.equal((await app.inject({ target: '/posts?limit=2&sort=-id', fields: { 'if-none-match': tag } })).status, 304);
  assert.equal((await send('DELETE', '/posts/1', undefined, { 'if-match': '"other"' })).status, 412);
  assert.equal((await send('GET', '/posts?limit=2&_sort=id')).json.length, 4, 'json-server knows no limit');
});

test('pages may send their own headers and credentials, as to json-server', async (t) => {
  const origin = 'http://localhost:5173';
  const only = { auth: 'none', users: false, items: false, corsOrigins: ['http://localhost:*'] } as const;
  const app = await createApp({ ...only, dialect: 'json-server', collections: open });
  t.after(app.close);
  const asked = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-token' };
  const preflight = await app.inject({ method: 'OPTIONS', target: '/posts', fields: asked });
  const allowed = ['headers', 'credentials', 'origin'].map((each) =>
    preflight.fields.get(`access-control-allow-${each}`));
  assert.deepEqual([preflight.status, ...allowed], [204, 'x-token', 'true', origin]);
  const sent = { origin, cookie: 'sid=x', authorization: 'Bearer made-up', 'sec-fetch-site': 'same-site' };
  const fields = { ...sent, 'x-token': 'x', 'content-type': 'application/json' };
  const { status } = await app.inject({ method: 'POST', target: '/posts', fields, body: '{}' });
  assert.equal(status, 201);
});

test('nobody can sign in with the dialect', async () => {
  const wrong = /^OptionError: Cannot use --dialect: .* needs --auth none; .*#from-a-prototype-to-a-product\)$/;
  await assert.rejects(createApp({ dialect: 'json-server' }), wrong);
});

test('ids are found, embedded and removed by their text, whether texts or numbers', async (t) => {
  const given = ['posts', 'comments'].map((name) =>
    declareCollection({ name, id: { kind: 'any' }, fields: {}, additional: true }));
  const { send, ids } = await opened(t, given);
  for (const id of [7, 'a b/c', undefined]) assert.equal((await send('POST', '/posts', { id })).status, 201);
  const [, , made] = await ids('/posts');
  assert.equal((await send('POST', '/posts', { id: '7' })).status, 409);
  assert.equal((await send('POST', '/posts', { id: '', title: 'made' })).status, 201, 'no id is given');
  assert.deepEqual(await ids('/posts?id=7&id=a+b/c'), [7, 'a b/c']);
  for (const path of ['7', 'a%20b%2Fc', String(made)])
    assert.equal((await send('POST', `/posts/${path}/comments`, {})).status, 201, path);
  const posts = (await send('GET', '/comments?_sort=id')).json.map(({ postId }: { postId: unknown }) => postId);
  assert.deepEqual(new Set(posts), new Set([7, 'a b/c', made]));
  assert.equal((await send('GET', '/posts/a%20b%2Fc?_embed=comments')).json.comments.length, 1);
  assert.equal((await send('GET', '/posts/7/comments?_expand=post')).json[0].post.id, 7);
  assert.equal((await send('PATCH', '/posts/7', { id: '7', title: 'x' })).json.id, 7);
  assert.equal((await send('DELETE', '/posts/7')).status, 200);
  assert.equal((await ids('/comments')).length, 2);
});

test('PATCH also assigns the members of a single resource', async (t) => {
  const profile = declareCollection({ name: 'profile', single: true, fields: {}, additional: true });
  const state = declareCollection({ name: 'state', single: true, value: { kind: 'json' } });
  const { send, ids } = await opened(t, [...open, profile, state]);
  assert.equal((await send('PUT', '/profile', { id: 1, name: 'Ada', at: { city: 'Rome', zip: 1 } })).status, 201);
  const patched = await send('PATCH', '/profile', { id: 2, at: { city: 'Bari' }, name: null });
  assert.deepEqual([patched.status, patched.json], [200, { id: 2, name: null, at: { city: 'Bari' } }]);
  await send('PUT', '/state', { a: { b: 1, c: 2 }, d: 3 });
  assert.deepEqual((await send('PATCH', '/state', { a: { b: null } })).json, { a: { b: null }, d: 3 });
  assert.deepEqual((await send('PATCH', '/state', [1])).json, [1]);
  assert.equal((await send('GET', '/posts/1/profile')).status, 404);
  assert.deepEqual(await ids('/posts?_limit=1'), []);
});

test('the records below a record are found by an index, whatever other parameters say', async (t) => {
  const { send, ids } = await filled(t);
  assert.deepEqual(await ids('/posts/1/comments?body=nice'), [1]);
  assert.deepEqual(await ids('/comments?postId=1&postId=2&_sort=body,id&_order=desc,asc'), [2, 1, 3]);
  assert.deepEqual(await ids('/comments?postId=1&id=1&id=3'), [1]);
  assert.equal((await send('GET', '/comments?postId=1&_limit=1')).field('x-total-count'), '2');
  await send('PATCH', '/comments/1', { postId: 2 });
  assert.deepEqual([await ids('/posts/1/comments'), await ids('/posts/2/comments')], [[2], [1, 3]]);
});
