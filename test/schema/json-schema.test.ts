import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { idField, type Field, type Shape } from '../../src/schema/field.ts';
import { resourceSchema, type SchemaPurpose } from '../../src/features/openapi/json-schema.ts';
import { ruleViolation } from '../../src/schema/kinds.ts';
import { emailPattern, textPattern } from '../../src/schema/rules.ts';
import { fieldValue, readableNames, representationWriter } from '../../src/schema/record.ts';

const user = {
  id: idField,
  name: { kind: 'text', min: 1, max: 200, example: 'Ada', description: 'As it is shown.' },
  email: { kind: 'email' },
  role: { kind: 'choice', values: ['admin', 'member'], default: 'member' },
  age: { kind: 'integer', min: 0, max: 150, example: 36, optional: true },
  seenAt: { kind: 'timestamp', readOnly: true, optional: true },
  password: { kind: 'password', min: 15, writeOnly: true, optional: true },
} as const satisfies Shape;

/** Returns the names of the properties, with "!" for required ones. */
function outline(purpose: SchemaPurpose): string {
  const { properties, required = [] } = resourceSchema('Any', user, purpose);
  assert.ok(Array.isArray(required));
  return Object.keys(properties ?? {}).map((name) => (required.includes(name) ? `${name}!` : name)).join(' ');
}

describe('the JSON Schema of a resource', () => {
  test('has the properties that are shown or sent, and requires the mandatory ones', () => {
    assert.equal(outline('representation'), 'id! name! email! role! age seenAt');
    assert.equal(outline('create'), 'name! email! role age password');
    assert.equal(outline('replace'), 'id name! email! role age seenAt password');
    assert.equal(outline('patch'), 'id name email role age seenAt password');
  });

  test('allows no other properties', () => {
    for (const purpose of ['representation', 'create', 'replace', 'patch'] as const) {
      assert.equal(resourceSchema('Any', user, purpose)['additionalProperties'], false);
    }
  });

  test('states every rule', () => {
    assert.deepEqual(resourceSchema('Any', user, 'create')['properties'], {
      name: {
        type: 'string',
        minLength: 1,
        maxLength: 200,
        pattern: textPattern(1),
        $comment: 'One character must be visible: no white space, mark or format character.',
        description: 'As it is shown.',
        examples: ['Ada'],
      },
      email: { type: 'string', maxLength: 254, pattern: emailPattern, examples: ['ada@example.org'] },
      role: {
        type: 'string',
        enum: ['admin', 'member'],
        'x-default': 'member',
        examples: ['admin'],
      },
      age: { type: 'integer', minimum: 0, maximum: 150, examples: [36] },
      password: {
        type: 'string',
        format: 'password',
        minLength: 15,
        maxLength: 1024,
        writeOnly: true,
        examples: ['correct horse battery staple'],
      },
    });
    const plain: Shape = { on: { kind: 'boolean' }, weight: { kind: 'number' } };
    assert.deepEqual(resourceSchema('Any', plain, 'create')['properties'], {
      on: { type: 'boolean', examples: [true] },
      weight: { type: 'number', examples: [0] },
    });
  });

  test('lets a patch remove only optional fields', () => {
    const { age: a, name: b, seenAt: c, password: d } = user;
  const { properties } = resourceSchema('Any', { a, b, c, d }, 'patch');
    assert.deepEqual(
      Object.entries(properties ?? {}).map(([name, property]) => [name, property.type]),
      [['a', ['integer', 'null']], ['b', 'string'], ['c', 'string'], ['d', 'string']],
    );
    const size: Field = { kind: 'choice', values: ['s', 'l'], optional: true };
    assert.deepEqual(resourceSchema('Any', { size }, 'patch')['properties'], {
      size: { type: ['string', 'null'], enum: ['s', 'l', null], examples: ['s'] },
    });
  });

  test('has a pattern that refuses what the rule refuses', () => {
    for (const flags of ['', 'u']) {
      const [required, optional] = [new RegExp(textPattern(1), flags), new RegExp(textPattern(0), flags)];
      for (const good of ['Größe 😀 שלום', 'x', ' x ', '\u0301x']) {
        assert.ok(required.test(good) && optional.test(good));
      }
      for (const bad of ['\0', '\n', '\x7f', '\u202e', '\u2066', '\u200e', '\u061c', '\u2028']) {
        assert.ok(!required.test(`a${bad}b`) && !optional.test(`a${bad}b`));
      }
      const blanks = ['', ' ', '\u00a0\u3000', ' \u200b\u3164', '\u0301\u2800', '\ufeff\u00ad'];
      for (const blank of blanks) assert.ok(!required.test(blank) && optional.test(blank));
    }
  });

  test('has a pattern that accepts every text that the rule accepts', () => {
    const field: Field = { kind: 'text', min: 1 };
    const pattern = new RegExp(textPattern(1));
    for (let code = 0; code < 0x30000; code += 1) {
      const character = String.fromCodePoint(code);
      if (ruleViolation(field, character) === undefined) assert.ok(pattern.test(character), code.toString(16));
    }
  });
});

describe('a representation', () => {
  const name = 'A "b" \u2028 é';
  const record = { revision: 3, ownerId: 4, password: 'secret', role: 'admin', email: 'a@b', name, id: 1 };

  test('is the JSON of only the readable fields, in their order', () => {
    const text = representationWriter(user)(record);
    assert.equal(text, JSON.stringify({ id: 1, name, email: 'a@b', role: 'admin' }));
  });

  test('of some fields keeps their order, and never contains a hidden field', () => {
    assert.equal(representationWriter(user, ['role', 'id'])(record), '{"id":1,"role":"admin"}');
    assert.equal(representationWriter(user, ['password', 'ownerId'])(record), '{}');
    assert.equal(representationWriter(user, ['age'])(record), '{}');
  });

  test('writes scalars as JSON does', () => {
    const shape: Shape = { a: { kind: 'number' }, b: { kind: 'boolean' }, c: { kind: 'text' } };
    for (const value of [0.1, 1e21, 5e-324, -1.5, 1e12, 123456789.125]) {
      const record = { a: value, b: false, c: '' };
      assert.equal(representationWriter(shape)(record), JSON.stringify(record));
    }
  });

  test('ignores Object.prototype', () => {
    assert.equal(representationWriter({ toString: { kind: 'text', optional: true } as const })({ id: 1 }), '{}');
    assert.equal(fieldValue({}, '__proto__'), undefined);
    assert.deepEqual(readableNames(user), ['id', 'name', 'email', 'role', 'age', 'seenAt']);
  });
});
