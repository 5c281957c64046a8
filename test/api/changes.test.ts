import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { limits } from '../../src/base/limits.ts';
import type { Change } from '../../src/programs/hooks.ts';
import { defineCollection } from '../../src/index.ts';
import { startProcess, temporaryDirectory, programArguments } from '../support/cli/spawn.ts';
import { startApp } from '../support/app.ts';
import { fakeTimers, isLockedRun, timeoutMs, waitUntil } from '../support/basics.ts';
import { createApp, type App } from '../support/inside.ts';

interface Event {
  readonly event: string;
  readonly id: string;
  readonly data: { readonly collection?: string; readonly id?: number; readonly record?: object };
}

/** A listener without a port. */
function follow(app: App, fields: Readonly<Record<string, string>>, target = '/changes') {
  const controller = new AbortController();
  const listener = { text: '', hasEnded: false, leave: () => controller.abort() };
  const reply = app.inject({
    target, fields, signal: controller.signal, onPiece: (piece) => void (listener.text += piece),
  });
  const ended = reply.finally(() => (listener.hasEnded = true));
  return Object.assign(listener, { ended });
}

/** Reads a stream as a browser does (WHATWG HTML §9.2.6): the events, and the last id. */
function parse(stream: string): { events: Event[]; lastId: string } {
  const events: Event[] = [];
  let lastId = '';
  for (const block of stream.split('\n\n')) {
    const fields = new Map(block.split('\n').map((line) => [line.replace(/:.*/s, ''), line.replace(/^[^:]*: ?/, '')]));
    lastId = fields.get('id') ?? lastId;
    const data = fields.get('data');
    if (data !== undefined) events.push({ event: fields.get('event') ?? '', id: lastId, data: JSON.parse(data) });
  }
  return { events, lastId };
}

const seen = (listener: { text: string }): string[] =>
  parse(listener.text).events.map(({ event, data }) => `${event} ${data.collection} ${data.id}`);

const lamp = { name: 'Lamp', price: 1 };

async function open(t: TestContext, options = {}) {
  const fixture = await startApp(t, { withoutPort: true, ...options });
  const [member, admin] = [await fixture.signIn('member'), await fixture.signIn('admin')];
  const bearer = async (who: 'member' | 'admin') => ({ authorization: `Bearer ${await fixture.createToken(who)}` });
  return { ...fixture, member, admin, bearer };
}

test('changes are sent in the order of their commits, with the record as it is shown', async (t) => {
  const { app, member, bearer } = await open(t);
  const listener = follow(app, await bearer('member'));
  await waitUntil(() => listener.text !== '', 'the stream begins');
  assert.match(listener.text, /^retry: \d+\nid: [0-9a-f]+-\d+\n\n$/);
  await member.post('/items', { json: lamp });
  await member.patch('/items/1', { json: { price: 2 } });
  await member.post('/items/batch', { json: [lamp, lamp] });
  await member.delete('/items/1');
  await waitUntil(() => seen(listener).length === 5, 'five events');
  const { events } = parse(listener.text);
  assert.deepEqual(events.map(({ event, data }) => [event, data]), [
    ['created', { collection: 'items', id: 1, record: { id: 1, ...lamp } }],
    ['replaced', { collection: 'items', id: 1, record: { id: 1, name: 'Lamp', price: 2 } }],
    ['created', { collection: 'items', id: 2, record: { id: 2, ...lamp } }],
    ['created', { collection: 'items', id: 3, record: { id: 3, ...lamp } }],
    ['removed', { collection: 'items', id: 1 }],
  ]);
  // The id of an event is what the record's entity tag is: the epoch and the commit. Only its last event has one.
  const tag = (await member.get('/items/3')).header('etag');
  assert.equal(`"${events[3]?.id}"`, tag);
  assert.equal(events[2]?.id, events[1]?.id);
  listener.leave();
  await listener.ended;
  assert.equal(app.load().listeners, 0);
});

