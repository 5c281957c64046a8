import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { CairnError, defineCollection, type AppOptions, type Change, type Hooks, type Read } from '../../src/index.ts';
import { silentLog } from '../../src/log/log.ts';
import { createApp, type App } from '../support/inside.ts';
import { waitUntil } from '../support/basics.ts';

const fields = { 'Content-Type': 'application/json' };
const lamp = { method: 'POST', target: '/items', fields, body: '{"name":"Lamp","price":24.5}' };

interface Logged {
  readonly level: string;
  readonly message: string;
  readonly details: unknown;
}

/** An app whose messages are kept. */
async function open(t: TestContext, options: AppOptions): Promise<{ app: App; logged: Logged[] }> {
  const logged: Logged[] = [];
  const log = {
    ...silentLog,
    message: (level: string, message: string, details: unknown) => void logged.push({ level, message, details }),
  };
  const app = await createApp({ auth: 'none', log, ...options });
  t.after(() => app.close());
  return { app, logged };
}

/** Plain JavaScript may give hooks that would not compile. */
const anyHooks = (hooks: object): Hooks => hooks;

const faults = (logged: readonly Logged[]): string[] =>
  logged.filter(({ level }) => level === 'error').map(({ details }) => String(Object(details).stack));

test('a beforeWrite that is asynchronous, or returns something, refuses the write as a fault', async (t) => {
  const promised = /beforeWrite must be synchronous: it returned a promise/;
  const other = /beforeWrite must return the fields to set, or nothing/;
  for (const [beforeWrite, fault] of [
    [async () => { throw new Error('too late'); }, promised],
    [async () => undefined, promised],
    [() => 5, other],
    [() => false, other],
    [() => ({ then: (_: unknown, reject: (error: Error) => void) => reject(new Error('too late')) }), promised],
  ] as const) {
    const { app, logged } = await open(t, { hooks: anyHooks({ beforeWrite }) });
    const answer = await app.inject(lamp);
    assert.equal(answer.status, 500);
    assert.doesNotMatch(answer.body, /too late/);
    assert.match(faults(logged).join(), fault);
    await sleep(5);
    assert.equal((await app.inject({ target: '/items' })).body, '[]');
  }
});

test('a beforeWrite that reads a missing member is a fault: 500', async (t) => {
  const reads: readonly [(read: Read) => unknown, RegExp][] = [
    [(read) => read.get('item', 1), /no collection "item"/],
    [(read) => read.referring('items', 'ownerId', 1), /by "ownerId": it is not a reference/],
  ];
  for (const [wrong, problem] of reads) {
    const hooks = { beforeWrite: (_: Change, read: Read): undefined => void wrong(read) };
    const { app, logged } = await open(t, { hooks });
    assert.equal((await app.inject(lamp)).status, 500);
    assert.match(faults(logged).join(), problem);
  }
});

test('beforeWrite reads members one by one, and more than 50,000 are a fault', async (t) => {
  const posts = { name: 'posts', singular: 'post', fields: { title: { kind: 'text' } } } as const;
  const to = { kind: 'reference', to: 'posts' } as const;
  const comments = { name: 'comments', singular: 'comment', fields: { postId: to } } as const;
  let counts: number[] = [];
  const hooks = {
    beforeWrite({ operation, collection }: Change, read: Read): undefined {
      if (collection !== 'posts' || operation !== 'update') return;
      const members = read.referring('comments', 'postId', 1);
      const [first] = members;
      counts = [members.count, Number(first?.['id'])];
    },
  };
  const collections = [defineCollection(posts), defineCollection(comments)];
  const { app, logged } = await open(t, { hooks, collections });
  await app.collection('posts').create({ title: 'One' });
  const content = JSON.stringify(Array.from({ length: 1000 }, () => ({ postId: 1 })));
  const fields = { 'content-type': 'application/json' };
  const batch = { method: 'POST', target: '/comments/batch', fields, body: content };
  for (let index = 0; index < 50; index += 1) assert.equal((await app.inject(batch)).status, 201);
  await app.collection('posts').change(1, { title: 'Two' });
  assert.deepEqual(counts, [50_000, 1]);
  await app.collection('comments').create({ postId: 1 });
  await assert.rejects(app.collection('posts').change(1, { title: 'Three' }), /reads more than 50000 of comments/);
  assert.deepEqual(logged, []);
});

