import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import {
  createApp, defineCollection, defineRoute, type App, type AppOptions, type TransactionCollection,
} from '../../src/index.ts';
import { silentLog } from '../../src/log/log.ts';
import { counters, runIncrements, increments } from '../support/store/histories.ts';

const tasks = defineCollection({
  name: 'tasks',
  fields: {
    title: { kind: 'text', min: 1 },
    done: { kind: 'boolean', default: false },
    points: { kind: 'integer', optional: true },
    code: { kind: 'text', optional: true, unique: true },
    tags: { kind: 'list', of: { kind: 'text' }, optional: true },
  },
  timestamps: true,
});
const notes = {
  name: 'notes',
  fields: { taskId: { kind: 'reference', to: 'tasks', onDelete: 'remove' }, text: { kind: 'text', nullable: true } },
} as const;

const ada = { name: 'Ada', email: 'ada@example.org', role: 'admin', password: 'correct horse battery' };
const mia = { name: 'Mia', email: 'mia@example.org', password: 'a quiet place to be' };

async function open(t: TestContext, options: AppOptions = {}): Promise<App> {
  const app = await createApp({ collections: [tasks, counters, notes], scryptCost: 1, ...options });
  t.after(() => app.close());
  return app;
}

test('a collection is read and written with the types of its declaration', async (t) => {
  const app = await open(t);
  const all = app.collection(tasks);
  const task = await all.create({ title: 'Read', points: 3, tags: ['a'] });
  const done: boolean = task.done;
  assert.deepEqual([task.id, task.title, done, task.points, typeof task.createdAt], [1, 'Read', false, 3, 'string']);
  assert.deepEqual(all.get(1), task);
  assert.equal(all.get(2), undefined);
  assert.equal((await all.change(1, { done: true, points: null })).points, undefined);
  assert.equal((await all.replace(1, { title: 'Write' })).done, true, 'what has a default keeps its value');
  const made = await all.createMany([{ title: 'B' }, { title: 'C', points: 9 }]);
  assert.deepEqual(made.map(({ id }) => id), [2, 3]);
  await assert.rejects(all.createMany([{ title: 'D' }, { title: '' }]), { code: 'validation_failed', status: 422 });
  assert.equal(all.count(), 3);
  await all.remove(2);
  await assert.rejects(all.remove(2), { code: 'not_found', status: 404 });
  const named = app.collection('tasks');
  assert.equal(named.get(3)?.['title'], 'C');
  const [only] = (await app.collection(counters).list()).records;
  assert.equal(only, undefined);
});

test('a private list whose records every user can read gets a warning', async (t) => {
  const warnings: string[] = [];
  const message = (level: string, text: string): void => void (level === 'warn' && warnings.push(text));
  const log = { ...silentLog, message };
  const collections = Object.entries({
    open: { list: 'owner' }, closed: { list: 'owner', read: 'owner' }, standard: {},
  } as const).map(([name, access]) => defineCollection({ name, fields: {}, access }));
  await open(t, { collections, log });
  assert.deepEqual(warnings, [
    'Every user can read the records of open by their ids: restrict "read" as well as "list"',
  ]);
  await open(t, { collections, log, auth: 'none' });
  assert.equal(warnings.length, 1, 'without sign-in everybody may do everything');
});

test('lists have filters, an order, pages and a total', async (t) => {
  const app = await open(t);
  const all = app.collection(tasks);
  await all.createMany(
    Array.from({ length: 25 }, (_, index) => ({ title: `T${index}`, points: index, done: index > 19 })),
  );
  assert.equal(all.count({ where: { done: false, 'points:gte': 10 } }), 10);
  const page = await all.list({ where: { done: false }, sort: '-points', limit: 8, total: true });
  assert.deepEqual([page.records.map(({ points }) => points), page.total], [[19, 18, 17, 16, 15, 14, 13, 12], 20]);
  const next = await all.list({ where: { done: false }, sort: '-points', limit: 8, after: page.next });
  assert.equal(next.records[0]?.points, 11);
  const seen: number[] = [];
  for await (const { id } of all.all({ limit: 10, where: { 'title:in': ['T1', 'T2', 'T,3'] } })) seen.push(id);
  assert.deepEqual(seen, [2, 3]);
  assert.equal(all.count({ where: { title: ['T1', 'T4'] } }), 2);
  for (const name of ['title', 'title:in', 'points:gte']) {
    const noValues = () => all.count({ where: Object.fromEntries([[name, []]]) });
    assert.throws(noValues, { name: 'OptionError', message: /has no values$/ });
  }
  assert.equal(all.count({ where: { code: null } }), 25);
  assert.equal(all.count({ where: { 'code:exists': true } }), 0);
  const wrong = { where: { titel: 'T1' } };
  await assert.rejects(Reflect.apply(all.list, all, [wrong]), {
    code: 'invalid_query',
    message: /"titel" is not a known/,
  });
});

