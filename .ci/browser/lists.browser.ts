import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { hold } from './server.ts';
import { keys, testPage, type Visit } from './visit.ts';

/** Waits until the footer shows this range. */
const ranges = ({ browser }: Visit, range: string): Promise<unknown> =>
  browser.until('return document.querySelector("#range")?.innerText === arguments[0]', range);
const choose = ({ browser }: Visit, selector: string, value: string): Promise<unknown> => browser.until(`
  const at = document.querySelector(arguments[0]);
  if (!at || at.options && ![...at.options].some((option) => option.value === arguments[1])) return false;
  at.value = arguments[1];
  at.dispatchEvent(new Event('input', { bubbles: true }));
  at.dispatchEvent(new Event('change', { bubbles: true }));
  return true;
`, selector, value);

testPage('a list has pages by number at any depth', { things: 1550 }, async (visit) => {
  const { browser, column, idle } = visit;
  await visit.signIn('#items?limit=25&sort=-price');
  await ranges(visit, '1–25 of 1,550');
  for (let page = 1; page <= 60; page += 1) {
    // A double click goes one page on.
    await browser.run('const at = document.querySelector("#page-next"); at.click(); at.click();');
    await ranges(visit, `${(page * 25 + 1).toLocaleString('en')}–${(page * 25 + 25).toLocaleString('en')} of 1,550`);
  }
  assert.equal((await column(2))[0], 'Thing 50');
  await browser.reload();
  await ranges(visit, '1,501–1,525 of 1,550');
  assert.equal((await column(2))[0], 'Thing 50');

  // A new tab has only the address.
  const address: string = await browser.run('return location.href');
  const first = await browser.openTab();
  await browser.open(address);
  await ranges(visit, '1,501–1,525 of 1,550');
  for (const [range, top] of [['1,476–1,500', 'Thing 75'], ['1,451–1,475', 'Thing 100']]) {
    await browser.click('#page-prev');
    await ranges(visit, `${range} of 1,550`);
    await idle();
    assert.equal((await column(2))[0], top);
  }
  await browser.back();
  await ranges(visit, '1,476–1,500 of 1,550');
  const numbers = 'return [...document.querySelectorAll("#page-numbers button")].map((at) => at.innerText).join()';
  assert.equal(await browser.run(numbers), '1,… 59,60,61,62');
  await browser.click('#page-numbers :last-child');
  await ranges(visit, '1,526–1,550 of 1,550');
  assert.equal((await column(2)).at(-1), 'Thing 1');
  assert.equal(await browser.run('return document.querySelector("#page-next").disabled'), true);
  await browser.click('#page-prev');
  await ranges(visit, '1,501–1,525 of 1,550');
  await browser.click('[aria-label="Page 1"]');
  await ranges(visit, '1–25 of 1,550');
  assert.equal(await visit.hash(), '#items?limit=25&sort=-price');
  assert.equal(await browser.run('return document.querySelector("#page-prev").disabled'), true);
  await browser.closeTab(first);
});

const notes = defineCollection({
  name: 'notes', singular: 'note', timestamps: true, fields: { text: { kind: 'text' } },
});

testPage('a list is read once when it opens, in its declared order', { collections: [notes] }, async (visit) => {
  const { server } = visit;
  await server.as('ada', 'POST', '/notes', { text: 'Only' });
  await visit.signIn('#notes');
  await visit.browser.until('return document.querySelector("#list tbody tr")');
  const lists = server.requests.filter((line) => line.startsWith('GET /notes?') && !line.includes('limit=1&'));
  assert.deepEqual(lists, ['GET /notes?limit=50&sort=-createdAt%2C-id']);
});

testPage('a total is read once when the overview opens', { things: 1 }, async (visit) => {
  await visit.signIn();
  await visit.shows('Items\n1', '#home');
  assert.equal(visit.server.requests.filter((line) => line.startsWith('GET /items?')).length, 1);
});

testPage('the title of the tab names the open record', { things: 1 }, async (visit) => {
  await visit.signIn('#items/1');
  await visit.browser.until('return document.title === "Thing 1 · Items · Cairn"');
  await visit.browser.click('#close');
  await visit.browser.until('return document.title === "Items · Cairn"');
});

