import assert from 'node:assert/strict';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  CairnError, createApp, defineCollection, defineRoute, reply, type App, type AppOptions, type RouteReply,
} from '../../src/index.ts';
import { fakeTimers } from '../support/basics.ts';

const tasks = defineCollection({
  name: 'tasks',
  fields: { title: { kind: 'text', min: 1 }, done: { kind: 'boolean', default: false } },
});

const finish = defineRoute({
  method: 'POST',
  path: '/tasks/{id}/finish',
  access: 'user',
  summary: 'Finish a task',
  body: { note: { kind: 'text', optional: true } },
  reply: { title: { kind: 'text' }, by: { kind: 'integer' } },
  write(tx, { id, caller, body }) {
    const task = tx.collection(tasks).get(id);
    if (task === undefined) throw new CairnError('not_found', 'Cannot finish the task: there is none');
    if (task.done) return reply(409, { reason: 'done already' });
    tx.collection(tasks).change(id, { done: true });
    return { title: task.title + (body.note ?? ''), by: caller.user ?? 0 };
  },
});
const search = defineRoute({
  method: 'GET',
  path: '/find',
  access: 'public',
  summary: 'Find tasks',
  query: { word: { kind: 'text' }, most: { kind: 'integer', default: 10 } },
  async handle({ app, query }) {
    const where = { 'title:contains': query.word };
    const { records } = await app.collection(tasks).list({ where, limit: query.most });
    return records.map(({ title }) => title);
  },
});
const raw = defineRoute({
  method: 'GET', path: '/raw', access: 'admin', summary: 'Answer with a Response',
  handle: () => new Response('<b>', { status: 203, headers: { 'content-type': 'text/html' } }),
});
const broken = defineRoute({
  method: 'POST', path: '/broken', access: 'optional', summary: 'Fail',
  write(tx) {
    tx.collection(tasks).create({ title: 'never' });
    throw new Error('a secret');
  },
});
const late = defineRoute({
  method: 'POST', path: '/late', access: 'optional', summary: 'Fail',
  // @ts-expect-error: plain JavaScript may be asynchronous
  write: async () => 1,
});
const routes = [finish, search, raw, broken, late];
const ada = { name: 'Ada', email: 'ada@example.org', role: 'admin', password: 'correct horse battery' };
const mia = { name: 'Mia', email: 'mia@example.org', role: 'member', password: 'a quiet place to be' };

async function open(t: TestContext, options: AppOptions = {}): Promise<App> {
  const app = await createApp({ collections: [tasks], routes, scryptCost: 1, ...options });
  t.after(() => app.close());
  await app.users.create(ada);
  await app.users.create(mia);
  return app;
}

async function signedIn(app: App, { email, password }: typeof ada): Promise<Record<string, string>> {
  const headers = { 'content-type': 'application/json' };
  const asked = { method: 'POST', target: '/tokens', headers, body: JSON.stringify({ email, password }) };
  return { ...headers, authorization: `Bearer ${JSON.parse((await app.inject(asked)).body).access_token}` };
}

test('a route of your own is authenticated, validated and logged like every other', async (t) => {
  const app = await open(t);
  const headers = await signedIn(app, mia);
  const task = await app.collection(tasks).create({ title: 'Read' });
  const send = (target: string, body = '{}', more = {}) =>
    app.inject({ method: 'POST', target, headers: { ...headers, ...more }, body });
  const stranger = await app.inject({ method: 'POST', target: '/tasks/1/finish' });
  assert.equal(stranger.status, 401);
  assert.equal((await send('/tasks/1/finish', '{"nope":1}')).status, 422);
  assert.equal((await send('/tasks/99/finish')).status, 404);
  assert.equal((await send('/tasks/1/nothing')).status, 404);
  const allow = await app.inject({ target: '/tasks/1/finish', headers });
  assert.deepEqual([allow.status, allow.headers.get('allow')], [405, 'OPTIONS, POST']);
  const done = await send('/tasks/1/finish', '{"note":"!"}', { 'idempotency-key': 'k' });
  assert.deepEqual([done.status, done.body], [200, '{"title":"Read!","by":2}']);
  const again = await send('/tasks/1/finish', '{"note":"!"}', { 'idempotency-key': 'k' });
  assert.deepEqual([again.status, again.body, again.headers.get('idempotency-replayed')], [200, done.body, 'true']);
  const refused = await send('/tasks/1/finish');
  assert.deepEqual([refused.status, refused.body], [409, '{"reason":"done already"}']);
  assert.equal(app.collection(tasks).get(task.id)?.done, true);
});

