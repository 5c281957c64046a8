/**
 * Explores crash states in a process of its own, because the test runner's hooks would make every promise several times
 * as expensive. Takes a seed and a count as arguments, and prints what it explored.
 */
import { seedNumbers, small } from '../../test/support/store/fixtures.ts';
import { blogsWithModel, exploreCrashes, peopleAndNotes, runWorkload } from '../../test/support/store/crashes.ts';

const [seed = 1, count = 1000] = process.argv.slice(2).map(Number);
const perWorkload = Math.min(4000, Math.ceil(count / 10));
const explored = { workloads: 0, commits: 0, states: 0, second: 0 };
for (let n = 0; explored.states < count; n += 1) {
  // Every other one with a server's room.
  const options = n % 4 < 2 ? small : {};
  const workload = await runWorkload(seed + n, 60, n % 2 === 0 ? blogsWithModel() : peopleAndNotes, options);
  const next = seedNumbers(seed + n);
  const exploring = exploreCrashes(workload, next, perWorkload);
  const { states, second } = await exploring.catch((error: unknown) => {
    throw new Error(`seed ${seed + n}: ${error instanceof Error ? error.stack : String(error)}`);
  });
  explored.workloads += 1;
  explored.commits += workload.history.states.length - 1;
  explored.states += states;
  explored.second += second;
}
process.stdout.write(JSON.stringify(explored));
