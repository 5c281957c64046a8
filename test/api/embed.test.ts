import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { localAdministrator } from '../../src/auth/access.ts';
import { limits } from '../../src/base/limits.ts';
import { makeRegistry } from '../../src/collections/registry.ts';
import type { Entry } from '../../src/collections/declared.ts';
import { parseQuery } from '../../src/http/query.ts';
import { defineCollection, type Shape } from '../../src/index.ts';
import { ListPool } from '../../src/lists/list-pool.ts';
import { references } from '../../src/options/references/references.ts';
import { parseListQuery } from '../../src/lists/query.ts';
import { readList, readRecord } from '../../src/lists/list.ts';
import { representationWriter } from '../../src/schema/record.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Collection } from '../../src/store/store.ts';
import { startApp } from '../support/app.ts';
import { createTickingClock } from '../support/lists.ts';
import { type Generator, createGenerator } from '../support/basics.ts';

const declare = (name: string, singular: string, fields: Shape, more = {}) =>
  defineCollection({ name, singular, fields, ...more });
const title = { kind: 'text', min: 1 } as const;

const authors = declare('authors', 'author', { name: title });
const posts = declare('posts', 'post', {
  title,
  authorId: { kind: 'reference', to: 'authors' },
  editorId: { kind: 'reference', to: 'authors', optional: true, onDelete: 'clear' },
  tagIds: { kind: 'list', of: { kind: 'reference', to: 'tags', onDelete: 'clear' }, optional: true },
  alsoIds: { kind: 'list', of: { kind: 'reference', to: 'posts', onDelete: 'clear' }, default: [] },
  // A field named like a collection that refers to this one.
  notes: { kind: 'integer', optional: true },
});
const comments = declare('comments', 'comment', {
  body: { kind: 'text', multiline: true, max: 100_000 },
  postId: { kind: 'reference', to: 'posts', onDelete: 'remove' },
  parentId: { kind: 'reference', to: 'comments', onDelete: 'remove', optional: true },
});
const tags = declare('tags', 'tag', {
  name: title,
  parent: title,
  parentId: { kind: 'reference', to: 'tags', optional: true },
});
const notes = declare('notes', 'note', { postId: { kind: 'reference', to: 'posts' } }, { access: { list: 'admin' } });
const collections = [authors, posts, comments, tags, notes];

/** Author 1 wrote the posts 1 and 2; author 2 edited the first, which has the tags 2 and 1 and the comments 1 to 3. */
async function open(t: TestContext, options = {}) {
  const fixture = await startApp(t, { withoutPort: true, collections, ...options });
  const [admin, member] = [await fixture.signIn('admin'), await fixture.signIn('member')];
  const make = async (target: string, json: object): Promise<void> => {
    const { status, body } = await admin.post(target, { json });
    assert.equal(status, 201, body);
  };
  await make('/authors/batch', [{ name: 'Ada' }, { name: 'Bo' }]);
  await make('/tags/batch', [{ name: 'red', parent: 'x' }, { name: 'blue', parent: 'x' }]);
  await make('/posts', { title: 'One', authorId: 1, editorId: 2, tagIds: [2, 1] });
  await make('/posts', { title: 'Two', authorId: 1, alsoIds: [1] });
  await make('/comments/batch', [{ body: 'a', postId: 1 }, { body: 'b', postId: 1 }, { body: 'c', postId: 1 }]);
  await make('/comments', { body: 'd', postId: 2, parentId: 1 });
  await make('/notes', { postId: 2 });
  const get = async (target: string): Promise<any> => {
    const { status, json, body } = await admin.get(target);
    assert.equal(status, 200, body);
    return json;
  };
  return { ...fixture, admin, member, make, get };
}

