import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Shares } from '../../src/base/shares.ts';

test('a few callers with full shares leave something to the next ones', () => {
  const shares = new Shares(32, 8);
  const taken = Array.from({ length: 8 }, (_, caller) => {
    let count = 0;
    while (shares.take(String(caller), 1)) count += 1;
    return count;
  });
  assert.deepEqual(taken, [8, 8, 8, 4, 2, 1, 1, 0]);
  assert.equal(shares.sum, 32);
  shares.give('0', 1);
  assert.ok(shares.hasRoom('7', 1) && !shares.hasRoom('1', 1));
});
