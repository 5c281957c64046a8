import assert from 'node:assert/strict';
import { changeDescription, hold } from './server.ts';
import { defineCollection } from '../../src/index.ts';
import { waitUntil } from '../../test/support/basics.ts';
import { keys, password, testPage, type Visit } from './visit.ts';

testPage('a wrong password is reported, the right one signs in', { things: 6, refusals: [401] }, async (visit) => {
  const { browser, server, text } = visit;
  await browser.open(server.url);
  await visit.shows('The server showed the first administrator’s e-mail address and password', '#sign-in');
  await browser.type('#email', 'ada@example.org');
  await browser.type('#password', `not the house on the hill${keys.enter}`);
  assert.match(await text('#reason:not(:empty)'), /^Cannot sign in: .*\.$/);
  assert.equal(await browser.run('return document.querySelector("#email").value'), 'ada@example.org');

  await visit.enterCredentials();
  await visit.shows('6', '#home');
  assert.equal((await text('#bar')).replaceAll(/\s+/g, ''), 'CairnOverviewDataItems6' +
    'PeopleUsers2MyaccountAPIkeysDevelopAPISchemaServerStatusAdaLovelaceadmin');
  assert.match(await text('#home'), /Items\s+6\s+Users\s+2/);
  assert.equal(await browser.run('return location.pathname + document.title'), '/Overview · Cairn');
});

testPage('the sign-in leaves the focus where it is', { refusals: [401] }, async ({ browser, server }) => {
  await browser.open(`${server.url}/`);
  await browser.until('return document.querySelector("#sign-in[open]")');
  await browser.type('#password', 'half a pass');
  await browser.run('location.hash = "#items"');
  await browser.run('return new Promise(requestAnimationFrame)');
  assert.equal(await browser.run('return document.activeElement.id'), 'password');
});

testPage('the overview shows administrators the state of the server', {}, async (visit) => {
  const { server, shows } = visit;
  const { data } = await server.as('ada', 'GET', '/status');
  server.double = async (request, forward) => {
    const answer = await forward();
    if (request.url !== '/status') return answer;
    const disk = { freeBytes: 12.4e9, diskBytes: 49.6e9 };
    const full = { ...data, ...disk, memoryBytes: 434_000, state: 'full' };
    return { ...answer, body: JSON.stringify(full) };
  };
  await visit.signIn('#/server');
  const facts = ['434 kB of', 'State\nFull: accepts only removals', 'Disk: 12.4 GB free\n37.2 GB of 49.6 GB'];
  for (const fact of facts) await shows(fact, '#home');
  const shares = await visit.browser.run('return [...document.querySelectorAll("meter")].map(({ value }) => value)');
  assert.equal(shares.length, 3);
  assert.equal(shares[2], 0.75);
});

testPage('the overview hides the state of the server from members', {}, async (visit) => {
  await visit.signIn('', 'grace');
  await visit.shows('Overview', '#home');
  assert.equal(await visit.browser.run('return document.querySelector("#home").innerText.includes("Server")'), false);
  assert.equal(visit.server.requests.includes('GET /status'), false);
});

testPage('other sessions can be ended, one by one and all at once', { refusals: [401] }, async (visit) => {
  const { browser, server, says, shows } = visit;
  await visit.signIn();
  const { cookies: [{ name, value }] } = await browser.devtools('Network.getCookies');
  await browser.forget();
  await visit.signIn('#/account');
  await shows('this one', '#record .rows');
  await browser.click('#record .rows button');
  await says('Revoked the session.');
  await browser.until('return document.querySelector("#record .rows").children.length === 1');
  assert.equal((await fetch(`${server.url}/dashboard`, { headers: { Cookie: `${name}=${value}` } })).status, 401);

  await browser.click('#record .stack > button:last-child');
  await shows('Sign out everywhere?', '#everywhere');
  await browser.press(keys.escape);
  await browser.until('return !document.querySelector("#everywhere").open');
  assert.equal((await server.as('ada', 'GET', '/sessions')).data.length, 1, 'it asks before it signs out');
  await browser.click('#record .stack > button:last-child');
  await browser.click('#everywhere [value=end]');
  await shows('All your sessions have ended.', '#sign-in');
  assert.deepEqual((await server.as('ada', 'GET', '/sessions')).data, []);
});

