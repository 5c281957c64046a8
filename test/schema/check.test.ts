import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CairnError } from '../../src/base/errors.ts';
import { parseJson } from '../../src/base/json.ts';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { storedRecordParser } from '../../src/schema/stored.ts';
import { creation as create, validateBody } from '../../src/schema/validate.ts';
import type { Mode } from '../../src/schema/validate.ts';
import { idField, type CompleteInput, type Shape } from '../../src/schema/field.ts';

const item = {
  id: idField,
  name: { kind: 'text', min: 1, max: 200 },
  price: { kind: 'number', min: 0, max: 1e12 },
} as const satisfies Shape;

const user = {
  id: idField,
  name: { kind: 'text', min: 1, max: 200 },
  email: { kind: 'email' },
  role: { kind: 'choice', values: ['admin', 'member'], default: 'member' },
  nickname: { kind: 'text', min: 1, max: 20, optional: true },
  password: { kind: 'password', min: 15, writeOnly: true, optional: true },
} as const satisfies Shape;

const storedItem = { id: 7, revision: 12, name: 'Cup', price: 4.5, owner: 3 };
const ada = {
  id: 1,
  name: 'Ada',
  email: 'ada@example.org',
  role: 'admin',
  nickname: 'A',
  passwordHash: '$scrypt$…',
};

/** The problem that the parser finds in a record from a file; `undefined` if it finds none. */
function problemOf(shape: Shape, record: JsonObject): string | undefined {
  const parsed = storedRecordParser(shape)(record);
  return typeof parsed === 'string' ? parsed : undefined;
}

/** `pointer code` of every issue, or the value. */
function outcome(shape: Shape, body: JsonValue, mode: Mode): unknown {
  try {
    return validateBody({ shape }, body, mode, {});
  } catch (error) {
    assert.ok(error instanceof CairnError && error.code === 'validation_failed');
    return error.issues?.map(({ pointer, code }) => `${pointer} ${code}`);
  }
}

describe('a body that creates', () => {
  test('results in the writable fields, typed', () => {
    const value: CompleteInput<typeof item> = validateBody({ shape: item }, { name: 'Cup', price: 4.5 }, create, {});
    assert.deepEqual(value, { name: 'Cup', price: 4.5 });
  });

  test('fills in defaults and leaves out absent optional fields', () => {
    assert.deepEqual(outcome(user, { name: 'Bo', email: 'b@x' }, create), { name: 'Bo', email: 'b@x', role: 'member' });
  });

  test('is refused with all its issues at once', () => {
    assert.deepEqual(outcome(item, { name: '', price: -1, id: 5, 'a/b~c': 0 }, create), [
      '/id read_only',
      '/name too_short',
      '/price too_small',
      '/a~1b~0c unknown_field',
    ]);
    assert.deepEqual(outcome(item, {}, create), ['/name required', '/price required']);
  });

  test('must be an object', () => {
    for (const body of [[], [{}], 'x', 1, true, null]) {
      assert.deepEqual(outcome(item, body, create), [' wrong_type'], JSON.stringify(body));
      assert.deepEqual(outcome(item, body, { kind: 'patch', stored: storedItem }), [' wrong_type']);
      assert.deepEqual(outcome(item, body, { kind: 'replace', stored: storedItem }), [' wrong_type']);
    }
  });

  test('finds no field in Object.prototype', () => {
    const body = parseJson('{"name":"Cup","price":1,"__proto__":{"x":1},"constructor":1,"toString":1}');
    assert.deepEqual(outcome(item, body, create), [
      '/__proto__ unknown_field',
      '/constructor unknown_field',
      '/toString unknown_field',
    ]);
    assert.deepEqual(outcome({ toString: { kind: 'text' } as const }, {}, create), ['/toString required']);
  });

  test('is refused with at most a hundred issues', () => {
    const body = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`field${index}`, 1]));
    const issues = outcome(item, body, create);
    assert.ok(Array.isArray(issues));
    assert.equal(issues.length, 100);
  });
});

describe('a body that replaces', () => {
  const mode: Mode = { kind: 'replace', stored: ada };

  test('keeps an absent field with a default, and removes an absent optional field', () => {
    assert.deepEqual(outcome(user, { name: 'Bo', email: 'b@x' }, mode), { name: 'Bo', email: 'b@x', role: 'admin' });
  });

  test('can contain unchanged read-only fields', () => {
    assert.deepEqual(outcome(item, { id: 7, name: 'Cup', price: 5 }, { kind: 'replace', stored: storedItem }), {
      name: 'Cup',
      price: 5,
    });
    assert.deepEqual(outcome(item, { id: 8, name: 'Cup', price: 5 }, { kind: 'replace', stored: storedItem }), [
      '/id read_only',
    ]);
  });

  test('cannot refer to stored values that are not fields', () => {
    const body = { name: 'Ada', email: 'ada@example.org', passwordHash: '$scrypt$…', owner: 3 };
    assert.deepEqual(outcome(user, body, mode), ['/passwordHash unknown_field', '/owner unknown_field']);
  });

  test('needs its required fields', () => {
    assert.deepEqual(outcome(user, { name: 'Ada' }, mode), ['/email required']);
    assert.deepEqual(outcome(user, { name: 'Ada', email: null }, mode), ['/email wrong_type']);
  });
});