test('embed adds the records that a record refers to, and those that refer to it', async (t) => {
  const { get } = await open(t);
  const one = { id: 1, title: 'One', authorId: 1, editorId: 2, tagIds: [2, 1], alsoIds: [] };
  assert.deepEqual(await get('/posts/1?embed=authorId,editorId,tagIds,comments'), {
    ...one,
    author: { id: 1, name: 'Ada' },
    editor: { id: 2, name: 'Bo' },
    tags: [{ id: 2, name: 'blue', parent: 'x' }, { id: 1, name: 'red', parent: 'x' }],
    comments: [{ id: 1, body: 'a', postId: 1 }, { id: 2, body: 'b', postId: 1 }, { id: 3, body: 'c', postId: 1 }],
  });
  // A reference that is absent adds nothing; an empty list is a list.
  const two = { id: 2, title: 'Two', authorId: 1, alsoIds: [1] };
  assert.deepEqual(await get('/posts/2?embed=editorId,tagIds,alsoIds'), { ...two, also: [one] });
  assert.deepEqual((await get('/posts/1?embed=alsoIds')).also, []);
  // A collection may refer to itself.
  assert.deepEqual(await get('/comments/1?embed=parentId,comments'),
    { id: 1, body: 'a', postId: 1, comments: [{ id: 4, body: 'd', postId: 2, parentId: 1 }] });
  assert.deepEqual((await get('/comments/4?embed=parentId')).parent, { id: 1, body: 'a', postId: 1 });
  // Two fields of posts refer to authors, and `notes` is a field of posts.
  const ofBo = await get('/authors/2?embed=posts:editorId,posts:authorId');
  assert.deepEqual([ofBo['posts:editorId'].length, ofBo['posts:authorId']], [1, []]);
  assert.deepEqual((await get('/posts/2?embed=notes:postId'))['notes:postId'], [{ id: 1, postId: 2 }]);
});

test("fields selects the record's own fields, even none of them", async (t) => {
  const { get } = await open(t);
  assert.deepEqual(await get('/posts/1?fields=title&embed=authorId'), { title: 'One', author: { id: 1, name: 'Ada' } });
  const none = await get('/posts?fields=editorId&embed=authorId,editorId&id=2');
  assert.deepEqual(none, [{ author: { id: 1, name: 'Ada' } }]);
  assert.deepEqual(await get('/posts?fields=editorId&embed=editorId&id=2'), [{}]);
});

test('lists, pages and counts embed, and a link keeps what is embedded', async (t) => {
  const { admin, get } = await open(t);
  const all = await get('/posts?embed=comments');
  assert.deepEqual(all.map((post: any) => post.comments.map(({ id }: any) => id)), [[1, 2, 3], [4]]);
  const fields = { prefer: 'count=exact' };
  const page = await admin.get('/posts?embed=authorId&sort=-title&limit=1', { headers: fields });
  assert.deepEqual([Object(page.json)[0].author.name, page.header('x-total-count')], ['Ada', '2']);
  const [, next = ''] = /<(.*)>; rel="next"/.exec(page.header('link') ?? '') ?? [];
  assert.match(next, /embed=authorId/);
  assert.deepEqual((await get(next)).map(({ id, author }: any) => [id, author.id]), [[1, 1]]);
  const last = await admin.get('/posts?embed=authorId&limit=1&offset=1');
  assert.match(last.header('link') ?? '', /embed=authorId.*rel="prev"/);
  const head = await admin.send('HEAD', '/posts?embed=comments');
  const whole = await admin.get('/posts?embed=comments');
  assert.deepEqual([head.status, head.body, head.header('etag')], [200, '', whole.header('etag')]);
});

