import assert from 'node:assert/strict';
import { join } from 'node:path';
import { defineCollection } from '../../src/index.ts';
import { keys, testPage } from './visit.ts';

/** An existing folder for pictures of all states, for people to look at. */
const folder = process.env['SCREENSHOTS'];

/**
 * Finds texts with a contrast below AA (WCAG 2.2 §1.4.3), control borders below 3:1 (§1.4.11), unnamed controls,
 * scrolling areas that no key reaches, and content wider than the window. Runs in the page.
 */
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
  const ratio = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const wrong = [];
  for (const node of document.body.querySelectorAll('*')) {
    const isControl = node.matches('input, select, button, a');
    if (!node.checkVisibility()) continue;
    const isNamed = node.ariaLabel || node.labels?.length || node.innerText;
    if (isControl && !isNamed) wrong.push('no name: ' + node.outerHTML);
    const words = node.textContent.replace(/[^\\p{L}\\p{N}]+/gu, ' ').trim();
    if (isControl && node.ariaLabel && !node.matches('select') && !node.ariaLabel.includes(words)) {
      wrong.push('a name without its words: ' + node.outerHTML);
    }
    const { color, borderTopColor, borderTopWidth, overflowX } = getComputedStyle(node);
    const scrolls = /auto|scroll/.test(overflowX) && node.scrollWidth > node.clientWidth + 1;
    const focusable = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
    if (scrolls && !node.matches(focusable) && !node.querySelector(focusable)) {
      wrong.push('out of reach of the keyboard: ' + node.outerHTML.slice(0, 80));
    }
    const edge = channels(borderTopColor);
    if (node.matches('input, select') && borderTopWidth !== '0px' && ratio(edge, ground(node.parentElement)) < 3) {
      wrong.push('edge ' + node.outerHTML.slice(0, 80));
    }
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== '');
    const hasText = own || node.matches('input:not([type=checkbox]), select');
    if (node.matches(':disabled') || !hasText) continue;
    const contrast = ratio(channels(color), ground(node));
    if (contrast < 4.5) wrong.push(contrast.toFixed(2) + ' ' + node.outerHTML.slice(0, 80));
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) wrong.push('wider than the window by ' + wide + ' px');
  return wrong;
