import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../src/base/json.ts';
import type { Clock, Random } from '../../../src/base/system.ts';
import { type OfflineOptions, checkStore, repairStore } from '../../../src/options/offline/offline.ts';
import type { Files } from '../../../src/store/disk/files.ts';
import type { Machine, ProcessIdentity } from '../../../src/store/disk/lock.ts';
import { type StoreOptions, openStore } from '../../../src/store/open-store.ts';
import { StoreDamageError } from '../../../src/store/recovery/damage-error.ts';
import type { Collection, StoredRecord, TableDefinition } from '../../../src/store/store.ts';
import type { Writer } from '../../../src/store/writer.ts';
import { SimulatedDisk } from './simulated-disk.ts';

export interface Person extends StoredRecord {
  readonly name: string;
  readonly email: string;
  readonly role: string;
}

export interface Note extends StoredRecord {
  readonly person: number;
  readonly text: string;
}

export const people: TableDefinition<Person> = {
  name: 'people',
  parse: ({ id, revision, name, email, role }: JsonObject) =>
    typeof id === 'number' &&
    typeof revision === 'number' &&
    typeof name === 'string' &&
    typeof email === 'string' &&
    typeof role === 'string'
      ? { id, revision, name, email, role }
      : 'is none',
  unique: { email: ({ email }) => email.toLowerCase() },
  groups: { role: ({ role }) => role },
};

export const notes: TableDefinition<Note> = {
  name: 'notes',
  parse: ({ id, revision, person, text }: JsonObject) =>
    typeof id === 'number' && typeof revision === 'number' && typeof person === 'number' && typeof text === 'string'
      ? { id, revision, person, text }
      : 'is none',
  groups: { person: ({ person }) => person },
};

/** A generator of pseudo-random numbers in [0, 1): mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function seededRandom(seed: number): Random {
  const next = seeded(seed);
  // Large pieces repeat themselves.
  return (size) =>
    Buffer.alloc(size, Buffer.from(Array.from({ length: Math.min(size, 256) }, () => Math.floor(next() * 256))));
}

/** Each look at the clock takes a tenth of a millisecond. */
export function steppingClock(): Clock & { advance: (ms: number) => void } {
  let at = 1_750_000_000_000;
  return {
    now: () => at,
    elapsed: () => (at += 0.1),
    advance: (ms) => {
      at += ms;
    },
  };
}

/** Options of a store among very many: its journal grows by little. */
export const small = { spareBytes: 1200 };

export const thisProcess: ProcessIdentity = { host: 'box', place: 'b1 n1', pid: 7 };

export interface TestMachine extends Machine {
  /** How long starts have waited in all. */
  waitedMs: number;
  /** What happens meanwhile. */
  whileWaiting: () => unknown;
  /** Renews the locks that are held here, as happens every few seconds. */
  renew(): void;
}

/** A machine on which only `running` processes are there, and where waiting takes no time. */
export function machineWith(
  self: ProcessIdentity = thisProcess,
  running: readonly number[] = [7],
): TestMachine {
  const works = new Set<() => void>();
  return {
    waitedMs: 0,
    whileWaiting: () => undefined,
    renew: () => works.forEach((work) => work()),
    self: () => self,
    isRunning: (pid) => running.includes(pid),
    async wait(ms) {
      this.waitedMs += ms;
      await this.whileWaiting();
      await turns(1);
    },
    every(_, work) {
      works.add(work);
      return () => void works.delete(work);
    },
  };
}

export interface Opened {
  readonly store: Writer;
  readonly check: () => ReturnType<typeof checkStore>;
  readonly repairTo: (target: Files, credentials?: OfflineOptions['credentials']) => ReturnType<typeof repairStore>;
  readonly people: Collection<Person>;
  readonly notes: Collection<Note>;
  readonly notices: string[];
  readonly failures: unknown[];
  readonly clock: ReturnType<typeof steppingClock>;
  /** Does what happens periodically, such as asking for room on the disk. */
  readonly tick: () => Promise<void>;
  /** Lets so much time pass, and does what happens periodically. */
  readonly pass: (ms: number) => Promise<void>;
}

/** A store with the two collections of these tests, not yet started. */
export function makeStore(given: Partial<StoreOptions> = {}): Opened {
  const notices: string[] = [];
  const failures: unknown[] = [];
  const clock = steppingClock();
  const machine = machineWith();
  const options = {
    clock,
    random: seededRandom(1),
    machine,
    onNotice: (notice: string) => void notices.push(notice),
    onFailure: (error: unknown) => void failures.push(error),
    onProgress: () => undefined,
    ...given,
  };
  const store = openStore(options);
  const { files = new SimulatedDisk() } = options;
  return {
    store,
    check: () => checkStore(files, store.freshTables),
    repairTo: (target, credentials = { collections: [], keyFile: 'keys.json' }) =>
      repairStore(files, target, store.freshTables, { ...options, credentials }),
    people: store.collection(people),
    notes: store.collection(notes),
    notices,
    failures,
    clock,
    tick: () => tick(machine),
    pass: (ms) => {
      clock.advance(ms);
      return tick(machine);
    },
  };
}

export async function tick(machine: TestMachine): Promise<void> {
  machine.renew();
  await turns(5);
}

export async function startStore(options: Partial<StoreOptions> = {}): Promise<Opened> {
  const opened = makeStore(options);
  await opened.store.start();
  return opened;
}

