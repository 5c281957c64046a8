import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findPosition, SortedBlocks, stepsThrough, toStretch } from '../../src/lists/sorted-blocks.ts';
import { createGenerator } from '../support/basics.ts';
import { compare, runSortedHistory, type Priced } from '../support/lists.ts';

test('sorted blocks agree with a sorted array in random histories, and views stay as they are', () => {
  const random = createGenerator('sorted blocks');
  for (let count = 0; count < 15; count += 1) runSortedHistory(random);
});

test('blocks that get small are joined, wherever records go', () => {
  const records = Array.from({ length: 20_000 }, (_, index) => ({ id: index + 1, revision: 1, price: index }));
  for (const order of [records, records.toReversed(), records.toSorted((a, b) => (a.id % 7) - (b.id % 7))]) {
    const kept = new SortedBlocks(compare);
    for (const record of records) kept.move(undefined, record);
    assert.ok(kept.view().length <= 40);
    const kept100 = order.filter(({ id }) => id % 200 === 0);
    for (const record of order) if (record.id % 200 !== 0) kept.move(record, undefined);
    assert.deepEqual(kept.view().flat(), kept100.toSorted(compare));
    assert.ok(kept.view().length <= 2);
    for (const record of kept100) kept.move(record, undefined);
    assert.deepEqual(kept.view(), []);
  }
});

test('a stretch is read in steps, forwards and backwards', () => {
  const random = createGenerator('stretches');
  for (let count = 0; count < 200; count += 1) {
    const blocks = Array.from({ length: random.below(5) }, () => 1 + random.below(20)).reduce<Priced[][]>(
      (all, length) => {
        const from = all.flat().length;
        return [...all, Array.from({ length }, (_, nth) => ({ id: 0, revision: 1, price: from + nth }))];
      },
      [],
    );
    const total = blocks.flat().length;
    const [low, high] = [random.below(total + 2), random.below(total + 2)];
    const from = (bound: number) => findPosition(blocks, (record) => Number(Object(record).price) >= bound);
    const wanted = blocks.flat().slice(low, Math.max(low, high));
    const length = 1 + random.below(25);
    const stretch = { blocks, start: from(low), end: from(high) };
    const forwards = [...stepsThrough(stretch, 'forwards', length)];
    assert.deepEqual(forwards.flat(), wanted);
    assert.deepEqual([...stepsThrough(stretch, 'backwards', length)].flat(), wanted.toReversed());
    assert.ok(forwards.every((step) => step.length > 0 && step.length <= length));
    assert.deepEqual([...stepsThrough(toStretch(blocks), 'forwards', length)].flat(), blocks.flat());
  }
});