test('a version is the entity tag of a record, and a change with an old one is refused', async (t) => {
  const app = await open(t);
  const task = await app.collection(tasks).create({ title: 'A' });
  const version = app.versionOf(task);
  const { headers } = await app.inject({ target: '/tasks/1', headers: await signedIn(app) });
  assert.equal(headers.get('etag'), version, 'it is the entity tag');
  const changed = await app.collection(tasks).change(1, { title: 'B' }, { ifVersion: version });
  const stale = app.collection(tasks).change(1, { title: 'C' }, { ifVersion: version });
  await assert.rejects(stale, { code: 'precondition_failed', status: 412 });
  await assert.rejects(app.collection(tasks).remove(1, { ifVersion: version }), { code: 'precondition_failed' });
  await app.collection(tasks).remove(1, { ifVersion: app.versionOf(changed) });
  assert.throws(() => app.versionOf({ ...changed }), { name: 'OptionError', message: /not a copy/ });
});

async function signedIn(app: App, who = ada): Promise<Record<string, string>> {
  const known = (await app.users.list({ where: { email: who.email } })).records[0];
  if (known === undefined) await app.users.create(who);
  const { email, password } = who;
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ email, password });
  const reply = await app.inject({ method: 'POST', target: '/tokens', headers, body });
  return { authorization: `Bearer ${JSON.parse(reply.body).access_token}` };
}

test("a call on behalf of a user has the access of that user's requests", async (t) => {
  const app = await open(t);
  const { id } = await app.users.create(mia);
  await app.users.create(ada);
  const own = await app.collection(tasks).create({ title: 'of Mia' }, { as: id });
  const other = await app.collection(tasks).create({ title: 'of the program' });
  await app.collection(tasks).change(own.id, { done: true }, { as: id });
  await assert.rejects(app.collection(tasks).change(other.id, { done: true }, { as: id }), { code: 'not_owner' });
  const headers = await signedIn(app, { ...mia, role: 'member' });
  const caller = await app.authenticate(new Request('http://cairn/', { headers }));
  assert.deepEqual(caller, { kind: 'bearer', user: id, role: 'member' });
  await app.collection(tasks).remove(own.id, { as: caller });
  const nobody = await app.authenticate(new Request('http://cairn/'));
  assert.deepEqual(nobody, { kind: 'anonymous' });
  assert.throws(() => app.collection(tasks).get(2, { as: nobody }), { code: 'authentication_required' });
  const bad = new Request('http://cairn/', { headers: { authorization: 'Bearer x' } });
  await assert.rejects(app.authenticate(bad), { code: 'invalid_token' });
  for (const as of [undefined, null, { kind: 'local' }, 'Mia']) {
    const act = (): unknown => Reflect.apply(app.collection(tasks).get, undefined, [2, { as }]);
    assert.throws(act, { name: 'OptionError', option: 'as' });
  }
  await assert.rejects(app.collection(tasks).create({ title: 'x' }, { as: 99 }), { code: 'actor_changed' });
  await assert.rejects(app.users.list({ as: id }), { code: 'insufficient_scope' });
});

