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

const crates = defineCollection({
  name: 'crates',
  singular: 'crate',
  fields: {
    title: { kind: 'text', min: 1 },
    itemIds: { kind: 'list', of: { kind: 'reference', to: 'items' } },
    note: { kind: 'text', multiline: true, optional: true },
    weight: { kind: 'number' },
    dueAt: { kind: 'timestamp', optional: true },
  },
  access: { patch: 'admin' },
});

visitTest('chips of references lie beside each other, rows open by a click and j and k go by rows', {
  things: 3, collections: [crates],
}, async (visit) => {
  const { browser, server } = visit;
  await server.as('ada', 'PATCH', '/items/1', { name: 'A very long name of a thing that is referred to' });
  for (const weight of [1, 2.125]) {
    const dueAt = '2026-05-01T08:00:12.345Z';
    const crate = { title: `Crate of ${weight}`, itemIds: [1, 2, 3], weight, note: 'One\nTwo', dueAt };
    await server.as('ada', 'POST', '/crates', crate);
  }
  await visit.signIn('#crates');
  await visit.shows('Thing 3', '#list');
  for (const width of [1280, 768, 360]) {
    await browser.resize(width, 800);
    const overlaps = await browser.run(`
      return [...document.querySelectorAll('#list td .row')].flatMap(({ children }) => [...children].slice(1)
        .filter((chip, index) => chip.getBoundingClientRect().left < children[index].getBoundingClientRect().right
          || chip.scrollWidth > chip.clientWidth + 1 && getComputedStyle(chip).overflow !== 'hidden'))
        .map((chip) => chip.innerText);
    `);
    assert.deepEqual(overlaps, [], `${width} px`);
    const name = await browser.run('return document.querySelector("#open-1").closest("th").clientWidth');
    assert.ok(name > 100, `at ${width} px the name has ${name} px`);
  }
  await browser.resize(1280, 800);
  assert.deepEqual(await visit.column(5), ['1.000', '2.125']);
  await browser.press('j');
  await browser.press('j');
  assert.equal(await visit.focused(), 'Crate of 2.125');
  await browser.press('k');
  assert.equal(await visit.focused(), 'Crate of 1');
  await browser.click('#list tbody tr:nth-child(2) td.number');
  await visit.shows('Crate of 2.125', '#record-title');
  assert.equal((await visit.value('dueAt')).length, 'yyyy-mm-ddThh:mm'.length);
  await visit.fill('title', 'Another');
  await browser.click('.record .primary');
  await visit.says('Saved');
  const { data } = await server.as('ada', 'GET', '/crates/2');
  assert.deepEqual([data.title, data.dueAt], ['Another', '2026-05-01T08:00:12.345Z']);
  await browser.forget();
  await visit.signIn('#crates/1', 'grace');
  await visit.shows('One\nTwo', '#record');
});

const shelves = defineCollection({
  name: 'shelves',
  singular: 'shelf',
  fields: { itemId: { kind: 'reference', to: 'items' } },
});

visitTest('names of many references are read in portions, and nothing but names', {
  things: 250, collections: [shelves],
}, async (visit) => {
  const { browser, server } = visit;
  await server.as('ada', 'POST', '/shelves/batch', Array.from({ length: 250 }, (_, n) => ({ itemId: n + 1 })));
  server.requests.length = 0;
  await visit.signIn('#shelves?limit=250');
  await browser.until('return document.querySelector("#list tbody tr:last-child")?.innerText.includes("Thing 250")');
  const reads = server.requests.filter((each) => each.startsWith('GET /items?'));
  assert.equal(reads.length, 3);
  for (const read of reads) assert.match(read, /fields=id%2Cname/);
});

const places = defineCollection({
  name: 'places',
  singular: 'place',
  fields: {
    title: { kind: 'text', min: 1 },
    address: { kind: 'object', fields: { city: { kind: 'text' } }, optional: true },
    extra: { kind: 'json', optional: true },
    closedAt: { kind: 'timestamp', nullable: true, optional: true },
  },
});

visitTest('objects and JSON are shown, checked and changed as JSON', { collections: [places] }, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  await visit.signIn('#places/new');
  await fill('title', 'Bar');
  await fill('address', '{"city": ');
  await browser.click('.record .primary');
  await shows('Address must be JSON', '.record');
  await fill('address', '{"city": "Rome"}');
  await fill('extra', '[1, {"two": null}]');
  await browser.click('.record .primary');
  await says('Created place 1.');
  const stored = { id: 1, title: 'Bar', address: { city: 'Rome' }, extra: [1, { two: null }] };
  assert.deepEqual((await server.as('ada', 'GET', '/places/1')).data, stored);
  await server.as('ada', 'PATCH', '/places/1', { closedAt: null });
  await visit.visit('#places');
  await browser.until('return document.querySelector("#list code")?.innerText === \'{"city":"Rome"}\'');
  await visit.visit('#places/1');
  await fill('title', 'Café');
  await browser.click('.record .primary');
  await says('Saved place 1.');
  const { data } = await server.as('ada', 'GET', '/places/1');
  assert.deepEqual(data, { ...stored, title: 'Café', closedAt: null });
});
