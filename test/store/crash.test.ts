import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runBeforeTests } from '../support/basics.ts';
import { seedNumbers, small } from '../support/store/fixtures.ts';
import { blogsWithModel, exploreCrashes, peopleAndNotes, runWorkload } from '../support/store/crashes.ts';

// A sample; the torture suite explores as many states as it is told to, of many workloads.
const workloads = {
  peopleAndNotes,
  blogs: blogsWithModel(),
  'peopleAndNotes, with the room that servers have': peopleAndNotes,
};
const crashes = await Promise.all(Object.entries(workloads).map(async ([name, make]) => {
  const explore = async () => {
    const seed = 1;
    const workload = await runWorkload(seed, 40, make, name.includes('servers') ? {} : small);
    assert.ok(workload.history.acknowledged.length > 30);
    return exploreCrashes(workload, seedNumbers(seed), 100);
  };
  return [name, await runBeforeTests(explore)] as const;
}));

for (const [name, found] of crashes) {
  it(`has every acknowledged commit, and only whole commits, after any crash: ${name}`, (t) => {
    const { states, second } = found();
    t.diagnostic(`${states} states, ${second} of them after a second crash`);
    assert.ok(states >= 150, `only ${states} states`);
  });
}