test('an API key gives a program the access that it gives a request', async (t) => {
  const app = await open(t);
  const { id } = await app.users.create(mia);
  const headers = { ...await signedIn(app, { ...mia, role: 'member' }), 'content-type': 'application/json' };
  const callers = [];
  for (const readOnly of [false, true]) {
    const body = JSON.stringify({ name: 'k', currentPassword: mia.password, readOnly });
    const made = await app.inject({ method: 'POST', target: '/keys', headers, body });
    const authorization = `Bearer ${JSON.parse(made.body).key}`;
    callers.push(await app.authenticate(new Request('http://cairn/', { headers: { authorization } })));
  }
  const [key, reader] = callers;
  assert.ok(key && reader);
  assert.equal((await app.collection(tasks).create({ title: 'by key' }, { as: key })).id, 1);
  assert.equal(app.collection(tasks).get(1, { as: reader })?.title, 'by key');
  assert.equal(app.users.get(id, { as: key })?.name, 'Mia');
  const refused = { code: 'insufficient_scope', message: /API keys reach no credentials/ };
  await assert.rejects(app.users.change(id, { name: 'Eve' }, { as: key }), refused);
  await assert.rejects(app.users.remove(id, { as: key }), refused);
  const only = { code: 'insufficient_scope', message: /the API key only reads/ };
  await assert.rejects(app.collection(tasks).remove(1, { as: reader }), only);
});

test('authenticate takes a request of node:http, and refuses a cookie from another site', async (t) => {
  const app = await open(t);
  await signedIn(app);
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ email: ada.email, password: ada.password });
  const login = await app.inject({ method: 'POST', target: '/login', headers, body });
  const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const server = createServer((incoming, outgoing) => {
    app.authenticate(incoming).then(
      ({ kind, role }) => outgoing.end(`${kind} ${role}`),
      (error: unknown) => outgoing.end(String(Object(error).code)),
    );
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = async (headers: Record<string, string>, method = 'GET') =>
    (await fetch(`http://127.0.0.1:${port}/`, { method, headers: { ...headers, connection: 'close' } })).text();
  assert.equal(await ask({ cookie }), 'session admin');
  assert.equal(await ask({ cookie, origin: 'http://evil.example' }, 'POST'), 'cross_site');
});

test('without authentication, a request whose connection has closed is nobody on this machine', async (t) => {
  const app = await open(t, { auth: 'none' });
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const leaving = new AbortController();
  const left = fetch(`http://127.0.0.1:${port}/`, { signal: leaving.signal });
  const [incoming] = await once(server, 'request');
  leaving.abort();
  await assert.rejects(left);
  await once(incoming.socket, 'close');
  await assert.rejects(app.authenticate(incoming), { code: 'misdirected_request' });
});

test('write is one transaction: all or nothing', async (t) => {
  const app = await open(t);
  const task = await app.collection(tasks).create({ title: 'A', code: 'one' });
  const made = await app.write((tx) => {
    const found = tx.collection(tasks).find('code', 'one');
    tx.collection(notes).create({ taskId: found?.id ?? 0, text: null });
    tx.collection(notes).create({ taskId: task.id, text: 'two' });
    tx.collection(tasks).change(task.id, { done: true }, { ifVersion: app.versionOf(task) });
    const { count } = tx.collection(notes).referring('taskId', task.id);
    return { count, texts: Array.from(tx.collection(notes).referring('taskId', task.id), ({ text }) => text) };
  });
  assert.deepEqual(made, { count: 2, texts: [null, 'two'] });
  const fail = app.write((tx) => {
    tx.collection(tasks).remove(task.id);
    assert.equal(tx.collection(notes).referring('taskId', task.id).count, 0);
    throw new Error('not today');
  });
  await assert.rejects(fail, /not today/);
  assert.equal(app.collection(notes).count(), 2);
  // @ts-expect-error: plain JavaScript may be asynchronous
  await assert.rejects(app.write(async () => 1), { name: 'TypeError', message: /synchronous/ });
  // @ts-expect-error: and return a promise
  await assert.rejects(app.write(() => app.write(() => 1)), { name: 'TypeError', message: /within a transaction/ });
  await assert.rejects(app.write((tx) => tx.collection('tasks').find('title', 'A')), { name: 'OptionError' });
  const { create, change, createMany, remove } = app.collection(tasks);
  const nested = [
    () => create({ title: 'B' }), () => change(task.id, { title: 'C' }), () => createMany([]), () => remove(task.id),
    () => app.users.create(mia), () => app.users.setPassword(1, 'another pass phrase'),
  ];
  for (const write of nested) {
    const forgetful = app.write((tx) => {
      tx.collection(tasks).change(task.id, { title: 'D' });
      void write();
    });
    await assert.rejects(forgetful, { name: 'TypeError', message: /within a transaction: write by its tx/ });
  }
  assert.equal(app.collection(tasks).get(task.id)?.title, 'A');
});

