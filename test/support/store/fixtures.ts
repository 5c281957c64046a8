import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../src/base/json.ts';
import type { Clock, Random } from '../../../src/base/system.ts';
import { checkStore, type OfflineOptions, repairStore } from '../../../src/options/offline/offline.ts';
import type { Files, OpenFile, OpenMode } from '../../../src/store/disk/files.ts';
import type { Machine, ProcessIdentity } from '../../../src/store/disk/lock.ts';
import { openStore, type StoreOptions } from '../../../src/store/open-store.ts';
import { StoreDamageError } from '../../../src/store/recovery/damage-error.ts';
import type { Collection, StoredRecord, TableDefinition } from '../../../src/store/store.ts';
import type { Writer } from '../../../src/store/writer.ts';

interface Inode {
  bytes: Buffer;
}

/** The calls to the disk, in order. A `sync` makes all earlier calls for its file or directory durable. */
export type DiskOperation =
  | { readonly kind: 'write'; readonly inode: number; readonly position: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly inode: number; readonly size: number }
  | { readonly kind: 'sync'; readonly inode: number }
  /** A sync that failed: what it did not make durable, no later one does, for the system takes it for written. */
  | { readonly kind: 'failedSync'; readonly inode: number }
  | { readonly kind: 'create'; readonly name: string; readonly inode: number }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string; readonly inode: number }
  | { readonly kind: 'remove'; readonly name: string }
  | { readonly kind: 'syncDirectory' };

const operations = [
  ...(['list', 'open', 'read', 'write', 'truncate', 'sync', 'close', 'rename', 'remove', 'syncDirectory'] as const),
];

export interface Call {
  readonly operation: (typeof operations)[number];
  readonly name: string;
}

/** The fate of a call: an error after `written` bytes (0 by default), or a write of only `written` bytes. */
export interface Fault {
  readonly code?: string;
  readonly written?: number;
}

/** A directory in memory that records every operation, and where calls can be made to fail. */
export class SimulatedDisk implements Files {
  readonly directory = 'simulated';
  /** If false, every write is synced, and carries along earlier changes of the directory. */
  readonly syncsDirectories: boolean;
  readonly operations: DiskOperation[] = [];
  /** True if writes to a journal are durable without a sync, as on Linux. */
  readonly writesThrough: boolean;
  fault: (call: Call) => Fault | undefined = () => undefined;
  /** Where a process may be frozen for a while: before a write, and after it. */
  pause: (at: 'write' | 'written', name: string) => Promise<void> | undefined = () => undefined;
  /** Bytes that fit; writes beyond are short, then fail with ENOSPC. */
  capacity = Number.POSITIVE_INFINITY;
  /** The free space that it reports. */
  unused = Number.POSITIVE_INFINITY;
  readonly #inodes = new Map<number, Inode>();
  readonly #names = new Map<string, number>();
  #lastInode = 0;

  constructor(content: ReadonlyMap<string, Uint8Array> = new Map(), writesThrough = true, syncsDirectories = true) {
    this.writesThrough = writesThrough;
    this.syncsDirectories = syncsDirectories;
    for (const [name, bytes] of content) {
      const inode = this.#newInode(Buffer.from(bytes));
      this.#names.set(name, inode);
      this.operations.push({ kind: 'create', name, inode });
      this.operations.push({ kind: 'write', inode, position: 0, bytes: Buffer.from(bytes) });
      this.operations.push({ kind: 'sync', inode });
    }
    this.operations.push({ kind: 'syncDirectory' });
  }

