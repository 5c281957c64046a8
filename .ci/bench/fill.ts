import { systemClock, systemRandom } from '../../src/base/system.ts';
import { NodeFiles } from '../../src/store/disk/node-files.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { StoredRecord } from '../../src/store/store.ts';

interface Item extends StoredRecord {
  readonly name: string;
  readonly price: number;
  readonly ownerId: number;
}

export async function fillItems(directory: string, count: number): Promise<void> {
  const store = openStore({ files: new NodeFiles(directory), clock: systemClock, random: systemRandom });
  const items = store.collection<Item>({ name: 'items', parse: () => 'is none' });
  await store.start();
  let state = 1;
  const below = (bound: number): number => {
    state = (state * 48271) % 2147483647;
    return state % bound;
  };
  for (let made = 0; made < count; made += 10_000) {
    await store.write((transaction) => {
      for (let item = made; item < Math.min(count, made + 10_000); item += 1) {
        transaction.of(items).insert({ name: `Item ${below(1e9)}`, price: (item + below(50_000)) / 100, ownerId: 1 });
      }
    });
  }
  await store.close();
}