test('a handler gets its query and the app, and may answer with a Response', async (t) => {
  const app = await open(t);
  await app.collection(tasks).createMany([{ title: 'Read' }, { title: 'Ride' }, { title: 'Sleep' }]);
  assert.equal((await app.inject({ target: '/find?word=R' })).body, '["Read","Ride"]');
  assert.equal((await app.inject({ target: '/find?word=R&most=1' })).body, '["Read"]');
  for (const query of ['', '?word=R&other=1', '?word=R&word=S', '?word=R&most=x'])
    assert.equal((await app.inject({ target: `/find${query}` })).status, 400, query);
  const { status, headers, body } = await app.inject({ target: '/raw', headers: await signedIn(app, ada) });
  assert.deepEqual([status, headers.get('content-type'), body], [203, 'text/html', '<b>']);
  assert.equal((await app.inject({ target: '/raw', headers: await signedIn(app, mia) })).status, 403);
});

test('an id in a path belongs to the collection before it', async (t) => {
  const route = <const P extends string>(path: P) => defineRoute({
    method: 'GET', path, access: 'public', summary: 'Show the id', handle: ({ id }) => [typeof id, id],
  });
  const promote = defineRoute({
    method: 'POST', path: '/users/{id}/promote', access: 'admin', summary: 'Promote a user',
    async handle({ id, app }) {
      await app.users.setPassword(id, 'another pass phrase');
      return await app.users.change(id, { role: 'admin' });
    },
  });
  const given = (name: string, kind: 'integer' | 'text' | 'any') =>
    ({ name, id: { kind, given: true }, fields: { a: { kind: 'integer' } } }) as const;
  const app = await open(t, {
    collections: [tasks, given('numbers', 'integer'), given('texts', 'text'), given('anything', 'any')],
    routes: [
      promote, route('/users/{id}/x'), route('/tasks/{id}/x'), route('/all/tasks/{id}'), route('/numbers/{id}/x'),
      route('/texts/{id}/x'), route('/anything/{id}/x'), route('/nothing/{id}'), route('/tasks/texts/{id}/x'),
    ],
  });
  for (const [path, id] of [
    ['/users/2/x', 2], ['/users/02/x', 0], ['/users/x/x', 0], ['/tasks/7/x', 7], ['/all/tasks/7', 7],
    ['/numbers/-7/x', -7], ['/numbers/07/x', '07'], ['/numbers/NaN/x', 'NaN'], ['/texts/7/x', '7'],
    ['/numbers/9007199254740993/x', '9007199254740993'], ['/anything/7/x', '7'], ['/nothing/7', '7'],
    ['/tasks/texts/a%2Fb/x', 'a/b'],
  ] as const)
    assert.deepEqual(JSON.parse((await app.inject({ target: path })).body), [typeof id, id], path);
  const headers = await signedIn(app, ada);
  const promoted = await app.inject({ method: 'POST', target: '/users/2/promote', headers });
  assert.deepEqual([promoted.status, JSON.parse(promoted.body).role], [200, 'admin']);
  await app.collection('numbers').create({ id: -7, a: 1 });
  for (const [target, status] of [['/numbers/-7', 200], ['/numbers/-07', 404], ['/numbers/x', 404]] as const)
    assert.equal((await app.inject({ target, headers })).status, status, target);
});

