import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { keys, testPage, type Visit } from './visit.ts';

const access = { replace: 'user', patch: 'user', remove: 'user' } as const;
const collections = [
  defineCollection({ name: 'customers', singular: 'customer', fields: { name: { kind: 'text' } }, access }),
  defineCollection({
    name: 'orders', singular: 'order', timestamps: true, display: 'Order {number}',
    fields: {
      number: { kind: 'text' },
      customerId: { kind: 'reference', to: 'customers' },
      state: { kind: 'choice', values: ['new', 'paid', 'sent'] },
      total: { kind: 'number' },
      note: { kind: 'text', optional: true },
      tags: { kind: 'list', of: { kind: 'text' }, optional: true },
      address: { kind: 'object', fields: { city: { kind: 'text' } } },
    },
    access,
  }),
];

/** Twelve orders of two customers: totals of 10 to 120, states in turn, a note in each fourth. */
async function fill({ server }: Visit): Promise<void> {
  await server.as('ada', 'POST', '/customers/batch', [{ name: 'Berg, Anna' }, { name: 'Lund' }]);
  await server.as('ada', 'POST', '/orders/batch', Array.from({ length: 12 }, (_, n) => ({
    number: `A-${n + 1}`, customerId: (n % 2) + 1, state: ['new', 'paid', 'sent'][n % 3], total: (n + 1) * 10,
    ...(n % 4 === 0 && { note: 'Ring twice', tags: ['red', 'a,b'] }), address: { city: n < 4 ? 'Oslo' : 'Rome' },
  })));
}

/** Waits until the list has this many rows. */
const rows = ({ browser }: Visit, count: number): Promise<unknown> =>
  browser.until('return document.querySelector("#range").innerText.endsWith(` ${arguments[0]}`)', `of ${count}`);
/** The parts of the filters that are shown, without their marks to remove them. */
const chips = ({ browser }: Visit): Promise<string> => browser.run(`
  return [...document.querySelectorAll('#chips .chip')]
    .map((chip) => [...chip.children].slice(0, -1).map((part) => part.innerText).join('|')).join(' + ')
`);
/** Presses the button with these words in a menu that is open. */
const pick = ({ browser }: Visit, words: string): Promise<unknown> => browser.until(`
  const at = [...document.querySelectorAll(':popover-open button')].find((each) => each.innerText === arguments[0]);
  at?.click();
  return at;
`, words);
/** Opens the menu of a cell by the mouse. */
const openCell = ({ browser }: Visit, row: number, column: string): Promise<unknown> =>
  browser.run(
    `
  const at = [...document.querySelectorAll('#list thead th')].findIndex((each) => each.innerText.endsWith(arguments[1]));
  const cell = document.querySelectorAll('#list tbody tr')[arguments[0]].children[at + 1];
  cell.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true }));
`,
    row,
    column,
  );

testPage('each part of a filter opens: its field, its operator and its value', { collections }, async (visit) => {
  const { browser, hash } = visit;
  await fill(visit);
  await visit.signIn('#orders?total:gte=50');
  await rows(visit, 8);
  assert.equal(await chips(visit), 'Total|at least|50');
  await browser.click('#chips .chip button:nth-child(2)');
  await pick(visit, 'at most');
  await rows(visit, 5);
  // A part of a filter opens even while the menu of another filter is open.
  await browser.click('#add-filter');
  await browser.until('return document.querySelector("#filter").matches(":popover-open")');
  assert.equal(await hash(), '#orders?total%3Alte=50');
  await browser.click('#chips .chip button:nth-child(3)');
  await browser.until('return document.activeElement.closest("#filter-value")');
  assert.equal(await browser.run('return document.activeElement.value'), '50');
  await browser.type('#filter-value input', `30${keys.enter}`);
  await rows(visit, 3);
  assert.equal(await chips(visit), 'Total|at most|30');
  await browser.click('#chips .chip button:nth-child(1)');
  await pick(visit, 'City');
  await browser.until('return document.activeElement.closest("#filter-value")');
  await visit.browser.press('Oslo');
  // A typed value stays with another operator.
  await pick(visit, 'is');
  await rows(visit, 4);
  assert.equal(await hash(), '#orders?address.city=Oslo');
  assert.equal(await chips(visit), 'City|is|Oslo');
});

