import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { CairnError, InvariantError } from '../../../src/base/errors.ts';
import type { App } from '../../../src/index.ts';
import type { TableTransaction } from '../../../src/store/memory/transaction.ts';
import { type RecordChange, type StoredRecord, type Transaction, UniqueKeyError } from '../../../src/store/store.ts';
import { type Blog, BlogModel, isFailure, makeBlog, type Operation, randomOperation } from './crashes.ts';
import {
  listRecords,
  type Fault,
  type Opened,
  type Person,
  createPerson,
  seedNumbers,
  SimulatedDisk,
  small,
  startStore,
  waitTurns,
} from './fixtures.ts';

/** One transaction as its caller saw it. */
interface Observed {
  /** When the call was made and when it was answered, on one clock. */
  readonly called: number;
  answered: number;
  /** The transaction's work again, on the model; returns what it should have seen. */
  readonly replay: (model: Model) => unknown;
  seen: unknown;
  /** When its work ran, among all. */
  order: number;
  failed: boolean;
}

/**
 * Many callers at once write, read and race for the same keys and revisions, on a disk that is full now and then.
 * Afterwards those transactions that were answered well, in the order in which they ran, must have seen just what a
 * plain map shows to one after the other, and that order must not contradict the order in which calls were answered.
 */
export async function checkHistory(
  next: () => number,
  { callers, calls, faults }: { readonly callers: number; readonly calls: number; readonly faults: boolean },
): Promise<{ done: number; failed: number }> {
  const disk = new SimulatedDisk();
  const opened = await startStore({ files: disk, spareBytes: 16 });
  if (faults) disk.fault = ({ operation }) => sometimesFull(operation, next);
  const history: Observed[] = [];
  // Slow enough for a group to gather while another is in flight.
  disk.pause = (at) => (at === 'write' && next() < 0.7 ? waitTurns(Math.floor(next() * 4)) : undefined);
  let now = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let call = 0; call < calls; call += 1) {
        const observed = step(opened, next, (now += 1));
        await observed.done;
        observed.entry.answered = now += 1;
        history.push(observed.entry);
        checkReads(opened);
        if (next() < 0.3) await waitTurns(1 + Math.floor(next() * 3));
        if (next() < 0.02) await opened.store.checkpoint();
        opened.clock.advance(100);
      }
    }),
  );
  const done = history.filter(({ failed }) => !failed).sort((a, b) => a.order - b.order);
  const model = new Model();
  let latestCall = 0;
  for (const entry of done) {
    assert.deepEqual(entry.seen, entry.replay(model));
    assert.ok(entry.answered > latestCall, 'a transaction was answered before one that precedes it was called');
    latestCall = Math.max(latestCall, entry.called);
  }
  assert.deepEqual(listRecords(opened.people), [...model.records.values()]);
  disk.fault = () => undefined;
  await opened.store.close();
  const again = await startStore({ files: disk, spareBytes: 16 });
  assert.deepEqual(listRecords(again.people), [...model.records.values()]);
  return { done: done.length, failed: history.length - done.length };
}

/** The same for declared collections that refer to each other. */
export async function checkBlogHistory(
  next: () => number,
  { callers, calls, faults }: { readonly callers: number; readonly calls: number; readonly faults: boolean },
): Promise<{ done: number; failed: number }> {
  const disk = new SimulatedDisk();
  const options = { files: disk, spareBytes: 16 };
  const blog = makeBlog(options);
  await blog.store.start();
  if (faults) disk.fault = ({ operation }) => sometimesFull(operation, next);
  disk.pause = (at) => (at === 'write' && next() < 0.7 ? waitTurns(Math.floor(next() * 4)) : undefined);
  const { model, ...counts } = await askBlogs(next, Array.from({ length: callers }, () => blog), calls);
  disk.fault = () => undefined;
  await blog.store.close();
  const again = makeBlog(options);
  await again.store.start();
  assert.equal(again.content(), model.content());
  return counts;
}

/**
 * Each blog, which may be a node, or the same as another one, has a caller. Each operation must have had the outcome
 * that it has on the model, in the order of the commits, and what is there at last is what the model has. An operation
 * that wrote nothing comes right before the commit that it would have been.
 */
