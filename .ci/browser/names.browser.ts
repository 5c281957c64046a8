/** The names of records that others refer to, and finding records by them. */
import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { keys, testPage, type Visit } from './visit.ts';

const access = { replace: 'user', patch: 'user', remove: 'user' } as const;
const collections = [
  defineCollection({ name: 'customers', singular: 'customer', fields: { name: { kind: 'text', min: 1 } }, access }),
  defineCollection({
    name: 'orders', singular: 'order', display: 'Order {id} of {customerId}',
    fields: {
      customerId: { kind: 'reference', to: 'customers' },
      placedAt: { kind: 'timestamp' },
      note: { kind: 'text', default: '' },
    },
    access,
  }),
  defineCollection({
    name: 'lines', singular: 'line', display: '{quantity} in {orderId}',
    fields: { orderId: { kind: 'reference', to: 'orders' }, quantity: { kind: 'integer' } },
    access,
  }),
];

/** Grace Müller, with the orders 1 and 2; order 2 has a line. */
async function fill({ server: { as } }: Visit): Promise<void> {
  await as('ada', 'POST', '/customers/batch', ['Alan Bauer', 'Grace Müller'].map((name) => ({ name })));
  const order = { customerId: 2, placedAt: '2026-01-02T03:04:05.000Z' };
  await as('ada', 'POST', '/orders/batch', [order, order]);
  await as('ada', 'POST', '/lines', { orderId: 2, quantity: 3 });
}

testPage('a renamed record has its new name where others refer to it', { collections }, async (visit) => {
  const { browser, says, shows } = visit;
  await fill(visit);
  await visit.signIn('#orders');
  await shows('Order 1 of Grace Müller', '#list');
  await visit.visit('#customers/2');
  await visit.fill('name', 'Grace Hopper');
  await browser.press(keys.enter, keys.control);
  await says('Saved customer 2.');
  await visit.visit('#orders');
  await shows('Order 1 of Grace Hopper', '#list');
  assert.equal(await browser.run('return document.querySelector("#list").innerText.includes("Müller")'), false);
});

testPage('a record that someone else renames has its new name in the open list', {
  collections, hasFeed: true,
}, async (visit) => {
  await fill(visit);
  await visit.signIn('#orders');
  await visit.shows('Order 1 of Grace Müller', '#list');
  await visit.server.as('ada', 'PATCH', '/customers/2', { name: 'Grace Hopper' });
  await visit.shows('Order 1 of Grace Hopper', '#list');
});

testPage('a reference that is edited in a list shows suggestions', { collections }, async (visit) => {
  const { browser, says } = visit;
  await fill(visit);
  await visit.signIn('#orders?sort=id');
  await browser.until(`
    const at = document.querySelector('#list td.reference');
    at?.dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
    return at;
  `);
  await browser.until('return document.querySelector("#editor")');
  await browser.type('#editor', 'Alan');
  await browser.until('return document.querySelector("#editor-0")?.innerText.includes("Alan Bauer")');
  await browser.press(keys.enter);
  await says('Saved');
  assert.equal((await visit.server.as('ada', 'GET', '/orders/1')).data.customerId, 1);
});

testPage('Tab and Ctrl+Enter take the highlighted suggestion', { collections }, async (visit) => {
  const { browser, says, value } = visit;
  const found = 'return document.querySelector("[role=option]")?.innerText.includes("Grace Müller")';
  await fill(visit);
  await visit.signIn('#orders/1');
  await visit.fill('customerId', 'Alan B');
  await browser.until('return document.querySelector("[role=option]")?.innerText.includes("Alan Bauer")');
  await browser.press(keys.tab);
  await browser.until('return document.querySelector("#field-customerId").value === "Alan Bauer"');
  await visit.fill('note', 'Call first');
  await visit.fill('customerId', 'Grace M');
  await browser.until(found);
  await browser.press(keys.enter, keys.control);
  await says('Saved order 1.');
  assert.equal(await value('customerId'), 'Grace Müller');
});

testPage('a name shows the names of nested references', { collections }, async (visit) => {
  await fill(visit);
  await visit.signIn('#lines');
  await visit.shows('3 in Order 2 of Grace Müller', '#list');
});

testPage('a required time of a new record starts with now', { collections }, async (visit) => {
  const { browser, server, value } = visit;
  await fill(visit);
  const before = Date.now() - 60_000;
  await visit.signIn('#orders/new?customerId=2');
  assert.notEqual(await value('placedAt'), '');
  await browser.press(keys.enter, keys.control);
  await visit.says('Created order 3.');
  const { data } = await server.as('ada', 'GET', '/orders/3');
  assert.ok(Date.parse(data.placedAt) >= before);
});

testPage('a picture that cannot be loaded is shown as absent', {
  collections: [defineCollection({
    name: 'photos', singular: 'photo',
    fields: { title: { kind: 'text' }, picture: { kind: 'url', format: 'image' } },
  })],
  isNoisy: true,
}, async (visit) => {
  await visit.server.as('ada', 'POST', '/photos', { title: 'Gone', picture: `${visit.server.url}/none.png` });
  await visit.signIn('#photos');
  await visit.browser.until('return document.querySelector("#list td:last-child").innerText === "–"');
});

testPage('a search for an id offers its record', { collections }, async (visit) => {
  await fill(visit);
  await visit.signIn('#orders?q=2');
  await visit.shows('Order 2 of Grace Müller', '#records > p');
  await visit.browser.click('#records > p a');
  await visit.shows('Order 2 of Grace Müller', '#record-title');
});
