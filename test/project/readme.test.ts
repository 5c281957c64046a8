import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startCairn, temporaryDirectory, programArguments, type Running } from '../support/cli/spawn.ts';
import { projectDirectory } from '../support/source.ts';

const { scripts } = JSON.parse(readFileSync(join(projectDirectory, 'package.json'), 'utf8'));

/** The command `cairn` in a shell, in any directory. */
const program = [process.execPath, ...programArguments('src/main')]
  .map((word) => `'${word === 'tsx' ? import.meta.resolve('tsx') : word}'`)
  .join(' ');

/** A fenced block of the README. Its language is empty where it shows what the shell block before it prints. */
interface Block {
  readonly language: string;
  readonly text: string;
}

/** The blocks below one heading of the README, or of another page. */
function blocksBelow(heading: string, page = 'README.md'): Block[] {
  const text = readFileSync(join(projectDirectory, page), 'utf8');
  const [, section = ''] = new RegExp(`^## ${heading}\n(.*?)(?=^## )`, 'ms').exec(text) ?? [];
  const blocks = [...section.matchAll(/^```(\w*)\n(.*?)^```$/gms)];
  assert.ok(blocks.length > 0, heading);
  return blocks.map(([, language = '', text = '']) => ({ language, text }));
}

/** A newcomer who types what the README says, with a server, a directory for its data, and a shell. */
class Newcomer {
  readonly directory: string;
  readonly #t: TestContext;
  #server: Running | undefined;
  #origin = '';
  /** Words that a person replaces, such as the token of a response. */
  readonly pasted = new Map<string, string>();

  constructor(t: TestContext) {
    this.#t = t;
    this.directory = temporaryDirectory(t);
  }

  /** Runs every shell block below a heading, and compares what it prints with the block after it. */
  async follow(heading: string, page?: string): Promise<void> {
    const blocks = blocksBelow(heading, page);
    for (const [index, { language, text }] of blocks.entries()) {
      const file = text.includes('"collections"') ? 'books.json' : 'db.json';
      if (language === 'json') writeFileSync(join(this.directory, file), text);
      if (language !== 'sh') continue;
      const printed = await this.#type(text.trim().split('\n'));
      const shown = blocks[index + 1];
      if (shown?.language === '') assertShown(printed, shown.text);
    }
  }

