import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordId } from '../../src/base/record-id.ts';
import type { CollectionDeclaration } from '../../src/collections/declaration.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { systemClock } from '../../src/base/system.ts';
import { ChangeFeed } from '../../src/features/feed/change-feed.ts';
import { makeReader } from '../../src/collections/reader.ts';
import { createApp } from '../../src/index.ts';
import { Tables } from '../../src/store/memory/table.ts';
import type { StoredRecord } from '../../src/store/store.ts';
import { startApp } from '../support/app.ts';
import type { App } from '../support/inside.ts';

const text = { kind: 'text' } as const;
const tasks = declareCollection({
  name: 'tasks', singular: 'task', fields: { title: text, rank: { kind: 'integer', default: 0 } },
  access: { list: 'owner', read: 'owner' },
});
const steps = declareCollection({
  name: 'steps', singular: 'step',
  fields: { title: text, taskId: { kind: 'reference', to: 'tasks', onDelete: 'refuse' } },
  access: { read: ['owner', 'session'] },
});

/** Two members and an administrator, each as a function that sends requests. */
async function open(
  t: Parameters<typeof startApp>[0],
  collections: readonly CollectionDeclaration[] = [tasks, steps],
) {
  const opened = await startApp(t, { collections });
  const { client, signIn, withHeaders } = opened;
  const [mia, admin] = [await signIn('member'), await signIn('admin')];
  const credentials = { email: 'eve@example.org', password: 'a password for eve alone' };
  await admin.post('/users', { json: { name: 'Eve', ...credentials } });
  const tokens = await client.post('/tokens', { json: credentials });
  const authorization = `Bearer ${Object(tokens.json).access_token}`;
  const eve = withHeaders({ authorization });
  return { ...opened, mia, eve, admin, authorization };
}

test('nobody can tell that a record exists that only its owner may read', async (t) => {
  const { client, mia, eve, admin, signInBrowser } = await open(t);
  const hidden = await mia.post('/tasks', { json: { title: 'Secret', rank: 5 } });
  assert.deepEqual([hidden.status, Object(hidden.json).title], [201, 'Secret']);
  const own = await eve.post('/tasks', { json: { title: 'Public', rank: 3 } });
  const step = { title: 'First', taskId: 2 };
  assert.equal((await eve.post('/steps', { json: step })).status, 201);
  assert.equal((await mia.post('/steps', { json: { ...step, taskId: 1 } })).status, 201);

  // As for a record that is not there, whatever the request asks for.
  for (const id of [1, 99]) {
    const if1 = { 'if-match': hidden.header('etag') ?? '' };
    const answers = [
      await eve.get(`/tasks/${id}`),
      await eve.get(`/tasks/${id}`, { headers: { 'if-none-match': hidden.header('etag') ?? '' } }),
      await eve.get(`/tasks/${id}?embed=steps`),
      await eve.patch(`/tasks/${id}`, { json: { rank: 1 } }),
      await eve.patch(`/tasks/${id}`, { json: { rank: 1 }, headers: if1 }),
      await eve.put(`/tasks/${id}`, { json: { title: 'X' } }),
      await eve.delete(`/tasks/${id}`),
      await eve.delete(`/tasks/${id}`, { headers: { 'if-match': '"x"' } }),
    ];
    for (const { status, code } of answers) assert.deepEqual([status, code], [404, 'not_found']);
    const refers = await eve.post('/steps', { json: { title: 'Mine', taskId: id } });
    assert.deepEqual([refers.status, Object(refers.json).errors[0].code], [422, 'no_such_record']);
  }
  const queries = [
    '', '?limit=10', '?sort=-rank', '?sort=title&limit=1', '?rank:gte=0', '?id=1', '?id=1,2',
    '?id:in=1,2', '?q=secret', '?offset=0&limit=5', '?limit=5&offset=1', '?or=(id:eq:1,rank:eq:5)', '?owner=me',
    '?embed=steps', '?limit=2&embed=steps',
  ];
  for (const query of queries) {
    const list = await eve.get(`/tasks${query}`, { headers: { prefer: 'count=exact' } });
    assert.equal(list.status === 400 ? 200 : list.status, 200, query);
    assert.doesNotMatch(list.body, /Secret/, query);
    assert.ok(!(Number(list.header('x-total-count')) > 1), query);
  }
  assert.deepEqual((await eve.get('/tasks?sort=-rank')).json, [own.json]);
  assert.deepEqual((await admin.get('/tasks')).json, [hidden.json, own.json]);
  assert.equal((await client.get('/tasks')).status, 401);

  // Embedded arrays and references.
  const embedded = await eve.get('/steps?embed=taskId&limit=9');
  assert.doesNotMatch(embedded.body, /Secret/);
  assert.equal(Object(embedded.json).length, 1);
  const browser = await signInBrowser('member');
  assert.equal(Object((await browser.get('/steps?embed=taskId')).json).length, 2);
  assert.equal(Object((await browser.get('/tasks/1?embed=steps')).json).steps.length, 1);
  assert.deepEqual(Object((await browser.get('/steps/1?embed=taskId')).json).task, undefined);
  // A caller who may read the record but not change it gets 403.
  assert.equal((await browser.patch('/steps/1', { json: { title: 'X' } })).code, 'not_owner');
  assert.equal((await mia.patch('/steps/1', { json: { title: 'X' } })).code, 'not_found');
});