test('the bounds of a query are enforced as they are published', async (t) => {
  const bounded = defineRoute({
    method: 'GET', path: '/bounded', access: 'public', summary: 'Take a query',
    query: {
      n: { kind: 'integer', min: 1, max: 5 }, part: { kind: 'number', max: 0.5, default: 0 },
      word: { kind: 'text', min: 2, max: 3, optional: true }, mail: { kind: 'email', optional: true },
      place: { kind: 'url', optional: true }, task: { kind: 'reference', to: 'tasks', optional: true },
    },
    handle: ({ query }) => query,
  });
  const app = await open(t, { routes: [bounded] });
  const ask = (query: string) => app.inject({ target: `/bounded?${query}` });
  assert.equal((await ask('n=5&word=abc&task=1')).body, '{"n":5,"word":"abc","task":1,"part":0}');
  for (const [query, detail] of [
    ['n=0', '"n" must be at least 1'], ['n=6', '"n" must be at most 5'], ['n=1.5', '"n" must be a whole number'],
    ['n=1&part=0.6', '"part" must be at most 0.5'], ['n=1&word=a', '"word" must be at least 2 characters long'],
    ['n=1&word=abcd', '"word" must be at most 3 characters long'], ['n=1&mail=x', '"mail" must be an e-mail address'],
    ['n=1&place=x', '"place" must be an absolute http or https address'], ['n=1&task=0', '"task" must be at least 1'],
  ] as const) {
    const { status, body } = await ask(query);
    assert.deepEqual([status, JSON.parse(body).detail], [400, `Cannot read the query: ${detail}`]);
  }
  const { parameters } = JSON.parse((await app.inject({ target: '/openapi.json' })).body).paths['/bounded'].get;
  const required = parameters.filter((one: { required?: boolean }) => one.required === true);
  assert.deepEqual(required.map(({ name }: { name: string }) => name), ['n']);
  assert.deepEqual([required[0].schema.minimum, required[0].schema.maximum], [1, 5]);
});