test('a name that cannot be embedded is refused, with the names that can', async (t) => {
  const { admin, member } = await open(t);
  const bad = async (target: string): Promise<string> => {
    const { code, json } = await admin.get(target);
    assert.equal(code, 'invalid_query', target);
    return Object(json).detail;
  };
  assert.match(await bad('/authors?embed=posts'), /some of posts:authorId, posts:editorId, separated/);
  assert.match(await bad('/posts/1?embed=author'),
    /some of authorId, editorId, tagIds, alsoIds, posts, comments, notes:postId, separated/);
  // `parent` is a field of tags.
  for (const target of ['/tags?embed=parentId', '/tags?embed=posts,parentId', '/tags/1?embed=parentId'])
    assert.match(await bad(target), /"embed" cannot add what parentId refers to: the field "parent" has its name/);
  assert.match(await bad('/tags?embed=parent'), /some of posts, tags, separated/);
  for (const query of ['embed=', 'embed=comments,comments', 'embed=comments&embed=comments', 'embed=comments,']) {
    await bad(`/posts?${query}`);
    await bad(`/posts/1?${query}`);
  }
  await bad('/items?embed=posts');
  await bad('/users?embed=posts');
  for (const target of ['/posts/2?embed=notes:postId', '/posts?embed=notes:postId']) {
    const { status, code, json } = await member.get(target);
    assert.deepEqual([status, code], [403, 'insufficient_scope'], target);
    assert.match(Object(json).detail, /Cannot embed notes:postId: this caller may not list notes/);
  }
});

test('a public path embeds what is public', async (t) => {
  const [open1, closed] = ['pages', 'drafts'].map((name) => declare(name, name.slice(0, -1), {
    bookId: { kind: 'reference', to: 'books' },
  }, { access: { list: name === 'pages' ? 'public' : 'user' } }));
  const books = declare('books', 'book', { title }, { access: { list: 'public', read: 'public' } });
  assert.ok(open1 && closed);
  const { client, signIn } = await startApp(t, { withoutPort: true, collections: [books, open1, closed] });
  await (await signIn('admin')).post('/books', { json: { title: 'Emma' } });
  assert.deepEqual((await client.get('/books/1?embed=pages')).json, { id: 1, title: 'Emma', pages: [] });
  assert.equal((await client.get('/books/1?embed=drafts')).status, 403);
});

test('an entity tag covers embedded records, and matches no write', async (t) => {
  const { admin, make } = await open(t);
  const tagOf = async (target: string): Promise<string> => (await admin.get(target)).header('etag') ?? '';
  const [whole, page] = await Promise.all(['', '&limit=1'].map((more) => admin.get(`/posts?embed=comments${more}`)));
  assert.deepEqual([whole?.header('etag'), typeof page?.header('etag')], [undefined, 'string']);
  for (const target of ['/posts/1?embed=comments', '/posts?embed=comments&limit=1']) {
    const known = { 'if-none-match': await tagOf(target) };
    assert.equal((await admin.get(target, { headers: known })).status, 304, target);
    await make('/tags', { name: 'other', parent: 'x' });
    assert.equal((await admin.get(target, { headers: known })).status, 304, 'tags are not embedded');
    for (const [method, path, json] of [
      ['POST', '/comments', { body: 'new', postId: 1 }], ['PATCH', '/comments/1', { body: `${target} changed` }],
      ['PATCH', '/posts/1', { title: target }],
    ] as const) {
      const before = { 'if-none-match': await tagOf(target) };
      assert.ok((await admin.send(method, path, { json })).status < 300, path);
      assert.equal((await admin.get(target, { headers: before })).status, 200, `${target} after ${method} ${path}`);
    }
    const before = { 'if-none-match': await tagOf(target) };
    const [last] = Object((await admin.get('/comments?sort=-id&limit=1')).json);
    await admin.delete(`/comments/${last.id}`);
    assert.equal((await admin.get(target, { headers: before })).status, 200, `${target} after a removal`);
  }
  const queries = ['', '?embed=comments', '?embed=authorId', '?fields=title', '?fields=title&embed=authorId'];
  const tags = await Promise.all(queries.map((query) => tagOf(`/posts/1${query}`)));
  assert.equal(new Set(tags).size, tags.length);
  // The tag of a post with embedded comments is not a tag of the post, so a change with it is refused.
  for (const tag of tags.slice(1)) {
    const change = await admin.patch('/posts/1', { json: { title: 'Mine' }, headers: { 'if-match': tag } });
    assert.deepEqual([change.status, change.header('etag')], [412, tags[0]]);
  }
  const sent = { json: { title: 'Mine' }, headers: { 'if-match': tags[0] ?? '' } };
  assert.equal((await admin.patch('/posts/1', sent)).status, 200);
});

