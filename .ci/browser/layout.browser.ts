import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { testPage } from './visit.ts';

const names = ['invoices', 'suppliers', 'warehouses', 'shipments', 'categories', 'discounts', 'reviews', 'tickets'];
const many = names.map((name) =>
  defineCollection({ name, singular: name.slice(0, -1), fields: { title: { kind: 'text', min: 1, max: 100 } } }));
const orders = defineCollection({
  name: 'orders',
  singular: 'order',
  timestamps: true,
  fields: {
    customer: { kind: 'text', min: 1, max: 100 },
    email: { kind: 'email' },
    state: { kind: 'choice', values: ['new', 'paid'] },
    total: { kind: 'number' },
    isGift: { kind: 'boolean' },
    note: { kind: 'text', optional: true, max: 500 },
    site: { kind: 'text', optional: true, max: 500 },
    dueAt: { kind: 'timestamp', optional: true },
  },
});

/** Finds cut-off or covered texts of controls and heads, cells narrower than a word, and lists without room. */
const crampedScript = `
  const wrong = [];
  const seen = (node) => node.checkVisibility() && !node.closest('.unseen, [popover]:not(:popover-open)');
  for (const node of document.querySelectorAll('main button, main h1, main h2, main label, #bar button, .primary')) {
    if (!seen(node)) continue;
    if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0) wrong.push('cut off: ' + node.innerText);
    const box = node.getBoundingClientRect();
    if (box.left < 0 || box.right > innerWidth + 1) {
      if (!node.closest('#list')) wrong.push('outside: ' + node.innerText);
    }
  }
  for (const cell of document.querySelectorAll('#list th, #list td')) {
    if (seen(cell) && cell.innerText.length > 3 && cell.clientWidth < 40) wrong.push('narrow: ' + cell.innerText);
  }
  const list = document.querySelector('#list');
  const isSeen = list?.checkVisibility();
  if (!isSeen && !document.querySelector('#drawer, #home')) wrong.push('the list is not shown');
  if (isSeen && list.clientHeight < 100) wrong.push('the list has ' + list.clientHeight + ' px');
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) wrong.push('wider than the window by ' + wide + ' px');
  return wrong;
`;

testPage('ten collections, wide records and a drawer fit any window and zoom', {
  things: 3, collections: [orders, ...many],
}, async (visit) => {
  const { browser, server } = visit;
  const order = { customer: 'Grace Murray', email: 'grace.murray@example.org', state: 'new', total: 12_345.5 };
  await server.as('ada', 'POST', '/orders', { ...order, isGift: true, note: 'Leave it at the door and ring twice' });
  await visit.signIn('#orders');
  // 640 × 400 and 320 × 200 are what remains of 1,280 × 800 at 200 % and 400 %.
  for (const [width, height] of [[1280, 800], [1024, 768], [640, 400], [360, 740], [320, 640], [320, 200]] as const) {
    await browser.resize(width, height);
    for (const hash of ['#orders?state=new', '#orders/1', '#orders/new', '#invoices', '#/', '#/account']) {
      await visit.visit(hash);
      assert.deepEqual(await browser.run(crampedScript), [], `${hash} at ${width} × ${height}`);
    }
  }
});

testPage('the head of the table stays while a wide table scrolls, and names stand above their values', {
  things: 60,
}, async (visit) => {
  const { browser } = visit;
  await visit.signIn('#items');
  const edges = await browser.run(`
    const right = (node) => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return range.getBoundingClientRect().right;
    };
    return [document.querySelector('#sort-price'), document.querySelector('tbody tr td:last-child')].map(right);
  `);
  assert.ok(Math.abs(edges[0] - edges[1]) < 1.5, `the head ends at ${edges[0]}, the values at ${edges[1]}`);
});

testPage('Save stays within reach in a long form', {
  collections: [orders],
}, async (visit) => {
  const { browser, server, text } = visit;
  const order = {
    customer: 'Grace Murray', email: 'grace?cc=eve@example.org', state: 'paid', total: 12_345.5, isGift: true,
    site: 'https://example.org/shop', dueAt: new Date(Date.now() - 7_200_000).toISOString(),
  };
  await server.as('ada', 'POST', '/orders', order);
  await visit.signIn('#orders');
  await browser.run(`
    const columns = ['id', 'customer', 'state', 'isGift', 'note', 'email', 'site', 'dueAt', 'total'];
    localStorage['columns of orders'] = JSON.stringify(columns.map((name) => [name, 0]));
  `);
  await visit.visit('#orders?sort=id');
  await browser.resize(1280, 600);
  const cell = (label: string): Promise<string> =>
    browser.run(`
      const at = [...document.querySelectorAll('thead th')].findIndex(({ innerText }) => innerText === arguments[0]);
      return document.querySelector('tbody tr').children[at + 1].innerHTML;
    `, label);
  assert.match(await cell('State'), /class="pill hue hue5">paid</);
  assert.match(await cell('Is gift'), /role="switch" aria-label="Is gift: Grace Murray"/);
  assert.match(await cell('Note'), /class="quiet">–</);
  assert.match(await cell('Email'), /href="mailto:grace%3Fcc=eve@example\.org"/);
  assert.match(await cell('Site'), /href="https:\/\/example\.org\/shop" target="_blank" rel="noopener"/);
  assert.match(await cell('Due at'), /<time datetime="[^"]+" title="\d{4}-[^"]*">[^<]*\d{4}/);
  assert.match(await cell('Total'), /12,345\.5/);
  await browser.click('#open-1');
  await browser.until('return document.querySelector(".record")');
  assert.equal(await text('#record-title'), 'Grace Murray');
  assert.equal(await text('#record-kind'), 'Order 1');
  await visit.fill('note', 'Changed');
  await browser.until('return document.querySelector(".record .primary")');
  const inReach = `
    const box = document.querySelector('.record .primary').getBoundingClientRect();
    return document.elementFromPoint(box.x + 5, box.y + 5).closest('.primary') !== null && box.bottom <= innerHeight;
  `;
  assert.equal(await browser.run(inReach), true);
  await browser.run('document.querySelector("#drawer").scrollTop = 1e6');
  assert.equal(await browser.run(inReach), true);
});

testPage('the foot of a list takes one line of a phone', { things: 1300 }, async ({ browser, signIn }) => {
  await signIn('#items?offset=650');
  const height = 'return document.querySelector(".footer").offsetHeight';
  for (const width of [1280, 768, 375, 320]) {
    await browser.resize(width, 740);
    assert.ok(await browser.run(height) < 64, `at ${width} px`);
  }
});
