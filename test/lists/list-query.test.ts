import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CairnError } from '../../src/base/errors.ts';
import { isJsonObject } from '../../src/base/json.ts';
import { describeList } from '../../src/features/openapi/parameters.ts';
import { parseQuery } from '../../src/http/query.ts';
import { findRange } from '../../src/lists/filters.ts';
import { listParameters, parseListQuery, parseRecordQuery, writeCursor } from '../../src/lists/query.ts';
import { idField, type Shape } from '../../src/schema/field.ts';
import { searchedPaths } from '../../src/schema/record.ts';

const shape = {
  id: idField,
  name: { kind: 'text', max: 200 },
  email: { kind: 'email' },
  price: { kind: 'number', min: 0 },
  on: { kind: 'boolean' },
  role: { kind: 'choice', values: ['admin', 'member'] },
  at: { kind: 'timestamp' },
  note: { kind: 'text', max: 5000, optional: true },
  limit: { kind: 'integer', optional: true },
  password: { kind: 'password', writeOnly: true },
} as const satisfies Shape;

const subject = { fields: shape, hasOwners: true };
const parse = (query: string) => parseListQuery(subject, parseQuery(query), 7);

function refusalOf(query: string): string {
  try {
    parse(query);
  } catch (error) {
    assert.ok(error instanceof CairnError && error.code === 'invalid_query', query);
    return error.message.replace('Cannot read the query: ', '');
  }
  return 'accepted';
}

test('values of `in` are read in time in proportion to their length', () => {
  for (const character of ['\\', ',', '\\,', 'a']) {
    const begun = process.cpuUsage().user;
    parse(`name:in=${character.repeat(200_000 / character.length)}`);
    const took = (process.cpuUsage().user - begun) / 1000;
    assert.ok(took < 2000, `200,000 characters of ${character} took ${took} ms`);
  }
});

test('the parameter until of 0.3 is refused with what to read instead', () => {
  assert.equal(refusalOf('until=3'), '"until" is withdrawn: write offset=0, and Link names the last page (rel="last")');
});

test('a list takes up to 100 conditions, of which repeated ones for any of their values are one', () => {
  const many = (count: number, condition: string) => Array.from({ length: count }, () => condition).join('&');
  assert.equal(refusalOf(many(100, 'name:ne=a')), 'accepted');
  assert.equal(refusalOf(many(101, 'name:ne=a')), '"name" is in over 100 conditions');
  assert.equal(refusalOf(many(1000, 'name=a')), 'accepted');
});

