import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp, createLog, defineCollection, defineRoute, reply } from '../../src/index.ts';

/** Plain JavaScript may pass anything to each public function: it is an error that names what is wrong. */
const tasks = defineCollection({
  name: 'tasks',
  fields: {
    title: { kind: 'text' },
    code: { kind: 'text', optional: true, unique: true },
    data: { kind: 'json', optional: true },
  },
});
const conf = { name: 'conf', single: true, fields: { n: { kind: 'integer', default: 1 } } } as const;
const log = { info() {}, warn() {}, error() {} };

/** Calls a function as plain JavaScript may. */
const call = async (method: unknown, ...given: unknown[]): Promise<unknown> =>
  Reflect.apply(Object(method), undefined, given);

/** The argument, the error, and its code or the option that it names. */
type Wrong = readonly [given: readonly unknown[], name: string, named: string | undefined, message: RegExp];

async function assertWrong(method: unknown, all: readonly Wrong[]): Promise<void> {
  for (const [given, name, named, message] of all) {
    const error: unknown = await call(method, ...given).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const { option, code }: { readonly option?: unknown; readonly code?: unknown } = Object(error);
    const found = [Object(error).name, option ?? code];
    assert.deepEqual(found, [name, named], `${Object(method).name} ${String(given.map(String))}: ${String(error)}`);
    assert.match(Object(error).message, message);
  }
}

const option = (given: unknown, named: string, message: RegExp): Wrong => [[given], 'OptionError', named, message];

test('the error of createApp names the wrong option', async () => {
  const handle = (): number => 1;
  const route = { method: 'POST', path: '/own', access: 'user', summary: 'x', handle };
  const routed = (more: object, named: string, message: RegExp) =>
    option({ routes: [{ ...route, ...more }] }, named, message);
  const text = { kind: 'text' };
  await assertWrong(createApp, [
    option(null, 'createApp', /null: createApp takes an object/),
    option([], 'createApp', /takes an object/),
    option({ colections: [] }, 'colections', /did you mean "collections"/),
    option({ port: 1 }, 'port', /app\.listen takes it/),
    option({ clock: {} }, 'clock', /no method "now"/),
    option({ clock: 5 }, 'clock', /an object/),
    option({ random: {} }, 'random', /a function/),
    option({ onFailure: 5 }, 'onFailure', /a function/),
    option({ items: 'no' }, 'items', /true or false/),
    option({ users: 'no' }, 'users', /true or false/),
    option({ users: false }, 'users', /needs --auth none/),
    option({ page: 'off' }, 'page', /true or false/),
    option({ directory: 5 }, 'directory', /text/),
    option({ secret: 5 }, 'secret', /random text/),
    option({ scryptCost: '5' }, 'scryptCost', /whole number/),
    option({ cluster: {} }, 'cluster.members', /addresses/),
    option({ administrator: 5 }, 'administrator', /an object/),
    option({ administrator: { mail: 'a' } }, 'mail', /email/),
    option({ collections: {} }, 'collections', /an array/),
    option({ collections: [null] }, 'collections', /an object/),
    option({ roles: 'editor' }, 'roles', /an array/),
    option({ roles: [5] }, 'roles', /lower-case/),
    option({ collections: [{ name: 'a', fields: { roles: { kind: 'txt' } } }] }, 'collections', /fields\/roles\/kind/),
    option({ roles: ['A'], collections: [{ name: 'a', fields: { b: 5 } }] }, 'roles', /2 mistakes/),
    option({ log: 5 }, 'log', /an object/),
    option({ log: { info: 1 } }, 'log', /no method "info"/),
    option({ hooks: null }, 'hooks', /an object/),
    option({ hooks: { beforewrite: handle } }, 'beforewrite', /beforeWrite/),
    option({ hooks: { afterWrite: 5 } }, 'afterWrite', /a function/),
    option({ routes: {} }, 'routes', /an array/),
    option({ routes: [null] }, 'defineRoute', /an object/),
    routed({ path: 5 }, 'path', /a text/),
    routed({ access: 5 }, 'access', /must be one or more of/),
    routed({ access: undefined }, 'access', /must be one or more of/),
    routed({ access: [undefined] }, 'access', /must be one or more of/),
    routed({ access: [['user']] }, 'access', /must be one or more of/),
    routed({ handle: 5 }, 'handle', /a function/),
    routed({ body: { a: { kind: 'txt' } } }, 'body', /\/body\/a\/kind/),
    routed({ query: 5 }, 'query', /an object/),
    routed({ query: { a: { kind: 'list', of: text } } }, 'query', /one value/),
    routed({ reply: { a: 5 } }, 'reply', /\/reply\/a/),
    routed({ summary: '' }, 'summary', /a text/),
  ]);
  await assertWrong(defineRoute, [
    option(null, 'defineRoute', /takes an object/),
    option({ ...route, acess: 'x' }, 'acess', /did you mean "access"/),
  ]);
  for (const given of [null, 5, {}, { name: 'a', fields: {}, x: 1 }])
    await assertWrong(defineCollection, [[[given], 'OptionError', 'collection', /Cannot declare the collection/]]);
  await assertWrong(reply, [
    option('200', 'status', /a number/),
    option(99, 'status', /from 200 to 599/),
    [[200, 'x', null], 'OptionError', 'headers', /an object/],
  ]);
  const sink = process.stderr;
  await assertWrong(createLog, [
    option(null, 'createLog', /an object/),
    option({ level: 'all', sink }, 'level', /one of info/),
    option({ levle: 'info', sink }, 'levle', /level/),
    option({ level: 'info' }, 'sink', /no method "write"/),
  ]);
});

