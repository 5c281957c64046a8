import assert from 'node:assert/strict';
import { CairnError } from '../../../src/base/errors.ts';
import type { Store } from '../../../src/store/store.ts';
import { BlogModel, makeBlog, modelled, type Operation } from './blog.ts';
import { all, makeStore, type Person, person, small, startStore } from './fixtures.ts';
import { type Call, type Fault, SimulatedDisk } from './simulated-disk.ts';

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
