/** A small collection with random records, and the lists that are expected of it, computed in the simplest way. */
import assert from 'node:assert/strict';
import { limits } from '../../src/base/limits.ts';
import type { Clock } from '../../src/base/system.ts';
import '../../src/collections/indexed-reader.ts';
import { makeReader } from '../../src/collections/reader.ts';
import { parseQuery } from '../../src/http/query.ts';
import { ListPool } from '../../src/lists/list-pool.ts';
import { type List, readList } from '../../src/lists/list.ts';
import { type Block, comparator } from '../../src/lists/order.ts';
import { parseListQuery } from '../../src/lists/query.ts';
import { SortedBlocks } from '../../src/lists/sorted-blocks.ts';
import { type Shape, idField } from '../../src/schema/field.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Collection, Store, StoredRecord } from '../../src/store/store.ts';
import { type Generator, createGenerator } from './basics.ts';

export const shape = {
  id: idField,
  name: { kind: 'text', max: 200 },
  price: { kind: 'number', min: 0 },
  size: { kind: 'integer', optional: true },
  email: { kind: 'email' },
} as const satisfies Shape;

export interface Thing extends StoredRecord {
  readonly name: string;
  readonly price: number;
  readonly size?: number;
  readonly email: string;
  readonly secret: string;
  readonly ownerId: number;
}

/** Returns a clock that advances by a slice at each call, so that work is interrupted wherever possible. */
export function createTickingClock(): Clock {
  let now = 0;
  return { now: () => now, elapsed: () => (now += limits.sliceMs) };
}

/** Returns reproducible random bytes. */
const bytes = (random: Generator) => (size: number) =>
  Buffer.from(Array.from({ length: size }, () => random.below(256)));

export function createThing(random: Generator): Omit<Thing, 'id' | 'revision'> {
  const size = random.below(6);
  const price = random.below(500) / 10;
  return {
    name: `${random.pick(['a', 'b', 'B', 'é', '😀', ''])}${random.below(50)}`,
    price,
    // The second owner's records lie at one end of an order.
    ownerId: price >= 40 ? 2 : random.pick([1, 1, 1, 3]),
    ...(size > 0 && { size }),
    email: `${random.pick(['Ada', 'ada', 'Bo'])}${random.below(1000)}@x`,
    secret: 'never shown',
  };
}

export interface World {
  readonly store: Store;
  readonly things: Collection<Thing>;
  /** `userId`: reads only this user's records. */
  readonly read: (query: string, withTotal?: boolean, caller?: string, userId?: number) => Promise<List>;
  readonly pool: ListPool;
  readonly random: Generator;
}

export async function createWorld(use: string, size: number, random = createGenerator(use)): Promise<World> {
  const store = openStore({ clock: { now: () => 0, elapsed: () => 0 }, random: bytes(random) });
  const groups = { ownerId: ({ ownerId }: Thing) => ownerId };
  const things = store.collection<Thing>({ name: 'things', parse: () => 'is none', groups });
  await store.start();
  await store.write((transaction) => {
    for (let count = 0; count < size; count += 1) transaction.of(things).insert(createThing(random));
  });
  const pool = new ListPool(createTickingClock());
  const source = { fields: shape, records: things, pool };
  const access = { list: 'owner', read: 'owner' };
  const read: World['read'] = async (query, withTotal = false, address = '192.0.2.1', userId = 0) => {
    const { signal } = new AbortController();
    const caller = { caller: address, signal };
    const principal = { kind: 'bearer', userId, role: 'member', issuedAt: 0 } as const;
    const reader = userId === 0 ? undefined : makeReader({ records: things, access }, principal, 'list');
    return readList(source, { query: parseListQuery({ fields: shape }, parseQuery(query)), withTotal, caller, reader });
  };
  return { store, things, read, random, pool };
}

export function sortRecords(things: Collection<Thing>): Thing[] {
  return things.view().blocks.flat();
}

