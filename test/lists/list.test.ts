import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import { describe, test } from 'node:test';
import v8 from 'node:v8';
import { limits } from '../../src/base/limits.ts';
import { makeReader } from '../../src/collections/reader.ts';
import { parseQuery } from '../../src/http/query.ts';
import { ListPool } from '../../src/lists/list-pool.ts';
import { parseListQuery } from '../../src/lists/query.ts';
import { readList, type List } from '../../src/lists/list.ts';
import { idField, type Shape } from '../../src/schema/field.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { StoredRecord } from '../../src/store/store.ts';
import { createGenerator } from '../support/basics.ts';
import {
  assertList,
  bounds,
  changeThings,
  listExpected,
  filters,
  sortRecords,
  readRecords,
  createTickingClock,
  runHistory,
  shape,
  sorts,
  chooseSpared,
  readText,
  createWorld,
} from '../support/lists.ts';

for (const size of [0, 1, 900, 2500]) {
  test(`lists of ${size} records agree with a simple model while records are written`, async () => {
    const all = await createWorld(`lists of ${size}`, size);
    const { things, read, random, store } = all;
    const reads: Promise<void>[] = [];
    for (let round = 0; round < (size < 900 ? 20 : 40); round += 1) {
      const parts = [random.pick(sorts), random.pick(filters), random.pick(bounds)];
      const start = random.pick([-1, 0, 3, 1200, 2400]);
      const offset = parts[2]?.startsWith('limit') && start >= 0 ? start : undefined;
      const query = [...parts, offset !== undefined && `offset=${offset}`].filter(Boolean).join('&');
      const records = sortRecords(things);
      const withTotal = random.below(2) === 0;
      const reading = read(query, withTotal).then(async (listing) => {
        const matching = listExpected(records, query.replace(/&?limit=\d+(?:&offset=\d+)?/, ''));
        const limit = Number(/limit=(\d+)/.exec(query)?.[1] ?? Infinity);
        await assertList(listing, matching.slice(offset, (offset ?? 0) + limit), query);
        assert.equal(listing.total, withTotal ? matching.length : undefined, query);
      });
      reads.push(reading);
      if (size > 0) await changeThings(all, random.pick([1, 20, 400]), new Set());
      if (round % 6 === 0) await Promise.all(reads.splice(0));
    }
    await Promise.all(reads);
    await store.close();
  });

  test(`pages of ${size} records contain each unchanged record once while others change`, async () => {
    const all = await createWorld(`pages of ${size}`, size);
    const { read, random, store } = all;
    for (const sort of sorts) {
      const { ids, query: first, check } = chooseSpared(all, sort);
      const seen: unknown[] = [];
      let cursor: string | undefined;
      do {
        const query = [first, `limit=${1 + random.below(400)}`, ...(cursor === undefined ? [] : [`cursor=${cursor}`])];
        const page = await read(query.filter(Boolean).join('&'));
        seen.push(...(await readRecords(page)));
        cursor = page.next;
        if (size > 0) await changeThings(all, 20, ids);
      } while (cursor !== undefined);
      check(seen);
    }
    await store.close();
  });
}

test('pages of what one user owns are found by an index, by their numbers', async () => {
  const all = await createWorld('pages of owners', 2500);
  const { read, things, random, store } = all;
  for (const userId of [1, 2, 3, 4]) {
    for (const sort of ['', '&sort=-id']) {
      await changeThings(all, 60, new Set());
      const records = sortRecords(things).filter(({ ownerId }) => ownerId === userId);
      const wanted = listExpected(records, sort.slice(1));
      const seen: unknown[] = [];
      let place: string | undefined = '';
      do {
        const page: List = await read(`limit=${1 + random.below(400)}${sort}${place}`, false, undefined, userId);
        seen.push(...(await readRecords(page)));
        place = page.next && `&cursor=${page.next}`;
      } while (place !== undefined);
      assert.deepEqual(seen, wanted, `${userId}${sort}`);
      const middle = await read(`limit=7&offset=1100${sort}`, true, undefined, userId);
      await assertList(middle, wanted.slice(1100, 1107), `${userId}${sort}`);
      assert.equal(middle.total, wanted.length);
    }
  }
  await store.close();
});

