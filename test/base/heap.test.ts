import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oldGenerationBytes } from '../../src/base/heap.ts';

test('the young generation does not count towards the old one, even on a small heap', () => {
  const mebibytes = (limit: number, version: string): number => oldGenerationBytes(limit * 2 ** 20, version) / 2 ** 20;
  assert.equal(mebibytes(96 + 48, '20.20.2'), 96);
  assert.equal(mebibytes(96 + 192, '24.21.0'), 96);
  assert.equal(mebibytes(4096 + 192, '26.10.0'), 4096);
  assert.equal(mebibytes(96 + 48, '24.21.0'), 72, 'a young generation that was made smaller is not subtracted');
});