test('the value of a handler is sent whole; if it cannot be sent, the response is a 500', async (t) => {
  const gzipped = createServer((_, outgoing) => {
    const content = gzipSync('a text');
    const fields = { 'content-encoding': 'gzip', 'content-length': content.length, 'x-own': '1' };
    outgoing.writeHead(200, fields).end(content);
  });
  await new Promise<void>((resolve) => gzipped.listen(0, '127.0.0.1', resolve));
  t.after(() => gzipped.close());
  const upstream = `http://127.0.0.1:${Object(gzipped.address()).port}`;
  const answers: Record<string, () => unknown> = {
    proxied: () => fetch(upstream, { headers: { connection: 'close' } }),
    framed: () => reply(200, 'four', { 'Content-Length': '99', 'Transfer-Encoding': 'chunked' }),
    empty: () => reply(204, 'four'),
    bytes: () => reply(200, new Uint8Array([255, 0])),
    broken: () => reply(200, 'x', { 'x-a': 'a\r\nb: c' }),
    failed: () => Response.error(),
    page: () => reply(200, '<script src="a.js">', { 'content-security-policy': "script-src 'self'" }),
    'own-page': () => new Response('<p>', { headers: { 'Content-Security-Policy': "default-src 'self'" } }),
  };
  const own = Object.entries(answers).map(([name, handle]) =>
    defineRoute({ method: 'GET', path: `/${name}`, access: 'public', summary: 'Answer', handle }),
  );
  const writing = (name: string, value: () => RouteReply | undefined) =>
    defineRoute({
      method: 'POST', path: `/${name}`, access: 'public', summary: 'Write',
      write(tx) {
        tx.collection(tasks).create({ title: name });
        return value();
      },
    });
  const written = [
    writing('nothing', () => undefined), writing('unsendable', () => reply(200, 'x', { 'x-a': '\n' + 'b\nc' })),
    writing('kept-bytes', () => reply(200, Buffer.from([255]))),
  ];
  const app = await open(t, { routes: [...own, ...written], log: { info() {}, warn() {}, error() {} } });
  const port = await app.listen({ port: 0 });
  const ask = async (name: string, asked: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}/${name}`, asked);
    return [response.status, Buffer.from(await response.arrayBuffer()).toString('latin1'), response.headers] as const;
  };
  const [status, content, fields] = await ask('proxied');
  assert.deepEqual([status, content, fields.get('x-own')], [200, 'a text', '1']);
  assert.deepEqual((await ask('framed')).slice(0, 2), [200, 'four']);
  assert.deepEqual((await ask('empty')).slice(0, 2), [204, '']);
  assert.equal((await app.fetch(new Request('http://cairn/empty'))).status, 204);
  assert.deepEqual((await ask('bytes')).slice(0, 2), [200, '\xff\0']);
  for (const [name, policy] of [
    ['page', "script-src 'self'"], ['own-page', "default-src 'self'"],
    ['bytes', "default-src 'none'; frame-ancestors 'none'"],
  ] as const) {
    const [, , headers] = await ask(name);
    assert.deepEqual(
      [headers.get('content-security-policy'), headers.get('x-content-type-options')], [policy, 'nosniff'], name,
    );
  }
  for (const name of ['broken', 'failed']) assert.equal((await ask(name))[0], 500, name);
  const post = { method: 'POST', headers: { 'idempotency-key': 'k' } };
  for (const replayed of [null, 'true']) {
    const [code, text, headers] = await ask('nothing', post);
    assert.deepEqual([code, text, headers.get('idempotency-replayed')], [204, '', replayed]);
  }
  assert.equal((await app.fetch(new Request('http://cairn/nothing', post))).status, 204);
  for (const name of ['unsendable', 'kept-bytes']) assert.equal((await ask(name, { method: 'POST' }))[0], 500, name);
  assert.equal(app.collection(tasks).count({ where: { title: ['unsendable', 'kept-bytes'] } }), 0);
});

test('a handler that throws, or returns a promise from a transaction, writes nothing', async (t) => {
  let lines = '';
  const log = { info() {}, warn() {}, error: (line: string) => void (lines += line) };
  const app = await open(t, { log });
  for (const target of ['/broken', '/late']) {
    const { status, body } = await app.inject({ method: 'POST', target });
    assert.equal(status, 500);
    assert.equal(body.includes('secret'), false);
  }
  assert.match(lines, /a secret.*routes\.test/s);
  assert.match(lines, /must be synchronous/);
  assert.equal(app.collection(tasks).count(), 0);
});

test('a handler may take longer than 30 s', async (t) => {
  let finish = (value: string): void => void value;
  const slow = defineRoute({
    method: 'GET', path: '/slow', access: 'public', summary: 'Wait',
    handle: () => new Promise((resolve) => (finish = resolve)),
  });
  const app = await open(t, { routes: [slow] });
  const time = fakeTimers(t);
  const asked = app.inject({ target: '/slow' });
  await new Promise((resolve) => setImmediate(resolve));
  time.tick(3_600_000);
  time.reset();
  finish('late');
  assert.equal((await asked).body, '"late"');
});

test('the signal of a call is aborted when its caller has left, even if it is first asked for then', async (t) => {
  const events = new EventEmitter();
  const wait = defineRoute({
    method: 'GET', path: '/wait', access: 'public', summary: 'Wait',
    async handle(call) {
      events.emit('begun', call);
      await once(events, 'left');
      events.emit('asked', call.signal.aborted, call.signal === call.request.signal);
    },
  });
  const app = await open(t, { routes: [wait] });
  const leaving = new AbortController();
  const begun = once(events, 'begun');
  void app.inject({ target: '/wait', signal: leaving.signal });
  await begun;
  leaving.abort();
  const asked = once(events, 'asked');
  events.emit('left');
  assert.deepEqual(await asked, [true, true]);
});

test('the signal of a call is aborted when the app has closed, even if it is first asked for then', async (t) => {
  const events = new EventEmitter();
  let isAborted: boolean | undefined;
  const wait = defineRoute({
    method: 'GET', path: '/wait', access: 'public', summary: 'Wait',
    async handle(call) {
      await once(events, 'closing');
      isAborted = call.signal.aborted;
    },
  });
  const app = await open(t, { routes: [wait] });
  const asked = app.inject({ target: '/wait' });
  await new Promise((resolve) => setImmediate(resolve));
  const closed = app.close();
  events.emit('closing');
  await Promise.all([asked, closed]);
  assert.equal(isAborted, true);
});

test('a signed webhook is verified over the bytes that were sent', async (t) => {
  const sign = (bytes: string | Buffer) => createHmac('sha256', 'a shared secret').update(bytes).digest('hex');
  const hook = defineRoute({
    method: 'POST', path: '/hooks/payments', access: 'public', summary: 'Take a payment', body: 'bytes',
    write(tx, { body, request }) {
      const given = Buffer.from(request.header('x-signature') ?? '');
      const wanted = Buffer.from(sign(body));
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return reply(401);
      const { title } = JSON.parse(body.toString());
      return tx.collection(tasks).create({ title });
    },
  });
  const app = await open(t, { routes: [hook] });
  const sent = '{ "title" : "Paid \\u00e9" }';
  const ask = (body: string, signature: string, type = 'text/plain') => {
    const headers = { 'x-signature': signature, 'content-type': type };
    return app.inject({ method: 'POST', target: '/hooks/payments', body, headers });
  };
  assert.equal((await ask(sent, sign(JSON.stringify(JSON.parse(sent))))).status, 401);
  for (const type of ['text/plain', 'application/json', 'application/x-www-form-urlencoded'])
    assert.equal((await ask(sent, sign(sent), type)).status, 200, type);
  assert.equal((await ask('x'.repeat(65_537), sign(''))).status, 413);
  assert.equal(app.collection(tasks).count(), 3);
  const { paths } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const { requestBody } = paths['/hooks/payments'].post;
  assert.deepEqual(requestBody, { required: true, content: { '*/*': { schema: {} } } });
});

test('one of several access words suffices, and close aborts the signals of waiting handlers', async (t) => {
  const wait = defineRoute({
    method: 'GET', path: '/wait', access: ['editor', 'clerk'], summary: 'Wait',
    async handle({ request, caller }) {
      await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
      return caller.role;
    },
  });
  const app = await open(t, { routes: [wait], roles: ['editor', 'clerk', 'guest'] });
  const asks = [];
  for (const [role, expected] of [['editor', 200], ['clerk', 200], ['guest', 403]] as const) {
    const who = { ...mia, role, email: `${role}@example.org` };
    await app.users.create(who);
    const asked = app.inject({ target: '/wait', headers: await signedIn(app, who) });
    asks.push(asked.then(({ status, body }) => {
      assert.equal(status, expected);
      if (status === 200) assert.equal(body, `"${role}"`);
    }));
  }
  await new Promise((resolve) => setImmediate(resolve));
  await app.close();
  await Promise.all(asks);
});

test('the OpenAPI document has routes of your own', async (t) => {
  const app = await open(t);
  const { paths } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const { post } = paths['/tasks/{id}/finish'];
  assert.deepEqual([post.summary, post.tags, post.operationId], ['Finish a task', ['tasks'], 'postTasksIdFinish']);
  assert.ok(post.parameters.some(({ name }: { name: string }) => name === 'Idempotency-Key'));
  const named = paths['/find'].get.parameters.map(({ name }: { name: string }) => name);
  assert.deepEqual(named, ['word', 'most']);
});

test('a route that contradicts another or is wrong does not start', async () => {
  const handle = (): number => 1;
  const base = { method: 'GET', path: '/own', access: 'user', summary: 'x', handle } as const;
  const wrong: readonly [object, string, RegExp][] = [
    [{ ...base, acess: 'user' }, 'acess', /did you mean/i],
    [{ ...base, access: 'users' }, 'access', /must be one or more of/],
    [{ ...base, path: 'own' }, 'path', /must be like/], [{ ...base, handle: undefined }, 'handle', /either/],
    [{ ...base, write: handle }, 'handle', /either/], [{ ...base, method: 'HEAD' }, 'method', /one of GET/],
    [{ ...base, body: {} }, 'method', /GET has no body/],
    [{ ...base, method: 'POST', body: 'text' }, 'body', /an object of fields, or "bytes"/],
    [{ ...base, access: [] }, 'access', /must be one or more of/],
  ];
  for (const [route, option, message] of wrong) {
    const start = Reflect.apply(createApp, undefined, [{ routes: [route] }]);
    await assert.rejects(start, { name: 'OptionError', option, message });
  }
  const taken = createApp({ routes: [defineRoute({ ...base, path: '/items' })] });
  const message = /"GET \/items" and "GET \/items" match the same paths/;
  await assert.rejects(taken, { name: 'OptionError', option: 'routes', message });
});

test('an endless Response is read up to its bound, and no further after its connection breaks', async (t) => {
  const cancelled: string[] = [];
  const pulled = new EventEmitter();
  const endless = (path: string, size: number) => defineRoute({
    method: 'GET', path, access: 'public', summary: 'Answer without an end',
    handle: () => new Response(new ReadableStream({
      async pull(controller) {
        await new Promise((resolve) => setImmediate(resolve));
        pulled.emit(path);
        controller.enqueue(new Uint8Array(size));
      },
      cancel: () => void cancelled.push(path),
    })),
  });
  const routes = [endless('/long', 4 * 2 ** 20), endless('/left', 1)];
  const app = await open(t, { routes, log: { info() {}, warn() {}, error() {} } });
  const url = `http://127.0.0.1:${await app.listen({ port: 0 })}`;
  const { status } = await fetch(`${url}/long`);
  assert.deepEqual([status, cancelled], [500, ['/long']]);
  // A half-closed connection still waits for its answer.
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined);
  socket.write('GET /left HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(pulled, '/left');
  socket.resetAndDestroy();
  while (cancelled.length < 2) await new Promise((resolve) => setTimeout(resolve, 2));
});