describe('the query of a list', () => {
  test('without parameters is all records by id', () => {
    assert.deepEqual(parse(''), {
      limit: undefined,
      sort: [{ name: 'id', descending: false }],
      filters: [],
      fields: undefined,
      embed: [],
      isPersonal: false,
      after: undefined,
      offset: undefined,
    });
  });

  test('has a limit, fields, and a sort that ends with id', () => {
    const { limit, sort, fields: names } = parse('limit=1000&sort=-price,name&fields=name,id');
    assert.equal(limit, 1000);
    assert.deepEqual(names, ['name', 'id']);
    assert.deepEqual(sort, [
      { name: 'price', descending: true },
      { name: 'name', descending: false },
      { name: 'id', descending: false },
    ]);
    assert.deepEqual(parse('sort=-id,price').sort, [{ name: 'id', descending: true }]);
  });

  const filters: readonly [query: string, name: string, operator: string, operands: unknown[]][] = [
    ['price=1.5', 'price', 'eq', [1.5]],
    ['price:eq=-1e3', 'price', 'eq', [-1000]],
    ['price:gte=10', 'price', 'gte', [10]],
    ['price:in=1,2,3', 'price', 'in', [1, 2, 3]],
    ['name=', 'name', 'eq', ['']],
    ['name:contains=a%2Cb+c', 'name', 'contains', ['a,b c']],
    ['name:in=a,b,', 'name', 'in', ['a', 'b', '']],
    ['name:in=b%2Cc,a', 'name', 'in', ['b', 'c', 'a']],
    ['name:in=b%5C,c,a', 'name', 'in', ['b,c', 'a']],
    ['name:in=%5C%5C,%5C%5C%5C,,C:%5Cdir', 'name', 'in', ['\\', '\\,', 'C:\\dir']],
    ['name=b%2Cc,a', 'name', 'eq', ['b,c,a']],
    ['name:starts=%C3%A9', 'name', 'starts', ['é']],
    ['on=true', 'on', 'eq', [true]],
    ['on:ne=false', 'on', 'ne', [false]],
    ['role:in=admin,member', 'role', 'in', ['admin', 'member']],
    ['at:lt=2026-01-31T12:00:00.000Z', 'at', 'lt', ['2026-01-31T12:00:00.000Z']],
    ['email=Ada@example.org', 'email', 'eq', ['Ada@example.org']],
    ['limit:gt=5', 'limit', 'gt', [5]],
    ['price%3Agt=5', 'price', 'gt', [5]],
  ];
  for (const [query, name, operator, operands] of filters) {
    test(`has a filter: ${query}`, () => {
      assert.deepEqual(parse(query).filters, [[{ name, operator, operands }]]);
    });
  }

  test('that is repeated means one of the values, with "ne" none of them', () => {
    const one = (query: string): unknown => parse(query).filters;
    const inOneTwo = [[{ name: 'price', operator: 'in', operands: [1, 2] }]];
    const both = ['price=1&price=2', 'price=1&price:eq=2', 'price[]=1&price[]=2', 'price=1&price[]=2', 'price:in=1,2'];
    for (const query of both) {
      assert.deepEqual(one(query), inOneTwo, query);
    }
    assert.deepEqual(one('price:in=1,2&price:in=3'), [[{ name: 'price', operator: 'in', operands: [1, 2, 3] }]]);
    const ne = (operand: number) => [{ name: 'price', operator: 'ne', operands: [operand] }];
    assert.deepEqual(one('price:ne=1&price:ne[]=2&price:ne=2'), [ne(1), ne(2), ne(2)]);
    const { sort } = parse('sort[]=price&sort[]=name&fields[]=id');
    assert.deepEqual(sort.map(({ name }) => name), ['price', 'name', 'id']);
    const cursorOf = (query: string): string => writeCursor(shape, parse(query), { id: 1 });
    assert.equal(cursorOf('price=1&price=2'), cursorOf('price[]=1&price[]=2'), 'a cursor is good for both');
  });

  test('"or" holds where one of its parts does', () => {
    assert.deepEqual(parse('or=(price:lt:10,role:eq:admin)').filters, [[
      { name: 'price', operator: 'lt', operands: [10] }, { name: 'role', operator: 'eq', operands: ['admin'] },
    ]]);
    const operandsOf = (value: string): unknown =>
      parse(`or=${encodeURIComponent(value)}`).filters.flat().map(({ operands }) => operands);
    assert.deepEqual(operandsOf('(name:eq:a\\,b\\(c\\)\\\\:d)'), [['a,b(c)\\:d']]);
    assert.deepEqual(operandsOf('(price:in:1\\,2,name:eq:)'), [[1, 2], ['']]);
    const parts = (count: number): string => `or=(${Array.from({ length: count }, (_, n) => `id:eq:${n + 1}`).join()})`;
    assert.equal(refusalOf(parts(20)), 'accepted');
    const bad = [
      '', '()', '(', ')', 'price:lt:10', '(price:lt:10', 'price:lt:10)', '(price:lt:10,)', '(,price:lt:10)', '(price)',
      '(price:10)', '(price:lt:x)', '(colour:eq:1)', '(or:eq:(price:eq:1))', '((price:eq:1),price:eq:2)',
      '(price:eq:1))', '(name:eq:a\\)', '(q:eq:x)', '(limit:eq:0x)', '(password:eq:x)',
    ];
    for (const value of bad) assert.notEqual(refusalOf(`or=${encodeURIComponent(value)}`), 'accepted', value);
    assert.notEqual(refusalOf(parts(21)), 'accepted');
    assert.notEqual(refusalOf(`${parts(1)}&${parts(1)}`), 'accepted', 'twice');
  });

  test('"exists" is for fields that may be absent', () => {
    const dated: Shape = { id: idField, at: { kind: 'timestamp', optional: true }, name: { kind: 'text' } };
    const filtersOf = (query: string) => parseListQuery({ fields: dated }, parseQuery(query)).filters;
    assert.deepEqual(filtersOf('at:exists=false'), [[{ name: 'at', operator: 'exists', operands: [false] }]]);
    for (const query of ['at:exists=', 'at:exists=1', 'name:exists=true', 'at:exists=true&at:exists=true']) {
      assert.throws(() => filtersOf(query), { code: 'invalid_query' }, query);
    }
  });

  const refused = [
    'colour=red', '=', 'x', 'Price=1', 'price:=1', 'price:like=1', 'price:gte:lt=1', 'price:contains=1', ':eq=1',
    'password=x', 'password:starts=x', 'revision=1', 'ownerId=1', '__proto__=1', 'toString=1', 'constructor:eq=1',
    'limit=', 'limit=0', 'limit=1001', 'limit=-1', 'limit=1.0', 'limit=+1', 'limit=01', 'limit=1e2', 'limit=ten',
    'limit=1&limit=1', 'sort=id&sort=id', 'price:gt=1&price:gt=2', 'name:ends=a&name:ends=b', 'cursor=a&cursor=a',
    'price[][]=1', '[]=1', 'price=1&price[]=x', 'limit=1&limit[]=1', 'name:contains=a&name:contains[]=b',
    'sort=', 'sort=,', 'sort=price,', 'sort=colour', 'sort=+price', 'sort=--price', 'sort=price,price',
    'sort=price,-price', 'sort=password', 'sort=note.x',
    'sort=toString', 'sort=__proto__', 'sort=name,price,on,role', 'sort=price desc',
    'fields=', 'fields=id,id', 'fields=password', 'fields=id,', 'fields=revision', 'fields=*',
    'price=', 'price=abc', 'price=0x10', 'price=1e400', 'price=NaN', 'price= 1', 'price:in=1,,2', 'price:in=1%5C,2',
    'price=.5', 'price=01', 'price=9007199254740993', 'limit:gt=12345678901234567891', 'price="1"',
    'on=1', 'on=True', 'on=', 'on:gt=true', 'role=owner', 'role:in=admin,x', 'role:contains=a', 'at=2026',
    'at:contains=2',
    'cursor=', 'cursor=x', 'cursor=W10', 'cursor=bnVsbA', 'cursor=%00',
    'q=', 'q=a&q=b', `q=${'a'.repeat(65)}`, 'q:eq=a', 'owner=', 'owner=Me', 'owner=7', 'owner=me&owner=me',
    'owner:eq=me', `name:contains=${'a'.repeat(201)}`,
  ];
  for (const query of refused) {
    test(`refuses ${query}`, () => assert.notEqual(refusalOf(query), 'accepted'));
  }

  test('is refused with the parameter and the allowed values', () => {
    assert.equal(
      refusalOf('colour=red'),
      '"colour" is not a known parameter; this list takes limit, offset, cursor, sort, fields, or, q, owner, ' +
        'and filters by id, name, email, price, on, role, at, note, limit',
    );
    assert.equal(refusalOf('on:gt=true'), '"on:gt" is not a known parameter; on can be filtered by eq, ne');
    assert.match(refusalOf('_page=2'), /^"_page" is not a known parameter: write offset; this list takes limit, /);
    assert.match(refusalOf('price_gte=2'), /^"price_gte" is not a known parameter: write price:gte; this list/);
    assert.match(refusalOf('name_like=a'), /^"name_like" is not a known parameter: write name:contains; this list/);
    assert.equal(refusalOf('limit=0'), '"limit" must be a whole number from 1 to 1000');
    assert.equal(refusalOf('price:gt=1&price:gt=2'), '"price:gt" is given more than once');
    assert.equal(refusalOf('role=owner'), '"role" must be one of admin, member');
    assert.equal(refusalOf(`${'x'.repeat(5000)}=1`).slice(0, 70), `"${'x'.repeat(64)}…" is`);
  });
});