test('at most 100 records of a name are embedded, the first by id', async (t) => {
  const { get, make, admin } = await open(t);
  const many = Array.from({ length: limits.embeddedMax }, (_, index) => ({ body: `${index}`, postId: 2 }));
  await make('/comments/batch', many);
  // It is added to the index last, and has the lowest id.
  await admin.patch('/comments/2', { json: { postId: 2 } });
  const { comments } = await get('/posts/2?embed=comments');
  assert.equal(comments.length, limits.embeddedMax);
  assert.deepEqual(comments.slice(0, 3).map(({ id }: any) => id), [2, 4, 5]);
});

/** A store of posts and comments, whose lists are read while it is changed. */
async function blog(random: Generator) {
  const store = openStore({ clock: { now: () => 0, elapsed: () => 0 }, random: (size) => Buffer.alloc(size, 1) });
  const registry = makeRegistry({ store, declarations: collections, references });
  const declaredPosts = registry.get('posts') ?? assert.fail();
  const [writers, texts, answers] = [authors, posts, comments].map(({ name }) => registry.get(name)?.records);
  assert.ok(writers && texts && answers);
  await store.start();
  const body = 'x'.repeat(700);
  const post = () => ({ ownerId: 0, title: body, authorId: 1 + random.below(5), alsoIds: [1 + random.below(60)] });
  const comment = () => ({ ownerId: 0, body, postId: 1 + random.below(60) });
  const change = (count: number) => store.write((transaction) => {
    for (let step = 0; step < count; step += 1) {
      const [records, make, size] = random.pick([[texts, post, 60], [answers, comment, 400]] as const);
      const id = 1 + random.below(size);
      if (transaction.of(records).get(id) === undefined) transaction.of(records).insert(make());
      else if (random.below(3) === 0) transaction.of(records).remove(id);
      else transaction.of(records).replace(id, make());
      transaction.of(writers).replace(1 + random.below(5), { ownerId: 0, name: `${step}` });
    }
  });
  await store.write((transaction) => {
    for (let id = 1; id <= 5; id += 1) transaction.of(writers).insert({ ownerId: 0, name: 'first' });
    for (let id = 1; id <= 60; id += 1) transaction.of(texts).insert(post());
    for (let id = 1; id <= 400; id += 1) transaction.of(answers).insert(comment());
  });
  const all = (records: Collection<Entry>): any[] =>
    records.view().blocks.flat().map(({ revision, ownerId, ...shown }) => shown);
  const allPosts = (): any[] => all(texts);
  /** The embedded records of posts right now, computed in the simplest way. */
  const embeddedIn = (some: any[]): any[] => {
    const find = (shown: any[], wanted: unknown) => shown.filter(({ id }) => id === wanted);
    const [every, found] = [allPosts(), all(answers)];
    return some.map((post) => ({
      author: find(all(writers), post.authorId)[0],
      also: find(every, post.alsoIds[0]),
      comments: found.filter(({ postId }) => postId === post.id),
    }));
  };
  const names = ['authorId', 'alsoIds', 'comments'];
  const { writer } = references.embed(names, declaredPosts.embeddables, localAdministrator);
  const pool = new ListPool(createTickingClock());
  const caller = { caller: 'one', signal: new AbortController().signal };
  const read = (query: string, more = {}, of = pool) => readList({ fields: posts.fields, records: texts, pool: of }, {
    query: parseListQuery({ fields: posts.fields }, parseQuery(query)),
    withTotal: false, caller, embed: writer?.(representationWriter(posts.fields)), ...more,
  });
  return { store, pool, change, allPosts, embeddedIn, read };
}