test('a Response that a stop breaks off is not sent as if it were whole', async (t) => {
  const pulled = new EventEmitter();
  const endless = defineRoute({
    method: 'GET', path: '/endless', access: 'public', summary: 'Answer without an end',
    handle: () => new Response(new ReadableStream({
      async pull(controller) {
        await new Promise((resolve) => setImmediate(resolve));
        controller.enqueue(new Uint8Array(1));
        pulled.emit('piece');
      },
    })),
  });
  const app = await open(t, { routes: [endless] });
  const asked = app.inject({ target: '/endless' });
  await once(pulled, 'piece');
  const [{ status }] = await Promise.all([asked, app.close()]);
  assert.equal(status, 503);
});

test('the bytes read from a Response count in the share of its caller', async (t) => {
  let resolve = (): void => undefined;
  const everyoneReads = new Promise<void>((done) => (resolve = done));
  let [waiting, cancelled] = [0, 0];
  const long = defineRoute({
    method: 'GET', path: '/long', access: 'public', summary: 'Answer with 60 MB',
    handle: () => {
      let sent = 0;
      return new Response(new ReadableStream({
        async pull(controller) {
          sent += 1;
          controller.enqueue(new Uint8Array(6_000_000));
          if (sent < 10) return;
          waiting += 1;
          if (waiting === 8) resolve();
          await everyoneReads;
          controller.close();
        },
        cancel() {
          cancelled += 1;
          waiting += 1;
          if (waiting === 8) resolve();
        },
      }));
    },
  });
  const app = await open(t, { routes: [long], log: { info() {}, warn() {}, error() {} } });
  const url = `http://127.0.0.1:${await app.listen({ port: 0 })}/long`;
  const answers = Array.from({ length: 8 }, async () => {
    const answer = await fetch(url);
    return [answer.status, (await answer.arrayBuffer()).byteLength > 1000];
  });
  const statuses = (await Promise.all(answers)).map(([status, isLong]) => `${status} ${isLong}`).sort();
  // Not only when all of it has been read.
  assert.ok(cancelled > 0 && statuses.includes('503 false'), `${cancelled} ${statuses}`);
});