describe('the parameters q and owner', () => {
  test('are additional filters', () => {
    assert.deepEqual(parse('q=Lamp+shade&owner=me').filters, [
      [{ name: '', operator: 'search', operands: ['Lamp', 'shade'] }],
      [{ name: '.owner', operator: 'eq', operands: [7] }],
    ]);
    assert.equal(refusalOf(`q=${'é'.repeat(64)}`), 'accepted');
    assert.equal(refusalOf('q=a+b+c+d+e+f+g+h'), 'accepted');
    for (const words of ['a+b+c+d+e+f+g+h+i', '+', '%CC%81', 'x'.repeat(65)])
      assert.equal(refusalOf(`q=${words}`), '"q" must be 1 to 8 words, with 64 characters in all');
  });

  test('a cursor of 0.3 with q is refused', () => {
    const cursor = Buffer.from(JSON.stringify({ of: 1868076837, after: [1] })).toString('base64url');
    assert.match(refusalOf(`q=a&cursor=${cursor}`), /^"cursor" must come from the Link field/);
  });

  test('are parameters only for records with texts and owners', () => {
    const numbers: Shape = { id: idField, price: { kind: 'number' }, secret: { kind: 'text', writeOnly: true } };
    for (const query of ['q=a', 'owner=me']) {
      assert.throws(() => parseListQuery({ fields: numbers }, parseQuery(query), 7), { code: 'invalid_query' });
    }
    assert.ok(listParameters({ fields: numbers }).every((name) => name !== 'q' && name !== 'owner'));
    // A field with this name can still be used as a filter.
    const named: Shape = { id: idField, q: { kind: 'text' }, owner: { kind: 'text' } };
    const { filters } = parseListQuery({ fields: named, hasOwners: true }, parseQuery('q:eq=x&owner:eq=me'), 7);
    assert.deepEqual(filters.flat().map(({ name }) => name), ['q', 'owner']);
  });

  test('need an authenticated caller for owner=me', () => {
    assert.throws(() => parseListQuery(subject, parseQuery('owner=me')), { code: 'authentication_required' });
  });
});

