import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { keys, testPage } from './visit.ts';
import { createApp } from '../../test/support/inside.ts';

const authors = defineCollection({
  name: 'authors',
  singular: 'author',
  fields: {
    name: { kind: 'text', min: 1, unique: true },
    mentorId: { kind: 'reference', to: 'authors', optional: true },
  },
});
const books = defineCollection({
  name: 'books',
  singular: 'book',
  timestamps: true,
  fields: {
    title: { kind: 'text', min: 1, max: 200 },
    authorId: { kind: 'reference', to: 'authors', onDelete: 'remove' },
    itemIds: { kind: 'list', of: { kind: 'reference', to: 'items', onDelete: 'clear' }, optional: true },
    place: { kind: 'object', fields: { shelf: { kind: 'integer', min: 1 } }, optional: true },
  },
  access: { create: 'admin' },
});

testPage('the schema is a picture of collections, with lines that say what removal does', {
  collections: [authors, books], roles: ['clerk'],
}, async (visit) => {
  const { browser, shows, server } = visit;
  await visit.signIn('#/schema');
  const drawn: string = await browser.until('return document.querySelector(".schema")?.textContent');
  assert.ok(drawn.includes('name *text · unique'), drawn);
  const classes = 'return [...document.querySelectorAll(".schema path")].map((at) => at.getAttribute("class"))';
  assert.deepEqual(await browser.run(classes), ['refuse', 'remove', 'clear']);
  const rows = 'return [...document.querySelectorAll("#home tbody tr")].map((at) => at.innerText)';
  assert.deepEqual(await browser.run(rows), [
    'Authors: Mentor\tAuthors\tis refused', 'Books: Author\tAuthors\tremoves this, too',
    'Books: Items\tItems\tclears the field',
  ]);
  // Cards do not overlap, and a referring card follows the one it refers to.
  const boxes: number[][] = await browser.run(`
    return [...document.querySelectorAll('.schema rect')].map((at) => at.getBoundingClientRect())
      .map(({ left, top, right, bottom }) => [left, top, right, bottom]);
  `);
  assert.equal(boxes.length, 4);
  for (const [one, a] of boxes.entries()) {
    for (const b of boxes.slice(one + 1)) {
      assert.ok(a[2]! <= b[0]! || b[2]! <= a[0]! || a[3]! <= b[1]! || b[3]! <= a[1]!);
    }
  }
  // The focused card's neighbours are highlighted, and Enter opens its collection.
  await browser.run('document.querySelector(".schema a[href=\'#books\']").focus()');
  await browser.until('return document.querySelectorAll(".schema a.lit").length === 3');
  assert.equal(await browser.run('return document.querySelectorAll(".schema path.lit").length'), 2);
  await browser.press(keys.enter);
  await shows('There are no books yet', '#list');

  // The copied text declares the same collections.
  await visit.visit('#/schema');
  const permissions = ['clipboardReadWrite', 'clipboardSanitizedWrite'];
  await browser.devtools('Browser.grantPermissions', { origin: server.url, permissions });
  await browser.click('#home button');
  await visit.says('Copied.');
  const { collections, ...others } = JSON.parse(await browser.run('return navigator.clipboard.readText()'));
  assert.deepEqual(others, { roles: ['clerk'] });
  const app = await createApp({ scryptCost: 1, collections: collections.map(defineCollection) });
  visit.t.after(() => app.close());
  const { 'x-collections': described } = JSON.parse((await app.inject({ target: '/openapi.json' })).body);
  const again = described.flatMap(({ builtIn, lists, ...collection }: any) => (builtIn ? [] : [collection]));
  assert.deepEqual(again, collections);
  assert.deepEqual(again.map(({ name }: { name: string }) => name), ['authors', 'books']);
});

testPage('what is copied leaves items and users out where the server has none', {
  collections: [authors], items: false, users: false, auth: 'none',
}, async (visit) => {
  const { browser, server } = visit;
  await browser.open(`${server.url}/#/schema`);
  await browser.until('return document.querySelector("#home button")');
  const permissions = ['clipboardReadWrite', 'clipboardSanitizedWrite'];
  await browser.devtools('Browser.grantPermissions', { origin: server.url, permissions });
  await browser.click('#home button');
  await visit.says('Copied.');
  const { collections, ...others } = JSON.parse(await browser.run('return navigator.clipboard.readText()'));
  assert.deepEqual(others, { items: false, users: false });
});
