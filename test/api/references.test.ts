import assert from 'node:assert/strict';
import { join } from 'node:path';
import { syncBuiltinESMExports } from 'node:module';
import { test, type TestContext } from 'node:test';
import v8 from 'node:v8';
import { limits } from '../../src/base/limits.ts';
import type { Change, Read } from '../../src/programs/hooks.ts';
import { defineCollection, type Shape } from '../../src/index.ts';
import { startApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { createApp } from '../support/inside.ts';

const declare = (name: string, singular: string, fields: Shape, more = {}) =>
  defineCollection({ name, singular, fields, ...more });
const title = { kind: 'text', min: 1 } as const;

const authors = declare('authors', 'author', {
  name: title,
  email: { kind: 'email', unique: true, optional: true },
});
const posts = declare('posts', 'post', {
  title,
  slug: { kind: 'text', unique: true, optional: true },
  authorId: { kind: 'reference', to: 'authors' },
  editorId: { kind: 'reference', to: 'authors', onDelete: 'clear', optional: true },
  tagIds: { kind: 'list', of: { kind: 'reference', to: 'tags', onDelete: 'clear' }, optional: true },
}, { timestamps: true });
const comments = declare('comments', 'comment', {
  body: { kind: 'text', multiline: true, max: 100_000 },
  postId: { kind: 'reference', to: 'posts', onDelete: 'remove' },
  parentId: { kind: 'reference', to: 'comments', onDelete: 'remove', optional: true },
  words: { kind: 'list', of: { kind: 'text', min: 1, max: 5 }, max: 3, default: [] },
});
const tags = declare('tags', 'tag', { name: { kind: 'text', unique: true } });
const secrets = declare('secrets', 'secret', { name: title }, { access: { read: 'admin' } });
const notes = declare('notes', 'note', {
  secretId: { kind: 'reference', to: 'secrets', onDelete: 'clear', optional: true },
});
const collections = [authors, posts, comments, tags, secrets, notes];

/** A blog: author 1 wrote post 1, edited by author 2, with the tags 1 and 2 and the comments 1 to 3. */
async function open(t: TestContext, options = {}) {
  const fixture = await startApp(t, { withoutPort: true, collections, ...options });
  const [admin, member] = [await fixture.signIn('admin'), await fixture.signIn('member')];
  const make = async (target: string, json: object): Promise<void> => {
    const { status, body } = await admin.post(target, { json });
    assert.equal(status, 201, body);
  };
  await make('/authors/batch', [{ name: 'Ada', email: 'ada@example.org' }, { name: 'Bo' }, { name: 'Cy' }]);
  await make('/tags/batch', [{ name: 'red' }, { name: 'blue' }]);
  await make('/posts', { title: 'One', slug: 'one', authorId: 1, editorId: 2, tagIds: [1, 2] });
  await make('/comments', { body: 'First\n\tline', postId: 1, words: ['a', 'b'] });
  await make('/comments', { body: 'Second', postId: 1, parentId: 1, words: ['b'] });
  await make('/comments', { body: 'Third', postId: 1, parentId: 2 });
  const get = async (target: string): Promise<unknown> => (await admin.get(target)).json;
  const idsOf = async (target: string): Promise<number[]> => Object(await get(target)).map(({ id }: any) => id);
  return { ...fixture, admin, member, get, idsOf };
}

const issuesOf = ({ status, json }: { status: number; json: unknown }) =>
  [status, ...(Object(json).errors ?? []).map((each: any) => `${each.pointer} ${each.code}`)];

test('a reference to no record, or to one that the caller may not read, is refused with its place', async (t) => {
  const { admin, member, get } = await open(t);
  const bad = { title: 'x', authorId: 9, editorId: 0, tagIds: [1, 7, 'x', -1] };
  assert.deepEqual(issuesOf(await admin.post('/posts', { json: bad })),
    [422, '/editorId too_small', '/tagIds/2 wrong_type', '/tagIds/3 too_small']);
  const missing = { title: 'x', authorId: 9, tagIds: [1, 7] };
  assert.deepEqual(issuesOf(await admin.post('/posts', { json: missing })),
    [422, '/authorId no_such_record', '/tagIds/1 no_such_record']);
  const two = [{ body: '', postId: 1 }, { body: '', postId: 2 }];
  assert.deepEqual(issuesOf(await admin.post('/comments/batch', { json: two })), [422, '/1/postId no_such_record']);
  const moved = await admin.patch('/comments/1', { json: { postId: 5 } });
  assert.deepEqual(issuesOf(moved), [422, '/postId no_such_record']);
  assert.deepEqual(await get('/comments/1'), { id: 1, body: 'First\n\tline', postId: 1, words: ['a', 'b'] });
  // A record that is there and one that is not are refused alike.
  await admin.post('/secrets', { json: { name: 'x' } });
  const refer = (secretId: number) => member.post('/notes', { json: { secretId } });
  const [there, absent] = [await refer(1), await refer(2)];
  assert.deepEqual([issuesOf(there), Object(there.json).errors], [issuesOf(absent), Object(absent.json).errors]);
  assert.equal((await admin.post('/notes', { json: { secretId: 1 } })).status, 201);
});

test('a removal is refused, clears a field, removes an element, or removes referring records', async (t) => {
  const seen: string[] = [];
  const hooks = {
    beforeWrite({ operation, collection, id }: Change): undefined {
      seen.push(`${operation} ${collection} ${id}`);
    },
  };
  const { admin, app, get, idsOf } = await open(t, { hooks });
  const refused = await admin.delete('/authors/1');
  assert.deepEqual([refused.status, refused.code, Object(refused.json).detail],
    [409, 'still_referenced', 'Cannot remove the record: 1 record refers to it in posts']);
  const { updatedAt } = Object(await get('/posts/1'));
  assert.equal((await admin.delete('/authors/2')).status, 204);
  assert.equal((await admin.delete('/tags/1')).status, 204);
  const post = Object(await get('/posts/1'));
  assert.deepEqual([post.editorId, post.tagIds, post.updatedAt >= updatedAt], [undefined, [2], true]);
  seen.length = 0;
  const { commits } = app.store.status();
  assert.equal((await admin.delete('/comments/2')).status, 204);
  assert.deepEqual(seen, ['remove comments 3', 'remove comments 2']);
  assert.deepEqual(await idsOf('/comments'), [1]);
  assert.equal((await admin.delete('/posts/1')).status, 204);
  assert.deepEqual(await get('/comments'), []);
  assert.equal(app.store.status().commits, commits + 2);
  assert.equal((await admin.delete('/authors/1')).status, 204);
});

test('a refused removal does not reveal the number of records that its caller may not list', async (t) => {
  const fields: Shape = { authorId: { kind: 'reference', to: 'authors' } };
  const votes = declare('votes', 'vote', fields, { access: { list: 'admin' } });
  const { admin, member } = await open(t, { collections: [...collections, votes] });
  assert.equal((await member.post('/authors', { json: { name: 'Di' } })).status, 201);
  const removal = async (ask: typeof admin) => Object((await ask.delete('/authors/4')).json).detail;
  for (const counted of ['1 record refers', '2 records refer']) {
    assert.equal((await admin.post('/votes', { json: { authorId: 4 } })).status, 201);
    assert.equal(await removal(member), 'Cannot remove the record: records refer to it in votes');
    assert.equal(await removal(admin), `Cannot remove the record: ${counted} to it in votes`);
  }
});

test('a record that refers twice is counted once', async (t) => {
  const to = { kind: 'reference', to: 'authors' } as const;
  const duels = declare('duels', 'duel', { authorId: to, rivalId: to });
  const { admin } = await open(t, { collections: [...collections, duels] });
  await admin.post('/duels', { json: { authorId: 3, rivalId: 3 } });
  const { detail } = Object((await admin.delete('/authors/3')).json);
  assert.equal(detail, 'Cannot remove the record: 1 record refers to it in duels');
});

test('a hook that refuses to remove a referring record refuses the whole removal', async (t) => {
  const hooks = {
    beforeWrite({ operation, id }: Change): undefined {
      if (operation === 'remove' && id === 3) throw new Error('comment 3 stays');
    },
  };
  const { admin, idsOf } = await open(t, { hooks });
  const refused = await admin.delete('/posts/1');
  assert.deepEqual([refused.status, refused.code], [422, 'write_refused']);
  assert.deepEqual([await idsOf('/posts'), await idsOf('/comments')], [[1], [1, 2, 3]]);
});

test('circular references and several paths to a record are removed once, in any order', async (t) => {
  const { admin, get } = await open(t);
  await admin.patch('/comments/1', { json: { parentId: 3 } });
  assert.equal((await admin.delete('/comments/2')).status, 204);
  assert.deepEqual(await get('/comments'), []);
  // A record that would prevent the removal does not prevent it if it is removed itself.
  const parts: Shape = {
    wholeId: { kind: 'reference', to: 'wholes', onDelete: 'remove' },
    otherId: { kind: 'reference', to: 'wholes' },
  };
  const wholes = declare('wholes', 'whole', { name: title });
  const other = await startApp(t, { withoutPort: true, collections: [declare('parts', 'part', parts), wholes] });
  const ask = await other.signIn('admin');
  await ask.post('/wholes/batch', { json: [{ name: 'a' }, { name: 'b' }] });
  await ask.post('/parts', { json: { wholeId: 1, otherId: 1 } });
  await ask.post('/parts', { json: { wholeId: 1, otherId: 2 } });
  assert.equal((await ask.delete('/wholes/2')).code, 'still_referenced');
  assert.equal((await ask.delete('/wholes/1')).status, 204);
  assert.equal((await ask.get('/parts')).body, '[]');
});

test('a removal that would remove too many records is refused, and nothing changes', async (t) => {
  const { admin, app } = await open(t);
  const many = Array.from({ length: 1000 }, () => ({ body: '', postId: 1 }));
  for (let done = 0; done < limits.referrersMax; done += 1000) await admin.post('/comments/batch', { json: many });
  const refused = await admin.delete('/posts/1');
  assert.deepEqual([refused.status, refused.code], [409, 'still_referenced']);
  assert.match(refused.body, /over 10000 records depend on it/);
  assert.equal(app.store.status().collections.find(({ name }) => name === 'comments')?.records, 10_003);
});

test('a record that refers to all removed records is cleared at once', async (t) => {
  const noteIds = {
    kind: 'list', of: { kind: 'reference', to: 'notes', onDelete: 'clear' }, default: [], max: 100_000,
  } as const;
  const { signIn } = await startApp(t, { collections: [
    declare('boards', 'board', { title }),
    declare('notes', 'note', { boardId: { kind: 'reference', to: 'boards', onDelete: 'remove' } }),
    declare('lists', 'list', { noteIds }),
  ] });
  const admin = await signIn('admin');
  /** Returns the processor time for removing a board with 4,000 notes if a list has `count` references to them. */
  const removal = async (count: number): Promise<number> => {
    const { id: boardId } = Object((await admin.post('/boards', { json: { title: 'x' } })).json);
    const ids: number[] = [];
    while (ids.length < 4000) {
      const json = Array.from({ length: 1000 }, () => ({ boardId }));
      const made = await admin.post('/notes/batch', { json });
      ids.push(...Object(made.json).map(({ id }: { id: number }) => id));
    }
    const all = Array.from({ length: count }, (_, at) => ids[at % ids.length]);
    const list = await admin.post('/lists', { json: { noteIds: all } });
    assert.equal(list.status, 201);
    const begun = process.cpuUsage();
    assert.equal((await admin.delete(`/boards/${boardId}`)).status, 204);
    const { user } = process.cpuUsage(begun);
    assert.deepEqual(Object((await admin.get(`/lists/${Object(list.json).id}`)).json).noteIds, []);
    return user;
  };
  const [few, many] = [await removal(4), await removal(90_000)];
  assert.ok(many < 5 * few + 500_000, `${few} µs beside 4 references, ${many} µs beside 90,000`);
});

test('a list filtered by a reference, or by an element of a list, has the records that refer', async (t) => {
  const { admin, idsOf } = await open(t);
  await admin.post('/posts', { json: { title: 'Two', authorId: 1, tagIds: [2] } });
  await admin.post('/comments', { json: { body: 'Fourth', postId: 2, words: ['c', 'b', 'b'] } });
  assert.deepEqual(await idsOf('/comments?postId=1'), [1, 2, 3]);
  assert.deepEqual(await idsOf('/comments?postId=1&sort=-id&limit=2'), [3, 2]);
  assert.deepEqual(await idsOf('/comments?postId=1&sort=-postId,-id'), [3, 2, 1]);
  assert.deepEqual(await idsOf('/comments?postId=2'), [4]);
  assert.deepEqual(await idsOf('/comments?postId=9'), []);
  assert.deepEqual(await idsOf('/comments?words:has=b'), [1, 2, 4]);
  assert.deepEqual(await idsOf('/posts?tagIds:has=2'), [1, 2]);
  assert.deepEqual(await idsOf('/posts?tagIds:has=1&authorId=1'), [1]);
  for (const query of ['words=b', 'words:contains=b', 'tagIds:has=x', 'postId:gt=1']) {
    assert.equal((await admin.get(`/comments?${query}`)).code, 'invalid_query', query);
  }
  await admin.patch('/comments/4', { json: { postId: 1 } });
  assert.deepEqual([await idsOf('/comments?postId=2'), await idsOf('/comments?postId=1')], [[], [1, 2, 3, 4]]);
  const first = await admin.get('/comments?postId=1&limit=1', { headers: { prefer: 'count=exact' } });
  assert.equal(first.header('x-total-count'), '4');
});

test('a unique value is refused for a second record, e-mail addresses without regard to case', async (t) => {
  const { admin } = await open(t);
  const twice = await admin.post('/authors', { json: { name: 'Eve', email: 'ADA@example.org' } });
  assert.deepEqual([twice.code, ...issuesOf(twice)], ['not_unique', 409, '/email not_unique']);
  assert.equal((await admin.post('/authors', { json: { name: 'Eve' } })).status, 201);
  assert.deepEqual(issuesOf(await admin.post('/tags/batch', { json: [{ name: 'x' }, { name: 'x' }] })),
    [409, '/1/name not_unique']);
  assert.deepEqual(issuesOf(await admin.patch('/tags/1', { json: { name: 'blue' } })), [409, '/name not_unique']);
  assert.deepEqual(issuesOf(await admin.patch('/tags/1', { json: { name: '' } })), [200]);
  assert.deepEqual(issuesOf(await admin.post('/tags', { json: { name: '' } })), [409, '/name not_unique']);
  assert.equal((await admin.put('/authors/1', { json: { name: 'Ada', email: 'Ada@example.org' } })).status, 200);
  await admin.delete('/posts/1');
  await admin.delete('/tags/1');
  assert.equal((await admin.post('/tags', { json: { name: 'red' } })).status, 201);
  const race = () => admin.post('/tags', { json: { name: 'race' } });
  const results = await Promise.all(Array.from({ length: 20 }, race));
  assert.equal(results.filter(({ status }) => status === 201).length, 1);
});

test('lists and texts of many lines keep their rules', async (t) => {
  const { admin, get } = await open(t);
  const post = (words: unknown) => admin.post('/comments', { json: { body: 'x', postId: 1, words } });
  assert.deepEqual(issuesOf(await post(['a', '', 'toolong', 1])), [422, '/words too_long']);
  assert.deepEqual(issuesOf(await post(['a', '', 1])), [422, '/words/1 too_short', '/words/2 wrong_type']);
  assert.deepEqual(issuesOf(await post('a')), [422, '/words wrong_type']);
  assert.deepEqual(issuesOf(await post(null)), [422, '/words wrong_type']);
  assert.deepEqual(Object((await post([])).json).words, []);
  const kept = await admin.patch('/comments/1', { json: { words: ['a', 'b'] } });
  assert.deepEqual(Object(kept.json).words, ['a', 'b']);
  assert.deepEqual(await get('/comments/1?fields=words'), { words: ['a', 'b'] });
  for (const [body, code] of [['a\u0000', 'control_character'], ['a\u202eb', 'bidi_character']]) {
    assert.deepEqual(issuesOf(await admin.patch('/comments/1', { json: { body } })), [422, `/body ${code}`]);
  }
  assert.equal((await admin.patch('/comments/1', { json: { body: 'a\r\nb\tc' } })).status, 200);
  assert.equal((await admin.patch('/posts/1', { json: { title: 'a\nb' } })).status, 422);
});

test('references, unique values and lists survive a restart', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const first = await open(t, { directory, withoutPort: false });
  await first.app.close();
  const app = await createApp({ directory, collections, scryptCost: 1, auth: 'none' });
  t.after(() => app.close());
  const ask = (method: string, target: string, json?: object) =>
    app.inject({ method, target, fields: { 'content-type': 'application/json' }, body: JSON.stringify(json) });
  assert.equal(JSON.parse((await ask('GET', '/comments?postId=1')).body).length, 3);
  assert.equal((await ask('POST', '/tags', { name: 'red' })).status, 409);
  assert.equal((await ask('DELETE', '/authors/1')).status, 409);
  assert.equal((await ask('DELETE', '/posts/1')).status, 204);
  assert.equal((await ask('GET', '/comments')).body, '[]');
});

