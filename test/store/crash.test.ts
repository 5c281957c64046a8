import assert from 'node:assert/strict';
import { it } from 'node:test';
import { seeded } from '../.support/store/fixtures.ts';
import { exploreCrashes, runWorkload } from '../.support/store/model.ts';

// A sample; the torture suite explores as many states as it is told to, of many workloads.
it('gives back every acknowledged commit, and whole ones only, after any crash', async (t) => {
  const seed = 1;
  const workload = await runWorkload(seed, 40);
  assert.ok(workload.history.acknowledged.length > 30);
  const explored = await exploreCrashes(workload, seeded(seed), 300);
  t.diagnostic(`${explored.states} states, ${explored.second} of them after a second crash`);
  assert.ok(explored.states >= 400, `only ${explored.states} states`);
});
