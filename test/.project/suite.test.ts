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

test('a test that hangs ends in a failure, and one that waits for nothing that holds the process ends none', (t) => {
  const directory = temporaryDirectory(t);
  const results = (more: string, timeoutMs: number) => {
    writeFileSync(join(directory, 'one.test.js'), `
      import { test } from 'node:test';
      test('waits', () => new Promise((resolve) => setTimeout(resolve, 100).unref()));
      ${more}
    `);
    const env = { PATH: process.env['PATH'], CAIRN_TESTS: directory, CAIRN_TEST_TIMEOUT_MS: String(timeoutMs) };
    const words = ['--test', '--test-reporter=tap', suite];
    const { stdout, stderr, status } = spawnSync(process.execPath, words, { encoding: 'utf8', env });
    const lines = Array.from((stdout + stderr).matchAll(/^(?:ok \d+ - |.*SIGKILL).*/gm), ([line]) => line);
    return { status, lines };
  };
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  writeFileSync(join(directory, 'two.test.js'), `import { it } from 'node:test'; it('is well', () => {});`);
  const ended = ['ok 1 - waits', 'ok 2 - is well', 'ok 3 - all tests of 2 files have ended'];
  assert.deepEqual(results('', 600_000), { status: 0, lines: ended });
  const { status, lines } = results("test('hangs', () => new Promise(() => {}));", 3000);
  const hangs = '# SIGKILL after 3000 ms: the test after the last one hangs';
  assert.deepEqual({ status, lines: lines.sort() }, { status: 1, lines: [hangs, 'ok 1 - waits'] });
});

if (loader.length > 0) test('where Node.js reads no TypeScript, node --test says at once how the tests are run', () => {
  const { stdout, status } = spawnSync(process.execPath, ['--test', suite], {
    encoding: 'utf8', env: { PATH: process.env['PATH'] },
  });
  assert.match(stdout, /run npm ci, then npm test/);
  assert.equal(status, 1);
});
