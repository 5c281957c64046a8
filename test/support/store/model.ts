import assert from 'node:assert/strict';
import { storageFull } from '../../../src/store/log.ts';
import { Table } from '../../../src/store/memory/table.ts';
import type { StoreOptions } from '../../../src/store/open-store.ts';
import type { Collection, Store, StoredRecord } from '../../../src/store/store.ts';
import { BlogModel, makeBlog, modelled, randomOperation } from './blog.ts';
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

/** A store whose crashes are explored. */
export interface Subject {
  readonly store: Store;
  /** Everything that a restart must give back, as text. */
  state(): string;
  /** Makes a random write; resolves with the sequence number of a commit that is durable then. */
  write(next: () => number): Promise<number>;
  /** Makes one commit. */
  append(): Promise<unknown>;
  /** Lets so much time pass, and does what happens periodically. */
  pass(ms: number): Promise<void>;
}

/** Makes a subject that has not started. */
export type MakeSubject = (options: Partial<StoreOptions>) => Subject;

/** People and notes about them, which the transactions themselves keep together. */
export const peopleAndNotes: MakeSubject = (options) => {
  const opened = makeStore(options);
  return {
    store: opened.store,
    state: () => stateOf(opened),
    write: (next) => randomWrite(opened, next),
    append: () => opened.store.write((tx) => tx.of(opened.people).insert(person('after'))),
    pass: opened.pass,
  };
};

/** Declared collections that refer to each other, and a model of them that all subjects of one workload share. */
export function blogs(model = new BlogModel()): MakeSubject {
  return (options) => {
    const blog = makeBlog(options);
    // What a crash has left is an earlier state than that of the model.
    let isModelled = false;
    const run = modelled(blog, model);
    return {
      store: blog.store,
      state() {
        if (isModelled) assert.equal(blog.content(), model.content());
        return blog.state();
      },
      async write(next) {
        isModelled = true;
        if ((await run(randomOperation(next, blog.ids))) === 'storage_full') throw storageFull('the disk is full');
        return blog.store.status().sequence;
      },
      append: () => blog.run({ kind: 'create', name: 'tags', records: [{ name: 'after' }] }),
      pass: blog.pass,
    };
  };
}

/** What was promised while a workload ran. */
export interface History {
  /** The state after each commit that ended a group; index 0 is the empty store. */
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
    if (choice < 0.4) return tx.of(people).insert(person(name)).revision;
    if (choice < 0.6) return tx.of(notes).insert({ person: pick, text }).revision;
    const isThere = tx.of(people).get(pick) !== undefined;
    if (choice < 0.7 && isThere) return tx.of(people).replace(pick, person(name)).revision;
    if (choice < 0.9 && isThere) {
      tx.of(people).remove(pick);
      for (const note of [...tx.of(notes).referring('person', pick)]) tx.of(notes).remove(note.id);
    }
    return tx.of(notes).insert({ person: pick, text }).revision;
  });
}

export interface Workload {
  readonly make: MakeSubject;
  readonly disk: SimulatedDisk;
  readonly history: History;
}

/**
 * Runs a random workload of `steps` steps on a simulated disk: single writes, bursts, checkpoints during which there
 * is a write, clean restarts and restarts without a stop.
 */
export async function runWorkload(seed: number, steps: number, make: MakeSubject): Promise<Workload> {
  const next = seeded(seed);
  const disk = new SimulatedDisk(new Map(), seed % 2 === 0, seed % 3 > 0);
  const history: History = { states: [], acknowledged: [] };
  let subject = await open(make, disk);
  const note = (): void => {
    history.states[subject.store.status().sequence] = subject.state();
  };
  note();
  const write = async (): Promise<void> => {
    const sequence = await subject.write(next);
    history.acknowledged.push({ operations: disk.operations.length, sequence });
  };
  const writeAndNote = async (): Promise<void> => {
    await write();
    note();
  };
  for (let step = 0; step < steps; step += 1) {
    const choice = next();
    if (choice < 0.55) {
      await writeAndNote();
    } else if (choice < 0.75) {
      // In one group, so the states between are never seen.
      await Promise.all(Array.from({ length: 2 + Math.floor(next() * 4) }, write));
      note();
    } else if (choice < 0.85) {
      let writing: Promise<void> | undefined;
      disk.pause = (at, name) =>
        at === 'write' && name.endsWith('.tmp') ? (writing ??= writeAndNote()) : undefined;
      await subject.store.checkpoint();
      disk.pause = () => undefined;
    } else if (choice < 0.93) {
      await subject.store.close();
      subject = await open(make, disk);
    } else {
      subject = await open(make, disk, true);
    }
  }
  return { make, disk, history };
}

/** Opens the store on a simulated disk; `killed` says that another process was there and did not stop. */
async function open(make: MakeSubject, disk: SimulatedDisk, killed = false): Promise<Subject> {
  if (killed) await disk.remove('lock').catch(() => undefined);
  const subject = make({ ...small, files: disk });
  await subject.store.start();
  return subject;
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
  const { disk } = workload;
  let states = 0;
  let second = 0;
  const lengths = Array.from(disk.operations.keys(), (index) => index + 1);
  const share = count / lengths.length;
  let owed = 0;
  for (const length of lengths) {
    owed += share;
    const least = promised(workload.history, length);
    const found = [...crashStates(disk.operations, length, next)];
    for (let n = 0; n < found.length && owed >= 1; n += 1) {
      const at = n + Math.floor(next() * (found.length - n));
      const state = found[at];
      const moved = found[n];
      if (state === undefined || moved === undefined) break;
      found[at] = moved;
      owed -= 1;
      states += 1;
      const again = await check(state, disk.operations, workload, least, next);
      if (again === undefined || next() < 0.8) continue;
      second += await exploreSecond(again, workload, least, next);
    }
  }
  return { states: states + second, second };
}

async function exploreSecond(
  first: SimulatedDisk,
  workload: Workload,
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
    await check(state, first.operations, workload, least, next);
  }
  return states;
}

/** Opens what a crash left and compares; returns the disk, unless the store went on writing to it. */
async function check(
  state: CrashState,
  operations: readonly Operation[],
  { make, history }: Workload,
  least: number,
  next: () => number,
): Promise<SimulatedDisk | undefined> {
  const content = afterCrash(operations.slice(0, state.length), state.dropped, state.tear);
  content.delete('lock');
  const disk = new SimulatedDisk(content, next() < 0.5);
  const dropped = [...state.dropped].join();
  const where = `crash after ${state.length} operations, dropped [${dropped}], ${tearText(state.tear)}`;
  const opened = await open(make, disk).catch((error: unknown) => {
    throw new Error(`${where}: ${String(error)}`, { cause: error });
  });
  const { sequence } = opened.store.status();
  assert.ok(sequence >= least, `${where}: ${sequence} came back, ${least} had been acknowledged`);
  assert.equal(opened.state(), history.states[sequence], where);
  // A second crash may come while the snapshots are written that the start has left out.
  if (next() < 0.5) await opened.store.checkpoint();
  if (next() > 0.1) return disk;
  await opened.append();
  assert.equal(opened.store.status().sequence, sequence + 1);
  const before = opened.state();
  await opened.store.close();
  assert.equal((await open(make, disk)).state(), before, where);
  return undefined;
}

function tearText(tear: Tear | undefined): string {
  return tear === undefined ? 'no tear' : `operation ${tear.index} torn: ${tear.keep} at ${tear.at}`;
}
