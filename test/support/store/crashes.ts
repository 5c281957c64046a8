import assert from 'node:assert/strict';
import { localAdministrator } from '../../../src/auth/access.ts';
import { CairnError } from '../../../src/base/errors.ts';
import { type Clock, systemRandom } from '../../../src/base/system.ts';
import { IdempotencyKeys } from '../../../src/collections/idempotency.ts';
import { makeRegistry } from '../../../src/collections/registry.ts';
import { CollectionResource, localTarget, type NewEntry } from '../../../src/collections/resource.ts';
import { servedCollections } from '../../../src/collections/served.ts';
import { Writes } from '../../../src/collections/writes.ts';
import { defineCollection, type Shape } from '../../../src/index.ts';
import { references } from '../../../src/options/references/references.ts';
import { referenceIn } from '../../../src/schema/field.ts';
import { draft } from '../../../src/schema/validate.ts';
import { storageFull } from '../../../src/store/log.ts';
import { Table } from '../../../src/store/memory/table.ts';
import { TableTransaction } from '../../../src/store/memory/transaction.ts';
import { openStore, type StoreOptions } from '../../../src/store/open-store.ts';
import type { Collection, Store, StoredRecord, Transaction } from '../../../src/store/store.ts';
import {
  crash,
  listRecords,
  type Call,
  type DiskOperation,
  type Fault,
  createMachine,
  createStore,
  type Opened,
  type Person,
  createPerson,
  seedNumbers,
  seedRandom,
  SimulatedDisk,
  small,
  startStore,
  createSteppingClock,
  type Tear,
  tick,
  waitTurns,
  listUnsynced,
} from './fixtures.ts';

/**
 * Collections that refer to each other, on a simulated disk: posts, their comments and what else depends on them. Posts
 * have texts as ids, with nested values and members that are not declared, comments have texts and fractions. A plain
 * model, which knows nothing of ids, indexes and commits, says what each write must do.
 */

const shapes = {
  posts: {
    title: { kind: 'text' },
    slug: { kind: 'text', unique: true, optional: true },
    relatedId: { kind: 'reference', to: 'posts', onDelete: 'clear', optional: true },
    place: {
      kind: 'object', optional: true, fields: { city: { kind: 'text' }, zip: { kind: 'integer', nullable: true } },
    },
    extra: { kind: 'json', optional: true },
  },
  comments: {
    postId: { kind: 'reference', to: 'posts', onDelete: 'remove' },
    parentId: { kind: 'reference', to: 'comments', onDelete: 'remove', optional: true },
    tagIds: { kind: 'list', of: { kind: 'reference', to: 'tags', onDelete: 'clear' } },
  },
  tags: { name: { kind: 'text' } },
  pins: { commentId: { kind: 'reference', to: 'comments' } },
} as const satisfies { readonly [name: string]: Shape };
type Name = keyof typeof shapes;
const names = Object.keys(shapes) as Name[];

const ids = { posts: { kind: 'text' }, comments: { kind: 'any' } } as const;

const collections = names.map((name) =>
  defineCollection({
    name, singular: name.slice(0, -1), fields: shapes[name],
    ...(name === 'posts' && { additional: true }), ...(name in ids && { id: ids[name as keyof typeof ids] }),
  }));
const served = servedCollections({ items: false, collections });

/** The id of a record in place of its number, as callers give it. */
const idOf: { readonly [name in Name]: (number: number) => number | string } = {
  posts: (number) => `k${number}`,
  comments: (number) => (number % 2 === 0 ? number + 0.5 : `c/${number}`),
  tags: (number) => number,
  pins: (number) => number,
};
const numberOf = (id: unknown): number => Math.floor(Number(/[\d.]+/.exec(String(id))?.[0]));

/** A record without its id. */
interface Values {
  readonly [field: string]: string | number | boolean | readonly unknown[] | object | null | undefined;
}

export type Operation =
  | { readonly kind: 'create'; readonly name: Name; readonly records: readonly Values[] }
  | { readonly kind: 'patch'; readonly name: Name; readonly id: number; readonly values: Values }
  | { readonly kind: 'remove'; readonly name: Name; readonly id: number };

