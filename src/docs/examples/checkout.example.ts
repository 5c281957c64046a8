// A program with its own route, whose transaction changes two collections together or not at all.
import { CairnError, createApp, defineCollection, defineRoute } from 'cairn-api';
import type { App, AppOptions } from 'cairn-api';

export const products = defineCollection({
  name: 'products',
  fields: {
    name: { kind: 'text', min: 1 },
    price: { kind: 'number', min: 0 },
    stock: { kind: 'integer', min: 0 },
  },
  access: {
    list: 'public',
    read: 'public',
    create: 'admin',
    replace: 'admin',
    patch: 'admin',
    remove: 'admin',
  },
});

export const orders = defineCollection({
  name: 'orders',
  fields: {
    buyerId: { kind: 'reference', to: 'users', onDelete: 'refuse' },
    productId: { kind: 'reference', to: 'products' },
    quantity: { kind: 'integer', min: 1 },
    total: { kind: 'number', min: 0 },
  },
  access: {
    list: 'buyerId',
    read: 'buyerId',
    create: 'admin',
    replace: 'admin',
    patch: 'admin',
    remove: 'admin',
  },
  timestamps: true,
});

/** `POST /checkout`. With an `Idempotency-Key`, a repeated request orders once. */
const checkout = defineRoute({
  method: 'POST',
  path: '/checkout',
  access: 'user',
  summary: 'Order a product',
  body: { productId: { kind: 'integer' }, quantity: { kind: 'integer', min: 1, max: 100 } },
  reply: { orderId: { kind: 'integer' }, total: { kind: 'number' } },
  write(tx, { body: { productId, quantity }, caller }) {
    const product = tx.collection(products).get(productId);
    if (product === undefined || caller.user === undefined)
      throw new CairnError('not_found', 'Cannot order: there is no such product');
    if (product.stock < quantity)
      throw new CairnError('write_refused', `Cannot order: only ${product.stock} are left`);
    tx.collection(products).change(productId, { stock: product.stock - quantity });
    const total = product.price * quantity;
    const order = tx
      .collection(orders)
      .create({ buyerId: caller.user, productId, quantity, total });
    return { orderId: order.id, total };
  },
});

export function openShop(options: AppOptions = {}): Promise<App> {
  return createApp({
    items: false,
    collections: [products, orders],
    routes: [checkout],
    ...options,
  });
}

if (process.argv[1] === import.meta.filename) {
  const app = await openShop({ directory: 'shop-data', log: console });
  console.log(`http://localhost:${await app.listen({ port: 3000 })}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => app.close());
}
