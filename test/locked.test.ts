import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { run, temporaryDirectory } from './cli/spawn.ts';
import { projectDirectory } from './source.ts';

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
  await serveAndWrite(t, [...flags, main], data);
  await serveAndWrite(t, [...flags, main], data);

  const denied = spawnSync(process.execPath, [...flags, main, 'serve', '--data', join(directory, 'other')], {
    encoding: 'utf8',
  });
  assert.equal(denied.status, 74, 'another directory is out of reach');
  assert.match(denied.stderr, /^Cannot .*\n$/);
});

/** One life of a server: start, sign in, write, read, clean stop. Items of earlier lives are still there. */
async function serveAndWrite(t: TestContext, words: readonly string[], data: string): Promise<void> {
  const server = run(t, [...words, 'serve', '--data', data, '--port', '0']);
  const [, base = ''] = await server.find(/Cairn serves (http:\/\/127\.0\.0\.1:\d+)/);
  const login = await fetch(`${base}/tokens`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email: 'admin@localhost.localdomain', password: 'correct horse battery' }),
  });
  const { access_token: token } = await login.json() as { access_token: string };
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
  const made = await fetch(`${base}/items`, { method: 'POST', headers, body: '{"name":"Lamp","price":1}' });
  assert.equal(made.status, 201);
  const items = await (await fetch(`${base}/items`, { headers })).json() as unknown[];
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0, server.err);
  assert.equal(server.err, '');
  assert.equal(readFileSync(join(data, 'items.json'), 'utf8').split('"Lamp"').length - 1, items.length);
}
