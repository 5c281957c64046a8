import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test as defineTest, type TestContext } from 'node:test';
import { password, serve, type TestServer } from './server.ts';
import { Browser, browserIsThere, keys } from './webdriver.ts';

const skip = browserIsThere ? false : 'there is no chromium and chromedriver on this machine';
let browser: Browser;

before(async () => {
  if (browserIsThere) browser = await Browser.start();
});
after(() => browser?.stop());

interface Setting {
  readonly auth?: 'none';
  readonly people?: number;
  readonly things?: number;
  /** What the server is to refuse in this test: the browser itself writes a line about each such answer. */
  readonly refusals?: readonly number[];
}

/** A test with a server and a browser window of its own, in which nothing may be written to the console. */
function test(title: string, setting: Setting, run: (server: TestServer, t: TestContext) => Promise<void>): void {
  defineTest(title, { skip }, async (t) => {
    const server = await serve(t, setting);
    await browser.forget();
    await run(server, t);
    const refused = (setting.refusals ?? []).map((status) => `the server responded with a status of ${status}`);
    const lines = (await browser.log()).filter(({ level, source, message }) => level !== 'DEBUG' &&
      !(source === 'network' && refused.some((text) => message.includes(text))));
    assert.deepEqual(lines, []);
  });
}

async function signIn(server: TestServer, view = '', email = 'ada@example.org'): Promise<void> {
  await browser.open(`${server.url}/${view}`);
  await browser.type('input[name=email]', email);
  await browser.type('input[name=password]', password);
  await browser.click('.card .primary');
  await browser.until('return document.querySelector("#bar:not([hidden])")');
  await idle();
}

const idle = (): Promise<unknown> =>
  browser.until('return document.querySelector("h1") && !document.querySelector("[aria-busy=true]")');
const text = (selector: string): Promise<string> =>
  browser.until('return document.querySelector(arguments[0])?.innerText', selector);
/** The first cells of a column, top to bottom. */
const column = (index: number): Promise<string[]> => browser.run(
  'return [...document.querySelectorAll(`tbody tr > :nth-child(${arguments[0]})`)].map((at) => at.innerText)', index,
);
const shows = (words: string): Promise<unknown> => browser.until(
  'return document.querySelector("main")?.innerText.includes(arguments[0])', words,
);
/** Waits until the status line says this. */
const says = (words: string): Promise<unknown> => browser.until(
  'return document.querySelector("#status")?.innerText.includes(arguments[0])', words,
);
const hash = (): Promise<string> => browser.run('return location.hash');
const focused = (): Promise<string> =>
  browser.run('const at = document.activeElement; return at.ariaLabel || at.labels?.[0]?.innerText || at.innerText');

test('a wrong password is told, the right one lets in', { things: 6, refusals: [401] }, async (server) => {
  await browser.open(server.url);
  await browser.type('input[name=email]', 'ada@example.org');
  await browser.type('input[name=password]', 'not the house on the hill');
  await browser.click('.card .primary');
  assert.match(await text('.card [role=alert].error'), /^Cannot sign in: .*\.$/);
  assert.equal(await browser.run('return document.querySelector("input[name=email]").value'), 'ada@example.org');

  await browser.type('input[name=password]', password);
  await browser.click('.card .primary');
  await shows('Newest items');
  const page = await text('main');
  assert.match(page, /You are Ada Lovelace \(ada@example\.org\), admin\./);
  assert.match(page, /6\nitems\n2\nusers\n1\nsession\n/);
  assert.match(page, /Thing 6\s+7\.50\s+Item 6\s+Thing 5\s+6\.25/);
  assert.doesNotMatch(page, /Thing 1/);
  assert.match(page, /Chrome on \w+\s+this one/);
  assert.equal(await browser.run('return location.pathname + document.title'), '/dashboardOverview · Cairn');
});

