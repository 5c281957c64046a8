import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { keys, testPage } from './visit.ts';

const books = defineCollection({
  name: 'books',
  singular: 'book',
  fields: {
    title: { kind: 'text', min: 1, max: 200 },
    state: { kind: 'choice', values: ['new', 'used'] },
    tags: { kind: 'list', of: { kind: 'text' }, optional: true },
  },
  access: { create: 'admin' },
});

testPage('a collection has an API tab with samples that can be run', {
  things: 30, collections: [books], refusals: [422],
}, async (visit) => {
  const { browser, server, shows, text } = visit;
  await visit.signIn('#items?price%3Agte=20&sort=-price');
  await browser.click('#to-api');
  await shows('Items: API', 'main');
  assert.equal(await visit.hash(), '#/api/items?price%3Agte=20&sort=-price');
  assert.deepEqual(
    await browser.run('return [...document.querySelectorAll(".operation summary")].map((at) => at.innerText)'),
    [
      'GET\n/items\nList items\nFor everyone signed in.', 'POST\n/items\nCreate a new item\nFor everyone signed in.',
      'GET\n/items/{id}\nRead the item with this id\nFor everyone signed in.',
      'PUT\n/items/{id}\nReplace the item with this id\nFor the owner, administrators.',
      'PATCH\n/items/{id}\nChange some fields of the item with this id\nFor the owner, administrators.',
      'DELETE\n/items/{id}\nRemove the item with this id\nFor the owner, administrators.',
      'POST\n/items/batch\nCreate many items at once, all or none\nFor everyone signed in.',
    ],
  );
  await browser.click('.operation summary');
  const address = `${server.url}/items?price%3Agte=20&sort=-price&limit=10`;
  assert.equal(await text('.operation pre'), `curl -sS -X GET '${address}' -H "Authorization: Bearer $TOKEN"`);
  // A read runs at once, and its response appears next to the sample.
  await browser.click('.run .primary');
  await shows('200 OK · ', '.run');
  await shows('entity tag', '.run');
  await shows('"name": "Thing 30"', '.run [role=status]');
  const beside = 'const [sample, answer] = document.querySelectorAll(".run > div"); ' +
    'return sample.getBoundingClientRect().right <= answer.getBoundingClientRect().left';
  assert.equal(await browser.run(beside), true);
  const press = 'for (const at of document.querySelectorAll(".run *")) if (at.innerText === arguments[0]) at.click()';
  await browser.run(press, 'TypeScript');
  await shows('const data: Array<Item> = await response.json();', '.run');
  const type = /^type Item = \{\n {2}id: number;\n {2}name: string;\n {2}price: number;\n\};\n/;
  assert.match(await text('.operation pre'), type);
  await browser.run(press, 'fetch');
  await shows('    Authorization: `Bearer ${token}`,', '.run');

  // A write is sent after a confirmation, with the typed body.
  await visit.visit('#/api/items/createItem');
  await browser.until('return document.querySelector("#createItem textarea")');
  await browser.type('#createItem textarea', '{"name": "From here", "price": -1}');
  await browser.click('#createItem .primary');
  await shows('Send this request?', '#run[open]');
  await browser.press(keys.escape);
  await browser.until('return !document.querySelector("#run[open]")');
  assert.ok(server.requests.every((line) => !line.startsWith('POST')));
  await browser.click('#createItem .primary');
  await shows('Send', '#run[open]');
  await browser.click('#run .primary');
  await shows('422 Unprocessable', '#createItem');
  await browser.type('#createItem textarea', `{"name": "It's from here", "price": 1}`);
  await browser.click('#createItem .primary');
  await shows('Send', '#run[open]');
  await browser.click('#run .primary');
  await shows('201 Created', '#createItem');
  assert.equal((await server.as('ada', 'GET', '/items/31')).data.name, "It's from here");
});

testPage('the documentation is read and linked by people who may not see data', {
  collections: [books],
}, async (visit) => {
  const { browser, shows } = visit;
  await visit.signIn('#/api', 'grace');
  await shows('Errors are problem details (RFC 9457) with a stable code.', 'main');
  await shows('/books/batch', 'main');
  const paths = `return [...document.querySelectorAll('.operation summary code:last-of-type')]
    .map((at) => at.innerText)`;
  const [first, ...others] = await browser.run(paths);
  assert.deepEqual([first, others.includes('/users')], ['/items', true], 'what a member may not list comes last');
  await visit.visit('#/api/books/createBook');
  await shows('For administrators.', '#createBook');
  const unfold = 'for (const at of document.querySelectorAll("details")) at.open = true; ';
  const words = 'Only records in which title contains this text';
  await browser.until(`${unfold} return document.querySelector("#home")?.innerText.includes(arguments[0])`, words);
  await shows('required', '#home');
  await shows('new | used', '#home');
  await shows('1 to 200 characters', '#home');
});

testPage('an address with an unknown operation shows its tag', {}, async (visit) => {
  await visit.signIn('#/api/items/%3Cb%3E');
  await visit.shows('Create a new item');
});

testPage('the documentation can be read without signing in', {
  things: 3, collections: [books], refusals: [401],
}, async (visit) => {
  const { browser, server, shows, text } = visit;
  await browser.open(`${server.url}/#/api/items`);
  await shows('Items: API', 'main');
  assert.equal(await browser.run('return document.querySelector("#sign-in").open'), false);
  // There is no rail yet, and no gap in its place.
  assert.ok(await browser.run('return document.querySelector("main").getBoundingClientRect().left') < 1);
  await browser.click('#listItems summary');
  await browser.click('#listItems .run .primary');
  await shows('401 Unauthorized', '#listItems');
  // The link to its records asks the person to sign in, like every other view.
  await browser.run('document.querySelector("#to-sign-in").click()');
  await browser.until('return document.querySelector("#sign-in[open]")');
  assert.equal(await browser.run('return document.querySelector("main").checkVisibility()'), false);
  await browser.click('#to-guide a');
  await shows('Errors are problem details (RFC 9457)', 'main');
  assert.equal(await browser.run('return document.title'), 'API · Cairn');
  await browser.run('location.hash = "#items/2"');
  await visit.enterCredentials();
  await shows('Thing 2', '#record-title');
  assert.equal(await text('#who bdi'), 'Ada Lovelace');
  assert.equal(await browser.run('return document.querySelector("#to-sign-in").checkVisibility()'), false);
});
