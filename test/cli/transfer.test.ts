import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { CairnError } from '../../src/base/errors.ts';
import { parseJson } from '../../src/base/json.ts';
import { commands as dataCommands } from '../../src/cli/data.ts';
import { commands as transferCommands } from '../../src/cli/transfer.ts';
import { commands as userCommands } from '../../src/cli/user.ts';
import { parseDeclarations } from '../../src/collections/declaration-file.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { silentLog } from '../../src/log/log.ts';
import { runCommand, type Outcome } from '../support/cli/terminal.ts';
import { isLockedRun } from '../support/basics.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { createApp } from '../support/inside.ts';

/** A directory with a file of records, its declaration, and a store. */
class Place {
  readonly file: string;
  readonly declaration: string;
  readonly data: string;

  constructor(t: TestContext, content: unknown) {
    const directory = temporaryDirectory(t);
    [this.file = '', this.declaration = '', this.data = ''] = ['db.json', 'own.json', 'data'].map((name) =>
      join(directory, name));
    writeFileSync(this.file, typeof content === 'string' ? content : JSON.stringify(content));
  }

  async declare(): Promise<Outcome> {
    const outcome = await this.run(['declare', '--strict', this.file]);
    writeFileSync(this.declaration, outcome.out);
    return outcome;
  }

  import(...words: string[]): Promise<Outcome> {
    return this.run(['import', this.file, '--data', this.data, '--collections', this.declaration, ...words]);
  }

  export(...words: string[]): Promise<Outcome> {
    return this.run(['export', '--data', this.data, '--collections', this.declaration, ...words]);
  }

  run(words: readonly string[], input = '', interactive = false): Promise<Outcome> {
    const all = [...transferCommands, ...userCommands];
    return runCommand(all, words, input, { CAIRN_SCRYPT_COST: '14' }, interactive);
  }
}

const blog = {
  $schema: './node_modules/json-server/schema.json',
  posts: [
    { id: 1, title: 'One', views: 3, price: 1, createdAt: '2026-01-31T12:00:00.000Z' },
    { id: 7, title: 'Seven ä', views: 0, price: 2.5, draft: true, createdAt: '2026-01-31T12:00:00.000Z' },
  ],
  comments: [{ id: 3, text: 'c', postId: 7 }, { text: 'd', postId: 1 }],
  categories: [{ id: 1, name: 'a', at: '2026-01-31T12:00:00.000Z', mail: 'a@b.example' }],
};

test('a file is two commands away from a server: its declaration fits, and its ids are kept', async (t) => {
  const place = new Place(t, blog);
  const declared = await place.declare();
  assert.deepEqual([declared.code, declared.err], [0, 'comments: 1 record has no id, and gets another\n']);
  const { collections } = JSON.parse(declared.out);
  assert.deepEqual(collections, [
    {
      name: 'posts',
      fields: {
        title: { kind: 'text' }, views: { kind: 'integer' }, price: { kind: 'number' },
        createdAt: { kind: 'timestamp' }, draft: { kind: 'boolean', optional: true },
      },
    },
    { name: 'comments', fields: { text: { kind: 'text' }, postId: { kind: 'reference', to: 'posts' } } },
    { name: 'categories', fields: { name: { kind: 'text' }, at: { kind: 'timestamp' }, mail: { kind: 'email' } } },
  ]);
  assert.deepEqual(await place.import(), {
    code: 0, out: 'posts: 2 records added\ncomments: 2 records added\ncategories: 1 record added\n', err: '',
  });
  const json = parseJson(readFileSync(place.declaration, 'utf8'));
  const app = await createApp({ auth: 'none', directory: place.data, ...parseDeclarations(json, []) });
  assert.deepEqual(JSON.parse((await app.inject({ target: '/posts/7' })).body), blog.posts[1]);
  const made = await app.inject({
    method: 'POST',
    target: '/comments',
    fields: { 'Content-Type': 'application/json' },
    body: '{"text":"e","postId":1}',
  });
  assert.equal(JSON.parse(made.body).id, 5, 'the next id follows the highest');
  await app.close();
  const exported = await place.export();
  assert.equal(exported.code, 0);
  const { comments } = JSON.parse(exported.out);
  assert.deepEqual(comments, [
    { id: 3, text: 'c', postId: 7 }, { id: 4, text: 'd', postId: 1 }, { id: 5, text: 'e', postId: 1 },
  ]);
  writeFileSync(place.file, exported.out);
  assert.equal((await place.import()).out, 'Nothing in the file is new\n', 'what was exported is what is there');
});

