import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { run, temporaryDirectory } from '../cli/spawn.ts';
import { projectDirectory } from '../source.ts';

/** Built JavaScript, as the package has it. */
function build(directory: string): string {
  const compiler = join(projectDirectory, 'node_modules', 'typescript', 'bin', 'tsc');
  const dist = join(directory, 'dist');
  const words = ['-p', projectDirectory, '--noEmit', 'false', '--outDir', dist];
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...words], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  cpSync(join(projectDirectory, 'src', 'web'), join(dist, 'web'), { recursive: true });
  cpSync(join(projectDirectory, 'package.json'), join(directory, 'package.json'));
  return join(dist, 'main.js');
}

test('the server runs with its own files only, and nothing that it does not need', async (t) => {
  const directory = temporaryDirectory(t);
  const main = build(directory);
  const data = join(directory, 'data');
  const { stdout, status } = spawnSync(process.execPath, [main, 'flags', '--data', data], { encoding: 'utf8' });
  assert.equal(status, 0);
  const flags = stdout.trim().split('\n');
  const itemsBySignal: number[] = [];
  for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM'] as const) {
    itemsBySignal.push(await serveAndWrite(t, [...flags, main, 'serve', '--data', data, '--port', '0'], signal));
  }
  assert.deepEqual(itemsBySignal, [1, 2, 3], 'each life finds what the ones before wrote, also after kill -9');
  assert.equal(readFileSync(join(data, 'items.json'), 'utf8').split('"Lamp"').length - 1, 3);

  const denied = spawnSync(process.execPath, [...flags, main, 'serve', '--data', join(directory, 'other')], {
    encoding: 'utf8',
  });
  assert.equal(denied.status, 74, 'another directory is out of reach');
  assert.match(denied.stderr, /^Cannot .*\n$/);
});

/** One life of a server: start, page, sign in by token and cookie, write, end. The number of items by then. */
async function serveAndWrite(t: TestContext, words: readonly string[], signal: NodeJS.Signals): Promise<number> {
  const server = run(t, words);
  const [, base = ''] = await server.find(/Cairn serves (http:\/\/127\.0\.0\.1:\d+)/);
  assert.match(await (await fetch(`${base}/`)).text(), /^<!doctype html>/i);
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ email: 'admin@localhost.localdomain', password: 'correct horse battery' });
  assert.equal((await fetch(`${base}/login`, { method: 'POST', headers, body })).status, 200);
  const answer: unknown = await (await fetch(`${base}/tokens`, { method: 'POST', headers, body })).json();
  const { access_token: token } = answer as { access_token: string };
  const signedIn = { ...headers, Authorization: `Bearer ${token}` };
  const made = await fetch(`${base}/items`, { method: 'POST', headers: signedIn, body: '{"name":"Lamp","price":1}' });
  assert.equal(made.status, 201);
  const items: unknown = await (await fetch(`${base}/items`, { headers: signedIn })).json();
  server.child.kill('SIGHUP');
  await server.find(/Certificate and keys were read again/);
  server.child.kill(signal);
  assert.equal(await server.ended, signal === 'SIGTERM' ? 0 : null, server.err);
  assert.equal(server.err, '');
  return (items as unknown[]).length;
}