  /** The files by name, as a process that runs now sees them. */
  content(): Map<string, Buffer> {
    const content = new Map<string, Buffer>();
    for (const [name, inode] of this.#names) content.set(name, Buffer.from(this.#inode(inode).bytes));
    return content;
  }

  async prepare(): Promise<void> {}

  async close(): Promise<void> {}

  async list(): Promise<string[]> {
    this.#meet({ operation: 'list', name: '' });
    return [...this.#names.keys()];
  }

  async open(name: string, mode: OpenMode): Promise<OpenFile> {
    this.#meet({ operation: 'open', name });
    let inode = this.#names.get(name);
    if ((mode === 'read' || mode === 'rewrite') && inode === undefined) throw failure('ENOENT');
    if ((mode === 'exclusive' || mode === 'journal') && inode !== undefined) throw failure('EEXIST');
    if (inode === undefined) {
      inode = this.#newInode(Buffer.alloc(0));
      this.#names.set(name, inode);
      this.operations.push({ kind: 'create', name, inode });
    } else if (mode !== 'read' && mode !== 'rewrite') {
      this.#truncate(inode, 0);
    }
    return this.#handle(name, inode, mode);
  }

  async rename(from: string, to: string): Promise<void> {
    this.#meet({ operation: 'rename', name: from });
    const inode = this.#names.get(from);
    if (inode === undefined) throw failure('ENOENT');
    this.#names.delete(from);
    this.#names.set(to, inode);
    this.operations.push({ kind: 'rename', from, to, inode });
  }

  async remove(name: string): Promise<void> {
    this.#meet({ operation: 'remove', name });
    if (!this.#names.delete(name)) throw failure('ENOENT');
    this.operations.push({ kind: 'remove', name });
  }

  async syncDirectory(): Promise<void> {
    this.#meet({ operation: 'syncDirectory', name: '' });
    this.operations.push({ kind: 'syncDirectory' });
  }

  async free(): Promise<number> {
    return this.unused;
  }

  identity(name: string): string | undefined {
    const inode = this.#names.get(name);
    return inode === undefined ? undefined : String(inode);
  }

  #handle(name: string, inode: number, mode: OpenMode): OpenFile {
    const file = this.#inode(inode);
    return {
      identity: String(inode),
      read: async (buffer, position) => {
        this.#meet({ operation: 'read', name });
        return file.bytes.copy(buffer, 0, position);
      },
      write: async (bytes, position) => {
        await this.pause('write', name);
        const fault = this.fault({ operation: 'write', name });
        const room = this.capacity - this.#used() + Math.max(0, file.bytes.length - position);
        const length = Math.max(0, Math.min(bytes.length, room, fault?.written ?? (fault?.code ? 0 : bytes.length)));
        if (length > 0) {
          const written = Buffer.from(bytes.subarray(0, length));
          file.bytes = overwrite(file.bytes, written, position);
          this.operations.push({ kind: 'write', inode, position, bytes: written });
        }
        if (fault?.code !== undefined) throw failure(fault.code);
        if (length === 0 && bytes.length > 0) throw failure('ENOSPC');
        // As with O_DSYNC: durable when the call returns.
        if (mode === 'journal' && this.writesThrough) this.operations.push({ kind: 'sync', inode });
        if (!this.syncsDirectories) this.operations.push({ kind: 'sync', inode }, { kind: 'syncDirectory' });
        await this.pause('written', name);
        return length;
      },
      truncate: async (size) => {
        this.#meet({ operation: 'truncate', name });
        this.#truncate(inode, size);
        this.operations.push({ kind: 'sync', inode });
      },
      sync: async () => {
        const code = this.fault({ operation: 'sync', name })?.code;
        if (code !== undefined) {
          this.operations.push({ kind: 'failedSync', inode });
          throw failure(code);
        }
        // As with O_DSYNC: nothing is left to do for it.
        if (mode !== 'journal' || !this.writesThrough) this.operations.push({ kind: 'sync', inode });
      },
      close: async () => {
        this.#meet({ operation: 'close', name });
      },
    };
  }

  #meet(call: Call): void {
    const code = this.fault(call)?.code;
    if (code !== undefined) throw failure(code);
  }

  #truncate(inode: number, size: number): void {
    const file = this.#inode(inode);
    file.bytes = resize(file.bytes, size);
    this.operations.push({ kind: 'truncate', inode, size });
  }

  #used(): number {
    let used = 0;
    for (const inode of this.#names.values()) used += this.#inode(inode).bytes.length;
    return used;
  }

  #newInode(bytes: Buffer): number {
    this.#lastInode += 1;
    this.#inodes.set(this.#lastInode, { bytes });
    return this.#lastInode;
  }

  #inode(number: number): Inode {
    const inode = this.#inodes.get(number);
    if (inode === undefined) throw new Error(`no inode ${number}`);
    return inode;
  }
}

/** Returns which operations of a prefix a crash may lose: all that no sync covers. */
export function listUnsynced(operations: readonly DiskOperation[]): number[] {
  const open: number[] = [];
  const syncedFiles = new Set<number>();
  let directorySynced = false;
  for (let index = operations.length - 1; index >= 0; index -= 1) {
    const operation = operations[index];
    if (operation === undefined) continue;
    if (operation.kind === 'sync') syncedFiles.add(operation.inode);
    else if (operation.kind === 'failedSync') syncedFiles.delete(operation.inode);
    else if (operation.kind === 'syncDirectory') directorySynced = true;
    else if (operation.kind === 'write' || operation.kind === 'truncate') {
      if (!syncedFiles.has(operation.inode)) open.unshift(index);
    } else if (!directorySynced) open.unshift(index);
  }
  return open;
}