describe('a cursor', () => {
  const withCursor = (query: string, position: readonly (string | number | boolean | null)[]): string => {
    const { sort } = parse(query);
    const record = Object.fromEntries(sort.map(({ name }, index) => [name, position[index]]));
    return `${query}&cursor=${writeCursor(shape, parse(query), record)}`;
  };

  test('contains a position', () => {
    assert.deepEqual(parse(withCursor('sort=-price', [9.5, 12])).after, [9.5, 12]);
    assert.deepEqual(parse(withCursor('sort=name,on', ['Größe "😀"', true, 3])).after, ['Größe "😀"', true, 3]);
    assert.deepEqual(parse(withCursor('sort=limit', [null, 3])).after, [null, 3]);
    assert.match(writeCursor(shape, parse('sort=name'), { name: '>>>???', id: 1 }), /^[\w-]+$/);
  });

  test('is valid with the same sort and filters, even if other parameters change', () => {
    const query = withCursor('sort=price&price:gt=1&name=a', [2, 12]);
    assert.equal(refusalOf(query), 'accepted');
    assert.equal(refusalOf(query.replace('price:gt=1&name=a', 'name=a&price:gt=1.0')), 'accepted');
    assert.equal(refusalOf(`${query}&limit=5&fields=id`), 'accepted');
    const misfit = '"cursor" must come from the Link field of a list with the same sort and filters';
    assert.equal(refusalOf(query.replace('sort=price', 'sort=-price')), misfit);
    assert.equal(refusalOf(query.replace('price:gt=1', 'price:gt=2')), misfit);
    assert.equal(refusalOf(query.replace('price:gt', 'price:gte')), misfit);
    assert.equal(refusalOf(query.replace('&name=a', '')), misfit);
    assert.equal(refusalOf(`${query}&q=a`), misfit);
    const own = withCursor('owner=me', [2]);
    assert.throws(() => parseListQuery(subject, parseQuery(own), 8), /must come from the Link field/);
  });

  test('that was not issued is refused', () => {
    for (const position of [['2', 12], [2, '12'], [null, 12], [2, null], [2], [], [true, 12]]) {
      assert.notEqual(refusalOf(withCursor('sort=price', position)), 'accepted', JSON.stringify(position));
    }
    const cursor = writeCursor(shape, parse('sort=price'), { price: 2, id: 12 });
    const longer = Buffer.from(Buffer.from(cursor, 'base64url').toString().replace(']', ',13]')).toString('base64url');
    assert.notEqual(refusalOf(`sort=price&cursor=${longer}`), 'accepted');
  });
});