test('an item is created, edited in place and removed', { things: 2 }, async (server) => {
  await signIn(server, '#items');
  await browser.click('#new');
  await browser.type('input[name=name]', 'Reading lamp');
  await browser.type('input[name=price]', '24.5');
  await browser.click('.inline .primary');
  await says('Created item 3, “Reading lamp”.');
  assert.deepEqual(await column(2), ['Thing 1', 'Thing 2', 'Reading lamp']);
  assert.deepEqual(await column(3), ['1.25', '2.50', '24.50']);

  await browser.click('#Edit-3');
  await browser.type('tbody input[name=price]', '30');
  await browser.click('tbody .primary');
  await says('Saved item 3.');
  assert.equal(await focused(), 'Edit Reading lamp');
  assert.deepEqual((await server.as('ada', 'GET', '/items/3')).data, { id: 3, name: 'Reading lamp', price: 30 });

  await browser.click('#Remove-3');
  assert.match(await text('dialog'), /Remove item 3\?\s+Name\s+Reading lamp\s+Price\s+30/);
  assert.equal(await focused(), 'Keep it');
  await browser.press(keys.escape);
  assert.equal((await server.as('ada', 'GET', '/items/3')).status, 200);
  await browser.click('#Remove-3');
  await browser.click('dialog .danger');
  await says('Removed item 3, “Reading lamp”.');
  assert.deepEqual(await column(2), ['Thing 1', 'Thing 2']);
  assert.equal((await server.as('ada', 'GET', '/items/3')).status, 404);
});

test('a refused field is told beside its control, and what was typed stays', { refusals: [422] }, async (server) => {
  await signIn(server, '#items');
  await shows('There are no items yet.');
  await browser.click('section button');
  await browser.type('input[name=name]', 'n'.repeat(201));
  await browser.type('input[name=price]', '2000000000000');
  await browser.click('.inline .primary');
  await browser.until('return document.querySelectorAll("[aria-invalid=true]").length === 2');
  assert.match(await text('.inline'), /Name must .*\. *\s+Price\s+Price must /);
  assert.equal(await focused(), 'Name');
  const described = 'return document.getElementById(document.activeElement.getAttribute("aria-describedby")).innerText';
  assert.match(await browser.run(described), /^Name must /);
  assert.equal(await browser.run('return document.querySelector("input[name=price]").value'), '2000000000000');
});

test('lists are sorted, filtered and paged by the address, so reload and back work', { things: 60 }, async (server) => {
  await signIn(server, '#items');
  assert.match(await text('.pager'), /^1–25 of 60\b/);
  await browser.click('#sort-price');
  await browser.until('return location.hash === "#items?sort=price"');
  await idle();
  await browser.click('#sort-price');
  await browser.until('return location.hash === "#items?sort=-price"');
  await idle();
  assert.equal(await browser.run('return document.querySelector("[aria-sort]").ariaSort'), 'descending');
  assert.equal((await column(2))[0], 'Thing 60');

  await browser.click('#page-next');
  await browser.until('return document.querySelector(".pager").innerText.startsWith("26–50 of 60")');
  assert.equal((await column(2))[0], 'Thing 35');
  assert.equal(await focused(), 'Next');
  await browser.reload();
  await browser.until('return document.querySelector(".pager")?.innerText.startsWith("26–50 of 60")');
  await browser.click('#page-next');
  await browser.until('return document.querySelector(".pager").innerText.startsWith("51–60 of 60")');
  assert.equal(await browser.run('return document.querySelector("#page-next").disabled'), true);
  await browser.click('#page-previous');
  await browser.until('return document.querySelector(".pager").innerText.startsWith("26–50 of 60")');
  await browser.click('#page-first');
  await browser.until('return document.querySelector(".pager").innerText.startsWith("1–25 of 60")');

  await browser.type('input[name="name:contains"]', 'Thing 5');
  await browser.until('return document.querySelector(".pager").innerText.startsWith("1–11 of 11")');
  assert.equal(await hash(), '#items?sort=-price&name%3Acontains=Thing+5');
  assert.equal(await focused(), 'Name contains');
  await browser.type('input[name="price:lte"]', '64');
  await browser.until('return document.querySelector(".pager").innerText.startsWith("1–3 of 3")');
  assert.deepEqual(await column(2), ['Thing 51', 'Thing 50', 'Thing 5']);
  await browser.reload();
  await browser.until('return document.querySelector(".pager")?.innerText.startsWith("1–3 of 3")');
  assert.equal(await browser.run('return document.querySelector("input[name=\'price:lte\']").value'), '64');
  await browser.type('input[name="price:gte"]', '63.9');
  await shows('No items match this filter.');
  await browser.click('.notice button');
  await browser.until('return document.querySelector(".pager")?.innerText.startsWith("1–25 of 60")');
  assert.equal(await hash(), '#items?sort=-price');
  await browser.back();
  await shows('No items match this filter.');
});

