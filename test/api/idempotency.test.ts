import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';

import { limits } from '../../src/base/limits.ts';
import { systemRandom } from '../../src/base/system.ts';
import type { Change } from '../../src/programs/hooks.ts';
import { IdempotencyKeys } from '../../src/collections/idempotency.ts';
import { defineCollection } from '../../src/index.ts';
import { estimateSize } from '../../src/store/memory/size.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Collection, StoredRecord, TableDefinition, Transaction } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { startApp } from '../support/app.ts';

const lamp = { name: 'Lamp', price: 1 };
const keyed = (key: string, json: unknown = lamp) => ({ json, headers: { 'idempotency-key': key } });

/** The number of keys that an app keeps. */
const keysOf = ({ app }: Pick<Awaited<ReturnType<typeof startApp>>, 'app'>): number =>
  app.store.status().collections.find(({ name }) => name === 'idempotency-keys')?.records ?? NaN;

test('the same key and body get the same response again, and nothing is created', async (t) => {
  const { app, signIn } = await startApp(t);
  const member = await signIn('member');
  const first = await member.post('/items', keyed('"a key"'));
  assert.deepEqual([first.status, first.json], [201, { id: 1, ...lamp }]);
  assert.equal(first.header('idempotency-replayed'), undefined);
  const { sequence } = app.store.status();
  const again = await member.post('/items', keyed('"a key"'));
  assert.deepEqual([again.status, again.body], [201, first.body]);
  for (const name of ['etag', 'location']) assert.equal(again.header(name), first.header(name), name);
  assert.equal(again.header('idempotency-replayed'), 'true');
  assert.equal(app.store.status().sequence, sequence);

  // Its bytes are compared: spelled otherwise, it is another request. Bare, the key is still the same key.
  const body = '{ "price": 1.0, "name": "\\u004camp" }';
  const fields = { 'idempotency-key': 'a key', 'content-type': 'application/json' };
  assert.equal((await member.post('/items', { body, headers: fields })).code, 'key_reused');

  // A record that was changed or removed meanwhile is told of as it was created.
  await member.delete('/items/1');
  assert.equal((await member.post('/items', keyed('a key'))).body, first.body);
  assert.equal((await member.get('/items')).body, '[]');
});

test('the same key with another body or collection is refused, and the key stays', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  await admin.post('/items', keyed('k'));
  for (const json of [{ name: 'Lamp', price: 2 }, [lamp], [lamp, lamp]]) {
    const target = Array.isArray(json) ? '/items/batch' : '/items';
    const { status, code } = await admin.post(target, keyed('k', json));
    assert.deepEqual([status, code], [422, 'key_reused']);
  }
  const eve = { name: 'Eve', email: 'eve@example.org' };
  assert.equal((await admin.post('/users', keyed('k', eve))).code, 'key_reused');
  assert.equal((await admin.post('/items', keyed('k'))).header('idempotency-replayed'), 'true');
  assert.equal(Object((await admin.get('/items')).json).length, 1);
});

test('creating a user with a password refuses a key; without a password, the user is created once', async (t) => {
  const fixture = await startApp(t);
  const admin = await fixture.signIn('admin');
  const eve = { name: 'Eve', email: 'eve@example.org' };
  const refused = await admin.post('/users', keyed('k', { ...eve, password: 'a good and long password' }));
  assert.deepEqual([refused.status, refused.code, keysOf(fixture)], [400, 'malformed_request', 0]);
  const first = await admin.post('/users', keyed('k', eve));
  const again = await admin.post('/users', keyed('k', eve));
  assert.deepEqual([again.status, again.body, again.header('idempotency-replayed')], [201, first.body, 'true']);
});