test('a program uses a collection as requests do, and a hook reads other records', async (t) => {
  const hooks = {
    beforeWrite({ collection, operation, after }: Change, read: Read): undefined {
      if (collection !== 'comments' || operation !== 'create') return;
      const postId = Number(after?.['postId']);
      assert.equal(read.get('posts', postId)?.['title'], 'One');
      // Its own record is among them already.
      const [first] = read.referring('comments', 'postId', postId);
      assert.equal(first?.['body'], 'First\n\tline');
      if (read.referring('comments', 'postId', postId).count > 4) throw new Error('four comments are enough');
    },
  };
  const { app } = await open(t, { hooks });
  const mine = app.collection('comments');
  assert.deepEqual(mine.get(1), { id: 1, body: 'First\n\tline', postId: 1, words: ['a', 'b'] });
  assert.equal(mine.get(9), undefined);
  assert.deepEqual(await mine.create({ body: 'x', postId: 1 }), { id: 4, body: 'x', postId: 1, words: [] });
  await assert.rejects(mine.create({ body: 'x', postId: 1 }), { code: 'write_refused' });
  await assert.rejects(mine.create({ body: 1 }), { code: 'validation_failed' });
  await assert.rejects(mine.change(4, { postId: 7 }), { code: 'validation_failed' });
  assert.equal((await mine.change(4, { body: 'y' }))['body'], 'y');
  await mine.remove(1);
  await assert.rejects(mine.remove(1), { code: 'not_found' });
  assert.deepEqual((await mine.list()).records.map(({ id }) => id), [4]);
  await assert.rejects(app.collection('authors').remove(1), { code: 'still_referenced' });
  assert.throws(() => app.collection('comment'), { name: 'OptionError', message: /there are items, authors,/ });
});