test('a record without an id gets none that was given to another in the store', async (t) => {
  const place = new Place(t, { posts: [{ title: 'a' }, { title: 'b' }, { title: 'c' }] });
  const posts = { name: 'posts', id: { kind: 'any' }, fields: { title: { kind: 'text' } } } as const;
  writeFileSync(place.declaration, JSON.stringify({ items: false, collections: [posts] }));
  const collections = [declareCollection(posts)];
  const app = await createApp({ directory: place.data, auth: 'none', items: false, collections });
  const fields = { 'content-type': 'application/json' };
  await app.inject({ method: 'POST', target: '/posts', fields, body: '{"id":3,"title":"given"}' });
  await app.close();
  assert.equal((await place.import()).code, 0);
  const { posts: all } = JSON.parse((await place.export()).out);
  assert.deepEqual(all.map(({ id, title }: any) => [id, title]), [[3, 'given'], [2, 'a'], [4, 'b'], [5, 'c']]);
});

test('an import says which records had no id and were added again', async (t) => {
  const posts = [{ title: 'a' }, { id: 7, title: 'b' }, { title: 'c' }];
  const place = new Place(t, { posts, tags: [{ name: 'x' }] });
  const collections = [
    { name: 'posts', timestamps: true, fields: { title: { kind: 'text' } } },
    { name: 'tags', fields: { name: { kind: 'text' } } },
  ];
  writeFileSync(place.declaration, JSON.stringify({ items: false, collections }));
  assert.equal((await place.import()).err, '');
  writeFileSync(place.file, JSON.stringify({ posts: [...posts, { title: 'd' }], tags: [{ name: 'y' }] }));
  const { out, err } = await place.import();
  assert.equal(out, 'posts: 3 records added\ntags: 1 record added\n');
  assert.match(err, /^posts: 2 records have no id, and were added again next to equal ones; give ids, .*\n$/);
});

test('each field is declared on a line of its own, and a text of many lines may become long', async (t) => {
  const notes = [{ id: 1, title: 'One }', body: 'a\nb', noteId: 1, size: 'x'.repeat(11_000), at: null }];
  const { out } = await new Place(t, { notes }).declare();
  const long = '"kind": "text", "multiline": true, "max": 1000000';
  assert.deepEqual(out.split('\n').slice(6, 11), [
    '        "title": { "kind": "text" },',
    `        "body": { ${long} },`,
    '        "noteId": { "kind": "reference", "to": "notes" },',
    `        "size": { ${long} },`,
    '        "at": { "kind": "json", "bytesMax": 2097152, "optional": true }',
  ]);
});

test('what no strict kind has is any JSON, or any id, so that an import takes it', async (t) => {
  const odd: { readonly [name: string]: unknown } = {
    posts: [
      { id: 1, author: { name: 'x' }, bankId: '12' },
      { id: 2, author: { name: 'y' }, title: 'a', postId: 1, bankId: 'A1' },
      { id: 'k7', title: 1, postId: 'k7', constructor: 'c', revision: 4, 'a.b': 1, bankId: '3' },
    ],
    profile: { name: 'x' }, users: [{ name: 'x' }], none: [],
  };
  const place = new Place(t, odd);
  const { code, out, err } = await place.declare();
  assert.deepEqual([code, err], [0, '"users" is called users_\nusers_: 1 record has no id, and gets another\n']);
  const { collections, users } = JSON.parse(out);
  assert.equal(users, undefined, 'it is for a server with users');
  const json = { kind: 'json', bytesMax: 2 * 1024 * 1024 };
  const expected: readonly unknown[] = [
    {
      name: 'posts', id: { kind: 'any' }, additional: true,
      fields: {
        author: { ...json, optional: true }, bankId: { kind: 'text' }, title: { ...json, optional: true },
        postId: { kind: 'reference', to: 'posts', optional: true }, constructor: { kind: 'text', optional: true },
      },
    },
    { name: 'profile', single: true, value: json },
    { name: 'users_', fields: { name: { kind: 'text' } } },
    { name: 'none', fields: {} },
  ];
  assert.deepEqual(collections, expected);
  const imported = await place.import();
  assert.deepEqual([imported.code, imported.err], [0, '']);
  const { posts } = JSON.parse((await place.export()).out);
  assert.deepEqual(posts, odd['posts']);
});