testPage('the newest record comes first, even within a batch', { collections: [notes] }, async (visit) => {
  const { browser, server } = visit;
  await server.as('ada', 'POST', '/notes/batch', ['One', 'Two', 'Three'].map((text) => ({ text })));
  await visit.signIn('#notes');
  await visit.shows('Three', '#list');
  await browser.until('return document.querySelector("th[aria-sort]")');
  await visit.idle();
  assert.deepEqual(await visit.column(2), ['Three', 'Two', 'One']);
  // Sorting by another column keeps this order as the second one; the order by id always comes last.
  await browser.click('#sort-text');
  await browser.until('return location.hash === "#notes?sort=text%2C-createdAt"');
});

testPage('a list sorts by several columns, the most recently chosen first', { things: 3 }, async (visit) => {
  const { browser, server, column, idle, hash } = visit;
  await server.as('ada', 'POST', '/items', { name: 'Another', price: 2.5 });
  await visit.signIn('#items');
  await browser.click('#sort-name');
  await browser.until('return location.hash === "#items?sort=name"');
  await idle();
  await browser.click('#sort-price');
  await browser.until('return location.hash === "#items?sort=price%2Cname"');
  await idle();
  assert.deepEqual(await column(2), ['Thing 1', 'Another', 'Thing 2', 'Thing 3']);
  await browser.click('#sort-price');
  await browser.until('return location.hash === "#items?sort=-price%2Cname"');
  await idle();
  assert.deepEqual(await column(2), ['Thing 3', 'Another', 'Thing 2', 'Thing 1']);
  const heads = 'return [...document.querySelectorAll("th[aria-sort]")].map((at) => at.innerText + " " + at.ariaSort)';
  assert.deepEqual(await browser.run(heads), ['Name ascending', 'Price descending']);
  assert.equal(await visit.focused(), 'Price');
  await browser.back();
  await browser.until('return location.hash === "#items?sort=price%2Cname"');
  await idle();
  assert.deepEqual((await column(2))[0], 'Thing 1');
  assert.equal(await hash(), '#items?sort=price%2Cname');
});

testPage('the search box searches while typing', { things: 60 }, async (visit) => {
  const { browser, column, hash } = visit;
  await visit.signIn('#items');
  await browser.type('#search', 'Thing 5');
  await ranges(visit, '1–15 of 15');
  assert.equal(await hash(), '#items?q=Thing+5');
  await browser.press('9');
  await ranges(visit, '1–1 of 1');
  assert.deepEqual(await column(2), ['Thing 59']);
  await browser.reload();
  await ranges(visit, '1–1 of 1');
  assert.equal(await browser.run('return document.querySelector("#search").value'), 'Thing 59');
  await browser.type('#search', 'nothing like it');
  await visit.shows('No items match', '#list');
  await browser.click('#list a');
  await ranges(visit, '1–50 of 60');
  assert.equal(await hash(), '#items');
  assert.equal(await browser.run('return document.querySelector("#search").value'), '');
  await browser.back();
  await visit.shows('No items match', '#list');
  assert.equal(await hash(), '#items?q=nothing+like+it');
});

testPage(
  'placeholders stand where the first rows will be',
  { things: 3 },
  async ({ browser, server, signIn, idle }) => {
    await signIn('#/');
    const release = hold(server, '/items?limit=50');
    const height = 'return parseFloat(getComputedStyle(document.querySelector("#list"), "::after").height) || 0';
    await browser.run('location.hash = "#items"');
    await browser.until('return document.querySelector("#records[aria-busy=true]")?.checkVisibility()');
    assert.ok((await browser.run(height)) > 300);
    release();
    await idle();
    assert.equal(await browser.run(height), 0);
  },
);

