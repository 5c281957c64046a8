import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { crc32 } from 'node:zlib';

import { allCommands } from '../../src/cli/commands.ts';
import type { CollectionDefinition } from '../../src/collections/declaration.ts';
import { declareCollection } from '../../src/collections/define.ts';
import type { Field, Shape } from '../../src/schema/field.ts';
import { runCommand } from '../support/cli/terminal.ts';
import { isAppend, isRefusal, startEtcd, startNode } from '../support/cluster/nodes.ts';
import type { SmallEtcd } from '../support/cluster/small-etcd.ts';
import { createApp, type App } from '../support/inside.ts';
import { waitUntil } from '../support/basics.ts';

type Collections = Readonly<Record<string, Shape>>;

const text = { kind: 'text' } as const;
const optional = { ...text, optional: true } as const;

type Server = App & { readonly failures: unknown[] };

/** A server of the cluster that declares these collections. */
async function startServer(
  t: TestContext, etcd: SmallEtcd, collections: Collections, additional = false,
): Promise<Server> {
  const failures: unknown[] = [];
  const app = await createApp({
    cluster: { members: etcd.addresses }, auth: 'none', items: false,
    collections: Object.entries(collections).map(([name, fields]) =>
      declareCollection({ name, singular: name.slice(0, -1), fields, additional })),
    onFailure: (error) => void failures.push(error),
  });
  t.after(() => app.close());
  return Object.assign(app, { failures });
}

async function ask(app: App, method: string, target: string, sent?: object) {
  const fields = { 'content-type': 'application/json' };
  const body = sent && JSON.stringify(sent);
  await app.store.confirm();
  const reply = await app.inject({ method, target, fields, ...(body !== undefined && { body }) });
  const answer: unknown = reply.body === '' ? undefined : JSON.parse(reply.body);
  return { status: reply.status, body: answer };
}

const declarationIn = (etcd: SmallEtcd): unknown => JSON.parse(etcd.get('cairn/declaration') ?? 'null');

test('optional fields and fields with a default can be added while nodes run, without loss on any node', async (t) => {
  const etcd = await startEtcd(t);
  const former = { title: text };
  const state = { kind: 'choice', values: ['new', 'read'], default: 'new' } as const;
  const next = { title: text, note: optional, state };
  const old = await startServer(t, etcd, { books: former });
  assert.equal((await ask(old, 'POST', '/books', { title: 'Emma' })).status, 201);
  const fresh = await startServer(t, etcd, { books: next });
  assert.deepEqual((await ask(fresh, 'GET', '/books/1')).body, { id: 1, title: 'Emma', state: 'new' });
  await ask(fresh, 'PATCH', '/books/1', { note: 'by Austen', state: 'read' });

  const patched = await ask(old, 'PATCH', '/books/1', { title: 'EMMA' });
  assert.deepEqual(patched, { status: 200, body: { id: 1, title: 'EMMA' } });
  assert.equal((await ask(old, 'PUT', '/books/1', { title: 'Emma' })).status, 200);
  assert.equal((await ask(old, 'POST', '/books', { title: 'Sanditon' })).status, 201);
  const expected = [
    { id: 1, title: 'Emma', note: 'by Austen', state: 'read' }, { id: 2, title: 'Sanditon', state: 'new' },
  ];
  assert.deepEqual((await ask(fresh, 'GET', '/books')).body, expected);
  assert.equal((await ask(old, 'PATCH', '/books/1', { note: 'x' })).status, 422, 'it has no such field yet');
  await old.store.checkpoint();
  assert.deepEqual([old.failures, fresh.failures], [[], []]);

  // Back and forth again: a node starts from the snapshot of the previous declaration.
  await old.close();
  const back = await startServer(t, etcd, { books: former });
  assert.equal((await ask(back, 'PUT', '/books/1', { title: 'Emma II' })).status, 200);
  const last = await startServer(t, etcd, { books: next });
  assert.deepEqual((await ask(last, 'GET', '/books/1')).body, { ...expected[0], title: 'Emma II' });
});

test('page hints and `set` can change while nodes run', async (t) => {
  const etcd = await startEtcd(t);
  await startServer(t, etcd, { books: { state, note: optional } });
  const before = declarationIn(etcd);
  const colors = { new: 'green' } as const;
  const note = { ...optional, label: 'What readers say', set: ['admin'] } as const;
  await startServer(t, etcd, { books: { state: { ...state, label: 'State', colors }, note } });
  assert.deepEqual(declarationIn(etcd), before);
});

