/** This version and the previous one open each other's files, however the writer ended. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { loaderFlags, startProcess, temporaryDirectory, testEnvironment } from '../../test/support/cli/spawn.ts';
import { projectDirectory } from '../../test/support/source.ts';
import { seedNumbers } from '../../test/support/store/fixtures.ts';

/** The last commit of 0.3.0. */
const earlier = '1b98ef77';

const hasHistory = ((): boolean => {
  try {
    execFileSync('git', ['cat-file', '-e', earlier], { cwd: projectDirectory, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

const skip = !hasHistory && 'this clone has no history';

/** Writes the source of 0.3 to a directory. */
function extractPrevious(t: TestContext): string {
  const previous = temporaryDirectory(t);
  const archive = execFileSync('git', ['archive', earlier, 'src', 'package.json'], {
    cwd: projectDirectory, maxBuffer: 2 ** 28,
  });
  execFileSync('tar', ['-x', '-C', previous], { input: archive });
  return previous;
}

test('0.3 and this version open each other\'s data', { skip }, (t) => {
  const previous = extractPrevious(t);
  const data = join(temporaryDirectory(t), 'data');
  const next = seedNumbers(Number(process.env['CAIRN_TEST_SEED'] ?? 1));
  const script = join(import.meta.dirname, 'edition-store.ts');
  const seen = { ends: new Set<string>(), turns: 0 };
  let before: unknown;
  for (let turn = 0; turn < 60; turn += 1) {
    if (turn % 20 === 0) {
      rmSync(data, { recursive: true, force: true });
      mkdirSync(data);
      before = undefined;
    }
    const source = next() < 0.5 ? previous : projectDirectory;
    const end = ['stop', 'kill', 'checkpoint'][Math.floor(next() * 3)] ?? '';
    const words = [source, data, String(Math.floor(next() * 6)), end, turn % 20 >= 10 ? 'more' : ''];
    const output = execFileSync(process.execPath, ['--import', 'tsx', script, ...words], {
      cwd: projectDirectory, encoding: 'utf8',
    });
    const [found, left] = output.trim().split('\n').map((line) => Object(JSON.parse(line)));
    // The first process that knows the third collection finds nothing in it.
    const expected = Object(before);
    if (turn % 20 === 10) expected.records.push([]);
    if (before !== undefined) assert.deepEqual(found, expected, `turn ${turn}: ${words.join(' ')}`);
    before = left;
    seen.turns += 1;
    seen.ends.add(`${source === previous ? 'before' : 'this'} ${end}`);
  }
  t.diagnostic(`${seen.turns} turns: ${[...seen.ends].sort().join(', ')}`);
  assert.equal(seen.ends.size, 6);
});

test('after an upgrade from 0.3, its server can be started again on the same data', { skip }, async (t) => {
  const previous = extractPrevious(t);
  const data = join(temporaryDirectory(t), 'data');
  const email = 'admin@localhost.localdomain';
  const password = testEnvironment.CAIRN_ADMIN_PASSWORD;
  let bearer = {};
  let cookie = '';
  /** One life of a server. Afterwards it has been stopped, or killed. */
  const serve = async (
    source: string, signal: NodeJS.Signals, work: (send: typeof ask, url: string) => Promise<void>,
  ): Promise<void> => {
    const words = [...loaderFlags, join(source, 'src', 'main.ts'), 'serve', '--data', data, '--port', '0'];
    const server = startProcess(t, words);
    const [, url = ''] = await server.find(/Cairn serves (http:\/\/127\.0\.0\.1:\d+)/);
    await work((target, body, headers) => ask(url + target, body, { ...bearer, ...headers }), url);
    server.child.kill(signal);
    await server.ended;
  };
  const create = (name: string) => ({ name, price: 1 });
  await serve(previous, 'SIGTERM', async (send, url) => {
    bearer = { authorization: `Bearer ${(await send('/tokens', { email, password })).json.access_token}` };
    const login = await fetch(`${url}/login`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email, password }),
    });
    cookie = (login.headers.get('set-cookie') ?? '').replace(/;.*/s, '');
    assert.equal((await send('/items', create('before'))).status, 201);
  });
  let key = '';
  await serve(projectDirectory, 'SIGKILL', async (send) => {
    assert.equal((await send('/items', create('this'), { 'idempotency-key': '"this"' })).status, 201);
    key = (await send('/keys', { name: 'script', currentPassword: password })).json.key;
    const { json: { id } } = await send('/users', { name: 'Eve', email: 'eve@example.org' });
    assert.equal((await send(`/users/${id}/invitation`, {})).status, 201);
  });
  await serve(previous, 'SIGKILL', async (send) => {
    const names = async (headers?: Readonly<Record<string, string>>): Promise<string[]> =>
      (await send('/items', undefined, headers)).json.map(({ name }: { name: string }) => name);
    assert.deepEqual(await names(), ['before', 'this']);
    assert.deepEqual(await names({ authorization: `Bearer ${key}` }), ['before', 'this']);
    assert.equal((await send('/items', create('this'), { 'idempotency-key': '"this"' })).status, 422);
    assert.equal((await send('/items', create('again'), { 'idempotency-key': '"again"' })).status, 201);
  });
  await serve(projectDirectory, 'SIGTERM', async (send, url) => {
    assert.equal((await send('/items', create('again'), { 'idempotency-key': '"again"' })).status, 422);
    assert.equal((await send('/items')).json.length, 3);
    assert.equal((await fetch(`${url}/dashboard`, { headers: { cookie } })).status, 200);
  });
});

async function ask(url: string, body?: object, headers: Readonly<Record<string, string>> = {}) {
  const sent = body && {
    method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body),
  };
  const reply = await fetch(url, sent ?? { headers });
  const text = await reply.text();
  return { status: reply.status, json: Object(text === '' ? undefined : JSON.parse(text)) };
}
