import assert from 'node:assert/strict';
import { measureThreadMs, measureUnitMs } from './effort.ts';
import { testPage } from './visit.ts';

const perSecond = 5000;
const seconds = 2;
/**
 * Changes that arrive together are drawn together, in fewer draws than the 40 groups. A long task must not delay them
 * all.
 */
const drawsMin = 8;
/**
 * The time that the page may use, in units of a fixed piece of work measured in the same page (`unitMs`): two to three
 * times its real cost, on an idle machine or with twenty processes on two cores.
 */
const eventsUnitsMax = 300;
const keyUnitsMax = 4;
const openingUnitsMax = 36;

testPage('5,000 writes a second by others leave a list of 250 rows and its form smooth', {
  things: 250, hasFeed: true,
}, async (visit) => {
  const { browser, server, t } = visit;
  await visit.signIn('#items/5?limit=250');
  await visit.fill('name', 'Being typed');
  await browser.until('return document.querySelectorAll("#list tbody tr").length === 250');
  const unitBefore = await measureUnitMs(browser);
  await browser.run(`
    window.frames_ = 0;
    window.draws = 0;
    const frame = () => { window.frames_ += 1; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
    // Each draw writes the title.
    new MutationObserver(() => (window.draws += 1)).observe(document.querySelector('title'), { childList: true });
  `);
  const before = await measureThreadMs(browser);
  const group = 250;
  const typed = 'while the others write';
  await browser.click('#field-name');
  const typing = (async () => {
    for (const key of typed) await browser.press(key);
  })();
  for (let sent = 0; sent < perSecond * seconds; sent += group) {
    const records = Array.from({ length: group - 10 }, (_, index) => ({ name: `New ${sent + index}`, price: 1 }));
    const changes = Array.from({ length: 10 }, (_, index) => 10 + ((sent / group + index * 23) % 240));
    await Promise.all([
      server.as('ada', 'POST', '/items/batch', records),
      ...changes.map((id) => server.as('ada', 'PATCH', `/items/${id}`, { price: sent + id })),
      new Promise((resolve) => setTimeout(resolve, (1000 * group) / perSecond)),
    ]);
  }
  const count = (perSecond * seconds * (group - 10)) / group;
  await browser.until('return document.querySelector("#show-changes")?.innerText.includes(arguments[0])',
    `${count}`);
  await typing;
  const used = (await measureThreadMs(browser)) - before;
  const [frames, draws] = await browser.run('return [window.frames_, window.draws]');
  const beforeKeys = await measureThreadMs(browser);
  await browser.press(typed);
  const key = ((await measureThreadMs(browser)) - beforeKeys) / typed.length;
  const unit = Math.max(unitBefore, await measureUnitMs(browser));
  const units = { events: used / unit, key: key / unit };
  t.diagnostic(`${draws} draws in ${frames} frames; ${JSON.stringify(units)} units of ${unit} ms`);
  assert.ok(draws >= drawsMin && draws <= frames, `${draws} draws in ${frames} frames`);
  assert.ok(units.events <= eventsUnitsMax, `${units.events} units for all events`);
  assert.ok(units.key <= keyUnitsMax, `${units.key} units for a key`);
  assert.equal((await visit.value('name')).length, 'Being typed'.length + 2 * typed.length, 'no key is lost');
});

testPage('a list of 250 rows opens with little work on the page’s thread', { things: 250 }, async (visit) => {
  const { browser, t } = visit;
  await visit.signIn('#/');
  const unitBefore = await measureUnitMs(browser);
  const before = await measureThreadMs(browser);
  const waited = await browser.run(`
    const began = performance.now();
    location.hash = '#items?limit=250';
    return new Promise((resolve) => {
      const look = () => document.querySelectorAll('#list tbody tr:not(:has(.skeleton))').length === 250
        ? requestAnimationFrame(() => resolve(performance.now() - began))
        : requestAnimationFrame(look);
      look();
    });
  `);
  const used = (await measureThreadMs(browser)) - before;
  const unit = Math.max(unitBefore, await measureUnitMs(browser));
  const units = used / unit;
  t.diagnostic(`250 rows after ${waited.toFixed()} ms: ${units} units of ${unit} ms`);
  assert.ok(units <= openingUnitsMax, `${units} units`);
});