testPage('a search highlights its words in the rows, ignoring accents and case', { things: 12 }, async (visit) => {
  const { browser, server } = visit;
  await server.as('ada', 'POST', '/items', { name: 'Crème brûlée', price: 4 });
  const matches = `return [...CSS.highlights.get('match')].map(({ startContainer, startOffset, endOffset }) =>
    startContainer.data.slice(startOffset, endOffset))`;
  await visit.signIn('#items?q=BRULEE+creme');
  assert.deepEqual((await browser.run(matches)).sort(), ['Crème', 'brûlée']);
  await visit.visit('#items');
  await browser.until('return CSS.highlights.get("match").size === 0');
});

testPage('the search ignores case', { things: 3 }, async (visit) => {
  const { browser, server, column } = visit;
  await visit.signIn('#items');
  await browser.type('#search', 'tHING 2');
  await ranges(visit, '1–1 of 1');
  assert.deepEqual(await column(2), ['Thing 2']);
  assert.ok(server.requests.some((line) => line.startsWith('GET /items?') && line.includes('q=tHING+2')));
});

testPage('filters come from the fields, show as chips and are removed one by one', { things: 60 }, async (visit) => {
  const { browser, hash, text } = visit;
  await visit.signIn('#items');
  await visit.filterBy('Price', 'at least');
  await browser.type('#filter-value input', '12,50');
  await browser.click('#filter .primary');
  await visit.shows('The value must be a number such as 1250.5.', '#filter');
  await browser.type('#filter-value input', `70${keys.enter}`);
  await ranges(visit, '1–5 of 5');
  assert.equal(await hash(), '#items?price%3Agte=70');
  await visit.filterBy('Name', 'starts with (case matters)');
  await browser.type('#filter-value input', `Thing 5${keys.enter}`);
  await ranges(visit, '1–4 of 4');
  const chips = (await text('#chips')).replaceAll(/\s+/g, ' ');
  assert.equal(chips, 'Price at least 70 × Name starts with (case matters) Thing 5 × Save this view');
  await browser.reload();
  await ranges(visit, '1–4 of 4');
  // This browser stores a view until it is deleted.
  await browser.run('[...document.querySelectorAll("#chips button")].at(-1).click()');
  await browser.click('#save-view .primary');
  const view = 'Price at least 70, Name starts with (case matters) Thing 5';
  await browser.until('return document.querySelector("#tabs .chip a")?.innerText === arguments[0]', view);
  await visit.visit('#items');
  await ranges(visit, '1–50 of 60');
  await browser.click('#tabs a:last-child');
  await ranges(visit, '1–4 of 4');
  await browser.click(`[aria-label="Forget the view: ${view}"]`);
  await browser.until('return document.querySelectorAll("#tabs a").length === 0');
  await browser.click('#status button');
  await browser.until('return document.querySelectorAll("#tabs a").length === 2');
  await browser.click('[aria-label="Remove the filter: Price at least 70"]');
  await ranges(visit, '1–11 of 11');
  assert.equal(await hash(), '#items?name%3Astarts=Thing+5');
});

testPage('the number of rows in the address is kept from page to page', { things: 60 }, async (visit) => {
  const { browser, hash } = visit;
  await visit.signIn('#items?limit=25');
  await ranges(visit, '1–25 of 60');
  await browser.click('#page-next');
  await ranges(visit, '26–50 of 60');
  assert.equal(await hash(), '#items?limit=25&offset=25');
});

testPage('a page whose records are gone is replaced by the first one', { things: 30 }, async (visit) => {
  const { browser, server, hash } = visit;
  await visit.signIn('#items?limit=25');
  await browser.click('#page-next');
  await ranges(visit, '26–30 of 30');
  for (const id of [26, 27, 28, 29, 30]) await server.as('ada', 'DELETE', `/items/${id}`);
  await browser.run('document.querySelector("#refresh").click()');
  await ranges(visit, '1–25 of 25');
  assert.equal(await hash(), '#items?limit=25');
});

testPage('the head of the table stays while its rows scroll', { things: 60 }, async (visit) => {
  const { browser } = visit;
  await visit.signIn('#items');
  const top = 'return document.querySelector("thead th").getBoundingClientRect().top';
  const before = await browser.run(top);
  await browser.run('document.querySelector("#list").scrollTop = 500');
  assert.ok(await browser.run('return document.querySelector("#list").scrollTop') > 400);
  assert.equal(await browser.run(top), before);
  assert.equal(await browser.run('return document.querySelector("tbody tr").offsetHeight'), 36);
});

