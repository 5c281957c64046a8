import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstIndex } from '../../src/base/search.ts';

test('a binary search finds the first match, or the end without one', () => {
  // Three events of each commit.
  const sequences = Array.from({ length: 9600 }, (_, index) => Math.floor(index / 3) + 1);
  for (const sequence of [0, 1, 2, 1600, 3199, 3200, 4000]) {
    let steps = 0;
    const found = firstIndex(sequences, (each) => {
      steps += 1;
      return each > sequence;
    });
    assert.equal(found, Math.min(3 * sequence, sequences.length));
    assert.ok(steps <= 14, `${steps} steps`);
  }
});
