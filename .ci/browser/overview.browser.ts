import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { testPage } from './visit.ts';

testPage('the overview shows the last hour as charts', {
  things: 6, hasFeed: true,
}, async (visit) => {
  const { browser, server, shows, text } = visit;
  const now = Date.UTC(2026, 0, 31, 12);
  server.double = async (request, forward) => {
    if (request.url !== '/status') return forward();
    delete request.headers['accept-encoding'];
    const answer = await forward();
    const minutes = Array.from({ length: 60 }, (_, index) => ({
      at: new Date(now + index * 60_000).toISOString(),
      requests: index * 100, p99Ms: 2.5, writes: index, failedSignIns: index === 3 ? 12 : 0, records: 1000 + index,
    }));
    const status = { ...JSON.parse(String(answer.body)), minutes, freeBytes: 5e8 };
    return { ...answer, body: JSON.stringify(status) };
  };
  await visit.signIn();
  await browser.until('return document.querySelectorAll("#home svg").length === 3');
  assert.equal((await text('.tiles')).replaceAll(/\s+/g, ' ').trim(),
    'Requests a minute 5,800 Slowest 1 % of answers 2.5 ms Changes a minute 58');
  const points = 'return document.querySelector("#home svg path + path").getAttribute("d").split("L").length';
  assert.equal(await browser.run(points), 59, 'the current minute is not complete');
  await shows('The disk has only 500 MB free.', '#home');
  await shows('12 sign-ins were refused in the last hour.', '#home');
  // Simultaneous changes of one kind share a line.
  await browser.until('return performance.getEntriesByType("resource").some(({ name }) => name.includes("feed.js"))');
  await server.as('ada', 'POST', '/items', { name: 'Desk lamp', price: 5 });
  await shows('Desk lamp created', '#home');
  await server.as('ada', 'POST', '/items/batch', Array.from({ length: 40 }, () => ({ name: 'More', price: 1 })));
  await shows('41 items created', '#home');
  await server.as('ada', 'PATCH', '/items/1', { price: 7 });
  await shows('Thing 1 changed', '#home');
  // However the kinds alternate, eight lines remain.
  for (let turn = 0; turn < 12; turn += 1) {
    await server.as('ada', 'PATCH', '/items/1', { price: turn });
    await server.as('ada', 'POST', '/items', { name: `Turn ${turn}`, price: 1 });
  }
  await shows('Turn 11 created', '#home');
  assert.equal(await browser.run('return document.querySelectorAll("#home section ul")[2].children.length'), 8);
});

testPage('nothing needs attention if all is well', {
  things: 1,
}, async (visit) => {
  await visit.signIn();
  await visit.shows('Nothing. All is well.', '#home');
  await visit.browser.click('#who');
  await visit.browser.click('#sign-out');
  // The member's records never arrive, so the administrator's would stay on the screen.
  visit.server.double = async (request, forward) =>
    request.url?.startsWith('/items?limit=5') ? new Promise(() => undefined) : forward();
  await visit.enterCredentials('grace');
  await visit.shows('Grace Hopper', '#who');
  await visit.idle();
  assert.equal(await visit.browser.run('return document.querySelectorAll("#home svg").length'), 0);
});

testPage('the slowest of many requests needs attention', {
  things: 1,
}, async (visit) => {
  const { server, shows, text } = visit;
  let requests = 99;
  let slowMinutes = 3;
  server.double = async (request, forward) => {
    if (request.url !== '/status') return forward();
    delete request.headers['accept-encoding'];
    const answer = await forward();
    const minute = { at: new Date().toISOString(), requests, p99Ms: 308.4, writes: 0, failedSignIns: 0, records: 3 };
    const minutes = Array.from({ length: slowMinutes + 1 }, () => minute);
    return { ...answer, body: JSON.stringify({ ...JSON.parse(String(answer.body)), minutes }) };
  };
  await visit.signIn();
  await shows('Nothing. All is well.', '#home');
  assert.ok(!(await text('.tiles')).includes('308 ms'));
  requests = 100;
  await visit.browser.reload();
  await shows('One answer in a hundred takes 308 ms or longer.', '#home');
  assert.ok((await text('.tiles')).includes('308 ms'));
  assert.ok(!(await text('#home')).includes('All is well'));
  // The first requests after a start are slow.
  slowMinutes = 1;
  await visit.browser.reload();
  await shows('Nothing. All is well.', '#home');
});

const several = ['apples', 'bees', 'cats', 'dogs', 'eels'].map((name) => defineCollection({
  name, singular: name.slice(0, -1), fields: { title: { kind: 'text' } },
}));

testPage('the overview has no gaps, with few records and with many', {
  collections: several,
}, async (visit) => {
  const { browser, server } = visit;
  // The largest gap between a part and the next one below it in its column, and tiles without a line.
  const holes = `
    const boxes = [...document.querySelectorAll('.lists > section')].map((at) => at.getBoundingClientRect());
    const below = ({ left, bottom }) => Math.min(
      ...boxes.filter((box) => box.left === left && box.top >= bottom).map(({ top }) => top - bottom));
    return Math.max(...boxes.map(below).filter(Number.isFinite));
  `;
  const lines = 'return [...document.querySelectorAll(".tiles svg path:last-child")]' +
    '.filter((at) => /L|h/.test(at.getAttribute("d"))).length';
  for (const count of [0, 3, 40]) {
    const records = Array.from({ length: count }, (_, n) => ({ title: `Number ${n}` }));
    if (count > 0) await server.as('ada', 'POST', '/cats/batch', records);
    await browser.open('about:blank');
    await visit.signIn();
    await browser.until('return document.querySelectorAll(".lists > section").length === 3');
    for (const width of [360, 768, 1280, 1920]) {
      await browser.resize(width, 900);
      assert.ok(await browser.run(holes) < 40, `${count} records, ${width} px`);
      assert.equal(await browser.run(lines), 3);
    }
  }
});

testPage('figures are requested only on a visible overview', { things: 1 }, async (visit) => {
  const { browser, server } = visit;
  await visit.signIn();
  await visit.shows('All is well', '#home');
  const asked = async (): Promise<string[]> => {
    server.requests.length = 0;
    await browser.letTimePass();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return server.requests.filter((line) => line === 'GET /status');
  };
  assert.equal((await asked()).length, 1);
  for (const hash of ['#/schema', '#/api']) {
    await visit.visit(hash);
    assert.deepEqual(await asked(), [], hash);
  }
  await visit.visit('#/');
  await visit.shows('All is well', '#home');
  await browser.run('Object.defineProperty(document, "hidden", { get: () => true, configurable: true })');
  assert.deepEqual(await asked(), [], 'hidden');
});
