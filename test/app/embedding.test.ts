import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import {
  createLog, defineCollection, type Change, type Clock, type Field, type Random, type Shape,
} from '../../src/index.ts';
import { openApp } from '../../src/app/app.ts';
import { isJsonObject, parseJson } from '../../src/base/json.ts';
import { limits } from '../../src/base/limits.ts';
import { silentLog } from '../../src/log/log.ts';
import { inject } from '../../src/programs/inject.ts';
import { completeOptions } from '../../src/programs/options.ts';
import { startCairn, temporaryDirectory } from '../support/cli/spawn.ts';
import { fakeTimers, isLockedRun } from '../support/basics.ts';
import { readHandbook } from '../support/source.ts';
import { RawClient } from '../support/http/raw.ts';
import { checkResponse } from '../support/contract.ts';
import { createApp, type App } from '../support/inside.ts';

const json = { 'Content-Type': 'application/json' };
const lamp = { method: 'POST', target: '/items', fields: json, body: '{"name":"Lamp","price":24.5}' };

test('an app in memory needs no port and leaves nothing behind', async () => {
  const app = await createApp({ auth: 'none' });
  assert.equal(app.users.records.size, 0);
  const made = await app.inject(lamp);
  assert.deepEqual([made.status, made.body, made.fields.get('location')], [
    201, '{"id":1,"name":"Lamp","price":24.5}', '/items/1',
  ]);
  await app.close();
});

test('an app that is closed while it starts answers nothing afterwards', async () => {
  let closing: Promise<void> | undefined;
  const password = async (): Promise<string> => {
    // A request in flight holds the store open until the administrator is made.
    app.server.unanswered += 1;
    closing = app.close();
    await turn();
    return 'a good password, long';
  };
  const app = await openApp(completeOptions({ administrator: { email: 'ada@example.org', password }, scryptCost: 1 }));
  await app.begin();
  app.server.unanswered -= 1;
  app.server.notifyIdle();
  await closing;
  assert.equal((await inject(app.server.options, { target: '/openapi.json' })).status, 503);
});

test('an app in memory starts within 20 ms of processor time', async () => {
  const times: number[] = [];
  for (let round = 0; round < 10; round += 1) {
    const begin = process.cpuUsage();
    const app = await createApp({ auth: 'none' });
    assert.equal((await app.inject({ target: '/items' })).status, 200);
    const { user, system } = process.cpuUsage(begin);
    times.push((user + system) / 1000);
    await app.close();
  }
  assert.ok(Math.min(...times) < 20, `${times.map((time) => time.toFixed(1)).join(', ')} ms`);
});

test('two apps in one process share nothing', async () => {
  const [one, other] = await Promise.all([createApp({ auth: 'none' }), createApp({ auth: 'none' })]);
  await one.inject(lamp);
  assert.equal((await one.inject({ target: '/items' })).body, '[{"id":1,"name":"Lamp","price":24.5}]');
  assert.equal((await other.inject({ target: '/items' })).body, '[]');
  await one.close();
  assert.equal((await other.inject({ target: '/items' })).status, 200);
  await other.close();
});

test('an app listens on its own port until it is closed', async () => {
  const app = await createApp();
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const url = `http://127.0.0.1:${port}/livez`;
  assert.equal((await fetch(url)).status, 200);
  await app.close();
  await assert.rejects(fetch(url));
});

test('an app handles the requests of an existing server', async (t) => {
  const app = await createApp({ auth: 'none' });
  const server = createServer((incoming, outgoing) => {
    if (incoming.url === '/own') outgoing.end('own');
    else app.handler(incoming, outgoing);
  }).listen(0, '127.0.0.1');
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await app.close();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  assert.equal(await (await fetch(`http://127.0.0.1:${port}/own`)).text(), 'own');
  assert.equal(await (await fetch(`http://127.0.0.1:${port}/items`)).text(), '[]');
  const upgrade = 'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n';
  const client = new RawClient(port).send(upgrade);
  assert.equal((await client.reply()).fields.get('connection'), 'close');
  assert.equal(await client.rest(), '', 'what would follow an Upgrade is not read');
});

