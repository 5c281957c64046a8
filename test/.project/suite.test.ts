import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loader, temporaryDirectory } from '../.support/cli/spawn.ts';
import { filesBelow, projectDirectory } from '../.support/source.ts';

const suite = join(projectDirectory, 'test', 'suite.js');
const files = filesBelow('test', '.ts').map((path) => path.replace('test/', ''));

test('node --test and npm test run every test file, and nothing else', () => {
  const env = { PATH: process.env['PATH'] };
  const { stdout } = spawnSync(process.execPath, [suite, 'list'], { encoding: 'utf8', env });
  const expected = files.filter((path) => path.endsWith('.test.ts'));
  assert.deepEqual(stdout.trim().split('\n').sort(), expected.sort());
  const found = readdirSync(join(projectDirectory, 'test')).filter((name) => !name.startsWith('.'));
  assert.deepEqual(found.sort(), ['suite.js', 'tsconfig.json'], 'node --test enters only what has no dot before it');
});

test('every file that registers tests is of a kind that is run', () => {
  const kinds = /^\.support\/|\.(test|browser|release|torture)\.ts$/;
  const registers = (path: string): boolean =>
    /^(test|it|describe|suite)\(/m.test(readFileSync(join(projectDirectory, 'test', path), 'utf8'));
  assert.deepEqual(files.filter((path) => registers(path) && !kinds.test(path)), []);
});

test('a test that hangs fails alone, and one that waits for nothing that holds the process ends none', (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'one.test.js'), `
    const { it, test } = require('node:test');
    test('hangs', () => new Promise(() => {}));
    test('waits', () => new Promise((resolve) => setTimeout(resolve, 100).unref()));
    test('takes its time', { timeout: 5000 }, () => new Promise((resolve) => setTimeout(resolve, 700)));
  `);
  writeFileSync(join(directory, 'two.test.js'), `require('node:test').it('is well', () => {});`);
  const { stdout, status } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', suite], {
    encoding: 'utf8', env: { PATH: process.env['PATH'], CAIRN_TESTS: directory, CAIRN_TEST_TIMEOUT_MS: '500' },
  });
  assert.equal(status, 1);
  const results = Array.from(stdout.matchAll(/^(?:not )?ok \d+ - .*/gm), ([line]) => line);
  assert.deepEqual(results, [
    'not ok 1 - hangs', 'ok 2 - waits', 'ok 3 - takes its time', 'ok 4 - is well',
    'ok 5 - all tests of 2 files have ended',
  ]);
});

if (loader.length > 0) test('where Node.js reads no TypeScript, node --test says at once how the tests are run', () => {
  const { stdout, status } = spawnSync(process.execPath, ['--test', suite], {
    encoding: 'utf8', env: { PATH: process.env['PATH'] },
  });
  assert.match(stdout, /run npm ci, then npm test/);
  assert.equal(status, 1);
});