test('a slow route runs for a slice of each turn of the event loop, and callers take turns', async (t) => {
  let nowMs = 0;
  const answered: string[] = [];
  const slow = defineRoute({
    method: 'GET', path: '/slow', access: 'public', query: { of: { kind: 'text' } }, summary: 'Take 10 ms',
    handle({ query }) {
      nowMs += 10;
      answered.push(query.of);
      return null;
    },
  });
  const clock = { now: () => nowMs, elapsed: () => nowMs };
  const app = await open(t, { routes: [slow], clock, trustedProxies: ['127.0.0.1'] });
  const port = await app.listen({ port: 0 });
  const others = Array.from({ length: 11 }, () => connect(port, '127.0.0.1'));
  await Promise.all(others.map((socket) => once(socket, 'connect')));
  // All of them have been accepted.
  await (await fetch(`http://127.0.0.1:${port}/livez`)).text();
  for (const [index, socket] of others.entries()) {
    const of = index < 10 ? 'flood' : 'other';
    const address = index < 10 ? '192.0.2.1' : '198.51.100.1';
    socket.write(`GET /slow?of=${of} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: ${address}\r\n\r\n`);
  }
  await Promise.all(others.map((socket) => once(socket, 'data')));
  for (const socket of others) socket.destroy();
  // It comes after the requests of the first turn, and perhaps one of the flood.
  assert.ok(answered.indexOf('other') <= 4, answered.join());
});