test('a list is a snapshot, and embeds records as they are when it is sent', async () => {
  const random = createGenerator('embedding');
  const { store, change, allPosts, embeddedIn, read } = await blog(random);
  for (let round = 0; round < 12; round += 1) {
    // A page is found in several steps, and both are sent in several pieces.
    const reading = read(random.pick(['', 'limit=1000&sort=-title', 'limit=1000']));
    const moment = allPosts();
    const states = [JSON.parse(JSON.stringify(embeddedIn(moment)))];
    const changeSome = async (): Promise<void> => {
      await change(20);
      states.push(JSON.parse(JSON.stringify(embeddedIn(moment))));
    };
    await changeSome();
    const { body } = await reading;
    assert.ok(typeof body === 'object');
    let text = '';
    for await (const piece of body) {
      text += piece;
      await changeSome();
    }
    assert.ok(text.length > 100_000);
    const byId = (a: any, b: any): number => a.id - b.id;
    const embedding = JSON.parse(text).sort(byId);
    assert.deepEqual(embedding.map(({ author, also, comments: _, ...own }: any) => own), moment, `round ${round}`);
    for (const [index, found] of embedding.entries()) {
      for (const member of ['author', 'also', 'comments']) {
        const isOfState = (state: any): boolean => isDeepStrictEqual(found[member], state[index][member]);
        assert.ok(states.some(isOfState), `round ${round}: ${member} of post ${found.id}`);
      }
    }
  }
  await store.close();
});

test('a page that embeds pauses between records, even if it shows little of them', async () => {
  const random = createGenerator('embedding in steps');
  const { store, read } = await blog(random);
  let steps = 0;
  const seen: number[] = [];
  const pool = new ListPool({ now: () => 0, elapsed: () => (steps += 1) });
  const embed = (): string[] => {
    seen.push(steps);
    return ['{}'];
  };
  const { body } = await read('limit=50', { embed }, pool);
  assert.equal(body, `[${Array.from({ length: 50 }, () => '{}').join()}]`);
  // The time is checked before each record, except in the first steps of a page.
  assert.ok(new Set(seen).size >= 48, `${new Set(seen).size} pauses`);
  await store.close();
});

test('a response gives its place back however it ends', async () => {
  const random = createGenerator('embedding that ends');
  const { store, pool, read } = await blog(random);
  const long = 'x'.repeat(100_000);
  const answer = (text: string, signal = new AbortController().signal) => {
    const embed = () => [text, text];
    return readRecord(pool, { id: 1, revision: 1 }, { caller: { caller: 'one', signal }, embed });
  };
  const streamed = (signal?: AbortSignal): AsyncIterator<string> => {
    const body = answer(long, signal);
    assert.ok(typeof body === 'object');
    return body[Symbol.asyncIterator]();
  };
  for (let time = 0; time <= limits.listsPerCallerMax; time += 1) {
    assert.equal(answer('x'), 'xx');
    const [read, left, leaving] = [streamed(), streamed(), new AbortController()];
    for (let done: boolean | undefined = false; !done;) ({ done } = await read.next());
    await left.next();
    await left.return?.();
    // Never read: the caller leaves before.
    streamed(leaving.signal);
    leaving.abort();
    assert.throws(() => answer(long, AbortSignal.abort()), { code: 'draining' });
  }
  const all = Array.from({ length: limits.listsPerCallerMax }, () => streamed());
  assert.throws(() => answer(long), { code: 'overloaded' });
  await assert.rejects(async () => read(''), { code: 'overloaded' });
  for (const each of all) await each.return?.();
  await streamed().return?.();
  const leaving = new AbortController();
  const asked = { withTotal: true, caller: { caller: 'one', signal: leaving.signal } };
  const left = Promise.resolve(read('limit=2&sort=-title&title:contains=x', asked));
  leaving.abort();
  await assert.rejects(left, { code: 'draining' });
  // Pages that are searched for wait for each other, as others do.
  const searched = { withTotal: true };
  const pages = await Promise.all(Array.from({ length: 40 }, () => read('limit=2&title:contains=x', searched)));
  assert.equal(pages.filter(({ body }) => typeof body === 'string').length, 40);
  await store.close();
});