testPage('an administrator sees and ends the sessions of another user', {}, async (visit) => {
  const { browser, server, says, shows } = visit;
  const login = JSON.stringify({ email: 'grace@example.org', password: 'the house on the hill' });
  const headers = { 'Content-Type': 'application/json', 'User-Agent': 'Firefox/140.0' };
  await fetch(`${server.url}/login`, { method: 'POST', headers, body: login });
  await visit.signIn('#users/2');
  await shows('Firefox/140', '#drawer .rows');
  await browser.click('#drawer .rows button');
  await says('Revoked the session.');
  assert.deepEqual((await server.as('grace', 'GET', '/sessions')).data, []);
});

testPage('signing out leaves no data of the person, not even behind the back button', { things: 3 }, async (visit) => {
  const { browser, server, shows } = visit;
  await visit.signIn('#items');
  await shows('Thing 2');
  await browser.click('#who');
  await browser.click('#sign-out');
  await shows('You have signed out.', '#sign-in');
  assert.equal(await browser.run('return location.pathname + location.hash'), '/');
  assert.deepEqual((await server.as('ada', 'GET', '/sessions')).data, []);
  await browser.back();
  await shows('Sign in to Cairn', '#sign-in');
  assert.equal(await browser.run('return document.documentElement.outerHTML.includes("Thing")'), false);
  await browser.open(`${server.url}/`);
  await shows('Sign in to Cairn', '#sign-in');
  assert.equal(await browser.run('return location.pathname'), '/');
});

testPage('a tab notices when another one signs out or signs in as another user', {
  things: 1, refusals: [403, 409],
}, async (visit) => {
  const { browser, server, shows, idle } = visit;
  await visit.signIn('#items');
  const first = await browser.openTab();
  await browser.open(`${server.url}/`);
  await shows('Ada Lovelace', '#who');
  await browser.click('#who');
  await browser.click('#sign-out');
  await shows('You have signed out.', '#sign-in');
  await browser.closeTab(first);
  const use = 'dispatchEvent(new Event("focus"))';
  await browser.run(use);
  await shows('Your session has ended.', '#sign-in');

  // A sign-in of the same person elsewhere is enough; another person's needs a confirmation.
  const login = (who: string): Promise<unknown> => browser.run(`return fetch('login', {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: arguments[0],
  }).then(() => ${use})`, JSON.stringify({ email: `${who}@example.org`, password: 'the house on the hill' }));
  await login('ada');
  await browser.until('return !document.querySelector("#sign-in").open');
  await idle();
  await login('grace');
  await shows('Someone else has signed in', '#other-user[open]');
  await browser.click('#other-user .primary');
  await shows('Grace Hopper', '#who');
});

testPage('a member is not offered operations of administrators', { things: 2 }, async (visit) => {
  const { browser, server, shows, idle } = visit;
  server.double = changeDescription((document) => {
    document.paths['/items'].post['x-access'] = 'admin';
  });
  await visit.signIn('', 'grace');
  const views = 'return [...document.querySelectorAll("#views a")].map((at) => at.hash)';
  assert.deepEqual(await browser.run(views), ['#/', '#items', '#/account', '#/keys', '#/api', '#/schema']);
  assert.equal(await browser.run('return document.querySelector("#home").innerText.includes("Users")'), false);
  await visit.visit('#items');
  assert.equal(await browser.run('return document.querySelector("#new")'), null);
  await visit.visit('#/account');
  assert.equal(await visit.value('name'), 'Grace Hopper');
  assert.equal(await browser.run('return document.querySelector("#field-role")'), null);
  await browser.type('#field-name', 'Rear Admiral Hopper');
  await browser.click('.record .primary');
  await visit.says('Saved user 2.');
  await shows('Rear Admiral Hopper', '#who');
  await idle();
});

