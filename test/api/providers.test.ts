/** The providers of the reference, without the packages that they are for: a release test has these. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { loadReferenceFile, startBlog } from '../support/handbook.ts';

async function opened(t: TestContext, of: 'reactAdmin' | 'refine') {
  const blog = await startBlog(t);
  const file = { reactAdmin: 'cairn-react-admin.js', refine: 'cairn-refine.js' }[of];
  const { [of]: provide } = await loadReferenceFile(t, file);
  const { dataProvider, authProvider } = provide(blog.client);
  const { email, password } = blog.credentials;
  await authProvider.login({ username: email, email, password });
  return { ...blog, data: dataProvider, auth: authProvider };
}

const made = [
  { title: 'One', views: 3, author: { name: 'Ada' } },
  { title: 'Two', views: 1 },
  { title: 'Three, (really)', views: 2 },
];
const idsOf = ({ data }: { data: readonly { id: unknown }[] }) => data.map(({ id }) => id);

test('react-admin lists, finds, embeds, creates, changes and removes', async (t) => {
  const { data } = await opened(t, 'reactAdmin');
  for (const record of made) await data.create('posts', { data: record });
  for (const postId of [1, 1, 2]) await data.create('comments', { data: { body: `of ${postId}`, postId } });
  const list = (params: object) => data.getList('posts', { pagination: { page: 1, perPage: 2 }, ...params });
  const page = await list({ pagination: { page: 2, perPage: 2 }, sort: { field: 'views', order: 'DESC' } });
  assert.deepEqual([idsOf(page), page.total], [[2], 3]);
  assert.deepEqual(idsOf(await list({ filter: { q: 'TWO' } })), [2]);
  assert.deepEqual(idsOf(await list({ filter: { author: { name: 'Ada' }, 'views:gte': 1, title: '' } })), [1]);
  assert.deepEqual(idsOf(await list({ filter: { views: [1, 2] } })), [2, 3]);
  assert.deepEqual(idsOf(await data.getMany('posts', { ids: [3, 1] })), [1, 3]);
  const { data: one } = await data.getOne('posts', { id: 1, meta: { embed: 'comments' } });
  assert.deepEqual(one.comments.length, 2);
  const [comment] = (await data.getMany('comments', { ids: [3], meta: { embed: ['postId'] } })).data;
  assert.equal(comment.post.title, 'Two');
  const last = { pagination: { page: 1, perPage: 1 }, sort: { field: 'id', order: 'DESC' } };
  const referring = await data.getManyReference('comments', { target: 'postId', id: 1, filter: {}, ...last });
  assert.deepEqual([idsOf(referring), referring.total], [[2], 2]);
  const { data: changed } = await data.update('posts', { id: 1, data: { ...one, views: 9 }, previousData: one });
  assert.deepEqual([changed.views, changed.title], [9, 'One']);
  assert.deepEqual((await data.updateMany('posts', { ids: [1, 2], data: { views: 7 } })).data, [1, 2]);
  assert.equal((await data.delete('posts', { id: 1, previousData: changed })).data, changed);
  assert.deepEqual((await data.deleteMany('posts', { ids: [2] })).data, [2]);
  assert.deepEqual(idsOf(await list({})), [3]);
});

test('react-admin shows the mistake of each field, and who is signed in', async (t) => {
  const { data, auth, client, kept, later } = await opened(t, 'reactAdmin');
  const wrong = await data.create('posts', { data: { title: '', author: {} } }).catch((error: unknown) => error);
  assert.deepEqual([wrong.status, wrong.body.errors], [422, {
    title: 'must be at least 1 character long', 'author.name': 'must be given',
  }]);
  const identity = await auth.getIdentity();
  assert.deepEqual([identity.id, identity.fullName, await auth.getPermissions()], [1, 'Administrator', 'admin']);
  const former = kept.get('cairn');
  later(20 * 60_000);
  await Promise.all([data.getList('posts', {}), data.getList('comments', {})]);
  assert.notEqual(kept.get('cairn'), former, 'the tokens were renewed');
  await auth.checkAuth();
  later(40 * 24 * 60 * 60_000);
  const ended = await data.getList('posts', {}).catch((error: unknown) => error);
  await assert.rejects(auth.checkError(ended));
  await auth.checkError(wrong);
  await assert.rejects(auth.login({ username: 'ada@example.org', password: 'wrong' }), { status: 401 });
  await auth.logout();
  await assert.rejects(auth.checkAuth());
  assert.equal(client.isSignedIn(), false);
});

test('refine lists, finds, embeds, creates, changes and removes', async (t) => {
  const { data } = await opened(t, 'refine');
  await data.createMany({ resource: 'posts', variables: made });
  for (const postId of [1, 1, 2]) {
    await data.create({ resource: 'comments', variables: { body: `of ${postId}`, postId } });
  }
  const list = async (params: object) => data.getList({ resource: 'posts', ...params });
  const sorters = [{ field: 'views', order: 'desc' }];
  const page = await list({ pagination: { currentPage: 2, pageSize: 2 }, sorters });
  assert.deepEqual([idsOf(page), page.total], [[2], 3]);
  const whole = await list({ pagination: { mode: 'off' } });
  assert.deepEqual([idsOf(whole), whole.total], [[1, 2, 3], 3]);
  const filters: readonly (readonly [ids: readonly number[], field: string, operator: string, value?: unknown])[] = [
    [[1], 'title', 'eq', 'One'], [[2, 3], 'title', 'ne', 'One'], [[1, 3], 'views', 'gt', 1],
    [[3], 'views', 'between', [2, 2]],
    [[2, 3], 'title', 'in', ['Three, (really)', 'Two']], [[2, 3], 'author', 'null'], [[1], 'author', 'nnull'],
    [[3], 'title', 'contains', 'ee, ('], [[2, 3], 'title', 'startswith', 'T'], [[1], 'q', 'eq', 'ada'],
  ];
  for (const [ids, field, operator, value] of filters)
    assert.deepEqual(idsOf(await list({ filters: [{ field, operator, value }] })), ids, `${field} ${operator}`);
  const either = [{ field: 'views', operator: 'eq', value: 3 }, { field: 'title', operator: 'contains', value: ', (' }];
  assert.deepEqual(idsOf(await list({ filters: [{ operator: 'or', value: either }] })), [1, 3]);
  assert.deepEqual(idsOf(await list({ filters: [{ operator: 'and', value: either }] })), []);
  await assert.rejects(list({ filters: [{ field: 'title', operator: 'nin', value: [] }] }), /no filter "nin"/);
  assert.deepEqual(idsOf(await data.getMany({ resource: 'posts', ids: [3, 1] })), [1, 3]);
  const { data: one } = await data.getOne({ resource: 'posts', id: 1, meta: { embed: ['comments'] } });
  assert.equal(one.comments.length, 2);
  assert.equal((await data.update({ resource: 'posts', id: 1, variables: { views: 9 } })).data.views, 9);
  assert.deepEqual((await data.deleteOne({ resource: 'posts', id: 1 })).data, { id: 1 });
  const me = await data.custom({ url: `${data.getApiUrl()}/me`, method: 'get' });
  assert.equal(me.data.email, 'ada@example.org');
});

test('refine shows the mistake of each field, and who is signed in', async (t) => {
  const { data, auth, kept, later } = await opened(t, 'refine');
  const variables = { title: '', views: -1 };
  const wrong = await data.create({ resource: 'posts', variables }).catch((error: unknown) => error);
  assert.deepEqual([wrong.statusCode, Object.keys(wrong.errors)], [422, ['title', 'views']]);
  assert.deepEqual(await auth.check(), { authenticated: true });
  assert.equal((await auth.getIdentity()).name, 'Administrator');
  const former = kept.get('cairn');
  later(20 * 60_000);
  await data.getList({ resource: 'posts' });
  assert.notEqual(kept.get('cairn'), former, 'the tokens were renewed');
  assert.deepEqual(await auth.onError(wrong), {});
  assert.equal((await auth.onError({ status: 401 })).logout, true);
  assert.equal((await auth.login({ email: 'ada@example.org', password: 'wrong' })).success, false);
  assert.equal((await auth.logout()).success, true);
  assert.deepEqual(await auth.check(), { authenticated: false, redirectTo: '/login' });
  assert.equal(await auth.getIdentity(), null);
});