/** Makes a random operation, mostly on records that are there. */
export function randomOperation(next: () => number, idsOf: (name: Name) => readonly number[]): Operation {
  const one = (name: Name): number => {
    const ids = idsOf(name);
    return (next() < 0.95 ? ids[Math.floor(next() * ids.length)] : undefined) ?? 1 + Math.floor(next() * 9);
  };
  const maybe = (part: number, value: () => Values): Values => (next() < part ? value() : {});
  const post = (): Values => ({
    title: next() < 0.1 ? 'long äöü '.repeat(20) : 'short',
    ...maybe(0.5, () => ({ slug: `s${Math.floor(next() * 9)}` })),
    ...maybe(0.4, () => ({ relatedId: one('posts') })),
    ...maybe(0.3, () => ({ place: { city: 'Rome', zip: next() < 0.5 ? null : 12 } })),
    ...maybe(0.3, () => ({ extra: [next() < 0.5, { deep: [null, 'x'.repeat(next() * 9)] }] })),
    ...maybe(0.3, () => ({ undeclared: next() < 0.5 ? 'text' : [1, { two: 2 }] })),
  });
  const comment = (): Values => ({
    postId: one('posts'),
    tagIds: Array.from({ length: Math.floor(next() * 3) }, () => one('tags')),
    ...maybe(0.4, () => ({ parentId: one('comments') })),
  });
  const create = (name: Name, ...records: Values[]): Operation => ({ kind: 'create', name, records });
  const choice = next();
  if (choice < 0.15) return create('posts', post());
  if (choice < 0.3) return create('comments', comment());
  if (choice < 0.4) return create('comments', comment(), comment(), comment());
  if (choice < 0.48) return create('tags', { name: 'a' }, { name: 'b' });
  if (choice < 0.54) return create('pins', { commentId: one('comments') });
  if (choice < 0.62) return { kind: 'patch', name: 'posts', id: one('posts'), values: post() };
  if (choice < 0.7) return { kind: 'patch', name: 'comments', id: one('comments'), values: comment() };
  const name = choice < 0.82 ? 'posts' : choice < 0.88 ? 'comments' : choice < 0.94 ? 'tags' : 'pins';
  return { kind: 'remove', name, id: one(name) };
}

export interface Blog {
  readonly store: Store;
  /**
   * Does an operation. Resolves with 'done' or with the code of its refusal. `onRun` gets the transaction each time
   * that it runs.
   */
  run(operation: Operation, onRun?: (transaction: TableTransaction) => void): Promise<string>;
  /** Does what `work` does with its first argument in one transaction. */
  transact<T>(work: (perform: (operation: Operation) => unknown, tx: Transaction) => T): Promise<T>;
  ids(name: Name): number[];
  /** All records by collection, as the model has them. */
  content(): string;
  /** Everything that a restart must give back. */
  state(): string;
  /** Lets so much time pass, and does what happens periodically. */
  pass(ms: number): Promise<void>;
}

