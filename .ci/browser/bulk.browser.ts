import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerResponse } from 'node:http';
import { defineCollection } from '../../src/index.ts';
import { changeDescription, hold } from './server.ts';
import { testPage, type Visit } from './visit.ts';
import { waitUntil } from '../../test/support/basics.ts';

/** Returns a directory, removed after the test, for the browser's downloads. */
async function folder({ browser, t }: Visit): Promise<string> {
  const path = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  await browser.devtools('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: path });
  return path;
}

/** The browser creates an empty file first. */
async function downloaded(path: string): Promise<string> {
  await waitUntil(() => existsSync(path) && readFileSync(path, 'utf8') !== '', `nothing was saved as ${path}`);
  return readFileSync(path, 'utf8');
}

const items = async ({ server }: Visit): Promise<any[]> => (await server.as('ada', 'GET', '/items')).data;

testPage('records are selected on several pages, and removed together', { things: 30 }, async (visit) => {
  const { browser, says, shows } = visit;
  await visit.signIn('#items?limit=25');
  for (const id of [1, 2]) await browser.click(`[aria-label="Select Thing ${id}"]`);
  await shows('2 items selected', '.footer');
  await browser.click('#page-next');
  await browser.until('return document.querySelector("[aria-label=\'Select Thing 30\']")');
  await browser.click('[aria-label="Select all on this page"]');
  await shows('7 items selected', '.footer');
  await browser.click('[aria-label="Select Thing 26"]');
  await shows('6 items selected', '.footer');
  await browser.click('#remove-selected');
  await says('Removing 6 items');
  assert.deepEqual(await visit.column(2), ['Thing 26']);
  assert.equal((await items(visit)).length, 30);
  await browser.letTimePass();
  await says('Removed 6 items.');
  const left = (await items(visit)).map(({ id }) => id);
  assert.deepEqual(left.filter((id) => id < 4 || id > 25), [3, 26]);
});

testPage('a removal can be undone for some seconds', { things: 3 }, async (visit) => {
  const { browser, says } = visit;
  await visit.signIn('#items/2');
  await browser.until('return document.querySelector("#drawer .danger")');
  await browser.click('#drawer .danger');
  await says('Removing 1 item');
  assert.deepEqual(await visit.column(2), ['Thing 1', 'Thing 3']);
  assert.equal(await browser.run(`
    const event = new Event('beforeunload', { cancelable: true });
    dispatchEvent(event);
    return event.defaultPrevented;
  `), true, 'closing the tab asks first');
  await browser.click('#removals button');
  await says('Kept 1 item.');
  await visit.idle();
  assert.deepEqual(await visit.column(2), ['Thing 1', 'Thing 2', 'Thing 3']);
  assert.equal((await items(visit)).length, 3);
  // It is removed if it is still what the form showed.
  await visit.visit('#items/2');
  await browser.click('#drawer .danger');
  await says('Removing 1 item');
  visit.server.requests.length = 0;
  await browser.letTimePass();
  await says('Removed 1 item.');
  assert.deepEqual(visit.server.requests.filter((line) => line.includes('/items/2')), ['GET /items/2', 'DELETE /items/2']);
});

testPage('a removal that is pressed twice is one removal, so one undo keeps everything', { things: 3 }, async (visit) => {
  const { browser, says } = visit;
  await visit.signIn('#items');
  for (const id of [1, 2]) await browser.click(`[aria-label="Select Thing ${id}"]`);
  await visit.shows('2 items selected', '.footer');
  await browser.until('const at = document.querySelector("#remove-selected"); at?.click(); at?.click(); return at;');
  await says('Removing 2 items');
  assert.equal(await browser.run('return document.querySelectorAll("#removals li").length'), 1);
  await browser.click('#removals button');
  await says('Kept 2 items.');
  assert.deepEqual(await visit.column(2), ['Thing 1', 'Thing 2', 'Thing 3']);
});

testPage('a record that is about to be removed is not removed again on its page', { things: 3 }, async (visit) => {
  const { browser, says } = visit;
  await visit.signIn('#/items/2');
  await browser.click('#drawer .danger');
  await says('Removing 1 item');
  await visit.visit('#/items/2');
  await browser.click('#drawer .danger');
  await browser.until('return location.hash === "#items"');
  await visit.idle();
  assert.equal(await browser.run('return document.querySelectorAll("#removals li").length'), 1);
});

testPage('a record that someone else has changed meanwhile is not removed', { things: 3 }, async (visit) => {
  const { browser, server } = visit;
  await visit.signIn('#items');
  await browser.click('[aria-label="Select all on this page"]');
  await server.as('ada', 'PATCH', '/items/2', { name: 'Not what you saw' });
  await browser.click('#remove-selected');
  await visit.says('Removing 3 items');
  await browser.letTimePass();
  await visit.shows('Removed 2 of 3 items.', '#refused');
  const kept = 'Item Thing 2: Someone else has changed it. Check it, then try again.';
  assert.equal(await visit.text('#refused-list'), kept);
  assert.deepEqual(await items(visit), [{ id: 2, name: 'Not what you saw', price: 2.5 }]);
});

testPage(
  'twenty records are removed after a question',
  { things: 25 },
  async (visit) => {
    const { browser } = visit;
    await visit.signIn('#items');
    await browser.click('[aria-label="Select all on this page"]');
    await browser.until('const at = document.querySelector("#remove-selected"); at?.click(); at?.click(); return at;');
    await browser.until('return document.querySelector("#remove").open');
    assert.equal(await browser.run('return document.querySelectorAll("dialog[open]").length'), 1);
    assert.equal(await visit.focused(), 'Cancel', 'what harms nothing has the focus');
    await browser.click('#remove button');
    await browser.until('return !document.querySelector("dialog[open]")');
    await sleep(100);
    assert.equal(await browser.run('return document.querySelectorAll("dialog[open]").length'), 0);
    assert.equal((await items(visit)).length, 25);
  },
);

const formulas = ['=SUM(A1:A9)', '+1', '-1', '@cmd', "'=x", 'a,"b"', 'line;two', '＝1'];

testPage('a list is exported completely as JSON and as CSV without formulas', { things: 60 }, async (visit) => {
  const { browser, server, says } = visit;
  const path = await folder(visit);
  for (const name of formulas) await server.as('ada', 'POST', '/items', { name, price: 0.5 });
  await visit.signIn('#items?price:lte=2.5&sort=id');
  await browser.run('document.querySelector("#csv").click()');
  await says('Exported 10 items to items.csv.');
  assert.equal(await downloaded(join(path, 'items.csv')), [
    '\ufeffid,name,price', '1,Thing 1,1.25', '2,Thing 2,2.5',
    "61,'=SUM(A1:A9),0.5", "62,'+1,0.5", "63,'-1,0.5", "64,'@cmd,0.5",
    "65,''=x,0.5", '66,"a,""b""",0.5', '67,"line;two",0.5', "68,'＝1,0.5", '',
  ].join('\r\n'));
  await browser.run('document.querySelector("#json").click()');
  await says('Exported 10 items to items.json.');
  const exported = JSON.parse(await downloaded(join(path, 'items.json')));
  assert.deepEqual(exported.map(({ name }: { name: string }) => name), ['Thing 1', 'Thing 2', ...formulas]);
});

async function importFile(visit: Visit, name: string, text: string): Promise<void> {
  const path = join(await folder(visit), name);
  writeFileSync(path, text);
  await visit.browser.until('return document.querySelector("#records")');
  await visit.browser.run('document.querySelector("#import").click()');
  await visit.browser.until('return document.querySelector("#import-file").open');
  await visit.browser.upload('#file', path);
}

testPage('an import shows a preview and names every refused line', {
  refusals: [422],
}, async (visit) => {
  const { browser, text, says } = visit;
  await visit.signIn('#items');
  await importFile(visit, 'items.csv', [
    'name,price,color', "'=SUM(A1:A9),1.5", 'Lamp,"12,50"', ' ,3', 'Chair,-1', 'Table,', '"a,""b""",7', '',
  ].join('\r\n').replaceAll(',color', ''));
  await visit.shows('2 new, 4 refused', '#preview');
  assert.deepEqual((await text('#preview ul')).split('\n'), [
    'Line 3: Price must be a number such as 1250.5.', 'Line 4: Name has characters that are not allowed.',
    'Line 5: Price must be at least 0.', 'Line 6: Price must be filled in.',
  ]);
  assert.match((await text('#preview table')).replaceAll(/\s+/g, ' '), /Name Price =SUM\(A1:A9\) 1\.5 /);
  await browser.click('#import-all');
  await says('Imported 2 of 2 items');
  assert.deepEqual(
    await items(visit),
    [{ id: 1, name: '=SUM(A1:A9)', price: 1.5 }, { id: 2, name: 'a,"b"', price: 7 }],
  );
  await browser.until('return document.querySelectorAll("#list tbody tr").length === 2');

  // A spreadsheet with decimal commas puts semicolons between cells.
  await importFile(visit, 'german.csv', 'name;price\nLampe;12,50\nTisch;1250,00\nStuhl;12.50\n');
  await visit.shows('2 new, 1 refused', '#preview');
  await browser.click('#import-all');
  await browser.until('return document.querySelectorAll("#list tbody tr").length === 4');
  assert.deepEqual((await items(visit)).slice(2).map(({ price }) => price), [12.5, 1250]);

  await importFile(visit, 'items.json', '[{"name": "From JSON", "price": 3}, {"name": "No price"}, {"nom": "x"}]');
  await visit.shows('1 new, 2 refused', '#preview');
  await visit.shows('Line 3: There is no field nom.', '#preview');
  await browser.upload('#file', join(await folder(visit), '..')).catch(() => undefined);
  await browser.click('#import-file button');
  assert.equal((await items(visit)).length, 4, 'cancelled');
  await importFile(visit, 'broken.json', '[{"name": ');
  await visit.shows('Cannot read the file', '#preview');
  assert.equal(await browser.run('return document.querySelector("#import-all").disabled'), true);
});

testPage('an import sends many records at once, and retries without refused lines', {
  refusals: [422],
}, async (visit) => {
  const { browser, server } = visit;
  const sizes: number[] = [];
  // A rule that only the server knows.
  server.double = changeDescription((document) => {
    delete document.components.schemas.NewItem.properties.price.minimum;
  }, async (request, forward) => {
    if (request.method === 'POST' && request.url === '/items/batch') sizes.push(JSON.parse(request.body).length);
    return forward();
  });
  await visit.signIn('#items');
  const lines = Array.from({ length: 1200 }, (_, n) => `Thing ${n},${n === 3 || n === 1100 ? -1 : n}`);
  await importFile(visit, 'many.csv', `name,price\n${lines.join('\n')}\nNo price,much\n`);
  await visit.shows('1,200 new, 1 refused', '#preview');
  await browser.click('#import-all');
  await visit.shows('Imported 1,198 of 1,200 items', '#refused');
  assert.equal(await visit.text('#refused-list'), 'Line 5, line 1102: Price must be at least 0.');
  const path = await folder(visit);
  await browser.click('#refused-body button');
  const refused = await downloaded(join(path, 'items-refused.csv'));
  assert.equal(refused, '\ufeffname,price\r\nNo price,much\r\nThing 3,\'-1\r\nThing 1100,\'-1\r\n');
  assert.deepEqual(sizes, [1000, 200, 999, 199]);
  assert.equal((await items(visit)).length, 1198);
});

const shirts = defineCollection({
  name: 'shirts',
  singular: 'shirt',
  fields: { title: { kind: 'text', min: 1 }, size: { kind: 'choice', values: ['S', 'M'], optional: true } },
});

testPage('an import of long records is sent in requests that the server accepts', {
  collections: [defineCollection({ name: 'pages', fields: { text: { kind: 'text', max: 5000 } } })],
  refusals: [413],
}, async (visit) => {
  const { browser, server, says } = visit;
  await visit.signIn('#pages');
  const texts = Array.from({ length: 300 }, (_, n) => `${n} ${'ж'.repeat(2500)}`);
  await importFile(visit, 'pages.csv', `text\n${texts.join('\n')}\n`);
  await visit.shows('300 new', '#preview');
  await browser.click('#import-all');
  await says('Imported 300 of 300 pages.');
  const { data } = await server.as('ada', 'GET', '/pages');
  assert.deepEqual(data.map(({ text }: { text: string }) => text), texts);
});

testPage('an import may leave out a choice, shows whole columns, and groups mistakes by their cause', {
  collections: [shirts],
}, async (visit) => {
  const { browser, server, text } = visit;
  await visit.signIn('#shirts');
  const long = 'A title that is long enough to be seen';
  const rows = [`${long},S`, 'Plain,', ...Array.from({ length: 40 }, (_, n) => `Odd ${n},XXL`), ',M'];
  await importFile(visit, 'shirts.csv', `title,size\n${rows.join('\n')}\n`);
  await visit.shows('2 new, 41 refused', '#preview');
  assert.deepEqual((await text('#preview ul')).split('\n'), [
    'Line 4, line 5, line 6, line 7, line 8 and 35 more: Size must be one of S, M.',
    'Line 44: Title must be filled in.',
  ]);
  const width = await browser.run('return document.querySelector("#preview tbody th").clientWidth');
  assert.ok(width > 150, 'a column is as wide as its text needs');
  await browser.click('#import-all');
  await visit.says('Imported 2 of 2 shirts');
  const stored = (await server.as('ada', 'GET', '/shirts')).data;
  assert.deepEqual(stored, [{ id: 1, title: long, size: 'S' }, { id: 2, title: 'Plain' }]);
});

/** Lets a test send changes in place of the feed. */
function feed(visit: Visit): { send: (event: string, data: object) => void; readonly asked: string[] } {
  const open = new Set<ServerResponse>();
  const asked: string[] = [];
  let id = 100;
  visit.server.double = changeDescription((document) => {
    document.paths['/changes'] = {};
  }, async (request, forward, response) => {
    if (!request.url?.startsWith('/changes')) return forward();
    asked.push(request.url);
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': hello\n\n');
    open.add(response);
    return 'answered';
  });
  visit.t.after(() => open.forEach((response) => response.destroy()));
  return {
    asked,
    send(event, data) {
      id += 1;
      for (const response of open) response.write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
    },
  };
}

