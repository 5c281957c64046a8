import assert from 'node:assert/strict';
import { test } from 'node:test';

import { oldGenerationBytes } from '../../src/base/heap.ts';
import { contradictionsIn, limits } from '../../src/base/limits.ts';

test('the bounds agree with each other, and one that does not is named', () => {
  assert.deepEqual(contradictionsIn(limits), []);
  const raised = { ...limits, keySecondsMax: limits.accessTokenLifetimeSecondsMax + 1, listsPerCallerMax: 20 };
  assert.deepEqual(contradictionsIn(raised), [
    'a caller has at most half of the lists',
  ]);
});

test('shares of memory are parts of the old generation, whatever V8 counts for the young one', () => {
  const mebibytes = (limit: number, version: string): number =>
    oldGenerationBytes(limit * 1024 * 1024, version) / (1024 * 1024);
  assert.equal(mebibytes(144, '20.20.2'), 96);
  assert.equal(mebibytes(4096 + 192, '24.21.0'), 4096);
  assert.equal(mebibytes(144, '24.21.0'), 72, 'a young generation that was made smaller is not subtracted');
});