describe('a merge patch', () => {
  const mode: Mode = { kind: 'patch', stored: ada };
  const { id: _id, passwordHash: _hash, ...writable } = ada;

  test('changes only the fields that it names', () => {
    assert.deepEqual(outcome(user, {}, mode), writable);
    assert.deepEqual(outcome(user, { name: 'Lovelace' }, mode), { ...writable, name: 'Lovelace' });
    assert.deepEqual(outcome(user, { password: 'a long enough one' }, mode), {
      ...writable,
      password: 'a long enough one',
    });
  });

  test('removes only optional fields with null', () => {
    const { nickname: _nickname, ...rest } = writable;
    assert.deepEqual(outcome(user, { nickname: null }, mode), rest);
    assert.deepEqual(outcome(user, { name: null, role: null, id: null }, mode), [
      '/id read_only',
      '/name required',
      '/role required',
    ]);
    assert.deepEqual(outcome(user, { password: null }, mode), ['/password wrong_type']);
  });

  test('must not name an unknown field, even to remove it', () => {
    assert.deepEqual(outcome(user, { age: null, passwordHash: null }, mode), [
      '/age unknown_field',
      '/passwordHash unknown_field',
    ]);
  });

  test('must not be nested', () => {
    assert.deepEqual(outcome(user, { name: { a: null } }, mode), ['/name wrong_type']);
  });

  test('must not change a read-only field', () => {
    assert.deepEqual(outcome(user, { id: 1, role: 'admin' }, mode), writable);
    assert.deepEqual(outcome(user, { id: 2 }, mode), ['/id read_only']);
    assert.deepEqual(outcome(user, { id: null }, mode), ['/id read_only']);
  });

  test('is accepted although a newer rule would refuse a stored value', () => {
    const stored = { ...storedItem, price: 2e12 };
    assert.deepEqual(outcome(item, { name: 'Mug' }, { kind: 'patch', stored }), { name: 'Mug', price: 2e12 });
    assert.deepEqual(outcome(item, { price: 3e12 }, { kind: 'patch', stored }), ['/price too_large']);
  });

  test('and a PUT can keep an invisible name stored by the first edition', () => {
    const stored = { ...storedItem, name: '\u200e ' };
    assert.equal(problemOf(item, { ...stored }), undefined);
    assert.deepEqual(outcome(item, { price: 5 }, { kind: 'patch', stored }), { name: '\u200e ', price: 5 });
    const body = { name: '\u200e ', price: 5 };
    assert.deepEqual(outcome(item, body, { kind: 'replace', stored }), body);
    assert.deepEqual(outcome(item, { ...body, name: ' ' }, { kind: 'replace', stored }), ['/name invisible']);
    assert.deepEqual(outcome(item, body, { kind: 'replace', stored: storedItem }), ['/name bidi_character']);
  });
});

describe('a record from a file', () => {
  const problem = (record: JsonObject) => problemOf(user, record);
  const record: JsonObject = { revision: 3, ...ada };

  test('is valid with the fields that are shown, of the right types', () => {
    assert.equal(problem(record), undefined);
    const { nickname: _nickname, ...bare } = record;
    assert.equal(problem(bare), undefined);
  });

  test('is refused without one of them or with another type, and the message names the field', () => {
    const { name: _name, ...nameless } = record;
    // The field may be one that no declaration can make optional, such as `ownerId`.
    assert.match(problem(nameless) ?? '', /no "name": add it by hand, or make a new field optional or give/);
    assert.equal(problem({ ...record, role: 'owner' }), undefined, 'a choice may have lost a value');
    for (const bad of [{ role: null }, { name: 1 }, { id: '1' }, { nickname: null }]) {
      assert.match(problem({ ...record, ...bad }) ?? '', new RegExp(`a "${Object.keys(bad)[0]}"`), JSON.stringify(bad));
    }
    assert.match(problemOf(item, { id: 1, name: 'x', price: NaN }) ?? '', /"price"/);
  });

  test('without a field that has a default gets the default', () => {
    const { role: _role, ...older } = record;
    const sent = { ...older };
    assert.equal(Object(storedRecordParser(user)(older)).role, 'member');
    assert.deepEqual(older, sent, 'the record that was given is as it was');
  });
});