testPage('records have addresses, and a bad address shows a message', {
  things: 3, refusals: [400, 404],
}, async (visit) => {
  const { browser, server, shows, text, idle } = visit;
  await visit.signIn('#items/2?sort=-price');
  assert.equal(await visit.value('name'), 'Thing 2');
  assert.equal(await browser.run('return document.querySelector("tr.current").innerText.includes("Thing 2")'), true);
  await visit.visit('#items/99');
  await shows('There is no item 99: it was removed, or the address is wrong.', '#drawer');
  await browser.click('#close');
  await browser.until('return location.hash === "#items"');
  for (const id of ['abc', '0', '-1', '2%2F3']) {
    await visit.visit(`#items/${id}`);
    await shows('it was removed, or the address is wrong.', '#drawer');
  }
  await visit.visit('#nothing/here');
  await shows('There is nothing at this address', '#home');
  await visit.visit('#/constructor');
  await shows('There is nothing at this address', '#home');
  await browser.click('#home a');
  await browser.until('return document.querySelector("#home h1")?.innerText === "Overview"');
  for (const query of ['sort=color', 'color=red', 'price:gte=much', 'cursor=zzz', 'limit=5000']) {
    await visit.visit('#users');
    await visit.visit(`#items?${query}`);
    await shows('Cannot read the query', '#list-problem');
    await browser.click('#list-problem a');
    await ranges(visit, '1–3 of 3');
  }
  await visit.visit('#items/%E0%A4%A');
  await shows('it was removed, or the address is wrong.', '#drawer');
  // A record that is removed while it is being listed leaves no row.
  await visit.visit('#items');
  await server.as('ada', 'DELETE', '/items/3');
  await browser.click('#open-3');
  await shows('There is no item 3', '#drawer');
  await browser.until('return document.querySelectorAll("#list tbody tr").length === 2');
  await idle();
  assert.equal(await text('#range'), '1–2 of 2');
});

