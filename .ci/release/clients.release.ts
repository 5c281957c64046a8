/** Published clients, if npm has them: json-server's through the dialect, and the manual's providers. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { declareCollection } from '../../src/collections/define.ts';
import { loadPackages } from '../../test/support/handbook.ts';
import { createApp } from '../../test/support/inside.ts';

/** Cairn as `cairn db.json` serves a file. */
async function openLoose(t: TestContext): Promise<string> {
  const collections = ['posts', 'comments'].map((name) => declareCollection({ name, fields: {}, additional: true }));
  const only = { auth: 'none', users: false, items: false } as const;
  const app = await createApp({ ...only, dialect: 'json-server', collections });
  t.after(app.close);
  return `http://127.0.0.1:${await app.listen({ port: 0, host: '127.0.0.1' })}`;
}

const made = [
  { title: 'One', views: 3, author: { name: 'Ada' } }, { title: 'Two', views: 1 }, { title: 'Three', views: 2 },
];
const idsOf = ({ data }: { data: readonly { id: unknown }[] }) => data.map(({ id }) => id);

test('ra-data-json-server works completely through the dialect', async (t) => {
  const packages = { 'ra-data-json-server': '5.15.3', react: '18.3.1', 'react-dom': '18.3.1' };
  const load = loadPackages(t, packages);
  if (load === undefined) return;
  const { default: provide } = await load('ra-data-json-server/dist/index.js');
  const data = provide(await openLoose(t));
  for (const record of made) assert.equal((await data.create('posts', { data: record })).data.title, record.title);
  for (const postId of [1, 1, 2]) await data.create('comments', { data: { body: `of ${postId}`, postId } });
  const sort = { field: 'views', order: 'DESC' };
  const page = { pagination: { page: 2, perPage: 2 }, sort, filter: {} };
  const listed = await data.getList('posts', page);
  assert.deepEqual([idsOf(listed), listed.total], [[2], 3]);
  const filter = { author: { name: 'Ada' }, views_gte: 2, q: 'one' };
  assert.deepEqual(idsOf(await data.getList('posts', { ...page, pagination: { page: 1, perPage: 10 }, filter })), [1]);
  assert.deepEqual(idsOf(await data.getMany('posts', { ids: [3, 1] })), [1, 3]);
  const params = { target: 'postId', id: 1, ...page, pagination: { page: 1, perPage: 1 } };
  const referring = await data.getManyReference('comments', { ...params, sort: { field: 'id', order: 'DESC' } });
  assert.deepEqual([idsOf(referring), referring.total], [[2], 2]);
  const { data: one } = await data.getOne('posts', { id: 1, meta: { embed: ['comments'] } });
  assert.equal(one.comments.length, 2);
  const [comment] = (await data.getList('comments', { ...page, sort, meta: { embed: 'post' } })).data;
  assert.equal(comment.post.title, 'Two');
  const changed = await data.update('posts', { id: 1, data: { id: 1, title: 'Changed' }, previousData: one });
  assert.deepEqual(changed.data, { id: 1, title: 'Changed' });
  assert.deepEqual((await data.updateMany('posts', { ids: [2, 3], data: { title: 'Both' } })).data, [2, 3]);
  assert.deepEqual((await data.delete('posts', { id: 1 })).data, {});
  assert.equal((await data.deleteMany('posts', { ids: [2] })).data.length, 1);
  assert.deepEqual(idsOf(await data.getList('comments', page)), [], 'they went with their posts');
  await assert.rejects(data.getOne('posts', { id: 1 }), { status: 404 });
});

test('@refinedev/simple-rest works completely through the dialect', async (t) => {
  const load = loadPackages(t, { '@refinedev/simple-rest': '6.0.1' });
  if (load === undefined) return;
  const { default: provide } = await load('@refinedev/simple-rest/dist/index.mjs');
  const data = provide(await openLoose(t));
  for (const variables of made) {
    const created = await data.create({ resource: 'posts', variables });
    assert.equal(created.data.views, variables.views);
  }
  await data.create({ resource: 'comments', variables: { body: 'of 1', postId: 1 } });
  const sorters = [{ field: 'views', order: 'desc' }, { field: 'title', order: 'asc' }];
  const list = (params: object) => data.getList({ resource: 'posts', sorters, ...params });
  const page = await list({ pagination: { currentPage: 2, current: 2, pageSize: 2 } });
  assert.deepEqual([idsOf(page), page.total], [[2], 3]);
  assert.deepEqual(idsOf(await list({ pagination: { mode: 'off' } })), [1, 3, 2]);
  const filters: readonly (readonly [ids: readonly number[], operator: string, value: unknown, field: string])[] = [
    [[1], 'eq', 'One', 'title'], [[3, 2], 'ne', 'One', 'title'], [[1, 3], 'gte', 2, 'views'], [[2], 'lte', 1, 'views'],
    [[3, 2], 'contains', 'T', 'title'], [[1], 'eq', 'ada', 'q'],
  ];
  for (const [ids, operator, value, field] of filters)
    assert.deepEqual(idsOf(await list({ filters: [{ field, operator, value }] })), ids, `${field} ${operator}`);
  assert.deepEqual(idsOf(await data.getMany({ resource: 'posts', ids: [3, 1] })), [1, 3]);
  assert.equal((await data.getOne({ resource: 'posts', id: 1 })).data.title, 'One');
  const changed = await data.update({ resource: 'posts', id: 1, variables: { title: 'Changed' } });
  assert.deepEqual([changed.data.title, changed.data.views], ['Changed', 3]);
  assert.deepEqual((await data.deleteOne({ resource: 'posts', id: 1 })).data, {});
  const url = `${data.getApiUrl()}/comments`;
  assert.deepEqual((await data.custom({ url, method: 'get' })).data, [], 'it went with its post');
  await assert.rejects(data.getOne({ resource: 'posts', id: 1 }), { statusCode: 404 });
});
