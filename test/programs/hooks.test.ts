import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CairnError, createApp, defineCollection, type Change, type Hooks } from '../../src/index.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { fakeTimers } from '../support/basics.ts';

const posts = {
  name: 'posts',
  fields: {
    title: { kind: 'text', min: 1 },
    slug: { kind: 'text', optional: true, unique: true, min: 1 },
    views: { kind: 'integer', default: 0, min: 0 },
    tags: { kind: 'list', of: { kind: 'text' }, optional: true },
  },
  timestamps: true,
} as const;

test('a hook sets fields once: in the record, in the journal and for afterWrite', async (t) => {
  const told: Change[] = [];
  const app = await createApp({
    collections: [posts], auth: 'none',
    hooks: {
      beforeWrite({ collection, operation, after }) {
        if (collection !== 'posts' || operation === 'remove' || after?.['title'] === 'as it is') return undefined;
        return { slug: String(after?.['title']).toLowerCase(), tags: null };
      },
      afterWrite: (change) => void told.push(change),
    },
  });
  t.after(() => app.close());
  const all = app.collection(posts);
  const made = await all.create({ title: 'Emma', tags: ['x'] });
  assert.deepEqual([made.slug, made.tags, made.views], ['emma', undefined, 0]);
  assert.deepEqual(all.get(1), made);
  const changed = await all.change(1, { title: 'Persuasion' }, { ifVersion: app.versionOf(made) });
  assert.equal(changed.slug, 'persuasion');
  assert.equal(all.count({ where: { slug: 'emma' } }), 0);
  await assert.rejects(all.create({ title: 'PERSUASION' }), { code: 'not_unique' });
  await assert.rejects(all.create({ title: 'x'.repeat(201) }), { code: 'validation_failed' });
  assert.equal((await all.create({ title: 'as it is', slug: 'emma' })).slug, 'emma', 'it is free again');
  const body = await app.write((tx) => tx.collection(posts).create({ title: 'In one' }));
  assert.equal(body.slug, 'in one');
  assert.deepEqual(told.map(({ operation, after }) => [operation, after?.['slug']]), [
    ['create', 'emma'], ['update', 'persuasion'], ['create', 'emma'], ['create', 'in one'],
  ]);
  const { body: shown } = await app.inject({ target: '/posts?fields=slug' });
  assert.equal(shown, '[{"slug":"persuasion"},{"slug":"emma"},{"slug":"in one"}]');
});

test('fields that a hook sets are validated, and its arguments are frozen', async (t) => {
  let hook: (change: Change) => object | undefined = () => undefined;
  const log = { info() {}, warn() {}, error() {} };
  const hooks = { beforeWrite: (change: Change) => hook(change) };
  const app = await createApp({ collections: [posts], auth: 'none', hooks, log });
  t.after(() => app.close());
  const all = app.collection(posts);
  const wrong: readonly [typeof hook, object][] = [
    [() => ({ views: -1 }), { code: 'validation_failed' }], [() => ({ nope: 1 }), { code: 'validation_failed' }],
    [() => ({ id: 7 }), { code: 'validation_failed' }], [() => ({ createdAt: 'x' }), { code: 'validation_failed' }],
    [({ after }) => void (Object(after).title = 'y'), { name: 'TypeError' }],
    [({ after }) => void Object(after).tags.push('y'), { name: 'TypeError' }],
    [async () => ({}), { name: 'TypeError', message: /^beforeWrite must be synchronous/ }],
  ];
  for (const [own, problem] of wrong) {
    hook = own;
    await assert.rejects(all.create({ title: 'A', tags: [] }), problem);
  }
  hook = ({ collection }) => (collection === 'users' ? { name: 'Eve' } : undefined);
  const user = app.users.create({ name: 'Ada', email: 'ada@example.org' });
  await assert.rejects(user, { name: 'InvariantError', message: /sets no fields of users/ });
  assert.deepEqual([all.count(), app.users.count()], [0, 0]);
});

