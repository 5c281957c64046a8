import assert from 'node:assert/strict';
import { extname } from 'node:path';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { limits } from '../../src/base/limits.ts';
import { Blocks } from '../../src/store/memory/blocks.ts';
import { runJson } from '../support/cli/spawn.ts';

const isStripped = extname(import.meta.filename) === '.ts' && 'what strips the types takes memory of the process, too';
test('the heap of a server without records stays within its allowance', { skip: isStripped }, async () => {
  const used = await runJson('.ci/programs/empty-server', '--expose-gc');
  assert.ok(used <= limits.emptyServerBytes && used > limits.emptyServerBytes / 3, `${used} bytes`);
});

test('removed records take no memory', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const blocks = new Blocks({ bytes: 0 });
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