  async #type(lines: readonly string[]): Promise<string> {
    const script: string[] = [];
    // A command that writes to the data needs the server stopped.
    if (lines.some((line) => line.startsWith('cairn '))) await this.stop();
    for (const line of lines) {
      const [npm, name = '', ...words] = line.split(' ');
      if (npm !== 'npm') script.push(line);
      else if (name === 'start') await this.#start(words.filter((word) => word !== '--'));
      else assert.equal(name, 'ci', `${line} is not run here`);
    }
    return script.length === 0 ? '' : this.shell(script.join('\n'));
  }

  /** Starts a server like `npm start`, on a free port, and stops the previous one first. */
  async #start(words: readonly string[]): Promise<void> {
    assert.equal(scripts.start, 'node .ci/start.js');
    await this.stop();
    const files = words.map((word) => word.replace(/^\w+\.json$/, (file) => join(this.directory, file)));
    const own = ['--port', '0', '--log', 'none'];
    // `npm start -- db.json` keeps its data next to the file.
    const data = words[0]?.endsWith('.json') ? [] : ['--data', join(this.directory, 'data')];
    const serve = data.length === 0 ? [] : ['serve'];
    this.#server = startCairn(this.#t, [...serve, ...files, ...own, ...data], { CAIRN_SCRYPT_COST: '14' });
    [, this.#origin = ''] = await this.#server.find(/^Cairn serves (http:\S+)$/m);
    const file = join(this.directory, 'data', 'admin-password');
    if (existsSync(file)) this.pasted.set('PASSWORD', readFileSync(file, 'utf8').trim());
  }

  async stop(): Promise<void> {
    this.#server?.child.kill('SIGTERM');
    assert.equal((await this.#server?.ended) ?? 0, 0);
  }

  /** Runs lines as one script, and resolves with what it prints. */
  async shell(script: string): Promise<string> {
    const filled = [...this.pasted].reduce((text, [placeholder, value]) => text.replaceAll(placeholder, value), script);
    const child = spawn('bash', ['-euo', 'pipefail'], { cwd: this.directory, stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.write(`cairn() { ${program} "$@"; }\n`);
    child.stdin.end(filled.replaceAll('localhost:3000', this.#origin).replaceAll('curl ', 'curl -sS '));
    const written = { output: '', errors: '' };
    child.stdout.on('data', (chunk) => (written.output += String(chunk)));
    child.stderr.on('data', (chunk) => (written.errors += String(chunk)));
    const [status] = await once(child, 'close');
    assert.equal(status, 0, written.output + written.errors);
    const { access_token: token } = /^\{"access_token"/.test(written.output) ? JSON.parse(written.output) : {};
    if (token !== undefined) this.pasted.set('the access_token of that response', token);
    return written.output;
  }
}

/** Compares without line ends, which curl does not add; `…` stands for what is never the same. */
function assertShown(printed: string, shown: string): void {
  const parts = shown.replaceAll('\n', '').split('…');
  const pattern = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('[^"]+');
  assert.match(printed.replaceAll('\n', ''), new RegExp(`^${pattern}$`));
}

test('the README goes from the first start to signing in, a collection and lists, line by line', async (t) => {
  const newcomer = new Newcomer(t);
  const { directory } = newcomer;
  await newcomer.follow('Run it');
  assert.ok(!existsSync(join(directory, 'data', 'admin-password')), 'no password is shown before it is needed');
  await newcomer.follow('Sign in');
  await newcomer.follow('Your own collections');
  await newcomer.follow('Try it', 'src/docs/querying.md');
  await newcomer.follow('Coming from json-server');
  await newcomer.stop();
  assert.match(readFileSync(join(directory, 'data', 'items.json'), 'utf8'), /"name":"Desk"/, 'where it says');
});

test('the to-do list of the manual is there for its maker alone, and the board for its members, too', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'shared.json');
  const blocks = blocksBelow('Private and shared records', 'src/docs/access.md');
  writeFileSync(file, blocks.find(({ text }) => text.includes('"boards"'))?.text ?? '');
  const words = ['--collections', file, '--data', join(directory, 'data'), '--registration', 'open', '--port', '0'];
  const server = startCairn(t, ['serve', ...words, '--log', 'none'], { CAIRN_SCRYPT_COST: '14' });
  const [, origin = ''] = await server.find(/^Cairn serves (http:\S+)$/m);
  const ask = async (method: string, path: string, json?: object, token?: string): Promise<any> => {
    const signed = token && { Authorization: `Bearer ${token}` };
    const headers = { ...(json && { 'Content-Type': 'application/json' }), ...signed };
    const reply = await fetch(origin + path, { method, headers, ...(json && { body: JSON.stringify(json) }) });
    return reply.ok ? reply.json() : reply.status;
  };
  const [mia = '', eve = '', bob = ''] = await Promise.all(['mia', 'eve', 'bob'].map(async (name) => {
    const credentials = { email: `${name}@example.org`, password: `a password of ${name} alone` };
    assert.ok((await ask('POST', '/users', { name, ...credentials })).id);
    return String((await ask('POST', '/tokens', credentials)).access_token);
  }));
  const { id } = await ask('GET', '/me', undefined, eve);
  const todo = await ask('POST', '/todos', { title: 'Call Bob' }, mia);
  assert.deepEqual(todo, { id: 1, title: 'Call Bob', done: false });
  assert.deepEqual(await ask('GET', '/todos', undefined, mia), [todo]);
  assert.deepEqual(await ask('GET', '/todos', undefined, bob), []);
  assert.equal(await ask('GET', '/todos/1', undefined, bob), 404);
  assert.equal(await ask('DELETE', '/todos/1', undefined, bob), 404);

  const board = { id: 1, title: 'Move house', memberIds: [id] };
  assert.deepEqual(await ask('POST', '/boards', { title: board.title, memberIds: [id] }, mia), board);
  for (const token of [mia, eve]) assert.deepEqual(await ask('GET', '/boards', undefined, token), [board]);
  assert.deepEqual(await ask('GET', '/boards', undefined, bob), []);
  assert.equal(await ask('GET', '/boards/1', undefined, bob), 404);
  assert.equal(await ask('PATCH', '/boards/1', { title: 'Mine' }, bob), 404);
  assert.equal((await ask('PATCH', '/boards/1', { title: 'Moved' }, eve)).title, 'Moved');
  assert.equal(await ask('PUT', '/boards/1', { title: 'Mine' }, eve), 403);
});
