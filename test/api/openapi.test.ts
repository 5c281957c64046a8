import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problems } from '../../src/base/errors.ts';
import { openApi } from '../../src/features/openapi/document.ts';
import { describe } from '../../src/features/openapi/operations.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { allCommands } from '../../src/cli/commands.ts';
import { parseDeclarations } from '../../src/collections/declaration-file.ts';
import { addSingulars } from '../../src/collections/nouns.ts';
import { settings, valuesOf } from '../../src/config/options.ts';
import { defineCollection } from '../../src/index.ts';
import { runCommand } from '../support/cli/terminal.ts';
import { startApp } from '../support/app.ts';
import { allRoutes, resolve, findViolations } from '../support/contract.ts';

const table = await allRoutes(undefined, valuesOf(settings, (option) => option.default));
const document = openApi(table, '');
const routes = describe(table);

/** Every object in the document, with the way to it. */
function* objects(value: JsonValue, way: string): Generator<[way: string, object: JsonObject]> {
  if (isJsonObject(value)) yield [way, value];
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) yield* objects(member, `${way}/${name}`);
}

const all = [...objects(document, '#')];

test('the served document equals the one that the command prints', async (t) => {
  const { client } = await startApp(t);
  const served = (await client.get('/openapi.json')).json;
  assert.deepEqual(served, JSON.parse(JSON.stringify(document)));
  assert.deepEqual(served, JSON.parse((await runCommand(await allCommands(), ['openapi'])).out));
  const strict = await startApp(t, { requireIfMatch: true, registration: 'open', passwordLengthMin: 9 });
  const words = ['openapi', '--require-if-match', '--registration', 'open', '--password-min', '9'];
  const printed = JSON.parse((await runCommand(await allCommands(), words)).out);
  assert.deepEqual((await strict.client.get('/openapi.json')).json, printed);
});

test('every row of the route table is an operation with its own id', () => {
  const ids = all.flatMap(([, { operationId }]) => (operationId === undefined ? [] : [String(operationId)]));
  assert.deepEqual(ids.sort(), table.map(({ operationId }) => operationId).sort());
});

test('no collection can have the name of a schema that is in every document', async () => {
  const { components } = openApi(await allRoutes([]), '');
  const titles = Object.keys(Object(components).schemas);
  assert.ok(titles.includes('Minute'));
  for (const title of titles) {
    const singular = title.charAt(0).toLowerCase() + title.slice(1);
    const define = () => parseDeclarations({ collections: [{ name: 'records', singular, fields: {} }] }, []);
    assert.throws(define, /\/singular must be a word/, singular);
  }
});

test('every operation has the name of its access rule, for pages that offer what a caller may do', () => {
  for (const { operationId, access } of routes) {
    const [, operation] = all.find(([, object]) => object['operationId'] === operationId) ?? [];
    assert.equal(operation?.['x-access'], access, operationId);
  }
});

test('the document declares and describes the tag of every operation, which linters want', () => {
  const used = new Set(all.flatMap(([, { operationId, tags }]) => (operationId === undefined ? [] : tags)));
  const declared: { name: string; description: string }[] = Object(document).tags;
  assert.deepEqual(declared.map(({ name }) => name), [...used]);
  assert.ok(declared.every(({ description }) => description.endsWith('.')));
});

test('every operation has its successes and one response for all problems', () => {
  const operations = all.filter(([, { operationId }]) => operationId !== undefined);
  assert.equal(operations.length, routes.length);
  for (const [way, { responses }] of operations) {
    const { default: problem, 400: refusal, ...others } = Object(responses);
    for (const one of [problem, refusal]) assert.deepEqual(one, { $ref: '#/components/responses/Problem' }, way);
    const statuses = Object.keys(others).map(Number);
    assert.ok(statuses.length > 0 && statuses.every((status) => status < 400), way);
  }
  const content = Object(resolve(document, '#/components/responses/Problem/content'))['application/problem+json'];
  const { code } = Object(resolve(document, content.schema.$ref)).properties;
  assert.deepEqual(code.enum, Object.keys(problems));
});

test('without the page, /status is as the document says', async (t) => {
  const { client, signIn } = await startApp(t, { page: false });
  assert.equal((await (await signIn('admin')).get('/status')).status, 200);
  assert.equal((await client.get('/livez')).status, 200);
});

