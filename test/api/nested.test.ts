import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { defineCollection, type CollectionDeclaration, type CollectionDefinition } from '../../src/index.ts';
import { startApp } from '../support/app.ts';
import { vectors } from '../support/contract.ts';

const access = { list: 'public', create: 'public', read: 'public', replace: 'public', patch: 'public' } as const;
const places = defineCollection({
  name: 'places',
  singular: 'place',
  access,
  fields: {
    name: { kind: 'text', min: 1 },
    address: {
      kind: 'object',
      optional: true,
      fields: {
        city: { kind: 'text', min: 1 },
        zip: { kind: 'text', max: 5, optional: true },
        note: { kind: 'text', nullable: true, optional: true },
        geo: {
          kind: 'object', optional: true, additional: true,
          fields: { lat: { kind: 'number', min: -90, max: 90 } },
        },
      },
    },
    hours: {
      kind: 'list',
      optional: true,
      of: { kind: 'object', fields: { day: { kind: 'choice', values: ['mo', 'tu'] }, open: { kind: 'boolean' } } },
    },
    grid: { kind: 'list', optional: true, of: { kind: 'list', of: { kind: 'number' }, max: 2 } },
    site: { kind: 'url', optional: true },
    closedAt: { kind: 'timestamp', nullable: true, optional: true },
    extra: { kind: 'json', optional: true, bytesMax: 200 },
  },
});

async function opened(t: TestContext, collection: CollectionDeclaration = places) {
  const { client, app } = await startApp(t, { collections: [collection] });
  const { name } = collection;
  const send = async (method: string, path: string, json: unknown) => {
    const { status, json: answer } = await client.send(method, path, { json: Object(json) });
    const { errors } = Object(answer);
    return { status, answer, issues: errors?.map((each: any) => `${each.pointer} ${each.code}`) };
  };
  return { client, app, send, create: (json: unknown) => send('POST', `/${name}`, json) };
}

const rome = {
  name: 'Trattoria',
  address: { city: 'Rome', note: null, geo: { lat: 41.9, lng: 12.5, tags: [1, { deep: [null, true] }] } },
  hours: [{ day: 'mo', open: true }, { day: 'tu', open: false }],
  grid: [[1, 2], [], [3]],
  site: 'https://example.org/a?b=c',
  closedAt: null,
  extra: { any: [1, 'two', null, { three: {} }], '': 'empty', constructor: 1, toJSON: 'text', '2': 'b', '1': 'a' },
};

test('nested values are stored and read back as they were sent', async (t) => {
  const { client, create } = await opened(t);
  assert.equal((await create(rome)).status, 201);
  const { json } = await client.get('/places/1');
  assert.deepEqual(json, { id: 1, ...rome });
  const { json: chosen } = await client.get('/places?fields=address,extra');
  assert.deepEqual(chosen, [{ address: rome.address, extra: rome.extra }]);
  const text = '{"name":"x","extra":{"__proto__":{"admin":true},"hasOwnProperty":1}}';
  const fields = { 'content-type': 'application/json' };
  assert.equal((await client.post('/places', { headers: fields, body: text })).status, 201);
  assert.match((await client.get('/places/2')).body, /"extra":\{"__proto__":\{"admin":true\},"hasOwnProperty":1\}/);
  assert.equal(Object(Object.prototype).admin, undefined);
});

test('a patch with an object as it was read changes nothing, even if a member is null', async (t) => {
  const { client, create } = await opened(t);
  await create(rome);
  const { address } = rome;
  const before = await client.get('/places/1');
  const after = await client.patch('/places/1', { json: { address } });
  assert.deepEqual([after.body, after.header('etag')], [before.body, before.header('etag')]);
});