testPage('a member changes and removes records of their own', { things: 2 }, async (visit) => {
  const { browser, server, shows } = visit;
  await server.as('grace', 'POST', '/items', { name: 'Of Grace', price: 3 });
  await visit.signIn('#items/1', 'grace');
  await shows('Only the person who created this item and administrators can change this.', '#drawer');
  assert.equal(await browser.run('return document.querySelector("#drawer input")'), null);
  assert.equal(await browser.run('return document.querySelector("#list input")'), null);
  await visit.visit('#items/3');
  await browser.until('return document.querySelector("#drawer input")');
  await browser.click('#add-filter');
  await browser.click('#filter-mine');
  await browser.until('return document.querySelectorAll("#list tbody tr").length === 1');
  assert.equal(await browser.run('return document.querySelectorAll("#list input").length'), 2);
});

testPage('changing a password needs the current one', { refusals: [422] }, async (visit) => {
  const { browser, server, shows, says } = visit;
  const own = { name: 'The script', currentPassword: 'the house on the hill' };
  const { data: { key } } = await server.as('grace', 'POST', '/keys', own);
  await visit.signIn('#/account', 'grace');
  await browser.until('return document.querySelector("#change-password")');
  await browser.click('#change-password');
  await shows('At least 15 characters.', '#new-password');
  await browser.type('#new-password [name=currentPassword]', 'not the house on the hill');
  await browser.type('#new-password [name=password]', 'another house on a hill');
  await browser.click('#new-password .primary');
  await shows('Current password is wrong.', '#new-password');
  assert.equal(await browser.run('return document.activeElement.name'), 'currentPassword');
  await browser.type('#new-password [name=currentPassword]', 'the house on the hill');
  await browser.click('#new-password [name=keepKeys]');
  await browser.click('#new-password .primary');
  await says('Changed your password.');
  const typed = 'return [...document.querySelectorAll("#new-password input")].map((at) => at.value)';
  assert.deepEqual(await browser.run(typed), ['', '', 'on'], 'no password stays in the form');
  const byKey = await fetch(`${server.url}/items`, { headers: { Authorization: `Bearer ${key}` } });
  assert.equal(byKey.status, 200, 'keys are kept on demand');
  const body = JSON.stringify({ email: 'grace@example.org', password: 'another house on a hill' });
  const login = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body };
  assert.equal((await fetch(`${server.url}/login`, login)).status, 200);
  await visit.visit('#items');
  await shows('There are no items yet');
});

testPage('with --auth none there is no sign-in and everyone is an administrator', {
  auth: 'none', things: 1,
}, async (visit) => {
  const { browser, server, idle, says } = visit;
  await browser.open(`${server.url}/#items`);
  await idle();
  assert.equal(await visit.text('#title'), 'Items');
  await browser.click('#who');
  const menu =
    'return [...document.querySelectorAll("#menu > *")].filter((at) => at.checkVisibility()).map((at) => at.innerText)';
  assert.deepEqual(await browser.run(menu), ['Go to…\nCtrl K', 'Keyboard shortcuts']);
  await browser.press(keys.escape);
  await browser.click('#new');
  await visit.fill('name', 'Lamp');
  await visit.fill('price', '5');
  await browser.click('.record .primary');
  await says('Created item 2.');
  await visit.visit('#users');
  await visit.shows('Grace Hopper', '#list');
});

testPage('over plain HTTP from the network the page says why no one can sign in there', {
  browser: { arguments: ['--host-resolver-rules=MAP appliance.test 127.0.0.1'] }, isNoisy: true,
}, async ({ browser, server, shows }) => {
  await browser.open(`http://appliance.test:${server.port}/`);
  const page: string = await browser.until(
    'return document.querySelector("#insecure").checkVisibility() && document.body.innerText');
  assert.match(page, /You cannot sign in over this connection\./);
  assert.ok(page.includes(`ssh -L 3000:localhost:${server.port} appliance.test`));
  assert.equal(await browser.run('return document.querySelector("#password").checkVisibility()'), false);
  // Everything that needs no password can be read there.
  await browser.click('#to-guide a');
  await shows('Errors are problem details (RFC 9457)', 'main');
});