test('beforeWrite can refuse with issues or a message; a fault in it is a 500', async (t) => {
  const issues = [{ pointer: '/name', code: 'not_nice', detail: 'must be nice' }];
  const cases: readonly [unknown, number, RegExp][] = [
    [new CairnError('validation_failed', 'Cannot accept: no', { issues }), 422, /"code":"validation_failed".*not_nice/],
    [new CairnError('write_refused', 'Cannot now', { issues }), 422, /"code":"write_refused".*not_nice/],
    [new CairnError('not_found', 'Cannot find it'), 422, /Cannot find it.*write_refused|write_refused.*Cannot find it/],
    [new Error('nobody pays that'), 422, /nobody pays that/],
    ['a text', 422, /a rule of this installation refuses it/],
    [undefined, 422, /a rule of this installation refuses it/],
  ];
  for (const [thrown, status, body] of cases) {
    const { app, logged } = await open(t, { hooks: { beforeWrite: () => { throw thrown; } } });
    const answer = await app.inject(lamp);
    assert.equal(answer.status, status);
    assert.match(answer.body, body);
    assert.deepEqual(logged, []);
  }
  for (const thrown of [new TypeError('reading foo'), new ReferenceError('foo'), new RangeError('foo')]) {
    const { app, logged } = await open(t, { hooks: { beforeWrite: () => { throw thrown; } } });
    const answer = await app.inject(lamp);
    assert.equal(answer.status, 500);
    assert.doesNotMatch(answer.body, /foo/);
    assert.match(faults(logged).join(), /foo/);
    assert.equal((await app.inject({ target: '/items' })).body, '[]');
  }
});

test('an afterWrite that fails is logged, and does not change the response', async (t) => {
  const failing: readonly NonNullable<Hooks['afterWrite']>[] = [
    () => { throw new Error('after boom'); },
    async () => { throw new Error('after boom'); },
    async () => { await sleep(1); throw new Error('after boom'); },
  ];
  for (const afterWrite of failing) {
    const { app, logged } = await open(t, { hooks: { afterWrite } });
    const answer = await app.inject(lamp);
    assert.equal(answer.status, 201);
    await waitUntil(() => /after boom/.test(faults(logged).join()));
  }
});

test('an afterWrite that fails does not keep the first administrator from being made', async (t) => {
  const hooks: Hooks = { afterWrite: () => { throw new Error('the mail server is down'); } };
  const administrator = { email: 'ada@example.org', password: 'correct horse battery' };
  const { app } = await open(t, { hooks, administrator, scryptCost: 1 });
  assert.equal(app.users.records.size, 1);
});

test('hooks may be methods of an object', async (t) => {
  class Own implements Hooks {
    seen: number[] = [];
    beforeWrite({ id }: { id: number | string }): undefined {
      this.seen.push(Number(id));
    }
    async afterWrite({ id }: { id: number | string }): Promise<void> {
      this.seen.push(Number(id));
    }
  }
  const hooks = new Own();
  const { app } = await open(t, { hooks });
  assert.equal((await app.inject(lamp)).status, 201);
  assert.deepEqual(hooks.seen, [1, 1]);
});

test('without a log, faults are printed to standard error', async (t) => {
  let told = '';
  t.mock.method(process.stderr, 'write', (text: string) => ((told += text), true));
  const app = await createApp({ auth: 'none', hooks: { beforeWrite: () => { throw new TypeError('broken hook'); } } });
  assert.equal((await app.inject(lamp)).status, 500);
  await app.close();
  t.mock.reset();
  assert.match(told, /^\{.*broken hook.*hooks\.test.*\}\n$/);
});