/** Inserts, replaces and removes some records, except those in `spared`. */
export async function changeThings(world: World, count: number, spared: ReadonlySet<number>): Promise<void> {
  const { store, things, random } = world;
  await store.write((transaction) => {
    for (let step = 0; step < count; step += 1) {
      const id = 1 + random.below(things.size);
      if (random.below(4) === 0) transaction.of(things).insert(createThing(random));
      else if (spared.has(id) || transaction.of(things).get(id) === undefined) continue;
      else if (random.below(4) === 0) transaction.of(things).remove(id);
      else transaction.of(things).replace(id, createThing(random));
    }
  });
}

/** Returns the expected list, computed in the simplest way. */
export function listExpected(records: readonly Thing[], query: string): unknown[] {
  const { sort, limit, filters } = parseListQuery({ fields: shape }, parseQuery(query));
  const keyOf = (record: Thing, name: string): string | number | undefined => {
    if (name === 'email') return record.email.toLowerCase();
    return name === 'id' || name === 'price' || name === 'size' ? record[name] : record.name;
  };
  const passes = (record: Thing): boolean =>
    filters.every((conditions) => conditions.some(({ name, operator, operands: [operand = '', ...others] }) => {
      const has = (text: string): boolean => text.toLowerCase().includes(String(operand).toLowerCase());
      if (operator === 'search') return has(record.name) || has(record.email);
      const value = keyOf(record, name);
      const wanted = typeof operand === 'string' && name === 'email' ? operand.toLowerCase() : operand;
      if (value === undefined) return operator === 'ne' || (operator === 'exists' && wanted === false);
      if (operator === 'eq') return value === wanted;
      if (operator === 'ne') return value !== wanted;
      if (operator === 'lt') return value < wanted;
      if (operator === 'lte') return value <= wanted;
      if (operator === 'gt') return value > wanted;
      if (operator === 'gte') return value >= wanted;
      if (operator === 'in') return [wanted, ...others].some((other) => other === value);
      if (operator === 'contains') return String(value).includes(String(wanted));
      if (operator === 'exists') return wanted === true;
      if (operator === 'ends') return String(value).endsWith(String(wanted));
      assert.equal(operator, 'starts');
      return String(value).startsWith(String(wanted));
    }));
  const compare = (a: Thing, b: Thing): number => {
    for (const { name, descending } of sort) {
      const [x, y] = [keyOf(a, name), keyOf(b, name)];
      if (x === y) continue;
      const order = x === undefined || (y !== undefined && x > y) ? 1 : -1;
      return descending ? -order : order;
    }
    return 0;
  };
  return records.filter(passes).sort(compare).slice(0, limit).map(shown);
}

/** Returns a record as callers see it, in the order of the shape. */
function shown({ id, name, price, size, email }: Thing): unknown {
  return { id, name, price, ...(size !== undefined && { size }), email };
}

export async function readText({ body }: List): Promise<string> {
  if (typeof body === 'string') return body;
  const pieces: string[] = [];
  for await (const piece of body) pieces.push(piece);
  return pieces.join('');
}

export async function readRecords(list: List): Promise<unknown[]> {
  const records: unknown = JSON.parse(await readText(list));
  assert.ok(Array.isArray(records));
  return records;
}

/** Holds a list to the text of these records: a deep comparison takes much longer, and says less of the order. */
export async function assertList(list: List, wanted: readonly unknown[], message: string): Promise<void> {
  const text = await readText(list);
  if (text !== JSON.stringify(wanted)) assert.deepEqual(JSON.parse(text), wanted, message);
  assert.equal(text, JSON.stringify(wanted), message);
}

export const sorts = [
  '', 'sort=-id', 'sort=price', 'sort=-price,name', 'sort=name', 'sort=-size', 'sort=size,-price', 'sort=email',
];
export const filters = [
  '', 'price:lt=20', 'name:contains=b', 'size=3', 'size:ne=3', 'email:starts=ADA', 'price:gte=10&size:in=1,2',
  'q=b1', 'q=O', 'q=%C3%89&price:lt=40', 'q=A%40x',
  'name:ends=1&price=3.5&price:gte=1', 'size=1&size=5', 'size:exists=false',
  'or=(size:exists:false,price:lt:5,name:ends:3)', 'or=(size:eq:2,size:eq:4)&price:gte=20&id:ne=4&id:ne=7',
];
export const bounds = ['', 'limit=1', 'limit=20', 'limit=1000'];