`;

const parts = ['maker', 'street', 'city', 'country', 'telephone', 'warehouse', 'department', 'responsible'] as const;
const suppliers = defineCollection({
  name: 'suppliers', singular: 'supplier',
  fields: Object.fromEntries(parts.map((part) => [part, { kind: 'text' }] as const)),
  access: { list: 'owner', read: 'owner' },
});
const reviews = defineCollection({
  name: 'reviews', singular: 'review', timestamps: true,
  fields: {
    itemId: { kind: 'reference', to: 'items', onDelete: 'remove' },
    state: { kind: 'choice', values: ['new', 'approved', 'rejected'], default: 'new' },
    stars: { kind: 'integer', min: 1, max: 5 },
    text: { kind: 'text', optional: true },
    isPublic: { kind: 'boolean', default: true },
  },
  access: { replace: 'user', patch: 'user', remove: 'user' },
});
const motto = defineCollection({ name: 'motto', single: true, value: { kind: 'text', multiline: true } });

testPage('the page fits and is readable from 320 to 2,560 px, light and dark', {
  things: 60, people: 30, isNoisy: true, collections: [suppliers, motto, reviews],
}, async ({ browser, server, signIn, visit, fill, shows, idle }) => {
  await server.as('ada', 'POST', '/items', { name: `A name with no end${'!'.repeat(182)}`, price: 1e12 });
  await server.as('ada', 'POST', '/items', { name: 'كرسي خشبي', price: 0 });
  const look = async (name: string): Promise<void> => {
    for (const scheme of ['light', 'dark']) {
      await browser.emulate({ 'prefers-color-scheme': scheme, 'prefers-reduced-motion': 'reduce' });
      for (const [width, height] of [[320, 800], [375, 812], [1280, 800], [2560, 1440]] as const) {
        await browser.resize(width, height);
        if (folder !== undefined) await browser.screenshot(join(folder, `${name}-${width}-${scheme}.png`));
        assert.deepEqual(await browser.run(auditScript), [], `${name}, ${width} px, ${scheme}`);
      }
    }
    await browser.resize(1280, 800);
  };
  await browser.open(server.url);
  await browser.until('return document.querySelector("#sign-in[open]")');
  await look('sign-in');
  assert.match(await browser.run('return document.querySelector("meta[name=description]").content'), /^Looks after/);
  await signIn();
  await look('overview');
  await visit('#/account');
  await look('account');
  await visit('#motto/value');
  await shows('No motto yet.', '#drawer');
  await look('single');
  await visit('#suppliers/new');
  await shows('Only you and administrators see this.', '#drawer');
  await look('private');
  await visit('#suppliers');
  await browser.run('document.querySelector("#import").click()');
  await shows('Import a file', '#import-file');
  await look('wide import');
  await browser.click('#import-file button');
  await visit('#items?sort=-price,name&price:gte=1');
  await browser.click('#add-filter');
  await look('items');
  await browser.click('#who');
  await look('menu');
  await visit('#items?q=zzz');
  await look('nothing');
  await visit('#items?color=red');
  await look('bad-query');
  await visit('#items/9999');
  await look('missing');
  await visit('#users/2');
  await look('user');
  const review = { itemId: 38, stars: 4, text: 'A chair that everyone in the house wants to sit on' };
  for (const state of ['new', 'approved', 'rejected']) await server.as('ada', 'POST', '/reviews', { ...review, state });
  await visit('#/items/38');
  await shows('Open as a list', '.related');
  await look('record');
  await browser.click('.related td.choice button');
  await look('record with an open cell');
  await browser.press(keys.escape);
  await visit('#items/39');
  await fill('name', 'Mine');
  await server.as('ada', 'PATCH', '/items/39', { name: 'Theirs' });
  await browser.click('.record .primary');
  await shows('Theirs', '.dispute');
  await look('conflict');
  await browser.click('#new');
  await shows('Leave without saving?', '#leave');
  await look('question');
  await browser.click('#leave [value=discard]');
  await browser.until('return location.hash.startsWith("#items/new")');
  await fill('price', 'x');
  await browser.click('.record .primary');
  await shows('Name must be filled in.', '.record');
  await look('refused');
  await browser.run('document.querySelector("#import").click()');
  await shows('Import a file', '#import-file');
  await look('import');
  await browser.click('#import-file button');
  await browser.run('document.querySelector("#open-keys").click()');
  await look('keys');
  await browser.click('#keys button');
  await browser.run('window.onbeforeunload = null');
  await browser.open(`${server.url}/#nothing`);
  await idle();
  await look('nowhere');
});

testPage('the actions of a related record are visible and touchable at 390 px', {
  things: 1, collections: [reviews],
}, async ({ browser, server, signIn, shows }) => {
  await server.as('ada', 'POST', '/reviews', { itemId: 1, stars: 4, text: 'A chair that everyone wants to sit on' });
  await browser.resize(390, 844);
  await signIn('#/items/1');
  await shows('Open as a list', '.related');
  const actions: Record<'left' | 'right' | 'width' | 'height', number>[] = await browser.run(`
    return [...document.querySelectorAll('.related .actions > *')].map((at) => at.getBoundingClientRect().toJSON());
  `);
  const card = await browser.run('return document.querySelector(".related .card").getBoundingClientRect().right');
  assert.equal(actions.length, 2);
  // WCAG 2.2 §2.5.8: a target is at least 24 px high and wide.
  for (const { right, width, height } of actions) {
    assert.ok(right <= card - 8, `ends at ${right} px of ${card} px`);
    assert.ok(width >= 24 && height >= 24, `${width} × ${height} px`);
  }
  await browser.resize(1280, 800);
});

