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

test('the networks of one IPv6 site leave half of a pool to others', () => {
  const shares = new Shares(32, 8);
  const networkOf = (number: number): string => `2001:db8:1:${number.toString(16)}`;
  let count = 0;
  for (let network = 0; network < 100; network += 1) while (shares.take(networkOf(network), 1)) count += 1;
  assert.equal(count, 16);
  const others = ['2001:db8:2:0', '192.0.2.1', 'user 1', 'user 2'];
  for (const other of others) assert.ok(shares.take(other, 1), other);
  assert.ok(!shares.take(networkOf(200), 1));
  for (let network = 0; network < 2; network += 1) shares.give(networkOf(network), 8);
  for (const other of others) shares.give(other, 1);
  assert.equal(shares.sum, 0);
  assert.ok(shares.take(networkOf(0), 8));
});