const refused: readonly [string, unknown, ...string[]][] = [
  ['a member of the wrong kind', { address: { city: 7 } }, '/address/city wrong_type'],
  ['a member that is missing', { address: {} }, '/address/city required'],
  ['an unknown member', { address: { city: 'Rome', colour: 'red' } }, '/address/colour unknown_field'],
  ['what is no object', { address: [] }, '/address wrong_type'],
  ['null where it is no value', { address: null }, '/address wrong_type'],
  ['deep in an object', { address: { city: 'x', zip: '123456', geo: { lat: 91 } } },
    '/address/zip too_long', '/address/geo/lat too_large'],
  ['an element', { hours: [{ day: 'mo', open: true }, { day: 'we' }] },
    '/hours/1/open required', '/hours/1/day not_allowed'],
  ['an element of an element', { grid: [[1], [1, 'a'], [1, 2, 3]] }, '/grid/1/1 wrong_type', '/grid/2 too_long'],
  ['JSON beyond its bytes', { extra: 'x'.repeat(199) }, '/extra too_large'],
  ['numbers beyond a double', { extra: { deep: [1, Infinity] } }, '/extra/deep/1 not_finite'],
  ['a lone surrogate', { extra: { deep: ['\ud800'] } }, '/extra/deep/0 lone_surrogate'],
  ['a lone surrogate in a name', { extra: { '\ud800': 1 } }, '/extra lone_surrogate'],
  ...['ftp://x', 'example.org', 'https://', 'javascript:alert(1)', ' https://x.org', 'https://x y', 'https:\\x']
    .map((site): [string, unknown, string] => [`the address ${site}`, { site }, '/site not_a_url']),
];
for (const [what, members, ...issues] of refused) {
  test(`is refused with its place: ${what}`, async (t) => {
    const { client } = await opened(t);
    // Written by hand, because `JSON.stringify` cannot produce it.
    const body = JSON.stringify({ name: 'x', ...Object(members) }, (_, value) => (value === Infinity ? 'INF' : value))
      .replace('"INF"', '1e400');
    const { status, json } = await client.post('/places', { headers: { 'content-type': 'application/json' }, body });
    assert.equal(status, 422);
    const found = Object(json).errors.map((each: any) => `${each.pointer} ${each.code}`);
    assert.deepEqual(found, issues);
    assert.deepEqual((await client.get('/places')).json, []);
  });
}

test('a patch is merged into nested objects, and null is stored where it is a value', async (t) => {
  const { create, send } = await opened(t);
  await create(rome);
  const patch = async (json: unknown) => (await send('PATCH', '/places/1', json)).answer;
  const { address } = Object(await patch({ address: { zip: '00100', geo: { lng: null, alt: 20 } } }));
  assert.deepEqual(address, {
    city: 'Rome', note: null, geo: { lat: 41.9, tags: rome.address.geo.tags, alt: 20 }, zip: '00100',
  });
  assert.equal(Object(await patch({ address: { zip: null, note: 'x' } })).address.zip, undefined);
  assert.equal(Object(await patch({ address: { note: null } })).address.note, null);
  assert.equal(Object(await patch({ closedAt: '2026-01-31T12:00:00.000Z' })).closedAt, '2026-01-31T12:00:00.000Z');
  assert.equal(Object(await patch({ closedAt: null })).closedAt, null);
  assert.deepEqual((await send('PATCH', '/places/1', { address: { city: null } })).issues, ['/address/city required']);
  const { extra, hours } = Object(await patch({ extra: { any: null, more: { a: 1 } }, hours: null }));
  assert.deepEqual([extra.any, extra.more, hours], [undefined, { a: 1 }, undefined]);
  const whole = Object((await send('PUT', '/places/1', { name: 'Only' })).answer);
  assert.deepEqual(whole, { id: 1, name: 'Only' });
});

test('a json field is patched as RFC 7396 says, by its own vectors', async (t) => {
  const { create, send } = await opened(t);
  // A patch that is null removes the field.
  const ofFields = vectors.filter(([, patch]) => patch !== null);
  for (const [index, [original, patch, result]] of ofFields.entries()) {
    await create({ name: 'x', extra: original });
    const { status, answer } = await send('PATCH', `/places/${index + 1}`, { extra: patch });
    assert.equal(status, 200);
    assert.deepEqual(Object(answer).extra, result, JSON.stringify([original, patch]));
  }
});

const bad: readonly [fields: object, problem: RegExp][] = [
  [{ a: { kind: 'object' } }, /\/fields\/a\/fields must be an object/],
  [{ a: { kind: 'object', fields: { 'b.c': { kind: 'text' } } } }, /\/fields\/a\/fields\/b[.]c needs a name/],
  [{ a: { kind: 'object', fields: { b: { kind: 'text', default: 'x' } } } }, /b\/default is not a known member/],
  [{ a: { kind: 'object', fields: { b: { kind: 'text', unique: true } } } }, /b\/unique is not a known member/],
  [{ a: { kind: 'object', fields: { bId: { kind: 'reference', to: 'x' } } } }, /bId\/kind must be one of/],
  [{ a: { kind: 'list', of: { kind: 'list', of: { kind: 'reference', to: 'items' } } } },
    /must not have references within/],
  [{ a: { kind: 'json', like: 'object' } }, /like must be one of text, number/],
  [{ a: { kind: 'json', bytesMax: -1 } }, /bytesMax must be at least 0/],
  [{ a: { kind: 'text', nullable: 'yes' } }, /nullable must be true or false/],
];
test('a declaration of nested fields is checked', () => {
  for (const [fields, problem] of bad) {
    // A declaration from a file has no type.
    const definition = { name: 'things', singular: 'thing', fields } as CollectionDefinition;
    assert.throws(() => defineCollection(definition), { message: problem });
  }
});