test('a renamed field keeps its values, and never gets 304 for the earlier shape', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const openWith = (fields: Shape) =>
    createApp({ directory, auth: 'none', collections: [declare('books', 'book', fields)] });
  const fields = { 'content-type': 'application/json' };
  const first = await openWith({ title, pages: { kind: 'integer' } });
  await first.inject({ method: 'POST', target: '/books', fields, body: '{"title":"Emma","pages":474}' });
  const tags: string[] = [];
  for (const target of ['/books', '/books/1']) tags.push((await first.inject({ target })).fields.get('etag') ?? '');
  await first.close();
  const renamed: Shape = { name: { ...title, renamedFrom: 'title' }, pages: { kind: 'integer' } };
  for (let round = 0; round < 2; round += 1) {
    const app = await openWith(renamed);
    const known = { 'if-none-match': tags.join(', ') };
    assert.equal((await app.inject({ target: '/books', fields: known })).body, '[{"id":1,"name":"Emma","pages":474}]');
    assert.equal((await app.inject({ target: '/books/1', fields: known })).body, '{"id":1,"name":"Emma","pages":474}');
    if (round === 0) await app.inject({ method: 'PATCH', target: '/books/1', fields, body: '{"pages":475}' });
    if (round === 0) await app.inject({ method: 'PATCH', target: '/books/1', fields, body: '{"pages":474}' });
    await app.close();
  }
  const clash = { title, name: { ...title, renamedFrom: 'title' } };
  assert.throws(() => declare('books', 'book', clash), { message: /must not be "title", the name of another field/ });
});

