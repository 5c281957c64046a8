/** The recipes of src/docs/recipes.md, with the packages that they name and the package that a user installs. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findExample, examples, install } from '../../test/support/handbook.ts';
import { readHandbook, projectDirectory } from '../../test/support/source.ts';
import { clone, pack, run } from './clone.ts';

const work = mkdtempSync(join(tmpdir(), 'cairn-recipes-'));
after(() => rmSync(work, { recursive: true }));
const packed = pack(clone(join(work, 'clone')));

const recipes = {
  'Express 5': { express: '5.3.0' },
  'Fastify 5': { fastify: '5.12.8' },
  Hono: { hono: '4.13.19', '@hono/node-server': '2.1.9' },
  'Tests with Vitest': { vitest: '3.2.7' },
};

test('every recipe that imports packages has a test here', () => {
  // The guide's recipes are files with their own test.
  const own = examples.filter(({ packages, title }) => packages.length > 0 && !title.endsWith('.ts'));
  const titles = own.map(({ title }) => title);
  assert.deepEqual(titles, Object.keys(recipes));
});

for (const [title, packages] of Object.entries(recipes).filter(([name]) => name !== 'Tests with Vitest')) {
  test(`a recipe prints its promised output: ${title}`, (t) => {
    const { code, promised } = findExample(title);
    const directory = install(t, { ...packages, 'cairn-api': `file:${packed.file}` });
    if (directory === undefined) return;
    writeFileSync(join(directory, 'recipe.mjs'), code);
    assert.equal(run(directory, process.execPath, 'recipe.mjs'), promised.map((line) => `${line}\n`).join(''));
  });
}

/** Runs the recipe of a test, and shows that its expectations are checked: another status fails. */
function runsTests(directory: string, file: string, code: string, ...words: readonly string[]): void {
  writeFileSync(join(directory, file), code);
  run(directory, process.execPath, ...words);
  writeFileSync(join(directory, file), code.replace('toBe(201)', 'toBe(200)'));
  assert.throws(() => run(directory, process.execPath, ...words), /Received.*201|expected 201 to be 200/s);
}

test('the recipe for a test runs with Vitest', (t) => {
  const directory = install(t, { ...recipes['Tests with Vitest'], 'cairn-api': `file:${packed.file}` });
  if (directory === undefined) return;
  runsTests(
    directory,
    'items.test.mjs',
    findExample('Tests with Vitest').code,
    'node_modules/vitest/vitest.mjs',
    'run',
  );
});

test('the recipe for a test runs with Jest 29', (t) => {
  const directory = install(t, { jest: '29.7.0', 'cairn-api': `file:${packed.file}` });
  if (directory === undefined) return;
  const told =
    /With Jest 29, import from `([^`]+)` instead\.[^`]+`[^`]+`, if you run\s+`node ([^`]+)`/.exec(readHandbook());
  const [, name = '', words = ''] = told ?? [];
  const code = findExample('Tests with Vitest').code.replace("'vitest'", `'${name}'`);
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  runsTests(directory, 'items.test.js', code, ...words.split(' '));
});

test('esbuild bundles a program into one file that runs alone', () => {
  const [, command = ''] = /^ +npx (esbuild .*)$/m.exec(readHandbook()) ?? [];
  const [directory, alone] = [join(work, 'bundled'), join(work, 'alone')];
  for (const each of [directory, alone]) mkdirSync(each);
  run(directory, 'npm', 'install', '--offline', '--no-audit', '--no-fund', packed.file);
  const { code, promised } = findExample('Next to your own pages');
  assert.match(code, /page: false/);
  writeFileSync(join(directory, 'server.mjs'), code);
  const [, ...words] = command.replace('one.mjs', join(alone, 'one.mjs')).split(' ');
  run(directory, join(projectDirectory, 'node_modules', 'esbuild', 'bin', 'esbuild'), ...words);
  assert.equal(run(alone, process.execPath, 'one.mjs'), promised.map((line) => `${line}\n`).join(''));
});