/** For tests of an app without users. */
const withoutUsers = {
  skip: process.env['CAIRN_TEST_STORE'] === 'cluster' && 'a cluster always has users',
};

test('with the dialect, a removal is described as it is answered', withoutUsers, async (t) => {
  const notes = defineCollection({ name: 'notes', fields: {} });
  const options = { auth: 'none', users: false, dialect: 'json-server', collections: [notes] } as const;
  const { client } = await startApp(t, options);
  assert.equal((await client.post('/notes', { json: {} })).status, 201);
  const removed = await client.delete('/notes/1');
  assert.deepEqual([removed.status, removed.body], [200, '{}']);
});

test('the document has the syntax of `or`, which the server enforces', async (t) => {
  const { signIn } = await startApp(t);
  const admin = await signIn('admin');
  const { parameters } = Object(resolve(document, '#/paths/~1items/get'));
  const { schema } = parameters.find(({ name }: { name: string }) => name === 'or');
  const good = ['(price:lt:10)', '(price:lt:10,name:eq:a)', '(name:eq:a\\,b)', '(name:eq:)', '(name:eq:a:b)'];
  const many = (count: number) => `(${Array.from({ length: count }, () => 'price:lt:10').join(',')})`;
  const bad = ['', '()', 'price:lt:10', '(price:lt)', '(price)', '(name:eq:a(b)', '((price:lt:1))', many(21)];
  for (const [values, status] of [[[...good, many(20)], 200], [bad, 400]] as const) {
    for (const value of values) {
      const answer = await admin.get(`/items?or=${encodeURIComponent(value)}`);
      assert.equal(answer.status, status, value);
      assert.equal(findViolations(document, schema, value).length === 0, status === 200, value);
    }
  }
});

/** The declared collections of `x-collections`, without what the document adds to a declaration. */
const declarationsIn = (described: readonly JsonObject[]): JsonObject[] =>
  described.flatMap(({ builtIn, lists, ...collection }) => (builtIn === undefined ? [collection] : []));

test('x-collections has users and items, marked as built in', () => {
  const described: JsonObject[] = Object(document)['x-collections'];
  const builtIn = described.map(({ name, builtIn }) => [name, builtIn]);
  assert.deepEqual(builtIn.slice(0, 2), [['users', 'users'], ['items', 'items']]);
  const [users, items] = described;
  assert.deepEqual(Object.keys(Object(users?.['fields'])), ['name', 'email', 'role']);
  assert.deepEqual(Object(items?.['fields']).price, { kind: 'number', min: 0, max: 1e12, example: 24.5 });
});

test('x-collections has exactly what a list takes', async (t) => {
  const access = { list: 'public', read: 'public' } as const;
  const notes = defineCollection({ name: 'notes', access, fields: {
    title: { kind: 'text' },
    address: { kind: 'object', fields: { city: { kind: 'text' } } },
    tags: { kind: 'list', of: { kind: 'text' } },
  } });
  const { app, client } = await startApp(t, { collections: [notes] });
  const { 'x-collections': described } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const { lists } = described.find(({ name }: { name: string }) => name === 'notes');
  assert.deepEqual(lists.filters['address.city'].at(-1), 'exists');
  assert.deepEqual(lists.sort, ['id', 'title', 'address.city']);
  const filters = Object.entries<string[]>(lists.filters).flatMap(([name, operators]) =>
    operators.map((operator) => `${name}:${operator}=${operator === 'exists' ? 'true' : '1'}`));
  for (const query of [...filters, `sort=${lists.sort}`, `fields=${lists.fields}`])
    assert.equal((await client.get(`/notes?${query}`)).status, 200, query);
});

