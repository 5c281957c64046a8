import assert from 'node:assert/strict';
import { testPage } from './visit.ts';

const writes = (requests: readonly string[]): string[] => requests.filter((line) => !line.startsWith('GET'));
/** Replaces the session of the browser, as another tab does, without telling this one. */
const loginScript = `return fetch('login', {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: arguments[0],
}).then(({ status }) => status)`;
const grace = JSON.stringify({ email: 'grace@example.org', password: 'the house on the hill' });

testPage('nothing is written under an identity other than the one shown', {
  things: 2, refusals: [409],
}, async (visit) => {
  const { browser, server, shows, fill } = visit;
  await visit.signIn('#items/1');
  await fill('name', 'Of Ada');
  assert.equal(await browser.run(loginScript, grace), 200);
  await browser.click('.record .primary');
  await shows('Someone else has signed in', '#other-user[open]');
  assert.equal((await server.as('ada', 'GET', '/items/1')).data.name, 'Thing 1');
  // The typed text can still be copied; a second attempt asks again.
  await browser.click('#other-user button');
  assert.equal(await visit.value('name'), 'Of Ada');
  await browser.click('.record .primary');
  await shows('Someone else has signed in', '#other-user[open]');
  assert.equal((await server.as('ada', 'GET', '/items/1')).data.name, 'Thing 1');
  await browser.run('window.onbeforeunload = null');
  await browser.click('#other-user .primary');
  await shows('Grace Hopper', '#who');
});

testPage('a tab reports that another one has signed in as someone else', {
  things: 2, refusals: [409],
}, async (visit) => {
  const { browser, server, shows } = visit;
  await visit.signIn('#items');
  const first = await browser.openTab();
  await visit.browser.open(`${server.url}/#items`);
  await shows('Ada Lovelace', '#who');
  await browser.click('#who');
  await browser.click('#sign-out');
  await visit.enterCredentials('grace');
  await shows('Grace Hopper', '#who');
  server.requests.length = 0;
  await browser.switchTo(first);
  await shows('Someone else has signed in', '#other-user[open]');
  assert.deepEqual(writes(server.requests), []);
});

testPage('a pending removal ends with the session', { things: 3 }, async (visit) => {
  const { browser, server, shows } = visit;
  await visit.signIn('#items/2');
  await browser.until('return document.querySelector("#drawer .danger")');
  await browser.click('#drawer .danger');
  await visit.says('Removing 1 item');
  await browser.click('#who');
  await browser.click('#sign-out');
  await shows('You have signed out. Nothing that was about to be removed was removed: 1 item.', '#sign-in');
  assert.deepEqual(writes(server.requests).filter((line) => line.startsWith('DELETE')), []);
  assert.equal(await browser.run('return document.querySelector("#removals").children.length'), 0);
  await visit.enterCredentials('grace');
  await shows('Grace Hopper', '#who');
  assert.equal((await server.as('ada', 'GET', '/items/2')).status, 200);
});