test('an app that serves an existing server closes in the documented order while a feed is open', async (t) => {
  const app = await createApp({ auth: 'none' });
  const server = createServer(app.handler).listen(0, '127.0.0.1');
  t.after(() => server.closeAllConnections());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { body } = await fetch(`http://127.0.0.1:${port}/changes`);
  const reader = body?.getReader();
  assert.equal((await reader?.read())?.done, false);
  const order = readHandbook().indexOf('new Promise((resolve) => server.close(resolve))');
  const steps = ['await app.close();', 'await closed;'].map((step) => readHandbook().indexOf(step, order));
  assert.ok(order > 0 && Number(steps[0]) < Number(steps[1]));
  const closed = new Promise((resolve) => server.close(resolve));
  await app.close();
  await closed;
  assert.equal((await reader?.read())?.done, true);
});

test('a body that other code has read is reported as such', async (t) => {
  const messages: unknown[] = [];
  const log = { ...silentLog, message: (...message: unknown[]) => void messages.push(message[2]) };
  const app = await createApp({ auth: 'none', log });
  const server = createServer(async (incoming, outgoing) => {
    for await (const chunk of incoming) assert.ok(chunk);
    app.handler(incoming, outgoing);
  }).listen(0, '127.0.0.1');
  t.after(async () => {
    server.close();
    await app.close();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const body = JSON.stringify({ name: 'Lamp', price: 1 });
  const headers = { 'content-type': 'application/json', connection: 'close' };
  const answer = await fetch(`http://127.0.0.1:${port}/items`, { method: 'POST', body, headers });
  assert.equal(answer.status, 500);
  assert.match(String(Object(messages[0]).stack), /the body was read before .* mount app\.handler before/);
});

test('the data outlives the app, and its directory is free again', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const administrator = { email: 'ada@example.org', password: 'correct horse battery' };
  const first = await createApp({ directory, administrator, scryptCost: 14 });
  await assert.rejects(createApp({ directory }), { name: 'LockedError' });
  await first.close();
  const second = await createApp({ directory, administrator: { ...administrator, email: 'bob@example.org' } });
  assert.equal(second.users.records.size, 1);
  await second.close();
});

test('the function for a generated password is called once, before the user is created', async (t) => {
  const options = { directory: temporaryDirectory(t), scryptCost: 1 };
  const fail = (): never => {
    throw new Error('nowhere to keep it');
  };
  const lost = createApp({ ...options, administrator: { email: 'ada@example.org', password: fail } });
  await assert.rejects(lost, /nowhere/);
  const refused = createApp({ ...options, administrator: { email: 'bad', password: fail } });
  await assert.rejects(refused, /^CairnError: Cannot make the administrator: email must be an e-mail address/);
  let made = 0;
  const password = async (): Promise<string> => `the password number ${(made += 1)}`;
  for (let start = 0; start < 2; start += 1) {
    const app = await createApp({ ...options, administrator: { email: 'ada@example.org', password } });
    const body = JSON.stringify({ email: 'ada@example.org', password: 'the password number 1' });
    assert.equal((await app.inject({ method: 'POST', target: '/tokens', fields: json, body })).status, 201);
    await app.close();
  }
  assert.equal(made, 1);
});

test('requests without a port do not count towards the connections', async (t) => {
  const app = await createApp({ auth: 'none', directory: temporaryDirectory(t) });
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  let asked = 0;
  const ask = async (): Promise<void> => {
    for (; asked < 5; asked += 1) assert.equal((await fetch(`http://127.0.0.1:${port}/items/0`)).status, 404);
  };
  const asking = ask();
  while (asked < 5) {
    const made = Array.from({ length: limits.requestsInFlightMax + 100 }, () => app.inject(lamp));
    assert.equal(app.load().inFlight >= made.length, true);
    for (const { status } of await Promise.all(made)) assert.equal(status, 201);
  }
  await asking;
  await app.close();
});

test('an app that cannot start releases its directory', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'keys.json'), '{}', { mode: 0o600 });
  await assert.rejects(createApp({ directory }), { name: 'KeyRingError' });
  assert.equal(existsSync(join(directory, 'lock')), false);
  rmSync(join(directory, 'keys.json'));
  const login = defineCollection({ name: 'login', singular: 'entry', fields: {} });
  const conflict = { name: 'OptionError', message: /\/collections\/0\/name "login" is taken$/ };
  await assert.rejects(createApp({ directory, collections: [login] }), conflict);
  assert.equal(existsSync(join(directory, 'lock')), false);
  const short = { email: 'ada@example.org', password: 'short' };
  await assert.rejects(createApp({ administrator: short }), { code: 'validation_failed' });
  await assert.rejects(createApp({ trustedProxies: ['proxy'] }), { name: 'OptionError' });
});

