import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { password, testPage } from './visit.ts';

testPage('the rule of a password is shown in advance', { refusals: [422] }, async (visit) => {
  const { browser, fill, shows, text } = visit;
  await visit.signIn('#users/new');
  await browser.until('return document.querySelector("#field-password")');
  assert.equal(await text('#field-password-hint'), 'At least 15 characters.');
  const described = 'return document.querySelector("#field-password").getAttribute("aria-describedby")';
  assert.equal(await browser.run(described), 'field-password-hint');
  await fill('name', 'Radia');
  await fill('email', 'radia@example.org');
  await fill('password', 'too short');
  await browser.click('.record .primary');
  await shows('15 characters', '#field-password-hint.error');
});

testPage('listed sessions exist', {
  refusals: [404],
}, async (visit) => {
  const { browser, server, says } = visit;
  const signInElsewhere = async (): Promise<string> => {
    const headers = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
    const body = JSON.stringify({ email: 'ada@example.org', password });
    const { headers: answered } = await fetch(`${server.url}/login`, { method: 'POST', headers, body });
    return answered.getSetCookie()[0]?.split(';')[0] ?? '';
  };
  const signOutElsewhere = async (Cookie: string): Promise<void> => {
    const headers = { Cookie, 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
    const { ok } = await fetch(`${server.url}/logout`, { method: 'POST', headers, body: '{}' });
    assert.ok(ok);
  };
  const [one, other] = [await signInElsewhere(), await signInElsewhere()];
  await signOutElsewhere(one);
  await visit.signIn('#/account');
  const listed = 'return document.querySelector("#record .rows")?.children.length';
  await browser.until(`${listed.replace('return', 'return 2 ===')}`);
  const { data } = await server.as('ada', 'GET', '/sessions');
  assert.equal(await browser.run(listed), data.length);
  await signOutElsewhere(other);
  server.requests.length = 0;
  await browser.click('#record .rows button');
  await says('Revoked the session.');
  await browser.until(`${listed.replace('return', 'return 1 ===')}`);
  assert.deepEqual(server.requests.map((line) => line.split(' ')[0]), ['DELETE', 'GET', 'GET']);
});

testPage('an error page of a proxy is recognised', { things: 3, refusals: [502] }, async (visit) => {
  const { browser, server, shows, text } = visit;
  await visit.signIn('#items');
  server.double = async () => ({
    status: 502, headers: { 'content-type': 'text/html' }, body: '<html><h1>502 Bad Gateway</h1><hr>nginx</html>',
  });
  await browser.run('document.querySelector("#refresh").click()');
  await shows('Something between this page and the server answered instead (502).', '#list-problem');
  assert.equal((await text('#list-problem p')).includes('<'), false);
  assert.equal(await browser.run('return document.querySelectorAll("#list tbody tr").length'), 3, 'the rows stay');
  server.double = (_request, forward) => forward();
  await browser.letTimePass();
  await browser.until('return !document.querySelector("#list-problem")');
});

testPage('a bug in the page does not show a raw error', { things: 3, isNoisy: true }, async (visit) => {
  const { browser, server, shows } = visit;
  await visit.signIn('#items');
  server.double = async (request, forward) =>
    request.url?.startsWith('/items?')
      ? { status: 200, headers: { 'content-type': 'application/json' }, body: 'null' }
      : forward();
  await browser.run('document.querySelector("#csv").click()');
  await shows('Something went wrong in this page. Reload it.', '#news');
  assert.equal(await browser.run('return /TypeError|null|undefined/.test(document.body.innerText)'), false);
});

testPage('without sign-in there is no account', { auth: 'none' }, async (visit) => {
  const { browser, server, idle, shows } = visit;
  await browser.open(`${server.url}/#/account`);
  await idle();
  await shows('There is nothing at this address', '#home');
  assert.equal(await browser.run('return document.querySelector("#drawer")'), null);
  await browser.click('#home a');
  await shows('Overview', '#home h1');
});

const reviews = defineCollection({
  name: 'reviews',
  singular: 'review',
  fields: {
    title: { kind: 'text', min: 1, max: 100 },
    itemId: { kind: 'reference', to: 'items' },
    isPublic: { kind: 'boolean' },
    relatedIds: { kind: 'list', of: { kind: 'reference', to: 'items' } },
  },
});

testPage('chips show names and words, not ids and codes', { things: 3, collections: [reviews] }, async (visit) => {
  const { browser, server, text } = visit;
  const review = { title: 'Bright', itemId: 2, isPublic: false, relatedIds: [1, 3] };
  await server.as('ada', 'POST', '/reviews', review);
  await visit.signIn('#reviews?itemId=2&isPublic=false&relatedIds:has=3');
  await browser.until('return document.querySelector("#chips").innerText.includes("Thing 3")');
  assert.equal((await text('#chips')).replaceAll(/\s+/g, ' '),
    'Item is Thing 2 × Is public is No × Related has Thing 3 × Save this view');
  const pills = 'return [...document.querySelectorAll("#list .pill")].map((at) => at.innerText)';
  assert.deepEqual(await browser.run(pills), ['Thing 1', 'Thing 3'], 'in the list, too');
});