/** A stream that never ends fails its own test, before the time limit of the process ends all tests. */
const ends = { timeout: 30_000 };

test('callers get changes they may list: no users for members, no sessions, keys or secrets', async (t) => {
  const { app, admin, bearer } = await open(t);
  const listeners = { member: follow(app, await bearer('member')), admin: follow(app, await bearer('admin')) };
  const json = { name: 'Eve', email: 'eve@example.org', password: 'a good and long password' };
  await admin.post('/users', { json });
  await admin.post('/items', { json: lamp, headers: { 'idempotency-key': 'l' } });
  await waitUntil(() => seen(listeners.member).length === 1 && seen(listeners.admin).length === 2, 'all is told');
  assert.deepEqual(seen(listeners.member), ['created items 1']);
  assert.deepEqual(seen(listeners.admin), ['created users 3', 'created items 1']);
  assert.doesNotMatch(listeners.admin.text, /password|scrypt|hash/i);
  for (const { leave, ended } of Object.values(listeners)) {
    leave();
    await ended;
  }
});

test('changes of declared collections are sent to callers who may list them', async (t) => {
  const fields = { text: { kind: 'text', min: 1, max: 20, example: 'a' } } as const;
  const notes = defineCollection({ name: 'notes', singular: 'note', fields });
  const secrets = defineCollection({ name: 'secrets', singular: 'secret', fields, access: { list: 'admin' } });
  const { app, admin, bearer } = await open(t, { collections: [notes, secrets] });
  const [member, all] = [follow(app, await bearer('member')), follow(app, await bearer('admin'))];
  await admin.post('/secrets', { json: { text: 'x' } });
  await admin.post('/notes', { json: { text: 'y' } });
  await waitUntil(() => seen(member).length === 1 && seen(all).length === 2, 'all is told');
  assert.deepEqual([seen(member), seen(all)], [['created notes 1'], ['created secrets 1', 'created notes 1']]);
  member.leave();
  all.leave();
});

test('a stream follows the collections that it names, and resumes among them', async (t) => {
  const fields = { text: { kind: 'text', min: 1, max: 20, example: 'a' } } as const;
  const notes = defineCollection({ name: 'notes', singular: 'note', fields });
  const secrets = defineCollection({ name: 'secrets', singular: 'secret', fields, access: { list: 'admin' } });
  const { app, admin, member, bearer } = await open(t, { collections: [notes, secrets] });
  const time = fakeTimers(t, 'setInterval');
  const mine = await bearer('admin');
  const one = follow(app, mine, '/changes?collection=notes');
  const two = follow(app, mine, '/changes?collection=notes,secrets');
  const again = follow(app, mine, '/changes?collection=notes&collection=secrets');
  for (let round = 0; round < 2; round += 1) {
    await admin.post('/notes', { json: { text: 'x' } });
    await admin.post('/secrets', { json: { text: 'x' } });
    await admin.post('/items', { json: lamp });
  }
  const both = ['created notes 1', 'created secrets 1', 'created notes 2', 'created secrets 2'];
  await waitUntil(() => seen(two).length === 4 && seen(again).length === 4 && seen(one).length === 2, 'all is told');
  assert.deepEqual([seen(two), seen(again), seen(one)], [both, both, [both[0], both[2]]]);
  // Events for others move its position with the next comment.
  const itemTag = (await admin.get('/items/2')).header('etag');
  await waitUntil(() => {
    time.tick(limits.heartbeatMs);
    return `"${parse(one.text).lastId}"` === itemTag;
  }, 'the id of the last change');
  for (const { leave, ended } of [one, two, again]) {
    leave();
    await ended;
  }
  const since = parse(one.text).events[0]?.id ?? '';
  const resumed = follow(app, { ...mine, 'last-event-id': since }, '/changes?collection=notes');
  await waitUntil(() => seen(resumed).length === 1, 'it resumes');
  assert.deepEqual(seen(resumed), ['created notes 2']);
  resumed.leave();
  // A node of a cluster started its timer before the fake one, so the real functions must clear it.
  time.reset();
  await resumed.ended;
  for (const [ask, query, status, detail] of [
    [admin, 'collection=nots', 400, /"collection" must be one or more of users, items, notes, secrets$/],
    [admin, 'collection=', 400, /must be one or more of/],
    [admin, 'collections=notes', 400, /"collections" is not a known parameter$/],
    [admin, 'since=a&since=b', 400, /"since" is given more than once$/],
    [member, 'collection=notes,secrets', 403, /Cannot follow secrets: this caller may not list them$/],
    [member, 'collection=users', 403, /Cannot follow users/],
  ] as const) {
    const answer = await ask.get(`/changes?${query}`);
    assert.equal(answer.status, status, query);
    assert.match(Object(answer.json).detail, detail);
  }
});