testPage('forced colours keep the current view, row and controls distinguishable', {
  things: 3,
}, async ({ browser, signIn }) => {
  await signIn('#items/2');
  await browser.emulate({ 'forced-colors': 'active' });
  const outlined = 'const { outlineStyle, outlineWidth } = getComputedStyle(document.querySelector(arguments[0])); ' +
    'return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2';
  assert.equal(await browser.run(outlined, '#views [aria-current]'), true);
  assert.equal(await browser.run(outlined, 'tr.current'), true);
  assert.equal(await browser.run(outlined, '#views a:not([aria-current])'), false);
});

testPage('a printed list is complete, without controls', { things: 60 }, async ({ browser, signIn }) => {
  await signIn('#items');
  await browser.emulate({}, 'print');
  const visible =
    `return ['#bar', '.toolbar', '.footer', '#list'].filter((at) => document.querySelector(at).checkVisibility())`;
  assert.deepEqual(await browser.run(visible), ['#list']);
  assert.equal(
    await browser.run('const at = document.querySelector("#list"); return at.scrollHeight <= at.clientHeight'),
    true,
  );
  assert.ok(await browser.run('return document.documentElement.scrollHeight') > 1800);
});

testPage('a message does not follow the person to the next view', {
  things: 3,
}, async ({ browser, signIn, fill, says, visit }) => {
  await signIn('#items/1');
  await fill('name', 'Changed');
  await browser.click('.record .primary');
  await says('Saved item 1.');
  await visit('#users');
  await browser.until('return document.querySelector("#status").innerText === ""');
});

/** Counts the page's own files as parsed, and everything that the first list needs as served. */
const ownBytesMax = 190_000;
const servedBytesMax = 130_000;

testPage('the first row is drawn after two round trips and 130 kB as served', {
  things: 60,
}, async ({ browser, server, signIn, idle, t }) => {
  await signIn('#items');
  await browser.devtools('Network.enable');
  await browser.devtools('Network.setCacheDisabled', { cacheDisabled: true });
  server.requests.length = 0;
  await browser.reload();
  await browser.until('return document.querySelector("#list tbody tr")');
  await idle();
  type Timing = Record<'startTime' | 'responseEnd' | 'decodedBodySize' | 'encodedBodySize', number> & { name: string };
  const timings: Timing[] = await browser.run(`
    const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    return entries.map((entry) => entry.toJSON());
  `);
  const isOwn = ({ name }: Timing): boolean => name.includes('/-/page/') || name.startsWith(`${server.url}/#`);
  const bytes = timings.filter(isOwn).reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0);
  const served = timings.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  t.diagnostic(`${bytes} bytes, ${served} as served`);
  const sizes = timings.map(({ name, decodedBodySize, encodedBodySize }) => [name, decodedBodySize, encodedBodySize]);
  const isSmall = bytes > 0 && bytes <= ownBytesMax && served <= servedBytesMax;
  assert.ok(isSmall, `${bytes} bytes, ${served} as served: ${sizes.join()}`);
  // The page; then its modules, style and API description; then the rows and the current user.
  const rows = timings.find(({ name }) => name.includes('/items?'));
  const before = timings.filter(({ responseEnd }) => responseEnd <= (rows?.startTime ?? 0));
  const waits = before.filter(({ name }) => !name.includes('/-/page/') && !name.includes('openapi'));
  assert.deepEqual(waits.map(({ name }) => name.replace(/#.*/, '')), [`${server.url}/`]);
  const repeated = server.requests.filter((line, index) => server.requests.indexOf(line) !== index);
  assert.deepEqual(
    repeated.filter((line) => line !== 'GET /-/page/icon.svg'), [],
    'nothing is asked for twice',
  );
  // The browser fetches the icon for its tab, and the page for its head; no view fetches it again.
  server.requests.length = 0;
  await browser.click('#views a[href="#users"]');
  await idle();
  await browser.click('#views a[href="#items"]');
  await idle();
  assert.deepEqual(server.requests.filter((line) => line.includes('icon.svg')), []);
});
