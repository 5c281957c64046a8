import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { cairn, temporaryDirectory, type Running } from './cli/spawn.ts';
import { projectDirectory } from './source.ts';

const readme = readFileSync(join(projectDirectory, 'README.md'), 'utf8');

/** The lines of the README's shell blocks, each block a list. */
const shellBlocks = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block.trim().split('\n'));

/** A server as `npm start` starts it, on a port and a directory of its own. */
async function start(t: TestContext): Promise<{ server: Running; origin: string; directory: string }> {
  const directory = temporaryDirectory(t);
  const server = cairn(t, ['serve', '--port', '0', '--data', directory, '--log', 'none'], {});
  const [, origin = ''] = await server.find(/^Cairn serves (http:\S+)$/m);
  return { server, origin, directory };
}

/** Runs shell lines as one script and resolves with what they print. */
async function shell(script: string): Promise<string> {
  const process_ = spawn('bash', ['-euo', 'pipefail'], { stdio: ['pipe', 'pipe', 'ignore'] });
  process_.stdin.end(script);
  let output = '';
  process_.stdout.on('data', (chunk) => (output += String(chunk)));
  const [status] = await once(process_, 'close');
  assert.equal(status, 0, output);
  return output;
}

test('the tour goes from the first token to a changed item, line by line', async (t) => {
  const { server, origin, directory } = await start(t);
  const tour = shellBlocks.find(([first = '']) => first.startsWith('PASSWORD='));
  assert.ok(tour);
  const password = readFileSync(join(directory, 'admin-password'), 'utf8').trim();
  const more = shellBlocks.filter(([first = '']) => /^(ETAG=|curl -sf)/.test(first));
  assert.equal(more.length, 2);
  const lines = [...tour, ...more.flat()].map((line) =>
    line.replace(/^PASSWORD=.*$/, `PASSWORD='${password}'`).replaceAll('localhost:3000', origin),
  );
  const output = await shell(lines.join('\n'));
  const [created = '', read = '', patched = ''] = output.split(/(?=HTTP\/1\.1 )/);
  assert.match(created, /^HTTP\/1\.1 201 .*\{"id":1,"name":"Lamp","price":24\.5\}$/s);
  assert.match(read, /^HTTP\/1\.1 200 .*\{"id":1,"name":"Lamp","price":24\.5\}$/s);
  assert.match(patched, /^HTTP\/1\.1 200 .*\{"id":1,"name":"Lamp","price":19\.9\}/s);
  const further = '[{"id":1,"name":"Lamp","price":19.9}][{"id":1,"name":"Lamp"}]{"id":1,"name":"Lamp","price":18}';
  assert.equal(patched.slice(-further.length), further);
  const change = shellBlocks.find(([first = '']) => first.startsWith('NEW=')) ?? [];
  const changed = await shell([...lines.slice(0, 2), ...change].join('\n').replaceAll('localhost:3000', origin));
  assert.match(changed, /^HTTP\/1\.1 200 /);
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0);
});

test('the two commands are scripts of the package', () => {
  const commands = shellBlocks.flat().filter((line) => line.startsWith('npm '));
  assert.deepEqual(commands.slice(0, 2), ['npm ci && npm start', 'npm ci && npm test']);
});

test('what cannot be locked down is not started: not by the script, the unit or the container', (t) => {
  const directory = temporaryDirectory(t);
  const program = `if (process.argv[2] === 'serve') console.log('serves');
    else process.exitCode = Number(process.env.CODE);`;
  for (const folder of ['dist', 'node_modules/cairn-api/dist']) {
    mkdirSync(join(directory, folder), { recursive: true });
    writeFileSync(join(directory, folder, 'main.js'), program);
  }
  const manifest = JSON.parse(readFileSync(join(projectDirectory, 'package.json'), 'utf8'));
  const script = String(manifest.scripts['start:locked']).replace('npm run --silent build && ', '');
  const unit = /^ExecStart=\/bin\/sh -c '(.*)'$/m.exec(readme)?.[1]?.replaceAll('$$', '$') ?? '';
  const container: unknown = JSON.parse(/^CMD (\[.*\])$/m.exec(readme)?.[1] ?? '[]')[2];
  for (const line of [script, unit, String(container)]) {
    const outcome = (code: string): (string | number | null)[] => {
      const env = { PATH: process.env['PATH'], CODE: code };
      const { status, stdout } = spawnSync('sh', ['-c', line], { cwd: directory, env, encoding: 'utf8' });
      return [status, stdout];
    };
    assert.deepEqual(outcome('0'), [0, 'serves\n'], line);
    assert.deepEqual(outcome('64'), [64, ''], line);
  }
});