/** Makes a blog that has not started. */
export function makeBlog(options: Partial<StoreOptions>): Blog {
  const [clock, machine] = [createSteppingClock(), createMachine()];
  const store = openStore({ random: seedRandom(1), machine, clock, ...options });
  const write = store.write.bind(store);
  let watch: (transaction: TableTransaction) => void = () => undefined;
  store.write = (work) => {
    const onRun = watch;
    return write((transaction) => {
      assert.ok(transaction instanceof TableTransaction);
      onRun(transaction);
      return work(transaction);
    });
  };
  const idempotencyKeys = createKeys(store, clock);
  const registry = makeRegistry({ store, declarations: served, references });
  const writes = new Writes({ store, idempotencyKeys });
  const resources = new Map(Array.from(registry.values(), (each) =>
    [each.name, new CollectionResource(each, { clock, random: systemRandom })]));
  const of = (name: Name): CollectionResource => resources.get(name) ?? assert.fail(name);
  // The values have the types that the shapes demand.
  const input = (name: Name, values: Values): NewEntry => asCallersSend(name, values) as NewEntry;
  const created = (name: Name, values: Values, tx: Transaction): NewEntry => {
    const { undeclared, ...others } = input(name, values);
    const given = name in ids && { id: idOf[name](tx.of(of(name).records).nextId) };
    return { ...given, ...others, ...(undeclared !== undefined && { '.more': { undeclared } }) };
  };
  const perform = (tx: Transaction, operation: Operation): unknown => {
    const { name } = operation;
    const resource = of(name);
    if (operation.kind === 'remove') return resource.remove(tx, localTarget(idOf[name](operation.id)));
    if (operation.kind === 'patch') {
      const patch = Object(input(name, operation.values));
      const change = draft('patch', { shape: resource.collection.fields }, patch, {});
      return resource.change(tx, localTarget(idOf[name](operation.id)), change);
    }
    return operation.records.map((values) => resource.create(tx, localAdministrator, created(name, values, tx)));
  };
  const start = (operation: Operation): Promise<unknown> =>
    writes.write(localAdministrator, (tx) => perform(tx, operation));
  return {
    store,
    async run(operation, onRun = () => undefined) {
      watch = onRun;
      const started = start(operation);
      watch = () => undefined;
      return started.then(() => 'done', (error: unknown) => {
        assert.ok(error instanceof CairnError, error instanceof Error ? error.stack : String(error));
        return error.code;
      });
    },
    transact: (work) => writes.write(localAdministrator, (tx) => work((operation) => perform(tx, operation), tx)),
    pass(ms) {
      clock.advance(ms);
      return tick(machine);
    },
    ids: (name) => listRecords(of(name).records).map(({ id }) => id),
    content: () => JSON.stringify(names.map((name) => listRecords(of(name).records).map((entry) => {
      const { id, revision: _, ownerId: __, '.key': key = id, '.more': more, ...values } = entry;
      assert.equal(key, idOf[name](id));
      return [id, sorted({ ...asModelled(name, values), ...Object(more) })];
    }))),
    state: () => JSON.stringify(names.map((name) => [of(name).records.revision, listRecords(of(name).records)])),
  };
}

const sorted = (values: object): [string, unknown][] =>
  Object.entries(values).filter(([, value]) => value !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));

/** The values with ids in place of the numbers of records. */
function asCallersSend(name: Name, values: Values): Values {
  const changed = referencesOf(name).flatMap(([field, to]) => {
    const value = values[field];
    const sent = (one: unknown): unknown => idOf[to as Name](Number(one));
    return value === undefined ? [] : [[field, Array.isArray(value) ? value.map(sent) : sent(value)]];
  });
  return { ...values, ...Object.fromEntries(changed) };
}

/** The values with numbers in place of ids. */
function asModelled(name: Name, values: Values): Values {
  const changed = referencesOf(name).flatMap(([field]) => {
    const value = values[field];
    return value === undefined ? [] : [[field, Array.isArray(value) ? value.map(numberOf) : numberOf(value)]];
  });
  return { ...values, ...Object.fromEntries(changed) };
}

/** The expected state of the blog: plain maps, searched from end to end. */
export class BlogModel {
  #records = new Map(names.map((name) => [name, new Map<number, Values>()]));
  #lastIds = new Map<Name, number>();