const parts = defineCollection({
  name: 'spare-parts',
  singular: 'sparePart',
  fields: {
    partNumber: { kind: 'text', min: 1, max: 20 },
    stock: { kind: 'integer', min: 0, max: 500 },
    weight: { kind: 'number', optional: true },
    inUse: { kind: 'boolean', default: true },
    state: { kind: 'choice', values: ['new', 'used'] },
    checkedAt: { kind: 'timestamp', optional: true },
  },
});
testPage('a custom collection is shown as declared', {
  collections: [parts], refusals: [422],
}, async (visit) => {
  const { browser, server, fill, says, shows, column, text } = visit;
  await visit.signIn('#spare-parts');
  await shows('There are no spare parts yet', '#list');
  assert.equal(await text('#views [aria-current] span'), 'Spare parts');
  await browser.click('#list a');
  const labels = 'return [...document.querySelectorAll(".record label")].map((at) => at.innerText)';
  await browser.until('return document.querySelector(".record")');
  assert.deepEqual(await browser.run(labels), [
    'Part number', 'Stock', 'Weight optional', 'In use', 'State', 'Checked at optional',
  ]);
  assert.equal(await browser.run('return document.querySelector("#field-inUse").checked'), true, 'a default is filled in');
  await browser.click('.record .primary');
  await shows('State must be filled in.', '.record');
  await fill('partNumber', 'P-1');
  await fill('stock', '1.5');
  await choose(visit, '#field-state', 'used');
  await browser.click('.record .primary');
  await shows('Stock must be a whole number.', '.record');
  await fill('stock', '501');
  await browser.click('.record .primary');
  await shows('Stock must be at most 500.', '.record');
  await fill('stock', '12');
  await browser.run(`
    const at = document.querySelector('#field-checkedAt');
    at.value = '2026-01-31T12:00';
    at.dispatchEvent(new Event('input', { bubbles: true }));
  `);
  await browser.click('.record .primary');
  await says('Created spare part 1.');
  const time: string = await browser.run('return new Date("2026-01-31T12:00").toISOString()');
  assert.deepEqual((await server.as('ada', 'GET', '/spare-parts/1')).data, {
    id: 1, partNumber: 'P-1', stock: 12, inUse: true, state: 'used', checkedAt: time,
  });
  await shows('P-1', '#list');
  const row = await Promise.all([2, 3, 4, 6].map(async (index) => (await column(index))[0]));
  assert.deepEqual(row, ['P-1', '12', '–', 'used']);
  const shown =
    'const form = { dateStyle: "medium", timeStyle: "short" }; ' +
    'return new Intl.DateTimeFormat(navigator.language, form).format(new Date(arguments[0]))';
  // A time that users set is a column; this browser remembers the chosen columns.
  assert.equal(await browser.run('return document.querySelectorAll("thead th").length'), 6);
  // There is no room for it next to a record.
  await browser.press(keys.escape);
  await browser.click('#choose-columns');
  await browser.until('return document.querySelector("#columns li:nth-child(6) input")');
  await browser.click('#columns li:nth-child(6) input');
  await browser.until('return document.querySelectorAll("thead th").length === 5');
  await browser.click('#columns li:nth-child(7) input');
  await browser.until('return document.querySelectorAll("thead th").length === 6');
  assert.equal((await column(7))[0], await browser.run(shown, time));
  await browser.click('[aria-label="Move Stock to the left"]');
  const heads = 'return [...document.querySelectorAll("thead th")].slice(0, 2).map((at) => at.innerText).join()';
  await browser.until(`${heads} === "Stock,Part number"`);
  assert.equal((await column(2))[0], '12', 'the rows follow their head');
  await browser.reload();
  await browser.until(`${heads} === "Stock,Part number"`);
  await browser.click('#choose-columns');
  await browser.until('return document.querySelector("#columns > button")');
  await browser.click('#columns > button');
  await browser.until(`${heads} === "Part number,Stock"`);
  await browser.press(keys.escape);
  await visit.visit('#spare-parts?state=used');
  await browser.until(
    `return document.querySelector('#chips').innerText.replaceAll(/\\s+/g, ' ').startsWith('State is used')`,
  );
  await visit.visit('#spare-parts/1');
  // An optional value can be removed again.
  await choose(visit, '#field-checkedAt', '');
  await browser.click('#field-inUse');
  await browser.click('.record .primary');
  await says('Saved spare part 1.');
  assert.deepEqual((await server.as('ada', 'GET', '/spare-parts/1')).data, {
    id: 1, partNumber: 'P-1', stock: 12, inUse: false, state: 'used',
  });
  await visit.filterBy('State', 'is');
  assert.deepEqual(
    await browser.until(`
      const all = [...document.querySelectorAll('#filter .menu > button')];
      return all.length > 0 && all.map((at) => at.innerText);
    `),
    ['new', 'used'],
  );
});

testPage('names in any script stay in their column', {}, async (visit) => {
  const { browser, server } = visit;
  const names = [
    'كرسي خشبي 12', 'כיסא', 'x'.repeat(200),
    'Donaudampfschifffahrtsgesellschaft '.repeat(5), '‮gnp.exe'.slice(1),
  ];
  for (const name of names) await server.as('ada', 'POST', '/items', { name, price: 1250.5 });
  await visit.signIn('#items');
  for (const [width, height] of [[320, 800], [1280, 800]] as const) {
    await browser.resize(width, height);
    const overlaps = await browser.run(`
      return [...document.querySelectorAll('#list tbody tr')].filter((row) => {
        const cells = [...row.children].map((cell) => cell.getBoundingClientRect());
        return cells.some((a, index) => cells.some((b, other) => index < other &&
          a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1));
      }).length;
    `);
    assert.equal(overlaps, 0);
    assert.equal(await browser.run('return document.documentElement.scrollWidth <= innerWidth'), true);
  }
  assert.equal(
    await browser.run('return [...document.querySelectorAll("tbody th")].every((at) => at.querySelector("bdi"))'),
    true,
  );
});