test('a collection can be added while nodes run', async (t) => {
  const etcd = await startEtcd(t);
  const old = await startServer(t, etcd, { books: { title: text } });
  const shelves = { name: text, places: { kind: 'integer' } } as const;
  const fresh = await startServer(t, etcd, { books: { title: text }, shelves });
  assert.equal((await ask(fresh, 'POST', '/shelves', { name: 'A', places: 40 })).status, 201);
  assert.equal((await ask(old, 'POST', '/books', { title: 'Emma' })).status, 201);
  assert.equal((await ask(old, 'GET', '/shelves')).status, 404);
  await old.store.checkpoint();
  await startServer(t, etcd, { books: { title: text } });
  assert.deepEqual((await ask(fresh, 'GET', '/shelves')).body, [{ id: 1, name: 'A', places: 40 }]);
  assert.deepEqual(Object.keys(declarationIn(etcd) as object),
    ['books.id', 'books.title', 'shelves.id', 'shelves.name', 'shelves.places']);
});

test('records are removed with their owner on all nodes', async (t) => {
  const etcd = await startEtcd(t);
  const start = (ownerRemoved: 'keep' | 'remove'): Promise<App> => {
    const collections = [declareCollection({ name: 'books', fields: { title: text }, ownerRemoved })];
    return createApp({ cluster: { members: etcd.addresses }, auth: 'none', items: false, collections });
  };
  const node = await start('remove');
  t.after(() => node.close());
  await assert.rejects(start('keep'), isRefusal(78, /books\.ownerId is nothing to this node/));
});

test('D1: a field is refused if other nodes treat it as an additional member', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startServer(t, etcd, { books: { title: text, pages } }, true);
  const start = (fields: Shape) => startServer(t, etcd, { books: fields }, true);
  await assert.rejects(start({ title: text, pages, note: optional }), isRefusal(78, /books\.note .*\[D1\]/));
  await assert.rejects(start({ title: text }), isRefusal(78, /books\.pages .*\[D1\]/));
  const sent = { title: 'Emma', pages: 474, note: 5 };
  assert.equal((await ask(node, 'POST', '/books', sent)).status, 201);
  assert.deepEqual((await ask(await start({ title: text, pages }), 'GET', '/books/1')).body, { id: 1, ...sent });
  assert.deepEqual(node.failures, []);
});

test('a single resource cannot be a collection or another value on another node', async (t) => {
  const etcd = await startEtcd(t);
  const start = async (definition: Omit<CollectionDefinition, 'name'>): Promise<void> => {
    const collections = [declareCollection({ name: 'settings', ...definition })];
    const app = await createApp({ cluster: { members: etcd.addresses }, auth: 'none', items: false, collections });
    t.after(() => app.close());
  };
  const fields = { theme: text, note: optional };
  await start({ single: true, fields });
  await start({ single: true, fields: { theme: { ...text, max: 9 } } });
  for (const [other, place] of [
    [{ fields }, /settings\.id is .*"integer".* to this node, and .*"single"/],
    [{ single: true, value: { kind: 'json' } }, /settings\.(?:theme|\.value) is nothing to /],
    [{ single: true, fields: { ...fields, size: { kind: 'integer' } } }, /settings\.size/],
    [{ single: true, fields: { ...fields, note: { ...optional, nullable: true } } }, /settings\.note/],
  ] satisfies [Omit<CollectionDefinition, 'name'>, RegExp][])
    await assert.rejects(start(other), isRefusal(78, place));
});