test('a removal that takes records along is an event for each, in the order of their removal', async (t) => {
  const name = { kind: 'text', min: 1 } as const;
  const part = (onDelete: 'remove' | 'clear') =>
    ({ kind: 'reference', to: 'posts', onDelete, optional: true }) as const;
  const posts = defineCollection({ name: 'posts', singular: 'post', fields: { name } });
  const comments = defineCollection({ name: 'comments', singular: 'comment', fields: { postId: part('remove') } });
  const drafts = defineCollection({
    name: 'drafts', singular: 'draft', fields: { postId: part('clear') }, access: { list: 'admin' },
  });
  const [before, after]: [string[], string[]] = [[], []];
  const said = ({ operation, collection, id }: Change): string => `${operation} ${collection} ${id}`;
  const hooks = {
    beforeWrite(change: Change): undefined {
      before.push(said(change));
    },
    afterWrite: (change: Change) => void after.push(said(change)),
  };
  const { app, admin, bearer } = await open(t, { collections: [posts, comments, drafts], hooks });
  await admin.post('/posts/batch', { json: [{ name: 'One' }, { name: 'Two' }] });
  await admin.post('/comments/batch', { json: [{ postId: 1 }, { postId: 1 }, { postId: 2 }] });
  await admin.post('/drafts/batch', { json: [{ postId: 1 }, { postId: 2 }, { postId: 1 }] });
  const [member, all] = [follow(app, await bearer('member')), follow(app, await bearer('admin'))];
  await waitUntil(() => member.text !== '' && all.text !== '', 'the streams begin');
  for (const seen of [before, after]) seen.length = 0;
  assert.equal((await admin.delete('/posts/1')).status, 204);
  const removed = ['removed comments 2', 'removed comments 1', 'removed posts 1'];
  await waitUntil(() => seen(all).length === 5 && seen(member).length === 3, 'all is told');
  assert.deepEqual(seen(all), ['replaced drafts 1', 'replaced drafts 3', ...removed]);
  assert.deepEqual(seen(member), removed);
  // It is one commit: the last event alone has its id, and a stream that was cut within gets all of it again.
  const { events, lastId } = parse(all.text);
  assert.deepEqual(events.map(({ id }) => id === lastId), [false, false, false, false, true]);
  assert.deepEqual(events[0]?.data.record, { id: 1 });
  const hooked = ['update drafts 1', 'update drafts 3', 'remove comments 2', 'remove comments 1', 'remove posts 1'];
  assert.deepEqual([before, after], [hooked, hooked]);
  for (const { leave, ended } of [member, all]) {
    leave();
    await ended;
  }
});