testPage('everything can be done with the keyboard alone', { things: 60 }, async (visit) => {
  const { browser, server, focused, says, idle } = visit;
  await browser.open(server.url);
  await browser.until('return document.activeElement.id === "email"');
  await browser.press(`ada@example.org${keys.tab}the house on the hill${keys.enter}`);
  await visit.shows('60', '#home');
  const tabTo = async (label: string, held?: string): Promise<void> => {
    for (let step = 0; step < 60; step += 1) {
      await browser.press(keys.tab, held);
      if (await focused() === label) return;
    }
    assert.fail(`Tab does not lead to ${label}`);
  };
  await tabTo('Skip to the content', keys.shift);
  await tabTo('Items');
  await browser.press(keys.enter);
  await idle();
  await browser.until('return document.activeElement.id === "title"');
  await browser.press('?');
  await visit.shows('Keyboard shortcuts', '#keys');
  await browser.press(keys.escape);
  await browser.press('n');
  await browser.until('return document.activeElement.id === "field-name"');
  await browser.press(`By keyboard${keys.tab}5${keys.enter}`);
  await says('Created item 61.');
  await browser.press(keys.escape);
  await browser.until('return location.hash === "#items"');
  await browser.press('j');
  assert.equal(await focused(), 'Thing 1');
  await browser.press('jk');
  assert.equal(await focused(), 'Thing 1');
  await browser.press('x');
  await visit.shows('1 item selected', '.footer');
  await browser.press('x]');
  await ranges(visit, '51–61 of 61');
  await browser.press('[');
  await ranges(visit, '1–50 of 61');
  await browser.press('/');
  await browser.until('return document.activeElement.id === "search"');
  await browser.press('by k');
  await browser.until('return document.querySelector("#search").value === "by k"');
  await browser.type('#search', 'By k');
  await ranges(visit, '1–1 of 1');
  await tabTo('By keyboard');
  await browser.press(keys.enter);
  await browser.until('return document.activeElement.id === "record-title"');
  await tabTo('Price');
  await browser.press('50');
  await browser.press(keys.enter, keys.control);
  await says('Saved item 61.');
  assert.equal((await server.as('ada', 'GET', '/items/61')).data.price, 50);
  await browser.press(keys.escape);
  await browser.until('return document.activeElement.id === "open-61"');
  // Single-key shortcuts can be switched off (WCAG 2.2 §2.1.4).
  await browser.press('?');
  await browser.until('return document.querySelector("#keys").open');
  await browser.click('#use-keys');
  await browser.click('#keys button');
  await browser.press('n');
  assert.equal(await visit.hash(), '#items?q=By+k');
});

const customers = defineCollection({
  name: 'customers',
  singular: 'customer',
  fields: {
    name: { kind: 'text', min: 1 },
    email: { kind: 'email' },
    city: { kind: 'text', optional: true },
    bossId: { kind: 'reference', to: 'customers', optional: true },
  },
});

testPage('a browser remembers the width of columns', {
  collections: [customers],
}, async (visit) => {
  const { browser, server } = visit;
  const city = 'Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch';
  await server.as('ada', 'POST', '/customers', { name: 'Grace Murray Hopper', email: 'grace@example.org', city });
  await visit.signIn('#customers');
  const heads = 'return [...document.querySelectorAll("thead th")].map((at) => at.getBoundingClientRect().toJSON())';
  const widths = async (): Promise<number[]> =>
    (await browser.run(heads)).map(({ width }: { width: number }) => Math.round(width));
  const before = await widths();
  const box = (await browser.run(heads))[2];
  await browser.run('document.querySelector(".handle").dispatchEvent(new PointerEvent("pointerenter"))');
  await browser.until('return performance.getEntriesByName(`${origin}/-/page/views/columns.js`).length > 0');
  await browser.drag([box.right - 3, box.top + 9], [box.right - 103, box.top + 9]);
  await browser.until('return document.querySelector(".sized")');
  const narrow = before.map((width, index) => (index === 2 ? width - 100 : width));
  const isNear = (some: number[]): boolean => some.every((width, index) => Math.abs(width - (narrow[index] ?? 0)) <= 1);
  await browser.until(`
    return Math.abs(document.querySelectorAll('thead th')[2].offsetWidth - arguments[0]) <= 1`, narrow[2]);
  assert.ok(isNear(await widths()), `${await widths()} instead of ${narrow}: the others stay as wide as they were`);
  await browser.reload();
  await browser.until('return document.querySelector(".sized tbody tr th")');
  assert.ok(isNear(await widths()), 'it is kept');
  // A long text is cut off with its column, and dragging never sorts.
  assert.equal(await visit.hash(), '#customers');
  assert.equal(await browser.run('return document.querySelector("#list").scrollWidth <= innerWidth'), true);
  await browser.click('#choose-columns');
  await browser.click('#columns > button');
  await browser.until('return !document.querySelector(".sized")');
  assert.deepEqual(await widths(), before);
});