testPage('changes by others appear in the open list', { things: 3 }, async (visit) => {
  const { browser, shows, column } = visit;
  const { send, asked } = feed(visit);
  await visit.signIn('#items');
  while (asked.length === 0) await sleep(10);
  assert.deepEqual(asked, ['/changes']);
  send('replaced', { collection: 'items', id: 2, record: { id: 2, name: 'Changed', price: 9 } });
  await shows('Changed', '#list');
  assert.deepEqual(await column(2), ['Thing 1', 'Changed', 'Thing 3']);
  send('replaced', { collection: 'users', id: 2, record: { id: 2, name: 'Nobody' } });
  send('created', { collection: 'items', id: 4, record: { id: 4, name: 'New', price: 1 } });
  send('removed', { collection: 'items', id: 1 });
  await shows('Show changes: 2', '.toolbar');
  assert.equal(await browser.run('return document.body.innerText.includes("Nobody")'), false);
  await browser.click('#show-changes');
  await browser.until('return !document.querySelector("#show-changes")');
  send('reset', {});
  const before = visit.server.requests.length;
  while (!visit.server.requests.slice(before).some((line) => line.startsWith('GET /items?'))) await sleep(10);
});

testPage('a change by others never discards input', { things: 3 }, async (visit) => {
  const { browser, server, fill, value, shows } = visit;
  const { send, asked } = feed(visit);
  await visit.signIn('#items/2');
  while (asked.length === 0) await sleep(10);
  // An untouched form shows the newest version.
  await server.as('ada', 'PATCH', '/items/2', { price: 5 });
  send('replaced', { collection: 'items', id: 2, record: { id: 2, name: 'Thing 2', price: 5 } });
  await browser.until('return document.querySelector("#field-price")?.value === "5"');
  await fill('name', 'Half a na');
  await server.as('ada', 'PATCH', '/items/2', { price: 6 });
  send('replaced', { collection: 'items', id: 2, record: { id: 2, name: 'Thing 2', price: 6 } });
  await visit.says('Someone else has changed price.');
  // The page draws the field in the next frame.
  await browser.until('return document.querySelector("#field-price")?.value === "6"');
  assert.deepEqual([await value('name'), await value('price')], ['Half a na', '6']);
  send('created', { collection: 'items', id: 4, record: { id: 4, name: 'New', price: 1 } });
  send('removed', { collection: 'items', id: 1 });
  await shows('Show changes: 2', '.toolbar');
  await browser.click('#show-changes');
  await visit.idle();
  assert.equal(await value('name'), 'Half a na');
  await browser.click('.record .primary');
  await visit.says('Saved item 2.');
});