test('a write within a transaction is a fault, which is logged', async (t) => {
  let lines: string[] = [];
  const route = defineRoute({
    method: 'POST', path: '/without-tx', access: 'public', summary: 'Forget the tx',
    write: () => void app.collection(tasks).create({ title: 'B' }),
  });
  const app = await open(t, {
    auth: 'none',
    log: { info() {}, warn() {}, error: (line: string) => void lines.push(line) },
    hooks: {
      beforeWrite({ collection, after }) {
        if (collection === 'tasks' && after?.['title'] === 'hooked') void app.collection(tasks).create({ title: 'B' });
      },
    },
    routes: [route],
  });
  const headers = { 'content-type': 'application/json' };
  for (const [target, body] of [['/tasks', '{"title":"hooked"}'], ['/without-tx', '']] as const) {
    lines = [];
    const { status } = await app.inject({ method: 'POST', target, headers, body });
    assert.deepEqual([status, lines.length], [500, 1], target);
    assert.match(lines[0] ?? '', /begin a write within a transaction.*programs\.test/);
  }
  assert.equal(app.collection(tasks).count(), 0);
});

for (const [name, increment] of Object.entries(increments)) {
  test(`the increments of 64 callers add up: ${name}`, async (t) => {
    const app = await open(t, { auth: 'none' });
    assert.equal(await runIncrements(app, 320, increment), 320);
  });
}

test('an app in memory opens in a fifth of the time of a hash, once its modules are loaded', async () => {
  const [apps, hashes]: [number[], number[]] = [[], []];
  for (let run = 0; run < 10; run += 1) {
    const begin = performance.now();
    const app = await createApp({ collections: [tasks, counters, notes] });
    const opened = performance.now();
    scryptSync('a password', 'a salt', 32, { N: 2 ** 15, maxmem: 2 ** 26 });
    apps.push(opened - begin);
    hashes.push(performance.now() - opened);
    await app.close();
  }
  assert.ok(Math.min(...apps) <= Math.min(...hashes) / 5, `apps ${apps.join(' ')}, hashes ${hashes.join(' ')}`);
});

test("reading all records on behalf of a user returns only that user's records", async (t) => {
  const diaries = defineCollection({
    name: 'diaries', fields: { title: { kind: 'text' } }, access: { list: 'owner', read: 'owner' },
  });
  const app = await open(t, { collections: [diaries] });
  const { id } = await app.users.create(mia);
  await app.collection(diaries).create({ title: 'of the program' });
  await app.collection(diaries).create({ title: 'of Mia' }, { as: id });
  const titles: string[] = [];
  for await (const { title } of app.collection(diaries).all(Object.create({ as: id }))) titles.push(title);
  assert.deepEqual(titles, ['of Mia']);
});

const fields = {
  code: { kind: 'text', unique: true },
  toId: { kind: 'reference', to: 'letters', onDelete: 'clear', optional: true },
} as const;
const letters = defineCollection({ name: 'letters', fields, access: { list: 'owner', read: 'owner' } });
const vaults = defineCollection({
  name: 'vaults', fields,
  access: { list: 'admin', create: 'admin', read: 'admin', replace: 'admin', patch: 'admin', remove: 'admin' },
});