  /** Does an operation; returns 'done' or the code of its refusal. */
  run(operation: Operation): string {
    const before = structuredClone([this.#records, this.#lastIds] as const);
    const outcome = this.#run(operation);
    if (outcome !== 'done') [this.#records, this.#lastIds] = before;
    return outcome;
  }

  content(): string {
    return JSON.stringify(names.map((name) =>
      [...this.#of(name)].sort(([a], [b]) => a - b).map(([id, values]) => [id, sorted(values)])));
  }

  #run(operation: Operation): string {
    const { name } = operation;
    if (operation.kind === 'create') {
      for (const values of operation.records) {
        const refusal = this.#refusal(name, values, {});
        if (refusal !== undefined) return refusal;
        const id = (this.#lastIds.get(name) ?? 0) + 1;
        this.#lastIds.set(name, id);
        this.#of(name).set(id, values);
      }
      return 'done';
    }
    const { id } = operation;
    const former = this.#of(name).get(id);
    if (former === undefined) return 'not_found';
    if (operation.kind === 'remove') return this.#remove(name, id);
    const values = { ...former, ...operation.values };
    const refusal = this.#refusal(name, values, former, id);
    if (refusal === undefined) this.#of(name).set(id, values);
    return refusal ?? 'done';
  }

  #refusal(name: Name, values: Values, former: Values, own?: number): string | undefined {
    for (const [field, to] of referencesOf(name)) {
      if (JSON.stringify(values[field]) === JSON.stringify(former[field])) continue;
      for (const id of idsOf(values, field)) if (!this.#of(to).has(id)) return 'validation_failed';
    }
    const isTaken = values['slug'] !== undefined &&
      [...this.#of(name)].some(([id, { slug }]) => id !== own && slug === values['slug']);
    return isTaken ? 'not_unique' : undefined;
  }

  #remove(name: Name, id: number): string {
    const removed = new Set([`${name}/${id}`]);
    const each = names.flatMap((from) => [...this.#of(from)].map(([id, values]) => ({ from, id, values })));
    const refers = (values: Values, field: string, to: string): boolean =>
      idsOf(values, field).some((id) => removed.has(`${to}/${id}`));
    for (let before = 0; before < removed.size;) {
      before = removed.size;
      for (const { from, id, values } of each) {
        for (const [field, to, onDelete] of referencesOf(from)) {
          if (onDelete === 'remove' && refers(values, field, to)) removed.add(`${from}/${id}`);
        }
      }
    }
    for (const { from, id, values } of each) {
      if (removed.has(`${from}/${id}`)) continue;
      for (const [field, to, onDelete] of referencesOf(from)) {
        if (!refers(values, field, to)) continue;
        if (onDelete === 'refuse') return 'still_referenced';
        const { [field]: value, ...others } = this.#of(from).get(id) ?? {};
        const kept = Array.isArray(value) && { [field]: value.filter((each) => !removed.has(`${to}/${each}`)) };
        this.#of(from).set(id, { ...others, ...kept });
      }
    }
    for (const { from, id } of each) if (removed.has(`${from}/${id}`)) this.#of(from).delete(id);
    return 'done';
  }

  #of(name: string): Map<number, Values> {
    return this.#records.get(name as Name) ?? assert.fail(name);
  }
}

const referencesOf = (name: Name): [field: string, to: string, onDelete: string][] =>
  Object.entries<Shape[string]>(shapes[name]).flatMap(([field, declared]) => {
    const reference = referenceIn(declared);
    return reference === undefined ? [] : [[field, reference.to, reference.onDelete ?? 'refuse']];
  });

const idsOf = (values: Values, field: string): readonly number[] => [values[field] ?? []].flat().map(Number);

/**
 * Returns what runs an operation on a blog, and on a model in the order of the calls: the outcomes must be the same,
 * apart from failures of the store. The answers to calls of one turn come in no order.
 */
export function runOnModel(blog: Blog, model: BlogModel): (operation: Operation) => Promise<string> {
  const called: { readonly operation: Operation; outcome?: string }[] = [];
  return async (operation) => {
    const entry: (typeof called)[number] = { operation };
    called.push(entry);
    entry.outcome = await blog.run(operation);
    for (let [first] = called; first?.outcome !== undefined; [first] = called) {
      called.shift();
      if (isFailure(first.outcome)) continue;
      assert.equal(first.outcome, model.run(first.operation), JSON.stringify(first.operation));
    }
    return entry.outcome;
  };
}

/** True if the store failed and the operation was not decided. */
export const isFailure = (outcome: string): boolean => /^(storage_full|store_failed|outcome_unknown)$/.test(outcome);

/** Idempotency keys on a store that has not started. */
export function createKeys(store: Store, clock: Clock): IdempotencyKeys {
  return new IdempotencyKeys({ store, clock });
}

/** Everything that a restart must give back, as text. */
export function serializeState({ people, notes }: Pick<Opened, 'people' | 'notes'>): string {
  return JSON.stringify([contentOf(people), contentOf(notes)]);
}

function contentOf<R extends StoredRecord>(collection: Collection<R>): unknown {
  const nextId = collection instanceof Table ? collection.nextId : 0;
  return [nextId, collection.revision, listRecords(collection)];
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
  const opened = createStore(options);
  return {
    store: opened.store,
    state: () => serializeState(opened),
    write: (next) => randomWrite(opened, next),
    append: () => opened.store.write((tx) => tx.of(opened.people).insert(createPerson('after'))),
    pass: opened.pass,
  };
};

/** Declared collections that refer to each other, and a model of them that all subjects of one workload share. */
export function blogsWithModel(model = new BlogModel()): MakeSubject {
  return (options) => {
    const blog = makeBlog(options);
    // After a crash the store may be in an earlier state than the model.
    let isModelled = false;
    const run = runOnModel(blog, model);
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

/** The promises that were made while a workload ran. */
export interface History {
  /** The state after each commit that ended a group; index 0 is the empty store. */
  readonly states: string[];
  /** After how many operations of the disk the commit with this sequence had been acknowledged. */
  readonly acknowledged: { readonly operations: number; readonly sequence: number }[];
}

/** The highest sequence that was acknowledged within the first `operations` operations. */
export function lastAcknowledged(history: History, operations: number): number {
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
    if (choice < 0.4) return tx.of(people).insert(createPerson(name)).revision;
    if (choice < 0.6) return tx.of(notes).insert({ person: pick, text }).revision;
    const isThere = tx.of(people).get(pick) !== undefined;
    if (choice < 0.7 && isThere) return tx.of(people).replace(pick, createPerson(name)).revision;
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
  /** Those of the store. */
  readonly options: Partial<StoreOptions>;
}

/**
 * Runs a random workload of `steps` steps on a simulated disk: single writes, bursts, checkpoints during which there
 * is a write, clean restarts and restarts without a stop.
 */
export async function runWorkload(
  seed: number,
  steps: number,
  make: MakeSubject,
  options: Partial<StoreOptions> = small,
): Promise<Workload> {
  const next = seedNumbers(seed);
  const disk = new SimulatedDisk(new Map(), seed % 2 === 0, seed % 3 > 0);
  const history: History = { states: [], acknowledged: [] };
  let subject = await open(make, disk, options);
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
      subject = await open(make, disk, options);
    } else {
      subject = await open(make, disk, options, true);
    }
  }
  return { make, disk, history, options };
}

/** Opens the store on a simulated disk; `killed` says that another process was there and did not stop. */
async function open(
  make: MakeSubject,
  disk: SimulatedDisk,
  options: Partial<StoreOptions>,
  killed = false,
): Promise<Subject> {
  if (killed) await disk.remove('lock').catch(() => undefined);
  const subject = make({ ...options, files: disk });
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
  operations: readonly DiskOperation[],
  length: number,
  next: () => number,
): Generator<CrashState, void, undefined> {
  const prefix = operations.slice(0, length);
  const open = listUnsynced(prefix);
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
    const least = lastAcknowledged(workload.history, length);
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
  operations: readonly DiskOperation[],
  { make, history, options }: Workload,
  least: number,
  next: () => number,
): Promise<SimulatedDisk | undefined> {
  const content = crash(operations.slice(0, state.length), state.dropped, state.tear);
  content.delete('lock');
  const disk = new SimulatedDisk(content, next() < 0.5);
  const dropped = [...state.dropped].join();
  const where = `crash after ${state.length} operations, dropped [${dropped}], ${tearText(state.tear)}`;
  const opened = await open(make, disk, options).catch((error: unknown) => {
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
  assert.equal((await open(make, disk, options)).state(), before, where);
  return undefined;
}

function tearText(tear: Tear | undefined): string {
  return tear === undefined ? 'no tear' : `operation ${tear.index} torn: ${tear.keep} at ${tear.at}`;
}

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
  const next = seedNumbers(seed);
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
    await waitTurns(10);
    await subject.pass(1500);
  }
  let states = 0;
  for (let length = started; length <= disk.operations.length; length += 1) {
    const found = [...crashStates(disk.operations, length, next)];
    const state = found[Math.floor(next() * found.length)];
    const content = crash(disk.operations.slice(0, length), state?.dropped ?? new Set(), state?.tear);
    content.delete('lock');
    const where = `seed ${seed}, crash after ${length} operations, dropped [${[...(state?.dropped ?? [])].join()}]`;
    const again = make({ ...small, files: new SimulatedDisk(content) });
    await again.store.start().catch((error: unknown) => assert.fail(`${where}: ${String(error)}`));
    const { sequence } = again.store.status();
    for (const write of done) assert.ok(write.answered > length || write.sequence <= sequence, `${where}: a loss`);
    // An operation in progress may be there or not, whatever its outcome.
    const unanswered = refused.some(
      (write) => write.began < length && length < write.answered && write.sequence === sequence,
    );
    if (!unanswered) assert.equal(again.state(), known.get(sequence), where);
    states += 1;
  }
  return { refused: refused.length, states };
}

/** The number of writes of a run with each outcome. */
interface Outcomes {
  written: number;
  refused: number;
  unknown: number;
}

/** Work on a store whose calls fail. */
export interface Trial {
  /** A description that completes "while …". */
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
    const opened = createStore({ ...small, files: disk });
    const { store, people } = opened;
    const [written, refused] = [['first'], [] as string[]];
    const insert = (name: string): Promise<Person> => store.write((tx) => tx.of(people).insert(createPerson(name)));
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
        assert.deepEqual(listRecords(people).map(({ name }) => name).sort(), [...written].sort());
        await store.close();
      },
      async judge(disk, where) {
        const after = await startStore({ ...small, files: disk });
        const names = new Set(listRecords(after.people).map(({ name }) => name));
        for (const name of written) assert.ok(names.has(name), `${where}: ${name} was acknowledged and is lost`);
        for (const name of refused) assert.ok(!names.has(name), `${where}: ${name} was refused and is there`);
        await after.store.close();
      },
    };
  },
};

/** What refers to a post is removed with it, or cleared: all of it or nothing. */
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
    const runModelled = runOnModel(blog, model);
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
        // Commits that shared a group were written together or not at all.
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

/** The files that a store with its first records leaves when it is stopped. */
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
  // The call that undoes a failed one, such as the removal of a journal that was not made, fails as well.
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
  const next = seedNumbers(seed);
  const disk = new SimulatedDisk(new Map(), seed % 2 === 0);
  const opened = createStore({ ...small, files: disk });
  const { store, people } = opened;
  await store.start();
  for (const name of ['a', 'b']) await store.write((tx) => tx.of(people).insert(createPerson(name)));
  const begun = disk.operations.length;
  await store.write((tx) => {
    for (let n = 0; n < importedCount; n += 1) tx.of(people).insert(createPerson(`i${n}`));
  });
  const ended = disk.operations.length;
  await store.checkpoint();
  await store.close();
  const seen = { states: 0, none: 0, whole: 0 };
  for (let length = begun; length <= disk.operations.length; length += 1) {
    const found = [...crashStates(disk.operations, length, next)];
    for (const state of [found[0], found[Math.floor(next() * found.length)]]) {
      const content = crash(disk.operations.slice(0, length), state?.dropped ?? new Set(), state?.tear);
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
      const twice = crash(left.operations.slice(0, again), second?.dropped ?? new Set());
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
  const opened = createStore({ ...small, files: disk });
  await opened.store.start().catch((error: unknown) => assert.fail(`${where}: ${String(error)}`));
  const { size } = opened.people;
  const recovered = disk.operations.length;
  assert.ok(size === 2 || size === importedCount + 2, `${where}: ${size} records`);
  await opened.store.write((tx) => tx.of(opened.people).insert(createPerson('later')));
  // A crash that leaves only what was synced.
  const left = crash(disk.operations, new Set(listUnsynced(disk.operations)));
  left.delete('lock');
  const reopened = createStore({ ...small, files: new SimulatedDisk(left) });
  await reopened.store.start();
  assert.equal(listRecords(reopened.people).length, size + 1, where);
  return { size, recovered };
}

/** Tries imports with as many seeds, and sums up the findings. */
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
