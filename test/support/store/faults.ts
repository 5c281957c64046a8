import assert from 'node:assert/strict';
import { CairnError } from '../../../src/base/errors.ts';
import type { Store } from '../../../src/store/store.ts';
import { BlogModel, type Operation, makeBlog, modelled } from './blog.ts';
import { type Person, all, makeStore, person, seeded, small, startStore, turns } from './fixtures.ts';
import { type MakeSubject, crashStates } from './model.ts';
import { type Call, type Fault, SimulatedDisk, afterCrash, unsynced } from './simulated-disk.ts';

/** A write, and how many operations the disk had seen when it began and when it was answered. */
interface Write {
  readonly began: number;
  readonly answered: number;
  readonly sequence: number;
}

/**
 * Writes to a disk that is full now and then, and crashes after each of its operations: what was acknowledged is there,
 * and nothing that was refused. Returns how many writes were refused, and how many crashes were looked at.
 */
export async function crashWhileFull(
  seed: number,
  steps: number,
  make: MakeSubject,
): Promise<{ refused: number; states: number }> {
  const next = seeded(seed);
  const disk = new SimulatedDisk(new Map(), seed % 2 === 0);
  const subject = make({ ...small, files: disk });
  const { store } = subject;
  await store.start();
  const started = disk.operations.length;
  const known = new Map([[0, subject.state()]]);
  const done: Write[] = [];
  const refused: Write[] = [];
  for (let step = 0; step < steps; step += 1) {
    const full = next() < 0.35;
    disk.fault = ({ operation }) =>
      full && operation === 'write' && next() < 0.5 ? { code: 'ENOSPC', written: Math.floor(next() * 400) } : undefined;
    const began = disk.operations.length;
    const following = store.status().sequence + 1;
    if (next() < 0.25) await store.checkpoint();
    else {
      const [outcomes, sequence] = await subject.write(next).then(
        (last) => [done, last] as const,
        (error: unknown) => {
          assert.ok(error instanceof CairnError && error.code === 'storage_full', String(error));
          return [refused, following] as const;
        },
      );
      outcomes.push({ began, answered: disk.operations.length, sequence });
      known.set(store.status().sequence, subject.state());
    }
    await turns(10);
    await subject.pass(1500);
  }
  let states = 0;
  for (let length = started; length <= disk.operations.length; length += 1) {
    const found = [...crashStates(disk.operations, length, next)];
    const state = found[Math.floor(next() * found.length)];
    const content = afterCrash(disk.operations.slice(0, length), state?.dropped ?? new Set(), state?.tear);
    content.delete('lock');
    const where = `seed ${seed}, crash after ${length} operations, dropped [${[...(state?.dropped ?? [])].join()}]`;
    const again = make({ ...small, files: new SimulatedDisk(content) });
    await again.store.start().catch((error: unknown) => assert.fail(`${where}: ${String(error)}`));
    const { sequence } = again.store.status();
    for (const write of done) assert.ok(write.answered > length || write.sequence <= sequence, `${where}: a loss`);
    // What was under way may be there, whatever became of it.
    const unanswered = refused.some(
      (write) => write.began < length && length < write.answered && write.sequence === sequence,
    );
    if (!unanswered) assert.equal(again.state(), known.get(sequence), where);
    states += 1;
  }
  return { refused: refused.length, states };
}

/** How many writes of one run had which outcome. */
interface Outcomes {
  written: number;
  refused: number;
  unknown: number;
}

/** Work on a store whose calls fail. */
export interface Trial {
  /** What it does, to follow "while". */
  readonly name: string;
  /** Makes the store on a disk. */
  make(disk: SimulatedDisk): {
    readonly store: Store;
    /** The first write, on a good disk. */
    prepare(): Promise<unknown>;
    /** Writes, checkpoints and stops; every write has an outcome. */
    run(outcomes: Outcomes): Promise<void>;
    /** Asserts that another store, which was started on what the run left, has what was promised. */
    judge(disk: SimulatedDisk, where: string): Promise<void>;
  };
}

