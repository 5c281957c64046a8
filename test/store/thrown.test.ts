import assert from 'node:assert/strict';
import { it } from 'node:test';
import { throwAtRandom } from '../support/store/histories.ts';

it('stores a transaction completely or not at all, wherever a hook throws', async (t) => {
  const counts = await throwAtRandom(1, 600);
  t.diagnostic(JSON.stringify(counts));
  const { done, refused, failed, caught, kills } = counts;
  assert.ok(Math.min(done, refused, failed, caught) > 50 && kills > 5, JSON.stringify(counts));
});
