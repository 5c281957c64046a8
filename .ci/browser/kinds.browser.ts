import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { keys, testPage } from './visit.ts';

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

testPage('references are chosen by searching and shown as links', {
  things: 3, collections: [reviews], refusals: [422],
}, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  await server.as('ada', 'POST', '/items', { name: 'Desk lamp', price: 5 });
  await visit.signIn('#reviews/new');
  await fill('title', 'Bright');
  await fill('body', `First line${keys.enter}second line`);
  await fill('tags', `red${keys.enter}far too long a tag`);
  await fill('itemId', 'desk');
  await browser.until('return document.querySelector("[role=option]")?.innerText === "Desk lamp\\n5"');
  await browser.press(keys.enter);
  await browser.until('return document.querySelector("#field-itemId").value === "Desk lamp"');
  await browser.click('.record .primary');
  await shows('Tags must', '.record');
  await fill('tags', `red${keys.enter}blue`);
  await browser.click('.record .primary');
  await says('Created review 1.');
  const stored = { id: 1, title: 'Bright', body: 'First line\nsecond line', tags: ['red', 'blue'], itemId: 4 };
  assert.deepEqual((await server.as('ada', 'GET', '/reviews/1')).data, stored);
  await visit.visit('#reviews');
  await browser.until('return document.querySelector("#list td a[href=\'#/items/4\']")?.innerText === "Desk lamp"');
  const chips = 'return [...document.querySelectorAll("#list .pill")].map((at) => at.innerText)';
  assert.deepEqual(await browser.run(chips), ['red', 'blue']);
  // A change of one field leaves line feeds and lists unchanged.
  await visit.visit('#reviews/1');
  await fill('title', 'Very bright');
  await browser.click('.record .primary');
  await says('Saved review 1.');
  assert.deepEqual((await server.as('ada', 'GET', '/reviews/1')).data, { ...stored, title: 'Very bright' });
  await browser.click('#list td a');
  await shows('Desk lamp', '#record-title');
});

const keepers = defineCollection({
  name: 'keepers',
  singular: 'keeper',
  fields: { title: { kind: 'text', min: 1 } },
  access: { list: 'admin' },
});
const sets = defineCollection({
  name: 'sets',
  singular: 'set',
  fields: {
    title: { kind: 'text', min: 1 },
    itemIds: { kind: 'list', of: { kind: 'reference', to: 'items' } },
    keeperId: { kind: 'reference', to: 'keepers', optional: true },
  },
});

