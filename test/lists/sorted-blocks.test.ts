import assert from 'node:assert/strict';
import { test } from 'node:test';
import { comparator, type Block } from '../../src/lists/order.ts';
import { placeOf, SortedBlocks, stepsThrough, wholeOf } from '../../src/lists/sorted-blocks.ts';
import { idField } from '../../src/schema/field.ts';
import { generator, type Generator } from '../.support/random.ts';

const compare = comparator({ id: idField, price: { kind: 'number' } }, [
  { name: 'price', descending: false },
  { name: 'id', descending: true },
]);

interface Priced {
  readonly id: number;
  readonly revision: number;
  readonly price: number;
}

/** A history: records come, change and go, in bursts; every view must stay as it was. */
function runHistory(random: Generator, moves: number): void {
  const kept = new SortedBlocks(compare);
  const records = new Map<number, Priced>();
  const views: { readonly view: readonly Block[]; readonly wanted: string }[] = [];
  const prices = random.pick([3, 1000, 1_000_000]);
  const begun = Array.from({ length: random.pick([0, 1, 2500]) }, (_, index) => ({
    id: index + 1,
    revision: 1,
    price: random.below(prices),
  })).sort(compare);
  for (let at = 0; at < begun.length; at += 1024) kept.append(begun.slice(at, at + 1024));
  for (const record of begun) records.set(record.id, record);
  let growth = 5;
  for (let count = 0; count < moves; count += 1) {
    if (random.below(1000) === 0) growth = random.below(10);
    const id = random.below(10) < growth ? records.size + count + 1 : random.below(records.size + count + 1);
    const before = records.get(id);
    const isGone = before !== undefined && random.below(10) >= growth;
    const price = random.below(3) === 0 ? (before?.price ?? 1) : random.below(prices);
    const after = isGone ? undefined : { id, revision: count, price };
    kept.move(before, after);
    if (after === undefined) records.delete(id);
    else records.set(id, after);
    if (random.below(moves) < 4 || count === moves - 1) {
      const wanted = JSON.stringify([...records.values()].sort(compare));
      views.push({ view: kept.view(), wanted });
    }
  }
  assert.equal(kept.size, records.size);
  for (const { view, wanted } of views) {
    assert.equal(JSON.stringify(view.flat()), wanted);
    assert.ok(view.every(({ length }) => length > 0 && length <= 1024));
  }
}

test('sorted blocks agree with a sorted array in random histories, and views stay as they are', () => {
  const random = generator('sorted blocks');
  const histories = Number(process.env['CAIRN_TEST_HISTORIES'] ?? 100);
  for (let count = 0; count < histories; count += 1) runHistory(random, random.pick([10, 300, 5000]));
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
    assert.deepEqual([kept.size, kept.view()], [0, []]);
  }
});

test('a stretch is read in steps, forwards and backwards', () => {
  const random = generator('stretches');
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
    const from = (bound: number) => placeOf(blocks, (record) => Number(Object(record).price) >= bound);
    const wanted = blocks.flat().slice(low, Math.max(low, high));
    const length = 1 + random.below(25);
    const stretch = { blocks, start: from(low), end: from(high) };
    const forwards = [...stepsThrough(stretch, true, length)];
    assert.deepEqual(forwards.flat(), wanted);
    assert.deepEqual([...stepsThrough(stretch, false, length)].flat(), wanted.toReversed());
    assert.ok(forwards.every((step) => step.length > 0 && step.length <= length));
    assert.deepEqual([...stepsThrough(wholeOf(blocks), true, length)].flat(), blocks.flat());
  }
});
