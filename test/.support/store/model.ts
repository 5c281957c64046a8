import assert from 'node:assert/strict';
import { Table } from '../../../src/store/memory/table.ts';
import type { Collection, StoredRecord } from '../../../src/store/store.ts';
import { all, makeStore, type Opened, person, seeded, small } from './fixtures.ts';
import { afterCrash, type Operation, SimulatedDisk, type Tear, unsynced } from './simulated-disk.ts';

/** Everything that a restart must give back, as text. */
export function stateOf({ people, notes }: Pick<Opened, 'people' | 'notes'>): string {
  return JSON.stringify([contentOf(people), contentOf(notes)]);
}

function contentOf<R extends StoredRecord>(collection: Collection<R>): unknown {
  const nextId = collection instanceof Table ? collection.nextId : 0;
  return [nextId, collection.revision, all(collection)];
}

/** What was promised while a workload ran. */
export interface History {
  /** The state after each commit; index 0 is the empty store. */
  readonly states: string[];
  /** After how many operations of the disk the commit with this sequence had been acknowledged. */
  readonly acknowledged: { readonly operations: number; readonly sequence: number }[];
}

/** The highest sequence that was acknowledged within the first `operations` operations. */
export function promised(history: History, operations: number): number {
  const acknowledged = history.acknowledged.filter((ack) => ack.operations <= operations);
  return Math.max(0, ...acknowledged.map(({ sequence }) => sequence));
}

/**
 * A random transaction; returns its sequence, so that the state after it can be recorded. Long texts now and then make
 * lines of several sectors.
 */
export async function randomWrite(opened: Opened, next: () => number): Promise<number> {
  const { store, people, notes } = opened;
  const choice = next();
  const pick = 1 + Math.floor(next() * 8);
  const name = `p${Math.floor(next() * 1e9)}`;
  const text = (next() < 0.1 ? 'long äöü '.repeat(200) : 'short ') + name;
  return store.write((tx) => {
    if (choice < 0.4) return tx.insert(people, person(name)).revision;
    if (choice < 0.6) return tx.insert(notes, { person: pick, text }).revision;
    if (choice < 0.7 && tx.get(people, pick) !== undefined) return tx.replace(people, pick, person(name)).revision;
    if (choice < 0.9 && tx.get(people, pick) !== undefined) {
      tx.remove(people, pick);
      for (const note of tx.members(notes, 'person', pick)) tx.remove(notes, note.id);
    }
    return tx.insert(notes, { person: pick, text }).revision;
  });
}

export interface Workload {
  readonly disk: SimulatedDisk;
  readonly history: History;
}

/**
 * Runs a random workload of `steps` steps on a simulated disk: single writes, bursts, checkpoints, clean restarts and
 * restarts without a stop.
 */
export async function runWorkload(seed: number, steps: number): Promise<Workload> {
  const next = seeded(seed);
  const disk = new SimulatedDisk(new Map(), seed % 2 === 0, seed % 3 > 0);
  const history: History = { states: [], acknowledged: [] };
  let opened = await open(disk);
  history.states.push(stateOf(opened));
  const write = async (): Promise<void> => {
    const sequence = await randomWrite(opened, next);
    history.acknowledged.push({ operations: disk.operations.length, sequence });
  };
  for (let step = 0; step < steps; step += 1) {
    const choice = next();
    if (choice < 0.55) {
      await write();
      history.states.push(stateOf(opened));
    } else if (choice < 0.75) {
      // In one group: the states between are found by replaying it one by one.
      const count = 2 + Math.floor(next() * 4);
      await Promise.all(Array.from({ length: count }, write));
      for (let missing = count; missing > 1; missing -= 1) history.states.push('');
      history.states.push(stateOf(opened));
    } else if (choice < 0.85) {
      await opened.store.checkpoint();
    } else if (choice < 0.93) {
      await opened.store.close();
      opened = await open(disk);
    } else {
      opened = await open(disk, true);
    }
  }
  return { disk, history };
}

/** Opens the store on a simulated disk; `killed` says that another process was there and did not stop. */
async function open(disk: SimulatedDisk, killed = false): Promise<Opened> {
  if (killed) await disk.remove('lock').catch(() => undefined);
  const opened = makeStore({ ...small, files: disk });
  await opened.store.start();
  return opened;
}

/** One thing that a crash may leave: the operations up to `length`, some dropped, one perhaps torn. */
export interface CrashState {
  readonly length: number;
  readonly dropped: ReadonlySet<number>;
  readonly tear?: Tear;
}

