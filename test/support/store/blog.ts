/**
 * Collections that refer to each other, on a simulated disk: posts, their comments and what else depends on them. Posts
 * have texts as ids, with nested values and members that are not declared, comments have texts and fractions. A plain
 * model, which knows nothing of ids, indexes and commits, says what each write must do.
 */
import assert from 'node:assert/strict';
import { localAdministrator } from '../../../src/auth/access.ts';
import { CairnError } from '../../../src/base/errors.ts';
import { type Clock, systemRandom } from '../../../src/base/system.ts';
import { IdempotencyKeys } from '../../../src/collections/idempotency.ts';
import { registryOf } from '../../../src/collections/registry.ts';
import { CollectionResource, type NewEntry, localTarget } from '../../../src/collections/resource.ts';
import { servedCollections } from '../../../src/collections/served.ts';
import { Writes } from '../../../src/collections/writes.ts';
import { type Shape, defineCollection } from '../../../src/index.ts';
import { references } from '../../../src/options/references/references.ts';
import { referenceIn } from '../../../src/schema/field.ts';
import { draft } from '../../../src/schema/validate.ts';
import { TableTransaction } from '../../../src/store/memory/transaction.ts';
import { type StoreOptions, openStore } from '../../../src/store/open-store.ts';
import type { Store, Transaction } from '../../../src/store/store.ts';
import { all, machineWith, seededRandom, steppingClock, tick } from './fixtures.ts';

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
  const [clock, machine] = [steppingClock(), machineWith()];
  const store = openStore({ random: seededRandom(1), machine, clock, ...options });
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
  const idempotencyKeys = keysOn(store, clock);
  const registry = registryOf(store, served, undefined, references);
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
    ids: (name) => all(of(name).records).map(({ id }) => id),
    content: () => JSON.stringify(names.map((name) => all(of(name).records).map((entry) => {
      const { id, revision: _, ownerId: __, '.key': key = id, '.more': more, ...values } = entry;
      assert.equal(key, idOf[name](id));
      return [id, sorted({ ...asModelled(name, values), ...Object(more) })];
    }))),
    state: () => JSON.stringify(names.map((name) => [of(name).records.revision, all(of(name).records)])),
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

/** What the blog must look like: plain maps, in which everything is found by looking at everything. */
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
export function modelled(blog: Blog, model: BlogModel): (operation: Operation) => Promise<string> {
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

/** Whether the store failed, and the operation was not decided. */
export const isFailure = (outcome: string): boolean => /^(storage_full|store_failed|outcome_unknown)$/.test(outcome);

/** Idempotency keys on a store that has not started. */
export function keysOn(store: Store, clock: Clock): IdempotencyKeys {
  return new IdempotencyKeys({ store, clock });
}
