import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { limits } from '../../src/base/limits.ts';
import { Slices } from '../../src/base/slices.ts';
import { SortedOrders, type OpenView, type Sorted } from '../../src/resources/list-orders.ts';
import { orderingOf } from '../../src/resources/list-values.ts';
import { id, number } from '../../src/schema/field.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Collection, Store, StoredRecord } from '../../src/store/store.ts';

interface Priced extends StoredRecord {
  readonly price: number;
}

const count = 3000;
const order = orderingOf({ id: id(), price: number() }, [
  { name: 'price', descending: false },
  { name: 'id', descending: false },
]);

interface World {
  readonly store: Store;
  readonly priced: Collection<Priced>;
  readonly orders: SortedOrders<Priced>;
}

async function world(): Promise<World> {
  const store = openStore({ clock: systemClock, random: (size) => Buffer.alloc(size, 1) });
  const priced = store.collection<Priced>({ name: 'priced', parse: () => undefined });
  await store.start();
  await store.write((transaction) => {
    for (let index = 0; index < count; index += 1) transaction.insert(priced, { price: (index * 7919) % count });
  });
  return { store, priced, orders: new SortedOrders(priced, new Slices(systemClock)) };
}

function open({ priced }: World): OpenView<Priced> {
  const view = priced.view();
  return { view, blocks: [...view.blocks()] };
}

async function caughtUp(all: World): Promise<Sorted<Priced>> {
  const view = open(all);
  const sorted = await all.orders.catchUp('price', await all.orders.get('price', order), view);
  view.view.close();
  return sorted;
}

const until = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve));
};

test('an order begins to be made when it is asked for a second time', async () => {
  const { orders } = await world();
  assert.equal(orders.find('price', order), undefined);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(orders.find('price', order), undefined);
  await until(() => orders.find('price', order) !== undefined);
  assert.equal(orders.find('price', order)?.base.flat().length, count);
});

test('an order is kept up with what is written, and not sorted anew', async () => {
  const all = await world();
  const before = await caughtUp(all);
  await all.store.write((transaction) => {
    transaction.replace(all.priced, 5, { price: -1 });
    transaction.remove(all.priced, 6);
    transaction.insert(all.priced, { price: 9.5 });
  });
  const after = await caughtUp(all);
  assert.equal(after.base, before.base);
  assert.deepEqual(after.recent.flat().map(({ price }) => price), [-1, 9.5]);
  assert.equal(await caughtUp(all).then(({ recent }) => recent), after.recent);
});

test('an order takes what was written into its base when it is much', async () => {
  const all = await world();
  const before = await caughtUp(all);
  await all.store.write((transaction) => {
    for (let step = 0; step < limits.recentRecordsMin; step += 1) transaction.insert(all.priced, { price: step });
  });
  assert.equal((await caughtUp(all)).base, before.base);
  await all.store.write((transaction) => transaction.remove(all.priced, 1));
  await caughtUp(all);
  await until(() => all.orders.find('price', order)?.base !== before.base);
  const after = await caughtUp(all);
  assert.equal(after.base.flat().length, count + limits.recentRecordsMin - 1);
  assert.deepEqual(after.recent, []);
  assert.deepEqual(after.base.flat(), after.base.flat().sort(order.compare));
});

test('many records that are gone are taken out of the base', async () => {
  const all = await world();
  await caughtUp(all);
  await all.store.write((transaction) => {
    for (let gone = 1; gone <= limits.recentRecordsMin + 1; gone += 1) transaction.remove(all.priced, gone);
  });
  await caughtUp(all);
  await until(() => (all.orders.find('price', order)?.base.flat().length ?? count) < count);
});

test('only the orders that were asked for last are kept', async () => {
  const { orders } = await world();
  for (let sort = 0; sort <= limits.sortedOrdersMax; sort += 1) await orders.get(String(sort), order);
  assert.equal(orders.find('0', order), undefined);
  assert.notEqual(orders.find(String(limits.sortedOrdersMax), order), undefined);
});