/** The states that a crash after `length` operations may leave; all of them where they are few, else a sample. */
export function* crashStates(
  operations: readonly Operation[],
  length: number,
  next: () => number,
): Generator<CrashState, void, undefined> {
  const prefix = operations.slice(0, length);
  const open = unsynced(prefix);
  const subsets: ReadonlySet<number>[] = [];
  if (open.length <= 6) {
    for (let bits = 0; bits < 2 ** open.length; bits += 1) {
      subsets.push(new Set(open.filter((_, n) => (bits & (1 << n)) !== 0)));
    }
  } else {
    subsets.push(new Set(), new Set(open));
    for (const one of open) subsets.push(new Set([one]), new Set(open.filter((index) => index !== one)));
    for (let n = 0; n < 16; n += 1) subsets.push(new Set(open.filter(() => next() < 0.5)));
  }
  for (const dropped of subsets) {
    yield { length, dropped };
    for (const index of open) {
      const operation = prefix[index];
      if (dropped.has(index) || operation?.kind !== 'write') continue;
      for (const tear of tears(index, operation.bytes.length, next)) yield { length, dropped, tear };
    }
  }
}

function* tears(index: number, length: number, next: () => number): Generator<Tear, void, undefined> {
  for (const sector of [512, 4096]) {
    for (let at = sector; at < length; at += sector) {
      yield { index, keep: 'head', at };
      yield { index, keep: 'tail', at };
    }
  }
  // At every byte: a few of them each time.
  for (let n = 0; n < 6; n += 1) yield { index, keep: 'head', at: Math.floor(next() * length) };
}

export interface Explored {
  readonly states: number;
  /** Of them, those after a crash during or right after a recovery. */
  readonly second: number;
}

/**
 * Opens the store on the crash states of a workload, until `count` of them are done, and compares with the model: what
 * was acknowledged is there, and the state is the one after some commit. On a share of them it goes on: with a write
 * and a stop, or with a second crash while it recovers.
 */
export async function exploreCrashes(workload: Workload, next: () => number, count: number): Promise<Explored> {
  const { disk, history } = workload;
  let states = 0;
  let second = 0;
  const lengths = Array.from(disk.operations.keys(), (index) => index + 1);
  const share = count / lengths.length;
  let owed = 0;
  for (const length of lengths) {
    owed += share;
    const least = promised(history, length);
    const found = [...crashStates(disk.operations, length, next)];
    for (let n = 0; n < found.length && owed >= 1; n += 1) {
      const at = n + Math.floor(next() * (found.length - n));
      const state = found[at];
      const moved = found[n];
      if (state === undefined || moved === undefined) break;
      found[at] = moved;
      owed -= 1;
      states += 1;
      const again = await check(state, disk.operations, history, least, next);
      if (again === undefined || next() < 0.8) continue;
      second += await exploreSecond(again, history, least, next);
    }
  }
  return { states: states + second, second };
}

async function exploreSecond(
  first: SimulatedDisk,
  history: History,
  least: number,
  next: () => number,
): Promise<number> {
  let states = 0;
  const begin = first.operations.findIndex(({ kind }) => kind === 'syncDirectory') + 1;
  for (let length = begin; length <= first.operations.length; length += 1 + Math.floor(next() * 4)) {
    const found = [...crashStates(first.operations, length, next)];
    const state = found[Math.floor(next() * found.length)];
    if (state === undefined) continue;
    states += 1;
    await check(state, first.operations, history, least, next);
  }
  return states;
}

/** Opens what a crash left and compares; returns the disk, unless the store went on writing to it. */
async function check(
  state: CrashState,
  operations: readonly Operation[],
  history: History,
  least: number,
  next: () => number,
): Promise<SimulatedDisk | undefined> {
  const content = afterCrash(operations.slice(0, state.length), state.dropped, state.tear);
  content.delete('lock');
  const disk = new SimulatedDisk(content, next() < 0.5);
  const dropped = [...state.dropped].join();
  const where = `crash after ${state.length} operations, dropped [${dropped}], ${tearText(state.tear)}`;
  const opened = await open(disk).catch((error: unknown) => {
    throw new Error(`${where}: ${String(error)}`, { cause: error });
  });
  const { sequence } = opened.store.status();
  assert.ok(sequence >= least, `${where}: ${sequence} came back, ${least} had been acknowledged`);
  assert.equal(stateOf(opened), history.states[sequence], where);
  if (next() > 0.1) return disk;
  const record = await opened.store.write((tx) => tx.insert(opened.people, person('after')));
  assert.equal(record.revision, sequence + 1);
  const before = stateOf(opened);
  await opened.store.close();
  const reopened = await open(disk);
  assert.equal(stateOf(reopened), before, where);
  return undefined;
}

function tearText(tear: Tear | undefined): string {
  return tear === undefined ? 'no tear' : `operation ${tear.index} torn: ${tear.keep} at ${tear.at}`;
}
