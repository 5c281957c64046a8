import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseJson, type JsonValue } from '../../src/base/json.ts';
import { limits } from '../../src/base/limits.ts';
import '../../src/schema/further-kinds.ts';
import { emailKey, type Field } from '../../src/schema/field.ts';
import { makeExample, ruleViolation, findViolations } from '../../src/schema/kinds.ts';

/** A title, a field, and rows of JSON text and the code of its issue, or "good". */
const table: readonly [what: string, field: Field, rows: readonly [json: string, code: string][]][] = [
  ['text of 1 to 5', { kind: 'text', min: 1, max: 5 }, [
    ['"a"', 'good'], ['"12345"', 'good'], ['"😀😀😀😀😀"', 'good'], ['"é"', 'good'], ['" "', 'invisible'],
    ['""', 'too_short'], ['"123456"', 'too_long'], ['"😀😀😀😀😀😀"', 'too_long'], ['"😀😀😀😀😀x"', 'too_long'],
    [JSON.stringify('x'.repeat(100_000)), 'too_long'],
    ['1', 'wrong_type'], ['null', 'wrong_type'], ['true', 'wrong_type'], ['["a"]', 'wrong_type'], ['{}', 'wrong_type'],
    ['"a\\u0000"', 'control_character'], ['"a\\n"', 'control_character'], ['"\\u001b[0m"', 'control_character'],
    ['"\\u007f"', 'control_character'], ['"\\u0085"', 'control_character'], ['"\\u009f"', 'control_character'],
    ['"a\\u202ea"', 'bidi_character'], ['"\\u202a"', 'bidi_character'], ['"\\u2066"', 'bidi_character'],
    ['"\\u2069"', 'bidi_character'], ['"a\\u200e"', 'bidi_character'], ['"a\\u200f"', 'bidi_character'],
    ['"a\\u061c"', 'bidi_character'], ['"a\\u2028b"', 'control_character'], ['"a\\u2029"', 'control_character'],
    ['"שלום"', 'good'], ['"مرحبا"', 'good'], ['"👩‍👩‍👧"', 'good'], ['"क्षि"', 'good'], ['"e\\u0301"', 'good'],
    ['"﷽"', 'good'], ['" \\u200d"', 'invisible'], ['"\\u200b"', 'invisible'], ['"\\u0301"', 'invisible'],
    ['"\\u3164"', 'invisible'], ['"\\u115f\\u1160"', 'invisible'], ['"\\uffa0"', 'invisible'],
    ['"\\u2800"', 'invisible'], ['"\\u00ad"', 'invisible'], ['"\\u3000\\u2003"', 'invisible'],
    ['"\\ufe0f"', 'invisible'], ['"\\u180e"', 'invisible'], ['"\\ud834\\udd59"', 'invisible'],
    ['"\\udb40\\udc41"', 'invisible'],
    ['"\\ud800"', 'lone_surrogate'], ['"\\udc00a"', 'lone_surrogate'], ['"\\udc00\\ud800"', 'lone_surrogate'],
    ['"\\ud83d\\ude00"', 'good'], ['"\\ufeff"', 'invisible'], ['"\\ufeffa"', 'good'],
  ]],
  ['text that may be empty', { kind: 'text' }, [
    ['""', 'good'], ['" "', 'good'], ['"\\u200b"', 'good'], ['"\\u200e"', 'bidi_character'],
  ]],
  ['text of 2 at least', { kind: 'text', min: 2 }, [
    ['"😀"', 'too_short'], ['"😀😀"', 'good'], ['"a"', 'too_short'],
  ]],
  ['an e-mail address', { kind: 'email' }, [
    ['"ada@example.org"', 'good'], ['"a@b"', 'good'], ['"a.b+c_d!#$%&\'*/=?^`{|}~-@x-1.example"', 'good'],
    ['".a.@example.org"', 'good'], ['"1@2.3"', 'good'], [`"${'a'.repeat(242)}@example.org"`, 'good'],
    [`"a@${'b'.repeat(63)}.org"`, 'good'], [`"a@${'b'.repeat(64)}.org"`, 'not_an_email'],
    [`"${'a'.repeat(243)}@example.org"`, 'too_long'],
    ['""', 'not_an_email'], ['"ada"', 'not_an_email'], ['"@example.org"', 'not_an_email'], ['"ada@"', 'not_an_email'],
    ['"a@b@c"', 'not_an_email'], ['"a b@c"', 'not_an_email'], ['"ada@example..org"', 'not_an_email'],
    ['"ada@-x.org"', 'not_an_email'], ['"ada@x-.org"', 'not_an_email'], ['"ada@example.org."', 'not_an_email'],
    ['"ada@exa_mple.org"', 'not_an_email'], ['"ada@[127.0.0.1]"', 'not_an_email'], ['"é@example.org"', 'not_an_email'],
    ['"ada@exämple.org"', 'not_an_email'], ['"ada@example.org\\n"', 'not_an_email'], ['"\\"a\\"@b"', 'not_an_email'],
    ['1', 'wrong_type'],
  ]],
  ['a password', { kind: 'password', min: 15, bytesMax: 60, writeOnly: true }, [
    ['"fourteen chars"', 'too_short'], ['"fifteen chars.."', 'good'], [`"${'x'.repeat(60)}"`, 'good'],
    [`"${'x'.repeat(61)}"`, 'too_long'], [`"${'é'.repeat(31)}"`, 'too_long'], [`"${'😀'.repeat(15)}"`, 'good'],
    ['"tab\\tand\\u0007bell are fine"', 'good'], ['"a lone surrogate \\ud800"', 'lone_surrogate'], ['1', 'wrong_type'],
  ]],
  ['a price', { kind: 'number', min: 0, max: 1e12 }, [
    ['0', 'good'], ['-0', 'good'], ['0.1', 'good'], ['1e12', 'good'], ['1000000000000', 'good'], ['5e-324', 'good'],
    ['-1', 'too_small'], ['-5e-324', 'too_small'], ['1e13', 'too_large'], ['1000000000000.1', 'too_large'],
    ['1e400', 'not_finite'], ['-1e400', 'not_finite'],
    ['"1"', 'wrong_type'], ['null', 'wrong_type'], ['true', 'wrong_type'], ['[1]', 'wrong_type'],
  ]],
  ['a whole number', { kind: 'integer', min: 1 }, [
    ['1', 'good'], ['1.0', 'good'], ['1e3', 'good'], ['9007199254740991', 'good'],
    ['1.5', 'wrong_type'], ['0', 'too_small'], ['9007199254740992', 'too_large'],
    ['"1"', 'wrong_type'],
  ]],
  ['a boolean', { kind: 'boolean' }, [
    ['true', 'good'], ['false', 'good'], ['0', 'wrong_type'], ['"true"', 'wrong_type'], ['null', 'wrong_type'],
  ]],
  ['a choice', { kind: 'choice', values: ['admin', 'member'] }, [
    ['"admin"', 'good'], ['"Admin"', 'not_allowed'], ['""', 'not_allowed'], ['"toString"', 'not_allowed'],
    ['["admin"]', 'wrong_type'], ['{}', 'wrong_type'], ['0', 'wrong_type'],
  ]],
  ['a timestamp', { kind: 'timestamp' }, [
    ['"2026-01-31T12:00:00.000Z"', 'good'], ['"2026-02-29T12:00:00.000Z"', 'not_a_timestamp'],
    ['"2026-01-31T12:00:00Z"', 'not_a_timestamp'], ['"2026-01-31T12:00:00.000+01:00"', 'not_a_timestamp'],
    ['"2026-01-31T24:00:00.000Z"', 'not_a_timestamp'], ['"now"', 'not_a_timestamp'], ['0', 'wrong_type'],
  ]],
];