export async function askBlogs(next: () => number, blogs: readonly Blog[], calls: number, checkpointShare = 0.02) {
  const history: { called: number; answered: number; rank: number; operation: Operation; outcome: string }[] = [];
  let now = 0;
  await Promise.all(blogs.map(async (blog) => {
    for (let call = 0; call < calls; call += 1) {
      const operation = randomOperation(next, blog.ids);
      const called = (now += 1);
      let last: TableTransaction | undefined;
      const outcome = await blog.run(operation, (transaction) => (last = transaction));
      const hasWritten = outcome === 'done' && last !== undefined && last.changes.length > 0;
      const rank = (last?.sequence ?? 0) + (hasWritten ? 0.5 : 0);
      history.push({ called, answered: (now += 1), rank, operation, outcome });
      if (next() < 0.3) await waitTurns(1 + Math.floor(next() * 3));
      if (next() < checkpointShare) await blog.store.checkpoint();
      await blog.pass(100);
    }
  }));
  const done = history.filter(({ outcome }) => !isFailure(outcome));
  done.sort((a, b) => a.rank - b.rank || a.called - b.called);
  const model = new BlogModel();
  let latestCall = 0;
  for (const { operation, outcome, called, answered } of done) {
    assert.equal(outcome, model.run(operation), JSON.stringify(operation));
    assert.ok(answered > latestCall, 'a write was answered before one that precedes it was called');
    latestCall = Math.max(latestCall, called);
  }
  for (const blog of new Set(blogs)) {
    await blog.store.confirm();
    assert.equal(blog.content(), model.content());
  }
  return { model, done: done.length, failed: history.length - done.length };
}

function sometimesFull(operation: string, next: () => number): Fault | undefined {
  return operation === 'write' && next() < 0.2 ? { code: 'ENOSPC', written: Math.floor(next() * 40) } : undefined;
}

/** Works that have run so far, over all histories. */
let orders = 0;

/** Published records agree with their own indexes at every moment. */
function checkReads({ people }: Opened): void {
  const records = listRecords(people);
  assert.equal(records.length, people.size);
  for (const record of records.slice(-3)) {
    assert.equal(people.get(record.id), record);
    assert.equal(people.find('email', record.email), record);
  }
}

function step(opened: Opened, next: () => number, called: number): { entry: Observed; done: Promise<void> } {
  const { store, people } = opened;
  const name = `n${Math.floor(next() * 30)}`;
  const id = 1 + Math.floor(next() * 40);
  const choice = next();
  // The version that the caller read before, for `If-Match`.
  const revision = people.get(id)?.revision;
  const work = (tx: Shown): unknown => {
    const found = tx.get(id);
    const taken = tx.find(createPerson(name).email)?.id;
    if (choice < 0.4) return [found?.name, taken, outcome(() => tx.insert(createPerson(name)).revision)];
    if (found === undefined) return [undefined, taken];
    if (choice < 0.6) return [found.name, taken, outcome(() => tx.replace(id, createPerson(name)).revision)];
    if (choice < 0.8 && found.revision !== revision) return ['precondition failed', found.revision];
    tx.remove(id);
    return [found.name, taken];
  };
  const entry: Observed = {
    called,
    answered: 0,
    replay: (model) => model.run(work),
    seen: undefined,
    order: 0,
    failed: false,
  };
  const writing = store.write((tx) => {
    entry.order = orders += 1;
    entry.seen = work({
      get: (each) => tx.of(people).get(each),
      find: (email) => tx.of(people).find('email', email),
      insert: (record) => tx.of(people).insert(record),
      replace: (each, record) => tx.of(people).replace(each, record),
      remove: (each) => tx.of(people).remove(each),
    });
  });
  const done = writing.catch((error: unknown) => {
    assert.ok(error instanceof CairnError && error.code === 'storage_full', String(error));
    entry.failed = true;
  });
  return { entry, done };
}

/** The transaction's view, which the store and the model must agree on. */
interface Shown {
  get(id: number): Person | undefined;
  find(email: string): Person | undefined;
  insert(record: Omit<Person, 'id' | 'revision'>): Person;
  replace(id: number, record: Omit<Person, 'id' | 'revision'>): Person;
  remove(id: number): void;
}

/** The plain map that the store must look like. */
class Model {
  readonly records = new Map<number, Person>();
  #lastId = 0;
  #sequence = 0;

