/** Hooks that throw at any change of a transaction. `CAIRN_TEST_SEED` replays. */
import { test } from 'node:test';
import { throwAtRandom } from '../../test/support/store/histories.ts';

const transactions = Number(process.env['CAIRN_THROWN_TRANSACTIONS'] ?? 20_000);
const seed = Number(process.env['CAIRN_TEST_SEED'] ?? 1);
/** A new store now and then, because the model is slow with many records. */
const perStore = 1000;

test(`${transactions} transactions in which hooks throw are stored as a whole or not at all`, async (t) => {
  for (let done = 0; done < transactions; done += perStore) {
    const counts = await throwAtRandom(seed + done, Math.min(perStore, transactions - done));
    t.diagnostic(JSON.stringify(counts));
  }
});