test('a collection of your own has routes, rules and access', async (t) => {
  const declaration = {
    name: 'books',
    singular: 'book',
    fields: {
      title: { kind: 'text', min: 1, max: 100 },
      pages: { kind: 'integer', min: 1, max: 10_000, optional: true },
    },
    access: { list: 'public', read: 'public' },
  } as const;
  const books = defineCollection(declaration);
  const app = await createApp({ collections: [books], registration: 'open' });
  t.after(() => app.close());
  assert.equal((await app.inject({ target: '/books' })).body, '[]');
  const { status } = await app.inject({ method: 'POST', target: '/books', fields: json, body: '{"title":"A"}' });
  assert.equal(status, 401);
  // Rules that could not be enforced are refused even if the compiler does not see them.
  for (const access of [{ list: 'titleId' }, { read: 'self' }, { create: 'owner' }, { read: 'X' }]) {
    const define = (): unknown => Reflect.apply(defineCollection, undefined, [{ ...declaration, access }]);
    assert.throws(define, { name: 'OptionError', message: /must be one of/ });
  }
  // A role is known where collections are served.
  const ofNobody = defineCollection({ ...declaration, access: { read: 'x' } });
  await assert.rejects(createApp({ collections: [ofNobody] }), { name: 'OptionError', message: /must be one of/ });
});

test('records of your own collections are listed, changed and described, and survive a restart', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const books = defineCollection({
    name: 'books',
    singular: 'book',
    fields: {
      title: { kind: 'text', min: 1, max: 100 },
      pages: { kind: 'integer', min: 1, max: 10_000, optional: true },
    },
  });
  const open = (): Promise<App> => createApp({ directory, collections: [books], auth: 'none' });
  let app = await open();
  const origin = `http://127.0.0.1:${await app.listen({ port: 0, host: '127.0.0.1' })}`;
  const document = parseJson(await (await fetch(`${origin}/openapi.json`)).text());
  assert.ok(isJsonObject(document));
  const send = async (method: string, path: string, body?: unknown): Promise<[number, unknown, Headers]> => {
    const options = body === undefined ? { method } : { method, headers: json, body: JSON.stringify(body) };
    const reply = await fetch(origin + path, options);
    const content = await reply.text();
    const answer = { status: reply.status, fields: new Map(reply.headers), body: content };
    checkResponse(document, { method, target: path }, answer);
    return [reply.status, content === '' ? undefined : JSON.parse(content), reply.headers];
  };
  const [created, first, headers] = await send('POST', '/books', { title: 'Emma', pages: 474 });
  assert.deepEqual([created, first, headers.get('location')], [201, { id: 1, title: 'Emma', pages: 474 }, '/books/1']);
  await send('POST', '/books', { title: 'Ulysses' });
  const [refused, problem] = await send('POST', '/books', { title: '', pages: 1.5, author: 'Joyce' });
  assert.equal(refused, 422);
  const { errors } = Object(problem);
  assert.deepEqual(errors.map(({ pointer }: { pointer: string }) => pointer), ['/title', '/pages', '/author']);
  assert.deepEqual((await send('PATCH', '/books/1', { pages: null })).slice(0, 2), [200, { id: 1, title: 'Emma' }]);
  assert.deepEqual((await send('PUT', '/books/2', { title: 'Ulysses', pages: 730 }))[0], 200);
  const [, found] = await send('GET', '/books?pages:gte=100&sort=-title');
  assert.deepEqual(found, [{ id: 2, title: 'Ulysses', pages: 730 }]);
  assert.deepEqual((await send('DELETE', '/books/1'))[0], 204);
  assert.deepEqual(Object.keys(Object(document['paths'])['/books/{id}']), ['get', 'put', 'patch', 'delete']);
  await app.close();
  assert.match(readFileSync(join(directory, 'books.json'), 'utf8'), /"title":"Ulysses"/);

  app = await open();
  t.after(() => app.close());
  assert.equal((await app.inject({ target: '/books' })).body, '[{"id":2,"title":"Ulysses","pages":730}]');
  const next = await app.inject({ method: 'POST', target: '/books', fields: json, body: '{"title":"Persuasion"}' });
  assert.equal(next.body, '{"id":3,"title":"Persuasion"}');
});