test('a lost update shows both versions, and the person chooses', { things: 3, refusals: [412] }, async (server) => {
  await signIn(server, '#items');
  const conflict = async (id: number): Promise<void> => {
    await browser.click(`#Edit-${id}`);
    await browser.until('return document.querySelector("tbody input[name=name]")');
    await server.as('ada', 'PATCH', `/items/${id}`, { price: 99 });
    await browser.type('tbody input[name=name]', `Mine ${id}`);
    await browser.click('tbody .primary');
    const shown = `Field Yours Theirs Name Mine ${id} Thing ${id} Price ${id * 1.25} 99`;
    assert.equal((await text('dialog table')).replaceAll(/\s+/g, ' '), shown);
    assert.equal(await focused(), 'Go on editing');
  };
  const stored = async (id: number) => (await server.as('ada', 'GET', `/items/${id}`)).data;

  await conflict(1);
  await browser.click('dialog [value=theirs]');
  await browser.until('return !document.querySelector("dialog, tbody form")');
  assert.deepEqual(await stored(1), { id: 1, name: 'Thing 1', price: 99 });
  assert.match(await text('#row-1'), /Thing 1\s+99/);

  await conflict(2);
  await browser.click('dialog [value=mine]');
  await says('Saved item 2.');
  assert.deepEqual(await stored(2), { id: 2, name: 'Mine 2', price: 2.5 });

  await conflict(3);
  await browser.press(keys.escape);
  await browser.until('return !document.querySelector("dialog")');
  assert.equal(await browser.run('return document.querySelector("tbody input[name=name]").value'), 'Mine 3');
  assert.deepEqual(await stored(3), { id: 3, name: 'Thing 3', price: 99 });

  await browser.click('#Remove-1');
  await browser.until('return document.querySelector("dialog")');
  await server.as('ada', 'PATCH', '/items/1', { name: 'Not what you saw' });
  await browser.click('dialog .danger');
  await browser.until('return document.querySelector("dialog")?.innerText.includes("look again")');
  assert.match(await text('dialog'), /Not what you saw/);
  await browser.click('dialog .danger');
  await says('Removed item 1');
});

const endedElsewhere = 'a session that was ended elsewhere asks for a new sign-in, and leads back';
test(endedElsewhere, { things: 30, refusals: [401] }, async (server) => {
  await signIn(server, '#items?sort=-price');
  await browser.click('#Edit-30');
  await browser.until('return document.querySelector("tbody form")');
  const [session] = (await server.as('ada', 'GET', '/sessions')).data;
  assert.equal((await server.as('ada', 'DELETE', `/sessions/${session.id}`)).status, 204);
  await browser.type('tbody input[name=price]', '3');
  await browser.click('tbody .primary');
  await shows('Your session has ended. Sign in again to go on.');
  assert.equal(await browser.run('return document.body.innerText.includes("Thing")'), false);
  assert.equal(await focused(), 'Email');
  await browser.type('input[name=email]', 'ada@example.org');
  await browser.type('input[name=password]', password);
  await browser.click('.card .primary');
  await browser.until('return document.querySelector(".pager")?.innerText.startsWith("1–25 of 30")');
  assert.equal(await hash(), '#items?sort=-price');
});