testPage('over plain HTTP from the network, records of a shared server are created and changed', {
  browser: { arguments: ['--host-resolver-rules=MAP appliance.local 127.0.0.1'] }, auth: 'none', share: true,
  isNoisy: true,
}, async (visit) => {
  const { browser, server, says } = visit;
  await browser.open(`http://appliance.local:${server.port}/#items/new`);
  await visit.fill('name', 'Lamp');
  await visit.fill('price', '5');
  await browser.click('.record .primary');
  await says('Created');
  await visit.visit('#items/1');
  await visit.fill('price', '6');
  await browser.click('.record .primary');
  await says('Saved');
  await visit.visit('#/api/items/listItems');
  await browser.until('return [...document.querySelectorAll("#listItems button")].find((at) => at.innerText === "Copy")');
  await browser.run(
    '[...document.querySelectorAll("#listItems button")].find((at) => at.innerText === "Copy").click()',
  );
  await says('Select the text and copy it.');
});

testPage('a browser that refuses the cookie gets a message after the right password', {
  browser: { preferences: { profile: { default_content_setting_values: { cookies: 2 } } } }, isNoisy: true,
}, async (visit) => {
  await visit.browser.open(visit.server.url);
  await visit.enterCredentials();
  await visit.shows('this browser did not keep the session cookie', '#sign-in');
});

testPage('stored markup is shown as text', {}, async (visit) => {
  const { browser, server, shows } = visit;
  const name = '<img src=x onerror="document.title = \'owned\'">';
  await server.as('ada', 'POST', '/items', { name, price: 1 });
  await server.as('ada', 'PATCH', '/users/1', { name });
  await visit.signIn();
  await shows(name, '#who');
  await visit.visit('#items/1');
  await shows(name, '#list');
  assert.equal(await browser.run('return document.querySelectorAll("img").length'), 2);
  await browser.until('return document.title === arguments[0]', `${name} · Items · Cairn`);
  assert.equal(await browser.run(`
    try { document.body.innerHTML = '<b>markup</b>'; return 'made'; } catch (error) { return error.name; }
  `), 'TypeError');
  await browser.log();
});

testPage('the page reconnects to a restarted server by itself', { things: 3, isNoisy: true }, async (visit) => {
  const { browser, server, shows } = visit;
  await visit.signIn('#items');
  await server.stop();
  await browser.click('#sort-name');
  await shows('The server did not answer. Check your network.', '#list-problem');
  await shows('Thing 2', '#list');
  await server.restart();
  await browser.letTimePass();
  await browser.until('return !document.querySelector("#list-problem")');
  assert.equal(await visit.hash(), '#items?sort=name');

  await server.stop();
  await browser.run('document.querySelector("#refresh").click()');
  await shows('The server did not answer.', '#list-problem');
  await server.restart();
  await browser.click('#retry');
  await browser.until('return !document.querySelector("#list-problem")');

  // The same holds for a page that could not start.
  let isAway = true;
  server.double = async (request, forward) => (isAway && request.url === '/openapi.json' ? undefined : forward());
  await browser.reload();
  await shows('The page tries again by itself.', '#failure');
  isAway = false;
  await browser.letTimePass();
  await browser.until('return !document.querySelector("#failure").innerText && document.querySelector("#list tr")');
});

testPage('with open registration, the sign-in offers a new account', {
  registration: 'open', refusals: [422],
}, async (visit) => {
  const { browser, server, shows } = visit;
  await browser.open(`${server.url}/`);
  await shows('Signing in for the first time?', '#sign-in');
  await browser.click('#register');
  await browser.type('#new-name', 'Emmy Noether');
  await browser.type('#email', 'emmy@example.org');
  await browser.type('#password', 'short');
  await browser.click('#enter');
  await shows('Password must be at least', '#reason');
  await browser.type('#password', password);
  await browser.click('#enter');
  await shows('Emmy Noether', '#who');
  // A user who has signed in with this browser gets no first-time advice.
  await visit.browser.devtools('Network.clearBrowserCookies');
  await browser.reload();
  await browser.until('return document.querySelector("#sign-in[open]")');
  assert.equal(await browser.run('return document.querySelector("#sign-in").innerText.includes("first time")'), false);
});

