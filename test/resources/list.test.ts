import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import { createSlices, type Breathe } from '../../src/base/slices.ts';
import { parseQuery } from '../../src/http/head.ts';
import { parseListQuery } from '../../src/resources/list-query.ts';
import { lister, type Listing } from '../../src/resources/list.ts';
import * as fields from '../../src/schema/field.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Collection, Store, StoredRecord } from '../../src/store/store.ts';
import { generator, type Generator } from '../random.ts';

const shape = {
  id: fields.id(),
  name: fields.text({ max: 200 }),
  price: fields.number({ min: 0 }),
  size: fields.optional(fields.integer()),
  email: fields.email(),
};

interface Thing extends StoredRecord {
  readonly name: string;
  readonly price: number;
  readonly size?: number;
  readonly email: string;
  readonly secret: string;
}

/** Time passes whenever somebody looks, so that work is interrupted wherever it may be. */
function restlessSlices(): Breathe {
  let now = 0;
  return createSlices({ now: () => now, elapsed: () => (now += limits.sliceMs) });
}

/** Bytes from a seed. */
const bytes = (random: Generator) => (size: number) =>
  Buffer.from(Array.from({ length: size }, () => random.below(256)));

function thing(random: Generator): Omit<Thing, 'id' | 'revision'> {
  const size = random.below(6);
  return {
    name: `${random.pick(['a', 'b', 'B', 'é', '😀', ''])}${random.below(50)}`,
    price: random.below(500) / 10,
    ...(size > 0 && { size }),
    email: `${random.pick(['Ada', 'ada', 'Bo'])}${random.below(1000)}@x`,
    secret: 'never shown',
  };
}

interface World {
  readonly store: Store;
  readonly things: Collection<Thing>;
  readonly lists: { readonly read: ReturnType<typeof lister<Thing>> };
  readonly random: Generator;
}

async function world(use: string, size: number): Promise<World> {
  const random = generator(use);
  const store = openStore({ clock: { now: () => 0, elapsed: () => 0 }, random: bytes(random) });
  const things = store.collection<Thing>({ name: 'things', parse: () => undefined });
  await store.start();
  await store.write((transaction) => {
    for (let count = 0; count < size; count += 1) transaction.insert(things, thing(random));
  });
  const read = lister(shape, things, restlessSlices());
  return { store, things, lists: { read }, random };
}

function recordsIn(things: Collection<Thing>): Thing[] {
  return things.view().blocks.flat();
}

/** Inserts, replaces and removes some records, but none of `spared`. */
async function change({ store, things, random }: World, count: number, spared: ReadonlySet<number>): Promise<void> {
  await store.write((transaction) => {
    for (let step = 0; step < count; step += 1) {
      const id = 1 + random.below(things.size);
      if (random.below(4) === 0) transaction.insert(things, thing(random));
      else if (spared.has(id) || transaction.get(things, id) === undefined) continue;
      else if (random.below(4) === 0) transaction.remove(things, id);
      else transaction.replace(things, id, thing(random));
    }
  });
}

