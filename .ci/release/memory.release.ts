import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import { runJson } from '../../test/support/cli/spawn.ts';

test('with 96 MB of heap, writes are accepted up to the bound, and again after removals', async () => {
  const found = await runJson('.ci/programs/heap-filler', '--max-old-space-size=96');
  assert.deepEqual(found.imported, Array(5).fill('inserted'));
  assert.deepEqual(found.refusedAfterImport, []);
  const bytes = 'the records would take (\\d+) bytes of memory, and may take (\\d+)';
  const told = RegExp(`^Cannot write: ${bytes}: remove records, or raise --memory-max,`);
  const refusal = told.exec(found.refusal);
  assert.ok(refusal, found.refusal);
  const [needed, most] = refusal.slice(1).map(Number);
  assert.equal(most, Math.floor(0.6 * 96 * 2 ** 20) - limits.emptyServerBytes);
  assert.equal(most, found.memoryMaxBytes);
  assert.ok(needed && needed > found.memoryMaxBytes && found.memoryBytes <= found.memoryMaxBytes);
  assert.ok(found.memoryBytes > 0.99 * found.memoryMaxBytes, `${found.memoryBytes} of ${found.memoryMaxBytes}`);
  assert.ok(found.filled > 100_000, `${found.filled} records`);
  assert.deepEqual([found.stateWhenFull, found.afterRemoval, found.state], ['full', 'inserted', 'writable']);
  assert.ok(found.left.memoryBytes < 600 * found.left.records, `${found.left.memoryBytes} for ${found.left.records}`);
  assert.deepEqual(found.notices, [
    `the records fill the ${most} bytes of memory that they may take: only removals are accepted`,
    'there is room in memory again: all writes are accepted',
  ]);
});

test('the estimate of a record\'s memory is at most ten times too high', async () => {
  const found: { shape: string; how: string; counted: number; used: number; mayTakeLess: boolean }[] = await runJson(
    '.ci/programs/memory-shapes', '--expose-gc');
  assert.ok(found.length >= 40);
  // The effect of other things on the process's memory.
  const noise = 512 * 1024;
  const wrong = found.filter(({ counted, used, mayTakeLess }) =>
    used > counted + noise || (!mayTakeLess && used < counted / 10 - noise));
  assert.deepEqual(wrong, []);
});