/** Counts an outcome. Returns the code of a refusal. */
function count(outcomes: Outcomes, code: string): void {
  if (code === 'outcome_unknown') outcomes.unknown += 1;
  else if (/^(storage_full|store_failed)$/.test(code)) outcomes.refused += 1;
  else outcomes.written += 1;
}

export const writingPeople: Trial = {
  name: 'people are written',
  make(disk) {
    const opened = makeStore({ ...small, files: disk });
    const { store, people } = opened;
    const [written, refused] = [['first'], [] as string[]];
    const insert = (name: string): Promise<Person> => store.write((tx) => tx.of(people).insert(person(name)));
    let last = 0;
    const write = async (outcomes: Outcomes): Promise<void> => {
      const name = `w${(last += 1)}`;
      try {
        await insert(name);
        assert.equal(people.find('email', `${name}@example.org`)?.name, name);
        written.push(name);
        count(outcomes, 'done');
      } catch (error) {
        assert.ok(error instanceof CairnError, String(error));
        assert.match(error.code, /^(storage_full|outcome_unknown|store_failed)$/);
        if (error.code !== 'outcome_unknown') refused.push(name);
        count(outcomes, error.code);
      }
    };
    return {
      store,
      prepare: () => insert('first'),
      async run(outcomes) {
        await write(outcomes);
        await Promise.all([write(outcomes), write(outcomes), write(outcomes)]);
        await store.checkpoint().catch(() => undefined);
        await write(outcomes);
        await write(outcomes);
        // Reads go on, whatever happened, and show what was acknowledged.
        assert.deepEqual(all(people).map(({ name }) => name).sort(), [...written].sort());
        await store.close();
      },
      async judge(disk, where) {
        const after = await startStore({ ...small, files: disk });
        const names = new Set(all(after.people).map(({ name }) => name));
        for (const name of written) assert.ok(names.has(name), `${where}: ${name} was acknowledged and is lost`);
        for (const name of refused) assert.ok(!names.has(name), `${where}: ${name} was refused and is there`);
        await after.store.close();
      },
    };
  },
};

/** What refers to a post goes with it, or is cleared: all of it or none. */
export const deletingBlog: Trial = {
  name: 'records are removed that others refer to',
  make(disk) {
    const blog = makeBlog({ ...small, files: disk });
    const { store } = blog;
    const model = new BlogModel();
    const unknown: Operation[] = [];
    const comment = (postId: number, more = {}) => ({ postId, tagIds: [1], ...more });
    const create = (name: 'posts' | 'comments' | 'tags', ...records: object[]): Operation =>
      ({ kind: 'create', name, records: records.map((record) => Object(record)) });
    const remove = (name: 'posts' | 'tags', id: number): Operation => ({ kind: 'remove', name, id });
    const first = [
      create('tags', { name: 'a' }),
      create('posts', { title: '1' }, { title: '2', relatedId: 1 }, { title: '3', relatedId: 2 }),
      create('comments', comment(1), comment(1, { parentId: 1 }), comment(2), comment(3)),
    ];
    const runModelled = modelled(blog, model);
    const run = async (outcomes: Outcomes, operation: Operation): Promise<void> => {
      const code = await runModelled(operation);
      count(outcomes, code);
      if (code === 'outcome_unknown') unknown.push(operation);
    };
    return {
      store,
      async prepare() {
        for (const operation of first) assert.equal(await blog.run(operation), 'done');
      },
      async run(outcomes) {
        for (const operation of first) model.run(operation);
        await run(outcomes, remove('posts', 1));
        await Promise.all([
          run(outcomes, create('comments', comment(2), comment(3))),
          run(outcomes, remove('posts', 2)),
          run(outcomes, create('comments', comment(2))),
        ]);
        await store.checkpoint().catch(() => undefined);
        await run(outcomes, remove('tags', 1));
        await run(outcomes, create('posts', { title: '4', relatedId: 3 }));
        assert.equal(blog.content(), model.content());
        await store.close();
      },
      async judge(disk, where) {
        const after = makeBlog({ ...small, files: disk });
        await after.store.start();
        const allowed = [model.content()];
        // What shared a group was written with it, or not at all.
        for (const operation of unknown) model.run(operation);
        allowed.push(model.content());
        assert.ok(allowed.includes(after.content()), `${where}: ${after.content()} is none of ${allowed.join(' ')}`);
        await after.store.close();
      },
    };
  },
};

