import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { createApp } from '../../src/index.ts';
import { startApp } from '../support/app.ts';
import { createGenerator } from '../support/basics.ts';

const text = { kind: 'text' } as const;
const userIds = (onDelete: 'clear' | 'remove') =>
  ({ kind: 'list', of: { kind: 'reference', to: 'users', onDelete, show: 'name' } }) as const;
const boards = declareCollection({
  name: 'boards',
  fields: {
    title: text,
    memberIds: { ...userIds('clear'), default: [] },
    assigneeId: { kind: 'reference', to: 'users', onDelete: 'clear', optional: true },
  },
  access: {
    list: ['owner', 'memberIds', 'assigneeId'],
    read: ['owner', 'memberIds', 'assigneeId'],
    replace: ['owner', 'memberIds'],
    patch: ['owner', 'memberIds'],
    remove: 'owner',
  },
});
const cards = declareCollection({
  name: 'cards',
  fields: {
    title: text,
    boardId: { kind: 'reference', to: 'boards', onDelete: 'remove' },
    authorId: { kind: 'reference', to: 'users', onDelete: 'refuse', optional: true, show: 'name' },
    giverId: { kind: 'reference', to: 'users', onDelete: 'remove', optional: true },
  },
});
const diaries = declareCollection({ name: 'diaries', fields: { title: text }, ownerRemoved: 'remove' });
const collections = [boards, cards, diaries];

/** The administrator 1, and the members Mia, 2, Eve, 3, and Bob, 4, each as a function that sends requests. */
async function open(t: Parameters<typeof startApp>[0], options = {}) {
  const opened = await startApp(t, { collections, ...options });
  const { client, signIn, withHeaders } = opened;
  const [mia, admin] = [await signIn('member'), await signIn('admin')];
  const createUser = async (name: string): Promise<typeof client> => {
    const credentials = { email: `${name}@example.org`, password: `a password for ${name} alone` };
    await admin.post('/users', { json: { name, ...credentials } });
    const tokens = await client.post('/tokens', { json: credentials });
    const authorization = `Bearer ${Object(tokens.json).access_token}`;
    return withHeaders({ authorization });
  };
  return { ...opened, mia, admin, eve: await createUser('eve'), bob: await createUser('bob') };
}

test('a reference to an absent user is refused; the user need not be readable', async (t) => {
  const { mia } = await open(t);
  const refused = await mia.post('/boards', { json: { title: 'A', memberIds: [3, 9], assigneeId: 8 } });
  assert.deepEqual(
    [refused.status, Object(refused.json).errors],
    [
      422,
      [
        { pointer: '/memberIds/1', code: 'no_such_record', detail: 'must be the id of a user' },
        { pointer: '/assigneeId', code: 'no_such_record', detail: 'must be the id of a user' },
      ],
    ],
  );
  const made = await mia.post('/boards', { json: { title: 'A', memberIds: [3], assigneeId: 4 } });
  assert.deepEqual([made.status, made.json], [201, { id: 1, title: 'A', memberIds: [3], assigneeId: 4 }]);
  assert.equal((await mia.get('/users/3')).status, 404);
});

test('an embedded user has only the name, and only if the field shows it', async (t) => {
  const { mia, eve, admin } = await open(t);
  await mia.post('/boards', { json: { title: 'A', memberIds: [4, 3], assigneeId: 3 } });
  const shown = await eve.get('/boards/1?embed=memberIds');
  assert.deepEqual(Object(shown.json).member, [
    { id: 4, name: 'bob' },
    { id: 3, name: 'eve' },
  ]);
  assert.equal((await eve.get('/boards/1?embed=assigneeId')).status, 400);
  const [tag = '', listTag = ''] = [shown, await eve.get('/boards?embed=memberIds&limit=5')].map((one) =>
    one.header('etag'),
  );
  await admin.patch('/users/4', { json: { name: 'Robert' } });
  const again = await eve.get('/boards/1?embed=memberIds', { headers: { 'if-none-match': tag } });
  assert.deepEqual([again.status, Object(again.json).member[0]], [200, { id: 4, name: 'Robert' }]);
  const list = await eve.get('/boards?embed=memberIds&limit=5', { headers: { 'if-none-match': listTag } });
  assert.deepEqual([list.status, Object(list.json)[0].member[0]], [200, { id: 4, name: 'Robert' }]);
});