test('a stream resumes after any commit, without a gap or a repetition', async (t) => {
  const { app, member, bearer } = await open(t);
  const fields = await bearer('member');
  const whole = follow(app, fields);
  await waitUntil(() => whole.text !== '', 'the stream begins');
  await member.post('/items/batch', { json: [lamp, lamp, lamp] });
  await member.delete('/items/2');
  await member.post('/items', { json: lamp });
  await waitUntil(() => seen(whole).length === 5, 'all is told');
  const ids = [...whole.text.matchAll(/^id: (.*)$/gm)].map(([, id = '']) => id);
  assert.equal(ids.length, 4, 'at the beginning, and one for each commit');
  for (const id of ids) {
    const [, rest] = whole.text.split(`id: ${id}\n\n`);
    const resumed = [
      follow(app, { ...fields, 'last-event-id': id }),
      follow(app, fields, `/changes?since=${id}`),
      follow(app, { ...fields, 'last-event-id': id }, '/changes?since=x'),
    ];
    for (const listener of resumed) {
      const expected = `retry: 2000\n\n${rest}`;
      await waitUntil(() => listener.text.length >= expected.length, 'all that came since is told');
      assert.equal(listener.text, expected);
      listener.leave();
      await listener.ended;
    }
  }
  whole.leave();
});

test('the last event of a commit that a caller may see has the id, whatever else the commit has', async (t) => {
  const collections = [
    defineCollection({
      name: 'boxes', singular: 'box', fields: { name: { kind: 'text' } }, access: { list: 'admin' },
    }),
    defineCollection({
      name: 'notes', singular: 'note', fields: { boxId: { kind: 'reference', to: 'boxes', onDelete: 'remove' } },
    }),
  ];
  const { app, admin, bearer } = await open(t, { collections });
  await admin.post('/boxes', { json: { name: 'Red' } });
  await admin.post('/notes/batch', { json: [{ boxId: 1 }, { boxId: 1 }] });
  const [member, all] = [follow(app, await bearer('member')), follow(app, await bearer('admin'))];
  await waitUntil(() => member.text !== '' && all.text !== '', 'the streams begin');
  await admin.delete('/boxes/1');
  await waitUntil(() => seen(member).length === 2 && seen(all).length === 3, 'all is told');
  const id = `${app.store.epoch}-${app.store.status().sequence}`;
  for (const { text, leave } of [member, all]) {
    assert.equal(parse(text).lastId, id);
    assert.equal(text.split(`id: ${id}`).length, 2, 'one id');
    leave();
  }
});

test('the stream begins with a reset if the event id is unknown, in the future or no longer remembered', async (t) => {
  const { app, member, bearer } = await open(t);
  const fields = await bearer('member');
  await member.post('/items', { json: lamp });
  const { epoch } = app.store;
  const { sequence } = app.store.status();
  const places = ['x', '', '0', String(sequence), `${epoch}-${sequence + 1}`, `${epoch}-9999999999999999`, `${epoch}-0`,
    `0123456789abcdef-${sequence}`, `${epoch}--1`, 'x'.repeat(10_000)];
  for (const place of places) {
    const listener = follow(app, { ...fields, 'last-event-id': place });
    await waitUntil(() => listener.text !== '', 'the stream begins');
    const { events: [first], lastId } = parse(listener.text);
    assert.equal(first?.event, place === `${epoch}-0` ? 'created' : 'reset', place.slice(0, 40));
    assert.match(lastId, new RegExp(`^${epoch}-${sequence}`));
    listener.leave();
  }
  for (let done = 0; done <= limits.eventsMax; done += 1000) {
    await member.post('/items/batch', { json: Array.from({ length: 1000 }, () => lamp) });
  }
  const gone = follow(app, { ...fields, 'last-event-id': `${epoch}-${sequence}` });
  await waitUntil(() => gone.text !== '', 'the stream begins');
  assert.equal(parse(gone.text).events[0]?.event, 'reset');
  await member.delete('/items/1');
  await waitUntil(() => parse(gone.text).events.length === 2, 'it goes on');
  gone.leave();
});