/** Calls a method of a collection for a user. */
type Call = (app: App, name: string, as: number) => unknown;
const within = (work: (of: TransactionCollection) => unknown): Call => async (app, name, as) => {
  let result: unknown;
  await app.write((tx) => void (result = work(tx.collection(name))), { as });
  return result;
};
/** The methods, with what each gives if record 1 is someone else's: a value, or the code of an error. */
const methods: readonly (readonly [name: string, call: Call, hidden: unknown])[] = [
  ['get', (app, name, as) => app.collection(name).get(1, { as }), undefined],
  ['list', async (app, name, as) => (await app.collection(name).list({ as })).records, []],
  ['all', async (app, name, as) => {
    const found: object[] = [];
    for await (const record of app.collection(name).all({ as })) found.push(record);
    return found;
  }, []],
  ['count', (app, name, as) => app.collection(name).count({ as }), 0],
  ['replace', (app, name, as) => app.collection(name).replace(1, { code: 'd' }, { as }), 'not_found'],
  ['change', (app, name, as) => app.collection(name).change(1, { code: 'd' }, { as }), 'not_found'],
  ['remove', (app, name, as) => app.collection(name).remove(1, { as }), 'not_found'],
  ['get in a transaction', within((of) => of.get(1)), undefined],
  ['find in a transaction', within((of) => of.find('code', 'a')), undefined],
  ['referring in a transaction', within((of) => [...of.referring('toId', 1)]), []],
  ['the count of referring', within((of) => of.referring('toId', 1).count), 0],
  ['replace in a transaction', within((of) => of.replace(1, { code: 'd' })), 'not_found'],
  ['change in a transaction', within((of) => of.change(1, { code: 'd' })), 'not_found'],
  ['remove in a transaction', within((of) => of.remove(1)), 'not_found'],
];
/** The methods that show nothing that was there before. */
const creations: readonly (readonly [name: string, call: Call])[] = [
  ['create', (app, name, as) => app.collection(name).create({ code: 'e' }, { as })],
  ['createMany', (app, name, as) => app.collection(name).createMany([{ code: 'f' }], { as })],
  ['create in a transaction', within((of) => of.create({ code: 'g' }))],
];

test("every method on behalf of a user has the access of that user's requests", async (t) => {
  const app = await open(t, { collections: [letters, vaults] });
  const { id } = await app.users.create(mia);
  for (const { name } of [letters, vaults]) await app.collection(name).create({ code: 'a' });
  await app.collection(letters).change(1, { toId: 1 });
  const outcome = async (call: Call, name: string, as: number): Promise<unknown> => {
    try {
      return await call(app, name, as);
    } catch (error) {
      return Object(error).code ?? error;
    }
  };
  for (const [method, call, hidden] of methods)
    assert.deepEqual(await outcome(call, 'letters', id), hidden, method);
  for (const [method, call] of [...methods, ...creations])
    assert.equal(await outcome(call, 'vaults', id), 'insufficient_scope', method);
  assert.deepEqual(app.collection(letters).get(1), { id: 1, code: 'a', toId: 1 });
});

test('a single resource is one value, with its type, its access and its version', async (t) => {
  const settings = defineCollection({
    name: 'settings', single: true,
    fields: { limit: { kind: 'integer', default: 8 }, note: { kind: 'text', optional: true } },
    access: { read: 'user', replace: 'admin', patch: 'user' },
  });
  const motto = { name: 'motto', single: true, value: { kind: 'text', nullable: true } } as const;
  const app = await open(t, { collections: [tasks, counters, notes, settings, motto] });
  const { id } = await app.users.create(mia);
  const all = app.single(settings);
  assert.deepEqual([all.name, app.single(motto).name], ['settings', 'motto']);
  assert.deepEqual([all.get(), app.single(motto).get()], [undefined, undefined]);
  await assert.rejects(all.change({ limit: 9 }), { code: 'not_found' });
  const first = await all.replace({ note: 'new' });
  const limit: number = first.limit;
  assert.deepEqual([limit, all.get()], [8, first]);
  const version = app.versionOf(first);
  const { headers } = await app.inject({ target: '/settings', headers: await signedIn(app) });
  assert.equal(headers.get('etag'), version);
  assert.deepEqual(await all.change({ limit: 9, note: null }, { as: id, ifVersion: version }), { limit: 9 });
  await assert.rejects(all.change({ limit: 10 }, { ifVersion: version }), { code: 'precondition_failed' });
  await assert.rejects(all.replace({ limit: 10 }, { as: id }), { code: 'insufficient_scope' });
  await assert.rejects(all.replace({ limit: 1.5 }), { code: 'validation_failed' });
  assert.equal(await app.single(motto).replace('Onwards'), 'Onwards');
  assert.equal(await app.single(motto).change(null), null);
  assert.equal(app.single('motto').get(), null);
  const raised = await app.write((tx) => {
    const { limit } = tx.single(settings).get() ?? { limit: 0 };
    tx.single(motto).replace(`${limit} at most`);
    return tx.single(settings).change({ limit: limit + 1 }).limit;
  });
  assert.deepEqual([raised, app.single(motto).get()], [10, '9 at most']);
  assert.throws(() => app.collection('settings'), { name: 'OptionError', message: /use single/ });
  assert.throws(() => app.single('tasks'), { name: 'OptionError', option: 'single', message: /use collection/ });
  const never = (): void => {
    // @ts-expect-error: a member of another type
    void all.change({ limit: 'x' });
    // @ts-expect-error: it has no id
    void all.get()?.id;
    // @ts-expect-error: a value of another type
    void app.single(motto).replace(5);
  };
  assert.equal(typeof never, 'function');
});