  run(work: (shown: Shown) => unknown): unknown {
    const revision = this.#sequence + 1;
    const put = (id: number, record: Omit<Person, 'id' | 'revision'>): Person => {
      const holder = [...this.records.values()].find(({ email }) => email === record.email);
      if (holder !== undefined && holder.id !== id) throw new UniqueKeyError('people', 'email');
      this.#sequence = revision;
      this.#lastId = Math.max(this.#lastId, id);
      const stored = { id, revision, ...record };
      this.records.set(id, stored);
      return stored;
    };
    return work({
      get: (id) => this.records.get(id),
      find: (email) => [...this.records.values()].find((record) => record.email === email),
      insert: (record) => put(this.#lastId + 1, record),
      replace: put,
      remove: (id) => {
        this.#sequence = revision;
        this.records.delete(id);
      },
    });
  }
}

function outcome<T>(work: () => T): T | string {
  try {
    return work();
  } catch (error) {
    if (error instanceof UniqueKeyError) return 'taken';
    throw error;
  }
}

/** A counter that many callers increment at once. */
export const counters = { name: 'counters', fields: { value: { kind: 'integer', default: 0 } } } as const;

const json = { 'content-type': 'application/merge-patch+json' };

/** A caller that lost waits longer each time, or 64 callers would all try for each success. */
const patience = (attempt: number): Promise<void> => delay(Math.random() * Math.min(4 ** attempt, 100));

/** Ways to add one to counter 1 of an app with `auth: 'none'`. None may lose another's increment. */
export const increments: Readonly<Record<string, (app: App) => Promise<void>>> = {
  async 'app.write'(app) {
    await app.write((tx) => {
      const { value } = tx.collection(counters).get(1) ?? assert.fail();
      tx.collection(counters).change(1, { value: value + 1 });
    });
  },
  async 'ifVersion'(app) {
    for (let attempt = 0; ; attempt += 1) {
      const record = app.collection(counters).get(1) ?? assert.fail();
      const ifVersion = app.versionOf(record);
      try {
        return void (await app.collection(counters).change(1, { value: record.value + 1 }, { ifVersion }));
      } catch (error) {
        assert.equal(Object(error).code, 'precondition_failed');
        await patience(attempt);
      }
    }
  },
  async 'If-Match'(app) {
    for (let attempt = 0; ; attempt += 1) {
      const read = await app.inject({ target: '/counters/1' });
      const { value } = JSON.parse(read.body);
      const headers = { ...json, 'if-match': read.headers.get('etag') ?? '' };
      const body = JSON.stringify({ value: value + 1 });
      const { status } = await app.inject({ method: 'PATCH', target: '/counters/1', headers, body });
      if (status === 200) return;
      assert.equal(status, 412);
      await patience(attempt);
    }
  },
};

/** Lets 64 callers increment together, `count` times in all, and returns what the counter says. */
export async function runIncrements(app: App, count: number, increment: (app: App) => Promise<void>): Promise<number> {
  await app.collection(counters).create({});
  let left = count;
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await increment(app);
    }
  };
  await Promise.all(Array.from({ length: 64 }, caller));
  return app.collection(counters).get(1)?.value ?? NaN;
}

/**
 * Transactions in which a hook throws, at any change of any operation, and whose work catches the error or not. Either
 * all operations that were not refused are there, or none, in memory and in a copy of the files.
 */

/** Values that a hook may throw. With any of them, nothing of the transaction is stored. */
const mistakes: readonly unknown[] = [
  new Error('a hook throws'), new CairnError('write_refused', 'a hook refuses'), null, Object.create(null),
];

/** One transaction, as it is planned. */
interface Plan {
  readonly steps: readonly { readonly operation: Operation; readonly catches: boolean }[];
  /** The change at which the hook fails. */
  readonly failsAt: number;
  /** The value to throw; `undefined` to set a value that cannot be encoded instead. */
  readonly mistake: unknown;
}

const seen = { transactions: 0, done: 0, refused: 0, failed: 0, caught: 0, kills: 0 };