test('a page in a kept order passes over blocks that have nothing of its reader', () => {
  const block = (...owners: unknown[]) => owners.map((ownerId, id) => ({ id, revision: 1, ownerId }));
  const access = { list: 'owner', read: 'owner' };
  const principal = { kind: 'bearer', userId: 5, role: 'member', issuedAt: 0 } as const;
  const reader = makeReader({ records: Object({}), access }, principal, 'list');
  assert.deepEqual([block(1, 2, 6), block(4, 5), block(0), []].map((each) => reader.mayBeIn(each)),
    [false, true, false, false]);
  const named = { list: ['memberIds'], read: ['memberIds'] };
  const members = makeReader({ records: Object({}), access: named }, principal, 'list');
  const boards = [[1, 5], [], undefined].map((memberIds, id) => [{ id, revision: 1, ownerId: 5, memberIds }]);
  assert.deepEqual(boards.map((each) => members.mayBeIn(each)), [true, false, false]);
});

describe('a kept order', () => {
  test('gives the same lists as the model in random histories', async () => {
    const random = createGenerator('histories of orders');
    for (let count = 0; count < 3; count += 1) await runHistory(random);
  });

  test('gives the same lists and pages as the model, before, while and after it is made', async () => {
    const all = await createWorld('kept orders', 1300);
    const { read, things, random, store, pool } = all;
    for (const sort of sorts) {
      for (const filter of ['', 'price:gte=20', 'q=a']) {
        const query = [sort, filter].filter(Boolean).join('&');
        for (const time of ['first', 'second', 'third']) {
          const wanted = listExpected(sortRecords(things), query);
          await assertList(await read(query), wanted, `${query}, ${time}`);
          for (const userId of filter === 'q=a' ? [] : [1, 2]) {
            const own = listExpected(sortRecords(things).filter(({ ownerId }) => ownerId === userId), query);
            const page = await read(`${query}&limit=30`.replace(/^&/, ''), true, undefined, userId);
            await assertList(page, own.slice(0, 30), `${query} of ${userId}, ${time}`);
            assert.equal(page.total, own.length);
            if (page.next === undefined) continue;
            const after = `${query}&limit=30&cursor=${page.next}`.replace(/^&/, '');
            const next = await read(after, false, undefined, userId);
            await assertList(next, own.slice(30, 60), `${query} of ${userId}, ${time}`);
          }
          const size = 1 + random.below(500);
          const page = await read(`${query}&limit=${size}`.replace(/^&/, ''));
          await assertList(page, wanted.slice(0, size), `${query}, ${time}`);
          if (page.next === undefined) continue;
          const next = await read(`${query}&limit=${size}&cursor=${page.next}`.replace(/^&/, ''));
          await assertList(next, wanted.slice(size, 2 * size), `${query}, ${time}`);
          const place = Math.max(0, wanted.length - size);
          const last = await read(`${query}&limit=${size}&offset=${place}`.replace(/^&/, ''));
          await assertList(last, wanted.slice(place), `${query}, ${time}`);
          await changeThings(all, 30, new Set());
          if (time === 'second') await pool.orders.settled();
        }
      }
    }
    await store.close();
  });

  test('is made after the second list in it or in its reverse, and serves all that follow', async () => {
    const { things, store } = await createWorld('kept', 2500);
    const pool = new ListPool({ now: () => 0, elapsed: () => 0 });
    const source = { fields: shape, records: things, pool };
    const caller = { caller: 'one', signal: new AbortController().signal };
    const isAtOnce = async (text: string): Promise<boolean> => {
      const query = parseListQuery({ fields: shape }, parseQuery(text));
      const list = readList(source, { query, withTotal: false, caller });
      await list;
      await pool.orders.settled();
      return !(list instanceof Promise);
    };
    assert.equal(await isAtOnce('sort=price&limit=20'), false);
    assert.equal(await isAtOnce('sort=price&limit=20&offset=20'), false);
    await store.write((transaction) => transaction.of(things).remove(1));
    for (const query of ['limit=20', 'limit=20&offset=2000', 'limit=1000', 'price:gte=40&price:lt=41&limit=5']) {
      assert.equal(await isAtOnce(`sort=price&${query}`), true, query);
    }
    assert.equal(await isAtOnce('sort=-price&limit=20'), false, 'another order');
    await store.close();
  });

  test('finds the records of a range by search', async () => {
    const { things, store, pool, read } = await createWorld('ranges', 400);
    for (const sort of ['sort=size,price', 'sort=-size']) {
      for (let time = 0; time < 2; time += 1) await read(`${sort}&limit=1`);
      await pool.orders.settled();
      for (const operator of ['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in']) {
        for (const size of [0, 1, 3, 5, 6]) {
          const query = `${sort}&size:${operator}=${size}&price:lte=10`;
          const wanted = listExpected(sortRecords(things), query);
          await assertList(await read(query), wanted, query);
          assert.equal((await read(`${query}&limit=3`, true)).total, wanted.length, query);
        }
      }
    }
    await store.close();
  });
});