test('the document has the declarations of all collections, as a file has them', withoutUsers, async (t) => {
  const note = { kind: 'text', min: 1 } as const;
  const access = { list: ['owner', 'session'], read: ['owner', 'session'] } as const;
  const collections = [
    defineCollection({ name: 'users', id: { kind: 'any' }, fields: { note }, additional: true }),
    defineCollection({ name: 'posts', id: { kind: 'text' }, timestamps: true, access, fields: {
      note, usersId: { kind: 'reference', to: 'users', onDelete: 'remove' },
    } }),
    defineCollection({ name: 'plain', fields: { createdAt: { kind: 'timestamp', optional: true } } }),
    defineCollection({
      name: 'settings', single: true, timestamps: true, fields: { note }, access: { read: 'public' },
    }),
    defineCollection({ name: 'theme', single: true, value: { kind: 'json', like: 'text' } }),
  ];
  const { app } = await startApp(t, { collections, users: false, auth: 'none', withoutPort: true });
  const { 'x-collections': declared } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const parsed = parseDeclarations({ users: false, collections: declarationsIn(declared) }, []);
  assert.deepEqual(parsed.collections, addSingulars({ users: false, collections }));
});

test('an id of any kind, and a reference to one, is a string or a number', async (t) => {
  const posts = defineCollection({ name: 'posts', id: { kind: 'any' }, fields: {} });
  const postId = { kind: 'reference', to: 'posts', optional: true } as const;
  const notes = defineCollection({ name: 'notes', fields: { postId } });
  const { app } = await startApp(t, { collections: [posts, notes], withoutPort: true });
  const { components: { schemas }, paths } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const types = ({ anyOf }: { anyOf: { type: string }[] }) => anyOf.map(({ type }) => type);
  assert.deepEqual(types(schemas.Post.properties.id), ['string', 'number']);
  assert.deepEqual(types(schemas.NotePatch.properties.postId), ['string', 'number', 'null']);
  const parameter = (path: string, name: string) =>
    paths[path].get.parameters.find((each: { name: string }) => each.name === name).schema;
  assert.deepEqual(types(parameter('/posts/{id}', 'id')), ['string', 'number']);
  assert.deepEqual(types(parameter('/notes', 'postId')), ['string', 'number']);
});

test('a reference to users is described as it was declared', async (t) => {
  const authorId = { kind: 'reference', to: 'users', onDelete: 'refuse', show: 'name' } as const;
  const notes = defineCollection({
    name: 'notes', fields: { authorId }, ownerRemoved: 'remove', access: { read: 'authorId' },
  });
  const { app } = await startApp(t, { collections: [notes], withoutPort: true });
  const { 'x-collections': declared, components } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const { collections: parsed } = parseDeclarations({ collections: declarationsIn(declared) }, []);
  assert.deepEqual(parsed, addSingulars({ collections: [notes] }));
  const { NoteWithEmbedded, UserName } = components.schemas;
  assert.equal(NoteWithEmbedded.properties.author.$ref, '#/components/schemas/UserName');
  assert.deepEqual(Object.keys(UserName.properties), ['id', 'name']);
});

test('every reference leads somewhere, and so does the type of every problem', () => {
  const references = all.flatMap(([, { $ref }]) => (typeof $ref === 'string' ? [$ref] : []));
  assert.ok(references.length > 100);
  const types = Object.keys(problems).map((code) => `#/x-problems/${code}`);
  for (const reference of [...references, ...types]) assert.ok(isJsonObject(resolve(document, reference)), reference);
});

test('each enum and const has a type, which code generators need', () => {
  const enumerated = all.filter(([, { const: constant, enum: values }]) => (constant ?? values) !== undefined);
  assert.ok(enumerated.length > 10);
  for (const [way, { type }] of enumerated) assert.ok(type !== undefined, way);
});

test('every example matches its schema', () => {
  let count = 0;
  for (const [way, schema] of all) {
    const { examples = [] } = schema;
    for (const example of [examples].flat()) {
      assert.deepEqual(findViolations(document, schema, example), [], way);
      count += 1;
    }
  }
  assert.ok(count > 20);
});

