/** Crashes of an import on a simulated disk. */
import assert from 'node:assert/strict';
import { all, makeStore, person, seeded, small } from './fixtures.ts';
import { crashStates } from './model.ts';
import { afterCrash, SimulatedDisk, unsynced } from './simulated-disk.ts';

const count = 12;

/** Imports, checkpoints, and crashes after each operation of the disk. */
async function crashImport(seed: number) {
  const next = seeded(seed);
  const disk = new SimulatedDisk(new Map(), seed % 2 === 0);
  const opened = makeStore({ ...small, files: disk });
  const { store, people } = opened;
  await store.start();
  for (const name of ['a', 'b']) await store.write((tx) => tx.of(people).insert(person(name)));
  const begun = disk.operations.length;
  await store.write((tx) => {
    for (let n = 0; n < count; n += 1) tx.of(people).insert(person(`i${n}`));
  });
  const ended = disk.operations.length;
  await store.checkpoint();
  await store.close();
  const seen = { states: 0, none: 0, whole: 0 };
  for (let length = begun; length <= disk.operations.length; length += 1) {
    const found = [...crashStates(disk.operations, length, next)];
    for (const state of [found[0], found[Math.floor(next() * found.length)]]) {
      const content = afterCrash(disk.operations.slice(0, length), state?.dropped ?? new Set(), state?.tear);
      content.delete('lock');
      const where = `seed ${seed}, crash after ${length} operations, dropped [${[...(state?.dropped ?? [])].join()}]`;
      const left = new SimulatedDisk(content);
      const { size, recovered } = await judge(left, where);
      assert.ok(length < ended || size === count + 2, `${where}: a loss`);
      seen.states += 1;
      seen[size === 2 ? 'none' : 'whole'] += 1;
      // A second crash, while the start writes what it has found.
      const given = left.operations.findIndex(({ kind }) => kind === 'syncDirectory') + 1;
      const again = given + Math.floor(next() * (recovered - given));
      const [second] = crashStates(left.operations, again, next);
      const twice = afterCrash(left.operations.slice(0, again), second?.dropped ?? new Set());
      twice.delete('lock');
      await judge(new SimulatedDisk(twice), `${where}, then after ${again}`);
    }
  }
  return seen;
}

/**
 * Opens what a crash left: all is there or nothing, and it stays so, with what is written then. Returns how many
 * records there are, and how many operations the start took.
 */
async function judge(disk: SimulatedDisk, where: string) {
  const opened = makeStore({ ...small, files: disk });
  await opened.store.start().catch((error: unknown) => assert.fail(`${where}: ${String(error)}`));
  const { size } = opened.people;
  const recovered = disk.operations.length;
  assert.ok(size === 2 || size === count + 2, `${where}: ${size} records`);
  await opened.store.write((tx) => tx.of(opened.people).insert(person('later')));
  // A crash that leaves only what was synced.
  const left = afterCrash(disk.operations, new Set(unsynced(disk.operations)));
  left.delete('lock');
  const reopened = makeStore({ ...small, files: new SimulatedDisk(left) });
  await reopened.store.start();
  assert.equal(all(reopened.people).length, size + 1, where);
  return { size, recovered };
}

/** Tries imports of so many seeds, and sums up what was found. */
export async function crashImports(seeds: number) {
  const sum = { states: 0, none: 0, whole: 0 };
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { states, none, whole } = await crashImport(seed);
    sum.states += states;
    sum.none += none;
    sum.whole += whole;
  }
  return sum;
}