testPage('a filter takes a range, any of several values, and the last days', { collections }, async (visit) => {
  const { browser, hash } = visit;
  await fill(visit);
  await visit.signIn('#orders');
  await visit.filterBy('Total', 'between');
  await browser.type('#filter-value input', '20');
  await browser.type('#filter-value input:last-child', `60${keys.enter}`);
  await rows(visit, 5);
  assert.equal(await hash(), '#orders?total%3Agte=20&total%3Alte=60');
  assert.equal(await chips(visit), 'Total|between|20 and 60');
  await visit.filterBy('State', 'is any of');
  await browser.click('#filter-value label:nth-of-type(1) input');
  await browser.click('#filter-value label:nth-of-type(3) input');
  await browser.click('#filter .primary');
  await rows(visit, 3);
  assert.equal(await chips(visit), 'Total|between|20 and 60 + State|is any of|new, sent');
  await browser.click('#chips .chip button:last-child');
  await visit.filterBy('Customer', 'is any of');
  await browser.type('#filter-value input', 'berg');
  await browser.until('return document.querySelector("#filter-value [role=option]")');
  await browser.press(keys.enter);
  await browser.until('return document.querySelector("#filter-value .chip")');
  await browser.click('#filter .primary');
  await browser.until('return document.querySelector("#chips").innerText.includes("Berg, Anna")');
  assert.equal(await chips(visit), 'State|is any of|new, sent + Customer|is any of|Berg, Anna');
  await visit.visit('#orders');
  await visit.filterBy('Created at', 'in the last');
  await pick(visit, '7 days');
  await rows(visit, 12);
  assert.equal(await chips(visit), 'Created at|in the last|7 days');
});

testPage('a choice is filtered by in one click, and marked', { collections }, async (visit) => {
  const { browser, hash } = visit;
  await fill(visit);
  await visit.signIn('#orders');
  await visit.filterBy('State');
  await pick(visit, 'paid');
  await rows(visit, 4);
  assert.equal(await hash(), '#orders?state=paid');
  await browser.click('#chips .chip button:nth-child(3)');
  assert.equal(await visit.text('#filter [aria-pressed=true]'), 'paid ✓');
  await pick(visit, 'is not');
  await rows(visit, 8);
  assert.equal(await chips(visit), 'State|is not|paid');
});

testPage('only a list that differs from its view can be saved as one', { collections }, async (visit) => {
  await fill(visit);
  const offers = 'return document.querySelector("#chips")?.innerText.includes("Save this view") ?? false';
  await visit.signIn('#orders?limit=5&offset=5');
  assert.equal(await visit.browser.run(offers), false);
  await visit.visit('#orders?state=paid&sort=total');
  assert.equal(await visit.browser.run(offers), true);
  await visit.browser.click('#chips > button');
  await visit.browser.click('#save-view .primary');
  await visit.browser.until('return document.querySelector("#tabs")');
  await visit.visit('#orders?sort=total&state=paid&limit=5');
  assert.equal(await visit.browser.run(offers), false);
});

testPage('all suggestions of a filter by reference are visible', { collections }, async (visit) => {
  const { browser } = visit;
  await fill(visit);
  const more = Array.from({ length: 5 }, (_, n) => ({ name: `Berg ${n}` }));
  await visit.server.as('ada', 'POST', '/customers/batch', more);
  await visit.signIn('#orders');
  await visit.filterBy('Customer', 'is any of');
  await browser.type('#filter-value input', 'berg');
  await browser.until(`
    const at = document.querySelector('#filter-value [role=option]:nth-child(5)');
    const { left, bottom } = at?.getBoundingClientRect() ?? {};
    return at?.contains(document.elementFromPoint(left + 8, bottom - 4));
  `);
});

testPage('a filter on what is empty needs no value', { collections }, async (visit) => {
  const { browser } = visit;
  await fill(visit);
  await visit.signIn('#orders');
  await visit.filterBy('Note');
  await pick(visit, 'is empty');
  await rows(visit, 9);
  assert.equal(await chips(visit), 'Note|is empty');
  await browser.click('#chips .chip button:nth-child(2)');
  await visit.shows('Note is empty', '#condition');
  assert.equal(await browser.run('return document.querySelector("#filter-value")'), null);
  await pick(visit, 'is not empty');
  await rows(visit, 3);
  assert.equal(await chips(visit), 'Note|is not empty');
});

testPage('the menu of a cell filters by its value, also by the keyboard', { collections }, async (visit) => {
  const { browser, hash } = visit;
  await fill(visit);
  await visit.signIn('#orders?sort=total');
  await rows(visit, 12);
  await openCell(visit, 1, 'State');
  await pick(visit, 'State is paid');
  await rows(visit, 4);
  assert.equal(await chips(visit), 'State|is|paid');
  await openCell(visit, 0, 'Customer');
  await pick(visit, 'Customer is not Lund');
  await rows(visit, 2);
  await visit.visit('#orders?sort=total');
  await openCell(visit, 0, 'Tags');
  await pick(visit, 'Tags has a,b');
  await rows(visit, 3);
  assert.equal(await hash(), '#orders?sort=total&tags%3Ahas=a%2Cb');
  await visit.visit('#orders?sort=total');
  await openCell(visit, 1, 'Note');
  await pick(visit, 'Note is empty');
  await rows(visit, 9);
  // The key for menus, and Shift with F10, send the same event to what has the focus.
  await browser.run(`
    const cell = document.querySelector('#list tbody td.number');
    cell.focus();
    document.activeElement.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true }));
  `);
  await browser.until('return document.querySelector("#cell-menu:popover-open")');
  await browser.press(keys.tab);
  await browser.press(keys.enter);
  await rows(visit, 1);
});