test('remembered changes are counted by their length as JSON', async (t) => {
  const docs = defineCollection({ name: 'docs', singular: 'doc', fields: { data: { kind: 'json' } } });
  const { app, member, bearer } = await open(t, { collections: [docs] });
  const fields = await bearer('member');
  const listener = follow(app, fields);
  await waitUntil(() => listener.text !== '', 'the stream begins');
  const { lastId: before } = parse(listener.text);
  // In memory 10,000 bytes, and in JSON six times as many.
  const written = '\u0001'.repeat(10_000);
  await member.post('/docs', { json: { data: written } });
  const count = Math.ceil(limits.eventsBytesMax / 60_000);
  for (let at = 0; at < count; at += 1) await member.patch('/docs/1', { json: { data: `${written}${at}` } });
  await waitUntil(() => seen(listener).length === count + 1, 'all events');
  const again = follow(app, { ...fields, 'last-event-id': before });
  await waitUntil(() => again.text !== '', 'the stream begins');
  assert.equal(parse(again.text).events[0]?.event, 'reset');
  again.leave();
  listener.leave();
});

test('an unknown or repeated parameter is refused, and Accept does not matter', async (t) => {
  const { member } = await open(t);
  for (const query of ['x=1', 'since=a&since=b', 'since=a&x=1']) {
    assert.equal((await member.get(`/changes?${query}`)).code, 'invalid_query');
  }
  const other = await member.get('/changes', { headers: { accept: 'application/json' } });
  assert.deepEqual([other.status, other.header('content-type')], [200, 'text/event-stream']);
  assert.equal((await member.get('/changes', { headers: { accept: 'text/event-stream' } })).status, 200);
  const head = await member.send('HEAD', '/changes');
  assert.deepEqual([head.status, head.header('content-type'), head.body], [200, 'text/event-stream', '']);
});

test('a stream ends when the session, the role or the user has ended', ends, async (t) => {
  const { app, admin, client, createCookie, bearer } = await open(t);
  const sid = await createCookie('member');
  const session = follow(app, { cookie: sid });
  await waitUntil(() => session.text !== '', 'the stream begins');
  await client.post('/logout', { headers: { cookie: sid } });
  await session.ended;
  for (const [method, json] of [['PATCH', { role: 'admin' }], ['DELETE', undefined]] as const) {
    const listeners = [follow(app, { cookie: await createCookie('member') }), follow(app, await bearer('member'))];
    await waitUntil(() => listeners.every(({ text }) => text !== ''), 'the streams begin');
    await admin.send(method, '/users/2', json === undefined ? {} : { json });
    for (const { ended } of listeners) await ended;
  }
  assert.equal(app.load().listeners, 0);
});

test('a token with a role that its user no longer has gets no feed', ends, async (t) => {
  const { app, admin, bearer } = await open(t);
  await admin.patch('/users/2', { json: { role: 'admin' } });
  const fields = await bearer('member');
  for (const [method, json] of [['PATCH', { role: 'member' }], ['DELETE', undefined]] as const) {
    await admin.send(method, '/users/2', json === undefined ? {} : { json });
    const former = follow(app, fields);
    await waitUntil(() => former.text !== '', 'the stream begins');
    await app.program.users.create({ name: 'Eve', email: `eve-${method}@example.org`, role: 'member' });
    await waitUntil(() => former.hasEnded || seen(former).length > 0, 'the stream ends, or shows a user');
    assert.deepEqual([former.hasEnded, seen(former)], [true, []]);
  }
});

test('a stream ends when its API key is removed, at the next heartbeat', ends, async (t) => {
  const time = fakeTimers(t, 'setInterval');
  const { app, member, credentials } = await open(t);
  const json = { name: 'Display', readOnly: true, currentPassword: credentials('member').password };
  const { id, key } = Object((await member.post('/keys', { json })).json);
  const listener = follow(app, { authorization: `Bearer ${key}` });
  await waitUntil(() => listener.text !== '', 'the stream begins');
  await member.post('/items', { json: lamp });
  await waitUntil(() => seen(listener).length === 1, 'an item');
  assert.equal((await member.delete(`/keys/${id}`)).status, 204);
  time.tick(limits.heartbeatMs);
  await listener.ended;
});

