import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { install } from '../../test/support/handbook.ts';
import { projectDirectory } from '../../test/support/source.ts';
import { startProcess as start } from '../../test/support/cli/spawn.ts';
import { clone, pack, run } from './clone.ts';

const use = `
  const app = await createApp({ page: false });
  const reply = await app.inject({ target: '/livez' });
  console.log(reply.status);
  await app.close();
`;
const work = mkdtempSync(join(tmpdir(), 'cairn-package-'));
after(() => rmSync(work, { recursive: true }));

const firstClone = clone(join(work, 'first'));
mkdirSync(join(firstClone, 'dist'));
writeFileSync(join(firstClone, 'dist', 'stale.js'), '// of a file that is no more');
const first = pack(firstClone);

test('the package contains only JavaScript, declarations, source and README', () => {
  const sources = readdirSync(join(projectDirectory, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\w+$/.test(name)).map((name) => name.replaceAll('\\', '/'));
  const built = sources.flatMap((name) => {
    if (name.startsWith('docs/')) return [];
    if (name.endsWith('.ts')) return [name.replace(/ts$/, 'js')];
    return /\.(md|json)$/.test(name) ? [] : [name];
  });
  const expected = new Set([
    'LICENSE', 'src/LICENSE', 'bom.json', 'package.json', 'README.md', 'dist/package.json',
    'dist/index.d.ts', 'dist/index.d.cts', // all types, for import and for require
    ...sources.map((name) => `src/${name}`), ...built.map((name) => `dist/${name}`),
  ]);
  assert.deepEqual(first.names.filter((name) => !expected.has(name)), [], 'nothing else');
  assert.deepEqual([...expected].filter((name) => !first.names.includes(name)), [], 'nothing is missing');
});

const noGroups = process.platform !== 'linux' && 'needs setsid, for a process group as a terminal makes it';
test('stopping "npm start" stops the server', { skip: noGroups }, async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const data = join(work, `stopped-by-${signal}`);
    const words = ['npm', 'start', '--silent', '--', '--port', '0', '--data', data, '--log', 'json'];
    const npm = start(t, words, undefined, 'setsid');
    await npm.find(/Cairn serves/);
    const pid = npm.child.pid ?? 0;
    process.kill(signal === 'SIGINT' ? -pid : pid, signal); // Ctrl-C goes to the whole group, a supervisor's to npm
    await npm.ended; // once the server, too, has closed what it writes to; the code is npm's own
    assert.match(npm.out, /"Cairn stops: SIG/);
    assert.ok(!readdirSync(data).includes('lock'), 'a clean stop');
  }
});

test('the build serves the page and the API description from any directory', async (t) => {
  const alone = join(work, 'alone');
  cpSync(join(firstClone, 'dist'), alone, { recursive: true });
  const main = join(alone, 'main.js');
  assert.match(run(work, process.execPath, main, '--version'), /^cairn \d+\.\d+\.\d+ on Node\.js v/);
  const server = start(t, [main, '--data', join(work, 'data'), '--port', '0', '--log', 'none']);
  const [, origin = ''] = await server.find(/^Cairn serves (http:\S+)$/m);
  const page = await (await fetch(origin)).text();
  const files = Array.from(page.matchAll(/(?:src|href)="([^"]+)"/g), ([, path = '']) => path);
  assert.ok(files.length > 1, page);
  for (const path of ['openapi.json', ...files]) assert.equal((await fetch(new URL(path, origin))).status, 200, path);
});

test('two clones build the same package, byte for byte', (t) => {
  const directory = clone(join(work, 'second'));
  run(directory, 'chmod', '-R', 'go=', 'src', 'README.md', 'package.json');
  const before = process.umask(0o077);
  t.after(() => process.umask(before));
  const second = pack(directory);
  const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');
  assert.equal(digest(second.file), digest(first.file));
  t.diagnostic(`SHA-256 of the package: ${digest(first.file)}`);
});