test("the errors of an app's methods name the mistake", async (t) => {
  const app = await createApp({ collections: [tasks, conf], auth: 'none', log });
  t.after(() => app.close());
  await assertWrong(app.listen, [
    option(undefined, 'app.listen', /an object/),
    option({}, 'port', /whole number/),
    option({ port: '80' }, 'port', /whole number/),
    option({ port: 0, hots: '::1' }, 'hots', /no such option/),
    option({ port: 0, host: 5 }, 'host', /address/),
    option({ port: 0, host: '0.0.0.0' }, 'host', /loopback only/),
    option({ port: 0, tls: {} }, 'tls', /cert must be given/),
  ]);
  await assertWrong(app.renewTls, [
    option(undefined, 'tls', /an object/),
    option({ cert: 'x' }, 'tls', /key must be given/),
  ]);
  const target = '/tasks';
  await assertWrong(app.inject, [
    option('/tasks', 'app.inject', /an object/),
    option({}, 'target', /begins with/),
    option({ target: 'tasks' }, 'target', /begins/),
    option({ target: 'http://a/b' }, 'target', /begins/),
    option({ target, method: 5 }, 'method', /a text/),
    option({ target, fields: {} }, 'fields', /use headers/),
    option({ target, url: '/' }, 'url', /use target/),
    option({ target, headers: new Headers() }, 'headers', /plain object/),
    option({ target, headers: { a: undefined } }, 'headers', /texts/),
    option({ target, body: {} }, 'body', /JSON\.stringify/),
    option({ target, address: 5 }, 'address', /a text/),
    option({ target, signal: 5 }, 'signal', /an object/),
    option({ target, onPiece: 5 }, 'onPiece', /a function/),
  ]);
  const request = new Request('http://cairn/tasks');
  const used = new Request('http://cairn/tasks', { method: 'POST', body: '{}' });
  await used.text();
  await assertWrong(app.fetch, [
    [['/tasks'], 'TypeError', undefined, /takes a Request/],
    [[{ url: '/' }], 'TypeError', undefined, /takes a Request/],
    [[used], 'TypeError', undefined, /was read before/],
    [[request, { adress: '::1' }], 'OptionError', 'adress', /address/],
    [[request, { address: 5 }], 'OptionError', 'address', /a text/],
  ]);
  await assertWrong(app.authenticate, [[[{}], 'TypeError', undefined, /takes a Request/]]);
  await assertWrong(app.collection, [
    option(undefined, 'collection', /there are items, tasks/),
    option('users', 'collection', /app\.users/),
    option('conf', 'collection', /use single/),
  ]);
  await assertWrong(app.single, [option('tasks', 'single', /use collection/), option('x', 'single', /there are conf/)]);
  await assertWrong(app.versionOf, [option(5, 'record', /the very object/)]);
  await assertWrong(app.write, [
    option(5, 'work', /a function/),
    [[() => 1, { us: 1 }], 'OptionError', 'us', /as/],
    [[() => 1, { as: undefined }], 'OptionError', 'as', /leave it out/],
    [[() => Object.assign(() => 1, { then() {} })], 'TypeError', undefined, /synchronous/],
  ]);
});