const loose = defineCollection({
  name: 'loose',
  singular: 'looseRecord',
  access,
  fields: {
    value: { kind: 'json', optional: true },
    author: {
      kind: 'object', optional: true, fields: { name: { kind: 'text' }, born: { kind: 'integer', optional: true } },
    },
    views: { kind: 'json', like: 'number', optional: true },
    at: { kind: 'timestamp', nullable: true, optional: true },
    text: { kind: 'text', max: 5000, optional: true },
  },
});

/** In the one order of all values; what follows a comma is equal to what is before it. */
const ordered: readonly (readonly unknown[])[] = [
  [false], [true], [-5], [0], [1, 1], [1.5], [10], [''], ['1'], ['10'], ['B'], ['a'], ['é'],
  [[], {}, [1], { a: 1 }], [null, undefined],
];

test('mixed values have one order, forwards and backwards, with and without a kept order', async (t) => {
  const { client, create } = await opened(t, loose);
  const flat = ordered.flatMap((equal, rank) => equal.map((value) => ({ value, rank })));
  // Shuffled: seven and the number of values have no common divisor.
  const shuffled = flat.map((_, n) => flat[(n * 7) % flat.length] ?? { value: undefined, rank: 0 });
  for (const { value } of shuffled) await create({ value });
  const ranks = (ids: readonly number[]) => ids.map((id) => shuffled[id - 1]?.rank);
  const ids = async (query: string): Promise<number[]> => {
    const found: number[] = [];
    for (let target: string | undefined = `/loose?${query}`; target !== undefined;) {
      const { json, header } = await client.get(target);
      found.push(...Object(json).map(({ id }: { id: number }) => id));
      target = /<([^>]*)>; rel="next"/.exec(header('link') ?? '')?.[1];
    }
    return found;
  };
  const forwards = flat.map(({ rank }) => rank);
  for (let round = 0; round < 3; round += 1) {
    for (const limit of [1, 4, 1000]) {
      assert.deepEqual(ranks(await ids(`sort=value&limit=${limit}`)), forwards, `by ${limit}`);
      assert.deepEqual(ranks(await ids(`sort=-value&limit=${limit}`)), forwards.toReversed(), `by ${limit}`);
    }
  }
  const last = await client.get(`/loose?sort=value&limit=4&offset=${forwards.length - 4}`);
  assert.deepEqual(ranks(Object(last.json).map(({ id }: { id: number }) => id)), forwards.slice(-4));
});

test('-0 is 0 at any depth, before and after a restart', async (t) => {
  const { app } = await opened(t, loose);
  const records = app.collection(loose);
  const zeros = (zero: number) => ({ value: { a: [zero, { b: zero }] }, author: { name: 'Ada', born: zero } });
  const { id } = await records.create(zeros(-0));
  assert.deepEqual(records.get(id), { id, ...zeros(0) });
  await records.change(id, zeros(-0));
  await records.replace(id, zeros(-0));
  assert.deepEqual(records.get(id), { id, ...zeros(0) });
  const free = defineCollection({ name: 'free', additional: true, fields: {} });
  const further = await opened(t, free);
  assert.deepEqual((await further.app.collection(free).create({ a: [{ b: -0 }] })), { id: 1, a: [{ b: 0 }] });
});

test('filters and sorting go into objects and JSON', async (t) => {
  const { client, create } = await opened(t, loose);
  const records = [
    { value: 1, author: { name: 'Ada', born: 1815 }, views: 10, at: null },
    { value: '1', author: { name: 'Grace' }, views: 9, at: '2026-01-31T12:00:00.000Z', text: `${'x'.repeat(300)}b` },
    { value: true, views: 'many', text: `${'x'.repeat(300)}a` },
    { value: 'true', author: { name: 'Ada', born: 1900 } },
    { value: { city: 'Rome', tags: ['Lamp', { deep: 'oak' }] } },
    { value: [1, 'a'] },
    { value: null },
  ];
  for (const record of records) assert.equal((await create(record)).status, 201);
  const cases: readonly [query: string, ids: readonly number[]][] = [
    ['value=1', [1, 2]], ['value:ne=1', [3, 4, 5, 6, 7]], ['value=true', [3, 4]], ['value:in=1,true', [1, 2, 3, 4]],
    ['value:gt=0', [1]], ['value:gte=t', [4]], ['value:lt=z', [2, 4]], ['value:contains=ru', [4]],
    ['value:has=1', [6]], ['value:has=a', [6]], ['value:exists=false', [7]], ['value:exists=true', [1, 2, 3, 4, 5, 6]],
    ['value.city=Rome', [5]], ['value.city:starts=R&value.tags:has=Lamp', [5]], ['value.city.x=1', []],
    ['author.name=Ada', [1, 4]], ['author.born:gte=1850', [4]], ['author.born:exists=false', [2, 3, 5, 6, 7]],
    ['sort=author.name,-author.born', [4, 1, 2, 3, 5, 6, 7]], 
    ['views=10', [1]], ['views:gt=9', [1]], ['sort=views&limit=3', [2, 1, 3]],
    ['at:exists=false', [1, 3, 4, 5, 6, 7]], ['q=oak', [5]], ['q=LAMP', [5]], ['q=grace', [2]],
    ['sort=text&text:exists=true', [2, 3]], ['text:gt=' + 'x'.repeat(300), [2, 3]],
    ['sort=text&text:gt=' + `${'x'.repeat(300)}a`, [2]],
    ['or=(value.city:eq:Rome,author.name:eq:Grace)', [2, 5]],
  ];
  for (const [query, ids] of cases) {
    const { status, json } = await client.get(`/loose?${query}`);
    assert.equal(status, 200, query);
    assert.deepEqual(Object(json).map(({ id }: { id: number }) => id), ids, query);
  }
  for (const query of ['author=x', 'author.age=1', 'sort=author', 'text.x=1', 'views=many', 'author.born=x']) {
    assert.equal((await client.get(`/loose?${query}`)).status, 400, query);
  }
});

