import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { testPage } from './visit.ts';

const settings = defineCollection({
  name: 'settings',
  single: true,
  singular: 'setting',
  fields: {
    shop: { kind: 'text', min: 1 },
    rate: { kind: 'number', default: 0.2 },
    notice: { kind: 'text', optional: true },
  },
  access: { patch: 'user' },
});
const motto = defineCollection({ name: 'motto', single: true, value: { kind: 'text', min: 1, max: 20 } });
const limits = defineCollection({
  name: 'limits', single: true, value: { kind: 'json' }, access: { read: 'user', replace: 'user' },
});
const collections = [settings, motto, limits];

testPage('a single resource is set, read and changed at its own address', {
  collections, refusals: [404, 412, 422],
}, async (visit) => {
  const { browser, server, fill, says, shows, text, value } = visit;
  await visit.signIn();
  await visit.visit('#settings');
  await shows('No settings yet.', '#drawer');
  assert.equal(await visit.hash(), '#settings/value');
  assert.equal(await text('#record-title'), 'Settings');
  assert.equal(await browser.run('return document.querySelector("#records")'), null);
  assert.equal(await value('rate'), '0.2');
  await browser.click('.record .primary');
  await shows('Shop must be filled in.', '#drawer');
  await fill('shop', 'Mine');
  assert.equal(await text('.record .primary'), 'Save');
  // Someone else sets it first: nothing is overwritten unseen.
  await server.as('ada', 'PUT', '/settings', { shop: 'Theirs', notice: 'Closed' });
  await browser.click('.record .primary');
  await shows('Theirs', '.dispute');
  assert.equal(await value('notice'), 'Closed');
  await browser.click('.dispute button');
  await browser.click('.record .primary');
  await says('Saved settings.');
  assert.deepEqual((await server.as('ada', 'GET', '/settings')).data, { shop: 'Mine', rate: 0.2, notice: 'Closed' });
  await fill('rate', '0.3');
  await visit.visit('#items');
  await shows('What you typed for settings is not saved.', '#leave');
  await browser.click('#leave [value=save]');
  await browser.until('return location.hash === "#items"');
  assert.equal((await server.as('ada', 'GET', '/settings')).data.rate, 0.3);
  assert.deepEqual(server.requests.filter((line) => line.includes('/settings?')), [], 'it is no list');
});

testPage('a single resource that is one value has one control, and is replaced as a whole', {
  collections, refusals: [404],
}, async (visit) => {
  const { browser, server, fill, says, shows, value } = visit;
  await visit.signIn();
  await browser.click('#views a[href="#motto"]');
  await shows('No motto yet.', '#drawer');
  await fill('value', 'Ad astra');
  await browser.click('.record .primary');
  await says('Created motto.');
  assert.equal((await server.as('ada', 'GET', '/motto')).data, 'Ad astra');
  assert.equal(await value('value'), 'Ad astra');
  await fill('value', 'Per aspera');
  await browser.click('.record .primary');
  await says('Saved motto.');
  assert.equal((await server.as('ada', 'GET', '/motto')).data, 'Per aspera');
  // A member removed from an object is gone, unlike after a patch.
  await server.as('ada', 'PUT', '/limits', { a: 1, b: 2 });
  await visit.visit('#limits');
  await fill('value', '{"b": 3}');
  await browser.click('.record .primary');
  await says('Saved limits.');
  assert.deepEqual((await server.as('ada', 'GET', '/limits')).data, { b: 3 });
});

testPage('a person who may not set a single resource sees who may', {
  collections, hasFeed: true, refusals: [404],
}, async (visit) => {
  const { browser, server, shows } = visit;
  await visit.signIn('#motto/value', 'grace');
  await shows('Only administrators can set this.', '#drawer');
  assert.equal(await browser.run('return document.querySelectorAll("#drawer :is(input, .primary)").length'), 0);
  await browser.until('return performance.getEntriesByType("resource").some(({ name }) => name.includes("feed.js"))');
  await server.as('ada', 'PUT', '/motto', 'Ad astra');
  await shows('Ad astra', '#drawer dd');
  await shows('Only administrators can change this.', '#drawer');
  await visit.visit('#/');
  await shows('Motto created', '#home');
  await browser.click('#home section a[href="#motto/value"]');
  await shows('Ad astra', '#drawer dd');
});
