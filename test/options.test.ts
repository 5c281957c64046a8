import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp, createLog, defineCollection, type AppOptions } from '../src/index.ts';
import { boolean, choice, defaulted, integer, number, optional, text, timestamp } from '../src/index.ts';
import { readOnly, writeOnly, type Shape } from '../src/schema/field.ts';

const declare = (fields: Shape, name = 'books', singular = 'book') => defineCollection({ name, singular, fields });

/** What the compiler would not let through, and plain JavaScript does. */
const createAny = (options: unknown): unknown => Reflect.apply(createApp, undefined, [options]);
const anyField = (make: unknown, ...values: unknown[]): never =>
  Reflect.apply(Object(make), undefined, values) as never;

test('a declaration that would store what the next start refuses is refused itself', () => {
  const wrong: readonly [Shape, RegExp][] = [
    [{ slug: readOnly(text()) }, /"slug" in "books"/],
    [{ slug: readOnly(defaulted(text(), 'x')) }, /"slug" in "books"/],
    [{ slug: optional(writeOnly(text())) }, /"slug" in "books"/],
    [{ c: anyField(defaulted, choice(['a', 'b']), 'c') }, /"c" in "books".*default that must be one of a, b/],
    [{ n: defaulted(integer(), NaN) }, /"n" in "books".*default/],
    [{ n: defaulted(number(), Infinity) }, /"n" in "books".*default/],
    [{ n: anyField(defaulted, integer(), undefined) }, /"n" in "books".*default/],
    [{ n: defaulted(integer({ max: 3 }), 9) }, /"n" in "books".*default that must be at most 3/],
    [{ t: defaulted(timestamp(), 'yesterday') }, /"t" in "books".*default/],
    [{ t: text({ example: 'abcdef', max: 3 }) }, /"t" in "books".*example that must be at most 3 characters/],
    [{ t: text({ min: 5, max: 1 }) }, /"t" in "books".*bounds/],
    [{ t: text({ min: -1 }) }, /"t" in "books".*bounds/],
    [{ t: text({ max: Infinity }) }, /"t" in "books".*bounds/],
    [{ n: integer({ min: NaN }) }, /"n" in "books".*bounds/],
    [{ n: integer({ min: 0.2, max: 0.8 }) }, /"n" in "books"/],
    [{ c: anyField(choice, [1, 2]) }, /"c" in "books"/],
  ];
  for (const [fields, message] of wrong) assert.throws(() => declare(fields), { name: 'InvariantError', message });
});

test('access that would not be looked at is refused', () => {
  const declaration = { name: 'books', singular: 'book', fields: {}, access: { lst: 'public' } };
  const define = (): unknown => Reflect.apply(defineCollection, undefined, [declaration]);
  assert.throws(define, { name: 'InvariantError', message: /"lst" in "books"/ });
});

test('a declaration that is narrow and sound is taken', async () => {
  const fields = {
    short: text({ max: 2 }),
    long: text({ min: 30 }),
    exact: text({ min: 0, max: 0 }),
    below: integer({ max: -5 }),
    fraction: number({ min: 0.2, max: 0.8 }),
    whole: integer({ min: 0.2, max: 1.8 }),
    flag: defaulted(boolean(), false),
  };
  const app = await createApp({ auth: 'none', collections: [declare(fields)] });
  assert.equal((await app.inject({ target: '/openapi.json' })).status, 200);
  await app.close();
});

test('only what defineCollection has checked becomes a collection', async () => {
  const literal = { ...declare({ t: text(), n: integer() }), name: 'notes' };
  await assert.rejects(createApp({ collections: [literal] }), { name: 'InvariantError', message: /"notes".*define/ });
});