test('other sessions can be ended, one by one and all at once', { refusals: [401] }, async (server) => {
  await signIn(server);
  const cookie = await browser.devtools('Network.getCookies');
  await browser.forget();
  await signIn(server);
  await shows('2\nsessions');
  await browser.click('.rows .quiet');
  await says('The session has ended.');
  await shows('1\nsession\n');
  assert.equal(await browser.run('return document.querySelectorAll(".rows .quiet").length'), 0);
  const { name, value } = cookie.cookies[0];
  assert.equal((await fetch(`${server.url}/dashboard`, { headers: { Cookie: `${name}=${value}` } })).status, 401);
  await browser.click('.halves section:last-child > button');
  await shows('All your sessions have ended.');
  assert.deepEqual((await server.as('ada', 'GET', '/sessions')).data, []);
});

test('after signing out nothing of the person is left, not even behind "back"', { things: 3 }, async (server) => {
  await signIn(server);
  await browser.click('a[href="#items"]');
  await shows('Thing 2');
  await browser.click('#sign-out');
  await shows('You have signed out.');
  assert.equal(await browser.run('return location.pathname + location.hash'), '/');
  assert.deepEqual((await server.as('ada', 'GET', '/sessions')).data, []);
  await browser.back();
  await shows('Sign in to Cairn');
  assert.equal(await browser.run('return document.body.innerText.includes("Thing")'), false);
  await browser.open(`${server.url}/dashboard`);
  await shows('Sign in to Cairn');
  assert.equal(await browser.run('return location.pathname'), '/');
});

test('stored markup stays text', {}, async (server) => {
  const name = '<img src=x onerror="document.title = \'owned\'">';
  await server.as('ada', 'POST', '/items', { name, price: 1 });
  await server.as('ada', 'PATCH', '/users/1', { name });
  await signIn(server);
  assert.ok((await text('.rows')).includes(name));
  assert.ok((await text('.who')).includes(name));
  await browser.click('a[href="#items"]');
  await shows(name);
  await browser.click('#Remove-1');
  await browser.until('return document.querySelector("dialog")');
  assert.ok((await text('dialog')).includes(name));
  assert.equal(await browser.run('return document.querySelectorAll("img").length'), 1);
  assert.equal(await browser.run('return document.title'), 'Items · Cairn');
  assert.equal(await browser.run(`
    try { document.body.innerHTML = '<b>markup</b>'; return 'made'; } catch (error) { return error.name; }
  `), 'TypeError');
  await browser.log();
});

test('everything can be done by keyboard alone', { things: 2 }, async (server) => {
  await browser.open(server.url);
  await browser.until('return document.activeElement.name === "email"');
  await browser.press(`ada@example.org${keys.tab}${password}${keys.enter}`);
  await shows('Newest items');
  const tabTo = async (label: string, held?: string): Promise<void> => {
    for (let step = 0; step < 40; step++) {
      await browser.press(keys.tab, held);
      if (await focused() === label) return;
    }
    assert.fail(`Tab does not lead to ${label}`);
  };
  await tabTo('Skip to the content', keys.shift);
  await tabTo('Items');
  await browser.press(keys.enter);
  await idle();
  assert.equal(await focused(), 'Items');
  await tabTo('New item');
  await browser.press(keys.enter);
  assert.equal(await focused(), 'Name');
  await browser.press(`By keyboard${keys.tab}5${keys.enter}`);
  await says('Created item 3');
  assert.equal(await focused(), 'New item');
  await tabTo('Price');
  await tabTo('Edit By keyboard');
  await browser.press(keys.enter);
  await browser.until('return document.querySelector("tbody input") === document.activeElement');
  await browser.press(`${keys.escape}`);
  assert.equal(await focused(), 'Edit By keyboard');
  await tabTo('Remove By keyboard');
  await browser.press(keys.enter);
  await browser.until('return document.querySelector("dialog")');
  await browser.press(keys.tab + keys.enter);
  await says('Removed item 3');
  await tabTo('Sign out', keys.shift);
  await browser.press(keys.enter);
  await shows('You have signed out.');
  assert.equal(await focused(), 'Email');
});