/** The part of an unsynced write that reaches the disk: only its start, or only its end, with zeros before it. */
export interface Tear {
  readonly index: number;
  readonly keep: 'head' | 'tail';
  readonly at: number;
}

/** The disk after a crash: `operations` without the `dropped` ones, and with one write torn. */
export function crash(
  operations: readonly DiskOperation[],
  dropped: ReadonlySet<number>,
  tear?: Tear,
): Map<string, Buffer> {
  const inodes = new Map<number, Buffer>();
  const names = new Map<string, number>();
  for (const [index, operation] of operations.entries()) {
    if (dropped.has(index)) continue;
    switch (operation.kind) {
      case 'write': {
        const before = inodes.get(operation.inode) ?? Buffer.alloc(0);
        const torn = tear?.index === index ? tear : undefined;
        const head = torn?.keep === 'head' ? operation.bytes.subarray(0, torn.at) : operation.bytes;
        const skip = torn?.keep === 'tail' ? torn.at : 0;
        inodes.set(operation.inode, overwrite(before, head.subarray(skip), operation.position + skip));
        break;
      }
      case 'truncate':
        inodes.set(operation.inode, resize(inodes.get(operation.inode) ?? Buffer.alloc(0), operation.size));
        break;
      case 'create':
        names.set(operation.name, operation.inode);
        break;
      case 'rename':
        if (names.get(operation.from) === operation.inode) names.delete(operation.from);
        names.set(operation.to, operation.inode);
        break;
      case 'remove':
        names.delete(operation.name);
        break;
      default:
        break;
    }
  }
  const content = new Map<string, Buffer>();
  for (const [name, inode] of names) content.set(name, inodes.get(inode) ?? Buffer.alloc(0));
  return content;
}

/** `before` with `bytes` at `position`: in place where they fit, as a line does into the spaces ahead of it. */
function overwrite(before: Buffer, bytes: Buffer, position: number): Buffer {
  if (position + bytes.length <= before.length) {
    bytes.copy(before, position);
    return before;
  }
  const after = Buffer.alloc(position + bytes.length);
  before.copy(after);
  bytes.copy(after, position);
  return after;
}

