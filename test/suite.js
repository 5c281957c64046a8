/**
 * What `node --test` finds: runs the test files, which lie in folders that it does not enter, in a few processes that
 * read the files of several folders each, since a start takes longer than most files. `npm test` runs this, too, with
 * the folder of the built tests in `CAIRN_TESTS`. Words in `CAIRN_TEST_WORDS` choose the files whose paths contain one.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

/**
 * A process for each; a file goes to the first whose pattern its folder fits, so that none is left out. In the order of
 * their time: what waits for seconds to pass comes first, and the shortest last.
 */
const groups = [/^[.](cluster|http)/, /^[.]api/, /^[.](cli|project)/, /^[.]store/, /^/];

/** A process that takes longer hangs. */
const timeoutMs = Number(process.env.CAIRN_TEST_TIMEOUT_MS ?? 600_000);

const directory = process.env.CAIRN_TESTS ?? import.meta.dirname;
const words = (process.env.CAIRN_TEST_WORDS ?? '').split(' ');
const [group] = process.argv.slice(2);

if (group === 'list') process.stdout.write([...groups.keys()].flatMap(filesOf).map((path) => `${path}\n`).join(''));
else if (group !== undefined) await readFiles(filesOf(Number(group)));
else if (process.env.CAIRN_TESTS === undefined && !process.features.typescript) advise();
else await runGroups();

function filesOf(number) {
  const isOfGroup = (path) => groups.findIndex((pattern) => pattern.test(path)) === number;
  return readdirSync(directory, { recursive: true })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => /[.]test[.][jt]s$/.test(path) && words.some((word) => `test/${path}`.includes(word)))
    .filter(isOfGroup)
    .sort();
}

function advise() {
  test('node --test runs the tests, since this Node.js reads TypeScript', () => {
    assert.fail(`Node.js ${process.versions.node} does not read TypeScript: run npm ci, then npm test`);
  });
}

/** Reads the files one after the other, as a file may do much before its first test, and ends after the last test. */
async function readFiles(paths) {
  module.enableCompileCache?.(join(import.meta.dirname, '..', '.cache'));
  // A test that waits for nothing that holds the process would end it, and with it the tests of all other files.
  const hold = setInterval(() => {}, timeoutMs);
  try {
    for (const path of paths) await import(pathToFileURL(join(directory, path)).href);
  } catch (error) {
    clearInterval(hold);
    throw error;
  }
  test(`all tests of ${paths.length} files have ended`, () => clearInterval(hold));
}

/** Three at a time, for they often wait. What a process tells `node --test` is passed on whole, not mixed. */
async function runGroups() {
  const waiting = [...groups.keys()].filter((number) => filesOf(number).length > 0);
  assert.ok(waiting.length > 0, `the path of no test file contains ${words.join(' or ')}`);
  const takeTurns = async () => {
    for (let number = waiting.shift(); number !== undefined; number = waiting.shift()) await runGroup(number);
  };
  await Promise.all([takeTurns(), takeTurns(), takeTurns()]);
}

function runGroup(number) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...process.execArgv, import.meta.filename, String(number)], {
      stdio: ['ignore', 'pipe', 'inherit'], timeout: timeoutMs, killSignal: 'SIGKILL',
    });
    const told = [];
    child.stdout.on('data', (piece) => told.push(piece));
    child.on('close', (status, signal) => {
      if (status !== 0) process.exitCode = 1;
      if (signal !== null) console.error(`${signal} after ${timeoutMs} ms: the test after the last one hangs`);
      process.stdout.write(Buffer.concat(told), resolve);
    });
  });
}
