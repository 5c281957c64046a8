/** Copies of the project without some of its parts: each goes with its folder and its one line. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { testEnvironment, startProcess, temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { projectDirectory } from '../../test/support/source.ts';

interface Part {
  /** The files to remove, below `src`. */
  readonly paths: readonly string[];
  /** The file, below `src`, that loads it with this line. */
  readonly file: string;
  readonly line: string;
}

const table = readFileSync(join(projectDirectory, 'src/app/parts.ts'), 'utf8');
const lines = [...table.matchAll(/^ {2}\w+: \(\) => import\('\.\.\/((?:options|features)\/[\w-]+)\/.*\n/gm)];
const served = lines.map(([line, folder = '']): Part => ({ paths: [folder], file: 'app/parts.ts', line }));
/** Parts that only commands use go with these commands' files, and with what they share. */
const ofCommands = [
  { folder: 'options/transfer', commands: ['open', 'transfer'], shared: [] },
  { folder: 'options/offline', commands: ['user', 'data', 'keys'], shared: ['place'] },
].map(({ folder, commands, shared }): Part => ({
  paths: [folder, ...[...commands, ...shared].map((name) => `cli/${name}.ts`)], file: 'cli/commands.ts',
  line: commands.map((name) => `    import('./${name}.ts'),\n`).join(''),
}));

export const parts: readonly Part[] = [...served, ...ofCommands];

/** Makes a copy without `removed`, shows that the rest compiles and serves, and returns its directory. */
export async function testWithout(t: TestContext, removed: readonly Part[]): Promise<string> {
  const copy = temporaryDirectory(t);
  for (const entry of ['src', 'package.json', 'tsconfig.json']) {
    cpSync(join(projectDirectory, entry), join(copy, entry), { recursive: true });
  }
  symlinkSync(join(projectDirectory, 'node_modules'), join(copy, 'node_modules'), 'junction');
  for (const { paths, file, line } of removed) {
    for (const path of paths) rmSync(join(copy, 'src', path), { recursive: true });
    const text = readFileSync(join(copy, 'src', file), 'utf8');
    assert.ok(text.includes(line), `${file} has the line ${line}`);
    writeFileSync(join(copy, 'src', file), text.replace(line, ''));
  }
  await serves(t, copy, existsSync(compiler) ? compiled(copy) : 'src/main.ts');
  return copy;
}

/** Without an installation, nothing checks the types, and Node.js runs the source. */
const compiler = join(projectDirectory, 'node_modules/typescript/bin/tsc');

function compiled(copy: string): string {
  const words = [compiler, '-p', 'tsconfig.json', '--noEmit', 'false'];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: copy, encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
  cpSync(join(copy, 'src', 'web'), join(copy, 'dist', 'web'), { recursive: true });
  return 'dist/main.js';
}

/** Sends requests to the server in a copy, from the first sign-in to the end. */
async function serves(t: TestContext, copy: string, main: string): Promise<void> {
  const options = ['--port', '0', '--data', join(copy, 'data'), '--log', 'json'];
  const server = startProcess(t, [join(copy, main), 'serve', ...options]);
  const [, url = ''] = await server.find(/Cairn serves (http:[^"]+)/);
  const send = async (method: string, path: string, expected: number, body?: object, headers = {}) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await fetch(url + path, {
      method, headers: { 'content-type': type, ...headers }, ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.equal(response.status, expected, `${method} ${path}: ${text}`);
    return text === '' ? undefined : Object(JSON.parse(text));
  };
  const signIn = { email: 'admin@localhost.localdomain', password: testEnvironment.CAIRN_ADMIN_PASSWORD };
  const own = { authorization: `Bearer ${(await send('POST', '/tokens', 201, signIn)).access_token}` };
  const lamp = { id: 1, name: 'Lamp', price: 1 };
  assert.deepEqual(await send('POST', '/items', 201, { name: 'Lamp', price: 1 }, own), lamp);
  assert.deepEqual(await send('GET', '/items', 200, undefined, own), [lamp]);
  assert.deepEqual(await send('PATCH', '/items/1', 200, { price: 2 }, own), { ...lamp, price: 2 });
  await send('DELETE', '/items/1', 204, undefined, own);
  await send('GET', '/items/1', 404, undefined, own);
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0, server.err);
}
