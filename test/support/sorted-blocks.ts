import assert from 'node:assert/strict';
import { comparator, type Block } from '../../src/lists/order.ts';
import { SortedBlocks } from '../../src/lists/sorted-blocks.ts';
import { idField } from '../../src/schema/field.ts';
import type { Generator } from './random.ts';

export const compare = comparator({ id: idField, price: { kind: 'number' } }, [
  { name: 'price', descending: false },
  { name: 'id', descending: true },
]);

export interface Priced {
  readonly id: number;
  readonly revision: number;
  readonly price: number;
}

/** A history: records come, change and go, in bursts; every view must stay as it was. */
export function runSortedHistory(random: Generator): void {
  const moves = random.pick([10, 300, 5000]);
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
  assert.equal(kept.view().flat().length, records.size);
  for (const { view, wanted } of views) {
    assert.equal(JSON.stringify(view.flat()), wanted);
    assert.ok(view.every(({ length }) => length > 0 && length <= 1024));
  }
}