test("the errors of a collection's methods name the mistake", async (t) => {
  const app = await createApp({ collections: [tasks, conf], auth: 'none', log });
  t.after(() => app.close());
  const all = app.collection(tasks);
  await all.create({ title: 'A' });
  const ids = (more: readonly unknown[] = []): Wrong[] =>
    [undefined, null, {}, [1], NaN, true].map((id) => [[id, ...more], 'OptionError', 'id', /a number or a text/]);
  const options = (...before: unknown[]): Wrong[] =>
    [
      [[...before, 5], 'OptionError', undefined, /an object/],
      [[...before, null], 'OptionError', undefined, /an object/],
      [[...before, { at: 1 }], 'OptionError', 'at', /no such option/],
      [[...before, { as: undefined }], 'OptionError', 'as', /leave it out/],
    ].map(([given, name, named, message]) => [given, name, named, message] as unknown as Wrong);
  const unnamed = (rows: readonly Wrong[], what: string): Wrong[] =>
    rows.map(([given, name, named, message]) => [given, name, named ?? what, message]);
  await assertWrong(all.get, [...ids(), ...unnamed(options(1), 'get of tasks')]);
  await assertWrong(all.change, [...ids([{}]), ...unnamed(options(1, {}), 'change of tasks')]);
  await assertWrong(all.replace, [
    ...ids([{ title: 'B' }]),
    ...unnamed(options(1, { title: 'B' }), 'replace of tasks'),
  ]);
  await assertWrong(all.remove, [...ids(), ...unnamed(options(1), 'remove of tasks')]);
  await assertWrong(all.create, unnamed(options({ title: 'B' }), 'create of tasks'));
  await assertWrong(all.createMany, unnamed(options([{ title: 'B' }]), 'createMany of tasks'));
  await assertWrong(app.single(conf).replace, unnamed(options({}), 'replace of conf'));
  await assertWrong(
    all.change,
    [null, 5, {}].map((ifVersion) => [[1, {}, { ifVersion }], 'OptionError', 'ifVersion', /a text/]),
  );
  const circle: { data?: unknown } = {};
  circle.data = circle;
  for (const method of [
    all.create,
    (one: unknown) => app.write((tx) => Reflect.apply(tx.collection(tasks).create, 0, [one])),
  ]) {
    await assertWrong(method, [
      [[undefined], 'TypeError', undefined, /not JSON/],
      [[new Map()], 'TypeError', undefined, /not JSON/],
      [[{ title: new Date(0) }], 'TypeError', undefined, /"\/title".*toISOString/],
      [[{ title: 'A', data: { 'a/b': [NaN] } }], 'TypeError', undefined, /not JSON/],
      [[{ title: 'A', data: circle }], 'TypeError', undefined, /deeper than 32/],
      [[5], 'CairnError', 'validation_failed', /breaks a rule/],
    ]);
  }
  await assertWrong(all.list, [
    option({ wher: {} }, 'wher', /where/),
    option({ where: [] }, 'where', /an object/),
    option({ where: 5 }, 'where', /an object/),
    option({ where: { title: new Date(0) } }, 'where', /"title" takes texts/),
    option({ where: { title: {} } }, 'where', /texts/),
    option({ limit: '5' }, 'limit', /a number/),
    option({ after: 5 }, 'after', /a text/),
    option({ total: 1 }, 'total', /true or/),
    [[{ where: { titel: 1 } }], 'CairnError', 'invalid_query', /"titel"/],
    [[{ limit: 0 }], 'CairnError', 'invalid_query', /limit/],
    [[{ sort: 'titel' }], 'CairnError', 'invalid_query', /sort/],
    [[{}, { as: 'public' }], 'OptionError', 'list', /one object of options/],
  ]);
  await assertWrong(all.count, [
    option({ where: 5 }, 'where', /an object/),
    option({ sort: 'id' }, 'sort', /no such option/),
    [[{}, { as: 'public' }], 'OptionError', 'count', /one object of options/],
  ]);
  await assertWrong(
    async (given: unknown) => Reflect.apply(all.all, 0, [given]).next(),
    [option({ after: 'x' }, 'after', /no such/)],
  );
  const within = (work: (of: Record<string, (...given: unknown[]) => unknown>) => unknown) =>
    app.write((tx) => void work({ ...tx.collection(tasks) } as never));
  await assertWrong(within, [
    [[({ get }: never) => Reflect.apply(get, 0, [])], 'OptionError', 'id', /a number or a text/],
    [[({ get }: never) => Reflect.apply(get, 0, [1, { as: 1 }])], 'OptionError', 'as', /no such option/],
    [
      [({ create }: never) => Reflect.apply(create, 0, [{ title: 'B' }, { as: 1 }])],
      'OptionError',
      'as',
      /no such option/,
    ],
    [[({ change }: never) => Reflect.apply(change, 0, [1, {}, { as: 1 }])], 'OptionError', 'as', /no such option/],
    [[({ remove }: never) => Reflect.apply(remove, 0, [])], 'OptionError', 'id', /a number or a text/],
    [[({ find }: never) => Reflect.apply(find, 0, ['title', 'A'])], 'OptionError', 'title', /not unique/],
    [[({ find }: never) => Reflect.apply(find, 0, ['code', {}])], 'OptionError', 'code', /a text or a number/],
    [
      [({ referring }: never) => Reflect.apply(referring, 0, ['code', 1])],
      'OptionError',
      'code',
      /not a reference; the references of tasks are: none/,
    ],
  ]);
  assert.deepEqual((await all.list()).records, [{ id: 1, title: 'A' }], 'nothing was written');
});