/**
 * Starts on the files of a stopped store, runs and stops with a fault; then starts without it and compares. `undefined`
 * where the run ended before `fault` was met.
 */
async function survive(
  trial: Trial,
  stopped: ReadonlyMap<string, Buffer>,
  fault: (call: Call, n: number) => Fault | undefined,
  where: string,
): Promise<Outcomes | undefined> {
  const disk = new SimulatedDisk(stopped, false);
  let calls = 0;
  let met = false;
  disk.fault = (call) => {
    const found = fault(call, (calls += 1));
    met ||= found !== undefined;
    return found;
  };
  const outcomes: Outcomes = { written: 1, refused: 0, unknown: 0 };
  const tried = trial.make(disk);
  const started = await tried.store.start().then(
    () => true,
    () => false,
  );
  try {
    if (started) await tried.run(outcomes);
  } finally {
    disk.fault = () => undefined;
  }
  await disk.remove('lock').catch(() => undefined);
  if (started) await tried.judge(disk, where);
  else await trial.make(disk).store.start();
  return met ? outcomes : undefined;
}

/** What a store with its first records leaves when it is stopped. */
async function stoppedStore(trial: Trial): Promise<ReadonlyMap<string, Buffer>> {
  const disk = new SimulatedDisk(new Map(), false);
  const { store, prepare } = trial.make(disk);
  await store.start();
  await prepare();
  await store.close();
  return disk.content();
}

/** One fault for the n-th call of a run. */
export type FaultOf = (call: Call, at: number, n: number) => Fault | undefined;

export const faults: { readonly [name: string]: (code: string) => FaultOf } = {
  'fails once': (code) => (_, at, n) => (at === n ? { code } : undefined),
  // What undoes a failed call, such as the removal of a journal that was not made, fails, too.
  'fails once, and at the call after the next': (code) => (_, at, n) =>
    at === n || at === n + 2 ? { code } : undefined,
  'fails for good': (code) => (_, at, n) => (at >= n ? { code } : undefined),
  'takes a part and then fails': (code) => (call, at, n) =>
    call.operation === 'write' && at >= n ? { code, written: 9 } : undefined,
};

export interface Faults {
  readonly runs: number;
  readonly written: number;
  readonly refused: number;
  readonly unknown: number;
}

/** Runs the same work with the fault at its first call, its second, and so on to its last. */
export async function failEveryCall(trial: Trial, faultOf: FaultOf, where: string): Promise<Faults> {
  const stopped = await stoppedStore(trial);
  const seen = { runs: 0, written: 0, refused: 0, unknown: 0 };
  for (let n = 1; ; n += 1) {
    const outcomes = await survive(trial, stopped, (call, at) => faultOf(call, at, n), `${where}, call ${n}`);
    if (outcomes === undefined) return seen;
    seen.runs += 1;
    seen.written += outcomes.written;
    seen.refused += outcomes.refused;
    seen.unknown += outcomes.unknown;
  }
}

/** Crashes of an import on a simulated disk. */

const importedCount = 12;

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
    for (let n = 0; n < importedCount; n += 1) tx.of(people).insert(person(`i${n}`));
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
      assert.ok(length < ended || size === importedCount + 2, `${where}: a loss`);
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
  assert.ok(size === 2 || size === importedCount + 2, `${where}: ${size} records`);
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
