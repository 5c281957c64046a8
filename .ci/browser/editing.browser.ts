import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineCollection } from '../../src/index.ts';
import { forwardRequest } from './server.ts';
import { keys, password, testPage, type Visit } from './visit.ts';

const stored = async ({ server }: Visit, id: number) => (await server.as('ada', 'GET', `/items/${id}`)).data;
const save = ({ browser }: Visit): Promise<void> => browser.click('.record .primary');

testPage('an item is created, shown, changed and removed', { things: 2 }, async (visit) => {
  const { browser, server, fill, text, says, idle, hash, column } = visit;
  await visit.signIn('#items');
  await browser.click('#new');
  await fill('name', 'Reading lamp');
  await fill('price', '24.5');
  await save(visit);
  await says('Created item 3.');
  assert.equal(await hash(), '#items/3');
  assert.equal(await text('#record-kind'), 'Item 3');
  await browser.until('return document.querySelector("tr.current")?.innerText.includes("Reading lamp")');
  assert.deepEqual(await column(2), ['Thing 1', 'Thing 2', 'Reading lamp']);

  await fill('price', '30');
  await visit.shows('1 unsaved change', '.record');
  await save(visit);
  await says('Saved item 3.');
  assert.deepEqual(await stored(visit, 3), { id: 3, name: 'Reading lamp', price: 30 });
  assert.deepEqual(await column(3), ['1.25', '2.50', '30.00'], 'the points of a column stand below each other');

  await browser.click('#drawer .danger');
  await says('Removing 1 item');
  await idle();
  assert.equal(await hash(), '#items');
  assert.deepEqual(await column(2), ['Thing 1', 'Thing 2']);
  assert.equal((await server.as('ada', 'GET', '/items/3')).status, 200, 'it can still be undone');
  await browser.letTimePass();
  await says('Removed 1 item.');
  assert.equal((await server.as('ada', 'GET', '/items/3')).status, 404);
});

