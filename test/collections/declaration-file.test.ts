import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonValue } from '../../src/base/json.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { parseDeclarations } from '../../src/collections/declaration-file.ts';
import { items } from '../../src/collections/items.ts';
import { idField } from '../../src/schema/field.ts';

const books = { name: 'books', singular: 'book', fields: { title: { kind: 'text' } } };

test('a file of declarations gives the same collections as defineCollection', () => {
  const { items, users, collections } = parseDeclarations({
    items: false,
    collections: [{
      name: 'books',
      singular: 'book',
      fields: {
        title: { kind: 'text', min: 1, max: 100, example: 'Emma', description: 'As on the cover.' },
        pages: { kind: 'integer', min: 1, optional: true },
        weight: { kind: 'number', max: 10 },
        isLent: { kind: 'boolean', default: false },
        state: { kind: 'choice', values: ['new', 'read'], default: 'read' },
        contact: { kind: 'email' },
        boughtAt: { kind: 'timestamp', optional: true },
      },
      access: { list: 'public', remove: 'admin' },
      timestamps: true,
    }],
  }, []);
  const declared = declareCollection({
    name: 'books',
    singular: 'book',
    fields: {
      title: { kind: 'text', min: 1, max: 100, example: 'Emma', description: 'As on the cover.' },
      pages: { kind: 'integer', min: 1, optional: true },
      weight: { kind: 'number', max: 10 },
      isLent: { kind: 'boolean', default: false },
      state: { kind: 'choice', values: ['new', 'read'], default: 'read' },
      contact: { kind: 'email' },
      boughtAt: { kind: 'timestamp', optional: true },
    },
    access: { list: 'public', remove: 'admin' },
    timestamps: true,
  });
  assert.deepEqual([items, users, collections], [false, true, [declared]]);
  assert.deepEqual(parseDeclarations({}, []), { items: true, users: true, roles: [], collections: [] });
});

test('items, which no start checks, keep to the rules of declarations', () => {
  const { name, singular, access, fields: { id, ...fields } } = items;
  assert.deepEqual(id, idField);
  assert.deepEqual({ ...declareCollection({ name, singular, access, fields }), isBuiltIn: true }, items);
});

test('a collection named items can replace the built-in one', () => {
  const own = { ...books, name: 'items', singular: 'item' };
  assert.equal(parseDeclarations({ items: false, collections: [own] }, []).collections[0]?.name, 'items');
});

