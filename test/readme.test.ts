import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
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
  const server = cairn(t, ['serve', '--port', '0', '--data', directory, '--log', 'none'], { CAIRN_SCRYPT_COST: '14' });
  const [, origin = ''] = await server.find(/^Cairn serves (http:\S+)$/m);
  return { server, origin, directory };
}

/** Runs shell lines as one script and resolves with what they print. */
async function shell(script: string): Promise<string> {
  const { status, output, errors } = await outcomeOf(script);
  assert.equal(status, 0, output + errors);
  return output;
}

async function outcomeOf(script: string): Promise<{ status: unknown; output: string; errors: string }> {
  const child = spawn('bash', ['-euo', 'pipefail'], { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(script);
  const written = { output: '', errors: '' };
  child.stdout.on('data', (chunk) => (written.output += String(chunk)));
  child.stderr.on('data', (chunk) => (written.errors += String(chunk)));
  const [status] = await once(child, 'close');
  return { status, ...written };
}

test('the tour goes from the first token to a changed item, line by line', async (t) => {
  const { server, origin, directory } = await start(t);
  const tour = shellBlocks.find(([first = '']) => first.startsWith('export PASSWORD='));
  assert.ok(tour);
  const password = readFileSync(join(directory, 'admin-password'), 'utf8').trim();
  const more = shellBlocks.filter(([first = '']) => /^(ETAG=|curl -sf)/.test(first));
  assert.equal(more.length, 1);
  const lines = [...tour, ...more.flat()].map((line) =>
    line.replace(/^export PASSWORD=.*$/, `export PASSWORD='${password}'`).replaceAll('localhost:3000', origin),
  );
  const output = await shell(lines.join('\n'));
  const [created = '', read = '', patched = ''] = output.split(/(?=HTTP\/1\.1 )/);
  assert.match(created, /^HTTP\/1\.1 201 .*\{"id":1,"name":"Lamp","price":24\.5\}$/s);
  assert.match(read, /^HTTP\/1\.1 200 .*\{"id":1,"name":"Lamp","price":24\.5\}$/s);
  assert.match(patched, /^HTTP\/1\.1 200 .*\{"id":1,"name":"Lamp","price":19\.9\}/s);
  const further = [
    '[{"id":1,"name":"Lamp","price":19.9}]',
    '[{"id":1,"name":"Lamp"}]',
    '[{"id":2,"name":"Chair","price":35},{"id":3,"name":"Table","price":120}]',
    '{"id":4,"name":"Desk","price":90}',
    '{"id":1,"name":"Lamp","price":18}',
  ].join('');
  assert.equal(patched.slice(patched.indexOf('[')).replace(/retry: \d+\n[^]*$/, ''), further, patched);
  assert.match(patched, /retry: \d+\n/, 'the feed has begun');
  const change = shellBlocks.find(([first = '']) => first.startsWith('export NEW=')) ?? [];
  const signIn = lines.slice(0, lines.findIndex((line) => line.startsWith('curl ')));
  const quoted = change.map((line) => line.replace(/^export NEW=.*$/, `export NEW='a "quoted" \\ password'`));
  const changed = await shell([...signIn, ...quoted].join('\n').replaceAll('localhost:3000', origin));
  assert.match(changed, /^HTTP\/1\.1 200 /);
  const again = [`export PASSWORD='a "quoted" \\ password'`, ...signIn.slice(1), 'echo "$TOKEN"'].join('\n');
  assert.match(await shell(again), /^[\w-]+\.[\w-]+\.[\w-]+\n$/, 'a quote in the password does no harm');
  const { status, output: none, errors } = await outcomeOf([...signIn, 'echo "$TOKEN"'].join('\n'));
  assert.deepEqual([status, none], [1, ''], 'a wrong password fails');
  assert.match(errors, /^Cannot sign in: .*$/m, 'and says so');
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0);
});

test('a file of declarations is two commands away from its first record', async (t) => {
  const directory = temporaryDirectory(t);
  const [, declarations = ''] = /^```json\n(.*?)^```$/ms.exec(readme) ?? [];
  writeFileSync(join(directory, 'books.json'), declarations);
  const [start = '', create = ''] = shellBlocks.find(([first = '']) => first.includes('--collections')) ?? [];
  const words = start.replace(/^npm start -- /, '').replace('books.json', join(directory, 'books.json')).split(' ');
  const own = ['--port', '0', '--log', 'none', '--data', join(directory, 'data')];
  const server = cairn(t, ['serve', ...words, ...own]);
  const [, origin = ''] = await server.find(/^Cairn serves (http:\S+)$/m);
  const output = await shell(create.replace('localhost:3000', origin));
  assert.match(output, /^HTTP\/1\.1 201 .*\r\n\{"id":1,"title":"Emma","pages":474,"state":"new","createdAt":"20/s);
  assert.equal((await fetch(`${origin}/items`)).status, 404);
});

test('the two commands are scripts of the package', () => {
  const commands = shellBlocks.flat().filter((line) => line.startsWith('npm ci'));
  assert.deepEqual(commands.slice(0, 2), ['npm ci && npm start', 'npm ci && npm test']);
});