test('an import that is not right in everything writes nothing, and groups its mistakes', async (t) => {
  const place = new Place(t, blog);
  await place.declare();
  const others = { views: 1, price: 1, createdAt: '2026-01-31T12:00:00.000Z' };
  const posts = Array.from({ length: 500 }, (_, index) => ({ id: index + 1, title: index, ...others }));
  const comments = [1, 1, 5e9].map((id) => ({ id, text: 'a', postId: 1 }));
  writeFileSync(place.file, JSON.stringify({ posts, comments, tags: [{ a: 1 }] }));
  const { code, out, err } = await place.import();
  assert.deepEqual([code, out], [65, '']);
  assert.deepEqual(err.replace(place.file, 'db.json').trimEnd().split('\n'), [
    'Cannot import db.json, and nothing was written:',
    '  posts: title must be a string (500 times, first /posts/0/title, /posts/1/title, /posts/2/title)',
    '  comments: id must be unique, but another record in the file has it (/comments/1/id)',
    '  tags: no declaration covers it; use --collections (/tags)',
    '  comments: the ids lie too far apart (the highest is 5000000000)',
  ]);
  assert.ok(!existsSync(place.data));
  writeFileSync(place.file, JSON.stringify(blog));
  await place.import();
  const before = (await place.export()).out;
  const changed = { ...blog, posts: [{ ...blog.posts[0], title: 'Other' }, { id: 9, title: 'n', ...others }] };
  writeFileSync(place.file, JSON.stringify(changed));
  const taken = await place.import();
  assert.equal(taken.code, 65);
  assert.match(taken.err, /^ {2}posts: id must be unique, but another record in the store has it \(\/posts\/0\/id\)$/m);
  assert.equal((await place.export()).out, before);
});

test('a member that every object inherits is no field that a declaration has', async (t) => {
  const place = new Place(t, { authors: [{ id: 1, name: 'a' }] });
  await place.declare();
  const names = ['constructor', 'toString', '__proto__'];
  writeFileSync(place.file, `{"authors":[{"id":1,"name":"a",${names.map((name) => `"${name}":2`).join()}}]}`);
  const { code, err } = await place.import();
  assert.equal(code, 65, err);
  for (const name of names) assert.ok(err.includes(`${name} must be left out: there is no such field`), err);
});

test('a reference to nothing is a mistake', async (t) => {
  const rows = {
    tags: [{ id: 1, name: 'a' }, { id: 2, name: 'b' }],
    posts: [{ id: 1, tagIds: [1, 2], parentId: null, postId: 2 }, { id: 2, tagIds: [], postId: 1 }],
  };
  const place = new Place(t, rows);
  const toPosts = { kind: 'reference', to: 'posts', optional: true };
  const tagIds = { kind: 'list', of: { kind: 'reference', to: 'tags' } };
  const fields = { tagIds, parentId: toPosts, postId: toPosts };
  const collections = [{ name: 'tags', fields: { name: { kind: 'text' } } }, { name: 'posts', fields }];
  writeFileSync(place.declaration, JSON.stringify({ items: false, collections }));
  const tagged = [rows.posts[0], { ...rows.posts[1], tagIds: [3], postId: 5 }];
  writeFileSync(place.file, JSON.stringify({ ...rows, posts: tagged }));
  const { code, err } = await place.import();
  assert.equal(code, 65);
  assert.match(err, /^ {2}posts: tagIds must be the id of one of the tags \(\/posts\/1\/tagIds\)$/m);
  assert.match(err, /^ {2}posts: postId must be the id of one of the posts \(\/posts\/1\/postId\)$/m);
  assert.ok(!existsSync(place.data));
  writeFileSync(place.file, JSON.stringify(rows));
  assert.deepEqual(await place.import(), { code: 0, out: 'tags: 2 records added\nposts: 2 records added\n', err: '' });
  assert.deepEqual(JSON.parse((await place.export()).out).posts[0].tagIds, [1, 2]);
});