test('a field that was an additional member has its stored values', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const openWith = (fields: Shape, additional: boolean, timestamps = false) => createApp({
    directory, auth: 'none',
    collections: [defineCollection({ name: 'books', singular: 'book', fields, additional, timestamps })],
  });
  const fields = { 'content-type': 'application/json' };
  const first = await openWith({ title }, true);
  const body = '{"title":"Emma","pages":474,"Year":1815,"ownerId":7,"revision":8}';
  await first.inject({ method: 'POST', target: '/books', fields, body });
  const times = { createdAt: '2026-01-31T12:00:00.000Z', updatedAt: '2026-01-31T13:00:00.000Z' };
  const timed = JSON.stringify({ title: 'B', pages: 1, ...times });
  await first.inject({ method: 'POST', target: '/books', fields, body: timed });
  await first.close();
  const pages = { kind: 'integer', default: 0 } as const;
  const year = { kind: 'integer', optional: true, renamedFrom: 'Year' } as const;
  const shown = { id: 1, title: 'Emma', pages: 474, year: 1815 };
  for (const additional of [true, false, true]) {
    const app = await openWith({ title, pages, year }, additional);
    const get = async (target: string) => JSON.parse((await app.inject({ target })).body);
    const others = additional ? { ownerId: 7, revision: 8 } : {};
    assert.deepEqual(await get('/books/1'), { ...shown, ...others });
    assert.deepEqual(await get('/books?pages:gte=400&fields=year'), [{ year: 1815 }]);
    await app.inject({ method: 'PATCH', target: '/books/1', fields, body: '{"title":"Persuasion"}' });
    await app.inject({ method: 'PATCH', target: '/books/1', fields, body: '{"title":"Emma"}' });
    assert.deepEqual(await get('/books/1'), { ...shown, ...others });
    // The next start would take it for the year, whatever its type.
    for (const [method, target] of [['POST', '/books'], ['PUT', '/books/1'], ['PATCH', '/books/1']] as const) {
      const reply = await app.inject({ method, target, fields, body: '{"title":"Emma","Year":"1815"}' });
      assert.deepEqual([reply.status, JSON.parse(reply.body).errors[0].pointer], [422, '/Year']);
    }
    await app.close();
  }
  const app = await openWith({ title, pages }, true, true);
  const { body: shownTimed } = await app.inject({ target: '/books/2' });
  assert.equal(shownTimed, JSON.stringify({ id: 2, ...JSON.parse(timed) }), 'each member once');
  await app.close();
  // Values written while the field was not declared are newer than its earlier ones.
  const without = await openWith({ title }, true);
  await without.inject({ method: 'PATCH', target: '/books/1', fields, body: '{"pages":475}' });
  await without.close();
  const again = await openWith({ title, pages }, true);
  assert.equal(JSON.parse((await again.inject({ target: '/books/1' })).body).pages, 475);
  await again.close();
  const others = { title, pages: { kind: 'text', optional: true } } as const;
  await assert.rejects(openWith(others, true), /"pages" that is not of kind text/);
});