describe('a list without a limit', () => {
  test('continues after a cursor', async () => {
    const { read, things, store } = await createWorld('the rest', 3000);
    for (const sort of ['sort=price', 'sort=-id', '']) {
      const page = await read(`${sort}&limit=7`);
      const rest = await read(`${sort}&cursor=${page.next}`);
      const records = sortRecords(things);
      assert.deepEqual([...(await readRecords(page)), ...(await readRecords(rest))], listExpected(records, sort));
    }
    await store.close();
  });

  test('comes in pieces of bounded length, as a snapshot of one point in time', async () => {
    for (const query of ['', 'sort=-price']) {
      const all = await createWorld('pieces', 6000);
      const before = listExpected(sortRecords(all.things), query);
      const { body } = await all.read(query);
      assert.ok(typeof body !== 'string');
      let text = '';
      let longest = 0;
      let pieces = 0;
      for await (const piece of body) {
        text += piece;
        longest = Math.max(longest, piece.length);
        pieces += 1;
        await changeThings(all, 50, new Set());
      }
      assert.deepEqual(JSON.parse(text), before);
      assert.ok(pieces > 4 && longest < 66_000, `${pieces} pieces, the longest of ${longest}`);
      await all.store.close();
    }
  });

  test('is a single string when it is short', async () => {
    const { read, store } = await createWorld('short', 500);
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
    const { read, store } = await createWorld('shares', 3000);
    const own = await times(limits.listsPerCallerMax, (index) => read(index % 2 === 0 ? '' : 'sort=price'));
    for (const query of ['', 'sort=name', 'price:lt=0']) await assert.rejects(read(query), refused, query);
    for (const query of ['price:lt=0&limit=1', 'limit=1&sort=price']) await read(query);
    assert.equal((await readRecords(await read('limit=20'))).length, 20, 'a page that is found at once');
    assert.equal((await readRecords(await read('price:lt=0&limit=1', false, '192.0.2.2'))).length, 0, 'another caller');
    for (const list of own.slice(0, 2)) await leave(list);
    assert.equal((await readRecords(await read('sort=-name'))).length, 3000);
    for (const list of own.slice(2, 4)) assert.equal((await readRecords(list)).length, 3000);
    await times(4, () => read(''));
    await assert.rejects(read(''), refused);
    await store.close();
  });

  test('of a page is made for a newcomer, however many others have their shares of the places', async () => {
    const { read, store } = await createWorld('all pages', 1100);
    const share = 100;
    const address = (index: number): string => `192.0.2.${10 + Math.floor(index / share)}`;
    const made = times(8 * share, (index) => read('limit=1&price:lt=0', false, address(index)));
    const all = made.then(() => 'the others');
    const own = read('limit=1&price:lt=0', false, '192.0.2.9').then(() => 'the newcomer');
    assert.equal(await Promise.race([all, own]), 'the newcomer');
    await all;
    await store.close();
  });

  test('of a page that is long is streamed', async () => {
    const { things, read, store } = await createWorld('long pages', 0);
    const name = 'long'.repeat(50_000);
    await store.write((transaction) => {
      for (let count = 0; count < 20; count += 1) {
        transaction.of(things).insert({ name, price: count, email: 'a@x', secret: '', ownerId: 1 });
      }
    });
    const { body } = await read('limit=20');
    assert.ok(typeof body !== 'string', 'four megabytes are not built whole');
    const lengths: number[] = [];
    for await (const piece of body) lengths.push(piece.length);
    assert.ok(lengths.length >= 20 && Math.max(...lengths) < 2 * name.length);
    assert.equal((await readRecords(await read('limit=20'))).length, 20);
    await store.close();
  });

  test('is refused when other callers hold all places', async () => {
    const { read, store } = await createWorld('all places', 1100);
    const lists = await times(limits.listsMax, (index) => read('', false, `user ${index}`));
    await assert.rejects(read('', false, 'user 99'), refused);
    await Promise.all(lists.map(leave));
    await leave(await read('', false, 'user 99'));
    await store.close();
  });

  test('needs a place in a collection of two thousand records, too', async () => {
    const { read, store } = await createWorld('few', 2000);
    for (const query of ['', 'sort=price', 'price:lt=1']) {
      const lists = await Promise.allSettled(Array.from({ length: 20 }, () => read(query)));
      const made = lists.flatMap((list) => (list.status === 'fulfilled' ? [list.value] : []));
      assert.equal(made.length, limits.listsPerCallerMax, query);
      for (const list of lists) {
        if (list.status === 'rejected') await assert.rejects(Promise.reject(list.reason), refused);
      }
      for (const list of made) await readText(list);
    }
    for (const query of ['limit=1000', 'limit=1000&sort=-id', 'limit=20&id:gt=1500']) {
      await times(100, () => read(query));
    }
    await store.close();
  });

  test('takes a place from the caller with the most, where slow readers have all of them', async () => {
    const pool = new ListPool(createTickingClock());
    const left: string[] = [];
    const begin = (caller: string, name: string): void => {
      const controller = new AbortController();
      const abandon = (): void => {
        left.push(name);
        controller.abort();
      };
      pool.begin({ caller, signal: controller.signal, abandon });
    };
    const refused = { code: 'overloaded' };
    for (let caller = 0; caller < 4; caller += 1) {
      for (let n = 0; n < 8; n += 1) begin(`caller ${caller}`, `list ${n} of ${caller}`);
      assert.throws(() => begin(`caller ${caller}`, 'one more'), refused);
    }
    assert.deepEqual(left, []);
    begin('newcomer', 'own');
    assert.deepEqual(left, ['list 0 of 0']);
    begin('another newcomer', 'own');
    assert.deepEqual(left, ['list 0 of 0', 'list 0 of 1']);
  });

  test('stops within a slice when its caller has disconnected', async () => {
    const { things, store } = await createWorld('left', 3000);
    const pool = new ListPool(createTickingClock());
    for (const query of ['sort=price', 'price:lt=0', 'limit=5&sort=price', '']) {
      const leaving = new AbortController();
      const caller = { caller: 'one', signal: leaving.signal };
      const asked = { query: parseListQuery({ fields: shape }, parseQuery(query)), withTotal: false, caller };
      const list = Promise.resolve(readList({ fields: shape, records: things, pool }, asked)).then(readText);
      setImmediate(() => leaving.abort());
      await assert.rejects(list, { code: 'draining' }, query);
    }
    const caller = { caller: 'one', signal: new AbortController().signal };
    const asked = { query: parseListQuery({ fields: shape }, parseQuery('')), withTotal: false, caller };
    await times(limits.listsPerCallerMax, async () => readList({ fields: shape, records: things, pool }, asked));
    await store.close();
  });
});