export async function throwAtRandom(seed: number, transactions: number): Promise<typeof seen> {
  const next = seedNumbers(seed);
  const disk = new SimulatedDisk();
  const blog = makeBlog({ files: disk, ...small });
  await blog.store.start();
  const model = new BlogModel();
  const counts = { ...seen };
  while (counts.transactions < transactions) {
    // Several at a time, so that failing transactions share a batch with successful ones.
    const plans = Array.from({ length: 1 + Math.floor(next() * 6) }, () => plan(next, blog));
    const judges = await Promise.all(plans.map((each) => transact(blog, each, counts)));
    for (const judge of judges) judge(model);
    counts.transactions += plans.length;
    assert.equal(blog.content(), model.content(), `seed ${seed}: in memory`);
    if (next() < 0.05) await blog.store.checkpoint();
    if (next() > 0.1 && counts.transactions < transactions) continue;
    await openCopy(disk, blog, `seed ${seed}: on the disk`);
    counts.kills += 1;
  }
  return counts;
}

function plan(next: () => number, blog: Blog): Plan {
  const steps = Array.from({ length: 1 + Math.floor(next() * 3) }, () => {
    const operation = randomOperation(next, blog.ids);
    const catches = next() < 0.7;
    // Each record of a batch is an operation of its own, which may fail by itself.
    return operation.kind === 'create'
      ? operation.records.map((record) => ({ operation: { ...operation, records: [record] }, catches }))
      : [{ operation, catches }];
  }).flat();
  const failsAt = next() < 0.5 ? 1 + Math.floor(next() * 5) : 0;
  const mistake = next() < 0.1 ? undefined : mistakes[Math.floor(next() * mistakes.length)];
  return { steps, failsAt, mistake };
}

/** Runs a transaction. Returns what does the same on a model, in the order of the calls. */
async function transact(
  blog: Blog,
  { steps, failsAt, mistake }: Plan,
  counts: typeof seen,
): Promise<(model: BlogModel) => void> {
  let hasFailed = false;
  let hasCaught = false;
  const work = (perform: (operation: Operation) => unknown, tx: Transaction): string[] => {
    let changes = 0;
    hasFailed = hasCaught = false;
    tx.onChange((change) => {
      changes += 1;
      if (changes !== failsAt || (mistake === undefined && change.record === undefined)) return amended(change);
      hasFailed = true;
      if (mistake !== undefined) throw mistake;
      return change.record && Object.assign({ ...change.record }, { title: 1n });
    });
    return steps.map(({ operation, catches }) => {
      try {
        perform(operation);
        return 'done';
      } catch (error) {
        if (!catches) throw error;
        hasCaught ||= hasFailed;
        return error instanceof CairnError ? error.code : 'failed';
      }
    });
  };
  const result = await blog.transact(work).then((outcomes) => ({ outcomes }), (error: unknown) => ({ error }));
  if (hasFailed) counts.failed += 1;
  if (hasCaught) counts.caught += 1;
  if ('error' in result) {
    const { error } = result;
    const isMistake = mistake === undefined ? isUnencodable(error) : error === mistake;
    if (!isMistake) assert.ok(error instanceof CairnError, String(error instanceof Error && error.stack));
    if (!hasFailed) counts.refused += 1;
    return () => undefined;
  }
  assert.ok(!hasFailed, 'a transaction succeeds although a hook has failed in it');
  counts.done += 1;
  return (model) => {
    for (const [index, { operation }] of steps.entries()) {
      assert.equal(result.outcomes[index], model.run(asAmended(operation)), JSON.stringify(operation));
    }
  };
}

/** Changes that come with a removal are compared with the expected ones before they are encoded. */
const isUnencodable = (error: unknown): boolean => error instanceof TypeError || error instanceof InvariantError;

/** The hook sets another title in place of a long one. */
function amended({ record }: RecordChange): StoredRecord | undefined {
  const isLong = record !== undefined && 'title' in record && String(record.title).startsWith('long');
  return isLong ? Object.assign({ ...record }, { title: 'amended' }) : undefined;
}

function asAmended(operation: Operation): Operation {
  const set = <V extends { readonly [field: string]: unknown }>(values: V) =>
    String(values['title']).startsWith('long') ? { ...values, title: 'amended' } : values;
  if (operation.kind === 'remove' || operation.name !== 'posts') return operation;
  if (operation.kind === 'patch') return { ...operation, values: set(operation.values) };
  return { ...operation, records: operation.records.map(set) };
}

/** The files of a process that is killed now must open, and hold exactly what was acknowledged. */
async function openCopy(disk: SimulatedDisk, blog: Blog, where: string): Promise<void> {
  const content = disk.content();
  content.delete('lock');
  const again = makeBlog({ files: new SimulatedDisk(content), ...small });
  await again.store.start();
  assert.equal(again.state(), blog.state(), where);
}