test('a hook may refuse the change of a referring record, but not set its fields', async (t) => {
  const to = { kind: 'reference', to: 'posts', onDelete: 'clear', optional: true } as const;
  const notes = { name: 'notes', fields: { postId: to, text: { kind: 'text' } } } as const;
  let hook: (change: Change) => object | undefined = () => undefined;
  const app = await createApp({
    collections: [posts, notes], auth: 'none', log: { info() {}, warn() {}, error() {} },
    hooks: { beforeWrite: (change) => (change.collection === 'notes' ? hook(change) : undefined) },
  });
  t.after(() => app.close());
  await app.collection(posts).create({ title: 'A' });
  await app.collection(notes).create({ postId: 1, text: 'as it was' });
  for (const set of [{ text: 'changed' }, { postId: 1 }]) {
    hook = () => set;
    const message = /must set no fields of notes when a removal clears its reference/;
    const wrong = { name: 'InvariantError', message };
    await assert.rejects(app.collection(posts).remove(1), wrong);
  }
  hook = () => {
    throw new Error('not now');
  };
  await assert.rejects(app.collection(posts).remove(1), { code: 'write_refused', message: /not now/ });
  hook = () => {
    throw new CairnError('conflict', 'Cannot remove the post: it is read just now');
  };
  const removed = await app.inject({ method: 'DELETE', target: '/posts/1' });
  assert.deepEqual([removed.status, JSON.parse(removed.body).code], [409, 'conflict']);
  assert.deepEqual(app.collection(notes).get(1), { id: 1, postId: 1, text: 'as it was' });
  hook = () => ({ text: 'as it was' });
  await app.collection(posts).remove(1);
  assert.deepEqual(app.collection(notes).get(1), { id: 1, text: 'as it was' });
});

test('close waits for afterWrite, which may still write', async () => {
  const done: string[] = [];
  const app = await createApp({
    collections: [posts], auth: 'none',
    hooks: {
      async afterWrite({ after }) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        const title = String(after?.['title']);
        if (title === 'one') await app.collection(posts).create({ title: 'two' });
        done.push(title);
      },
    },
  });
  await app.collection(posts).create({ title: 'one' });
  await app.close();
  assert.deepEqual(done.sort(), ['one', 'two']);
});

test('close waits at most 30 s for an afterWrite that never ends, and the log says so', async (t) => {
  let lines = '';
  const log = { info() {}, warn() {}, error: (line: string) => void (lines += line) };
  const hooks = { afterWrite: () => new Promise<void>(() => undefined) };
  const app = await createApp({ collections: [posts], auth: 'none', hooks, log });
  await app.collection(posts).create({ title: 'A' });
  const time = fakeTimers(t);
  const closed = app.close();
  let isClosed = false;
  closed.then(() => (isClosed = true));
  for (let turn = 0; turn < 1000 && !isClosed; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    time.tick(1000);
  }
  await closed;
  assert.equal(lines.match(/afterWrite any longer: it takes over 30 s/g)?.length, 1);
});

test('a hook that throws undoes the transaction, even if its work catches the error', async (t) => {
  const directory = temporaryDirectory(t);
  let isRefusing = false;
  const start = () => createApp({
    directory, collections: [posts], auth: 'none', log: { info() {}, warn() {}, error() {} },
    hooks: { beforeWrite: () => { if (isRefusing) throw new Error('no'); } },
  });
  const app = await start();
  const all = app.collection(posts);
  await all.createMany([{ title: 'one' }, { title: 'two' }]);
  type Rows = Parameters<Parameters<typeof app.write>[0]>[0];
  const works: readonly ((tx: Rows) => unknown)[] = [
    (tx) => tx.collection(posts).create({ title: 'new' }),
    (tx) => tx.collection(posts).change(1, { title: 'changed' }),
    (tx) => tx.collection(posts).replace(1, { title: 'replaced' }),
    (tx) => tx.collection(posts).remove(2),
  ];
  for (const work of works) {
    const write = app.write((tx) => {
      tx.collection(posts).create({ title: 'before' });
      isRefusing = true;
      assert.throws(() => work(tx), { code: 'write_refused' });
      isRefusing = false;
      assert.throws(() => tx.collection(posts).create({ title: 'after' }), { code: 'write_refused' });
    });
    await assert.rejects(write, { code: 'write_refused' });
    await all.create({ title: 'acknowledged' });
  }
  const before = JSON.stringify((await all.list()).records);
  await app.close();
  const again = await start();
  assert.equal(JSON.stringify((await again.collection(posts).list()).records), before);
  assert.equal(again.collection(posts).count(), 6);
  await again.close();
});

test('a hook gets the value of a single resource as callers see it', async (t) => {
  const title = defineCollection({ name: 'title', single: true, value: { kind: 'text' } });
  const seen: unknown[] = [];
  const hooks: Hooks = { beforeWrite: ({ before, after }) => {
    seen.push([before, after]);
  } };
  const app = await createApp({ auth: 'none', collections: [title], hooks });
  t.after(() => app.close());
  await app.single(title).replace('one');
  await app.single(title).replace('two');
  assert.deepEqual(seen, [[undefined, 'one'], ['one', 'two']]);
});