testPage('lists of references are chips in forms and filters', {
  things: 12, collections: [keepers, sets],
}, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  const options = (count: number): Promise<unknown> =>
    browser.until('return document.querySelectorAll("[role=option]").length === arguments[0]', count);
  await server.as('ada', 'POST', '/keepers', { title: 'Museum' });
  await visit.signIn('#sets/new');
  await fill('title', 'Two of them');
  await fill('itemIds', 'thing');
  await options(8);
  await browser.press(`${keys.down}${keys.enter}`);
  await shows('Thing 2', '.record .chip');
  await browser.click('#field-itemIds');
  await options(7);
  await browser.press(keys.escape);
  await options(0);
  assert.equal(await visit.hash(), '#sets/new', 'Escape closes the suggestions alone');
  // A complete name counts as chosen, even without Enter.
  await fill('itemIds', 'thing 7');
  await options(1);
  await browser.press(keys.tab);
  await browser.until('return document.querySelectorAll(".record .chip").length === 2');
  await fill('itemIds', 'nothing');
  await shows('No item matches', '.record');
  // The button must not move while it is pressed.
  const button: [number, number] = await browser.run(`
    const { x, y, width, height } = document.querySelector('.record .primary').getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  `);
  await browser.drag(button, button);
  await shows('Items must be chosen from what is found.', '.record');
  assert.equal(await visit.value('itemIds'), 'nothing');
  await fill('itemIds', '12');
  await options(1);
  await browser.press(keys.enter);
  await browser.click('[aria-label="Remove Thing 2"]');
  await browser.click('.record .primary');
  await says('Created set 1.');
  assert.deepEqual((await server.as('ada', 'GET', '/sets/1')).data.itemIds, [7, 12]);
  await visit.visit('#sets');
  await visit.filterBy('Items', 'has');
  await browser.until('return document.querySelector("#filter-itemIds")');
  await browser.type('#filter-itemIds', 'thing 7');
  await options(1);
  await browser.press(keys.enter);
  await browser.press(keys.enter);
  await browser.until('return location.hash === "#sets?itemIds%3Ahas=7"');
  await browser.until(
    `return document.querySelector('#chips').innerText.replaceAll(/\\s+/g, ' ').startsWith('Items has Thing 7')`,
  );
  // A user who may not list the collection that a field refers to types the id.
  await browser.forget();
  await visit.signIn('#sets/new', 'grace');
  await fill('title', 'Mine');
  await fill('itemIds', 'thing 3');
  await options(1);
  await browser.press(keys.enter);
  await fill('keeperId', '1');
  await browser.click('.record .primary');
  await says('Created set 2.');
  assert.equal((await server.as('ada', 'GET', '/sets/2')).data.keeperId, 1);
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

testPage('chips of references lie next to each other', {
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
  // On a phone the first chip is readable, and others are cut off at the edge of the window.
  await server.as('ada', 'PATCH', '/crates/2', { itemIds: [2, 3, 1] });
  await browser.run('document.querySelector("#refresh").click()');
  const isWhole = `
    const chip = document.querySelector('#list tr:nth-child(2) td .row > *');
    return chip.innerText === 'Thing 2' && chip.scrollWidth <= chip.clientWidth;
  `;
  await browser.until(isWhole);
  await browser.resize(1280, 800);
  assert.deepEqual(await visit.column(4), ['1.000', '2.125']);
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

testPage('names of many references are read in portions', {
  things: 250, collections: [shelves],
}, async (visit) => {
  const { browser, server } = visit;
  await server.as('ada', 'POST', '/shelves/batch', Array.from({ length: 250 }, (_, n) => ({ itemId: n + 1 })));
  server.requests.length = 0;
  await visit.signIn('#shelves?limit=250');
  await browser.until('return document.querySelector("#list tbody tr:last-child")?.innerText.includes("Thing 250")');
  const reads = server.requests.filter((each) => each.startsWith('GET /items?') && each.includes('id%3Ain'));
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

testPage('JSON is shown, checked and changed as JSON', { collections: [places] }, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  await visit.signIn('#places/new');
  await fill('title', 'Bar');
  await fill('extra', '[1, {"two": ');
  await browser.click('.record .primary');
  await shows('Extra must be JSON', '.record');
  await fill('address-city', 'Rome');
  await fill('extra', '[1, {"two": null}]');
  await browser.click('.record .primary');
  await says('Created place 1.');
  const stored = { id: 1, title: 'Bar', address: { city: 'Rome' }, extra: [1, { two: null }] };
  assert.deepEqual((await server.as('ada', 'GET', '/places/1')).data, stored);
  await server.as('ada', 'PATCH', '/places/1', { closedAt: null });
  await visit.visit('#places');
  await browser.until('return document.querySelector("#list tbody tr")');
  assert.deepEqual(await visit.column(3), ['Rome'], 'a list has no JSON in its cells');
  await visit.visit('#places/1');
  await fill('title', 'Café');
  await browser.click('.record .primary');
  await says('Saved place 1.');
  const { data } = await server.as('ada', 'GET', '/places/1');
  assert.deepEqual(data, { ...stored, title: 'Café', closedAt: null });
});

const houses = defineCollection({
  name: 'houses',
  singular: 'house',
  fields: {
    title: { kind: 'text', min: 1 },
    address: {
      kind: 'object',
      optional: true,
      fields: {
        street: { kind: 'text' },
        city: { kind: 'text', min: 1 },
        geo: {
          kind: 'object',
          optional: true,
          fields: { lat: { kind: 'number', min: -90, max: 90 }, seenAt: { kind: 'timestamp', nullable: true } },
        },
      },
    },
    size: { kind: 'object', fields: { rooms: { kind: 'integer' } } },
  },
  access: { patch: 'admin' },
});

testPage('objects are collapsible groups of fields', {
  collections: [houses], refusals: [422],
}, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  const stored = async (): Promise<object> => (await server.as('ada', 'GET', '/houses/1')).data;
  await visit.signIn('#houses/new');
  await fill('title', 'Villa');
  await browser.click('.record .primary');
  await shows('Rooms must be filled in.', '.record');
  await fill('size-rooms', '4');
  // A group beyond three fields is folded, and unfolds to show an error in it.
  const isOpen = 'return [...document.querySelectorAll(".record details")].map((at) => at.open)';
  assert.deepEqual(await browser.run(isOpen), [false, true]);
  await browser.click('.record summary');
  await fill('address-geo-lat', '91');
  await browser.click('.record summary');
  await browser.click('.record .primary');
  await browser.until('return document.activeElement.id === "field-address-city"');
  await fill('address-city', 'Rome');
  await browser.click('.record .primary');
  await shows('must be at most 90', '.record');
  await fill('address-geo-lat', '41.9');
  await browser.click('.record .primary');
  await says('Created house 1.');
  const geo = { lat: 41.9, seenAt: null };
  const house = { id: 1, title: 'Villa', address: { street: '', city: 'Rome', geo }, size: { rooms: 4 } };
  assert.deepEqual(await stored(), house);
  // Someone else changes one field of an object, and this person another one.
  const seenAt = '2026-05-01T08:00:12.345Z';
  await server.as('ada', 'PATCH', '/houses/1', { address: { geo: { seenAt } } });
  await fill('address-street', 'Via Appia 1');
  await browser.click('.record .primary');
  await says('Someone else had changed');
  const moved = { street: 'Via Appia 1', city: 'Rome', geo: { lat: 41.9, seenAt } };
  assert.deepEqual(await stored(), { ...house, address: moved });
  // An empty object is removed if it is optional.
  await fill('address-geo-lat', '');
  await fill('address-geo-seenAt', '');
  await browser.click('.record .primary');
  await says('Saved house 1.');
  assert.deepEqual(await stored(), { ...house, address: { street: 'Via Appia 1', city: 'Rome' } });
  await browser.forget();
  await visit.signIn('#houses/1', 'grace');
  await shows('Via Appia 1, Rome', '#record summary');
  await browser.click('#record summary');
  await shows('Street\nVia Appia 1\nCity\nRome', '#record');
});

const comments = defineCollection({
  name: 'comments',
  singular: 'comment',
  fields: { text: { kind: 'text', min: 1 }, placeId: { kind: 'reference', to: 'places', onDelete: 'remove' } },
});
const tours = defineCollection({
  name: 'tours',
  singular: 'tour',
  fields: { title: { kind: 'text', min: 1 }, placeIds: { kind: 'list', of: { kind: 'reference', to: 'places' } } },
});

testPage('a record shows what refers to it', {
  collections: [places, comments, tours],
}, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  await server.as('ada', 'POST', '/places/batch', [{ title: 'Bar' }, { title: 'Bath' }]);
  const all = Array.from({ length: 14 }, (_, n) => ({ text: `Comment ${n + 1}`, placeId: 2 }));
  await server.as('ada', 'POST', '/comments/batch', all);
  await server.as('ada', 'POST', '/tours', { title: 'Around', placeIds: [1, 2] });
  await visit.signIn('#places/2');
  await shows('Comments by place · 14', '#record');
  await shows('Tours by places · 1', '#record');
  const rows = `
    return [...document.querySelectorAll('#record tbody')]
      .map((at) => [...at.rows].map((row) => row.cells[0].innerText));
  `;
  assert.deepEqual(await browser.run(rows), [['Comment 14', 'Comment 13', 'Comment 12'], ['Around']]);
  await browser.click('#record section a[href="#comments/new?placeId=2"]');
  await shows('New comment', '#drawer');
  await browser.until('return document.querySelector("#field-placeId")?.value === "Bath"');
  await fill('text', 'Another');
  await browser.click('.record .primary');
  await says('Created comment 15.');
  assert.equal((await server.as('ada', 'GET', '/comments/15')).data.placeId, 2);
  await browser.until('return document.querySelector("#range")?.innerText === "1–15 of 15"');
  await visit.visit('#tours/new?placeIds%3Ahas=1');
  await shows('Bar', '.record .chip');
});

const labels = defineCollection({
  name: 'labels',
  singular: 'label',
  id: { kind: 'text', given: true },
  fields: { title: { kind: 'text', min: 1 }, parentId: { kind: 'reference', to: 'labels', optional: true } },
});

testPage('text ids work like numbers', {
  collections: [labels], hasFeed: true,
}, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  const id = 'red/№ 1?';
  await server.as('ada', 'POST', '/labels', { id, title: 'Red' });
  await visit.signIn('#labels');
  await browser.click('#list tbody th a');
  await shows('Red', '#record-title');
  assert.equal(await visit.hash(), `#labels/${encodeURIComponent(id)}`);
  await server.as('ada', 'PATCH', `/labels/${encodeURIComponent(id)}`, { title: 'Bright red' });
  await shows('Bright red', '#record-title');
  await fill('title', 'Dark red');
  await browser.click('.record .primary');
  await says('Saved label');
  await visit.visit('#labels/new');
  await fill('id', 'pink');
  await fill('title', 'Pink');
  await fill('parentId', 'dark');
  await browser.until('return document.querySelector("[role=option]")?.innerText.includes("Dark red")');
  await browser.press(keys.enter);
  await browser.click('.record .primary');
  await says('Created label pink.');
  const stored = { id: 'pink', title: 'Pink', parentId: id };
  assert.deepEqual((await server.as('ada', 'GET', '/labels/pink')).data, stored);
  await visit.visit(`#labels/${encodeURIComponent(id)}`);
  await shows('Labels by parent · 1', '#record');
  // The form for a new record and the record with the id "new" have different addresses.
  await server.as('ada', 'POST', '/labels', { id: 'new', title: 'Not a form' });
  await visit.visit('#labels?sort=title');
  await browser.click('#open-new');
  await shows('Not a form', '#record-title');
  await browser.reload();
  await shows('Not a form', '#record-title');
  await fill('title', 'A record');
  await browser.click('.record .primary');
  await says('Saved label new.');
  await browser.click('#new');
  await shows('New label', '#record-title');
});

const tasks = defineCollection({
  name: 'tasks',
  singular: 'task',
  fields: {
    title: { kind: 'text', min: 1 },
    done: { kind: 'boolean', default: false },
    doerId: { kind: 'reference', to: 'users', onDelete: 'clear', optional: true },
  },
  access: { patch: ['owner', 'doerId'] },
});

testPage('a boolean is switched in the list by people who may change its record', {
  collections: [tasks], refusals: [403],
}, async (visit) => {
  const { browser, server, says } = visit;
  await server.as('ada', 'POST', '/tasks/batch', [{ title: 'Of Ada' }, { title: 'For Grace', doerId: 2 }]);
  await server.as('grace', 'POST', '/tasks', { title: 'Of Grace', done: true });
  const switches = (): Promise<unknown> => browser.run(
    'return [...document.querySelectorAll("#list [role=switch]")].map((at) => [at.ariaLabel, at.checked])');
  const done = async (): Promise<unknown> =>
    (await server.as('ada', 'GET', '/tasks')).data.map((task: { done: boolean }) => task.done);
  await visit.signIn('#tasks', 'grace');
  // The list does not show owners, so only her own record is certainly hers to change.
  assert.deepEqual(await switches(), [['Done: For Grace', false]]);
  assert.deepEqual(await visit.column(3), ['No', '', 'Yes']);
  await browser.click('[aria-label="Done: For Grace"]');
  await browser.until('return document.querySelector("[role=switch]").checked');
  assert.deepEqual(await done(), [false, true, true]);
  assert.equal(await visit.hash(), '#tasks', 'the row does not open');
  await visit.visit('#tasks?owner=me');
  await browser.until('return document.querySelectorAll("#list tbody tr").length === 1');
  await browser.click('[aria-label="Done: Of Grace"]');
  await browser.until('return !document.querySelector("[role=switch]").checked');
  assert.deepEqual(await done(), [false, true, false]);
  // Changes by someone else are shown, not overwritten.
  await server.as('ada', 'PATCH', '/tasks/3', { title: 'Renamed' });
  await browser.click('[role=switch]');
  await says('Someone else has changed it.');
  await browser.until('return document.querySelector("#open-3").innerText === "Renamed"');
  assert.deepEqual([await switches(), await done()], [[['Done: Renamed', false]], [false, true, false]]);
  await browser.press(' ');
  await browser.until('return document.querySelector("[role=switch]").checked');
  assert.deepEqual(await done(), [false, true, true]);
});

testPage('your own change in the list is not a conflict in the form next to it', {
  collections: [tasks], hasFeed: true,
}, async (visit) => {
  const { browser, server, shows } = visit;
  await server.as('ada', 'POST', '/tasks/batch', [{ title: 'Open' }, { title: 'Other' }]);
  await visit.signIn('#tasks/1');
  // The feed reports a change before its response, so once it reports a later one, it has reported this one.
  server.double = async (request, forward) => {
    const answer = await forward();
    if (request.method !== 'PATCH') return answer;
    await server.as('ada', 'PATCH', '/tasks/2', { title: 'Later' });
    await shows('Later', '#list');
    return answer;
  };
  assert.equal(await browser.until('return document.querySelector("#field-done:not(:checked)")?.role'), 'switch');
  server.requests.length = 0;
  await browser.click('[aria-label="Done: Open"]');
  await browser.until('return document.querySelector("#field-done").checked');
  await visit.says('Saved Open.');
  await browser.until('return !document.querySelector("#record [aria-busy=true]")');
  assert.equal(await browser.run('return document.querySelector("#record").innerText.includes("Not saved")'), false);
  const [read, changed] = ['GET', 'PATCH'].map((method) =>
    server.requests.filter((line) => line === `${method} /tasks/1`).length);
  assert.deepEqual([read, changed], [1, 1], 'nothing is read again for one’s own change');
});

const oddities = defineCollection({
  name: 'oddities', singular: 'oddity',
  fields: {
    label: { kind: 'text', min: 1 }, constructor: { kind: 'text', optional: true },
    dueAt: { kind: 'timestamp', optional: true },
  },
});

testPage('a field called `constructor` is empty until it is filled in', {
  collections: [oddities],
}, async (visit) => {
  const { browser, server, says } = visit;
  await server.as('ada', 'POST', '/oddities', { label: 'First', dueAt: '2030-01-31T12:00:00.000Z' });
  await visit.signIn('#oddities/1');
  assert.equal(await visit.value('constructor'), '');
  assert.equal(await browser.run('return document.querySelector("#record").innerText.includes("Not saved")'), false);
  assert.deepEqual(await visit.column(3), ['–']);
  assert.notDeepEqual(await visit.column(4), [], 'a time that people set has a column');
  await visit.fill('constructor', 'Anna');
  await browser.click('.record .primary');
  await says('Saved oddity 1.');
  assert.equal((await server.as('ada', 'GET', '/oddities/1')).data.constructor, 'Anna');
});

const anything = { kind: 'json', optional: true } as const;
const adopted = defineCollection({
  name: 'findings', singular: 'finding',
  fields: {
    sourceId: { ...anything, like: 'text' }, text: { ...anything, like: 'text' },
    subject: { ...anything, like: 'text' }, more: anything,
  },
});

testPage('records with arbitrary fields are named by a text', {
  collections: [adopted],
}, async (visit) => {
  const { browser, server, fill, says, shows, value } = visit;
  await server.as('ada', 'POST', '/findings/batch', [
    { sourceId: 'x', text: 'Long and wide', subject: 'Rain', more: 'as it is' },
    { sourceId: 'y', subject: '7' },
    { text: 'None' },
  ]);
  await visit.signIn('#findings/1');
  await shows('Rain', '#record-title');
  const links = 'return [...document.querySelectorAll("#list th a")].map((at) => at.innerText)';
  assert.deepEqual(await browser.run(links), ['Rain', '7', '3']);
  assert.deepEqual([await value('subject'), await value('more')], ['Rain', '"as it is"']);
  await fill('subject', 'Snow');
  await fill('text', '12');
  await browser.click('.record .primary');
  await says('Saved finding 1.');
  const { subject, text } = (await server.as('ada', 'GET', '/findings/1')).data;
  assert.deepEqual({ subject, text }, { subject: 'Snow', text: 12 });
  await visit.visit('#findings/2');
  assert.equal(await value('subject'), '"7"', 'a text that would be a number keeps its quotes');
});