test('users cannot remove a record that they may not read, even their own', async (t) => {
  const letters = declareCollection({
    name: 'letters', singular: 'letter', fields: { title: text }, access: { list: 'admin', read: 'admin' },
  });
  const { signIn } = await startApp(t, { collections: [letters] });
  const [mia, admin] = [await signIn('member'), await signIn('admin')];
  await admin.post('/letters', { json: { title: 'Of others' } });
  await mia.post('/letters', { json: { title: 'Own' } });
  for (const id of [1, 2, 99]) assert.equal((await mia.delete(`/letters/${id}`)).code, 'not_found', String(id));
  assert.equal((await admin.get('/letters/2')).status, 200);
});

test('a removal that hidden records prevent does not reveal their number', async (t) => {
  const { mia, admin } = await open(t);
  await mia.post('/tasks', { json: { title: 'Mine' } });
  await mia.post('/steps', { json: { title: 'Seen', taskId: 1 } });
  const detailOf = async (): Promise<string> => String(Object((await mia.delete('/tasks/1')).json).detail);
  assert.match(await detailOf(), /1 record refers to it in steps$/);
  await admin.post('/steps', { json: { title: 'Hidden', taskId: 1 } });
  assert.match(await detailOf(), /: records refer to it in steps$/);
});

test('embedded records are found by the shorter index, however many other records refer', async (t) => {
  const tables = new Tables();
  const keysOf = (name: string) => (record: StoredRecord) => Object(record)[name];
  const groups = { taskId: keysOf('taskId'), ownerId: keysOf('ownerId') };
  const records = tables.add({ name: 'steps', parse: (record) => record, groups });
  const reads = { ownerId: 0, taskId: 0 };
  const counted = (name: keyof typeof reads, value: number) => ({
    [name]: { enumerable: true, get: () => ((reads[name] += 1), value) },
  });
  // Of task 5 eve has 2,000 steps, and mia 3; of task 6 eve has one, and mia 1,000.
  for (const [ownerId, taskId, count] of [[3, 5, 2000], [3, 6, 1], [2, 5, 3], [2, 6, 1000]] as const)
    for (let made = 0; made < count; made += 1) {
      const values = { ...counted('ownerId', ownerId), ...counted('taskId', taskId) };
      records.load(Object.defineProperties({ id: records.nextId, revision: 1 }, values));
    }
  const access = { list: 'owner', read: 'owner' };
  const found = (userId: number, taskId: number, most = 100): object => {
    const caller = { kind: 'bearer', userId, role: 'member', issuedAt: 0 } as const;
    const reader = makeReader({ records, access }, caller, 'list');
    Object.assign(reads, { ownerId: 0, taskId: 0 });
    return { found: reader.members('taskId', recordId(taskId), most).length, ...reads };
  };
  // Mia has 1,003 steps, which are fewer than the 2,003 of task 5.
  assert.deepEqual(found(2, 5), { found: 3, taskId: 1003, ownerId: 3 });
  assert.deepEqual(found(2, 5, 2), { found: 2, taskId: 2, ownerId: 2 });
  // 1,001 are of task 6. One of them is hidden; or all but one.
  assert.deepEqual(found(2, 6), { found: 100, taskId: 0, ownerId: 101 });
  assert.deepEqual(found(3, 6), { found: 1, taskId: 0, ownerId: 1001 });

  const { mia, eve } = await open(t);
  for (const ask of [mia, mia, eve]) await ask.post('/tasks', { json: { title: 'Task' } });
  await mia.post('/steps', { json: { title: 'Step', taskId: 1 } });
  const steps = async (): Promise<number[]> =>
    Object((await mia.get('/tasks?embed=steps&limit=5')).json).map((task: object) => Object(task).steps.length);
  assert.deepEqual(await steps(), [1, 0]);
  await mia.patch('/steps/1', { json: { taskId: 2 } });
  assert.deepEqual(await steps(), [0, 1]);
  await mia.delete('/steps/1');
  assert.deepEqual(await steps(), [0, 0]);
});