test('a stream ends when its token expires, and does not keep a session alive', ends, async (t) => {
  let now = Date.UTC(2026, 0);
  const clock = { now: () => now, elapsed: () => performance.now() };
  const { app, bearer, createCookie } = await open(t, { clock });
  const listeners = [follow(app, await bearer('member')), follow(app, { cookie: await createCookie('member') })];
  const wake = (): Promise<unknown> =>
    app.program.users.create({ name: 'Eve', email: `eve${now}@example.org`, role: 'member' });
  await waitUntil(() => listeners.every(({ text }) => text !== ''), 'the streams begin');
  now += 15 * 60 * 1000;
  await wake();
  await listeners[0]?.ended;
  assert.equal(listeners[1]?.hasEnded, false);
  for (let hour = 0; hour < 12; hour += 1) {
    now += 60 * 60 * 1000;
    await wake();
    await delay(5);
  }
  await listeners[1]?.ended;
});

test('a caller has a share of the listeners, and returns it by closing the connection', async (t) => {
  const { app, client, bearer } = await open(t);
  const fields = await bearer('member');
  const listeners = Array.from({ length: limits.listenersPerCallerMax }, () => follow(app, fields));
  await waitUntil(() => listeners.every(({ text }) => text !== ''), 'all streams begin');
  const refused = await client.get('/changes', { headers: fields });
  assert.deepEqual([refused.status, refused.code, refused.header('retry-after')], [503, 'overloaded', '10']);
  assert.equal(app.load().refusals.ownShare, 1);
  assert.equal((await client.get('/changes', { headers: await bearer('admin') })).status, 200);
  for (const { leave } of listeners) leave();
  await Promise.all(listeners.map(({ ended }) => ended));
  assert.equal((await client.get('/changes', { headers: fields })).status, 200);
});

test('neither HEAD nor an abandoned app.fetch takes up a place for a listener', async (t) => {
  const app = await createApp({ directory: temporaryDirectory(t), auth: 'none' });
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => app.close());
  // One connection, which stays open.
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  let heads = 0;
  const head = `HEAD /changes HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`;
  const times = Array.from({ length: limits.listenersPerCallerMax + 1 });
  socket.on('data', (text: string) => {
    heads += text.split('HTTP/1.1 200').length - 1;
    if (heads < times.length) socket.write(head);
  });
  socket.write(head);
  await waitUntil(() => heads === times.length, 'each HEAD is answered 200');
  for (const _ of times) {
    assert.equal((await app.fetch(new Request('http://cairn/changes', { method: 'HEAD' }))).status, 200);
    const { body } = await app.fetch(new Request('http://cairn/changes'));
    const reader = body?.getReader();
    await reader?.read();
    // The next piece is asked for, which may come in hours.
    await reader?.cancel();
  }
  assert.equal(app.load().listeners, 0);
  socket.destroy();
});

test('a closed connection frees its listener at once, even with a base path', async (t) => {
  const app = await createApp({ directory: temporaryDirectory(t), auth: 'none', basePath: '/api' });
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => app.close());
  const head = `GET /api/changes HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`;
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.write(head);
  await once(socket, 'data');
  socket.end();
  await once(socket, 'close', { signal: AbortSignal.timeout(timeoutMs) });

  // One that has closed its half before is still told where the stream begins.
  const half = connect(port, '127.0.0.1').setEncoding('utf8');
  let received = '';
  half.on('data', (text) => (received += String(text)));
  half.end(head);
  await once(half, 'close', { signal: AbortSignal.timeout(timeoutMs) });
  assert.match(received, /^HTTP\/1\.1 200 [^]*\nid: /);
});

