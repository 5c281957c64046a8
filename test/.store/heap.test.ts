import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Blocks } from '../../src/store/memory/blocks.ts';
import { testProgram } from '../.support/cli/spawn.ts';
import { projectDirectory } from '../.support/source.ts';

test('128 MB of heap: records are refused before it runs out, and accepted again after removals', async () => {
  const words = ['--max-old-space-size=128', ...testProgram('.support/store/heap-filler')];
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: projectDirectory });
  const { refusal, filled, left, notices } = JSON.parse(stdout);
  assert.match(refusal, /^Cannot write: the records fill the memory of the server: remove records, or give Node\.js/);
  assert.ok(filled > 20_000, `${filled} records`);
  assert.equal(left, 1000);
  assert.deepEqual(notices, [
    'the records fill the memory of this process: only removals are accepted',
    'there is room in memory again: all writes are accepted',
  ]);
});

test('records that were removed take no memory, also where nothing views the others', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const blocks = new Blocks();
  collect();
  const { heapUsed } = process.memoryUsage();
  for (let id = 0; id < 40_000 * 1024; id += 1024) {
    blocks.set(id, { id, revision: 1 });
    blocks.set(id, undefined);
  }
  collect();
  // Each block has room for 1,024 records.
  const megabytes = (process.memoryUsage().heapUsed - heapUsed) / 2 ** 20;
  assert.ok(megabytes < 150, `${megabytes} MiB`);
  assert.equal(blocks.size, 0, 'and the blocks were there to be measured');
});
