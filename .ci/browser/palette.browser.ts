import assert from 'node:assert/strict';
import { keys, testPage } from './visit.ts';

testPage('Ctrl+K goes to collections, actions and records', { things: 12 }, async (visit) => {
  const { browser, shows, focused } = visit;
  await visit.signIn('#items/7');
  await shows('Thing 7', '#record-title');
  await visit.visit('#users');
  const options = `return [...document.querySelectorAll('#palette [role=option]')]
    .map((at) => at.innerText.split('\\n')[0])`;
  await browser.press('k', keys.control);
  await browser.until('return document.querySelector("#palette[open] [role=option]")');
  assert.deepEqual(await browser.run(options), [
    'Overview',
    'Items',
    'Users',
    'My account',
    'API keys',
    'API',
    'Schema',
    'Status',
    'New user',
    'New item',
  ]);
  assert.equal(await focused(), 'Go to');
  const beyond = 'const [all, last] = ["#palette", "#palette [role=option]:last-of-type"]' +
    '.map((at) => document.querySelector(at).getBoundingClientRect().bottom); return last - all';
  assert.ok(await browser.run(beyond) < 0, 'the suggestions lie within the dialog');
  await browser.press('new it');
  await browser.until(`${options}.join() === "New item"`);
  await browser.press(keys.enter);
  await shows('New item', '#record-title');
  assert.equal(await visit.hash(), '#items/new');
  await browser.click('#close');
  await browser.press('k', keys.control);
  await browser.until('return document.querySelector("#palette[open]")');
  await browser.press('thing 1');
  await browser.until(`${options}.join() === "Thing 1,Thing 10,Thing 11"`);
  await browser.press(keys.down + keys.enter);
  await shows('Thing 10', '#record-title');
  // Escape closes it and leaves the page unchanged.
  await browser.press('k', keys.control);
  await browser.until('return document.querySelector("#palette[open] [role=option]")');
  await browser.press(keys.escape);
  await browser.press(keys.escape);
  await browser.until('return !document.querySelector("#palette[open]")');
  assert.equal(await visit.hash(), '#items/10');
});

testPage('a shortcut of a single key leaves the commands of the browser alone', { things: 2 }, async (visit) => {
  const { browser } = visit;
  await visit.signIn('#items');
  const prevented = `
    const press = (options) => {
      const event = new KeyboardEvent('keydown', { cancelable: true, bubbles: true, ...options });
      document.body.dispatchEvent(event);
      return event.defaultPrevented;
    };
    return [press({ key: 'r', ctrlKey: true }), press({ key: 'r', metaKey: true }), press({ key: 'r' })];
  `;
  assert.deepEqual(await browser.run(prevented), [false, false, true]);
});
