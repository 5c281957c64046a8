import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { parseDeclarations } from '../../src/collections/declaration-file.ts';
import { defineCollection } from '../../src/index.ts';
import { takenNames } from '../../src/api/taken-names.ts';
import { allRoutes } from '../support/contract.ts';
import { startApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { createApp } from '../support/inside.ts';

const access = { list: 'public', create: 'public', read: 'public', replace: 'public', patch: 'public' } as const;
const named = (name: string) => ({ name, fields: { title: { kind: 'text' } }, access } as const);
/** As a file declares them, which leaves out what follows from the names. */
const collectionsOf = (names: readonly string[]) =>
  parseDeclarations({ items: false, users: false, collections: names.map(named) }, []).collections;

/** Names that only a server without users leaves to collections, and others. */
const free = ['users', 'sessions', 'tokens', 'login', 'logout', 'me', 'dashboard', 'api-keys'];
const anywhere = ['Orders', 'order_items', 'a-1', 'a1', '__proto__', 'constructor', 'toJSON', '2024', '_', 'Series'];

/** A server without users is refused in a cluster. */
const skip = process.env['CAIRN_TEST_STORE'] === 'cluster' && 'a cluster always has users';

/** Creates and reads a record of each collection. */
async function exercise(t: TestContext, names: readonly string[], options: object): Promise<void> {
  const { app, client } = await startApp(t, { collections: collectionsOf(names), ...options });
  for (const name of names) {
    const created = await client.post(`/${name}`, { json: { title: name } });
    assert.deepEqual([created.status, created.header('location')], [201, `/${name}/1`], created.body);
    assert.deepEqual((await client.get(`/${name}?title=${name}`)).json, [{ id: 1, title: name }]);
    assert.equal((await client.patch(`/${name}/1`, { json: { title: 'x' } })).status, 200);
    assert.equal((await client.get(`/${name.toUpperCase()}_`)).status, 404);
  }
  const { paths } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const operations = Object.values(paths).flatMap((path) => Object.values(Object(path)));
  const ids = operations.map((operation) => Object(operation).operationId);
  assert.equal(new Set(ids).size, ids.length);
}

test('collections have names of any case, and each its own operations', (t) =>
  exercise(t, anywhere, {}));

test('without users, collections have the names of their paths and tables', { skip }, async (t) => {
  const withUsers = createApp({ collections: [defineCollection({ ...named('Sessions'), singular: 'sitting' })] });
  await assert.rejects(withUsers, { message: /\/collections\/0\/name "Sessions" is taken, as "sessions"$/ });
  await exercise(t, [...anywhere, ...free], { users: false, auth: 'none' });
});

test('without users, nobody can or has to sign in', { skip }, async (t) => {
  const { client } = await startApp(t, { users: false, auth: 'none' });
  for (const path of [...free, 'users/1', 'sessions/1', 'tokens/revoke', 'keys'])
    assert.equal((await client.get(`/${path}`)).status, 404, path);
  assert.equal((await client.post('/items', { json: { name: 'Lamp', price: 1 } })).status, 201);
  assert.equal((await client.get('/status')).status, 200);
  const unknown = await client.get('/changes?collection=users');
  assert.match(String(Object(unknown.json).detail), /must be one or more of items$/);
  const { paths } = Object((await client.get('/openapi.json')).json);
  assert.deepEqual(Object.keys(paths), [
    '/items', '/items/{id}', '/items/batch', '/livez', '/status', '/readyz', '/changes', '/metrics',
    '/openapi.json',
  ]);
});

test('a server without users needs --auth none, and makes no administrator', async () => {
  const refused = { name: 'OptionError', message: /^Cannot use "users": false: it needs --auth none and no admin/ };
  await assert.rejects(createApp({ users: false }), refused);
  const administrator = { email: 'ada@example.org', password: 'administrator of the tests' };
  await assert.rejects(createApp({ users: false, auth: 'none', administrator }), refused);
  const cluster = { members: ['http://127.0.0.1:2379'] };
  await assert.rejects(createApp({ users: false, auth: 'none', cluster }), /Cannot use "users": false in a cluster/);
});

test('the files of two collections differ in more than case, and a table never changes its owner', async (t) => {
  const directory = temporaryDirectory(t);
  const open = (names: readonly string[], users: boolean) =>
    createApp({ directory, collections: collectionsOf(names), items: false, users, auth: 'none' });
  const first = await open(['keys', 'users_', 'sessions', 'Orders'], false);
  await first.collection('keys').create({ title: 'a key' });
  await first.collection('sessions').create({ title: 'a session' });
  await first.close();
  const files = readdirSync(directory).filter((name) => /^[^j].*json$/.test(name));
  assert.deepEqual(files.sort(), [
    '%4Frders.json', '%6Beys.json', 'idempotency-keys.json', 'keys.json', 'sessions.json', 'users_.json',
  ]);

  const taken = /: "sessions" has those of a collection, and this server keeps its own under that name \[D1\]/;
  await assert.rejects(open([], true), { label: 'D1', message: taken });
  const again = await open(['keys', 'Sessions_'], false);
  assert.deepEqual((await again.collection('keys').list()).records, [{ id: 1, title: 'a key' }]);
  await again.close();
  // Nobody declares it now, and it is a collection all the same.
  await assert.rejects(open([], true), { label: 'D1', message: taken });

  const other = temporaryDirectory(t);
  await (await createApp({ directory: other })).close();
  const users = createApp({ directory: other, collections: collectionsOf(['users']), users: false, auth: 'none' });
  const own = /: "users" has those of the server itself, and a collection has its name \[D1\]/;
  await assert.rejects(users, { label: 'D1', message: own });
});

test('a collection cannot have the name of a path or table of the server', async () => {
  // These are left to a collection of their name, with a line in the log; two more are files.
  const free = ['metrics', 'invitations', 'openapi.json'];
  for (const users of [true, false]) {
    const segments = (await allRoutes([], { users })).map(({ path }) => path.split('/')[1] ?? '');
    const paths = new Set(segments.filter((name) => !free.includes(name) && (users || !accounts.includes(name))));
    const tables = ['idempotency-keys', ...(users ? ['api-keys', 'apiKeys'] : [])];
    assert.deepEqual([...takenNames(users)].sort(), [...paths, ...tables].sort());
  }
});

/** Without users these are served elsewhere, or not at all. */
const accounts = ['status', 'changes', 'keys'];

test('a collection may be called page, and the page loads its files', async (t) => {
  const page = defineCollection({ name: 'page', fields: { title: { kind: 'text' } } });
  const { app, client } = await startApp(t, { collections: [page], auth: 'none' });
  assert.equal((await client.post('/page', { json: { title: 'x' } })).status, 201);
  assert.equal((await client.get('/page/1')).status, 200);
  const { body } = await app.inject({ target: '/' });
  const files = [...body.matchAll(/(?:href|src)="(-\/page\/[^"]*)"/g)].map(([, path]) => path);
  assert.ok(files.length > 5);
  for (const path of files) assert.equal((await app.inject({ target: `/${path}` })).status, 200, path);
});