test('a list that is sent is broken off where it keeps too many former records, the oldest first', async (t) => {
  const store = openStore({ clock: { now: () => 0, elapsed: () => 0 }, random: (size) => Buffer.alloc(size) });
  type Long = StoredRecord & { text: string };
  const long = store.collection<Long>({ name: 'long', parse: () => 'is none' });
  await store.start();
  const pool = new ListPool(createTickingClock());
  store.onPublished(pool.follow);
  const writeAll = (letter: string) => store.write((tx) => {
    for (let id = 1; id <= 10; id += 1) {
      if (tx.of(long).get(id) === undefined) tx.of(long).insert({ text: letter.repeat(100_000) });
      else tx.of(long).replace(id, { text: letter.repeat(100_000) });
    }
  });
  await writeAll('a');
  const fields = { id: idField, text: { kind: 'text', max: 100_000 } } as const satisfies Shape;
  const brokenOff: string[] = [];
  const send = async (name: string, asked: string): Promise<AsyncIterator<string>> => {
    const leaving = new AbortController();
    const abandon = (): void => {
      brokenOff.push(name);
      leaving.abort();
    };
    const query = parseListQuery({ fields }, parseQuery(asked));
    const caller = { caller: name, signal: leaving.signal, abandon };
    const { body } = await readList({ fields, records: long, pool }, { query, withTotal: false, caller });
    assert.ok(typeof body !== 'string');
    const pieces = body[Symbol.asyncIterator]();
    await pieces.next();
    return pieces;
  };
  const heap = t.mock.method(v8, 'getHeapStatistics', () => ({ heap_size_limit: 64 * 1024 * 1024 }));
  syncBuiltinESMExports();
  t.after(() => {
    heap.mock.restore();
    syncBuiltinESMExports();
  });
  // Of 32 MiB, 2 MiB: two times all records, but not three times.
  const page = await send('page', 'limit=10');
  const left = await send('left', 'limit=10');
  await left.return?.();
  await writeAll('b');
  const whole = await send('whole', '');
  await writeAll('c');
  assert.deepEqual(brokenOff, []);
  await writeAll('d');
  assert.deepEqual(brokenOff, ['page']);
  await assert.rejects(page.next(), { code: 'draining' });
  assert.match(String((await whole.next()).value), /"b+"/);
  await whole.return?.();
  await writeAll('e');
  await writeAll('f');
  assert.deepEqual(brokenOff, ['page']);
  await store.close();
});