const consumerDirectory = join(work, 'consumer');
mkdirSync(consumerDirectory);
writeFileSync(join(consumerDirectory, 'package.json'), '{"name":"consumer","version":"1.0.0","type":"module"}');
run(consumerDirectory, 'npm', 'install', '--offline', '--no-audit', '--no-fund', first.file);

/** This Node.js, and the ones named by CI, separated by colons. */
const nodes = [process.execPath, ...(process.env['CAIRN_NODES'] ?? '').split(':').filter((path) => path !== '')];

for (const node of nodes) {
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  test(`the package runs on Node.js ${version}, imported, required and bundled without its page`, () => {
    const directory = consumerDirectory;
    const main = join(directory, 'node_modules', 'cairn-api', 'dist', 'main.js');
    assert.match(run(directory, node, main, '--version'), new RegExp(`on Node\\.js ${version}`));
    writeFileSync(join(directory, 'imported.mjs'), `import { createApp } from 'cairn-api';${use}`);
    assert.equal(run(directory, node, 'imported.mjs'), '200\n');
    const required = `const { createApp } = require('cairn-api');(async () => {${use}})();`;
    writeFileSync(join(directory, 'required.cjs'), required);
    assert.equal(run(directory, node, '--disable-warning=ExperimentalWarning', 'required.cjs'), '200\n');
    const esbuild = join(projectDirectory, 'node_modules', 'esbuild', 'bin', 'esbuild');
    run(directory, esbuild, 'imported.mjs', '--bundle', '--platform=node', '--format=esm', '--outfile=bundled.mjs');
    assert.equal(run(directory, node, 'bundled.mjs'), '200\n');
  });
}

test('installing the package installs nothing else', () => {
  const directory = consumerDirectory;
  assert.match(run(directory, 'npx', '--no-install', 'cairn', '--version'), /^cairn \d+\.\d+\.\d+ on Node\.js v/);
  const bill: { components?: unknown[] } = JSON.parse(run(directory, 'npm', 'sbom', '--sbom-format=cyclonedx'));
  assert.equal(bill.components?.length, 1, 'Cairn is all that was installed');
});

/** The versions that `.ci/tools` pins, by name, and where CI has installed them. */
const { dependencies: pinned }: { dependencies: Record<string, string> } =
  JSON.parse(readFileSync(join(projectDirectory, '.ci', 'tools', 'package.json'), 'utf8'));
const older = Object.fromEntries(Object.entries(pinned).filter(([name]) => name.startsWith('typescript-')));
const tools = process.env['CAIRN_TOOLS'];

const resolutions = ['--module node16', '--module nodenext', '--module esnext --moduleResolution bundler'];
const strict = '--noEmit --strict --exactOptionalPropertyTypes --skipLibCheck false --target es2022 --types node';

test('the types compile with import and require in each version of TypeScript', async (t) => {
  const directory = consumerDirectory;
  const source = readFileSync(join(projectDirectory, 'test', 'programs', 'types.test.ts'), 'utf8');
  const use = source.replace("'../../src/index.ts'", "'cairn-api'");
  assert.notEqual(use, source);
  for (const ending of ['mts', 'cts']) writeFileSync(join(directory, `types.${ending}`), use);
  const types = join(directory, 'node_modules', '@types');
  symlinkSync(join(projectDirectory, 'node_modules', '@types'), types, 'junction');
  const from = tools ?? install(t, older);
  if (from === undefined) return;
  const compilers = Object.keys(older).map((name) => join(from, 'node_modules', name));
  compilers.push(join(projectDirectory, 'node_modules', 'typescript'));
  for (const [index, compiler] of compilers.entries()) {
    const { version } = JSON.parse(readFileSync(join(compiler, 'package.json'), 'utf8'));
    // The versions between the oldest and the newest one resolve in the same way.
    const isBetween = index > 0 && index < compilers.length - 1;
    for (const resolution of isBetween ? ['--module nodenext'] : resolutions) {
      await t.test(`TypeScript ${version} ${resolution}`, () => {
        const flags = [...strict.split(' '), ...resolution.split(' ')];
        run(directory, process.execPath, join(compiler, 'bin', 'tsc'), ...flags, 'types.mts', 'types.cts');
      });
    }
  }
});