testPage('a form shows a change that arrives while its record is read for the first time', {
  things: 2,
}, async (visit) => {
  const { browser, server } = visit;
  const { send, asked } = feed(visit);
  await visit.signIn('#items');
  await waitUntil(() => asked.length === 1, 'nobody follows the feed');
  const { double } = server;
  const held: (() => void)[] = [];
  server.double = async (request, forward, response) => {
    if (request.url === '/items/2' && held.length < 2) await new Promise<void>((resolve) => held.push(resolve));
    return double(request, forward, response);
  };
  await browser.run('location.hash = "#items/2"');
  await waitUntil(() => held.length === 1, 'the record is not read');
  send('replaced', { collection: 'items', id: 2, record: { id: 2, name: 'Thing 2', price: 5 } });
  await visit.shows('5.00', '#list tbody tr:nth-child(2)');
  // The browser may send the second request only when the first one has its answer.
  held[0]?.();
  await waitUntil(() => held.length === 2, 'the record is not read again');
  await browser.until('return document.querySelector("#field-price")?.value === "2.5"');
  await server.as('ada', 'PATCH', '/items/2', { price: 5 });
  held[1]?.();
  await browser.until('return document.querySelector("#field-price")?.value === "5"');
});

testPage('a form follows changes by others, even after a sign-out that ended its reading', {
  things: 2,
}, async (visit) => {
  const { browser, server, t } = visit;
  const { send, asked } = feed(visit);
  const { double } = server;
  await visit.signIn('#items/2');
  await waitUntil(() => asked.length === 1, 'nobody follows the feed');
  await visit.value('price');
  server.requests.length = 0;
  t.after(hold(server, '/items/2'));
  send('replaced', { collection: 'items', id: 2, record: { id: 2, name: 'Thing 2', price: 5 } });
  await waitUntil(() => server.requests.includes('GET /items/2'), 'the record is not read again');
  await browser.click('#who');
  await browser.click('#sign-out');
  await visit.shows('You have signed out.', '#sign-in');
  server.double = double;
  await visit.enterCredentials();
  await visit.shows('Ada Lovelace', '#who');
  await visit.visit('#items/2');
  await waitUntil(() => asked.length === 2, 'nobody follows the feed');
  await visit.value('price');
  await server.as('ada', 'PATCH', '/items/2', { price: 6 });
  send('replaced', { collection: 'items', id: 2, record: { id: 2, name: 'Thing 2', price: 6 } });
  await browser.until('return document.querySelector("#field-price").value === "6"');
});

