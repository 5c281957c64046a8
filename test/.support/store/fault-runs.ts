import assert from 'node:assert/strict';
import { CairnError } from '../../../src/base/errors.ts';
import { all, makeStore, type Opened, person, small, startStore } from './fixtures.ts';
import { type Call, type Fault, SimulatedDisk } from './simulated-disk.ts';

/** What became of the writes of one run, by the name that each one wrote. */
interface Outcomes {
  readonly written: string[];
  readonly refused: string[];
  readonly unknown: string[];
}

/** Writes, checkpoints and stops; every write has an outcome. */
async function run(opened: Opened, outcomes: Outcomes): Promise<void> {
  const { store, people } = opened;
  let count = 0;
  const write = async (): Promise<void> => {
    count += 1;
    const name = `w${count}`;
    try {
      await store.write((tx) => tx.insert(people, person(name)));
      assert.equal(people.find('email', `${name}@example.org`)?.name, name);
      outcomes.written.push(name);
    } catch (error) {
      assert.ok(error instanceof CairnError, String(error));
      assert.match(error.code, /^(storage_full|outcome_unknown|store_failed)$/);
      (error.code === 'outcome_unknown' ? outcomes.unknown : outcomes.refused).push(name);
    }
  };
  await write();
  await Promise.all([write(), write(), write()]);
  await store.checkpoint().catch(() => undefined);
  await write();
  await write();
  // Reads go on, whatever happened, and show what was acknowledged.
  assert.deepEqual(all(people).map(({ name }) => name).sort(), [...outcomes.written].sort());
  await store.close();
}

/**
 * Starts on the files of a stopped store, runs and stops with a fault; then starts without it and compares. `undefined`
 * where the run ended before `fault` was met.
 */
async function survive(
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
  const outcomes: Outcomes = { written: ['first'], refused: [], unknown: [] };
  const opened = makeStore({ ...small, files: disk });
  const started = await opened.store.start().then(
    () => true,
    () => false,
  );
  try {
    if (started) await run(opened, outcomes);
  } finally {
    disk.fault = () => undefined;
  }
  await disk.remove('lock').catch(() => undefined);
  const after = await startStore({ ...small, files: disk }).catch((error: unknown) => {
    throw new Error(`${where}: ${String(error)}`);
  });
  const names = new Set(all(after.people).map(({ name }) => name));
  for (const name of outcomes.written) assert.ok(names.has(name), `${where}: ${name} was acknowledged and is lost`);
  for (const name of outcomes.refused) assert.ok(!names.has(name), `${where}: ${name} was refused and is there`);
  await after.store.close();
  return met ? outcomes : undefined;
}

/** What a store with one record leaves when it is stopped. */
async function stoppedStore(): Promise<ReadonlyMap<string, Buffer>> {
  const disk = new SimulatedDisk(new Map(), false);
  const { store, people } = await startStore({ ...small, files: disk });
  await store.write((tx) => tx.insert(people, person('first')));
  await store.close();
  return disk.content();
}

/** One fault for the n-th call of a run. */
export type FaultOf = (call: Call, at: number, n: number) => Fault | undefined;

export const faults: { readonly [name: string]: (code: string) => FaultOf } = {
  'fails once': (code) => (_, at, n) => (at === n ? { code } : undefined),
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
export async function failEveryCall(faultOf: FaultOf, where: string): Promise<Faults> {
  const stopped = await stoppedStore();
  const seen = { runs: 0, written: 0, refused: 0, unknown: 0 };
  for (let n = 1; ; n += 1) {
    const outcomes = await survive(stopped, (call, at) => faultOf(call, at, n), `${where}, call ${n}`);
    if (outcomes === undefined) return seen;
    seen.runs += 1;
    seen.written += outcomes.written.length;
    seen.refused += outcomes.refused.length;
    seen.unknown += outcomes.unknown.length;
  }
}