test('entity tags reveal nothing about hidden records', async (t) => {
  const { mia, eve } = await open(t);
  await eve.post('/tasks', { json: { title: 'Own' } });
  await eve.post('/steps', { json: { title: 'Own', taskId: 1 } });
  const targets = ['/tasks/1', '/tasks/1?embed=steps', '/steps/1?embed=taskId'];
  const tags = async (ask: typeof eve): Promise<(string | undefined)[]> => {
    const found: (string | undefined)[] = [];
    for (const target of targets) found.push((await ask.get(target)).header('etag'));
    return found;
  };
  const before = await tags(eve);
  for (const [index, target] of targets.entries()) {
    const tag = before[index] ?? '';
    assert.notEqual(tag, '', target);
    assert.equal((await eve.get(target, { headers: { 'if-none-match': tag } })).status, 304, target);
  }
  await mia.post('/tasks', { json: { title: 'Other' } });
  await mia.post('/steps', { json: { title: 'Other', taskId: 2 } });
  assert.deepEqual(await tags(eve), before);
  for (const query of ['', '?limit=5', '?limit=5&embed=steps', '?limit=5&offset=0'])
    assert.equal((await eve.get(`/tasks${query}`)).header('etag'), undefined, 'it would depend on the caller');
  await eve.patch('/steps/1', { json: { title: 'Changed' } });
  const after = await tags(eve);
  assert.ok(after.every((tag, index) => index === 0 ? tag === before[0] : tag !== before[index]), String(after));
});

/** Follows the changes of `app` until the returned function is called, which returns the events. */
function follow(app: App, authorization: string, since: string): () => Promise<string[]> {
  const controller = new AbortController();
  let stream = '';
  const reply = app.inject({
    target: `/changes?since=${since}`, fields: { authorization }, signal: controller.signal,
    onPiece: (piece) => void (stream += piece),
  });
  return async () => {
    while (!stream.includes('"The end"')) await new Promise(setImmediate);
    controller.abort();
    await reply.catch(() => undefined);
    return [...stream.matchAll(/event: (\w+)\ndata: (.*)\n/g)].map(([, event, data]) => `${event} ${data}`);
  };
}

test('the feed shows what a caller may read, before and after', async (t) => {
  const { app, mia, eve, authorization } = await open(t);
  const mine = follow(app, authorization, 'x');
  await mia.post('/tasks', { json: { title: 'Secret' } });
  await mia.patch('/tasks/1', { json: { title: 'Secret, too' } });
  await eve.post('/tasks', { json: { title: 'Own' } });
  await eve.patch('/tasks/2', { json: { title: 'Changed' } });
  await mia.delete('/tasks/1');
  await eve.delete('/tasks/2');
  await eve.post('/items', { json: { name: 'The end', price: 1 } });
  const own = { title: 'Own', rank: 0 };
  const of = (id: number, record?: object) => JSON.stringify({ collection: 'tasks', id, ...(record && { record }) });
  assert.deepEqual(await mine(), [
    'reset {}',
    `created ${of(2, { id: 2, ...own })}`,
    `replaced ${of(2, { id: 2, ...own, title: 'Changed' })}`,
    `removed ${of(2)}`,
    'created {"collection":"items","id":1,"record":{"id":1,"name":"The end","price":1}}',
  ]);
});