test('an error names its place in the file', () => {
  const field = (declared: JsonValue) => ({ collections: [{ ...books, fields: { a: declared } }] });
  const former = { kind: 'text', renamedFrom: 'x' };
  const toBook = { kind: 'reference', to: 'books' };
  const toUser = { kind: 'reference', to: 'users', onDelete: 'refuse' };
  const cases: readonly (readonly [json: JsonValue, message: string | RegExp])[] = [
    [[], 'the document must be an object'],
    [{ collection: [] }, '/collection is not a known member; did you mean "collections"?'],
    [{ items: 0 }, '/items must be true or false'],
    [{ collections: {} }, '/collections must be an array'],
    [{ collections: [1] }, '/collections/0 must be an object'],
    [{ collections: [{ singular: 'book', fields: {} }] }, '/collections/0/name must be given'],
    [{ collections: [{ ...books, name: 'a b' }] }, /^\/collections\/0\/name must be 1 to 63 letters, digits, "_" and/],
    [{ collections: [{ ...books, name: '-a' }] }, /^\/collections\/0\/name must be 1 to 63 letters/],
    [
      { collections: [books, { ...books, name: 'Books', singular: 'other' }] },
      '/collections/1/name "Books" is taken, as "books"',
    ],
    [{ collections: [{ ...books, name: 'USERS' }] }, '/collections/0/name "USERS" is taken, as "users"'],
    [{ users: 0 }, '/users must be true or false'],
    [{ collections: [books, { ...books, singular: 'other' }] }, '/collections/1/name "books" is taken'],
    [{ collections: [{ ...books, name: 'items' }] }, '/collections/0/name "items" is taken'],
    [{ collections: [{ ...books, name: 'users' }] }, '/collections/0/name "users" is taken'],
    [
      { collections: [books, { ...books, name: 'others' }] },
      '/collections/1/singular "book" is the singular of another collection',
    ],
    [{ collections: [{ ...books, singular: 'item' }] }, /^\/collections\/0\/singular "item" is the singular/],
    [{ collections: [{ ...books, singular: 'token' }] }, /^\/collections\/0\/singular must be a word that the API /],
    [{ collections: [{ ...books, singular: 'status' }] }, /^\/collections\/0\/singular must be a word that the API /],
    [{ collections: [{ ...books, fields: [] }] }, '/collections/0/fields must be an object that names the fields'],
    [
      { collections: [{ ...books, feilds: {} }] },
      '/collections/0/feilds is not a known member; did you mean "fields"?',
    ],
    [{ collections: [{ ...books, timestamps: 1 }] }, '/collections/0/timestamps must be true or false'],
    [
      { collections: [{ ...books, access: 'public' }] },
      '/collections/0/access must be an object, such as {"read": "public"}',
    ],
    [
      { collections: [{ ...books, access: { write: 'user' } }] },
      '/collections/0/access/write is not a known member: write "create", "replace" and "patch"',
    ],
    [
      { collections: [{ ...books, access: { update: 'user' } }] },
      '/collections/0/access/update is not a known member: write "replace" and "patch"',
    ],
    [
      { collections: [{ ...books, access: { share: 'user' } }] },
      /access\/share is not a known member; the members are list, create, read, replace, patch, remove$/,
    ],
    [{ orders: [] }, '/orders is not a known member; the members are $schema, items, users, roles, collections'],
    [{ collections: [{ ...books, access: { read: 'private' } }] }, /, owner, not "private": write "owner"$/],
    [
      { collections: [{ ...books, access: { read: ['owner', 'clerk'] } }] },
      /\/access\/read\/1 must be one of .*, owner, not "clerk"; if it is a role, add it to "roles"$/,
    ],
    [
      { collections: [{ ...books, access: { lists: 'user' } }] },
      '/collections/0/access/lists is not a known member; did you mean "list"?',
    ],
    [
      { collections: [{ ...books, access: { create: 'owner' } }] },
      '/collections/0/access/create must be one of public, optional, user, admin, member, session, not "owner"',
    ],
    [
      { collections: [{ ...books, access: { list: ['owner', 'public'] } }] },
      '/collections/0/access/list/1 must stand alone: write "optional" instead',
    ],
    [
      { collections: [{ ...books, access: { list: 'public', read: ['owner', 'session'] } }] },
      '/collections/0/access/list must not be "public", since "read" asks who it is: write "optional"',
    ],
    [
      { collections: [{ ...books, access: { patch: ['owner', 'owner'], remove: [] } }] },
      /access\/patch\/0 must occur once\n.*access\/patch\/1 must occur once\n.*access\/remove must be a word or/s,
    ],
    [
      { collections: [{ ...books, access: { read: 'onwer' } }] },
      /^\/collections\/0\/access\/read must be one of .*, owner, not "onwer"; did you mean "owner"\?$/,
    ],
    [
      { collections: [{ ...books, fields: { a: former, b: former } }] },
      '/collections/0/fields/b/renamedFrom must not be "x", the name of another field',
    ],
    [
      { collections: [{ ...books, fields: { aId: toUser }, access: { create: 'aId' } }] },
      '/collections/0/access/create must be one of public, optional, user, admin, member, session, not "aId"',
    ],
    [
      { collections: [{ ...books, fields: { aId: toBook }, access: { read: ['owner', 'aId'] } }] },
      /^\/collections\/0\/access\/read\/1 must be .*, owner, not "aId", which is a field that refers to no user$/,
    ],
    [
      { collections: [{ ...books, fields: { aIds: { kind: 'list', of: toUser } }, access: { read: 'aIDs' } }] },
      /^\/collections\/0\/access\/read must be one of .*, owner, aIds, not "aIDs"; did you mean "aIds"\?$/,
    ],
    [
      { collections: [{ ...books, fields: { aId: { kind: 'reference', to: 'users' } } }] },
      '/collections/0/fields/aId/onDelete must be refuse, remove or clear, for when the user is removed',
    ],
    [
      { collections: [{ ...books, fields: { aIds: { kind: 'list', of: { kind: 'reference', to: 'users' } } } }] },
      '/collections/0/fields/aIds/of/onDelete must be refuse, remove or clear, for when the user is removed',
    ],
    [
      { collections: [{ ...books, fields: { aId: { kind: 'reference', to: 'books', show: 'name' } } }] },
      '/collections/0/fields/aId/show must be left out: it is for references to users',
    ],
    [
      { collections: [{ ...books, fields: { aId: { ...toUser, show: 'email' } } }] },
      '/collections/0/fields/aId/show must be one of name',
    ],
    [
      { users: false, collections: [{ ...books, fields: { aId: toUser } }] },
      '/collections/0/fields/aId/to must be one of items, books, not "users"',
    ],
    [
      { collections: [{ ...books, fields: { aId: { kind: 'reference', to: 'bookks' } } }] },
      '/collections/0/fields/aId/to must be one of items, books, users, not "bookks"; did you mean "books"?',
    ],
    [
      { users: false, collections: [{ ...books, ownerRemoved: 'remove' }] },
      '/collections/0/ownerRemoved must be left out: there are no users',
    ],
    [
      { collections: [{ ...books, ownerRemoved: 'clear' }] },
      '/collections/0/ownerRemoved must be one of keep, remove',
    ],
    [field('text'), '/collections/0/fields/a must be an object with a "kind"'],
    [field({}), /^\/collections\/0\/fields\/a\/kind must be one of text, integer/],
    [field({ kind: 'date' }), /^\/collections\/0\/fields\/a\/kind must be one of text, .*: write "timestamp"$/],
    [field({ kind: 'constructor' }), /^\/collections\/0\/fields\/a\/kind must be one of/],
    [field({ kind: 'text', minimum: 1 }), '/collections/0/fields/a/minimum is not a known member: write "min"'],
    [field({ kind: 'email', max: 1 }), /^\/collections\/0\/fields\/a\/max is not a known member/],
    [field({ kind: 'integer', min: '1' }), '/collections/0/fields/a/min must be a number'],
    [field({ kind: 'text', min: 1.5 }), /^\/collections\/0\/fields\/a\/min must be a whole number/],
    [field({ kind: 'text', min: 5, max: 1 }), '/collections/0/fields/a has bounds that no value can satisfy'],
    [field({ kind: 'text', optional: true, default: '' }), /^\/collections\/0\/fields\/a\/default must be left out/],
    [field({ kind: 'integer', default: 1.5 }), /^\/collections\/0\/fields\/a\/default must be a whole/],
    [field({ kind: 'integer', example: {} }), /^\/collections\/0\/fields\/a\/example must be a whole number/],
    [field({ kind: 'integer', example: 'x' }), /^\/collections\/0\/fields\/a\/example must be a whole/],
    [field({ kind: 'choice', values: [] }), /^\/collections\/0\/fields\/a\/values must have at least one value/],
    [field({ kind: 'choice', values: ['a', 1] }), '/collections/0/fields/a/values/1 must be a string'],
    [{ collections: [{ ...books, fields: { 'a/.': { kind: 'text' } } }] }, /^\/collections\/0\/fields\/a~1[.] needs a/],
    [{ collections: [{ ...books, fields: { id: { kind: 'text' } } }] }, /^\/collections\/0\/fields\/id has a name/],
    [
      { collections: [{ ...books, timestamps: true, fields: { createdAt: { kind: 'timestamp' } } }] },
      /^\/collections\/0\/fields\/createdAt has a name that/,
    ],
  ];
  for (const [json, message] of cases) {
    assert.throws(() => parseDeclarations(json, ['users']), { name: 'InvariantError', message }, JSON.stringify(json));
  }
});

