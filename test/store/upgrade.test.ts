/**
 * The upgrade from 0.3: `upgrade.json` has the files that its server (commit 1b98ef77) left when it was stopped and
 * when it was killed, its declaration, and what its callers had got from it. They go on with this version.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../src/base/system.ts';
import { loadDeclarations } from '../../src/cli/command.ts';
import { commands } from '../../src/cli/data.ts';
import { isLockedRun, waitUntil } from '../support/basics.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { runCommand } from '../support/cli/terminal.ts';
import { createApp, type PlainReply } from '../support/inside.ts';
import { projectDirectory } from '../support/source.ts';

interface Left {
  readonly madeAt: number;
  readonly declaration: object;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly cookie: string;
  readonly key: string;
  readonly readOnlyKey: string;
  readonly itemTag: string;
  readonly bookTag: string;
  /** Cursors of the second page, by the query of the first. */
  readonly cursors: { readonly [query: string]: string };
  readonly searchCursor: string;
  readonly ownCursor: string;
  readonly firstEvent: string;
  readonly lastEvent: string;
  readonly stopped: { readonly [file: string]: string };
  readonly killed: { readonly [file: string]: string };
}

type Fields = Readonly<Record<string, string>>;

const left: Left = JSON.parse(readFileSync(join(projectDirectory, 'test', 'store', 'upgrade.json'), 'utf8'));
const password = 'correct horse battery';
const [ada, bearer] = ['ada@example.org', { authorization: `Bearer ${left.accessToken}` }];

/** Writes the files that 0.3 left, and its declaration. */
function upgrade(t: TestContext, way: 'stopped' | 'killed') {
  const root = temporaryDirectory(t);
  const [directory, declaration] = [join(root, 'data'), join(root, 'declaration.json')];
  mkdirSync(directory, { mode: 0o700 });
  for (const [name, text] of Object.entries(left[way])) writeFileSync(join(directory, name), text, { mode: 0o600 });
  writeFileSync(declaration, JSON.stringify(left.declaration));
  return { directory, declaration };
}

/** Opens it as a server does, a minute after 0.3 ended. */
async function open(t: TestContext, way: 'stopped' | 'killed' = 'stopped') {
  const { directory, declaration } = upgrade(t, way);
  const warnings: string[] = [];
  const log = { info() {}, error() {}, warn: (line: string) => void warnings.push(line) };
  const clock = { ...systemClock, now: () => left.madeAt + 60_000 };
  const app = await createApp({ directory, clock, log, scryptCost: 14, ...(await loadDeclarations(declaration)) });
  t.after(() => app.close());
  const send = async (method: string, target: string, fields: Fields = bearer, json?: object) => {
    const typed = json === undefined ? {} : { 'content-type': 'application/json' };
    const body = json === undefined ? {} : { body: JSON.stringify(json) };
    const reply: PlainReply = await app.inject({ method, target, fields: { ...typed, ...fields }, ...body });
    return { status: reply.status, json: reply.body === '' ? undefined : JSON.parse(reply.body) };
  };
  const signIn = async (email: string) => {
    const { status, json } = await send('POST', '/tokens', {}, { email, password });
    assert.equal(status, 201);
    return { authorization: `Bearer ${json.access_token}` };
  };
  return { app, send, signIn, warnings };
}

for (const way of ['stopped', 'killed'] as const) {
  test(`the data of 0.3, ${way}, are served with its declaration, and check has no complaint`, {
    skip: isLockedRun && 'commands write anywhere',
  }, async (t) => {
    const { directory, declaration } = upgrade(t, way);
    const words = ['check', '--data', directory, '--collections', declaration];
    const { code, out } = await runCommand(commands, words);
    assert.equal(code, 0, out);
    const { send, signIn } = await open(t, way);
    const admin = await signIn('admin@localhost.localdomain');
    const emails = (await send('GET', '/users', admin)).json.map(({ email }: { email: string }) => email);
    assert.deepEqual(emails, ['admin@localhost.localdomain', ada, 'clara@example.org']);
    assert.deepEqual((await send('GET', '/items')).json,
      [{ id: 1, name: 'Lamp', price: 19.9 }, { id: 2, name: 'Käsefass', price: 3.5 }]);
    const austen = { id: 'austen', name: 'Jane Austen', email: 'Jane@example.org', note: { born: 1775 } };
    assert.deepEqual((await send('GET', '/authors/austen')).json, austen);
    const { createdAt, updatedAt, ...emma } = (await send('GET', '/books/1?embed=authorId')).json;
    assert.deepEqual(emma, {
      id: 1, title: 'Emma', authorId: 'austen', state: 'new', place: { shelf: 3, room: 'a' }, tags: ['old'],
      author: austen,
    });
    assert.equal(createdAt, updatedAt);
    assert.deepEqual((await send('GET', '/settings')).json, { theme: 'dark' });
    assert.equal((await send('POST', '/items', bearer, { name: 'New', price: 1 })).json.id, 4);
  });
}