/** Chooses records that stay unchanged, and a query. `check` verifies that pages contain them once. */
export function chooseSpared({ things, random }: World, sort: string) {
  const records = sortRecords(things).filter(() => random.below(2) === 0);
  const ids = new Set(records.map(({ id }) => id));
  const query = [sort, random.pick(filters)].filter(Boolean).join('&');
  const check = (seen: readonly unknown[]): void => {
    const kept = seen.filter((record) => ids.has(Number(Object(record).id)));
    assert.equal(JSON.stringify(kept), JSON.stringify(listExpected(records, query)), query);
  };
  return { ids, query, check };
}

/**
 * Runs one random history: writes, and lists with random orders, filters and limits, some of them read while further
 * writes are made. Each list must agree with the records as they were when it started.
 */
export async function runHistory(random: Generator): Promise<void> {
  const all = await createWorld('history', random.pick([0, 3, 100, 1200, 3000]), random);
  const { read, things, store, pool } = all;
  const queries = Array.from({ length: 1 + random.below(6) }, () => random.pick(sorts));
  const reads: Promise<void>[] = [];
  for (let round = 0; round < 40; round += 1) {
    const parts = [random.pick(queries), random.pick([...filters, 'price:gte=10&price:lt=20']), random.pick(bounds)];
    const query = parts.filter(Boolean).join('&');
    const userId = random.pick([0, 0, 1, 2, 3, 4]);
    const seen = sortRecords(things).filter(({ ownerId }) => userId === 0 || userId === ownerId);
    const wanted = listExpected(seen, query);
    const step = Promise.resolve(read(query, false, undefined, userId)).then((list) => assertList(list, wanted, query));
    reads.push(step);
    await changeThings(all, random.pick([0, 1, 5, 60]), new Set());
    if (random.below(5) === 0) await pool.orders.settled();
    if (reads.length > 5) await Promise.all(reads.splice(0));
  }
  await Promise.all(reads);
  await store.close();
}

export const compare = comparator({ id: idField, price: { kind: 'number' } }, [
  { name: 'price', descending: false },
  { name: 'id', descending: true },
]);

export interface Priced {
  readonly id: number;
  readonly revision: number;
  readonly price: number;
}

/** A history: records come, change and go, in bursts; every view must stay as it was. */
export function runSortedHistory(random: Generator): void {
  const moves = random.pick([10, 300, 5000]);
  const kept = new SortedBlocks(compare);
  const records = new Map<number, Priced>();
  const views: { readonly view: readonly Block[]; readonly wanted: string }[] = [];
  const prices = random.pick([3, 1000, 1_000_000]);
  const begun = Array.from({ length: random.pick([0, 1, 2500]) }, (_, index) => ({
    id: index + 1,
    revision: 1,
    price: random.below(prices),
  })).sort(compare);
  for (let at = 0; at < begun.length; at += 1024) kept.append(begun.slice(at, at + 1024));
  for (const record of begun) records.set(record.id, record);
  let growth = 5;
  for (let count = 0; count < moves; count += 1) {
    if (random.below(1000) === 0) growth = random.below(10);
    const id = random.below(10) < growth ? records.size + count + 1 : random.below(records.size + count + 1);
    const before = records.get(id);
    const isGone = before !== undefined && random.below(10) >= growth;
    const price = random.below(3) === 0 ? (before?.price ?? 1) : random.below(prices);
    const after = isGone ? undefined : { id, revision: count, price };
    kept.move(before, after);
    if (after === undefined) records.delete(id);
    else records.set(id, after);
    if (random.below(moves) < 4 || count === moves - 1) {
      const wanted = JSON.stringify([...records.values()].sort(compare));
      views.push({ view: kept.view(), wanted });
    }
  }
  assert.equal(kept.view().flat().length, records.size);
  for (const { view, wanted } of views) {
    assert.equal(JSON.stringify(view.flat()), wanted);
    assert.ok(view.every(({ length }) => length > 0 && length <= 1024));
  }
}
