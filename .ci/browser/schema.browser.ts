import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { keys, testPage } from './visit.ts';

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

testPage('the schema is a picture of collections whose lines show the effect of a removal', {
  collections: [authors, books], roles: ['clerk'],
}, async (visit) => {
  const { browser, shows } = visit;
  await visit.signIn('#/schema');
  const drawn: string = await browser.until('return document.querySelector(".schema")?.textContent');
  assert.ok(drawn.includes('name *text · unique'), drawn);
  const classes = 'return [...document.querySelectorAll(".schema path")].map((at) => at.getAttribute("class"))';
  assert.deepEqual(await browser.run(classes), ['refuse', 'remove', 'clear']);
  for (const words of ['mentorId→ authors · refuse', 'authorId *→ authors · remove', 'itemIds→ items list · clear'])
    assert.ok(drawn.includes(words), drawn);
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
  // Enter on a card opens its documentation.
  await browser.run('document.querySelector(".schema a[href=\'#/api/books\']").focus()');
  await browser.press(keys.enter);
  await shows('Books: API', '#home');
});

testPage('the picture has what is stored of users, not what only a change takes', {}, async (visit) => {
  await visit.signIn('#/schema');
  await visit.browser.until('return document.querySelector("svg.schema")');
  const drawn = await visit.browser.run('return document.querySelector("svg.schema").textContent');
  assert.match(drawn, /email/);
  assert.doesNotMatch(drawn, /currentPassword|keepKeys/);
});