test('a replayed record has the timestamps of the first reply', async (t) => {
  let now = Date.UTC(2026, 0);
  const clock = { now: () => (now += 1), elapsed: () => performance.now() };
  const fields = { text: { kind: 'text', min: 1, max: 20, example: 'a' } } as const;
  const notes = defineCollection({ name: 'notes', singular: 'note', fields, timestamps: true });
  const member = await (await startApp(t, { clock, collections: [notes] })).signIn('member');
  for (const json of [{ text: 'a' }, [{ text: 'a' }, { text: 'b' }]]) {
    const asked = keyed(`k${JSON.stringify(json)}`, json);
    const target = Array.isArray(json) ? '/notes/batch' : '/notes';
    const first = await member.post(target, asked);
    assert.match(first.body, /"createdAt":"2026-01-01/);
    assert.equal((await member.post(target, asked)).body, first.body);
  }
});

test('a batch is also created only once, and replayed with the same ids', async (t) => {
  const member = await (await startApp(t)).signIn('member');
  const many = [lamp, { name: 'Chair', price: 2 }, { name: 'Table', price: 3 }];
  const first = await member.post('/items/batch', keyed('many', many));
  await member.post('/items', { json: lamp });
  const again = await member.post('/items/batch', keyed('many', many));
  assert.deepEqual([again.body, again.header('idempotency-replayed')], [first.body, 'true']);
  assert.equal(Object((await member.get('/items')).json).length, 4);
});

test('a repetition is not throttled, but a new key is', async (t) => {
  const { client, app } = await startApp(t, { registration: 'open' });
  const register = (name: string) => {
    const json = { name, email: `${name}@example.org` };
    return client.post('/users', { ...keyed(name, json), address: '192.0.2.1' });
  };
  const first = await register('eve');
  for (let count = 1; count <= 31; count += 1) assert.equal((await register('eve')).body, first.body);
  const statuses: number[] = [];
  for (let count = 2; count <= 31; count += 1) statuses.push((await register(`eve${count}`)).status);
  assert.deepEqual([statuses.indexOf(429), app.users.records.size], [29, 32]);
  const again = await register('eve');
  assert.deepEqual([again.status, again.body], [201, first.body]);
});

test('each caller has keys of their own', async (t) => {
  const { signIn, client } = await startApp(t, { registration: 'open' });
  const ids: number[] = [];
  for (const asked of [await signIn('admin'), await signIn('member')]) {
    ids.push(Object((await asked.post('/items', keyed('k'))).json).id);
  }
  assert.deepEqual(ids, [1, 2]);
  const eve = { name: 'Eve', email: 'eve@example.org' };
  const first = await client.post('/users', { ...keyed('k', eve), address: '192.0.2.1' });
  const again = await client.post('/users', { ...keyed('k', eve), address: '192.0.2.1' });
  assert.deepEqual([again.status, again.body], [201, first.body]);
  const elsewhere = await client.post('/users', { ...keyed('k', eve), address: '192.0.2.2' });
  assert.equal(elsewhere.code, 'email_taken');
});

test('concurrent requests with one key create one record, and a user is audited once', async (t) => {
  const { signIn, app } = await startApp(t);
  const admin = await signIn('admin');
  const answers = await Promise.all(Array.from({ length: 50 }, () => admin.post('/items', keyed('k'))));
  assert.deepEqual(new Set(answers.map(({ body }) => body)).size, 1);
  assert.equal(answers.filter((answer) => answer.header('idempotency-replayed') === undefined).length, 1);
  const eve = { name: 'Eve', email: 'eve@example.org' };
  const users = await Promise.all([1, 2, 3].map(() => admin.post('/users', keyed('eve', eve))));
  assert.deepEqual(users.map(({ status }) => status), [201, 201, 201]);
  assert.equal(app.users.records.size, 3);
});

test('a refused request does not use up its key', async (t) => {
  const fixture = await startApp(t);
  const member = await fixture.signIn('member');
  assert.equal((await member.post('/items', keyed('k', { name: '' }))).status, 422);
  assert.equal(keysOf(fixture), 0);
  assert.equal((await member.post('/items', keyed('k'))).status, 201);
});

for (const target of ['/login', '/logout', '/tokens', '/tokens/revoke']) {
  test(`POST ${target} refuses a key, so that no secret is kept`, async (t) => {
    const fixture = await startApp(t);
    const { status, code } = await fixture.client.post(target, keyed('k', {}));
    assert.deepEqual([status, code, keysOf(fixture)], [400, 'malformed_request', 0]);
  });
}

/** Stored keys of 0.2, with nothing to compare, and of 0.3, with a MAC by a signing key. */
const earlier: readonly [version: string, kept: object][] = [
  ['0.2', {}],
  ['0.3', { keyId: 'abcdefghijk', digest: 'a'.repeat(43) }],
  ['0.3, of a password', { keyId: 'abcdefghijk', digest: '$scrypt$ln=1,r=8,p=3$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA' }],
];
for (const [version, kept] of earlier) {
  test(`a key of ${version} is refused at any age, and creates no second record`, async () => {
    let now = Date.UTC(2026, 0);
    const { keys, store, insert } = await startKeys(undefined, () => now);
    const request = { caller: 'one', key: 'k', line: 'POST /things', body: Buffer.from('{}') };
    const lookupHash = hash('sha256', 'one\nk', 'base64url');
    const record = { caller: 'one', lookupHash, status: 201, fields: [], body: '{}', createdAt: now };
    await store.write((tx) => insert(tx, { ...record, ...kept }));
    const make = (): never => assert.fail('nothing is created');
    for (const wait of [0, 1000, 2 * limits.keySecondsMax * 1000]) {
      now += wait;
      await assert.rejects(store.write((tx) => keys.once(tx, request, make)), {
        code: 'key_reused', message: /was used with an earlier version of Cairn; send another key$/,
      });
    }
  });
}

test('hooks do not run again', async (t) => {
  const seen: string[] = [];
  const hooks = {
    beforeWrite: ({ operation }: Change) => void seen.push(`before ${operation}`),
    afterWrite: ({ operation }: Change) => void seen.push(`after ${operation}`),
  };
  const member = await (await startApp(t, { hooks })).signIn('member');
  seen.length = 0;
  for (const _ of [1, 2, 3]) await member.post('/items', keyed('k'));
  assert.deepEqual(seen, ['before create', 'after create']);
});

test('a key survives a restart', async (t) => {
  const directory = temporaryDirectory(t);
  const first = await startApp(t, { directory, withoutPort: true });
  const made = await (await first.signIn('member')).post('/items', keyed('k'));
  const token = await first.createToken('member');
  await first.app.close();
  const { createApp } = await import('../../src/index.ts');
  const app = await createApp({ directory });
  t.after(() => app.close());
  const fields = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': 'k' };
  const again = await app.inject({ method: 'POST', target: '/items', headers: fields, body: JSON.stringify(lamp) });
  assert.deepEqual([again.body, again.headers.get('idempotency-replayed')], [made.body, 'true']);
});

for (const [key, status] of [
  ['x'.repeat(255), 201], [`"${'x'.repeat(255)}"`, 201], [`"${'\\"'.repeat(255)}"`, 201], ['8e03978e-40d5-43dd', 201],
  ['', 400], ['""', 400], ['x'.repeat(256), 400], [`"${'x'.repeat(256)}"`, 400], ['x'.repeat(10_000), 400], ['"x', 400],
  ['"x"y', 400], ['"x", "y"', 400], ['"\\x"', 400], ['a\u0001', 400], ['a\u007f', 400], ['schlüssel', 400],
] as const) {
  test(`a key of ${key.length} characters, ${JSON.stringify(key).slice(0, 20)}, is answered ${status}`, async (t) => {
    const { signIn } = await startApp(t, { withoutPort: true });
    const answer = await (await signIn('member')).post('/items', keyed(key));
    assert.equal(answer.status, status, answer.body);
    if (status === 400) assert.equal(answer.code, 'malformed_request');
  });
}

test('a key expires after 24 hours, and is removed when another one is added', async (t) => {
  let now = Date.UTC(2026, 0);
  const clock = { now: () => now, elapsed: () => performance.now() };
  const fixture = await startApp(t, { clock });
  const member = await fixture.signIn('member');
  for (const key of ['a', 'b', 'c']) await member.post('/items', keyed(key));
  now += 24 * 60 * 60 * 1000 + 1;
  const later = await fixture.signIn('member');
  assert.equal((await later.post('/items', keyed('c', { name: 'Chair', price: 2 }))).status, 201);
  assert.equal((await later.post('/items', keyed('d'))).status, 201);
  assert.equal(keysOf(fixture), 2);
});

for (const years of [10, -10]) {
  test(`setting the clock by ${years} years creates nothing twice`, async (t) => {
    let now = Date.UTC(2026, 0);
    const clock = { now: () => now, elapsed: () => performance.now() };
    const fixture = await startApp(t, { clock });
    const first = await (await fixture.signIn('member')).post('/items', keyed('k'));
    const step = years * 365 * 24 * 60 * 60 * 1000;
    now += step;
    const member = await fixture.signIn('member');
    const again = await member.post('/items', keyed('k'));
    assert.deepEqual([again.body, again.header('idempotency-replayed')], [first.body, 'true']);
    await member.post('/items', keyed('meanwhile'));
    now -= step;
    const back = await (await fixture.signIn('member')).post('/items', keyed('meanwhile'));
    assert.equal(back.header('idempotency-replayed'), 'true');
    assert.equal(Object((await (await fixture.signIn('member')).get('/items')).json).length, 2);
  });
}

/** Keys in a store of their own, and a function that sends a caller's requests with some numbers. */
async function startKeys(memoryMax?: number, now = () => Date.UTC(2026, 0)) {
  const clock = { now, elapsed: () => performance.now() };
  const store = openStore({ clock, random: systemRandom, memoryMax });
  /** Keeps what another version has kept of a request. */
  let insert: (tx: Transaction, record: object) => void = assert.fail;
  const { memoryMaxBytes } = store;
  const collection = <R extends StoredRecord>(definition: TableDefinition<R>): Collection<R> => {
    const table = store.collection(definition);
    const { parse } = definition;
    insert = (tx, record) => {
      const parsed = parse({ id: 1, revision: 1, ...record });
      assert.ok(typeof parsed === 'object');
      tx.of(table).insert(parsed);
    };
    return table;
  };
  const keys = new IdempotencyKeys({ store: { memoryMaxBytes, collection }, clock });
  await store.start();
  const made = { status: 201, fields: ['Name', 'value'], body: '"made"' };
  /** True for each request that is a repetition. The writer gets `atOnce` requests at a time. */
  const send = async (caller: string, from: number, to: number, atOnce = 100): Promise<boolean[]> => {
    const isReplay: boolean[] = [];
    for (let first = from; first < to; first += atOnce) {
      const count = Math.min(atOnce, to - first);
      isReplay.push(...(await Promise.all(Array.from({ length: count }, async (_, index) => {
        const request = { caller, key: `k${first + index}`, line: 'POST /things', body: Buffer.from('same') };
        return made !== (await store.write((tx) => keys.once(tx, request, () => made)));
      }))));
    }
    return isReplay;
  };
  return { keys, store, insert, send, count: () => store.status().collections[0]?.records ?? NaN };
}

test('a caller has a limited number of keys, and a further one replaces its oldest', async () => {
  const { send, count } = await startKeys();
  const max = limits.keysPerCallerMax;
  await send('another', 0, 1);
  await send('one', 0, max + 200);
  assert.equal(count(), max + 1);
  assert.deepEqual(await send('another', 0, 1), [true]);
  assert.deepEqual([...(await send('one', 200, 201)), ...(await send('one', max + 199, max + 200))], [true, true]);
  assert.deepEqual(await send('one', 199, 200), [false]);
});

test('stored responses leave the memory to records, even in a small store', async (t) => {
  const fields = { text: { kind: 'text', max: 100_000 } } as const;
  const notes = defineCollection({ name: 'notes', singular: 'note', fields });
  const { app, signIn } = await startApp(t, { collections: [notes], memoryMax: 2 });
  const member = await signIn('member');
  for (let index = 0; index < 40; index += 1) {
    const made = await member.post('/notes', keyed(`k${index}`, { text: '中'.repeat(25_000) }));
    assert.equal(made.status, 201, made.body);
    await member.delete(made.header('location') ?? '');
  }
  const { memoryBytes, memoryMaxBytes } = app.store.status();
  assert.ok(memoryBytes < memoryMaxBytes / 4, `${memoryBytes}`);
});

test('if stored responses take too much, the caller with the most loses its oldest ones, and nobody else', async () => {
  const lookupHash = hash('sha256', 'a', 'base64url');
  const numbers = { id: 1, revision: 1, status: 201, createdAt: Date.UTC(2026, 0) };
  const texts = { caller: 'crowd', lookupHash, digest: lookupHash, fields: ['Name', 'value'], body: '"made"' };
  const most = 100;
  const memory = ((most + 1 / 2) * estimateSize({ ...numbers, ...texts })) / limits.keptMemoryShareMax;
  const { send, count } = await startKeys(memory);
  await send('crowd', 0, most + 50, most + 50);
  assert.equal(count(), most, 'requests that are decided together do not exceed the bound');
  await send('crowd', 0, most, 1);
  assert.equal(count(), most);
  await send('crowd', most, most + 1);
  assert.equal(count(), most);
  assert.deepEqual([...(await send('crowd', 1, 2)), ...(await send('crowd', most, most + 1))], [true, true]);
  assert.deepEqual([...(await send('other', 0, 1)), ...(await send('other', 0, 1))], [false, true]);
  await send('crowd', 2 * most, 3 * most);
  assert.deepEqual(await send('other', 0, 1), [true], 'a crowd takes the room of its own replies alone');
  assert.equal(count(), most);
});