test('removing a user keeps, removes or clears referring records, with hooks and events for each', async (t) => {
  const seen: string[] = [];
  const beforeWrite = ({ collection, operation, id }: { collection: string; operation: string; id: unknown }) => {
    if (operation !== 'create') seen.push(`${operation} ${collection} ${id}`);
  };
  const { app, mia, eve, admin } = await open(t, { hooks: { beforeWrite } });
  await mia.post('/boards', { json: { title: 'A', memberIds: [3, 4], assigneeId: 3 } });
  await eve.post('/boards', { json: { title: 'Kept', memberIds: [2] } });
  await eve.post('/diaries', { json: { title: 'Gone' } });
  await mia.post('/diaries', { json: { title: 'Other' } });
  await mia.post('/cards', { json: { title: 'Author', boardId: 1, authorId: 3 } });
  await mia.post('/cards', { json: { title: 'Giver', boardId: 1, giverId: 3 } });
  const refused = await admin.delete('/users/3');
  assert.deepEqual([refused.status, refused.code], [409, 'still_referenced']);
  assert.equal(Object(refused.json).detail, 'Cannot remove the record: 1 record refers to it in cards');
  assert.equal((await eve.get('/me')).status, 200);
  await mia.patch('/cards/1', { json: { authorId: null } });
  seen.length = 0;
  const commits: string[][] = [];
  app.store.onPublished((changes) => {
    const names = changes.map(
      ({ collection, id, record }) => `${collection.name} ${id} ${record ? 'put' : 'removed'}`,
    );
    commits.push(names.filter((name) => !/session|key/.test(name)));
  });
  assert.equal((await eve.delete('/users/3')).status, 204);
  assert.deepEqual(commits, [['boards 1 put', 'diaries 1 removed', 'cards 2 removed', 'users 3 removed']]);
  assert.deepEqual(seen, ['update boards 1', 'remove diaries 1', 'remove cards 2', 'remove users 3']);
  assert.deepEqual((await admin.get('/boards')).json, [
    { id: 1, title: 'A', memberIds: [4] },
    { id: 2, title: 'Kept', memberIds: [2] },
  ]);
  assert.deepEqual((await admin.get('/diaries')).json, [{ id: 2, title: 'Other' }]);
});

test('a user with too many records is not removed, and the message names the command that does it', async (t) => {
  const { app, eve, admin } = await open(t, { withoutPort: true });
  const diary = Array.from({ length: 1000 }, () => ({ title: 'X' }));
  for (let count = 0; count <= limits.referrersMax; count += 1000)
    await app.collection('diaries').createMany(diary, { as: 3 });
  const refused = await admin.delete('/users/3');
  assert.deepEqual([refused.status, refused.code], [409, 'still_referenced']);
  assert.match(Object(refused.json).detail, /over 10000 records depend on it; .*cairn user remove --with-records/);
  assert.equal((await eve.get('/me')).status, 200);
});

