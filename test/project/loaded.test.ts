import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startCairn, testEnvironment, temporaryDirectory } from '../support/cli/spawn.ts';
import { isLockedRun } from '../support/basics.ts';

const json = { 'content-type': 'application/json' };
const administrator = { email: 'admin@localhost.localdomain', password: testEnvironment.CAIRN_ADMIN_PASSWORD };

/** What only declared collections need: kinds, checks, storage, access by record, sizes, rules for single fields. */
const declaredOnly = new RegExp('/(collections/(declar|define|nouns|indexed-reader|named-users|embedded|file-records)' +
  '|schema/(declar|further-kinds|setters))[\\w-]*[.][jt]s$');

/** The modules that a server has loaded when it has stopped. Before, `use` is called with its address. */
async function loadedBy(
  t: TestContext, use: (url: string) => Promise<void>, options: readonly string[] = [],
): Promise<string[]> {
  const directory = temporaryDirectory(t);
  const coverage = join(directory, 'coverage');
  const words = ['serve', '--port', '0', '--data', join(directory, 'data'), '--log', 'json', ...options];
  const server = startCairn(t, words, { ...testEnvironment, NODE_V8_COVERAGE: coverage });
  const [, url = ''] = await server.find(/Cairn serves (http:[^"]+)/);
  await use(url);
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0);
  const found = readdirSync(coverage).flatMap((name) =>
    Object(JSON.parse(readFileSync(join(coverage, name), 'utf8'))).result as { url: string }[]);
  return [...new Set(found.map(({ url }) => url).filter((url) => /\/src\/.*\.[jt]s$|undici/.test(url)))].sort();
}

/** Asks for all that the server describes, by a caller who may do everything. */
async function useAll(url: string): Promise<void> {
  const post = (path: string, body: object, headers = {}) =>
    fetch(url + path, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) });
  const tokens = await post('/tokens', administrator).then((response) => response.json());
  const authorization = `Bearer ${Object(tokens).access_token}`;
  await post('/items', { name: 'Lamp', price: 1 }, { authorization, 'idempotency-key': '"a"' });
  await post('/items/batch', [{ name: 'Lamp', price: 1 }], { authorization });
  await post('/login', administrator);
  await fetch(`${url}/items?limit=1&sort=-price&price:gte=1&q=lamp&fields=id`, { headers: { authorization } });
  const document = Object(await fetch(`${url}/openapi.json`).then((response) => response.json()));
  const done: string[] = [];
  for (const [path, operations] of Object.entries<object>(document.paths)) {
    for (const method of Object.keys(operations).filter((name) => /^(get|put|post|patch|delete)$/.test(name))) {
      const type = method === 'patch' ? { 'content-type': 'application/merge-patch+json' } : json;
      const response = await fetch(url + path.replace('{id}', '2'), {
        method: method.toUpperCase(), headers: { ...type, authorization },
        ...(method === 'get' || method === 'delete' ? {} : { body: '{}' }),
      });
      await response.body?.cancel();
      done.push(`${method} ${path}`);
    }
  }
  for (const path of ['/', '/-/page/app.js', '/nothing']) await fetch(url + path).then((response) => response.text());
  assert.ok(done.length > 20, done.join(', '));
}

test('no request loads a module: what a server is made of, it has when it says that it serves', async (t) => {
  if (isLockedRun) return t.skip('the coverage is written where a locked run may not write');
  const [start, all] = await Promise.all([loadedBy(t, async () => undefined), loadedBy(t, useAll)]);
  assert.ok(start.length > 50);
  assert.deepEqual(start.filter((url) => url.includes('undici')), [], 'the client that `fetch` of Node.js has');
  assert.deepEqual(all, start);
  assert.deepEqual(start.filter((url) => url.includes('/src/programs/')), [], 'what programs alone have');
  const found = start.filter((url) => declaredOnly.test(url));
  assert.deepEqual(found, [], 'what only declared collections need');
  const rare = start.filter((url) => /\/(cli\/advice|base\/likeness|http\/handshakes)[.][jt]s$/.test(url));
  assert.deepEqual(rare, [], 'what wrong words and TLS need');
});

test('the nouns are loaded only if a collection has no singular', async (t) => {
  if (isLockedRun) return t.skip('the coverage is written where a locked run may not write');
  for (const singular of ['book', undefined]) {
    const file = join(temporaryDirectory(t), 'collections.json');
    writeFileSync(file, JSON.stringify({ collections: [{ name: 'books', singular, fields: {} }] }));
    const loaded = await loadedBy(t, async () => undefined, ['--collections', file]);
    assert.equal(loaded.some((url) => /nouns[.][jt]s$/.test(url)), singular === undefined);
  }
});