function resize(before: Buffer, size: number): Buffer {
  const after = Buffer.alloc(size);
  before.copy(after);
  return after;
}

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: simulated`), { code });
}

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
export function seedNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function seedRandom(seed: number): Random {
  const next = seedNumbers(seed);
  // Large pieces repeat themselves.
  return (size) =>
    Buffer.alloc(size, Buffer.from(Array.from({ length: Math.min(size, 256) }, () => Math.floor(next() * 256))));
}

/** Each look at the clock takes a tenth of a millisecond. */
export function createSteppingClock(): Clock & { advance: (ms: number) => void } {
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
  /** The time that all starts have waited. */
  waitedMs: number;
  /** Runs during each wait. */
  whileWaiting: () => unknown;
  /** Renews the locks that are held here, as happens every few seconds. */
  renew(): void;
}

/** A machine on which only the `running` processes exist, and whose waits return at once. */
export function createMachine(
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
      await waitTurns(1);
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
  readonly clock: ReturnType<typeof createSteppingClock>;
  /** Does what happens periodically, such as asking for room on the disk. */
  readonly tick: () => Promise<void>;
  /** Lets so much time pass, and does what happens periodically. */
  readonly pass: (ms: number) => Promise<void>;
}

/** A store with the two collections of these tests, not yet started. */
export function createStore(given: Partial<StoreOptions> = {}): Opened {
  const notices: string[] = [];
  const failures: unknown[] = [];
  const clock = createSteppingClock();
  const machine = createMachine();
  const options = {
    clock,
    random: seedRandom(1),
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
  await waitTurns(5);
}

export async function startStore(options: Partial<StoreOptions> = {}): Promise<Opened> {
  const opened = createStore(options);
  await opened.store.start();
  return opened;
}

export function createPerson(name: string, role = 'member'): Omit<Person, 'id' | 'revision'> {
  return { name, email: `${name}@example.org`, role };
}

export function listRecords<R extends StoredRecord>(collection: Collection<R>): R[] {
  return collection.view().blocks.flat();
}

/** Lets the event loop turn this many times. */
export async function waitTurns(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await new Promise(setImmediate);
}

export const options = { ...small, spareBytes: 16 };

/** Files by name. */
export type Content = Map<string, Buffer>;

export async function startWith(content: Content): Promise<Opened & { disk: SimulatedDisk }> {
  const disk = new SimulatedDisk(content);
  return { ...(await startStore({ ...options, files: disk })), disk };
}

export type Work = (opened: Opened) => Promise<unknown>;

/** The files left by a process that is killed after `work`. */
export async function killAfter(work: Work, before: Content = new Map()): Promise<Content> {
  const opened = await startWith(before);
  await work(opened);
  const content = opened.disk.content();
  content.delete('lock');
  return content;
}

export async function stopAfter(work: Work, before: Content = new Map()): Promise<Content> {
  const opened = await startWith(before);
  await work(opened);
  await opened.store.close();
  return opened.disk.content();
}

export const writePeople = (...names: string[]) => async ({ store, people }: Opened): Promise<void> => {
  for (const name of names) await store.write((tx) => tx.of(people).insert(createPerson(name)));
};

/** Five commits: two in the snapshots, three in the journal. */
export const createSnapshotAndJournal = (): Promise<Content> =>
  killAfter(async (opened) => {
    await writePeople('a', 'b')(opened);
    await opened.store.checkpoint();
    await writePeople('c', 'd', 'e')(opened);
  });

export const findJournal = (content: Content): string =>
  [...content.keys()].filter((name) => name.startsWith('journal-')).sort().at(-1) ?? '';

export const readText = (content: Content, name: string): string => content.get(name)?.toString() ?? '';

export function editFile(content: Content, name: string, change: (text: string) => string): Content {
  return new Map(content).set(name, Buffer.from(change(readText(content, name))));
}

export const dropLine = (index: number) => (text: string): string => text.split('\n').toSpliced(index, 1).join('\n');

export const joinNames = ({ people }: Opened): string => listRecords(people).map(({ name }) => name).join('');

/** Gives a snapshot the digest that fits it. */
export function fixDigest(content: Content, name: string): Content {
  return editFile(content, name, (text) => {
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
  const content = await stopAfter(async (opened) => {
    await writePeople('a', 'b')(opened);
    await opened.store.write((tx) => tx.of(opened.notes).insert({ person: 1, text: 'x' }));
  });
  let refusals = 0;
  for (const [name, bytes] of content) {
    for (const changed of changes(bytes, step)) {
      const { store } = createStore({ ...options, files: new SimulatedDisk(new Map(content).set(name, changed)) });
      await assert.rejects(store.start(), StoreDamageError);
      refusals += 1;
    }
  }
  return refusals;
}

/**
 * Damages the journals and snapshots of a store that was killed once, and of one that was killed twice and so has two
 * journals. Either the start is refused, or it recovers a prefix of the commits that includes the snapshots and the
 * earlier journal, with a notice.
 */
export async function damageAfterCrash(step: number): Promise<{ refused: number; prefixes: number }> {
  const once = await createSnapshotAndJournal();
  const twice = await killAfter(writePeople('f', 'g'), once);
  const results = [await damaged(once, 'ab', 'cde', step), await damaged(twice, 'abcde', 'fg', step)];
  const sum = (of: 'refused' | 'prefixes'): number => results.reduce((total, each) => total + each[of], 0);
  return { refused: sum('refused'), prefixes: sum('prefixes') };
}

async function damaged(content: Content, certain: string, last: string, step: number) {
  const result = { refused: 0, prefixes: 0 };
  for (const [name, bytes] of content) {
    for (const changed of changes(bytes, step)) {
      const disk = new SimulatedDisk(new Map(content).set(name, changed));
      const opened = createStore({ ...options, files: disk });
      try {
        await opened.store.start();
      } catch (error) {
        assert.ok(error instanceof StoreDamageError, String(error));
        result.refused += 1;
        continue;
      }
      result.prefixes += 1;
      assert.equal(name, findJournal(content), `${name} is damaged and was accepted`);
      const found = joinNames(opened);
      assert.ok(found.startsWith(certain) && `${certain}${last}`.startsWith(found), found);
      assert.ok(opened.notices.some((notice) => notice.includes('not clean')));
      const wholeLines = changed.length < bytes.length && changed.at(-1) === 0x0a;
      assert.ok(wholeLines || opened.notices.some((notice) => notice.includes('cut short')));
    }
  }
  return result;
}