test('a value that is unique and comes twice is a mistake, in the file and beside the store', async (t) => {
  const rows = { tags: [{ id: 1, mail: 'a@b.example' }, { id: 2, mail: 'A@b.example' }] };
  const place = new Place(t, rows);
  const fields = { mail: { kind: 'email', unique: true } };
  const declaration = { items: false, collections: [{ name: 'tags', singular: 'tag', fields }] };
  writeFileSync(place.declaration, JSON.stringify(declaration));
  assert.match((await place.import()).err, /^ {2}tags: mail must be unique \(\/tags\/1\/mail\)$/m);
  writeFileSync(place.file, JSON.stringify({ tags: rows.tags.slice(0, 1) }));
  assert.equal((await place.import()).code, 0);
  writeFileSync(place.file, JSON.stringify({ tags: rows.tags.slice(1) }));
  assert.match((await place.import()).err, /^ {2}tags: mail must be unique \(\/tags\/0\/mail\)$/m);
});

test('an export has a line for each record, and users, where that is asked for', async (t) => {
  const place = new Place(t, { posts: [{ id: 2, title: 'a' }, { id: 5, title: 'b\n' }], tags: [{ id: 1, name: 'x' }] });
  await place.declare();
  await place.import();
  const added = await place.run(
    ['user', 'add', 'mia@example.org', '--name', 'Mia', '--data', place.data], 'a password of fifteen\n');
  assert.equal(added.code, 0, added.err);
  const lines = (await place.export('--format', 'ndjson')).out.trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines, [
    { collection: 'posts', record: { id: 2, title: 'a' } }, { collection: 'posts', record: { id: 5, title: 'b\n' } },
    { collection: 'tags', record: { id: 1, name: 'x' } },
  ]);
  const { out } = await place.export('--users');
  assert.deepEqual(JSON.parse(out).users, [{ id: 1, name: 'Mia', email: 'mia@example.org', role: 'member' }]);
  assert.doesNotMatch(out, /password|scrypt/);
  assert.equal(JSON.parse((await place.export()).out).users, undefined);
});

test('imported records have an owner where one is named', async (t) => {
  const place = new Place(t, { posts: [{ id: 4, title: 'a' }] });
  await place.declare();
  const add = ['user', 'add', 'ada@example.org', '--data', place.data, '--password-file', '-'];
  assert.match((await place.import('--owner', 'ada@example.org')).err, /^Cannot use --owner: no user has the address/);
  assert.ok(!existsSync(place.data));
  mkdirSync(place.data);
  assert.equal((await place.run(add, 'correct horse battery staple')).code, 0);
  const { code, out } = await place.import('--owner', 'ADA@example.org');
  assert.deepEqual([code, out], [0, 'posts: 1 record added\n']);
  assert.match(readFileSync(join(place.data, 'posts.json'), 'utf8'), /"id":4,"revision":\d+,"ownerId":1,/);
});