test('beforeWrite can refuse a write, afterWrite sees only writes that happened', async (t) => {
  const told: Change[] = [];
  const app = await createApp({
    auth: 'none',
    hooks: {
      beforeWrite({ collection, after }) {
        if (collection === 'items' && Number(after?.['price']) > 1000) throw new Error('nobody pays that');
      },
      afterWrite: (change) => void told.push(change),
    },
  });
  t.after(() => app.close());
  await app.inject(lamp);
  const refused = await app.inject({ ...lamp, body: '{"name":"Yacht","price":1e6}' });
  assert.equal(refused.status, 422);
  assert.match(refused.body, /"code":"write_refused"/);
  assert.match(refused.body, /nobody pays that/);
  await app.inject({ method: 'DELETE', target: '/items/1' });
  assert.deepEqual(told.map(({ collection, operation, id }) => [collection, operation, id]), [
    ['items', 'create', 1], ['items', 'remove', 1],
  ]);
  assert.equal((await app.inject({ target: '/items' })).body, '[]');
});

test('time and randomness are the embedder\'s, and so is the log', async (t) => {
  let now = Date.UTC(2030, 0, 1);
  let drawn = 0;
  const clock: Clock = { now: () => now, elapsed: () => now };
  const random: Random = (size) => Buffer.alloc(size, (drawn += 1));
  let lines = '';
  const sink = new Writable({ write: (chunk, _encoding, done) => void ((lines += String(chunk)), done()) });
  const log = createLog({ level: 'info', clock, sink });
  const administrator = { email: 'ada@example.org', password: 'correct horse battery' };
  const app = await createApp({ clock, random, log, administrator, scryptCost: 14 });
  t.after(() => app.close());
  const body = JSON.stringify(administrator);
  const answer = await app.inject({ method: 'POST', target: '/tokens', fields: json, body });
  const { access_token: token } = JSON.parse(answer.body) as { access_token: string };
  const fields = { Authorization: `Bearer ${token}` };
  assert.equal((await app.inject({ target: '/items', fields })).status, 200);
  now += 900_000;
  assert.equal((await app.inject({ target: '/items', fields })).status, 401);
  await log.close(1000);
  assert.match(lines, /^\{"time":"2030-01-01T00:00:00.000Z".*"event":"user_created"/);
  assert.match(lines, /"event":"login"/);
});

test('timestamps: the server sets when a record was created and changed', async (t) => {
  let now = Date.UTC(2030, 0, 1);
  const directory = join(temporaryDirectory(t), 'data');
  const open = (timestamps: boolean): Promise<App> => {
    const notes = defineCollection({ name: 'notes', singular: 'note', fields: { line: { kind: 'text' } }, timestamps });
    const clock = { now: () => now, elapsed: () => performance.now() };
    return createApp({ directory, auth: 'none', items: false, collections: [notes], clock });
  };
  const before = await open(false);
  await before.inject({ method: 'POST', target: '/notes', fields: json, body: '{"line":"older"}' });
  await before.close();

  const app = await open(true);
  t.after(() => app.close());
  const ask = async (method: string, target: string, sent?: object, fields = {}) => {
    const body = sent === undefined ? {} : { body: JSON.stringify(sent) };
    const reply = await app.inject({ method, target, fields: { ...json, ...fields }, ...body });
    const { updatedAt, createdAt, ...rest } = JSON.parse(reply.body);
    return { status: reply.status, rest, times: [createdAt, updatedAt], tag: reply.fields.get('etag') ?? '' };
  };
  const [epoch, created, changed] = ['1970-01-01', '2030-01-01', '2030-01-02'].map((day) => `${day}T00:00:00.000Z`);
  assert.deepEqual((await ask('GET', '/notes/1')).times, [epoch, epoch], 'nobody knows any more');
  const made = await ask('POST', '/notes', { line: 'new' });
  assert.deepEqual([made.status, made.times], [201, [created, created]]);
  assert.equal((await ask('POST', '/notes', { line: 'new', createdAt: created })).status, 422);

  now += 24 * 60 * 60 * 1000;
  const asRead = { id: 2, line: 'as it was read', createdAt: created, updatedAt: created };
  assert.deepEqual((await ask('PUT', '/notes/2', asRead)).times, [created, changed]);
  assert.equal((await ask('PUT', '/notes/2', asRead)).status, 422, 'it was read before the change');
  const stale = await ask('PUT', '/notes/2', asRead, { 'If-Match': made.tag });
  assert.equal(stale.status, 412, 'and the condition says so');
  assert.deepEqual((await ask('PATCH', '/notes/1', { line: 'x' })).times, [epoch, changed]);
  now += 24 * 60 * 60 * 1000;
  assert.deepEqual((await ask('PATCH', '/notes/1', { line: 'x' })).times, [epoch, changed], 'nothing was changed');
  const { rest: [latest] } = { rest: JSON.parse((await app.inject({ target: '/notes?sort=-createdAt' })).body) };
  assert.equal(latest.id, 2);
});

test('items can be left out', async (t) => {
  const administrator = { email: 'ada@example.org', password: 'correct horse battery' };
  const app = await createApp({ items: false, administrator, scryptCost: 1 });
  t.after(() => app.close());
  const body = JSON.stringify(administrator);
  const login = await app.inject({ method: 'POST', target: '/login', fields: json, body });
  const fields = { Cookie: login.fields.get('set-cookie')?.split(';')[0] ?? '' };
  assert.equal((await app.inject({ target: '/items', fields })).status, 404);
  const dashboard = await app.inject({ target: '/dashboard', fields });
  assert.deepEqual(Object.keys(JSON.parse(dashboard.body)), ['user', 'counts', 'session']);
  const document = parseJson((await app.inject({ target: '/openapi.json' })).body);
  assert.ok(isJsonObject(document));
  assert.equal(Object(document['paths'])['/items'], undefined);
  const answered = new Map([['content-type', 'application/json'], ['x-request-id', 'one']]);
  checkResponse(document, { method: 'GET', target: '/dashboard' }, {
    status: dashboard.status, fields: answered, body: dashboard.body,
  });
});

/** Makes a store with one shape of books, and opens it with another. */
async function reopen(t: TestContext, before: Shape, body: object, after: Shape): Promise<string> {
  const directory = join(temporaryDirectory(t), 'data');
  const open = (fields: Shape): Promise<App> => {
    const books = defineCollection({ name: 'books', singular: 'book', fields });
    return createApp({ directory, auth: 'none', collections: [books] });
  };
  const first = await open(before);
  const post = { method: 'POST', target: '/books', fields: json, body: JSON.stringify(body) };
  assert.equal((await first.inject(post)).status, 201);
  await first.close();
  for (let round = 0; round < 2; round += 1) {
    const app = await open(after);
    const shown = (await app.inject({ target: '/books' })).body;
    await app.close();
    if (round === 1) return shown;
  }
  return '';
}

test('a store opens with a new field that is optional or has a default, and without a removed field', async (t) => {
  const title = { kind: 'text' } as const;
  const book = { title: 'Emma' };
  const with_ = (pages: Field): Shape => ({ title, pages });
  assert.equal(await reopen(t, { title }, book, with_({ kind: 'integer', default: 7 })),
    '[{"id":1,"title":"Emma","pages":7}]');
  assert.equal(await reopen(t, { title }, book, with_({ kind: 'integer', optional: true })),
    '[{"id":1,"title":"Emma"}]');
  const both = { ...book, pages: 1 };
  assert.equal(await reopen(t, with_({ kind: 'integer' }), both, { title }), '[{"id":1,"title":"Emma"}]');
});

test('if stored records do not fit a declaration, the error names record, field and remedy', async (t) => {
  const title = { kind: 'text' } as const;
  const lacking = reopen(t, { title }, { title: 'Emma' }, { title, pages: { kind: 'integer' } });
  await assert.rejects(lacking, (error: Error) => {
    assert.equal(error.name, 'StoreDamageError');
    assert.match(error.message, /books\.json, byte \d+: .*record 1 .*"pages".*optional or give/);
    return true;
  });
  const other = reopen(t, { title }, { title: 'Emma' }, { title: { kind: 'integer' } });
  await assert.rejects(other, { name: 'StoreDamageError', message: /record 1 .*"title".*integer/ });
});

const starts = { skip: isLockedRun && 'a locked-down process starts no other one' };
test('a store that does not fit its declaration can be mended by hand, as the manual says', starts, async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const open = (directory: string, fields: Shape): Promise<App> => {
    const books = defineCollection({ name: 'books', singular: 'book', fields });
    return createApp({ directory, auth: 'none', collections: [books] });
  };
  const first = await open(directory, { title: { kind: 'text' } });
  await first.inject({ method: 'POST', target: '/books', fields: json, body: '{"title":"Emma"}' });
  await first.close();
  const file = join(directory, 'books.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"title":"Emma"', '"name":"Emma","pages":474'));
  const { ended } = startCairn(t, ['repair', '--data', directory, `${directory}-new`], {});
  assert.equal(await ended, 0);
  const second = await open(`${directory}-new`, { name: { kind: 'text' }, pages: { kind: 'integer' } });
  t.after(() => second.close());
  assert.equal((await second.inject({ target: '/books' })).body, '[{"id":1,"name":"Emma","pages":474}]');
});