test('programs read users without their password hashes', async (t) => {
  const app = await open(t);
  const user = await app.users.create(mia);
  assert.deepEqual(user, { id: 1, name: 'Mia', email: mia.email, role: 'member' });
  await app.users.setPassword(1, 'another long password');
  const refused = await app.inject({
    method: 'POST', target: '/tokens', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: mia.email, password: mia.password }),
  });
  assert.equal(refused.status, 401);
  const unproven = app.users.change(1, { password: 'another password', currentPassword: 'wrong' }, { as: 1 });
  await assert.rejects(unproven, { code: 'validation_failed' });
  const king = app.users.create({ ...mia, role: 'king', email: 'k@example.org' });
  await assert.rejects(king, { code: 'validation_failed' });
  assert.equal(app.users.count(), 1);
  assert.throws(() => app.collection('users'), { name: 'OptionError', message: /use app.users/ });
});

test('users may have the roles that the app declares', async (t) => {
  const app = await createApp({ roles: ['editor'], scryptCost: 1 });
  t.after(() => app.close());
  const { id } = await app.users.create({ ...mia, role: 'editor' });
  assert.equal(app.users.count({ where: { role: 'editor' } }), 1);
  assert.equal((await app.users.change(id, { role: 'member' })).role, 'member');
  await assert.rejects(app.users.change(id, { role: 'king' }), { code: 'validation_failed' });
});

test('app.fetch answers a Web-standard Request', async (t) => {
  const app = await open(t, { auth: 'none' });
  const headers = { 'content-type': 'application/json' };
  const made = await app.fetch(new Request('http://cairn/tasks', { method: 'POST', headers, body: '{"title":"A"}' }));
  assert.deepEqual([made.status, made.headers.get('location')], [201, '/tasks/1']);
  const read = await app.fetch(new Request('http://localhost/tasks?done=false'));
  assert.equal(((await read.json()) as unknown[]).length, 1);
  const head = await app.fetch(new Request('http://cairn/tasks', { method: 'HEAD' }));
  assert.deepEqual([head.status, await head.text()], [200, '']);
  assert.equal((await app.fetch(new Request('http://example.org/tasks'))).status, 421);
  const forwarded = new Request('http://cairn/tasks', { headers: { 'x-forwarded-for': '10.0.0.1' } });
  assert.equal((await app.fetch(forwarded)).status, 421);
  assert.equal((await app.fetch(new Request('http://cairn/tasks'), { address: '192.0.2.1' })).status, 421);
  const used = new Request('http://cairn/tasks', { method: 'POST', headers, body: '{"title":"A"}' });
  await used.text();
  await assert.rejects(app.fetch(used), { name: 'TypeError', message: /was read before/ });
  const feed = await app.fetch(new Request('http://cairn/changes'));
  const reader = feed.body?.getReader();
  assert.equal((await reader?.read())?.done, false);
  await reader?.cancel();
});

test('any logger with info, warn and error can receive the log', async (t) => {
  const lines: string[] = [];
  const log = { info: (line: string) => void lines.push(line), warn() {}, error() {} };
  const app = await open(t, { log });
  await app.users.create(ada);
  assert.match(lines.join('\n'), /user_created/);
});

test('app.status returns the state of the app, and listen binds to this machine', async (t) => {
  const app = await open(t, { auth: 'none' });
  const port = await app.listen({ port: 0 });
  assert.equal((await fetch(`http://127.0.0.1:${port}/livez`)).status, 200);
  const { state, unready, certificate, records } = app.status();
  assert.deepEqual([state, unready, certificate, records], ['writable', undefined, undefined, 0]);
  assert.equal(Object.hasOwn(app, 'store') || Object.hasOwn(app, 'data'), false);
});