test('an administrator sees users and changes roles', { people: 3, refusals: [409] }, async (server) => {
  await signIn(server, '#users');
  assert.deepEqual((await column(4)).slice(0, 3), ['admin', 'member', 'member']);
  await browser.click('#Edit-3');
  await browser.until('return document.querySelector("tbody select")');
  await browser.run(`document.querySelector("tbody select").value = 'admin'`);
  await browser.click('tbody .primary');
  await says('Saved user 3.');
  assert.equal((await server.as('ada', 'GET', '/users/3')).data.role, 'admin');
  await browser.run(`
    const role = document.querySelector('.filters select');
    role.value = 'admin';
    role.dispatchEvent(new Event('input', { bubbles: true }));
  `);
  await browser.until('return document.querySelector(".pager").innerText.startsWith("1–2 of 2")');
  await browser.click('#new');
  await browser.type('.inline input[name=name]', 'Another Grace');
  await browser.type('.inline input[name=email]', 'GRACE@example.org');
  await browser.click('.inline .primary');
  await shows('another one has this e-mail address');
});

test('a member sees no users, and keeps their own profile and password', { refusals: [422] }, async (server) => {
  await signIn(server, '#users', 'grace@example.org');
  await shows('Save profile');
  assert.equal(await browser.run('return document.querySelector("nav a[href=\'#users\']").hidden'), true);
  await browser.type('input[name=name]', 'Rear Admiral Hopper');
  await browser.click('section:first-child .primary');
  await says('Your profile is saved.');
  assert.equal((await server.as('grace', 'GET', '/users/2')).data.name, 'Rear Admiral Hopper');
  // That someone else changes the record does not stand in the way of a new password.
  await server.as('ada', 'PATCH', '/users/2', { name: 'Grace' });

  const changePassword = async (current: string): Promise<void> => {
    await browser.type('input[name=currentPassword]', current);
    await browser.type('input[name=password]', 'another house on a hill');
    await browser.click('section:last-child .primary');
  };
  await changePassword('not the house on the hill');
  await shows('Current password must be the current password.');
  await changePassword(password);
  await says('The password is changed.');
  const body = JSON.stringify({ email: 'grace@example.org', password: 'another house on a hill' });
  const login = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body };
  assert.equal((await fetch(`${server.url}/login`, login)).status, 200);
  await browser.click('a[href="#overview"]');
  await shows('Newest items');
});

test("a change of another's item is refused in words, and stays typed", { things: 1, refusals: [403] }, async (
  server,
) => {
  await signIn(server, '#items', 'grace@example.org');
  await browser.click('#Edit-1');
  await browser.type('tbody input[name=price]', '7');
  await browser.click('tbody .primary');
  assert.match(await text('tbody [role=alert]'), /^Cannot .+\.$/);
  assert.equal(await browser.run('return document.querySelector("tbody input[name=price]").value'), '7');
});

test('under --auth none nobody is asked to sign in, and there are records alone', { auth: 'none', things: 1 }, async (
  server,
) => {
  await browser.open(`${server.url}/`);
  await idle();
  assert.equal(await text('h1'), 'Items');
  assert.deepEqual(await browser.run('return [...document.querySelectorAll("#bar :is(nav a, button)")]' +
    '.filter((at) => at.checkVisibility()).map((at) => at.innerText)'), ['Items', 'Users']);
  await browser.click('#new');
  await browser.type('form.inline input[name=name]', 'Lamp');
  await browser.type('form.inline input[name=price]', '5');
  await browser.click('form.inline .primary');
  await says('Created item 2');
  await browser.open(`${server.url}/#users`);
  await browser.until('return document.querySelector("h1")?.innerText === "Users"');
  await shows('Grace Hopper');
});

test('a server out of reach is told, with a way to go on', { things: 3 }, async (server) => {
  await signIn(server, '#items');
  await browser.setOffline(true);
  await browser.click('#sort-name');
  await shows('The server did not answer. Check your network');
  await browser.setOffline(false);
  await shows('1–3 of 3');
  await browser.click('#Edit-1');
  await browser.until('return document.querySelector("tbody form")');
  await browser.type('tbody input[name=price]', '8');
  await browser.setOffline(true);
  await browser.click('tbody .primary');
  await shows('Whether the change was made is not known');
  await browser.setOffline(false);
  await browser.click('tbody .primary');
  await says('Saved item 1.');

  await browser.block('*/dashboard');
  await browser.open('about:blank');
  await browser.open(`${server.url}/#items`);
  await shows('The server did not answer.');
  await browser.block();
  await browser.click('main button');
  await shows('1–3 of 3');
  await browser.log();
});

