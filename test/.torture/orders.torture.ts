/** Thousands of random histories of lists, pages and kept orders beside writes, against a simple model. */
import { test } from 'node:test';
import { runHistory } from '../.support/lists.ts';
import { generator } from '../.support/random.ts';

const count = Number(process.env['CAIRN_TEST_HISTORIES'] ?? 3000);

test(`${count} histories of lists in kept orders agree with the model`, async () => {
  const random = generator('orders');
  for (let history = 0; history < count; history += 1) await runHistory(random);
});