test('what would take the place of something else in the OpenAPI document is refused, naming both', async () => {
  const derived = ['newItem', 'itemReplacement', 'itemPatch'];
  for (const singular of ['user', 'session', 'issue', 'problem', 'token', 'health', ...derived]) {
    const message = new RegExp(`"${singular}".*"books"|"books".*"${singular}"`);
    assert.throws(() => declare({ a: text() }, 'books', singular), { name: 'InvariantError', message });
  }
  const fields = { a: text() };
  const pairs = [
    [declare(fields), declare(fields, 'tomes')],
    [declare(fields, 'things', 'item')],
    [declare(fields), declare(fields, 'books', 'tome')],
  ];
  for (const collections of pairs) {
    const message = /"(book|item)"|books is registered twice/;
    await assert.rejects(createApp({ auth: 'none', collections }), { name: 'InvariantError', message });
  }
});

test('options keep to what the command line allows, and the refusal names them', async () => {
  const wrong: readonly { readonly [name: string]: unknown }[] = [
    { auth: 'None' }, { auth: false }, { registration: 'yes' }, { requireIfMatch: 'no' },
    { passwordLengthMin: 4 }, { passwordLengthMin: '15' }, { passwordLengthMin: null },
    { scryptCost: NaN }, { scryptCost: 0 }, { scryptCost: 40 }, { scryptCost: 13.5 },
    { corsOrigins: ['*'] }, { corsOrigins: 'https://a.example' }, { corsOrigins: ['https://a.example/'] },
    { trustedProxies: ['proxy'] },
    { directory: '' }, { directory: 5 }, { directory: null }, { secret: 5 }, { secret: null }, { secret: '' },
    { hooks: { beforeWrite: 5 } }, { hooks: { afterWrite: 'x' } },
  ];
  for (const options of wrong) {
    const [name = ''] = Object.keys(options);
    const message = new RegExp(`^Cannot use ${name}.*must be `);
    await assert.rejects(async () => createAny(options), { name: 'RangeError', message }, JSON.stringify(options));
  }
});

test('options at their bounds are taken', async () => {
  const right: readonly AppOptions[] = [
    { scryptCost: 1, passwordLengthMin: 8 }, { scryptCost: 20, passwordLengthMin: 128 },
    { corsOrigins: [], trustedProxies: [], auth: undefined },
    { corsOrigins: ['https://a.example', 'http://localhost:8080'], requireIfMatch: true, registration: 'open' },
  ];
  for (const options of right) await (await createApp(options)).close();
});

test('an administrator who breaks a rule is refused by the name of the field', async () => {
  for (const [administrator, field] of [
    [{}, 'email'], [{ email: 'x' }, 'email'], [{ email: 'a@b.example', password: 'short' }, 'password'],
    [{ email: 'a@b.example' }, 'password'],
  ] as const) {
    const message = new RegExp(`^Cannot make the administrator: ${field} must `);
    await assert.rejects(async () => createAny({ administrator }), { code: 'validation_failed', message });
  }
});

test('the log needs no clock', () => {
  assert.ok(createLog({ format: 'json', level: 'info', sink: process.stderr }));
});

test('an option that createApp does not have is refused, and the one that was meant is named', async () => {
  const hints: Readonly<Record<string, RegExp>> = {
    dirctory: /no such option; did you mean "directory"\?$/,
    passwordMin: /no such option; did you mean "passwordLengthMin"\?$/,
    trustProxies: /no such option; did you mean "trustedProxies"\?$/,
    port: /no such option; app\.listen takes it$/,
    zzz: /no such option$/,
  };
  for (const [name, message] of Object.entries(hints)) {
    await assert.rejects(async () => createAny({ [name]: 'x' }), { name: 'RangeError', message });
  }
});

test('a declaration that lacks a part is refused by the name of the part', () => {
  const fields = { a: text() };
  for (const [declaration, message] of [
    [{ name: 'books', fields }, /"books" needs "singular"/],
    [{ singular: 'book', fields }, /needs "name"/],
    [{ name: 'books', singular: 'book' }, /"books" needs "fields"/],
  ] as const) {
    const define = (): unknown => Reflect.apply(defineCollection, undefined, [declaration]);
    assert.throws(define, { name: 'InvariantError', message });
  }
});