test('close waits for requests of the handler and inject', async (t) => {
  const app = await createApp({ auth: 'none' });
  const server = createServer(app.handler).listen(0, '127.0.0.1');
  t.after(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  let received = '';
  socket.on('data', (chunk) => (received += String(chunk)));
  const length = lamp.body.length;
  socket.write(
    'POST /items HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' +
      `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
  );
  while (app.load().inFlight === 0) await sleep(5);
  const injected = app.inject(lamp);
  const closed = app.close();
  await sleep(50);
  socket.write(lamp.body);
  assert.equal((await injected).status, 201);
  await once(socket, 'close');
  assert.match(received, /^HTTP\/1\.1 201 /);
  await closed;
});

test('close waits for a long answer that the handler still sends', async (t) => {
  const content = { kind: 'text', max: 100_000 } as const;
  const texts = defineCollection({ name: 'texts', singular: 'text', fields: { content } });
  const app = await createApp({ auth: 'none', collections: [texts] });
  const body = JSON.stringify({ content: 'x'.repeat(100_000) });
  for (let made = 0; made < 200; made += 1) await app.inject({ ...lamp, target: '/texts', body });
  let sent: ServerResponse | undefined;
  const server = createServer((incoming, outgoing) => app.handler(incoming, (sent = outgoing)));
  t.after(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  t.after(() => socket.destroy());
  socket.write('GET /texts HTTP/1.1\r\nHost: localhost\r\n\r\n');
  while (sent === undefined || sent.writableLength === 0) await sleep(2);
  assert.equal(app.load().inFlight, 0, 'a reader that is slow keeps nobody out');
  const closed = app.close();
  socket.resume();
  await closed;
  assert.deepEqual([sent.writableEnded, sent.writableLength], [true, 0]);
});

test('close gives up after 30 s', async (t) => {
  const app = await createApp({ auth: 'none' });
  const server = createServer(app.handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  t.after(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  const type = 'Content-Type: application/json\r\n';
  const received = once(server, 'request');
  socket.write(`POST /items HTTP/1.1\r\nHost: localhost\r\n${type}Content-Length: 9\r\n\r\n`);
  await received;
  const time = fakeTimers(t);
  let isClosed = false;
  const closed = app.close().then(() => (isClosed = true));
  time.tick(29_999);
  await turn();
  assert.equal(isClosed, false);
  time.tick(1);
  await closed;
});

test('a closed app responds only that it is closed', async () => {
  const app = await createApp({ auth: 'none' });
  await app.inject(lamp);
  const closed = { name: 'InvariantError', message: /closed/ };
  const late = assert.rejects(app.listen({ port: 0, host: '127.0.0.1' }), closed, 'it was closed while it bound');
  await Promise.all([app.close(), app[Symbol.asyncDispose](), late]);
  const refused = await app.inject({ target: '/items/1' });
  assert.equal(refused.status, 503);
  assert.match(refused.body, /"code":"draining"/);
  assert.equal((await app.inject(lamp)).status, 503);
  assert.equal((await app.inject({ target: '/readyz' })).status, 503);
  assert.equal((await app.inject({ target: '/livez' })).status, 200);
  await assert.rejects(app.listen({ port: 0, host: '127.0.0.1' }), closed);
  await app.close();
});

test('without authentication every entrance accepts only callers on this machine', async (t) => {
  const app = await createApp({ auth: 'none' });
  t.after(() => app.close());
  for (const [address, status] of [['127.0.0.1', 200], ['::1', 200], ['203.0.113.9', 421], ['', 421]] as const) {
    assert.equal((await app.inject({ target: '/items', address })).status, status, address);
  }
});

test('OPTIONS * gets the same response through each entrance (RFC 9110 §9.3.7)', async (t) => {
  const app = await createApp();
  t.after(() => app.close());
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const client = new RawClient(port).send('OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  assert.equal((await client.reply()).status, 204);
  await client.rest();
  assert.equal((await app.inject({ method: 'OPTIONS', target: '*' })).status, 204);
  assert.equal((await app.inject({ method: 'GET', target: '*' })).status, 400);
});

test('inject accepts all kinds of bytes, and options that are undefined', async (t) => {
  const app = await createApp({ auth: 'none' });
  t.after(() => app.close());
  const body = new TextEncoder().encode(lamp.body);
  assert.equal((await app.inject({ ...lamp, body, address: undefined })).status, 201);
  const bare = { method: undefined, target: '/items', fields: undefined, body: undefined };
  assert.equal((await app.inject(bare)).status, 200);
});

test('a list that fails while it is sent is logged', async (t) => {
  // Between two pieces of a long list the clock is asked: here by a clock that breaks before the last one.
  let [asked, breaksAt] = [0, Infinity];
  const elapsed = (): number => {
    if (new Error().stack?.includes('yieldToEventLoop') === true && (asked += 1) === breaksAt)
      throw new Error('the clock is broken');
    return 0;
  };
  let told = '';
  t.mock.method(process.stderr, 'write', (text: string) => ((told += text), true));
  const app = await createApp({ auth: 'none', clock: { now: () => 0, elapsed } });
  t.after(() => app.close());
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  await Promise.all(Array.from({ length: 2000 }, () => app.inject(lamp)));
  const read = (): Promise<string> => fetch(`http://127.0.0.1:${port}/items`).then((reply) => reply.text());
  // The first list of all waits for a slice, which asks the clock once more.
  await read();
  asked = 0;
  assert.equal(JSON.parse(await read()).length, 2000);
  [asked, breaksAt] = [0, asked];
  await assert.rejects(read());
  await app.close();
  t.mock.reset();
  assert.match(told, /the clock is broken/);
});
