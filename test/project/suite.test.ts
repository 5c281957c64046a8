import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { loaderFlags, temporaryDirectory } from '../support/cli/spawn.ts';
import { listFiles, projectDirectory } from '../support/source.ts';

const tests = listFiles('test', '.ts');
const programs = listFiles('.ci', '.ts');

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
  const others = ['src', '.ci'].flatMap((folder) => listFiles(folder, 's'));
  const looksLikeTest = /(^|\/)(test\/|test[-.]|[^/]+[-._]test\.)/;
  assert.deepEqual(others.filter((path) => !path.includes('node_modules') && looksLikeTest.test(path)), []);
});

test('a test that hangs is named, and ends in a failure, as in npm test', (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'hangs.test.mjs');
  writeFileSync(file, `
    import { test } from 'node:test';
    test('is well', () => {});
    test('waits for ever', () => new Promise(() => setInterval(() => {}, 1000)));
  `);
  const limit = pathToFileURL(join(projectDirectory, '.ci', 'limit.js')).href;
  const report = join(projectDirectory, '.ci', 'report.js');
  const words = ['--import', limit, '--test', `--test-reporter=${report}`, file];
  const env = { PATH: process.env['PATH'], CAIRN_TEST_LIMIT_MS: '1000', CAIRN_FAILED: join(directory, 'failed') };
  const { status, stdout } = spawnSync(process.execPath, words, { cwd: directory, encoding: 'utf8', env });
  assert.equal(status, 1, stdout);
  assert.match(stdout, /^ok 1 - is well$/m);
  assert.match(stdout, /^# The test "waits for ever" has not ended after 1000 ms$/m);
  assert.match(stdout, /\n# Failed: .*hangs\.test\.mjs \(hangs\.test\.mjs\)\n$/);
  assert.equal(readFileSync(env.CAIRN_FAILED, 'utf8'), `${file}\n`);
});

test('what npm test prints into a pipe ends in the names of the tests that failed, each with its file', (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'fails.test.mjs'), `
    import { test } from 'node:test';
    test('outer', async (t) => { await t.test('inner', () => { throw new Error('no'); }); });
    test('other', () => {});
  `);
  const file = join(directory, 'folder.test.mjs');
  writeFileSync(file, `import './fails.test.mjs';`);
  const words = ['--test', `--test-reporter=${join(projectDirectory, '.ci', 'report.js')}`, file];
  const env = { PATH: process.env['PATH'] };
  const { stdout } = spawnSync(process.execPath, words, { cwd: directory, encoding: 'utf8', env });
  assert.match(stdout, /duration_ms [\d.]+\n# Failed: inner \(fails\.test\.mjs\)\n$/);
});

if (loaderFlags.length > 0) test('where Node.js reads no TypeScript, it says at once how the tests are run', () => {
  const words = ['--test', join(projectDirectory, 'test', 'typescript.test.js')];
  const { stdout, status } = spawnSync(process.execPath, words, {
    encoding: 'utf8', env: { PATH: process.env['PATH'] },
  });
  assert.match(stdout, /run npm ci, then npm test/);
  assert.equal(status, 1);
});