testPage('people have initials, which screen readers skip', { collections: [customers] }, async (visit) => {
  const { browser, server } = visit;
  await server.as('ada', 'POST', '/customers', { name: 'Grace Murray Hopper', email: 'grace@example.org' });
  await server.as('ada', 'POST', '/customers', { name: 'Ada', email: 'ada@example.org', bossId: 1 });
  await server.as('ada', 'POST', '/items', { name: 'Desk lamp', price: 5 });
  await visit.signIn('#customers');
  await visit.shows('Grace Murray Hopper', 'tbody tr:nth-child(2) td:last-child');
  const initials = (within: string): Promise<string> => browser.run(`
    return [...document.querySelectorAll(arguments[0] + ' .initials')].map((at) =>
      getComputedStyle(at, '::before').content).join()`, within);
  assert.equal(await initials('#list'), '"GH" / "","A" / "","GH" / ""');
  assert.deepEqual(await visit.column(2), ['Grace Murray Hopper', 'Ada']);
  assert.equal(await initials('#who'), '"AL" / ""');
  await visit.visit('#users');
  await ranges(visit, '1–2 of 2');
  assert.equal(await initials('#list'), '"AL" / "","GH" / ""');
  await visit.visit('#items');
  await browser.until('return !document.querySelector("#list .initials")');
});

testPage('on a narrow page the views are a select, and wide pages have a rail', { things: 3 }, async (visit) => {
  const { browser, shows } = visit;
  await visit.signIn('#items');
  const seen = `return ['#view', '#views'].filter((at) => document.querySelector(at).checkVisibility()).join()`;
  await browser.resize(360, 740);
  assert.equal(await browser.run(seen), '#view');
  assert.equal(await browser.run('return document.querySelector("#view").selectedOptions[0].label'), 'Items');
  await choose(visit, '#view', '#users');
  await shows('Ada Lovelace', '#list');
  assert.equal(await visit.hash(), '#users');
  await choose(visit, '#view', '#/api');
  await shows('Documentation', '#home');
  await choose(visit, '#view', '#/account');
  await shows('Ada Lovelace', '#record-title');
  assert.ok(await browser.run('return document.querySelector("#bar").offsetHeight') <= 60, 'the header is one line');
  await visit.visit('#items');
  await visit.filterBy('Name');
  // No operator is cut off, and the form does not touch the edges.
  const fits = await browser.run(`
    const [form, at] = [document.querySelector('#filter'), document.querySelector('#condition')];
    const { left, right } = form.getBoundingClientRect();
    const isWhole = [...form.querySelectorAll('button'), at].every((each) => each.scrollWidth <= each.clientWidth);
    return left > 8 && right < innerWidth - 8 && isWhole;
  `);
  assert.equal(fits, true);
  await browser.press(keys.escape);
  await browser.resize(768, 1024);
  assert.equal(await browser.run(seen), '#view');
  await browser.resize(1024, 768);
  assert.equal(await browser.run(seen), '#views');
  const rail = await browser.run('return document.querySelector("#views").getBoundingClientRect().toJSON()');
  assert.ok(rail.height > 500 && rail.width < 200, `the rail has ${rail.width} by ${rail.height} px`);
});
