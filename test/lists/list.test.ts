import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import type { Clock } from '../../src/base/system.ts';
import { parseQuery } from '../../src/http/query.ts';
import { ListPool } from '../../src/lists/list-pool.ts';
import { parseListQuery } from '../../src/lists/list-query.ts';
import { readList, type List } from '../../src/lists/list.ts';
import { idField, type Shape } from '../../src/schema/field.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Collection, Store, StoredRecord } from '../../src/store/store.ts';
import { generator, type Generator } from '../.support/random.ts';

const shape = {
  id: idField,
  name: { kind: 'text', max: 200 },
  price: { kind: 'number', min: 0 },
  size: { kind: 'integer', optional: true },
  email: { kind: 'email' },
} as const satisfies Shape;

interface Thing extends StoredRecord {
  readonly name: string;
  readonly price: number;
  readonly size?: number;
  readonly email: string;
  readonly secret: string;
}

/** Returns a clock that advances by a slice at each call, so that work is interrupted wherever possible. */
function restlessClock(): Clock {
  let now = 0;
  return { now: () => now, elapsed: () => (now += limits.sliceMs) };
}

/** Returns reproducible random bytes. */
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
  readonly read: (query: string, withTotal?: boolean, caller?: string) => Promise<List>;
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
  const source = { shape, records: things, pool: new ListPool(restlessClock()) };
  const read: World['read'] = (query, withTotal = false, address = '192.0.2.1') => {
    const { signal } = new AbortController();
    const caller = { caller: address, signal };
    return readList(source, { query: parseListQuery({ shape }, parseQuery(query)), withTotal, caller });
  };
  return { store, things, read, random };
}

function recordsIn(things: Collection<Thing>): Thing[] {
  return things.view().blocks.flat();
}

/** Inserts, replaces and removes some records, except those in `spared`. */
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