test('every parameter in the OpenAPI document is accepted with a value of its schema', () => {
  const parameters = describeList(subject);
  const names = parameters.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.deepEqual(names.slice(0, 8), ['limit', 'offset', 'cursor', 'sort', 'fields', 'or', 'q', 'owner']);
  assert.ok(names.includes('price:gte') && names.includes('limit:gte') && names.includes('role:in'));
  assert.ok(!names.some((name) => name.startsWith('password')));
  const values: { [type: string]: string } = { string: 'admin', number: '1', integer: '1', boolean: 'true' };
  for (const { name, schema } of parameters) {
    if (['cursor', 'or'].includes(name)) continue;
    const items = schema['type'] === 'array' ? schema['items'] : schema;
    assert.ok(isJsonObject(items), name);
    const choice = Array.isArray(items['enum']) ? String(items['enum'][0]) : undefined;
    const moment = 'format' in items ? '2026-01-31T12:00:00.000Z' : undefined;
    const value = choice ?? moment ?? values[String(items['type'])];
    assert.equal(refusalOf(`${encodeURIComponent(name)}=${value}`), 'accepted', name);
  }
});

test('a single record has only the parameters "fields" and "embed"', () => {
  const embeddables = [{ name: 'postId' }, { name: 'comments' }];
  const ofRecord = (query: string) => parseRecordQuery({ fields: shape, embeddables }, parseQuery(query));
  assert.deepEqual([ofRecord('').fields, ofRecord('').embed], [undefined, []]);
  const { fields, embed } = ofRecord('fields=id,name&embed=comments,postId');
  assert.deepEqual([fields, embed], [['id', 'name'], ['comments', 'postId']]);
  for (const query of ['fields=id&fields=id', 'fields=', 'fields=password', 'limit=1', 'name=x', 'embed=posts']) {
    assert.throws(() => ofRecord(query), { code: 'invalid_query' }, query);
  }
  const plain = { fields: shape };
  assert.throws(() => parseRecordQuery(plain, parseQuery('embed=postId')), { message: /a record takes fields$/ });
});

test('a parameter that takes several values may be repeated instead, as some generated clients do', () => {
  const both = (query: string) => {
    const { sort, fields, filters } = parse(query);
    return [sort, fields, filters];
  };
  assert.deepEqual(both('sort=-price&sort=name&fields=id&fields=name&price:in=1&price:in=2,3'),
    both('sort=-price,name&fields=id,name&price:in=1,2,3'));
  assert.throws(() => parse('sort=price&sort=price'), { code: 'invalid_query' });
});

test('the range of a filter has all records that pass it, also those that differ after 200 characters', () => {
  const start = 'x'.repeat(200);
  const notes = [start.slice(1), start, `${start}a`, `${start}b`, `${start}c`, `${start.slice(1)}y`];
  const passing = { lt: 3, lte: 4, gt: 2, gte: 3, eq: 1 };
  for (const [operator, count] of Object.entries(passing)) {
    const { filters } = parse(`note:${operator}=${start}b`);
    const range = findRange(shape, filters, 'note');
    const within = notes.filter((note) => range.hasBegun({ note }) && !range.hasEnded({ note }));
    // The four texts that begin alike are compared whole only afterwards.
    assert.ok(within.length >= count && within.includes(`${start}b`), operator);
    if (operator !== 'gt') assert.ok(within.includes(start), operator);
    assert.ok(within.includes(`${start}c`) && within.includes(`${start}a`), operator);
  }
});

test('`q` searches no field that is never shown', () => {
  const secret = { kind: 'text', writeOnly: true } as const;
  const fields = { id: idField, name: { kind: 'text' }, secret, more: { ...secret, kind: 'json' } } as const;
  assert.deepEqual(searchedPaths(fields), ['name']);
  assert.deepEqual(listParameters({ fields: { id: idField, secret } }).filter((name) => name === 'q'), []);
});

test('a filter by time takes a date, and times with or without milliseconds and with an offset', () => {
  const operandOf = (text: string) => parse(`at=${encodeURIComponent(text)}`).filters.flat()[0]?.operands;
  const noon = '2026-01-31T12:00:00.000Z';
  for (const text of [noon, '2026-01-31T12:00:00Z', '2026-01-31T13:00:00+01:00', '2026-01-31T13:00:00 01:00',
    '2026-01-31T06:30:00.0-05:30'])
    assert.deepEqual(operandOf(text), [noon], text);
  assert.deepEqual(operandOf('2026-02-28'), ['2026-02-28T00:00:00.000Z']);
  for (const text of ['2026-02-30', '2026-02-30T00:00:00Z', '2026-01-31T12:00', '2026-01-31T25:00:00Z', '31.1.2026',
    '2026-01-31T12:00:00+25:00', ''])
    assert.match(refusalOf(`at=${encodeURIComponent(text)}`), /^"at" must be like 2026-01-31, 2026-01-31T12:00:00Z or/);
});
