import assert from 'node:assert/strict';
import { it } from 'node:test';
import { explored } from '../.support/explored.ts';
import { seeded } from '../.support/store/fixtures.ts';
import { exploreCrashes, runWorkload } from '../.support/store/model.ts';

// A sample; the torture suite explores as many states as it is told to, of many workloads.
const crashes = await explored(async () => {
  const seed = 1;
  const workload = await runWorkload(seed, 40);
  assert.ok(workload.history.acknowledged.length > 30);
  return exploreCrashes(workload, seeded(seed), 300);
});

it('gives back every acknowledged commit, and whole ones only, after any crash', (t) => {
  const { states, second } = crashes();
  t.diagnostic(`${states} states, ${second} of them after a second crash`);
  assert.ok(states >= 400, `only ${states} states`);
});
