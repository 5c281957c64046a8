/** Thousands of random histories of lists, pages and kept orders during writes, against a simple model. */
import { test } from 'node:test';
import { runHistory, runSortedHistory } from '../../test/support/lists.ts';
import { createGenerator } from '../../test/support/basics.ts';

const count = Number(process.env['CAIRN_TEST_HISTORIES'] ?? 3000);

test(`${count} histories of lists in kept orders agree with the model`, async () => {
  const random = createGenerator('orders');
  for (let history = 0; history < count; history += 1) await runHistory(random);
});

test(`${count} histories of sorted blocks agree with a sorted array`, () => {
  const random = createGenerator('sorted blocks');
  for (let history = 0; history < count; history += 1) runSortedHistory(random);
});