test('roles and private records of 0.3 decide as before', async (t) => {
  const { send, signIn } = await open(t);
  const titles = async (fields: Fields): Promise<string[]> =>
    (await send('GET', '/books', fields)).json.map(({ title }: { title: string }) => title);
  assert.deepEqual(await titles(bearer), ['Emma', 'Persuasion']);
  assert.deepEqual(await titles(await signIn('clara@example.org')), ['Emma', 'Persuasion', 'Private']);
});

test('the password, the cookie, the access token and the refresh token of 0.3 stay valid', async (t) => {
  const { send, signIn } = await open(t);
  assert.equal((await send('GET', '/me', await signIn(ada))).json.email, ada);
  assert.equal((await send('GET', '/dashboard', { cookie: left.cookie })).json.user.email, ada);
  assert.equal((await send('GET', '/me')).json.email, ada);
  const refreshed = await send('POST', '/tokens', {}, { refresh_token: left.refreshToken });
  assert.equal(refreshed.status, 201);
  assert.equal((await send('GET', '/me', { authorization: `Bearer ${refreshed.json.access_token}` })).json.email, ada);
});

test('the API keys of 0.3 stay valid, and one that only reads still only reads', async (t) => {
  const { send } = await open(t);
  const statusWith = async (key: string, method: string, json?: object): Promise<number> =>
    (await send(method, '/items', { authorization: `Bearer ${key}` }, json)).status;
  const desk = { name: 'Desk', price: 1 };
  for (const [key, status] of [[left.key, 201], [left.readOnlyKey, 403]] as const)
    assert.deepEqual([await statusWith(key, 'GET'), await statusWith(key, 'POST', desk)], [200, status]);
});

test('cursors of 0.3 lead to the next page, except those of a search and of the own records', async (t) => {
  const { send } = await open(t);
  for (const [query, cursor] of Object.entries(left.cursors)) {
    const { json } = await send('GET', `/items?limit=1&${query}&cursor=${cursor}`);
    assert.deepEqual(json, [{ id: 2, name: 'Käsefass', price: 3.5 }], query);
  }
  for (const query of [`q=a&cursor=${left.searchCursor}`, `owner=me&cursor=${left.ownCursor}`])
    assert.equal((await send('GET', `/items?limit=1&${query}`)).status, 400, query);
});

test('entity tags of 0.3 match records that nobody has changed', async (t) => {
  const { send } = await open(t);
  const change = async (path: string, tag: string, json: object): Promise<number> =>
    (await send('PATCH', path, { ...bearer, 'if-match': tag }, json)).status;
  assert.equal(await change('/items/1', left.itemTag, { price: 1 }), 200);
  assert.equal(await change('/items/1', left.itemTag, { price: 2 }), 412);
  assert.equal(await change('/books/1', left.bookTag, { state: 'read' }), 200);
});

test('a request that 0.3 answered is not carried out again', async (t) => {
  const { send } = await open(t);
  const kept = { ...bearer, 'idempotency-key': '"kept"' };
  const { status, json } = await send('POST', '/items', kept, { name: 'Käsefass', price: 3 });
  assert.deepEqual([status, json.code], [422, 'key_reused']);
  assert.match(json.detail, /with an earlier version of Cairn/);
  assert.equal((await send('GET', '/items')).json.length, 2);
});

for (const [title, id, expected] of [
  ['the change feed goes on after the last event of 0.3', left.lastEvent, 'created'],
  ['the change feed says that it no longer has the events after an earlier one of 0.3', left.firstEvent, 'reset'],
] as const) {
  test(title, async (t) => {
    const { app, send } = await open(t);
    const controller = new AbortController();
    let text = '';
    const ended = app.inject({
      target: '/changes', fields: { ...bearer, 'last-event-id': id }, signal: controller.signal,
      onPiece: (piece) => void (text += piece),
    });
    await waitUntil(() => text !== '', 'the stream begins');
    await send('POST', '/items', bearer, { name: 'Desk', price: 90 });
    await waitUntil(() => text.includes('event: '), 'an event');
    assert.equal(/^event: (.*)$/m.exec(text)?.[1], expected);
    controller.abort();
    await ended.catch(() => undefined);
  });
}

test('a collection of 0.3 called metrics keeps its path, and a warning says so', async (t) => {
  const { send, warnings } = await open(t);
  assert.deepEqual((await send('GET', '/metrics')).json, [{ id: 1, count: 1, until: 'end' }]);
  assert.match(warnings.join('\n'), /^\/metrics is not served: .*rename it/m);
});

test('until, which 0.3 had, is refused with what to write instead, and that works', async (t) => {
  const { app, send } = await open(t);
  const { status, json } = await send('GET', '/items?limit=1&until=end');
  assert.equal(status, 400);
  assert.match(json.detail, /"until" is withdrawn: write offset=0, and Link names the last page \(rel="last"\)$/);
  const { fields } = await app.inject({ target: '/items?limit=1&offset=0', fields: bearer });
  const [, last = ''] = /<([^>]+)>; rel="last"/.exec(fields.get('link') ?? '') ?? [];
  assert.deepEqual((await send('GET', last)).json, [{ id: 2, name: 'Käsefass', price: 3.5 }]);
});
