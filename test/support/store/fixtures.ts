import type { JsonObject } from '../../../src/base/json.ts';
import type { Clock, Random } from '../../../src/base/system.ts';
import type { Machine, ProcessIdentity } from '../../../src/store/disk/lock.ts';
import { checkStore, repairStore, type OfflineOptions } from '../../../src/options/offline/offline.ts';
import { openStore, type StoreOptions } from '../../../src/store/open-store.ts';
import type { Writer } from '../../../src/store/writer.ts';
import type { Collection, TableDefinition, StoredRecord } from '../../../src/store/store.ts';
import type { Files } from '../../../src/store/disk/files.ts';
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