test('all mistakes of a file are found at once, each a line with its place', () => {
  const json = {
    $schema: 'https://example.org/cairn.json',
    items: 1,
    collections: [
      { ...books, singular: 'x y', fields: { a: { kind: 'text', min: -1 }, b: { kind: 'date' }, id: {} } },
      { name: 'books', fields: {}, acess: {} },
    ],
  };
  assert.throws(() => parseDeclarations(json, []), (error: Error) => {
    const [head, ...lines] = error.message.split('\n');
    assert.equal(head, '6 mistakes');
    assert.deepEqual(lines.map((line) => line.trim().split(' ')[0]), [
      '/items', '/collections/0/singular', '/collections/0/fields/a/min', '/collections/0/fields/b/kind',
      '/collections/0/fields/id', '/collections/1/acess',
    ]);
    return true;
  });
});

test('mistakes of one collection and of several together are found at once', () => {
  const owner = { kind: 'reference', to: 'users' };
  const json = {
    roles: ['Editor'],
    collections: [
      { name: 'users', fields: { a: { kind: 'text', max: 'x' } } },
      { ...books, access: { read: 'nobody' } },
      { name: 'pages', fields: { bookId: { kind: 'reference', to: 'book' }, ownerId: owner, byId: owner } },
      { name: 'notes', fields: { bookId: { kind: 'reference', to: 'book' }, byId: owner }, ownerRemoved: 'never' },
      { name: 'parts', fields: { pageId: { kind: 'reference', to: 'pages' }, byId: owner } },
    ],
  };
  assert.throws(() => parseDeclarations(json, ['users']), (error: Error) => {
    const [, ...lines] = error.message.split('\n');
    assert.deepEqual(lines.map((line) => line.trim().split(' ')[0]), [
      '/roles/0', '/collections/0/fields/a/max', '/collections/1/access/read', '/collections/2/fields/ownerId',
      '/collections/3/ownerRemoved', '/collections/4/fields/byId/onDelete',
    ]);
    return true;
  });
});

test('words of JSON Schema and of other servers are answered with the words that are meant', () => {
  const cases: readonly (readonly [JsonValue, RegExp])[] = [
    [{ type: 'string' }, /kind must be one of text, .*: write "text"$/],
    [{ kind: 'bool' }, /: write "boolean"$/], [{ kind: 'array' }, /: write "list"$/],
    [{ kind: 'text', required: true }, /required is not a known member: write nothing: a field is required unless/],
    [{ kind: 'text', type: 'string' }, /type is not a known member: write "kind"$/],
    [{ kind: 'text', maxLength: 5 }, /maxLength is not a known member: write "max"$/],
    [{ kind: 'constructor' }, /json, not "constructor"$/],
    [{ kind: 'intger' }, /json, not "intger"; did you mean "integer"\?$/],
    [{ kind: 'text', optional: true, set: ['admn'] }, /member, not "admn"; did you mean "admin"\?$/],
    [{ kind: 'text', toString: 1 }, /toString is not a known member; the members are kind, /],
  ];
  for (const [a, message] of cases)
    assert.throws(() => parseDeclarations({ collections: [{ ...books, fields: { a } }] }, []), { message });
});
