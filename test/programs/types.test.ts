import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp, defineCollection, defineRoute, type Input, type Output } from '../../src/index.ts';

/** Code that must compile, and code that must not: `npm run check` fails if a line that is marked as wrong compiles. */
const places = defineCollection({
  name: 'places',
  id: { kind: 'text' },
  fields: {
    title: { kind: 'text' },
    state: { kind: 'choice', values: ['new', 'old'], default: 'new' },
    size: { kind: 'integer', optional: true },
    closedAt: { kind: 'timestamp', nullable: true },
    tags: { kind: 'list', of: { kind: 'text' }, default: [] },
    address: { kind: 'object', fields: { city: { kind: 'text' }, zip: { kind: 'text', optional: true } } },
    cityId: { kind: 'reference', to: 'cities' },
    code: { kind: 'text', unique: true, optional: true },
  },
});
const open = { name: 'open', fields: { n: { kind: 'number' } }, additional: true } as const;

test('records have the types of their declaration', async (t) => {
  const app = await createApp({
    collections: [places, open, { name: 'cities', fields: { name: { kind: 'text' } } }], auth: 'none',
  });
  t.after(() => app.close());
  const city = await app.collection('cities').create({ name: 'Rome' });
  const input: Input<typeof places> = {
    title: 'A', closedAt: null, address: { city: 'Rome' }, cityId: Number(city['id']),
  };
  const place: Output<typeof places> = await app.collection(places).create({ ...input, id: 'a', size: undefined });
  const [id, state, tags, at]: [string, 'new' | 'old', readonly string[], string | null] =
    [place.id, place.state, place.tags, place.closedAt];
  assert.deepEqual([id, state, tags, at, place.address.zip], ['a', 'new', [], null, undefined]);
  const more = await app.collection(open).create({ n: 1, anything: { deep: true } });
  assert.deepEqual(more['anything'], { deep: true });
  await app.collection(places).change('a', { state: 'old', size: null, address: { city: 'Ostia' } });
  assert.equal(app.collection(places).count({ where: { state: ['old'], 'address.city': 'Ostia' } }), 1);

  const typed = defineRoute({
    method: 'POST', path: '/typed', access: ['user', 'admin'], summary: 'x',
    query: { a: { kind: 'integer' }, b: { kind: 'integer', default: 1 }, c: { kind: 'integer', optional: true } },
    body: { d: { kind: 'text', default: 'x' }, e: { kind: 'text', optional: true } },
    handle({ query: { a, b, c }, body: { d, e } }) {
      const all: readonly [number, number, number | undefined, string, string | undefined] = [a, b, c, d, e];
      return all;
    },
  });
  assert.equal(typed.path, '/typed');

  const never = async (): Promise<void> => {
    const all = app.collection(places);
    // @ts-expect-error: no such member
    await all.create({ ...input, titel: 3 });
    // @ts-expect-error: a member of another type
    await all.create({ ...input, title: 3 });
    // @ts-expect-error: a required member is absent
    await all.create({ title: 'A' });
    // @ts-expect-error: not one of the values
    await all.change('a', { state: 'other' });
    // @ts-expect-error: null is not a value here
    await all.change('a', { title: null });
    // @ts-expect-error: a filter of no field
    all.count({ where: { titel: 'A' } });
    // @ts-expect-error: an operand of another type
    all.count({ where: { 'size:gte': 'x' } });
    await all.list({ sort: ['-title', 'address.city', 'id'] });
    await app.collection('places').list({ sort: 'anything' });
    await app.collection(open).list({ sort: '-anything' });
    await app.users.list({ sort: '-name' });
    // @ts-expect-error: an order by no field
    await all.list({ sort: 'titel' });
    // @ts-expect-error: an order by a list
    await all.list({ sort: 'tags' });
    // @ts-expect-error: an order by no field of users
    await app.users.list({ sort: 'names' });
    await app.write((tx) => tx.collection(places).find('code', 'a'));
    await app.write((tx) => tx.collection('places').find('anything', 'a'));
    // @ts-expect-error: not a unique field
    await app.write((tx) => tx.collection(places).find('title', 'a'));
    // @ts-expect-error: not a reference
    await app.write((tx) => tx.collection(places).referring('title', 'a'));
    // @ts-expect-error: not a reference, for a hook
    await createApp({ hooks: { beforeWrite: (_, read) => void read.referring(places, 'title', 1) } });
    // @ts-expect-error: not an option
    await all.list({ titel: 'A' });
    // @ts-expect-error: records do not change in place
    place.title = 'B';
    // @ts-expect-error: no hash
    void (await app.users.list()).records[0]?.passwordHash;
    // @ts-expect-error: nothing hands out the store
    void app.store;
    // @ts-expect-error: a kind that is none
    defineCollection({ name: 'x', fields: { a: { kind: 'txt' } } });
    // @ts-expect-error: a query has the declared parameters
    defineRoute({ method: 'GET', path: '/x', access: 'user', summary: 'x', handle: ({ query }) => query.nope });
    const path = { method: 'GET', path: '/x', summary: 'x' } as const;
    // @ts-expect-error: a body has the declared fields, none where it is not declared
    defineRoute({ ...path, access: 'user', handle: ({ body }) => body.title });
    defineRoute({ ...path, method: 'POST', access: 'user', body: 'bytes', handle: ({ body }) => body.toString('hex') });
    // @ts-expect-error: neither fields nor bytes
    defineRoute({ ...path, method: 'POST', access: 'user', body: 'text', handle: () => 1 });
    // @ts-expect-error: a parameter has its type
    defineRoute({ ...path, access: 'user', query: { n: { kind: 'integer' } }, handle: ({ query }) => query.n?.length });
    // @ts-expect-error: an undefined caller is not the program
    await all.create({ ...input, id: 'b' }, { as: undefined });
    // @ts-expect-error: a version is an entity tag
    await all.remove('a', { ifVersion: 1 });
    // @ts-expect-error: an id has the kind of the collection
    await app.collection(places).create({ ...input, id: 7 });
    // @ts-expect-error: records have the declared members only
    void (await all.list()).records[0]?.revision;
    // @ts-expect-error: a member of an object of another type
    await all.change('a', { address: { city: 7 } });
    // @ts-expect-error: not an option of an app
    await createApp({ registrations: 'open' });
    // @ts-expect-error: an option of another type
    await createApp({ auth: 'no' });
    // @ts-expect-error: a request of the Web's kind
    await app.fetch('http://cairn/places');
    // @ts-expect-error: headers, as inject takes them
    await app.inject({ target: '/places', fields: {} });
    // @ts-expect-error: a log writes
    await createApp({ log: { info: () => undefined } });
    // @ts-expect-error: what a hook is given does not change
    await createApp({ hooks: { afterWrite: (change) => void (change.after = undefined) } });
    // @ts-expect-error: a transaction is synchronous
    await app.write(async (tx) => tx.collection(places).get('a'));
    // @ts-expect-error: and returns no promise
    await app.write(() => app.users.list());
    // @ts-expect-error: as does the write of a route
    defineRoute({ ...path, method: 'POST', access: 'user', write: async () => 1 });
    // @ts-expect-error: and a rule
    await createApp({ hooks: { beforeWrite: async () => undefined } });
    // @ts-expect-error: that sets fields, too
    await createApp({ hooks: { beforeWrite: async () => ({ title: 'A' }) } });
    // Code that waits for nothing may return anything.
    const returned: readonly unknown[] = [
      await app.write((tx) => tx.collection('cities').get(1)), await app.write((tx) => tx.collection(places).get('a')),
      await app.write(() => undefined), await app.write(() => [1]), await app.write(() => new Map<string, Date>()),
      await app.write((): void => undefined), await app.write((tx) => tx.collection(places).referring('cityId', 1)),
    ];
    const write = { ...path, method: 'POST', access: 'user' } as const;
    defineRoute({ ...write, write: (tx) => tx.collection(open).create({ n: returned.length }) });
    await createApp({ hooks: { beforeWrite: ({ of }) => of(places)?.after && { title: 'A' }, async afterWrite() {} } });
    // @ts-expect-error: a transaction has no lists
    await app.write((tx) => tx.collection(places).list());
  };
  assert.equal(typeof never, 'function');
});