for (const [what, field, rows] of table) {
  describe(what, () => {
    for (const [json, code] of rows) {
      test(`${code}: ${json.slice(0, 60)}`, () => {
        assert.equal(ruleViolation(field, parseJson(json))?.code ?? 'good', code);
      });
    }
  });
}

test('details of violations continue "name …" and quote no value', () => {
  const values: JsonValue[] = ['secret\u0000', 'secret'.repeat(300), -1.5, 1e300, NaN, Infinity, null, [], {}];
  for (const [what, field] of table) {
    for (const value of values) {
      const fault = ruleViolation(field, value);
      if (fault === undefined) continue;
      assert.match(fault.detail, /^must (not )?(be|have|contain) [^.]+(\.000Z)?$/, what);
      assert.ok(!fault.detail.includes('secret'));
    }
  }
  assert.equal(ruleViolation({ kind: 'text', min: 1 }, '')?.detail, 'must be at least 1 character long');
});

test('a hostile address is refused quickly', () => {
  const field: Field = { kind: 'email' };
  for (const part of ['a.', 'a@', '-a', 'a-', '.']) {
    const started = process.hrtime.bigint();
    for (let round = 0; round < 100; round += 1) ruleViolation(field, `a@${part.repeat(120)}!`);
    assert.ok(process.hrtime.bigint() - started < 500_000_000n, part);
  }
});

test('addresses are compared without regard to case', () => {
  assert.equal(emailKey('Ada@Example.ORG'), emailKey('ada@example.org'));
});

test('every example satisfies its rule', () => {
  for (const [what, field] of table) {
    if (what === 'text of 1 to 5') continue;
    assert.equal(ruleViolation(field, makeExample(field)), undefined, what);
  }
});

test('checking a list or an object stops once enough mistakes are reported', () => {
  const wrong = (pairs: number) => Object.fromEntries(Array.from({ length: pairs }, (_, at) => [`m${at}`, 1]));
  const list = { kind: 'list', of: { kind: 'choice', values: ['a', 'b'] }, max: 100_000 } as const;
  assert.equal(findViolations(list, Array.from({ length: 95_000 }, () => 'x')).length, limits.issuesMax + 1);
  assert.equal(findViolations({ kind: 'object', fields: {} }, wrong(5000)).length, limits.issuesMax + 1);
});
