import assert from 'node:assert/strict';
import { defineCollection } from '../../src/index.ts';
import { testPage } from './visit.ts';

const diaries = defineCollection({
  name: 'diaries', singular: 'diary', fields: { title: { kind: 'text', min: 1 } },
  access: { list: 'owner', read: 'owner' },
});
const tasks = defineCollection({
  name: 'tasks', singular: 'task',
  fields: { title: { kind: 'text', min: 1 } },
  access: { list: ['owner', 'editor'], read: ['owner', 'editor'], remove: 'editor' },
});

testPage('your own record shows who sees it', {
  collections: [diaries],
}, async (visit) => {
  const { browser, server, fill, says, shows } = visit;
  await server.as('ada', 'POST', '/diaries', { title: 'Of Ada' });
  await visit.signIn('#diaries/new', 'grace');
  await shows('Only you and administrators see this.', '#drawer');
  await fill('title', 'Of Grace');
  await browser.click('.record .primary');
  await says('Created diary 2.');
  await shows('Only you and administrators see this.', '#drawer');
  await shows('Of Grace', '#list tbody');
  assert.deepEqual(await visit.column(2), ['Of Grace']);
  assert.equal(await browser.run('return document.querySelectorAll("#list tbody input").length'), 1);
  // An administrator sees that it is someone else's.
  await browser.open('about:blank');
  await visit.signIn('#diaries/2');
  await shows('Only the person who created this diary and administrators see this.', '#drawer');
  await visit.visit('#diaries/1');
  await shows('Only you and administrators see this.', '#drawer');
  // Nothing is said if everybody can see the record.
  await visit.visit('#items/new');
  await browser.until('return document.querySelector("#drawer")?.innerText.includes("see this") === false');
});

testPage('declared roles appear in forms, lists and filters', {
  collections: [tasks], roles: ['editor'],
}, async (visit) => {
  const { browser, server, says, shows } = visit;
  await server.as('ada', 'POST', '/tasks', { title: 'Of Ada' });
  await server.as('grace', 'POST', '/tasks', { title: 'Of Grace' });
  // Grace is not an editor yet: she changes her own boards, and cannot remove any.
  await visit.signIn('#tasks/2', 'grace');
  await shows('Only you, the role editor and administrators see this.', '#drawer');
  await shows('Of Grace', '#list tbody');
  assert.deepEqual(await visit.column(2), ['Of Grace']);
  assert.equal(await browser.run('return document.querySelectorAll("#drawer .danger, tbody input").length'), 0);

  await browser.open('about:blank');
  await visit.signIn('#users/2');
  await visit.value('role');
  const choose = 'const at = document.querySelector("#field-role"); at.value = "editor"; at.onchange({ target: at })';
  await browser.run(choose);
  await browser.click('.record .primary');
  await says('Saved user 2.');
  await shows('editor', '#list tbody tr:nth-child(2) .pill');
  await visit.visit('#users?role=editor');
  await browser.until('return document.querySelectorAll("#list tbody tr").length === 1');

  // An editor sees and removes other people's records, but does not change them.
  await browser.open('about:blank');
  await visit.signIn('#tasks/1', 'grace');
  await shows('Only the person who created this task and administrators can change this.', '#drawer');
  assert.equal(await browser.run('return document.querySelectorAll(".foot .primary").length'), 0);
  await browser.until('return document.querySelectorAll("tbody input").length === 2');
  await browser.click('#drawer .danger');
  await shows('Removing 1 task', '#removals');
});

const people = ['owner', 'helperId'];
const boards = defineCollection({
  name: 'boards', singular: 'board',
  fields: {
    title: { kind: 'text', min: 1 },
    helperId: { kind: 'reference', to: 'users', optional: true, onDelete: 'clear' },
  },
  access: { list: people, read: people, replace: people, patch: people },
});

testPage('a field that names people shows who else sees a record', {
  collections: [boards],
}, async (visit) => {
  const { browser, server, shows } = visit;
  await server.as('ada', 'POST', '/users', { name: 'Mary', email: 'mary@example.org' });
  await server.as('grace', 'POST', '/boards', { title: 'Of Grace', helperId: 1 });
  await server.as('ada', 'POST', '/boards', { title: 'Of Ada', helperId: 2 });
  await visit.signIn('#boards/2');
  await shows('Only you, Grace Hopper and administrators see this.', '#drawer');
  await browser.open('about:blank');
  await visit.signIn('#boards/2', 'grace');
  await shows('Only the person who created this board, you and administrators see this.', '#drawer');
  assert.notEqual(await browser.run('return document.querySelector("#field-title")'), null);
  assert.equal(await browser.run('return document.querySelectorAll("#drawer .danger").length'), 0);
  // A user who may not list the users does not see their names.
  await visit.visit('#boards/1');
  await shows('Only you, user 1 and administrators see this.', '#drawer');
});