testPage('searching, filtering, sorting, paging and refreshing keep the input', { things: 60 }, async (visit) => {
  const { browser, fill, value, idle, hash } = visit;
  await visit.signIn('#items/7');
  await fill('name', 'Half a na');
  await browser.click('#sort-price');
  await browser.until('return location.hash.includes("sort=price")');
  await idle();
  assert.equal(await value('name'), 'Half a na');
  await browser.click('#page-next');
  await browser.until('return document.querySelector("#range")?.innerText === "51–60 of 60"');
  assert.equal(await value('name'), 'Half a na');
  await browser.type('#search', 'Thing 1');
  await browser.until('return location.hash.includes("q=Thing+1")');
  await idle();
  await visit.filterBy('Price', 'at least');
  await browser.type('#filter-value input', '10');
  await browser.click('#filter .primary');
  await browser.until('return location.hash.includes("price%3Agte=10")');
  await idle();
  await browser.run('document.querySelector("#refresh").click()');
  await idle();
  assert.match(await hash(), /^#items\/7\?/);
  assert.equal(await value('name'), 'Half a na');
  await save(visit);
  await visit.says('Saved item 7.');
  assert.equal((await stored(visit, 7)).name, 'Half a na');
});

testPage('a control keeps focus and selection while the page is drawn', { things: 3 }, async (visit) => {
  const { browser, fill, idle } = visit;
  await visit.signIn('#items/2');
  await fill('name', 'Thing two');
  const place = `
    const at = document.querySelector('#field-name');
    return [document.activeElement === at, at.selectionStart, at.selectionEnd];
  `;
  await browser.run('document.querySelector("#field-name").setSelectionRange(2, 5)');
  await browser.run('document.querySelector("#refresh").click()');
  await idle();
  assert.deepEqual(await browser.run(place), [true, 2, 5]);
});

testPage('leaving a changed form always asks first', { things: 3 }, async (visit) => {
  const { browser, fill, value, hash } = visit;
  await visit.signIn('#items');
  await browser.click('#open-2');
  await browser.until('return document.querySelector("#field-name")');
  await fill('name', 'Unsaved');
  const question = 'return document.querySelector("#leave").open && document.querySelector("#leave").innerText';
  const stay = async (): Promise<void> => {
    assert.match(await browser.until(question), /What you typed for item 2 is not saved\./);
    await browser.click('#leave button');
    await browser.until('return !document.querySelector("#leave").open');
    assert.equal(await hash(), '#items/2');
    assert.equal(await value('name'), 'Unsaved');
  };
  const ways: readonly (() => Promise<void>)[] = [
    () => browser.click('#views a[href="#users"]'), () => browser.click('#open-3'), () => browser.click('#new'),
    () => browser.click('#close'), () => browser.back(), () => browser.press(keys.escape),
    () => browser.run('location.hash = "#/"'),
    async () => {
      await browser.click('#who');
      await browser.click('#sign-out');
    },
  ];
  for (const leave of ways) {
    await leave();
    await stay();
  }
  await browser.click('#views a[href="#users"]');
  await browser.until(question);
  await browser.click('#leave [value=discard]');
  await browser.until('return location.hash === "#users" && document.querySelector("#title")?.innerText === "Users"');
  assert.equal((await stored(visit, 2)).name, 'Thing 2');

  await visit.visit('#items/3');
  await fill('name', 'Saved on the way');
  await browser.click('#close');
  await browser.until(question);
  await browser.click('#leave [value=save]');
  await browser.until('return location.hash === "#items"');
  assert.equal((await stored(visit, 3)).name, 'Saved on the way');

  await browser.click('#new');
  await fill('name', 'New');
  assert.equal(await browser.run(`
    const event = new Event('beforeunload', { cancelable: true });
    dispatchEvent(event);
    return event.defaultPrevented;
  `), true, 'closing the tab asks too');
});

testPage('the end of the session opens the sign-in above the view, and the request continues', {
  things: 3, refusals: [401],
}, async (visit) => {
  const { browser, server, fill, value } = visit;
  await visit.signIn('#items/2');
  await fill('price', '77');
  const [session] = (await server.as('ada', 'GET', '/sessions')).data;
  await server.as('ada', 'DELETE', `/sessions/${session.id}`);
  await save(visit);
  await visit.shows('Your session has ended. Sign in again to continue', '#sign-in');
  assert.equal(await browser.run('return document.querySelector("#email").value'), 'ada@example.org');
  assert.equal(await visit.focused(), 'Password');
  assert.equal(await value('price'), '77');
  await browser.press(keys.escape);
  assert.equal(await browser.run('return document.querySelector("#sign-in").open'), true);
  await browser.press(password + keys.enter);
  await visit.says('Saved item 2.');
  assert.equal((await stored(visit, 2)).price, 77);
  assert.equal(await visit.hash(), '#items/2');
});

testPage('when another user signs in there, the request is not sent as that user', {
  things: 3, refusals: [401],
}, async (visit) => {
  const { browser, server, fill } = visit;
  await visit.signIn('#items/2');
  await fill('price', '77');
  const [session] = (await server.as('ada', 'GET', '/sessions')).data;
  await server.as('ada', 'DELETE', `/sessions/${session.id}`);
  await save(visit);
  await visit.shows('Your session has ended.', '#sign-in');
  await browser.run('window.onbeforeunload = null');
  await visit.enterCredentials('grace');
  await browser.until('return document.querySelector("#who").innerText.includes("Grace Hopper")');
  assert.equal((await stored(visit, 2)).price, 2.5);
});

testPage('a refused field shows its problem next to the control and keeps the input', {
  refusals: [409, 422],
}, async (visit) => {
  const { browser, fill, value } = visit;
  await visit.signIn('#items/new');
  await fill('name', 'n'.repeat(201));
  await fill('price', '2000000000000');
  await save(visit);
  await browser.until('return document.querySelectorAll("[aria-invalid=true]").length === 2');
  assert.equal(await visit.focused(), 'Name');
  const described = 'return document.getElementById(document.activeElement.getAttribute("aria-describedby")).innerText';
  assert.equal(await browser.run(described), 'Name must be at most 200 characters long.');
  assert.equal(await value('price'), '2000000000000');
  await fill('name', '   ');
  await save(visit);
  await visit.shows('Name must have at least one visible character.');
  await browser.run('document.querySelector("#close").click()');
  await browser.click('#leave [value=discard]');
  await browser.until('return location.hash === "#items"');

  // The form also shows errors that only the server can find.
  await visit.visit('#users/new');
  await fill('name', 'Another Grace');
  await fill('email', 'GRACE@example.org');
  await save(visit);
  await visit.shows('another user has this e-mail address', '.record');
  assert.equal(await value('name'), 'Another Grace');
});

testPage('after a lost response, a change can be retried whether it was made or not', {
  things: 2, isNoisy: true,
}, async (visit) => {
  const { server, fill, value } = visit;
  await visit.signIn('#items/2');
  // The change arrives, but its response is lost.
  server.double = async (request, forward) => {
    const answer = await forward();
    return request.method === 'PATCH' ? undefined : answer;
  };
  await fill('price', '8');
  await save(visit);
  await visit.shows('It is not known whether the change was made.', '.record');
  assert.equal(await value('price'), '8');
  assert.equal(await visit.text('.record .primary'), 'Try again');
  server.double = forwardRequest;
  await save(visit);
  await visit.says('Saved item 2.');
  assert.equal((await stored(visit, 2)).price, 8);
  await visit.browser.until('return !document.querySelector(".record .primary")');

  // The change does not arrive.
  server.double = async (request, forward) => (request.method === 'PATCH' ? undefined : forward());
  await fill('price', '9');
  await save(visit);
  await visit.shows('It is not known whether the change was made.', '.record');
  assert.equal(await value('price'), '9');
  server.double = forwardRequest;
  await save(visit);
  await visit.browser.until('return !document.querySelector(".record .primary")');
  assert.equal((await stored(visit, 2)).price, 9);
});

testPage('after a lost response, a create can be retried', { things: 2, isNoisy: true }, async (visit) => {
  const { server, fill } = visit;
  await visit.signIn('#items/new');
  server.double = async (request, forward) => {
    const answer = await forward();
    return request.method === 'POST' ? undefined : answer;
  };
  await fill('name', 'Only once');
  await fill('price', '5');
  await save(visit);
  await visit.shows('It is not known whether the change was made.', '.record');
  assert.equal(await visit.text('.record .primary'), 'Try again');
  assert.equal(await visit.value('name'), 'Only once');
  // A retry is harmless: the key is the same, and so is the response.
  server.double = forwardRequest;
  await save(visit);
  await visit.says('Created item 3.');
  assert.equal((await server.as('ada', 'GET', '/items?name=Only%20once')).data.length, 1);
});

testPage('a create is repeated with the same key', { isNoisy: true }, async (visit) => {
  const { browser, server, fill } = visit;
  const sent: string[] = [];
  server.double = async (request, forward) => {
    if (request.method !== 'POST' || request.url !== '/items') return forward();
    sent.push(String(request.headers['idempotency-key']));
    return sent.length < 3 ? undefined : forward();
  };
  await visit.signIn('#items/new');
  await fill('name', 'Lamp');
  await fill('price', '5');
  for (let attempt = 1; attempt < 3; attempt += 1) {
    await save(visit);
    await browser.until('return document.querySelector(".record .error").innerText.includes("not known")');
    while (sent.length < attempt) await sleep(10);
  }
  assert.equal(sent[0], sent[1]);
  assert.match(sent[0] ?? '', /^"\d+(?:-\d+){3}"$/);
  await fill('price', '6');
  await save(visit);
  await visit.says('Created item 1.');
  assert.notEqual(sent[2], sent[1], 'another body has another key');
});

testPage('Escape during a create loses nothing', {}, async (visit) => {
  const { browser, server, fill } = visit;
  await visit.signIn('#items/new');
  let go = (): void => {};
  server.double = async (request, forward) => {
    if (request.method === 'POST') await new Promise<void>((resolve) => (go = resolve));
    return forward();
  };
  await fill('name', 'Slow');
  await fill('price', '1');
  await save(visit);
  await browser.until('return document.querySelector(".record[aria-busy=true]")');
  await browser.press(keys.escape);
  await save(visit);
  assert.equal(await visit.value('name'), 'Slow');
  go();
  await visit.says('Created item 1.');
  assert.equal((await server.as('ada', 'GET', '/items')).data.length, 1);
});

testPage('changes by two people to different fields are merged', {
  things: 2, refusals: [412],
}, async (visit) => {
  const { server, fill, value } = visit;
  await visit.signIn('#items/2');
  await fill('name', 'Mine');
  await server.as('ada', 'PATCH', '/items/2', { price: 99 });
  await save(visit);
  await visit.says('Saved. Someone else had changed price; that was kept.');
  assert.deepEqual(await stored(visit, 2), { id: 2, name: 'Mine', price: 99 });
  assert.equal(await value('price'), '99');
  assert.deepEqual(await visit.column(3), ['1.25', '99.00']);
});

testPage('a field that two people changed is asked about', {
  things: 2, refusals: [412],
}, async (visit) => {
  const { browser, server, fill, value, text } = visit;
  await visit.signIn('#items/2');
  await fill('name', 'Mine');
  await server.as('ada', 'PATCH', '/items/2', { name: 'Theirs', price: 99 });
  await save(visit);
  assert.equal(
    (await text('.dispute')).replaceAll(/\s+/g, ' '),
    'Before Thing 2 Theirs Theirs Mine Mine Keep mine Take theirs',
  );
  assert.match(await text('.record .foot .error'), /^Not saved yet: someone else has changed the same field\./);
  assert.equal(await value('name'), 'Mine');
  assert.equal(await value('price'), '99', 'what only they changed is taken');
  assert.deepEqual(await stored(visit, 2), { id: 2, name: 'Theirs', price: 99 });
  // Until the person has decided, nothing is saved, however often they try and whatever else changes.
  await server.as('ada', 'PATCH', '/items/2', { price: 98 });
  await save(visit);
  await visit.shows('Not saved yet: someone else', '.record .foot .error');
  assert.deepEqual(await stored(visit, 2), { id: 2, name: 'Theirs', price: 98 });
  // Keeping your own values replaces only the version that you have seen.
  await browser.click('.dispute button');
  await server.as('ada', 'PATCH', '/items/2', { price: 100 });
  await save(visit);
  await visit.says('Saved. Someone else had changed price; that was kept.');
  assert.deepEqual(await stored(visit, 2), { id: 2, name: 'Mine', price: 100 });

  await fill('price', '1');
  await server.as('ada', 'PATCH', '/items/2', { price: 2 });
  await save(visit);
  await text('.dispute');
  await browser.click('.dispute button + button');
  await browser.until('return document.querySelector("#field-price").value === "2"');
  await save(visit);
  await browser.until('return !document.querySelector(".dispute")');
  assert.deepEqual(await stored(visit, 2), { id: 2, name: 'Mine', price: 2 });
});

testPage('a form keeps its input when someone else removes the record', {
  things: 2, refusals: [404],
}, async (visit) => {
  const { browser, server, fill, value } = visit;
  await visit.signIn('#items/2');
  await fill('name', 'Still here');
  await server.as('ada', 'DELETE', '/items/2');
  await save(visit);
  await visit.shows('no record has this id', '.record');
  assert.equal(await value('name'), 'Still here');
  // The typed values can create the record again.
  await browser.click('.record .primary');
  await visit.says('Created item 3.');
  assert.deepEqual(await stored(visit, 3), { id: 3, name: 'Still here', price: 2.5 });
});

testPage('"12,50" is never 1250', { things: 1 }, async (visit) => {
  const { fill } = visit;
  await visit.signIn('#items/1');
  await fill('price', '12,50');
  await save(visit);
  await visit.shows('Price must be a number such as 1250.5.', '.record');
  await fill('price', '1,250');
  await save(visit);
  await visit.shows('Price must be a number such as 1250.5.', '.record');
  await fill('price', '12.50');
  await save(visit);
  await visit.says('Saved item 1.');
  assert.equal((await stored(visit, 1)).price, 12.5);
});

const german = { arguments: ['--lang=de-DE', '--accept-lang=de-DE'] };
testPage('numbers and times use the reader\'s format', {
  things: 1, browser: german,
}, async (visit) => {
  const { browser, fill, value } = visit;
  await visit.signIn('#items/1');
  assert.equal(await value('price'), '1,25');
  await fill('price', '12,50');
  await save(visit);
  await visit.says('Saved item 1.');
  assert.equal((await stored(visit, 1)).price, 12.5);
  assert.deepEqual(await visit.column(3), ['12,5']);
  await fill('price', '12.50');
  await save(visit);
  await visit.shows('Price must be a number such as 1250,5.', '.record');
  await browser.run('window.onbeforeunload = null');
});

const notes = defineCollection({
  name: 'notes', singular: 'note', fields: { title: { kind: 'text', min: 1 }, body: { kind: 'text', max: 5000 } },
});
testPage('a session that ends during a create sends it after the sign-in', {
  refusals: [401], collections: [notes],
}, async (visit) => {
  const { server, fill } = visit;
  await visit.signIn('#notes/new');
  await fill('title', 'Kept');
  await fill('body', 'A long text that took half an hour to write.');
  const [session] = (await server.as('ada', 'GET', '/sessions')).data;
  await server.as('ada', 'DELETE', `/sessions/${session.id}`);
  await save(visit);
  await visit.enterCredentials();
  await visit.says('Created note 1.');
  const { data } = await server.as('ada', 'GET', '/notes/1');
  assert.deepEqual(data, { id: 1, title: 'Kept', body: 'A long text that took half an hour to write.' });
});