test('imported records refer to users who are there, and a check finds those who are not', async (t) => {
  const place = new Place(t, { boards: [{ id: 1, memberIds: [1, 2], userId: 1 }] });
  const field = { kind: 'reference', to: 'users', onDelete: 'clear' };
  const declare = (userId: object): void => {
    const fields = { memberIds: { kind: 'list', of: field }, userId: { ...userId, optional: true } };
    writeFileSync(place.declaration, JSON.stringify({ collections: [{ name: 'boards', fields }] }));
  };
  declare(field);
  mkdirSync(place.data);
  const add = ['user', 'add', 'ada@example.org', '--data', place.data, '--password-file', '-'];
  assert.equal((await place.run(add, 'correct horse battery staple')).code, 0);
  const refused = await place.import();
  assert.deepEqual([refused.code, refused.out], [65, '']);
  assert.match(refused.err, /^ {2}boards: memberIds must be the id of one of the users \(\/boards\/0\/memberIds\)$/m);
  const row = { id: 1, memberIds: [1], userId: 7 };
  writeFileSync(place.file, JSON.stringify({ boards: [row] }));
  declare({ kind: 'integer' });
  assert.equal((await place.import()).out, 'boards: 1 record added\n');
  assert.deepEqual(JSON.parse((await place.export()).out).boards, [row]);
  declare(field);
  const words = ['check', '--data', place.data, '--collections', place.declaration];
  const { out, err } = await runCommand(dataCommands, words, '', {});
  assert.match(out + err, /1 record has a "userId" that is not a record of users: 1/);
});

const manyRows = (count: number) =>
  ({ rows: Array.from({ length: count }, (_, index) => ({ id: index + 1, text: 'x'.repeat(190) })) });

test('an import that finds no room writes nothing, and says so', async (t) => {
  const place = new Place(t, manyRows(1));
  await place.declare();
  assert.equal((await place.import()).code, 0);
  const before = (await place.export()).out;
  const more = manyRows(5000);
  writeFileSync(place.file, JSON.stringify(more));
  const { Writer } = await import('../../src/store/writer.ts');
  const full = new CairnError('storage_full', 'Cannot write: no room');
  const failing = t.mock.method(Writer.prototype, 'write', () => Promise.reject(full));
  const state = t.mock.getter(Writer.prototype, 'state', () => 'full');
  const failed = await place.import();
  for (const { mock } of [failing, state]) mock.restore();
  assert.equal(failed.code, 74);
  assert.match(failed.err, /^Cannot import .*db\.json: Cannot write: no room; nothing was written \(see .*\)$/m);
  assert.equal((await place.export()).out, before);
  const again = await place.import();
  assert.deepEqual(again, { code: 0, out: 'rows: 4,999 records added\n', err: '' });
  assert.deepEqual(JSON.parse((await place.export()).out), more);
});

test('an import that the memory for records does not hold is refused with both figures', async (t) => {
  const rows = Array.from({ length: 4000 }, (_, n) => ({ id: n + 1, text: `row ${n}`.padEnd(300) }));
  const place = new Place(t, { rows });
  await place.declare();
  const refused = await place.import('--memory-max', '1');
  assert.equal(refused.code, 65);
  const figures = /the records take at least 2 MiB of memory, and 1 MiB are left: split it, or raise --memory-max/;
  assert.match(refused.err, figures);
  assert.ok(!existsSync(place.data), 'and makes no store');
  assert.equal((await place.import('--memory-max', '2')).code, 0);
});

test('an import whose indexes the memory does not hold is refused by its transaction', async (t) => {
  const rows = Array.from({ length: 5000 }, (_, n) => ({ id: n + 1, text: `row ${n}` }));
  const place = new Place(t, { rows });
  const fields = { text: { kind: 'text', unique: true } };
  writeFileSync(place.declaration, JSON.stringify({ collections: [{ name: 'rows', singular: 'row', fields }] }));
  const refused = await place.import('--memory-max', '1');
  assert.deepEqual([refused.code, refused.out], [65, '']);
  const figures = /the records would take 1\d{6} bytes of memory, and may take 1048576: .*; nothing was written$/;
  assert.match(refused.err.trim(), figures);
  assert.ok(!existsSync(place.data), 'and makes no store');
});

test('a record without an id gets none that the file gives, and keeps its place', async (t) => {
  const rows = [{ text: 'a' }, { id: 7, text: 'b' }, { id: 1, text: 'c' }, { text: 'd' }];
  const place = new Place(t, { rows });
  const declaration = { name: 'rows', id: { kind: 'any' }, fields: { text: { kind: 'text' } } };
  writeFileSync(place.declaration, JSON.stringify({ items: false, collections: [declaration] }));
  assert.equal((await place.import()).code, 0);
  const { rows: all } = JSON.parse((await place.export()).out);
  assert.deepEqual(all.map(({ id, text }: any) => [id, text]), [[2, 'a'], [7, 'b'], [1, 'c'], [9, 'd']]);
});

