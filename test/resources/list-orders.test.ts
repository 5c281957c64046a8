import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import { createSlices } from '../../src/base/slices.ts';
import { systemClock } from '../../src/base/system.ts';
import { comparator, createRoom, sort, sortedOrders } from '../../src/resources/list-orders.ts';
import { id, number } from '../../src/schema/field.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Collection, Store, StoredRecord } from '../../src/store/store.ts';
import { generator } from '../random.ts';

interface Priced extends StoredRecord {
  readonly price: number;
}

const count = 9000;
let compared = 0;
const byPrice = comparator({ id: id(), price: number() }, [
  { name: 'price', descending: false },
  { name: 'id', descending: false },
]);
const compare = (a: object, b: object): number => {
  compared += 1;
  return byPrice(a, b);
};

interface World {
  readonly store: Store;
  readonly priced: Collection<Priced>;
  readonly orders: ReturnType<typeof sortedOrders<Priced>>;
}

async function world(): Promise<World> {
  const store = openStore({ clock: systemClock, random: (size) => Buffer.alloc(size, 1) });
  const priced = store.collection<Priced>({ name: 'priced', parse: () => undefined });
  await store.start();
  await store.write((transaction) => {
    for (let index = 0; index < count; index += 1) transaction.insert(priced, { price: (index * 7919) % count });
  });
  return { store, priced, orders: sortedOrders(priced, createSlices(systemClock), createRoom(Infinity)) };
}

/** The order as it is kept, beside what it must be, and how many comparisons it took. */
async function ordered({ priced, orders }: World): Promise<{ kept: Priced[]; right: Priced[]; comparisons: number }> {
  const right = priced.view().blocks.flat().sort(byPrice);
  compared = 0;
  const blocks = (await orders('price', compare, false)) ?? [];
  assert.ok(blocks.every(({ length }) => length > 0));
  return { kept: blocks.flat(), right, comparisons: compared };
}

test('an order begins to be made when it is asked for a second time', async () => {
  const { orders } = await world();
  assert.equal(orders('price', compare, true), undefined);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(orders('price', compare, true), undefined);
  let found = orders('price', compare, true);
  for (; found === undefined; found = orders('price', compare, true))
    await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await found)?.flat().length, count);
});

test('an order is kept up with what is written, and not sorted anew', async () => {
  const all = await world();
  const first = await ordered(all);
  assert.deepEqual(first.kept, first.right);
  assert.ok(first.comparisons > count);
  await all.store.write((transaction) => {
    transaction.replace(all.priced, 5, { price: -1 });
    transaction.remove(all.priced, 6);
    transaction.insert(all.priced, { price: 9.5 });
  });
  const { kept, right, comparisons } = await ordered(all);
  assert.deepEqual(kept, right);
  assert.ok(comparisons > 0 && comparisons < 200, `${comparisons} comparisons`);
  assert.equal((await ordered(all)).comparisons, 0);
});

test('an order is right after any writes: few, many in one place, and the removal of nearly all', async () => {
  const all = await world();
  const random = generator('kept orders');
  await ordered(all);
  for (const [writes, lowest, removed] of [
    [1, 0, 0],
    [50, 0, 20],
    [3000, 4000, 0],
    [10, 0, 11_000],
    [5, 0, 5],
  ] as const) {
    await all.store.write((transaction) => {
      for (let write = 0; write < writes; write += 1) {
        const price = lowest + random.below(lowest === 0 ? count : 10);
        const id = 1 + random.below(count);
        if (write % 2 === 0) transaction.insert(all.priced, { price });
        else if (transaction.get(all.priced, id) !== undefined) transaction.replace(all.priced, id, { price });
      }
      for (let gone = 1; gone <= removed; gone += 1) transaction.remove(all.priced, gone);
    });
    const { kept, right } = await ordered(all);
    assert.deepEqual(kept, right, `${writes} writes`);
  }
  await all.store.write((transaction) => {
    for (let id = 1; id < 20_000; id += 1) transaction.remove(all.priced, id);
  });
  assert.deepEqual((await ordered(all)).kept, []);
});

test('records are sorted whatever order they come in, in blocks of bounded length', async () => {
  const random = generator('sorting');
  const ways: readonly ((index: number) => number)[] = [
    (index) => index,
    (index) => -index,
    () => 1,
    (index) => index % 7,
    (index) => (index % 1024 === (Math.floor(index / 1024) * 37) % 64 ? index : index + 1e6),
    () => random.below(1e6),
  ];
  for (const way of ways) {
    const records = Array.from({ length: 40_000 }, (_, index) => ({ id: index + 1, price: way(index) }));
    const blocks = Array.from({ length: 40 }, (_, block) => records.slice(block * 1000, block * 1000 + 1000));
    const sorted = await sort(blocks, byPrice, createSlices(systemClock));
    assert.ok(sorted.every(({ length }) => length > 0 && length <= 4096));
    assert.deepEqual(sorted.flat(), records.toSorted(byPrice), String(way));
  }
});

test('only the orders that were asked for last are kept', async () => {
  const { orders } = await world();
  for (let sort = 0; sort <= limits.sortedOrdersMax; sort += 1) await orders(String(sort), compare, false);
  assert.equal(orders('0', compare, true), undefined);
  assert.notEqual(orders(String(limits.sortedOrdersMax), compare, true), undefined);
});