const open = defineCollection({
  name: 'open',
  singular: 'openRecord',
  access: { ...access, remove: 'public' },
  additional: true,
  fields: { title: { kind: 'text', min: 1 }, state: { kind: 'choice', values: ['a', 'b'], default: 'a' } },
});

test('additional members are data like any other', async (t) => {
  const { client, create, send } = await opened(t, open);
  const fields = { 'content-type': 'application/json' };
  const others = '"ownerId":1,"revision":9,"key":2,"more":3,".more":4,"__proto__":{"a":1},"constructor":5,"n":null}';
  const body = `{"title":"x",${others}`;
  const made = await client.post('/open', { headers: fields, body });
  assert.equal(made.status, 201);
  assert.equal(made.body, `{"id":1,"title":"x","state":"a",${others}`);
  assert.equal((await client.get('/open/1')).body, made.body);
  assert.equal((await client.get('/open?fields=title')).body, '[{"title":"x"}]');
  const patched = Object((await send('PATCH', '/open/1', { more: null, added: { deep: [1] }, title: 'y' })).answer);
  assert.deepEqual([patched.more, patched.added, patched.title, patched.revision], [undefined, { deep: [1] }, 'y', 9]);
  const tag = (await client.get('/open/1')).header('etag');
  const again = Object((await send('PATCH', '/open/1', { added: { deep: [2] } })).answer);
  assert.deepEqual(again.added, { deep: [2] }, 'a change of further members alone is a change');
  assert.notEqual((await client.get('/open/1')).header('etag'), tag);
  assert.deepEqual((await send('PUT', '/open/1', { title: 'z', only: true })).answer,
    { id: 1, title: 'z', state: 'a', only: true });
  assert.deepEqual((await create({ title: 'x', far: ['\ud800'] })).issues, ['/far/0 lone_surrogate']);
  assert.deepEqual((await create({ title: 1, id: 5, createdAt: 1 })).issues, ['/id read_only', '/title wrong_type']);
});

test('additional members can be filtered and sorted by, whatever their names are', async (t) => {
  const { client, create, app } = await opened(t, open);
  for (const views of [3, 1, '2', null]) await create({ title: 'x', views, author: { name: `A${views}` }, ownerId: 7 });
  const ids = async (query: string) =>
    Object((await client.get(`/open?${query}`)).json).map(({ id }: { id: number }) => id);
  assert.deepEqual(await ids('views:gt=1'), [1]);
  assert.deepEqual(await ids('sort=views'), [2, 1, 3, 4]);
  assert.deepEqual(await ids('sort=-views&limit=4'), [4, 3, 1, 2]);
  assert.deepEqual(await ids('author.name=A1'), [2]);
  assert.deepEqual(await ids('nothing:exists=false&title=x'), [1, 2, 3, 4]);
  assert.deepEqual(await ids('q=a2'), [3], 'a search looks into them');
  assert.deepEqual(await ids('ownerId=7&limit=2'), [1, 2], 'the member, not the owner that is stored');
  assert.deepEqual(await ids('revision:exists=true'), [], 'no record has the member');
  for (const hidden of ['.number=1', '.owner=0', '.more.views=1', 'sort=.number', 'sort=.owner', 'sort=.more.views'])
    assert.equal((await client.get(`/open?${hidden}`)).status, 400, hidden);
  const link = (await client.get('/open?sort=views&limit=2')).header('link');
  const target = /<([^>]*)>/.exec(link ?? '')?.[1] ?? '';
  assert.deepEqual(Object((await client.get(target)).json).map(({ id }: { id: number }) => id), [3, 4]);
  const first = { id: 1, title: 'x', state: 'a', views: 3, author: { name: 'A3' }, ownerId: 7 };
  assert.deepEqual(app.collection('open').get(1), first);
});