testPage('without open registration, the sign-in offers no new account', {}, async (visit) => {
  const { browser, server, shows } = visit;
  await browser.open(`${server.url}/`);
  await shows('Sign in to Cairn', '#sign-in');
  await browser.until('return document.readyState === "complete"');
  assert.equal(await browser.run('return document.querySelector("#register").checkVisibility()'), false);
});

testPage('the browser’s view of the network does not matter while the server responds', {
  things: 3, isNoisy: true,
}, async (visit) => {
  const { browser, server, shows } = visit;
  await browser.devtools('Page.addScriptToEvaluateOnNewDocument', {
    source: 'Object.defineProperty(navigator, "onLine", { get: () => false })',
  });
  await visit.signIn('#items');
  const asked = (): number => server.requests.filter((line) => line === 'GET /livez').length;
  await browser.run('window.dispatchEvent(new Event("offline"))');
  for (let turn = 0; asked() === 0 && turn < 500; turn += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(asked(), 1, 'the page asks the server');
  await browser.run('return new Promise(requestAnimationFrame)');
  assert.equal(await browser.run('return document.querySelector("#failure").innerText'), '');
  await server.stop();
  await browser.run('window.dispatchEvent(new Event("offline"))');
  await shows('The server did not answer. Check your network. The page tries again by itself.', '#failure');
  await server.restart();
  await browser.letTimePass();
  await browser.until('return !document.querySelector("#failure").innerText');
});

testPage('a new email address asks for the current password', {}, async (visit) => {
  const { browser, fill } = visit;
  await visit.signIn('#/account');
  await visit.value('email');
  const isAsked = 'return !!document.querySelector("#field-currentPassword")';
  assert.equal(await browser.run(isAsked), false);
  await fill('email', 'countess@example.org');
  await browser.until(isAsked);
  await fill('email', 'ada@example.org');
  await browser.until('return !document.querySelector("#field-currentPassword")');
});

testPage('API keys are created, shown once and ended', { refusals: [403, 422] }, async (visit) => {
  const { browser, server, says, shows } = visit;
  await visit.signIn('#/keys');
  await browser.click('#make-key');
  await browser.type('#new-key [name=name]', 'The script');
  await browser.type('#new-key [name=currentPassword]', password);
  await browser.click('#new-key [name=readOnly]');
  await browser.click('#new-key .primary');
  await shows('This key is shown once.', '#home');
  const key: string = await browser.run('return document.querySelector("#home .note code").innerText');
  assert.match(key, /^cairn_[\w-]{43}$/);
  const call = async (): Promise<number> =>
    (await fetch(`${server.url}/items`, { headers: { Authorization: `Bearer ${key}` } })).status;
  assert.equal(await call(), 200);
  await visit.visit('#/');
  await visit.visit('#/keys');
  await shows('The script read-only', '#home');
  const isLast = 'return document.querySelector("#home .rows button").matches("li > :last-child")';
  assert.equal(await browser.run(isLast), true);
  assert.equal(await browser.run('return document.querySelector("#home").innerText.includes("cairn_")'), false);
  await browser.click('#make-key');
  await browser.type('#new-key [name=name]', 'Another');
  await browser.type('#new-key [name=currentPassword]', password);
  await browser.click('#new-key .primary');
  await shows('This key is shown once.', '#home');
  await browser.click('[aria-label="Revoke the key The script"]');
  await says('Revoked the key The script.');
  assert.equal(await call(), 401);
  // It stays until it is stored.
  await shows('This key is shown once.', '#home');
});

testPage('a new key is shown even if the list of keys cannot be read', { isNoisy: true }, async (visit) => {
  const { browser, server, shows } = visit;
  await visit.signIn('#/keys');
  server.double = async (request, forward) => (request.method === 'GET' ? undefined : forward());
  await browser.click('#make-key');
  await browser.type('#new-key [name=name]', 'The script');
  await browser.type('#new-key [name=currentPassword]', password);
  await browser.click('#new-key .primary');
  await shows('cairn_', '#home .note');
  assert.equal(await browser.run('return document.querySelector("#new-key").open'), false);
  assert.equal((await server.as('ada', 'GET', '/keys')).data.length, 1);
});

testPage('a password that was changed is not asked for again if the sessions cannot be read', {
  isNoisy: true,
}, async (visit) => {
  const { browser, server } = visit;
  await visit.signIn('#/account');
  await browser.until('return document.querySelector("#change-password")');
  server.double = async (request, forward) => (request.method === 'GET' ? undefined : forward());
  await browser.click('#change-password');
  await browser.type('#new-password [name=currentPassword]', password);
  await browser.type('#new-password [name=password]', 'another house on a hill');
  await browser.click('#new-password .primary');
  await visit.says('Changed your password.');
  await browser.until('return !document.querySelector("#new-password").open');
});

testPage('the sessions of a user who was left do not replace those of the next one', {}, async (visit) => {
  const { browser, server, shows } = visit;
  const release = hold(server, '/sessions?userId=2');
  await visit.signIn('#users/2');
  await waitUntil(() => server.requests.includes('GET /sessions?userId=2'), 'the sessions are not read');
  await visit.visit('#users/1');
  await shows('this one', '#drawer .rows');
  release();
  await browser.until('return performance.getEntriesByName(`${origin}/sessions?userId=2`).length > 0');
  await browser.run('return new Promise(requestAnimationFrame)');
  await shows('this one', '#drawer .rows');
});

const diaries = defineCollection({
  name: 'secret-diaries', singular: 'diary', fields: { text: { kind: 'text' } },
  access: { list: 'owner', read: 'owner' },
});

/** Returns the texts that remain in the document, in inputs, or in any object or closure of the page. */
async function leftBehind({ browser }: Visit, texts: readonly string[]): Promise<string[]> {
  const { result } = await browser.devtools('Runtime.evaluate', { expression: 'Object.prototype' });
  // The driver itself only holds elements of earlier steps, under the numbers before this one.
  const [, scope, last] = /^(.*\.)(\d+)$/.exec(result.objectId) ?? [];
  for (let n = 1; n < Number(last); n += 1) {
    await browser.devtools('Runtime.releaseObject', { objectId: `${scope}${n}` }).catch(() => undefined);
  }
  // All objects that are alive after a garbage collection, even records that only a closure holds.
  const { objects } = await browser.devtools('Runtime.queryObjects', { prototypeObjectId: result.objectId });
  const search = `function (texts) {
    const found = new Set();
    const look = (value) => {
      if (typeof value === 'string') for (const text of texts) if (value.includes(text)) found.add(text);
    };
    for (const object of this) {
      if (object === this || object === texts) continue;
      for (const { value } of Object.values(Object.getOwnPropertyDescriptors(object))) look(value);
      if (object instanceof Map || object instanceof Set) for (const [key, value] of object.entries()) look(key), look(value);
    }
    look(document.documentElement.outerHTML);
    for (const ranges of CSS.highlights.values()) for (const { startContainer } of ranges) look(startContainer.data);
    for (const { value } of document.querySelectorAll('input, textarea, select, output')) look(value);
    return texts.filter((text) => found.has(text));
  }`;
  const { result: answer } = await browser.devtools('Runtime.callFunctionOn', {
    objectId: objects.objectId, functionDeclaration: search, arguments: [{ value: texts }], returnByValue: true,
  });
  await browser.devtools('Runtime.releaseObject', { objectId: objects.objectId });
  return answer.value;
}

testPage('nothing about a person who signed out remains in the page', {
  things: 3, collections: [diaries],
}, async (visit) => {
  const { browser, server, shows } = visit;
  await server.as('ada', 'POST', '/secret-diaries', { text: 'Dear diary' });
  await server.as('ada', 'PATCH', '/users/1', { name: 'Augusta Byron' });
  await visit.signIn('#secret-diaries');
  await browser.run('window.isSame = true');
  await shows('Dear diary', '#list');
  await browser.click('#list th a');
  await visit.value('text');
  assert.deepEqual(await leftBehind(visit, ['Dear diary']), ['Dear diary']);
  await visit.visit('#/api/items/createItems');
  await visit.visit('#/keys');
  await browser.click('#make-key');
  await browser.type('#new-key [name=name]', 'The script');
  await browser.type('#new-key [name=currentPassword]', password);
  await browser.click('#new-key .primary');
  await shows('cairn_', '#home');
  const key: string = await browser.run('return document.querySelector("#home .note code").innerText');
  const ofKeys = [key, 'The script'];
  assert.deepEqual(await leftBehind(visit, ofKeys), ofKeys);
  await visit.visit('#items');
  await browser.click('[aria-label="Select Thing 1"]');
  // It matches, so that its words are highlighted.
  await browser.type('#search', 'tHing 1');
  await browser.until('return CSS.highlights.get("match").size > 0');
  const ticked = 'return [...document.querySelectorAll("input")].filter((at) => at.checked !== at.defaultChecked).length';
  assert.notEqual(await browser.run(ticked), 0);
  const ofLists = ['Thing 1', 'Augusta Byron', 'tHing 1'];
  assert.deepEqual(await leftBehind(visit, ofLists), ofLists);
  const texts = ['Dear diary', ...ofKeys, ...ofLists];
  await browser.click('#who');
  await browser.click('#sign-out');
  await shows('You have signed out.', '#sign-in');
  assert.deepEqual(await leftBehind(visit, texts), []);
  assert.equal(await browser.run(ticked), 0);
  assert.equal(await browser.run('return document.querySelector("#email").value'), '');
  await visit.enterCredentials('grace');
  await shows('Grace Hopper', '#who');
  await visit.visit('#secret-diaries');
  await shows('There are no secret diaries yet', '#list');
  const others = texts.filter((text) => text !== 'Thing 1');
  assert.deepEqual(await leftBehind(visit, others), []);
  assert.equal(await browser.run('return window.isSame'), true);
});

testPage('the list shows its own records after a visit to the account', {
  collections: [diaries],
}, async (visit) => {
  const { browser, server } = visit;
  await server.as('ada', 'POST', '/secret-diaries', { text: 'Dear diary' });
  await visit.signIn('#secret-diaries');
  await visit.visit('#/account');
  await browser.until('return document.querySelector("#field-name")?.value === "Ada Lovelace"');
  await browser.back();
  await visit.idle();
  assert.match(await visit.text('#list tbody'), /Dear diary/);
});

for (const basePath of ['', '/cairn']) testPage(`an invited user chooses a password at ${basePath}/`, {
  basePath,
}, async (visit) => {
  const { browser, server, shows } = visit;
  await server.as('ada', 'POST', '/users', { name: 'Alan', email: 'alan@example.org' });
  await visit.signIn('#users/3');
  await browser.until(
    'return [...document.querySelectorAll("#record form button")].some((at) => at.innerText.startsWith("Invite"))',
  );
  await browser.run(
    '[...document.querySelectorAll("#record form button")].find((at) => at.innerText.startsWith("Invite")).click()',
  );
  await shows('/#/invite/', '#record');
  const url: string = await browser.run('return document.querySelector("#record .note code").innerText');
  await browser.run('[...document.querySelectorAll("#record .note button")][1].click()');
  await browser.until('return !document.querySelector("#record .note")');
  await browser.devtools('Network.clearBrowserCookies');
  assert.match(url, new RegExp(`:\\d+${basePath}/#/invite/`));
  // In the same tab, where only the fragment changes.
  await browser.open(url);
  await shows('At least 15 characters.', '#invitation[open]');
  assert.equal(await browser.run('return location.hash'), '');
  await browser.type('#invitation [name=password]', password);
  await browser.click('#invitation .primary');
  await shows('Your password is set.', '#reason');
  await browser.type('#email', 'alan@example.org');
  await browser.type('#password', password);
  await browser.click('#enter');
  await shows('Alan', '#who');
});