defineTest('over plain HTTP from the network the page says why no one can sign in there', { skip }, async (t) => {
  const server = await serve(t);
  const away = await Browser.start({ arguments: ['--host-resolver-rules=MAP appliance.test 127.0.0.1'] });
  t.after(() => away.stop());
  await away.open(`http://appliance.test:${server.port}/`);
  const page: string = await away.until('return document.querySelector(".card li") && document.body.innerText');
  assert.match(page, /You cannot sign in over this connection\./);
  assert.ok(page.includes(`ssh -L 3000:localhost:${server.port} appliance.test`));
  assert.equal(await away.run('return document.querySelectorAll("input").length'), 0);
});

defineTest('where the browser does not keep the cookie, the page says so after a good sign-in', { skip }, async (t) => {
  const server = await serve(t);
  const wary = await Browser.start({ preferences: { profile: { default_content_setting_values: { cookies: 2 } } } });
  t.after(() => wary.stop());
  await wary.open(server.url);
  await wary.type('input[name=email]', 'ada@example.org');
  await wary.type('input[name=password]', password);
  await wary.click('.card .primary');
  await wary.until('return document.body.innerText.includes("this browser did not keep the session cookie")');
});

/** Every text whose contrast is below AA (WCAG 2.2 §1.4.3), and every control without a name; run in the page. */
const auditScript = `
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color[3] !== 0) return color;
    }
    return [255, 255, 255];
  };
  const wrong = [];
  for (const node of document.body.querySelectorAll('*')) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== '');
    if (node.matches('input, select, button, a') && node.checkVisibility() &&
        !(node.ariaLabel || node.labels?.length || node.innerText)) wrong.push('no name: ' + node.outerHTML);
    const shown = node.checkVisibility() && !node.matches(':disabled, .unseen');
    if (!shown || !own && !node.matches('input, select')) continue;
    const [light, dark] = [luminance(channels(getComputedStyle(node).color)), luminance(ground(node))]
      .sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) wrong.push(ratio.toFixed(2) + ' ' + node.outerHTML.slice(0, 80));
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) wrong.push('wider than the window by ' + wide + ' px');
  return wrong;
`;

test('it is readable and fits, from 320 to 2,560 px, light and dark', { things: 40, people: 30 }, async (server, t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cairn-screenshots-'));
  t.diagnostic(`screenshots are in ${folder}`);
  await server.as('ada', 'POST', '/items', { name: `A name with no end${'!'.repeat(182)}`, price: 1e12 });
  const look = async (name: string): Promise<void> => {
    for (const scheme of ['light', 'dark']) {
      await browser.emulate({ 'prefers-color-scheme': scheme, 'prefers-reduced-motion': 'reduce' });
      for (const [width, height] of [[320, 800], [1280, 800], [2560, 1440]] as const) {
        await browser.resize(width, height);
        await browser.screenshot(join(folder, `${name}-${width}-${scheme}.png`));
        assert.deepEqual(await browser.run(auditScript), [], `${name}, ${width} px, ${scheme}`);
      }
    }
  };
  await browser.open(server.url);
  await browser.until('return document.querySelector("input")');
  await look('sign-in');
  await signIn(server);
  await look('overview');
  for (const view of ['items', 'users', 'account']) {
    await browser.open(`${server.url}/dashboard#${view}`);
    await browser.until('return location.hash === arguments[0]', `#${view}`);
    await idle();
    await look(view);
  }
  await browser.open(`${server.url}/dashboard#items?sort=-price`);
  await idle();
  await browser.click('#new');
  await browser.click('#Edit-39');
  await browser.until('return document.querySelector("tbody form")');
  await look('editing');
  await browser.type('tbody input[name=name]', 'Mine');
  await server.as('ada', 'PATCH', '/items/39', { name: 'Theirs' });
  await browser.click('tbody .primary');
  await browser.until('return document.querySelector("dialog")');
  await look('conflict');
  await browser.log();
});
