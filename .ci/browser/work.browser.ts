import assert from 'node:assert/strict';
import { keys, testPage, type Visit } from './visit.ts';

/** The id of the focused element, or else its class. */
const focusedId = ({ browser }: Visit): Promise<string> =>
  browser.run('return document.activeElement.id || document.activeElement.className');
const focusReaches = ({ browser }: Visit, id: string): Promise<unknown> =>
  browser.until('return document.activeElement.id === arguments[0]', id);

testPage('each removal can be undone in every view for some seconds', { things: 4 }, async (visit) => {
  const { browser, server, says, shows } = visit;
  await visit.signIn('#items/2');
  const remove = async (id: number): Promise<void> => {
    await visit.visit(`#items/${id}`);
    await browser.until('return document.querySelector("#record-kind")?.innerText === `Item ${arguments[0]}`', id);
    await browser.click('#drawer .danger');
  };
  await remove(2);
  await says('Removing 1 item');
  await focusReaches(visit, 'open-3');
  await remove(3);
  await browser.until('return document.querySelectorAll("#removals li").length === 2');
  await browser.click('#views a');
  await shows('Overview', '#home');
  await browser.press('u');
  await says('Kept 1 item.');
  const running = 'return document.querySelectorAll("#removals li").length';
  assert.equal(await browser.run(running), 1, 'the first one runs on');
  await browser.letTimePass();
  await says('Removed 1 item.');
  const { data } = await server.as('ada', 'GET', '/items');
  assert.deepEqual(data.map(({ id }: { id: number }) => id), [1, 3, 4], 'the latest removal was undone');
});

testPage('text typed after Create stays in the form', {}, async (visit) => {
  const { browser, fill, says, hash } = visit;
  await visit.signIn('#items/new');
  await fill('price', '5');
  await fill('name', 'Lamp');
  await browser.press(keys.enter, keys.control);
  await browser.press('n?x');
  await says('Created item 1.');
  assert.equal(await hash(), '#items/1');
  assert.equal(await visit.value('name'), 'Lampn?x', 'typing goes on where it was');
  await browser.run('document.querySelector("#field-name").blur()');
  await visit.visit('#items/new');
  await browser.click('#leave [value=discard]');
  await browser.until('return location.hash.startsWith("#items/new")');
  await fill('name', 'Chair');
  await fill('price', '7');
  await browser.click('.record .primary');
  await browser.press('nx');
  await says('Created item 2.');
  await focusReaches(visit, 'field-name');
  assert.equal(await hash(), '#items/2');
});

testPage('after closing a record, its row has the focus and is visible', { things: 3 }, async (visit) => {
  const { browser } = visit;
  await visit.signIn('#items');
  const close = [
    () => browser.press(keys.escape), () => browser.click('#close'), () => browser.back(),
  ];
  for (const leave of close) {
    await browser.click('#open-2');
    await browser.until('return document.querySelector("#field-name")');
    await leave();
    await browser.until('return !document.querySelector("#drawer")');
    await focusReaches(visit, 'open-2');
  }
  await browser.press('j');
  await focusReaches(visit, 'open-3');
  const outline = 'return getComputedStyle(document.querySelector("#open-3").closest("tr")).outlineStyle';
  assert.notEqual(await browser.run(outline), 'none', 'a cell clips the outline of its link');
  assert.equal(await focusedId(visit), 'open-3');
});

testPage('a cell that is left by a click leaves the focus there', { things: 2 }, async (visit) => {
  const { browser } = visit;
  await visit.signIn('#items');
  await browser.run(
    'document.querySelector("td.number").dispatchEvent(new MouseEvent("dblclick", { bubbles: true }))');
  await browser.until('return document.activeElement.id === "editor"');
  await browser.type('#editor', '7');
  await browser.click('#search');
  await visit.says('Saved Thing');
  assert.equal(await focusedId(visit), 'search');
});

testPage('a label belongs to one field', { things: 1 }, async (visit) => {
  const { browser } = visit;
  await visit.signIn('#users/2');
  await browser.until('return document.querySelector("#field-name")');
  await visit.visit('#/account');
  await browser.until('return document.querySelector("#record #field-name")');
  const twice = `
    const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
    return ids.filter((id, index) => ids.indexOf(id) !== index);
  `;
  await browser.until(`return (() => { ${twice} })().length === 0`);
  await browser.click('#record label[for=field-name]');
  await focusReaches(visit, 'field-name');
});

testPage('a search never reaches another collection', { things: 12 }, async (visit) => {
  const { browser, server } = visit;
  await visit.signIn('#items');
  await browser.type('#search', 'Thing ');
  await browser.until('return location.hash === "#items?q=Thing"');
  await visit.idle();
  assert.equal(await browser.run('return document.querySelector("#search").value'), 'Thing ');
  await browser.press('1');
  await browser.until('return location.hash === "#items?q=Thing+1"');
  await browser.press('99');
  await browser.run('document.querySelector("#views a[href=\'#users\']").click()');
  await browser.until('return document.querySelector("#title")?.innerText === "Users"');
  await visit.idle();
  // Longer than the pause after which a search begins.
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(await visit.hash(), '#users');
  assert.equal(await browser.run('return document.querySelector("#search").value'), '');
  assert.deepEqual(server.requests.filter((line) => line.includes('/users?') && line.includes('q=')), []);
});

testPage('filters begin with "contains", which mentions that case matters', { things: 3 }, async (visit) => {
  const { browser } = visit;
  await visit.signIn('#items');
  await visit.filterBy('Name');
  assert.equal(
    await browser.run('return document.querySelector("#condition").innerText'),
    'Name contains (case matters)',
  );
});

testPage('the next page starts at its top', { things: 120 }, async (visit) => {
  const { browser } = visit;
  await visit.signIn('#items?limit=50');
  await browser.run('document.querySelector("#list").scrollTop = 900');
  await browser.click('#page-next');
  await browser.until('return document.querySelector("#range")?.innerText.startsWith("51")');
  await visit.idle();
  assert.equal(await browser.run('return document.querySelector("#list").scrollTop'), 0);
});