test('the feed follows the users that a record names, change by change', async (t) => {
  const memberIds = { kind: 'list', of: { kind: 'reference', to: 'users', onDelete: 'clear' }, default: [] } as const;
  const access = { list: ['owner', 'memberIds'], read: ['owner', 'memberIds'], patch: ['owner', 'memberIds'] };
  const boards = declareCollection({ name: 'boards', fields: { title: text, memberIds }, access });
  const { app, mia, eve, admin, authorization } = await open(t, [boards]);
  const mine = follow(app, authorization, 'x');
  await mia.post('/boards', { json: { title: 'Hers' } });
  await mia.patch('/boards/1', { json: { memberIds: [3] } });
  await eve.patch('/boards/1', { json: { title: 'Theirs' } });
  await eve.patch('/boards/1', { json: { memberIds: [] } });
  await mia.patch('/boards/1', { json: { title: 'Hers again' } });
  await mia.post('/boards/batch', { json: [{ title: 'A', memberIds: [3] }, { title: 'B', memberIds: [2] }] });
  await mia.delete('/boards/2');
  await eve.post('/boards', { json: { title: 'Own', memberIds: [2] } });
  await admin.delete('/users/2');
  await eve.post('/items', { json: { name: 'The end', price: 1 } });
  const events = (await mine()).map((event) => event.replace('"collection":"boards",', ''));
  assert.deepEqual(events, [
    'reset {}',
    'created {"id":1,"record":{"id":1,"title":"Hers","memberIds":[3]}}',
    'replaced {"id":1,"record":{"id":1,"title":"Theirs","memberIds":[3]}}',
    'removed {"id":1}',
    'created {"id":2,"record":{"id":2,"title":"A","memberIds":[3]}}',
    'removed {"id":2}',
    'created {"id":4,"record":{"id":4,"title":"Own","memberIds":[2]}}',
    'replaced {"id":4,"record":{"id":4,"title":"Own","memberIds":[]}}',
    'created {"collection":"items","id":1,"record":{"id":1,"name":"The end","price":1}}',
  ]);
});

test('changes that a listener may not see send it only the id of the last commit', async (t) => {
  let publish: (changes: readonly object[]) => void = () => undefined;
  const store = { sequence: 0, epoch: 'e', onPublished: (listener: typeof publish) => void (publish = listener) };
  const feed = new ChangeFeed(Object(store), systemClock, [tasks]);
  t.after(() => feed.close());
  const principal = { kind: 'bearer', userId: 2, role: 'member', issuedAt: 0 } as const;
  const { signal } = new AbortController();
  const asked = { principal, caller: 'eve', signal, since: undefined, collections: undefined };
  const stream = feed.follow({ ...asked, isAdmitted: () => true })[Symbol.asyncIterator]();
  assert.match(String((await stream.next()).value), /id: e-0\n\n$/);
  const owners = [1, 2, 1, 1, 2, 1, 1];
  for (const [index, ownerId] of owners.entries()) {
    const [id, sequence] = [index + 1, index + 1];
    const record = { id, revision: sequence, ownerId, title: 'A task', rank: 0 };
    publish([{ collection: { name: 'tasks' }, id, sequence, before: undefined, record }]);
  }
  const text = String((await stream.next()).value);
  assert.deepEqual(text.match(/"id":\d|id: .*/g), [
    '"id":2', '"id":2', 'id: e-2', '"id":5', '"id":5', 'id: e-5', 'id: e-7',
  ]);
});

test('a program that acts as a user sees what that user may read', async (t) => {
  const app = await createApp({ collections: [tasks], scryptCost: 1 });
  t.after(() => app.close());
  const ids: number[] = [];
  for (const name of ['mia', 'eve']) {
    const user = await app.users.create({ name, email: `${name}@example.org`, role: 'member' });
    ids.push(Number(user['id']));
    await app.collection('tasks').create({ title: name }, { as: Number(user['id']) });
  }
  const [owner = 0, other = 0] = ids;
  const program = app.collection('tasks');
  assert.equal(program.get(1, { as: other }), undefined);
  assert.equal(Object(program.get(1, { as: owner })).title, 'mia');
  assert.deepEqual([program.count(), program.count({ as: other })], [2, 1]);
  assert.deepEqual((await program.list({ as: other, total: true })).total, 1);
  await assert.rejects(program.change(1, { title: 'X' }, { as: other }), { code: 'not_found' });
  await assert.rejects(program.remove(1, { as: other }), { code: 'not_found' });
  const seen = await app.write((tx) => tx.collection('tasks').get(1), { as: other });
  assert.equal(seen, undefined);
});
