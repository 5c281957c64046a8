import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorLog } from '../../src/log/log.ts';
import { writeError } from '../../src/log/standard-streams.ts';
import { startCairn, temporaryDirectory } from '../support/cli/spawn.ts';

test('a server whose reader of both outputs has gone goes on, and stops cleanly', async (t) => {
  const server = startCairn(t, ['serve', '--port', '0', '--data', temporaryDirectory(t)]);
  const [, url] = await server.find(/(http:[^"\s]+)/);
  server.child.stdout?.destroy();
  server.child.stderr?.destroy();
  for (let index = 0; index < 5; index += 1) {
    // The line of each request is written, and the failure told, before the next one.
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0);
});

test('messages that standard error does not take are counted, and told when it takes some again', (t) => {
  const written: string[] = [];
  let isFull = true;
  t.mock.method(process.stderr, 'write', (text: string, done: (error?: Error) => void) => {
    if (!isFull) written.push(text);
    done(isFull ? new Error('ENOSPC') : undefined);
    return true;
  });
  writeError('one\n');
  errorLog.message('error', 'two');
  errorLog.message('warn', 'not written at any time');
  isFull = false;
  writeError('three\n');
  writeError('four\n');
  assert.deepEqual(written, ['three\n', '2 earlier messages could not be written to standard error\n', 'four\n']);
});

test('messages do not pile up where nobody reads standard error', (t) => {
  const written: string[] = [];
  let [waiting, read] = [0, (): void => undefined];
  Object.defineProperty(process.stderr, 'writableLength', { configurable: true, get: () => waiting });
  t.after(() => Reflect.deleteProperty(process.stderr, 'writableLength'));
  t.mock.method(process.stderr, 'write', (text: string, done: () => void) => {
    written.push(text);
    waiting += text.length;
    read = done;
    return false;
  });
  for (let count = 0; count < 20; count += 1) writeError(`${'x'.repeat(99_999)}\n`);
  assert.equal(written.length, 11);
  waiting = 0;
  read();
  assert.equal(written.at(-1), '9 earlier messages could not be written to standard error\n');
});