test('fields that name users let these users read, list, count and change a record', async (t) => {
  const { mia, eve, bob, admin } = await open(t);
  await mia.post('/boards', { json: { title: 'Shared', memberIds: [3], assigneeId: 4 } });
  await bob.post('/boards', { json: { title: 'Own' } });
  const titles = async (ask: typeof mia, query = ''): Promise<unknown> => {
    const { json, status, header: field } = await ask.get(`/boards?sort=-title${query}`, {
      headers: { prefer: 'count=exact' },
    });
    return [
      status,
      field('x-total-count'),
      Object(json)
        .map(({ title }: any) => title)
        .join(),
    ];
  };
  assert.deepEqual(await titles(mia), [200, '1', 'Shared']);
  assert.deepEqual(await titles(eve), [200, '1', 'Shared']);
  assert.deepEqual(await titles(bob), [200, '2', 'Shared,Own']);
  assert.deepEqual(await titles(bob, '&limit=1'), [200, '2', 'Shared']);
  assert.deepEqual(await titles(bob, '&assigneeId=4'), [200, '1', 'Shared']);
  assert.deepEqual(await titles(eve, '&memberIds:has=3'), [200, '1', 'Shared']);
  assert.deepEqual(await titles(admin), [200, '2', 'Shared,Own']);
  assert.equal((await eve.get('/boards/2')).status, 404);
  assert.equal((await eve.patch('/boards/2', { json: { title: 'X' } })).status, 404);
  // He is named in the field that grants reading, not in the field that grants changes.
  assert.deepEqual(
    [(await bob.get('/boards/1')).status, (await bob.patch('/boards/1', { json: { title: 'X' } })).code],
    [200, 'not_owner'],
  );
  assert.equal((await eve.delete('/boards/1')).code, 'not_owner');
  const tag = (await eve.get('/boards/1')).header('etag') ?? '';
  const left = await eve.patch('/boards/1', { json: { memberIds: [] }, headers: { 'if-match': tag } });
  assert.deepEqual([left.status, Object(left.json).memberIds], [200, []]);
  assert.equal((await eve.get('/boards/1')).status, 404);
  assert.deepEqual(await titles(eve), [200, '0', '']);
});

test('a repeated create gets the first response, even if its creator may not read the record', async (t) => {
  const secret = declareCollection({
    name: 'hints',
    fields: { text, forId: { kind: 'reference', to: 'users', onDelete: 'remove' } },
    access: { list: 'forId', read: 'forId' },
  });
  const { mia, eve } = await open(t, { collections: [secret] });
  const asked = { json: { text: 'Psst', forId: 3 }, headers: { 'idempotency-key': 'a-key-of-twenty-letters' } };
  const [made, again] = [await mia.post('/hints', asked), await mia.post('/hints', asked)];
  assert.deepEqual([made.status, again.status, again.body], [201, 201, made.body]);
  assert.equal((await mia.get('/hints/1')).status, 404);
  assert.deepEqual((await mia.get('/hints')).json, []);
  assert.deepEqual((await eve.get('/hints')).json, [{ id: 1, text: 'Psst', forId: 3 }]);
});

test('a removal by a program follows the declared references', async (t) => {
  const app = await createApp({ collections: [diaries], scryptCost: 1 });
  t.after(() => app.close());
  const { id } = await app.users.create({ name: 'Eve', email: 'eve@example.org' });
  await app.collection(diaries).create({ title: 'Gone' }, { as: id });
  await app.users.remove(id);
  assert.equal(app.collection(diaries).count(), 0);
});

test("a user's pages agree with a model while the users that records name change", async (t) => {
  const random = createGenerator('pages of one user');
  const rows = Array.from({ length: 3500 }, (_, at) => ({
    title: `${at}`,
    rank: random.below(1000),
    memberIds: at > 2000 ? [1] : [],
  }));
  const tasks = declareCollection({
    name: 'tasks',
    fields: { title: text, rank: { kind: 'integer' }, memberIds: { ...userIds('clear'), default: [] } },
    access: { list: 'memberIds', read: 'memberIds' },
  });
  const app = await createApp({ collections: [tasks], scryptCost: 1 });
  t.after(() => app.close());
  const collection = app.collection(tasks);
  const { id: as } = await app.users.create({ name: 'Eve', email: 'eve@example.org' });
  const ids: number[] = [];
  for (let at = 0; at < rows.length; at += 500)
    for (const { id } of await collection.createMany(rows.slice(at, at + 500))) ids.push(id);
  const model = new Map(rows.map((row, at) => [ids[at] ?? 0, row]));
  for (let round = 0; round < 60; round += 1) {
    const sort = random.pick(['none', 'rank', '-rank'] as const);
    const direction = { none: 0, rank: 1, '-rank': -1 }[sort];
    const wanted = [...model]
      .filter(([, { memberIds }]) => memberIds.includes(as))
      .sort(([a, { rank: one }], [b, { rank: other }]) => direction * (one - other) || a - b)
      .map(([id]) => id);
    const order = sort === 'none' ? {} : { sort };
    const options = { as, limit: 1 + random.below(40), total: round % 2 === 0, ...order };
    const page = await collection.list(options);
    const next = await collection.list({ ...options, after: page.next });
    const shown = [...page.records, ...next.records].map(({ id }) => id);
    assert.deepEqual(shown, wanted.slice(0, 2 * options.limit), `${round} ${sort}`);
    assert.equal(page.total, options.total ? wanted.length : undefined);
    for (let count = 0; count < 20; count += 1) {
      const id = random.pick(ids);
      const row = { ...rows[0]!, ...model.get(id), memberIds: random.below(2) === 0 ? [as] : [] };
      model.set(id, row);
      await collection.change(id, { memberIds: row.memberIds });
    }
  }
});