test('the text of a long event is a piece by itself', async (t) => {
  const notes = defineCollection({ name: 'notes', fields: { text: { kind: 'text', max: 200_000 } } });
  const { app, member, bearer } = await open(t, { collections: [notes] });
  const pieces: string[] = [];
  const controller = new AbortController();
  const onPiece = (piece: string): void => void pieces.push(piece);
  const ended = app.inject({ target: '/changes', fields: await bearer('member'), signal: controller.signal, onPiece });
  await waitUntil(() => pieces.length === 1, 'the stream begins');
  const texts = ['short', 'x'.repeat(150_000), 'short'];
  assert.equal((await member.post('/notes/batch', { json: texts.map((text) => ({ text })) })).status, 201);
  await waitUntil(() => parse(pieces.join('')).events.length === 3, 'three events');
  const [long = '', ...others] = pieces.filter((piece) => piece.includes('xxx'));
  assert.deepEqual([parse(long).events.length, others], [1, []]);
  controller.abort();
  await ended.catch(() => undefined);
});

test('a shutdown ends the streams', async (t) => {
  const app = await createApp({ directory: temporaryDirectory(t), auth: 'none' });
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const asked = request({ port, host: '127.0.0.1', path: '/changes', headers: { host: 'localhost' } }).end();
  const [reply] = await once(asked, 'response');
  reply.resume();
  // A stream that is cut off after the time limit does not end, but fails.
  await Promise.all([once(reply, 'end'), app.close()]);
});

test('listeners that never read cost bounded memory, and are cut off', async (t) => {
  const app = await createApp({ auth: 'none' });
  t.after(() => app.close());
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const fields = { 'content-type': 'application/json' };
  const sockets = Array.from({ length: 4 }, () => connect({ port, host: '127.0.0.1' }).on('error', () => undefined));
  for (const socket of sockets) {
    socket.write('GET /changes HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'readable');
    socket.pause();
  }
  assert.equal(app.load().listeners, sockets.length);
  const body = JSON.stringify(Array.from({ length: 1000 }, () => ({ name: '😀'.repeat(200), price: 1 })));
  // Each round is some 0.9 MB, and the system itself takes several MB for each socket.
  for (let round = 0; round < 60 && app.load().dropped === 0; round += 1) {
    await app.inject({ method: 'POST', target: '/items/batch', fields, body });
    await delay(20);
  }
  for (const socket of sockets) socket.resume();
  await waitUntil(() => app.load().dropped > 0, 'those who did not read are cut off');
  for (const socket of sockets) socket.destroy();
  await waitUntil(() => app.load().listeners === 0, 'all have left');
});

test('a listener that comes while the app closes leaves no timer behind', async (t) => {
  const timers = t.mock.method(globalThis, 'setInterval');
  const app = await createApp({ auth: 'none' });
  const before = timers.mock.callCount();
  const closing = app.close();
  assert.match((await app.inject({ target: '/changes' })).body, /^retry: /);
  await closing;
  assert.equal(timers.mock.callCount(), before);
});

const starts = { skip: isLockedRun && 'a locked process starts no other' };
test('a process that only waits for a change is not ended before it is delivered', starts, async (t) => {
  const [entrance = '', ...flags] = programArguments('src/index').reverse();
  const program = `
    import { createApp } from ${JSON.stringify(pathToFileURL(entrance).href)};
    const app = await createApp({ auth: 'none', page: false });
    const create = () => app.inject({
      method: 'POST', target: '/items', headers: { 'content-type': 'application/json' },
      body: '{"name":"Lamp","price":1}',
    });
    const follow = () => new Promise((resolve) => void app.inject({
      target: '/changes', onPiece: (piece) => piece.includes('"id":2') && resolve(),
    }));
    const listeners = Array.from({ length: 30 }, follow);
    await create();
    await create();
    await Promise.all(listeners);
    process.exit(0);
  `;
  const waiting = startProcess(t, [...flags.reverse(), '--input-type=module', '--eval', program]);
  assert.equal(await waiting.ended, 0, waiting.err);
});