test('a backup that is made beside an import has all of it or nothing', async (t) => {
  const place = new Place(t, manyRows(1));
  await place.declare();
  assert.equal((await place.import()).code, 0);
  writeFileSync(place.file, JSON.stringify(manyRows(25_000)));
  let isRunning = true;
  const importing = place.import().finally(() => (isRunning = false));
  const found: number[] = [];
  for (let n = 0; isRunning; n += 1) {
    const copy = join(place.data, '..', `copy-${n}`);
    const { code, err } = await runCommand(dataCommands, ['backup', copy, '--data', place.data]);
    assert.deepEqual([code, err], [0, '']);
    const { rows } = JSON.parse((await place.run(['export', '--data', copy, '--collections', place.declaration])).out);
    found.push(rows.length);
  }
  assert.deepEqual(await importing, { code: 0, out: 'rows: 24,999 records added\n', err: '' });
  t.diagnostic(`${found.length} backups: ${found.join(', ')}`);
  assert.ok(found.length > 0 && found.every((count) => count === 1 || count === 25_000), found.join());
});

test('an id that was given is not given again to a record without one', async (t) => {
  const place = new Place(t, { rows: [{ id: 1, text: 'a' }] });
  await place.declare();
  await place.import();
  const json = parseJson(readFileSync(place.declaration, 'utf8'));
  const app = await createApp({ auth: 'none', directory: place.data, ...parseDeclarations(json, []) });
  await app.collection('rows').create({ text: 'b' });
  await app.collection('rows').remove(2);
  await app.close();
  writeFileSync(place.file, JSON.stringify({ rows: [{ text: 'c' }, { text: 'd' }] }));
  assert.equal((await place.import()).code, 0);
  assert.deepEqual(JSON.parse((await place.export()).out).rows.map(({ id }: { id: number }) => id), [1, 3, 4]);
});

test('a cluster is refused, because its data are in no directory', async (t) => {
  const place = new Place(t, blog);
  await place.declare();
  for (const words of [['import', place.file], ['export']]) {
    const given = [...words, '--collections', place.declaration];
    const cluster = { CAIRN_DATA: place.data, CAIRN_CLUSTER: 'http://127.0.0.1:1' };
    const { code, err } = await runCommand(transferCommands, given, '', cluster);
    assert.equal(code, 64);
    assert.match(err, /^Cannot (im|ex)port together with CAIRN_CLUSTER: unset it and (import into|export) a directory/);
  }
  assert.ok(!existsSync(place.data));
});

const broken: readonly [content: string, message: RegExp][] = [
  ['', /expected a value at line 1, column 1\n$/],
  ['7', /it must be an object whose members are arrays\n$/],
  ['{"a":[{}', /expected "," or "\]" at line 1, column 9\n$/],
  ['{"a":[{} {}]}', /expected "," or "\]" at line 1, column 10\n$/],
  ['{"a":[{},]}', /expected a value at line 1, column 10\n$/],
  ['{"a" [{}]}', /expected ":" at line 1, column 6\n$/],
  ['{"a":[]} x', /expected the end at line 1, column 10\n$/],
  ['{"a":[\n{"b":1,"b":2}]}', /duplicate member name at line 2, column 8\n$/],
  ['{"a":[{"b":1}],\n"a":[{"b":1}]}', /duplicate member name at line 2, column 1\n$/],
  ['{"a":[{"b":\n9007199254740993}]}', /an integer has more digits than a double holds at line 2, column 1\n$/],
  [`{"a":[{"b":${'['.repeat(200_000)}`, /nested more than 32 deep at line 1, column 41\n$/],
];
for (const [content, message] of broken) {
  test(`a file that is none is told with line and column: ${content.slice(0, 30)}`, async (t) => {
    const { code, err } = await new Place(t, content).declare();
    assert.equal(code, 65);
    assert.match(err, /^Cannot read .*db\.json: /);
    assert.match(err, message);
  });
}