test('records that refer by a list and name their readers in one are embedded for these readers', async (t) => {
  const tagged = declareCollection({
    name: 'tagged',
    fields: {
      title: text,
      memberIds: { ...userIds('clear'), default: [] },
      diaryIds: { kind: 'list', of: { kind: 'reference', to: 'diaries', onDelete: 'clear' }, default: [] },
    },
    access: { list: ['owner', 'memberIds'], read: ['owner', 'memberIds'] },
  });
  const { app, mia, eve, bob } = await open(t, { collections: [diaries, tagged] });
  await mia.post('/diaries/batch', { json: Array.from({ length: 50 }, () => ({ title: 'X' })) });
  const diaryIds = Array.from({ length: 50 }, (_, at) => at + 1);
  const before = app.store.status().memoryBytes;
  await mia.post('/tagged', { json: { title: 'One', memberIds: [1, 2, 3, 4], diaryIds } });
  const took = app.store.status().memoryBytes - before;
  assert.ok(took < 20_000, `${took} bytes`);
  await mia.post('/tagged', { json: { title: 'Two', memberIds: [4], diaryIds: [7] } });
  await eve.post('/tagged', { json: { title: 'Three', diaryIds: [7, 8] } });
  const titles = async (ask: typeof mia, id: number): Promise<string> =>
    Object((await ask.get(`/diaries/${id}?embed=tagged`)).json).tagged.map(({ title }: any) => title).join();
  assert.deepEqual([await titles(mia, 7), await titles(mia, 9)], ['One,Two', 'One']);
  assert.deepEqual([await titles(eve, 7), await titles(eve, 8)], ['One,Three', 'One,Three']);
  assert.deepEqual([await titles(bob, 7), await titles(bob, 8)], ['One,Two', 'One']);

  // Beyond some records that refer, what names the caller is looked through once for all parents.
  const many = Array.from({ length: 250 }, (_, at) =>
    ({ title: `${at}`, memberIds: at % 50 === 0 ? [3] : [], diaryIds: [5, 6] }));
  await mia.post('/tagged/batch', { json: many });
  const page = Object((await eve.get('/diaries?embed=tagged&limit=10')).json);
  const shown = page.map(({ tagged }: any) => tagged.map(({ title }: any) => title).join());
  const named = 'One,0,50,100,150,200';
  assert.deepEqual(shown, ['One', 'One', 'One', 'One', named, named, 'One,Three', 'One,Three', 'One', 'One']);
});

test('the token of a removed user creates nothing', async (t) => {
  const { admin, eve, mia } = await open(t);
  assert.equal((await eve.post('/diaries', { json: { title: 'Mine' } })).status, 201);
  assert.equal((await admin.delete('/users/3')).status, 204);
  for (const json of [{ title: 'Late' }, [{ title: 'Late' }]]) {
    const late = await eve.post(Array.isArray(json) ? '/diaries/batch' : '/diaries', { json });
    assert.deepEqual([late.status, late.code], [401, 'invalid_token']);
  }
  assert.equal((await eve.post('/boards', { json: { title: 'Late' } })).status, 401);
  assert.deepEqual((await admin.get('/diaries')).json, []);
  assert.equal((await mia.post('/diaries', { json: { title: 'Hers' } })).status, 201);
});
