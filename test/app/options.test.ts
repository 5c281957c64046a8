import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLog, defineCollection, type AppOptions } from '../../src/index.ts';
import type { Shape } from '../../src/schema/field.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { createApp } from '../support/inside.ts';

const declare = (fields: Shape, name = 'books', singular = 'book') => defineCollection({ name, singular, fields });

/** Options that the compiler rejects, but plain JavaScript may pass. */
const createAny = (options: unknown): unknown => Reflect.apply(createApp, undefined, [options]);
const declareAny = (field: object): unknown =>
  Reflect.apply(defineCollection, undefined, [{ name: 'books', singular: 'book', fields: { a: field } }]);

test('a declaration with an unknown member or a contradiction is refused', () => {
  const kinds = 'text, integer, number, boolean, choice, email, timestamp, reference, url, list, object, json';
  const members =
    'kind, nullable, optional, description, set, label, format, colors, ' +
    'default, example, renamedFrom, min, max, multiline, unique';
  const wrong: readonly [object, string][] = [
    [{ kind: 'text', readOnly: true }, `/readOnly is not a known member; the members are ${members}`],
    [{ kind: 'text', optional: true, writeOnly: true }, `/writeOnly is not a known member; the members are ${members}`],
    [{ kind: 'password' }, `/kind must be one of ${kinds}, not "password"`],
    [{ kind: 'choice', values: ['a', 'b'], default: 'c' }, '/default must be one of a, b'],
    [{ kind: 'integer', default: NaN }, '/default must be a whole number'],
    [{ kind: 'number', default: Infinity }, '/default must be a number'],
    [{ kind: 'integer', max: 3, default: 9 }, '/default must be at most 3'],
    [{ kind: 'timestamp', default: 'yesterday' }, '/default must be like 2026-01-31T12:00:00.000Z'],
    [{ kind: 'text', example: 'abcdef', max: 3 }, '/example must be at most 3 characters long'],
    [{ kind: 'text', min: 5, max: 1 }, ' has bounds that no value can satisfy'],
    [{ kind: 'text', min: -1 }, '/min must be at least 0'],
    [{ kind: 'text', max: Infinity }, '/max must be a whole number'],
    [{ kind: 'integer', min: NaN }, '/min must be a number'],
    [{ kind: 'integer', min: 0.2, max: 0.8 }, ' has bounds that no value can satisfy'],
    [{ kind: 'choice', values: [1] }, '/values/0 must be a string'],
  ];
  for (const [field, problem] of wrong) {
    const message = `Cannot declare the collection "books": /fields/a${problem}`;
    assert.throws(() => declareAny(field), { name: 'OptionError', message });
  }
});

test('an access rule that would never be checked is refused', () => {
  const declaration = { name: 'books', singular: 'book', fields: {}, access: { lst: 'public' } };
  const define = (): unknown => Reflect.apply(defineCollection, undefined, [declaration]);
  assert.throws(define, { name: 'OptionError', message: /"books": \/access\/lst is not .* mean "list"/ });
});

test('narrow but sound declarations are accepted', async () => {
  const fields: Shape = {
    short: { kind: 'text', max: 2 },
    long: { kind: 'text', min: 30 },
    exact: { kind: 'text', min: 0, max: 0 },
    below: { kind: 'integer', max: -5 },
    fraction: { kind: 'number', min: 0.2, max: 0.8 },
    whole: { kind: 'integer', min: 0.2, max: 1.8 },
    flag: { kind: 'boolean', default: false },
  };
  const app = await createApp({ auth: 'none', collections: [declare(fields)] });
  assert.equal((await app.inject({ target: '/openapi.json' })).status, 200);
  await app.close();
});

test('only checked definitions become collections', async () => {
  const literal = { ...declare({ t: { kind: 'text' }, n: { kind: 'integer' } }), name: 'notes' };
  const refused = { name: 'OptionError', message: /\/collections\/0\/fields\/id has a name/ };
  await assert.rejects(createApp({ collections: [literal] }), refused);
});

test('two names that collide in the OpenAPI document are refused, and the error has both', async () => {
  const derived = ['newItem', 'itemReplacement', 'itemPatch'];
  for (const singular of ['user', 'session', 'issue', 'problem', 'token', 'health', ...derived]) {
    const message =
      'Cannot serve the collections: /collections/0/singular must be a word that the API uses for nothing else, ' +
      `not "${singular}"`;
    const collections = [declare({ a: { kind: 'text' } }, 'books', singular)];
    await assert.rejects(createApp({ collections }), { name: 'OptionError', option: 'collections', message });
  }
  const fields: Shape = { a: { kind: 'text' } };
  const pairs = [
    [declare(fields), declare(fields, 'tomes')],
    [declare(fields, 'things', 'item')],
    [declare(fields), declare(fields, 'books', 'tome')],
  ];
  for (const collections of pairs) {
    const message = /^Cannot serve the collections: \/collections\/\d\/(singular|name) "(book|item|books)" is/;
    await assert.rejects(createApp({ auth: 'none', collections }), { name: 'OptionError', message });
  }
});