test('the document follows the options for If-Match and the password length', async (t) => {
  const { client } = await startApp(t, { requireIfMatch: true, passwordLengthMin: 9 });
  const strict: JsonValue = Object((await client.get('/openapi.json')).json);
  for (const [served, required] of [[strict, true], [document, false]] as const) {
    const found = [...objects(served, '#')].map(([, object]) => object);
    const writes = found.filter(({ operationId }) => /^(replace|patch|remove)(Item|User)$/.test(String(operationId)));
    assert.equal(writes.length, 6);
    for (const { parameters } of writes) {
      const ifMatch = [parameters].flat().find((parameter) => Object(parameter).name === 'If-Match');
      assert.equal(Object(ifMatch).required, required);
    }
    const { NewUser, UserPatch } = Object(resolve(Object(served), '#/components/schemas'));
    assert.equal(NewUser.properties.password.minLength, required ? 9 : 15);
    const local = { name: 'Ada', email: 'a@localhost' };
    assert.deepEqual(findViolations(Object(served), NewUser, local), []);
    assert.equal(UserPatch.properties.currentPassword.minLength, 1);
  }
});

test('a request for tokens has credentials or a refresh token, not both', () => {
  const body = Object(resolve(document, '#/paths/~1tokens/post/requestBody/content')) ['application/json'];
  const credentials = { email: 'a', password: 'b' };
  for (const good of [credentials, { refresh_token: 'c' }]) {
    assert.deepEqual(findViolations(document, body.schema, good), []);
  }
  for (const bad of [{}, { email: 'a' }, { ...credentials, refresh_token: 'c' }]) {
    assert.equal(findViolations(document, body.schema, bad).length, 1);
  }
});

test('the bodies of each collection are described', () => {
  const { NewItem, ItemReplacement, ItemPatch, Item } = Object(resolve(document, '#/components/schemas'));
  assert.deepEqual(Object.keys(NewItem.properties), ['name', 'price']);
  assert.deepEqual(NewItem.required, ['name', 'price']);
  assert.deepEqual(Object.keys(ItemReplacement.properties), ['id', 'name', 'price']);
  assert.equal(ItemPatch.required, undefined);
  assert.deepEqual(Item.required, ['id', 'name', 'price']);
});

test('a field with a default may be left out, and generated clients need not send it', () => {
  const { NewUser } = Object(resolve(document, '#/components/schemas'));
  const { role } = NewUser.properties;
  assert.deepEqual([role.default, role['x-default'], NewUser.required.includes('role')], [undefined, 'member', false]);
  assert.match(NewUser.properties.name.$comment, /must be visible/);
});

test('the document has the syntax of an Idempotency-Key, which the server enforces', async (t) => {
  const admin = await (await startApp(t)).signIn('admin');
  const { parameters } = Object(resolve(document, '#/paths/~1items/post'));
  const { schema } = parameters.find(({ name }: { name: string }) => name === 'Idempotency-Key');
  const good = ['a', 'a key', '"a \\" key"', 'x'.repeat(255), `"${'x'.repeat(255)}"`, `"${'\\"'.repeat(255)}"`, 'a"'];
  const bad = ['', ' ', '"', '""', '"a', 'ä', 'a\tb', 'x'.repeat(256), `"${'x'.repeat(256)}"`, '"a\\b"', '"a"b'];
  for (const [keys, status] of [[good, 201], [bad, 400]] as const) {
    for (const key of keys) {
      const json = { name: 'Lamp', price: 1 };
      const answer = await admin.post('/items', { json, headers: { 'idempotency-key': key } });
      assert.equal(answer.status, status, key);
      assert.deepEqual(findViolations(document, schema, key).length === 0, status === 201, key);
    }
  }
});

test('the document says that a new user with a password takes no Idempotency-Key', async (t) => {
  const described = ['users', 'items'].map((name) => {
    const { parameters } = Object(resolve(document, `#/paths/~1${name}/post`));
    const key = parameters.find((one: { name: string }) => one.name === 'Idempotency-Key');
    return /password.* 400/.test(key.description);
  });
  assert.deepEqual(described, [true, false]);
  const admin = await (await startApp(t)).signIn('admin');
  const json = { name: 'Eve', email: 'eve@example.org', password: 'a new password of some length' };
  assert.equal((await admin.post('/users', { json, headers: { 'idempotency-key': 'a' } })).status, 400);
});

test('every response has the id of its request', () => {
  const responses = all.filter(([way]) => /\/responses\/\w+$/.test(way)).map(([, response]) => response);
  assert.ok(responses.length > 50);
  for (const { $ref, headers } of responses) {
    assert.ok($ref !== undefined || Object.hasOwn(Object(headers), 'X-Request-Id'), JSON.stringify(headers));
  }
});