test('a search pauses between records, once it has examined enough of their texts', async () => {
  const clock = { now: () => 0, elapsed: () => 0 };
  const store = openStore({ clock, random: (size) => Buffer.alloc(size) });
  type Long = StoredRecord & { text: string; tags: string[] };
  const long = store.collection<Long>({ name: 'long', parse: () => 'is none' });
  await store.start();
  const times = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, at) => make(at));
  const count = 20;
  const text = 'a'.repeat(20_000);
  const tags = times(20_000, () => 'a');
  await store.write((tx) => times(count, () => tx.of(long).insert({ text, tags })));
  const fields = {
    id: idField,
    text: { kind: 'text', max: 10 },
    tags: { kind: 'list', of: { kind: 'text' } },
  } as const satisfies Shape;
  const caller = { caller: 'one', signal: new AbortController().signal };
  for (const asked of ['q=b', 'text:contains=b', 'or=(text:contains:b,text:contains:c)', 'tags:has=b']) {
    // Each step checks the time, except the first steps of a page.
    let steps = 0;
    const pool = new ListPool({ now: () => 0, elapsed: () => (steps += 1) });
    const query = parseListQuery({ fields }, parseQuery(`${asked}&limit=5`));
    const list = await readList({ fields, records: long, pool }, { query, withTotal: false, caller });
    assert.equal(list.body, '[]');
    assert.ok(steps >= count - 2, `${asked}: ${steps} steps`);
  }
  await store.close();
});