test('a file that is not there is a wrong operand', async (t) => {
  const place = new Place(t, {});
  const { code, out, err } = await place.run(['declare', `${place.file}.gone`]);
  assert.deepEqual([code, out], [64, '']);
  assert.match(err, /^Cannot read .*db\.json\.gone: there is no such file\n$/);
});

test('what is no regular file is a wrong operand, and is not waited for', {
  skip: isLockedRun && 'another program makes the file',
}, async (t) => {
  const place = new Place(t, {});
  await promisify(execFile)('mkfifo', [`${place.file}.fifo`]);
  for (const words of [['declare', `${place.file}.fifo`], ['import', `${place.file}.fifo`, '--data', place.data]]) {
    const { code, err } = await place.run(words);
    assert.equal(code, 64);
    assert.match(err, /^Cannot read .*db\.json\.fifo: it is not a regular file\n$/);
  }
  const declared = await place.run(['export', '--data', place.data, '--collections', `${place.file}.fifo`]);
  assert.equal(declared.code, 64);
  assert.match(declared.err, /^Cannot use --collections ".*db\.json\.fifo": it is not a regular file\n$/);
  assert.ok(!existsSync(place.data));
});

test('what a terminal obeys is escaped wherever it is printed', async (t) => {
  const evil = '\u001b[2J\u009b31m\u0007\r\u202e\u007f';
  const place = new Place(t, { [evil]: [{ id: 1, [evil]: 'x' }, 1], posts: [{ id: 1, [evil]: { a: 1 } }], last: 1 });
  const declared = await place.declare();
  assert.equal(declared.code, 0);
  writeFileSync(place.declaration, JSON.stringify({ [evil]: 1, collections: [{ name: evil, [evil]: 1 }] }));
  const wrong = await place.import();
  assert.equal(wrong.code, 64);
  writeFileSync(place.declaration, JSON.stringify({ collections: [] }));
  const refused = await place.import();
  assert.equal(refused.code, 65);
  writeFileSync(place.declaration, JSON.stringify({ items: false, collections: [
    { name: 'posts', singular: 'post', fields: { title: { kind: 'text' } } },
  ] }));
  const mistaken = await place.import();
  const missing = await place.run(['import', `${place.file}${evil}`, '--data', place.data]);
  for (const { out, err } of [declared, wrong, refused, mistaken, missing]) {
    assert.match(out + err, /\\u001b\[2J\\u009b31m\\u0007/);
    assert.doesNotMatch(out + err, /[^\n\x20-\x7e]/);
  }
});

test('collections that no declaration covers are named by an export, a start and a check', async (t) => {
  const place = new Place(t, blog);
  await place.declare();
  await place.import();
  const whole = await place.export();
  const { collections } = JSON.parse(readFileSync(place.declaration, 'utf8'));
  const posts = collections.filter(({ name }: { name: string }) => name === 'posts');
  writeFileSync(place.declaration, JSON.stringify({ items: false, collections: posts }));
  const { code, out, err } = await place.export();
  assert.equal(code, 65);
  assert.deepEqual(JSON.parse(out), { posts: JSON.parse(whole.out).posts });
  const left = (name: string) =>
    `${name}.json: no declaration covers it, so its records are only kept; use --collections`;
  assert.deepEqual(err.trimEnd().split('\n'), ['comments', 'categories'].map((name) => `Left out: ${left(name)}`));
  const words = ['--data', place.data, '--collections', place.declaration];
  const checked = await runCommand(dataCommands, ['check', ...words]);
  for (const name of ['comments', 'categories']) assert.ok(checked.out.includes(`warning  ${left(name)}\n`));
  const warnings: string[] = [];
  const message = (level: string, text: string): void => void (level === 'warn' && warnings.push(text));
  const json = parseJson(readFileSync(place.declaration, 'utf8'));
  const log = { ...silentLog, message };
  const app = await createApp({ auth: 'none', directory: place.data, log, ...parseDeclarations(json, []) });
  await app.close();
  const kept = (name: string) => `No declaration covers ${name}: its records are only kept`;
  assert.deepEqual(warnings, [kept('comments'), kept('categories')]);
});
