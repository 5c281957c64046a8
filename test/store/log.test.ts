import assert from 'node:assert/strict';
import { it } from 'node:test';
import { FileLog } from '../../src/store/disk/file-log.ts';
import type { Group } from '../../src/store/log.ts';
import { Tables } from '../../src/store/memory/table.ts';
import {
  all, machineWith, people, person, seededRandom, small, startStore, steppingClock,
} from '../support/store/fixtures.ts';
import { SimulatedDisk } from '../support/store/simulated-disk.ts';

const client = {
  between: <T>(work: () => Promise<T>) => work(), onFailure() {}, published() {}, unavailable() {},
};

/** A group of one commit, which adds a record. */
function group(first: number, sequence = first): Group {
  const record = { id: sequence, revision: sequence, ...person(`p${sequence}`) };
  const change = { collection: people, id: sequence, record, before: undefined, sequence };
  return { first, commits: [`[["people",${JSON.stringify(record)}]]`], changes: [change] };
}

it('refuses a group that does not follow, or whose commits are not its changes, and goes on', async () => {
  const disk = new SimulatedDisk();
  const tables = new Tables();
  const table = tables.add(people);
  const options = {
    files: disk, clock: steppingClock(), random: seededRandom(1), machine: machineWith(),
    onNotice() {}, ...small,
  };
  const log = new FileLog(options, tables);
  await log.open(client);
  assert.equal((await log.append(group(1))).outcome, 'won');
  const good = group(2);
  const wrong: readonly Group[] = [
    { ...good, commits: [] },
    { ...good, changes: [] },
    { ...good, commits: [...good.commits, ...good.commits] },
    { ...good, commits: [...good.commits, '[]'] },
    { ...good, changes: [...good.changes, ...group(4).changes] },
    { ...good, changes: [...good.changes, ...group(1).changes] },
    { ...good, changes: group(1).changes },
    group(1), group(3), group(2, 3),
    { first: 3, commits: [], changes: [] },
  ];
  for (const each of wrong) {
    const answer = await log.append(each);
    assert.equal(answer.outcome, 'refused', JSON.stringify(each));
  }
  assert.equal((await log.append({ first: 2, commits: [], changes: [] })).outcome, 'won');
  assert.equal((await log.append(good)).outcome, 'won');
  table.load({ id: 1, revision: 1, ...person('p1') });
  table.load({ id: 2, revision: 2, ...person('p2') });
  await log.close(Promise.resolve());
  const again = await startStore({ files: disk });
  assert.deepEqual(all(again.people).map(({ name }) => name), ['p1', 'p2']);
});