test('the first node that starts completes the declaration of an earlier version', async (t) => {
  const etcd = await startEtcd(t);
  const shapes = { shelves: { names: { kind: 'list', of: text }, size, state } } as const;
  const node = await startServer(t, etcd, shapes);
  await node.close();
  const complete = etcd.get('cairn/declaration') ?? '';
  const former = JSON.stringify({
    'shelves.id': { kind: 'integer', required: true },
    'shelves.names': { kind: 'list', of: { kind: 'text' }, required: true },
    'shelves.size': { kind: 'object', required: false },
    'shelves.state': { kind: 'choice', values: ['new'], required: false },
  });
  const digest = crc32(former).toString(16).padStart(8, '0');
  etcd.put('cairn/declaration', former);
  etcd.put('cairn/meta', (etcd.get('cairn/meta') ?? '').replace(/\w+"}$/, `${digest}"}`));
  const other = { shelves: { ...shapes.shelves, names: { kind: 'list', of: integer } } } as const;
  await assert.rejects(startServer(t, etcd, other), isRefusal(78, /shelves\.names/));
  await startServer(t, etcd, shapes);
  assert.equal(etcd.get('cairn/declaration'), complete);
});

test('clearing a reference keeps fields that the node does not know', async (t) => {
  const etcd = await startEtcd(t);
  const authorId = { kind: 'reference', to: 'authors', optional: true, onDelete: 'clear' } as const;
  const former = { authors: { name: text }, books: { title: text, authorId } };
  const old = await startServer(t, etcd, former);
  const fresh = await startServer(t, etcd, { ...former, books: { ...former.books, note: optional } });
  await ask(fresh, 'POST', '/authors', { name: 'Austen' });
  await ask(fresh, 'POST', '/books', { title: 'Emma', authorId: 1, note: 'kept' });
  assert.equal((await ask(old, 'DELETE', '/authors/1')).status, 204);
  assert.deepEqual((await ask(fresh, 'GET', '/books/1')).body, { id: 1, title: 'Emma', note: 'kept' });
});

const pages = { kind: 'integer', optional: true } as const;
const state = { kind: 'choice', values: ['new'], default: 'new' } as const;
const integer = { kind: 'integer' } as const;
const sized = { kind: 'object', fields: { width: integer } } as const;
const size = { ...sized, optional: true } as const;
const deeper = (fields: Shape) => ({ ...size, fields: { ...size.fields, ...fields } });
const sizesOf = (of: Field) => ({ kind: 'list', of: { kind: 'list', of }, optional: true }) as const;
const sizes = sizesOf(sized);
const books = { title: text, pages, state, size, sizes };
const toAuthor = { kind: 'reference', to: 'authors' } as const;
const authors = { name: text };
const running: Collections = { authors, books };

for (const [what, collections, place] of [
  ['a new field that is required', { authors, books: { ...books, isbn: text } }, /books\.isbn .*"required":true/],
  ['a field that becomes required', { authors, books: { ...books, pages: { kind: 'integer' } } }, /books\.pages/],
  ['a required field that becomes optional', { authors, books: { ...books, title: optional } }, /books\.title/],
  ['a required field that is left out', { authors, books: { pages } }, /books\.title is nothing to this node/],
  ['another kind', { authors, books: { ...books, pages: optional } }, /books\.pages .*"text".*"integer"/],
  ['another choice', { authors, books: { ...books, state: { ...state, values: ['new', 'read'] } } }, /books\.state/],
  ['a field that becomes unique', { authors, books: { ...books, title: { ...text, unique: true } } }, /books\.title/],
  ['null as a value', { authors, books: { ...books, title: { ...text, nullable: true } } }, /books\.title/],
  ['another default', { authors, books: { ...books, pages: { kind: 'integer', default: 1 } } }, /books\.pages/],
  ['a new field within an object',
    { authors, books: { ...books, size: deeper({ height: integer }) } }, /books\.size/],
  ['one of another kind there', { authors, books: { ...books, size: deeper({ width: text }) } }, /books\.size/],
  ['one that may be absent there',
    { authors, books: { ...books, size: deeper({ width: pages }) } }, /books\.size/],
  ['an object that takes others, too', { authors, books: { ...books, size: { ...size, additional: true } } }, /\.size/],
  ['the same in lists of lists',
    { authors, books: { ...books, sizes: sizesOf({ ...sized, fields: { width: text } }) } }, /books\.sizes/],
  ['a new name',
    { authors, books: { title: text, state, leaves: { ...pages, renamedFrom: 'pages' } } }, /books\.leaves/],
  ['a new reference to a collection that other nodes have',
    { authors, books: { ...books, authorId: { ...toAuthor, optional: true } } }, /books\.authorId/],
  ['the same in a list',
    { authors, books: { ...books, authorIds: { kind: 'list', of: toAuthor, optional: true } } }, /books\.authorIds/],
  ['a new collection that refers to one that other nodes have',
    { ...running, shelves: { bookId: { kind: 'reference', to: 'books' } } }, /shelves\.bookId/],
  ['a new collection that refers to users, whom every node removes',
    { ...running, shelves: { userId: { kind: 'reference', to: 'users', onDelete: 'remove', optional: true } } },
    /shelves\.userId/],
] satisfies [string, Collections, RegExp][]) {
  test(`D1: ${what} is refused, and other nodes continue`, async (t) => {
    const etcd = await startEtcd(t);
    const node = await startServer(t, etcd, running);
    const { revision } = etcd;
    await assert.rejects(startServer(t, etcd, collections), (error) =>
      isRefusal(78, place)(error) && isRefusal(78, /\[D1\]; .*"cairn cluster new-epoch"/)(error));
    assert.equal(etcd.revision, revision, 'nothing was written');
    assert.equal((await ask(node, 'POST', '/books', { title: 'Emma' })).status, 201);
    assert.deepEqual(node.failures, []);
  });
}

test('D0: new bounds, another order and a missing field are compatible', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startServer(t, etcd, running);
  await startServer(t, etcd, {
    books: { state, title: { ...text, max: 10 }, size: deeper({ width: { ...integer, min: 1 } }) },
    authors,
  });
  await node.store.confirm();
  assert.deepEqual(node.failures, []);
});

test('D0: a reference between new collections is compatible', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startServer(t, etcd, running);
  const shelves = { name: text };
  await startServer(t, etcd, { ...running, shelves, boards: { shelfId: { kind: 'reference', to: 'shelves' } } });
  await node.store.confirm();
  assert.deepEqual(node.failures, []);
});

const newEpoch = async (etcd: SmallEtcd): Promise<void> => {
  const environment = { CAIRN_CLUSTER: etcd.addresses.join() };
  const outcome = await runCommand(await allCommands(), ['cluster', 'new-epoch'], '', environment);
  assert.deepEqual([outcome.code, outcome.err], [0, '']);
};

test('a change that needs all nodes stopped succeeds after the stop if all records fit', async (t) => {
  const etcd = await startEtcd(t);
  const old = await startServer(t, etcd, { books: { title: text, pages } });
  await ask(old, 'POST', '/books', { title: 'Emma', pages: 474 });
  await ask(old, 'POST', '/books', { title: 'Sanditon' });
  await old.close();
  await newEpoch(etcd);
  const required = { books: { title: text, pages: { kind: 'integer' } } } as const;
  const { revision } = etcd;
  const refused = isRefusal(78,
    /declared collections: record 2 of books has no "pages".*\[D1\]; .*change the records that do not fit, stop all/);
  await assert.rejects(startServer(t, etcd, required), refused);
  assert.equal(etcd.revision, revision, 'nothing was written');
  const again = await startServer(t, etcd, { books: { title: text, pages } });
  await ask(again, 'PATCH', '/books/2', { pages: 90 });
  await assert.rejects(startServer(t, etcd, required), isRefusal(78, /books\.pages/));
  await again.close();
  await newEpoch(etcd);
  const fresh = await startServer(t, etcd, required);
  assert.equal((await ask(fresh, 'POST', '/books', { title: 'Persuasion' })).status, 422);
});

test('a write is decided again if another node declared a field meanwhile', async (t) => {
  const etcd = await startEtcd(t);
  const old = await startServer(t, etcd, { books: { title: text } });
  await ask(old, 'POST', '/books', { title: 'Emma' });
  let appends = 0;
  etcd.onRequest = (request) => {
    if (!isAppend(request)) return undefined;
    appends += 1;
    // As another node does that starts now.
    if (appends === 1) etcd.put('cairn/meta', (etcd.get('cairn/meta') ?? '').replace(/\w+"}$/, '0badcafe"}'));
    return undefined;
  };
  const { status, body } = await ask(old, 'PATCH', '/books/1', { title: 'EMMA' });
  assert.deepEqual([status, body, appends], [200, { id: 1, title: 'EMMA' }, 2]);
  assert.deepEqual(old.failures, []);
});

test('a node without new declarations writes nothing when it starts', async (t) => {
  const etcd = await startEtcd(t);
  await startServer(t, etcd, running);
  const { revision } = etcd;
  await startServer(t, etcd, running);
  assert.equal(etcd.revision, revision);
});

test('a command for users declares nothing', async (t) => {
  const etcd = await startEtcd(t);
  await startServer(t, etcd, running);
  const { revision } = etcd;
  const environment = { CAIRN_CLUSTER: etcd.addresses.join() };
  assert.equal((await runCommand(await allCommands(), ['user', 'list'], '', environment)).code, 0);
  assert.equal(etcd.revision, revision);
});

test('a record that does not match the declaration ends a node with one line', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startServer(t, etcd, { things: { size: { kind: 'integer' } } });
  const stranger = await startNode(t, etcd.addresses, { creates: false });
  await stranger.add('a');
  await waitUntil(() => node.failures.length === 1);
  assert.ok(isRefusal(78, /record 1 of things has no "size".*\[D1\]/)(node.failures[0]));
});

test('a declaration that was edited by hand is refused', async (t) => {
  const etcd = await startEtcd(t);
  await startServer(t, etcd, running);
  etcd.put('cairn/declaration', '{}');
  await assert.rejects(startServer(t, etcd, running), isRefusal(78, /declaration was changed.*restore a backup/));
});