export function person(name: string, role = 'member'): Omit<Person, 'id' | 'revision'> {
  return { name, email: `${name}@example.org`, role };
}

export function all<R extends StoredRecord>(collection: Collection<R>): R[] {
  return collection.view().blocks.flat();
}

/** Lets the loop turn so many times. */
export async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await new Promise(setImmediate);
}

export const options = { ...small, spareBytes: 16 };

/** Files by name. */
export type Content = Map<string, Buffer>;

export async function start(content: Content): Promise<Opened & { disk: SimulatedDisk }> {
  const disk = new SimulatedDisk(content);
  return { ...(await startStore({ ...options, files: disk })), disk };
}

export type Work = (opened: Opened) => Promise<unknown>;

/** What a process leaves that was killed after `work`. */
export async function killedAfter(work: Work, before: Content = new Map()): Promise<Content> {
  const opened = await start(before);
  await work(opened);
  const content = opened.disk.content();
  content.delete('lock');
  return content;
}

export async function stoppedAfter(work: Work, before: Content = new Map()): Promise<Content> {
  const opened = await start(before);
  await work(opened);
  await opened.store.close();
  return opened.disk.content();
}

export const write = (...names: string[]) => async ({ store, people }: Opened): Promise<void> => {
  for (const name of names) await store.write((tx) => tx.of(people).insert(person(name)));
};

/** Five commits: two in the snapshots, three in the journal. */
export const inBoth = (): Promise<Content> =>
  killedAfter(async (opened) => {
    await write('a', 'b')(opened);
    await opened.store.checkpoint();
    await write('c', 'd', 'e')(opened);
  });

export const journalOf = (content: Content): string =>
  [...content.keys()].filter((name) => name.startsWith('journal-')).sort().at(-1) ?? '';

export const textOf = (content: Content, name: string): string => content.get(name)?.toString() ?? '';

export function edit(content: Content, name: string, change: (text: string) => string): Content {
  return new Map(content).set(name, Buffer.from(change(textOf(content, name))));
}

export const dropLine = (index: number) => (text: string): string => text.split('\n').toSpliced(index, 1).join('\n');

export const names = ({ people }: Opened): string => all(people).map(({ name }) => name).join('');

/** Gives a snapshot the digest that fits it. */
export function rehash(content: Content, name: string): Content {
  return edit(content, name, (text) => {
    const end = text.lastIndexOf('],"count"');
    const digest = createHash('sha256').update(text.slice(0, end)).digest('hex');
    return text.slice(0, end) + text.slice(end).replace(/[0-9a-f]{64}/, digest);
  });
}

/** Cut off at every `step`-th byte, and with each bit of it flipped. */
function* changes(bytes: Buffer, step: number): Generator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += step) {
    yield bytes.subarray(0, at);
    for (let bit = 0; bit < 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8((bytes[at] ?? 0) ^ (1 << bit), at);
      yield flipped;
    }
  }
}

/** Damages each file of a store that was stopped, in every way: each time the start is refused. Returns how often. */
export async function damageAfterStop(step: number): Promise<number> {
  const content = await stoppedAfter(async (opened) => {
    await write('a', 'b')(opened);
    await opened.store.write((tx) => tx.of(opened.notes).insert({ person: 1, text: 'x' }));
  });
  let refusals = 0;
  for (const [name, bytes] of content) {
    for (const changed of changes(bytes, step)) {
      const { store } = makeStore({ ...options, files: new SimulatedDisk(new Map(content).set(name, changed)) });
      await assert.rejects(store.start(), StoreDamageError);
      refusals += 1;
    }
  }
  return refusals;
}

/**
 * Damages the journals and the snapshots of a store that was killed, and of one that was killed twice, so that it has
 * two journals: it is refused, or it is a prefix of the commits that includes what was in the snapshots and in the
 * former journal, with a notice.
 */
export async function damageAfterCrash(step: number): Promise<{ refused: number; prefixes: number }> {
  const once = await inBoth();
  const twice = await killedAfter(write('f', 'g'), once);
  const results = [await damaged(once, 'ab', 'cde', step), await damaged(twice, 'abcde', 'fg', step)];
  const sum = (of: 'refused' | 'prefixes'): number => results.reduce((total, each) => total + each[of], 0);
  return { refused: sum('refused'), prefixes: sum('prefixes') };
}

async function damaged(content: Content, certain: string, last: string, step: number) {
  const result = { refused: 0, prefixes: 0 };
  for (const [name, bytes] of content) {
    for (const changed of changes(bytes, step)) {
      const disk = new SimulatedDisk(new Map(content).set(name, changed));
      const opened = makeStore({ ...options, files: disk });
      try {
        await opened.store.start();
      } catch (error) {
        assert.ok(error instanceof StoreDamageError, String(error));
        result.refused += 1;
        continue;
      }
      result.prefixes += 1;
      assert.equal(name, journalOf(content), `${name} is damaged and was accepted`);
      const found = names(opened);
      assert.ok(found.startsWith(certain) && `${certain}${last}`.startsWith(found), found);
      assert.ok(opened.notices.some((notice) => notice.includes('not clean')));
      const wholeLines = changed.length < bytes.length && changed.at(-1) === 0x0a;
      assert.ok(wholeLines || opened.notices.some((notice) => notice.includes('cut short')));
    }
  }
  return result;
}