test('a removal that would change more text than fits into memory is refused', async (t) => {
  const groups = declare('groups', 'group', { name: title });
  const holders = declare('holders', 'holder', {
    groupId: { kind: 'reference', to: 'groups', onDelete: 'clear', optional: true },
    text: { kind: 'text', max: 100_000, default: '' },
  });
  const { signIn } = await startApp(t, { withoutPort: true, collections: [groups, holders] });
  const admin = await signIn('admin');
  await admin.post('/groups', { json: { name: 'One' } });
  const make = () => admin.post('/holders', { json: { groupId: 1, text: 'x'.repeat(99_000) } });
  for (let made = 0; made < 12; made += 1) assert.equal((await make()).status, 201);
  const ask = () => admin.delete('/groups/1');
  const heap = t.mock.method(v8, 'getHeapStatistics', () => ({ heap_size_limit: 64 * 1024 * 1024 }));
  syncBuiltinESMExports();
  t.after(() => {
    heap.mock.restore();
    syncBuiltinESMExports();
  });
  // Of 32 MiB, 1 MiB.
  const refused = await ask();
  assert.deepEqual([refused.status, refused.code], [409, 'still_referenced']);
  assert.match(refused.body, /too long; remove some of them first/);
  assert.equal((await admin.delete('/holders/12')).status, 204);
  assert.equal((await admin.delete('/holders/11')).status, 204);
  assert.equal((await ask()).status, 204);
});