/** What a list must say, worked out in the plainest way. */
function expected(records: readonly Thing[], query: string): unknown[] {
  const { sort, limit, filters } = parseListQuery(shape, parseQuery(query));
  const keyOf = (record: Thing, name: string): string | number | undefined => {
    if (name === 'email') return record.email.toLowerCase();
    return name === 'id' || name === 'price' || name === 'size' ? record[name] : record.name;
  };
  const passes = (record: Thing): boolean =>
    filters.every(({ name, operator, operands: [operand = '', ...others] }) => {
      const value = keyOf(record, name);
      const wanted = typeof operand === 'string' && name === 'email' ? operand.toLowerCase() : operand;
      if (value === undefined) return operator === 'ne';
      if (operator === 'eq') return value === wanted;
      if (operator === 'ne') return value !== wanted;
      if (operator === 'lt') return value < wanted;
      if (operator === 'gte') return value >= wanted;
      if (operator === 'in') return [wanted, ...others].some((other) => other === value);
      if (operator === 'contains') return String(value).includes(String(wanted));
      assert.equal(operator, 'starts');
      return String(value).startsWith(String(wanted));
    });
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

/** A record as callers see it, in the order of the shape. */
function shown({ id, name, price, size, email }: Thing): unknown {
  return { id, name, price, ...(size !== undefined && { size }), email };
}

async function textOf({ body }: Listing): Promise<string> {
  if (typeof body === 'string') return body;
  const pieces: string[] = [];
  for await (const piece of body) pieces.push(piece);
  return pieces.join('');
}

async function recordsOf(listing: Listing): Promise<unknown[]> {
  const records: unknown = JSON.parse(await textOf(listing));
  assert.ok(Array.isArray(records));
  return records;
}

const sorts = [
  '', 'sort=-id', 'sort=price', 'sort=-price,name', 'sort=name', 'sort=-size', 'sort=size,-price', 'sort=email',
];
const filters = [
  '', 'price:lt=20', 'name:contains=b', 'size=3', 'size:ne=3', 'email:starts=ADA', 'price:gte=10&size:in=1,2',
];
const bounds = ['', 'limit=1', 'limit=20', 'limit=1000'];

for (const size of [0, 1, 900, 5600]) {
  test(`lists of ${size} records say what a plain model says, while records are written`, async () => {
    const all = await world(`lists of ${size}`, size);
    const { things, lists, random, store } = all;
    const reads: Promise<void>[] = [];
    for (let round = 0; round < 60; round += 1) {
      const query = [random.pick(sorts), random.pick(filters), random.pick(bounds)].filter(Boolean).join('&');
      const records = recordsIn(things);
      const withTotal = random.below(2) === 0;
      const read = lists.read(parseListQuery(shape, parseQuery(query)), withTotal).then(async (listing) => {
        assert.deepEqual(await recordsOf(listing), expected(records, query), query);
        const total = expected(records, query.replace(/&?limit=\d+/, '')).length;
        assert.equal(listing.total, withTotal ? total : undefined, query);
      });
      reads.push(read);
      if (size > 0) await change(all, random.pick([1, 20, 400]), new Set());
      if (round % 6 === 0) await Promise.all(reads.splice(0));
    }
    await Promise.all(reads);
    await store.close();
  });

  test(`pages of ${size} records are all of them once, whatever changes beside`, async () => {
    const all = await world(`pages of ${size}`, size);
    const { things, lists, random, store } = all;
    for (const sort of sorts) {
      const sparedRecords = recordsIn(things).filter(() => random.below(2) === 0);
      const spared = new Set(sparedRecords.map(({ id }) => id));
      const first = [sort, random.pick(filters)].filter(Boolean).join('&');
      const seen: unknown[] = [];
      let cursor: string | undefined;
      do {
        const query = [first, `limit=${1 + random.below(400)}`, ...(cursor === undefined ? [] : [`cursor=${cursor}`])];
        const page = await lists.read(parseListQuery(shape, parseQuery(query.filter(Boolean).join('&'))), false);
        seen.push(...(await recordsOf(page)));
        cursor = page.next;
        if (size > 0) await change(all, 20, spared);
      } while (cursor !== undefined);
      const ofSpared = seen.filter((record) => spared.has(Number(Object(record).id)));
      assert.deepEqual(ofSpared, expected(sparedRecords, first), first);
    }
    await store.close();
  });
}

describe('a list without a limit', () => {
  test('goes on after a cursor', async () => {
    const { lists, things, store } = await world('the rest', 3000);
    for (const sort of ['sort=price', 'sort=-id', '']) {
      const page = await lists.read(parseListQuery(shape, parseQuery(`${sort}&limit=7`)), false);
      const rest = await lists.read(parseListQuery(shape, parseQuery(`${sort}&cursor=${page.next}`)), false);
      const records = recordsIn(things);
      assert.deepEqual([...(await recordsOf(page)), ...(await recordsOf(rest))], expected(records, sort));
    }
    await store.close();
  });

  test('comes in pieces of bounded length, and shows one moment however long it takes', async () => {
    const all = await world('pieces', 6000);
    const before = recordsIn(all.things).map(shown);
    const listing = await all.lists.read(parseListQuery(shape, parseQuery('')), false);
    assert.ok(typeof listing.body !== 'string');
    let text = '';
    let longest = 0;
    let pieces = 0;
    for await (const piece of listing.body) {
      text += piece;
      longest = Math.max(longest, piece.length);
      pieces += 1;
      await change(all, 50, new Set());
    }
    assert.deepEqual(JSON.parse(text), before);
    assert.ok(pieces > 4 && longest < 66_000, `${pieces} pieces, the longest of ${longest}`);
    await all.store.close();
  });

  test('is refused where those that nobody reads hold too many records, until one of them is left', async () => {
    const { things, store } = await world('held', 3000);
    const read = lister(shape, things, restlessSlices(), 10_000);
    const open = (query: string): Promise<Listing> => read(parseListQuery(shape, parseQuery(query)), true);
    const leave = async ({ body }: Listing): Promise<unknown> =>
      typeof body === 'string' ? undefined : body[Symbol.asyncIterator]().return?.();
    const refused = { code: 'overloaded', retryAfterSeconds: 5 };
    const byId = await Promise.all(Array.from({ length: 20 }, () => open('')));
    const sorted = await Promise.all(Array.from({ length: 20 }, () => open('sort=name')));
    const other = await open('sort=-price');
    for (const sort of ['sort=price', 'sort=-name', 'sort=price,name']) await assert.rejects(open(sort), refused);
    // Pages are as good as ever.
    for (const _ of [1, 2, 3]) {
      const page = await open('sort=email&limit=20');
      assert.deepEqual(await recordsOf(page), expected(recordsIn(things), 'sort=email&limit=20'));
    }
    await leave(other);
    assert.equal((await recordsOf(await open('sort=price'))).length, 3000);
    for (const listing of sorted.slice(1)) await leave(listing);
    await open('sort=price');
    await assert.rejects(open('sort=-name'), refused, 'one is still there');
    for (const listing of [...byId, ...sorted.slice(0, 1)]) await leave(listing);
    await open('sort=-name');
    await store.close();
  });

  test('is made whatever its length when it is the only one', async () => {
    const { things, store } = await world('alone', 3000);
    const read = lister(shape, things, restlessSlices(), 1000);
    const query = parseListQuery(shape, parseQuery('sort=price'));
    for (const _ of [1, 2]) assert.equal((await recordsOf(await read(query, false))).length, 3000);
    await store.close();
  });

  test('is one text when it is short', async () => {
    const { lists, store } = await world('short', 500);
    const listing = await lists.read(parseListQuery(shape, parseQuery('fields=id')), true);
    assert.equal(typeof listing.body, 'string');
    assert.equal(listing.total, 500);
    await store.close();
  });
});
