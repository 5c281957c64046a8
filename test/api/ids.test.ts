import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { defineCollection, type CollectionDefinition } from '../../src/index.ts';
import { startApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { createApp } from '../support/inside.ts';

const access = {
  list: 'public', create: 'public', read: 'public', replace: 'public', patch: 'public', remove: 'public',
} as const;
const title = { kind: 'text', optional: true } as const;
const things = (id: CollectionDefinition['id']) => defineCollection({ name: 'things', fields: { title }, access, id });
const kinds = { integer: { kind: 'integer', given: true }, text: { kind: 'text' }, any: { kind: 'any' } } as const;

async function opened(t: TestContext, id: CollectionDefinition['id']) {
  const fixture = await startApp(t, { collections: [things(id)] });
  const { client } = fixture;
  const create = async (json: unknown) => {
    const { status, json: answer, header: field } = await client.post('/things', { json });
    const problem = Object(answer).errors?.map((each: any) => `${each.pointer} ${each.code}`).join();
    return [status, problem ?? Object(answer).id, field('location')];
  };
  const idsOf = async (query = ''): Promise<unknown[]> =>
    Object((await client.get(`/things${query}`)).json).map(({ id }: any) => id);
  return { ...fixture, create, idsOf };
}

test('a text id is sent or generated, found in any encoding, and never changes', async (t) => {
  const { client, create, idsOf } = await opened(t, kinds.text);
  assert.deepEqual(await create({ id: 'a/b c', title: 'x' }), [201, 'a/b c', '/things/a%2Fb%20c']);
  assert.deepEqual(await create({ id: '7' }), [201, '7', '/things/7']);
  assert.deepEqual(await create({ id: '%41' }), [201, '%41', '/things/%2541']);
  const [status, made] = await create({ title: 'made' });
  assert.equal(status, 201);
  assert.match(String(made), /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  for (const path of ['a%2Fb%20c', '%61%2fb%20c', '7', '%37', '%2541'])
    assert.equal((await client.get(`/things/${path}`)).status, 200, path);
  for (const path of ['a/b%20c', 'a%252Fb%20c', '%41', 'A%2Fb%20c', '4', '1', '%FF', '%00', '07', '7.0', 'a%5Cb%20c'])
    assert.equal((await client.get(`/things/${path}`)).status, 404, path);
  assert.deepEqual(await idsOf(), ['a/b c', '7', '%41', made]);
  const one = await client.get('/things/7');
  const etag = one.header('etag') ?? '';
  assert.equal((await client.get('/things/7', { headers: { 'if-none-match': etag } })).status, 304);
  const changed = await client.put('/things/7', { json: { id: '7', title: 'new' }, headers: { 'if-match': etag } });
  assert.deepEqual([changed.status, changed.json], [200, { id: '7', title: 'new' }]);
  const other = await client.patch('/things/7', { json: { id: '8' } });
  assert.deepEqual([other.status, Object(other.json).errors[0].code], [422, 'read_only']);
  assert.equal((await client.delete('/things/7')).status, 204);
  assert.equal((await client.get('/things/7')).status, 404);
  assert.deepEqual(await create({ id: '7' }), [201, '7', '/things/7'], 'a removed one is given again');
  assert.deepEqual(await idsOf('?sort=id'), ['%41', '7', 'a/b c', made].sort());
  assert.deepEqual(await idsOf('?id=7'), ['7']);
  assert.deepEqual(await idsOf('?id:in=7,a/b%20c'), ['a/b c', '7']);
  assert.deepEqual(await idsOf('?id:starts=a'), ['a/b c', ...(String(made).startsWith('a') ? [made] : [])]);
});

test('invalid ids are refused', async (t) => {
  const { create, client } = await opened(t, kinds.text);
  const refused: readonly (readonly [unknown, string])[] = [
    ['.', 'not_allowed'], ['..', 'not_allowed'], ['batch', 'not_allowed'], ['', 'too_short'], [1, 'wrong_type'],
    ['a\nb', 'control_character'], ['\u0000', 'control_character'], ['x'.repeat(129), 'too_long'],
    ['😀'.repeat(129), 'too_long'], [null, 'wrong_type'], [['a'], 'wrong_type'], [true, 'wrong_type'],
  ];
  for (const [id, code] of refused) assert.deepEqual((await create({ id })).slice(0, 2), [422, `/id ${code}`]);
  assert.deepEqual((await create({ id: '😀'.repeat(128) })).slice(0, 2), [201, '😀'.repeat(128)]);
  assert.equal((await client.get(`/things/${encodeURIComponent('😀'.repeat(128))}`)).status, 200);
  for (const id of ['__proto__', 'constructor', 'toJSON', 'é', 'e\u0301', '%', '?', '#', ' ']) {
    assert.deepEqual(await create({ id }), [201, id, `/things/${encodeURIComponent(id)}`]);
    assert.deepEqual((await client.get(`/things/${encodeURIComponent(id)}`)).json, { id });
    assert.deepEqual(await create({ id }), [409, '/id not_unique', undefined]);
  }
});

test('generated ids skip the integers that were sent, which do not move the counter', async (t) => {
  const { create, idsOf, client } = await opened(t, kinds.integer);
  assert.deepEqual(await create({}), [201, 1, '/things/1']);
  assert.deepEqual(await create({ id: 4 }), [201, 4, '/things/4']);
  assert.deepEqual(await create({ id: Number.MAX_SAFE_INTEGER }), [201, 2 ** 53 - 1, `/things/${2 ** 53 - 1}`]);
  assert.deepEqual(await create({ id: -3 }), [201, -3, '/things/-3']);
  assert.deepEqual(await create({ id: 0 }), [201, 0, '/things/0']);
  assert.deepEqual(await create({}), [201, 7, '/things/7'], 'its number; none is 4, which is an id');
  assert.deepEqual(await create({ id: 2 }), [201, 2, '/things/2'], 'a number that no record shows');
  assert.deepEqual(await create({ id: 8 }), [201, 8, '/things/8']);
  assert.deepEqual(await create({ id: 9 }), [201, 9, '/things/9']);
  assert.deepEqual(await create({ id: 11 }), [201, 11, '/things/11']);
  assert.deepEqual(await create({}), [201, 12, '/things/12'], '11 is taken');
  assert.deepEqual(await create({ id: 1 }), [409, '/id not_unique', undefined]);
  assert.deepEqual((await create({ id: 1.5 })).slice(0, 2), [422, '/id wrong_type']);
  assert.deepEqual((await create({ id: '1' })).slice(0, 2), [422, '/id wrong_type']);
  assert.deepEqual((await create({ id: 2 ** 53 })).slice(0, 2), [422, '/id too_large']);
  for (const path of ['01', '+1', '1.0', '1e0', '-0', '%31%2F', '9007199254740992'])
    assert.equal((await client.get(`/things/${path}`)).status, 404, path);
  assert.equal((await client.get('/things/%31')).status, 200);
  assert.deepEqual(await idsOf('?sort=id'), [-3, 0, 1, 2, 4, 7, 8, 9, 11, 12, 2 ** 53 - 1]);
  assert.deepEqual(await idsOf('?sort=-id&limit=2'), [2 ** 53 - 1, 12]);
  assert.deepEqual(await idsOf('?id:lt=2'), [1, -3, 0]);
});

test('with ids of any kind, 1 and "1" are the same, and generated ids are texts once one is', async (t) => {
  const { create, idsOf, client } = await opened(t, kinds.any);
  assert.deepEqual(await create({}), [201, 1, '/things/1']);
  assert.deepEqual(await create({ id: '1' }), [409, '/id not_unique', undefined]);
  assert.deepEqual(await create({ id: 1.5 }), [201, 1.5, '/things/1.5']);
  assert.deepEqual(await create({}), [201, 3, '/things/3']);
  assert.deepEqual(await create({ id: '4' }), [201, '4', '/things/4']);
  assert.deepEqual(await create({ id: 4 }), [409, '/id not_unique', undefined]);
  assert.match(String((await create({}))[1]), /^[0-9a-f-]{36}$/);
  assert.deepEqual((await idsOf('?sort=id')).slice(0, 3), [1, 1.5, 3], 'numbers before texts');
  assert.deepEqual(await idsOf('?id=4'), ['4']);
  assert.deepEqual(await idsOf('?id=1'), [1]);
  assert.deepEqual(await idsOf('?id:ne=4&id:lte=3'), [1, 1.5, 3]);
  assert.equal((await client.delete('/things/4')).status, 204);
});

test('if ids are integers, a path with a slash in it finds nothing', async (t) => {
  const { client, create } = await opened(t, undefined);
  assert.deepEqual(await create({}), [201, 1, '/things/1']);
  assert.deepEqual((await create({ id: 7 })).slice(0, 2), [422, '/id read_only']);
  for (const path of ['%31', 'a%2Fb', '1%2F', '%2F', '%00'])
    assert.equal((await client.get(`/things/${path}`)).status, 404);
});

for (const [kind, id] of Object.entries(kinds)) {
  const given = kind === 'text' ? 'k' : 1000;
  const nth = (index: number) => (typeof given === 'number' ? given - index : `${given}${99 - index}`);

  test(`pages of ids of the kind ${kind} skip and repeat nothing, in every order`, async (t) => {
    const { create, client } = await opened(t, id);
    for (let index = 0; index < 30; index += 1) await create({ id: nth(index), title: `t${index % 7}` });
    for (const sort of ['', '&sort=id', '&sort=-id', '&sort=title', '&sort=-title', '&sort=title,-id']) {
      const whole = Object((await client.get(`/things?${sort}`)).json);
      const seen: unknown[] = [];
      let next: string | undefined = `/things?limit=7${sort}`;
      while (next !== undefined) {
        const page = await client.get(next);
        seen.push(...Object(page.json));
        next = /<([^>]*)>; rel="next"/.exec(page.header('link') ?? '')?.[1];
      }
      assert.equal(whole.length, 30);
      assert.deepEqual(seen, whole, sort);
    }
    const first = (await client.get('/things?limit=1')).json;
    assert.deepEqual(first, [{ id: nth(0), title: 't0' }], 'in the order of creation');
  });

  test(`a batch, its keys, the feed and a removal name ids of the kind ${kind}`, async (t) => {
    const { client, app } = await opened(t, id);
    const batch = [{ id: nth(0) }, { id: nth(1) }, {}];
    const keyed = { json: batch, headers: { 'idempotency-key': 'once' } };
    const made = await client.post('/things/batch', keyed);
    assert.equal(made.status, 201, made.body);
    assert.deepEqual((await client.post('/things/batch', keyed)).json, made.json);
    const twice = await client.post('/things/batch', { json: [{ id: nth(5) }, { id: nth(5) }] });
    assert.deepEqual([twice.status, Object(twice.json).errors[0].pointer], [409, '/1/id']);
    assert.equal(Object((await client.get('/things')).json).length, 3, 'nothing of it was written');
    assert.equal((await client.delete(`/things/${nth(0)}`)).status, 204);
    assert.equal(app.unready(), undefined);
  });
}

const authors = (id: CollectionDefinition['id']) =>
  defineCollection({ name: 'authors', id, fields: { title }, access });
const posts = defineCollection({
  name: 'posts', id: { kind: 'text' }, access,
  fields: {
    authorId: { kind: 'reference', to: 'authors' },
    editorIds: { kind: 'list', of: { kind: 'reference', to: 'authors', onDelete: 'clear' }, optional: true },
    parentId: { kind: 'reference', to: 'posts', onDelete: 'remove', optional: true },
  },
});

for (const [kind, id] of Object.entries(kinds)) {
  const [ada, bo] = kind === 'text' ? ['ada', '2'] : [70, -2];

  test(`references to ids of the kind ${kind} are checked, listed, embedded and followed`, async (t) => {
    const { client } = await startApp(t, { collections: [authors(id), posts] });
    const send = async (method: string, path: string, json?: unknown) => {
      const answer = await client.send(method, path, json === undefined ? {} : { json: Object(json) });
      return [answer.status, Object(answer.json).errors?.[0].pointer ?? Object(answer.json).code];
    };
    assert.deepEqual(await send('POST', '/authors/batch', [{ id: ada }, { id: bo }]), [201, undefined]);
    assert.deepEqual(await send('POST', '/posts', { id: 'p', authorId: ada, editorIds: [bo, ada] }), [201, undefined]);
    assert.deepEqual(await send('POST', '/posts', { id: 'q', authorId: bo, parentId: 'p' }), [201, undefined]);
    assert.deepEqual(await send('POST', '/posts', { authorId: 1 }), [422, '/authorId'], 'the number of a record');
    assert.deepEqual(await send('POST', '/posts', { authorId: `${ada}x` }), [422, '/authorId']);
    assert.deepEqual(await send('POST', '/posts', { authorId: ada, parentId: '1' }), [422, '/parentId']);
    if (kind === 'any') assert.deepEqual(await send('POST', '/posts', { authorId: '70' }), [422, '/authorId']);
    const idsOf = async (query: string) =>
      Object((await client.get(`/posts?${query}`)).json).map((each: any) => each.id);
    assert.deepEqual(await idsOf(`authorId=${ada}`), ['p']);
    assert.deepEqual(await idsOf(`authorId:in=${ada},${bo}`), ['p', 'q']);
    assert.deepEqual(await idsOf(`editorIds:has=${bo}`), ['p']);
    const embedded = Object((await client.get('/posts/q?embed=authorId,parentId')).json);
    assert.deepEqual([embedded.author.id, embedded.parent.id], [bo, 'p']);
    const list = Object((await client.get('/authors?embed=posts:authorId')).json);
    assert.deepEqual(list.map((one: any) => one['posts:authorId'].map((each: any) => each.id)), [['p'], ['q']]);
    assert.deepEqual(await send('DELETE', `/authors/${ada}`), [409, 'still_referenced']);
    assert.deepEqual(await send('DELETE', '/posts/p'), [204, undefined]);
    assert.deepEqual(await idsOf(''), [], 'q was below p');
    assert.deepEqual(await send('POST', '/posts', { id: 'r', authorId: ada, editorIds: [bo] }), [201, undefined]);
    assert.deepEqual(await send('DELETE', `/authors/${bo}`), [204, undefined]);
    assert.deepEqual(Object((await client.get('/posts/r')).json).editorIds, []);
  });
}

test('a collection can switch to sent ids as it is, but not back', async (t) => {
  const directory = temporaryDirectory(t);
  const open = (id: CollectionDefinition['id']) => createApp({ directory, auth: 'none', collections: [things(id)] });
  const ask = async (app: Awaited<ReturnType<typeof open>>, method: string, target: string, json?: object) => {
    const body = json && { body: JSON.stringify(json), fields: { 'content-type': 'application/json' } };
    return JSON.parse((await app.inject({ method, target, ...body })).body);
  };
  let app = await open(undefined);
  await ask(app, 'POST', '/things', { title: 'one' });
  await app.close();
  app = await open(kinds.integer);
  await ask(app, 'POST', '/things', { id: 9, title: 'nine' });
  await app.close();
  app = await open(kinds.any);
  await ask(app, 'POST', '/things', { id: 'x', title: 'x' });
  const all = [{ id: 1, title: 'one' }, { id: 9, title: 'nine' }, { id: 'x', title: 'x' }];
  assert.deepEqual(await ask(app, 'GET', '/things'), all);
  await app.close();
  for (const [id, record] of [[undefined, '9'], [kinds.integer, '"?x"?'], [kinds.text, '1']] as const) {
    const what = new RegExp(`record ${record} has a \\w+ as its id, which the declaration does not allow`);
    await assert.rejects(open(id), what);
  }
  app = await open(kinds.any);
  assert.deepEqual(await ask(app, 'GET', '/things'), all, 'nothing was lost');
  await app.close();
});

test('a mistake in the ids of a declaration is reported', () => {
  const refused = (id: unknown) => {
    const definition = { name: 'things', fields: { title }, id } as unknown as CollectionDefinition;
    assert.throws(() => defineCollection(definition), /\/id/);
  };
  for (const id of [null, 'text', {}, { kind: 'uuid' }, { kind: 'text', given: false }, { kind: 'any', max: 3 }])
    refused(id);
});