/** Returns the expected list, computed in the simplest way. */
function expected(records: readonly Thing[], query: string): unknown[] {
  const { sort, limit, filters } = parseListQuery({ shape }, parseQuery(query));
  const keyOf = (record: Thing, name: string): string | number | undefined => {
    if (name === 'email') return record.email.toLowerCase();
    return name === 'id' || name === 'price' || name === 'size' ? record[name] : record.name;
  };
  const passes = (record: Thing): boolean =>
    filters.every(({ names: [name = ''], operator, operands: [operand = '', ...others] }) => {
      const has = (text: string): boolean => text.toLowerCase().includes(String(operand).toLowerCase());
      if (operator === 'search') return has(record.name) || has(record.email);
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

/** Returns a record as callers see it, in the order of the shape. */
function shown({ id, name, price, size, email }: Thing): unknown {
  return { id, name, price, ...(size !== undefined && { size }), email };
}

async function textOf({ body }: List): Promise<string> {
  if (typeof body === 'string') return body;
  const pieces: string[] = [];
  for await (const piece of body) pieces.push(piece);
  return pieces.join('');
}

async function recordsOf(list: List): Promise<unknown[]> {
  const records: unknown = JSON.parse(await textOf(list));
  assert.ok(Array.isArray(records));
  return records;
}

/** Compares JSON values by their texts, in a fraction of the time of a deep comparison. */
function assertSame(actual: unknown, wanted: unknown, message: string): void {
  if (JSON.stringify(actual) !== JSON.stringify(wanted)) assert.deepEqual(actual, wanted, message);
}

const sorts = [
  '', 'sort=-id', 'sort=price', 'sort=-price,name', 'sort=name', 'sort=-size', 'sort=size,-price', 'sort=email',
];
const filters = [
  '', 'price:lt=20', 'name:contains=b', 'size=3', 'size:ne=3', 'email:starts=ADA', 'price:gte=10&size:in=1,2',
  'q=b1', 'q=O', 'q=%C3%89&price:lt=40', 'q=A%40x',
];
const bounds = ['', 'limit=1', 'limit=20', 'limit=1000'];

/** Chooses records that stay unchanged, and a query. `check` verifies that pages contain them once. */
function sparedIn({ things, random }: World, sort: string) {
  const records = recordsIn(things).filter(() => random.below(2) === 0);
  const ids = new Set(records.map(({ id }) => id));
  const query = [sort, random.pick(filters)].filter(Boolean).join('&');
  const check = (seen: readonly unknown[]): void => {
    const kept = seen.filter((record) => ids.has(Number(Object(record).id)));
    assertSame(kept, expected(records, query), query);
  };
  return { ids, query, check };
}

for (const size of [0, 1, 900, 5600]) {
  test(`lists of ${size} records agree with a simple model while records are written`, async () => {
    const all = await world(`lists of ${size}`, size);
    const { things, read, random, store } = all;
    const reads: Promise<void>[] = [];
    for (let round = 0; round < 60; round += 1) {
      const query = [random.pick(sorts), random.pick(filters), random.pick(bounds)].filter(Boolean).join('&');
      const records = recordsIn(things);
      const withTotal = random.below(2) === 0;
      const reading = read(query, withTotal).then(async (listing) => {
        const matching = expected(records, query.replace(/&?limit=\d+/, ''));
        const limit = Number(/limit=(\d+)/.exec(query)?.[1] ?? Infinity);
        assertSame(await recordsOf(listing), matching.slice(0, limit), query);
        assert.equal(listing.total, withTotal ? matching.length : undefined, query);
      });
      reads.push(reading);
      if (size > 0) await change(all, random.pick([1, 20, 400]), new Set());
      if (round % 6 === 0) await Promise.all(reads.splice(0));
    }
    await Promise.all(reads);
    await store.close();
  });

  test(`pages of ${size} records contain each unchanged record once while others change`, async () => {
    const all = await world(`pages of ${size}`, size);
    const { read, random, store } = all;
    for (const sort of sorts) {
      const { ids, query: first, check } = sparedIn(all, sort);
      const seen: unknown[] = [];
      let cursor: string | undefined;
      do {
        const query = [first, `limit=${1 + random.below(400)}`, ...(cursor === undefined ? [] : [`cursor=${cursor}`])];
        const page = await read(query.filter(Boolean).join('&'));
        seen.push(...(await recordsOf(page)));
        cursor = page.next;
        if (size > 0) await change(all, 20, ids);
      } while (cursor !== undefined);
      check(seen);
    }
    await store.close();
  });
}

test('pages lead backwards from the last page', async () => {
  const all = await world('pages backwards', 2500);
  const { read, random, store } = all;
  for (const sort of sorts) {
    const { ids, query: first, check } = sparedIn(all, sort);
    const seen: unknown[] = [];
    let until: string | undefined = 'end';
    do {
      const page: List = await read(`${first}&limit=${1 + random.below(400)}&until=${until}`.replace(/^&/, ''));
      assert.equal(page.next, undefined);
      seen.unshift(...(await recordsOf(page)));
      until = page.previous;
      await change(all, 20, ids);
    } while (until !== undefined);
    check(seen);

    // The cursor of a page is the end of the previous page.
    const start = await read(`${first}&limit=20`.replace(/^&/, ''));
    if (start.next === undefined) continue;
    const before = await read(`${first}&limit=20&until=${start.next}`.replace(/^&/, ''), true);
    assert.deepEqual([await textOf(before), before.previous], [await textOf(start), undefined], first);
    const after = await read(`${first}&limit=20&cursor=${start.next}`.replace(/^&/, ''));
    if (after.next === undefined) continue;
    const middle = await read(`${first}&limit=20&until=${after.next}`.replace(/^&/, ''));
    assert.equal(await textOf(middle), await textOf(after), first);
  }
  await store.close();
});

describe('a sorted view', () => {
  test('gives the same lists and pages as the model, at the first and at each further time', async () => {
    const { read, things, random, store } = await world('sorted views', 5600);
    for (const sort of sorts) {
      for (const filter of ['', 'price:gte=20', 'q=a']) {
        const query = [sort, filter].filter(Boolean).join('&');
        const all = expected(recordsIn(things), query);
        for (const time of ['first', 'second', 'third']) {
          assertSame(await recordsOf(await read(query)), all, `${query}, ${time}`);
          const size = 1 + random.below(900);
          const page = await read(`${query}&limit=${size}`.replace(/^&/, ''));
          assertSame(await recordsOf(page), all.slice(0, size), `${query}, ${time}`);
          if (page.next === undefined) continue;
          const next = await read(`${query}&limit=${size}&cursor=${page.next}`.replace(/^&/, ''));
          assertSame(await recordsOf(next), all.slice(size, 2 * size), `${query}, ${time}`);
          const last = await read(`${query}&limit=${size}&until=end`.replace(/^&/, ''));
          assertSame(await recordsOf(last), all.slice(-size), `${query}, ${time}`);
        }
      }
    }
    await store.close();
  });

  test('is made at the second list in its order, serves those that follow, and goes with a change', async () => {
    const all = await world('kept', 5600);
    let turns = 0;
    const clock = { now: () => 0, elapsed: () => (turns += 1) };
    const source = { shape, records: all.things, pool: new ListPool(clock) };
    const caller = { caller: 'one', signal: new AbortController().signal };
    const turnsOf = async (text: string): Promise<number> => {
      const before = turns;
      await readList(source, { query: parseListQuery({ shape }, parseQuery(text)), withTotal: false, caller });
      return turns - before;
    };
    const steps = 5600 / 64;
    assert.ok((await turnsOf('sort=price&limit=20')) > steps);
    assert.ok((await turnsOf('sort=price&limit=20')) > steps);
    assert.ok((await turnsOf('sort=price&limit=20')) < 5);
    assert.ok((await turnsOf('sort=price&limit=20&until=end')) > steps, 'another order');
    await all.store.write((transaction) => transaction.remove(all.things, 1));
    assert.ok((await turnsOf('sort=price&limit=20')) > steps, 'another state');
    await all.store.close();
  });

  test('is sorted again after the caller that began it has gone', async () => {
    const { things, store } = await world('begun', 5600);
    const source = { shape, records: things, pool: new ListPool(restlessClock()) };
    const query = parseListQuery({ shape }, parseQuery('sort=price&limit=20'));
    const ask = (signal: AbortSignal): Promise<List> =>
      readList(source, { query, withTotal: false, caller: { caller: 'one', signal } });
    const stays = new AbortController().signal;
    const wanted = await textOf(await ask(stays));
    const leaving = new AbortController();
    const begun = ask(leaving.signal);
    const beside = ask(stays);
    leaving.abort();
    await assert.rejects(begun, { code: 'draining' });
    assert.equal(await textOf(await beside), wanted);
    assert.equal(await textOf(await ask(stays)), wanted);
    await store.close();
  });
});

describe('a list without a limit', () => {
  test('continues after a cursor', async () => {
    const { read, things, store } = await world('the rest', 3000);
    for (const sort of ['sort=price', 'sort=-id', '']) {
      const page = await read(`${sort}&limit=7`);
      const rest = await read(`${sort}&cursor=${page.next}`);
      const records = recordsIn(things);
      assert.deepEqual([...(await recordsOf(page)), ...(await recordsOf(rest))], expected(records, sort));
    }
    await store.close();
  });

  test('comes in pieces of bounded length, as a snapshot of one point in time', async () => {
    for (const query of ['', 'sort=-price']) {
      const all = await world('pieces', 6000);
      const before = expected(recordsIn(all.things), query);
      const { body } = await all.read(query);
      assert.ok(typeof body !== 'string');
      let text = '';
      let longest = 0;
      let pieces = 0;
      for await (const piece of body) {
        text += piece;
        longest = Math.max(longest, piece.length);
        pieces += 1;
        await change(all, 50, new Set());
      }
      assert.deepEqual(JSON.parse(text), before);
      assert.ok(pieces > 4 && longest < 66_000, `${pieces} pieces, the longest of ${longest}`);
      await all.store.close();
    }
  });

  test('is a single string when it is short', async () => {
    const { read, store } = await world('short', 500);
    const list = await read('fields=id', true);
    assert.equal(typeof list.body, 'string');
    assert.equal(list.total, 500);
    await store.close();
  });
});

describe('a long list', () => {
  const refused = { code: 'overloaded', retryAfterSeconds: 1 };
  const leave = async ({ body }: List): Promise<unknown> =>
    typeof body === 'string' ? undefined : body[Symbol.asyncIterator]().return?.();
  const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, index) => make(index)));

  test('holds a place until it is sent or abandoned, and each caller has a share of the places', async () => {
    const { read, store } = await world('shares', 9000);
    const own = await times(limits.listsPerCallerMax, (index) => read(index % 2 === 0 ? '' : 'sort=price'));
    for (const query of ['', 'sort=name', 'price:lt=0', 'price:lt=0&limit=1', 'limit=1&sort=price']) {
      await assert.rejects(read(query), refused, query);
    }
    assert.equal((await recordsOf(await read('limit=20'))).length, 20, 'a page that is found at once');
    assert.equal((await recordsOf(await read('price:lt=0&limit=1', false, '192.0.2.2'))).length, 0, 'another caller');
    for (const list of own.slice(0, 2)) await leave(list);
    assert.equal((await recordsOf(await read('sort=-name'))).length, 9000);
    for (const list of own.slice(2, 4)) assert.equal((await recordsOf(list)).length, 9000);
    await times(4, () => read(''));
    await assert.rejects(read(''), refused);
    await store.close();
  });

  test('of a page holds its place only while it is read', async () => {
    const { read, store } = await world('pages in the making', 9000);
    const made = times(limits.listsPerCallerMax, () => read('limit=1&sort=price'));
    await times(20, () => assert.rejects(read('limit=1&sort=price'), refused));
    await made;
    for (let round = 0; round < 20; round += 1) await read('limit=1&sort=price', true);
    await store.close();
  });

  test('is refused when other callers hold all places', async () => {
    const { read, store } = await world('all places', 9000);
    const address = (index: number): string => `192.0.2.${10 + Math.floor(index / limits.listsPerCallerMax)}`;
    const lists = await times(limits.listsMax, (index) => read('', false, address(index)));
    await assert.rejects(read('', false, '192.0.2.9'), refused);
    await Promise.all(lists.map(leave));
    await leave(await read('', false, '192.0.2.9'));
    await store.close();
  });

  test('needs no place in a collection of a few thousand records', async () => {
    const { read, store } = await world('free', 8000);
    const queries = ['', 'sort=price', 'sort=name&limit=5', 'price:lt=1'];
    const lists = await times(100, (index) => read(queries[index % queries.length] ?? ''));
    for (const list of lists) await textOf(list);
    await store.close();
  });

  test('stops within a slice when its caller has disconnected', async () => {
    const { things, store } = await world('left', 9000);
    const pool = new ListPool(restlessClock());
    for (const query of ['sort=price', 'price:lt=0', 'limit=5&sort=price', '']) {
      const leaving = new AbortController();
      const caller = { caller: 'one', signal: leaving.signal };
      const asked = { query: parseListQuery({ shape }, parseQuery(query)), withTotal: false, caller };
      const list = readList({ shape, records: things, pool }, asked).then(textOf);
      setImmediate(() => leaving.abort());
      await assert.rejects(list, { code: 'draining' }, query);
    }
    const caller = { caller: 'one', signal: new AbortController().signal };
    const asked = { query: parseListQuery({ shape }, parseQuery('')), withTotal: false, caller };
    await times(limits.listsPerCallerMax, () => readList({ shape, records: things, pool }, asked));
    await store.close();
  });
});
