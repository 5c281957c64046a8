// Tests of checkout.example.ts, in memory and without a port.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openShop, orders, products } from './checkout.example.ts';

/** Opens a shop with three lamps, and returns a function that orders as a member. */
async function shopWithLamps() {
  const app = await openShop({ scryptCost: 1 }); // cheap hashes, only for tests
  const lamp = await app.collection(products).create({ name: 'Lamp', price: 24.5, stock: 3 });
  const account = { email: 'mia@example.org', password: 'correct horse battery' };
  const mia = await app.users.create({ name: 'Mia', ...account });

  const send = (target: string, body: object, headers: Record<string, string> = {}) =>
    app.inject({
      method: 'POST',
      target,
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const { access_token: token } = JSON.parse((await send('/tokens', account)).body);
  const order = (quantity: number, headers: Record<string, string> = {}) =>
    send(
      '/checkout',
      { productId: lamp.id, quantity },
      { Authorization: `Bearer ${token}`, ...headers },
    );
  return { app, lamp, mia, order, stock: () => app.collection(products).get(lamp.id)?.stock };
}

test('an order takes from the stock', async () => {
  const { app, mia, order, stock } = await shopWithLamps();
  const { status, body } = await order(2);
  assert.equal(status, 200);
  assert.deepEqual(JSON.parse(body), { orderId: 1, total: 49 });
  assert.equal(stock(), 1);
  assert.equal(app.collection(orders).get(1)?.buyerId, mia.id);
  await app.close();
});

test('of two orders at once for the last lamps, one is refused', async () => {
  const { app, order, stock } = await shopWithLamps();
  const answers = await Promise.all([order(2), order(2)]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 422]);
  assert.equal(stock(), 1);
  assert.equal(app.collection(orders).count(), 1);
  await app.close();
});

test('an order that is sent twice with one key is made once', async () => {
  const { app, order, stock } = await shopWithLamps();
  const key = { 'Idempotency-Key': 'a key of this order' };
  const [first, second] = [await order(1, key), await order(1, key)];
  assert.equal(second.body, first.body);
  assert.equal(stock(), 2);
  await app.close();
});
