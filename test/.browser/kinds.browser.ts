import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { keys, visitTest } from './visit.ts';

const reviews = defineCollection({
  name: 'reviews',
  singular: 'review',
  fields: {
    title: { kind: 'text', min: 1, max: 100 },
    body: { kind: 'text', multiline: true, max: 5000, optional: true },
    tags: { kind: 'list', of: { kind: 'text', max: 10 }, optional: true },
    itemId: { kind: 'reference', to: 'items', optional: true },
  },
});

visitTest('references are chosen by searching and shown as links, lists as chips, long texts in a box', {
  things: 3, collections: [reviews], refusals: [422],
}, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  await server.as('ada', 'POST', '/items', { name: 'Desk lamp', price: 5 });
  await visit.signIn('#reviews/new');
  await fill('title', 'Bright');
  await fill('body', `First line${keys.enter}second line`);
  await fill('tags', `red${keys.enter}far too long a tag`);
  await fill('itemId', 'desk');
  await browser.until('return document.querySelector("datalist option")?.innerText === "Desk lamp"');
  assert.equal(await browser.run('return document.querySelector("datalist option").value'), '4');
  await fill('itemId', '4');
  await browser.until('return document.querySelector("a[href=\'#items/4\']")?.innerText === "Desk lamp"');
  await browser.click('.record .primary');
  await shows('Tags must', '.record');
  await fill('tags', `red${keys.enter}blue`);
  await browser.click('.record .primary');
  await says('Created review 1.');
  const stored = { id: 1, title: 'Bright', body: 'First line\nsecond line', tags: ['red', 'blue'], itemId: 4 };
  assert.deepEqual((await server.as('ada', 'GET', '/reviews/1')).data, stored);
  await visit.visit('#reviews');
  await browser.until('return document.querySelector("#list td a[href=\'#items/4\']")?.innerText === "Desk lamp"');
  const chips = 'return [...document.querySelectorAll("#list .pill")].map((at) => at.innerText)';
  assert.deepEqual(await browser.run(chips), ['red', 'blue']);
  // A change of one field leaves line feeds and lists as they are.
  await visit.visit('#reviews/1');
  await fill('title', 'Very bright');
  await browser.click('.record .primary');
  await says('Saved review 1.');
  assert.deepEqual((await server.as('ada', 'GET', '/reviews/1')).data, { ...stored, title: 'Very bright' });
  await browser.click('#list td a');
  await shows('Desk lamp', '#record-title');
});