test('a collection may be named like a schema or a member of every object', async () => {
  const named: readonly [name: string, operation: string][] = [
    ['newArrivals', 'createEntryNewArrival'], ['manyNews', 'createEntryManyNew'], ['new', 'createNew'],
    ['bookPatch', 'createBookPatchEntry'], ['constructor', 'createConstructor'], ['then', 'createThen'],
    ['toString', 'createToString'], ['__proto__', 'createProto'], ['0', 'createEntry0'],
  ];
  const collections = named.map(([name]) => ({ name, fields: { toString: { kind: 'text' } } as const }));
  const app = await createApp({ auth: 'none', collections });
  const { paths } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  for (const [name, operation] of named) {
    assert.equal(paths[`/${name}`].post.operationId, operation);
    const sent = { 'Content-Type': 'application/json' };
    const made = await app.inject({ method: 'POST', target: `/${name}`, fields: sent, body: '{"toString":"a"}' });
    assert.deepEqual([made.status, made.body], [201, '{"id":1,"toString":"a"}']);
    assert.deepEqual(app.collection(name).get(1), { id: 1, toString: 'a' });
  }
  await app.close();
});

test('options have the bounds of the command line, and the error names the option', async () => {
  const cluster = { members: ['https://10.0.0.1:2379'] };
  const wrong: readonly { readonly [name: string]: unknown }[] = [
    { auth: 'None' }, { auth: false }, { registration: 'yes' }, { requireIfMatch: 'no' },
    { passwordLengthMin: 4 }, { passwordLengthMin: '15' }, { passwordLengthMin: null },
    { scryptCost: NaN }, { scryptCost: 0 }, { scryptCost: 40 }, { scryptCost: 13.5 },
    { corsOrigins: ['*'] }, { corsOrigins: 'https://a.example' }, { corsOrigins: ['https://a.example/'] },
    { trustedProxies: ['proxy'] },
    { directory: '' }, { directory: 5 }, { directory: null },
    { secret: 5 }, { secret: null }, { secret: '' }, { secret: 'a'.repeat(32) }, { secret: 'abcdefgh'.repeat(129) },
    { cluster: {} }, { cluster: { members: [] } }, { cluster: { members: ['http://10.0.0.1'] } },
    { cluster, directory: 'data' },
    { cluster: { ...cluster, prefix: 'cairn' } }, { cluster: { ...cluster, sessions: 'confirm' } },
  ];
  for (const options of wrong) {
    const [name = ''] = Object.keys(options);
    const message = new RegExp(`^Cannot use ${name}.*must be `);
    await assert.rejects(async () => createAny(options), { name: 'OptionError', message }, JSON.stringify(options));
  }
});

test('a plain definition is checked and used like one from defineCollection', async () => {
  const app = await createApp({ collections: [{ name: 'books', fields: {} }] });
  assert.equal(app.collection('books').name, 'books');
  await app.close();
  const wrong = { name: 'OptionError', option: 'collections', message: /: \/collections\/0\/fields must be an object/ };
  await assert.rejects(async () => createAny({ collections: [{ name: 'books' }] }), wrong);
});

test('options at their bounds are accepted', async () => {
  const right: readonly AppOptions[] = [
    { scryptCost: 1, passwordLengthMin: 8 }, { scryptCost: 20, passwordLengthMin: 128 },
    { corsOrigins: [], trustedProxies: [], auth: undefined },
    { corsOrigins: ['https://a.example', 'http://localhost:8080'], requireIfMatch: true, registration: 'open' },
  ];
  for (const options of right) await (await createApp(options)).close();
});

test('an invalid administrator is refused, and the error names the field', async () => {
  for (const [administrator, field] of [
    [{}, 'email'], [{ email: 'x' }, 'email'], [{ email: 'a@b.example', password: 'short' }, 'password'],
    [{ email: 'a@b.example' }, 'password'],
  ] as const) {
    const message = new RegExp(`^Cannot make the administrator: ${field} must `);
    await assert.rejects(async () => createAny({ administrator }), { code: 'validation_failed', message });
  }
});

test('a secret that is too short is refused before a store is made', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  await assert.rejects(createApp({ directory, secret: 'short' }), { name: 'OptionError', exitCode: 64 });
  assert.ok(!existsSync(directory));
});

test('the log needs no clock', () => {
  assert.ok(createLog({ level: 'info', sink: process.stderr }));
});

test('an unknown option of createApp is refused, with the option that was probably meant', async () => {
  const hints: Readonly<Record<string, RegExp>> = {
    dirctory: /no such option; did you mean "directory"\?$/,
    passwordMin: /no such option; did you mean "passwordLengthMin"\?$/,
    trustProxies: /no such option; did you mean "trustedProxies"\?$/,
    port: /no such option; app\.listen takes it$/,
    zzz: /no such option$/,
  };
  for (const [name, message] of Object.entries(hints)) {
    await assert.rejects(async () => createAny({ [name]: 'x' }), { name: 'OptionError', message });
  }
});

test('a declaration with a missing part is refused, and the error names the part', () => {
  const fields = { a: { kind: 'text' } };
  for (const [declaration, message] of [
    [{ name: 'books', singular: '', fields }, /"books": \/singular must be at least 1 character long$/],
    [{ singular: 'book', fields }, /\/name must be given$/],
    [{ name: 'books', singular: 'book' }, /"books": \/fields must be an object that names the fields$/],
  ] as const) {
    const define = (): unknown => Reflect.apply(defineCollection, undefined, [declaration]);
    assert.throws(define, { name: 'OptionError', message });
  }
});
