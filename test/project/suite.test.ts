import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loader } from '../support/cli/spawn.ts';
import { filesBelow, projectDirectory } from '../support/source.ts';

const tests = filesBelow('test', '.ts');
const programs = filesBelow('.ci', '.ts');

test('a folder of tests is a folder of the source, the project or support, and none is hidden', () => {
  const foldersIn = (path: string): string[] =>
    readdirSync(join(projectDirectory, path), { withFileTypes: true })
      .filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const known = [...foldersIn('src'), ...foldersIn('src/options'), 'project', 'support'];
  assert.deepEqual(foldersIn('test').filter((name) => !known.includes(name)), []);
});

test('every file that registers tests is of a kind that is run', () => {
  const registers = (path: string): boolean =>
    /^(test|it|describe|suite)\(/m.test(readFileSync(join(projectDirectory, path), 'utf8'));
  const kinds = /^test\/support\/|^test\/.*\.test\.ts$|^\.ci\/(browser|release|torture)\/.*\.\1\.ts$/;
  assert.deepEqual([...tests, ...programs].filter((path) => registers(path) && !kinds.test(path)), []);
  assert.deepEqual(tests.filter((path) => !/^test\/support\/|\.test\.ts$/.test(path)), []);
});

test('node --test finds the tests below "test", and nothing elsewhere', () => {
  const others = ['src', '.ci'].flatMap((folder) => filesBelow(folder, 's'));
  const looksLikeTest = /(^|\/)(test\/|test[-.]|[^/]+[-._]test\.)/;
  assert.deepEqual(others.filter((path) => !path.includes('node_modules') && looksLikeTest.test(path)), []);
});

if (loader.length > 0) test('where Node.js reads no TypeScript, it says at once how the tests are run', () => {
  const words = ['--test', join(projectDirectory, 'test', 'typescript.test.js')];
  const { stdout, status } = spawnSync(process.execPath, words, {
    encoding: 'utf8', env: { PATH: process.env['PATH'] },
  });
  assert.match(stdout, /run npm ci, then npm test/);
  assert.equal(status, 1);
});