testPage('a hidden tab closes the feed and resumes it where it stopped', { things: 1 }, async (visit) => {
  const { browser, shows } = visit;
  const { send, asked } = feed(visit);
  await visit.signIn('#items');
  while (asked.length === 0) await sleep(10);
  send('replaced', { collection: 'items', id: 1, record: { id: 1, name: 'Changed', price: 9 } });
  await shows('Changed', '#list');
  await browser.run('document.dispatchEvent(new Event("visibilitychange"))');
  while (asked.length === 1) await sleep(10);
  assert.equal(asked[1], '/changes?since=101');
});

testPage(
  'an import recognises encodings and heads, checks the rules, and says what it leaves out',
  {},
  async (visit) => {
    const { browser, t, text } = visit;
    const folder = mkdtempSync(join(tmpdir(), 'cairn-import-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const upload = async (name: string, content: string | Buffer): Promise<void> => {
      writeFileSync(join(folder, name), content);
      await browser.upload('#file', join(folder, name));
    };
    await visit.signIn('#items');
    await browser.run('document.querySelector("#import").click()');
    await browser.until('return document.querySelector("#import-file[open]")');
    await upload('latin1.csv', Buffer.from('name,price\nCaf\u00e9,1\n', 'latin1'));
    await visit.shows('The file is not in UTF-8.', '#preview');
    await upload('object.json', '{"items": []}');
    await visit.shows('The file has an object where an array of records is needed.', '#preview');
    await upload('broken.json', '[{"name": ');
    await visit.shows('Cannot read the file. Is it valid JSON?', '#preview');
    const records = [null, { name: 'Lamp', price: null }, { name: '', price: -1 }, { name: 'A', price: 2 }];
    await upload('null.json', JSON.stringify(records));
    await visit.shows('1 new, 3 refused', '#preview');
    assert.deepEqual((await text('#preview ul')).split('\n'), [
      'Line 1: This is null, not a record.',
      'Line 2: Price must not be null.',
      'Line 3: Name must be filled in. Price must be at least 0.',
    ]);
    const marked = Buffer.from('\ufeffID,NAME,Price\n7,Caf\u00e9,1\n', 'utf16le');
    await upload('utf16.csv', marked);
    await visit.shows('1 new', '#preview');
    await visit.shows('The server fills in ID of new records.', '#preview');
    await browser.click('#import-all');
    await visit.says('Imported 1 of 1 item');
    assert.deepEqual(await items(visit), [{ id: 1, name: 'Caf\u00e9', price: 1 }]);
  },
);

testPage('a file that is chosen later replaces one that is still compared', { things: 1 }, async (visit) => {
  const { browser, server } = visit;
  const path = await folder(visit);
  await visit.signIn('#items');
  const release = hold(server, 'id%3Ain=');
  await importFile(visit, 'first.csv', 'id,name\n1,Never\n');
  await waitUntil(() => server.requests.some((line) => line.includes('id%3Ain=')), 'the file is not compared');
  const second = join(path, 'second.csv');
  writeFileSync(second, 'name,price\nLamp,5\n');
  await browser.upload('#file', second);
  await visit.shows('1 new', '#preview');
  release();
  await browser.until(
    'return performance.getEntriesByType("resource").some(({ name }) => name.includes("id%3Ain="))');
  await browser.run('return new Promise(requestAnimationFrame)');
  await visit.shows('1 new', '#preview');
  await browser.click('#import-all');
  await visit.says('Imported 1 of 1 item.');
  assert.deepEqual((await items(visit)).map(({ name }) => name), ['Thing 1', 'Lamp']);
});

testPage('an exported list can be imported again', { things: 5 }, async (visit) => {
  const { browser, says } = visit;
  await visit.signIn('#items');
  let csv = '';
  for (const format of ['csv', 'json']) {
    const path = await folder(visit);
    await browser.run(`document.querySelector("#${format}").click()`);
    await says(`Exported 5 items to items.${format}.`);
    const exported = await downloaded(join(path, `items.${format}`));
    csv ||= exported;
    await importFile(visit, `same.${format}`, exported);
    await visit.shows('5 unchanged', '#preview');
    await visit.shows('Nothing to import', '#import-file');
    assert.equal(await browser.run('return document.querySelector("#import-all").disabled'), true);
    await browser.click('#import-file button');
    await browser.until('return !document.querySelector("#import-file").open');
  }
  csv = csv.replace('Thing 2,2.5', 'Lamp,2.5').replace('4,Thing 4,5', ',New,7');
  visit.server.requests.length = 0;
  await importFile(visit, 'changed.csv', csv);
  await visit.shows('1 change, 1 new, 3 unchanged', '#preview');
  assert.match(await visit.text('#preview table'), /Thing 2\s+Name\s+Thing 2\s+Lamp/);
  assert.deepEqual(visit.server.requests.filter((line) => !line.startsWith('GET')), [], 'nothing is written yet');
  await visit.shows('Import 2 items', '#import-file');
  await browser.click('#import-all');
  await says('Imported 2 of 2 items.');
  const names = (await items(visit)).map(({ name }) => name);
  assert.deepEqual(names, ['Thing 1', 'Lamp', 'Thing 3', 'Thing 4', 'Thing 5', 'New']);
});

testPage('an import changes nothing that someone else has changed since its preview', { things: 1 }, async (visit) => {
  const { browser, server } = visit;
  await visit.signIn('#items');
  await importFile(visit, 'items.csv', 'id,name\n1,Mine\n');
  await visit.shows('1 change', '#preview');
  await server.as('ada', 'PATCH', '/items/1', { name: 'Theirs' });
  await browser.click('#import-all');
  await visit.shows('Someone else has changed it.', '#refused');
  assert.deepEqual((await items(visit)).map(({ name }) => name), ['Theirs']);
});
