/**
 * Directories that the servers of the first three editions left, with users, sessions and items: their files as text
 * are in `editions.json`. Each of them is opened, written, backed up and restored, and what its callers held is used.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../src/base/system.ts';
import { commands as dataCommands } from '../../src/cli/data.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { runCommand } from '../support/cli/terminal.ts';
import { isLockedRun } from '../support/basics.ts';
import { projectDirectory } from '../support/source.ts';
import { createApp, type App } from '../support/inside.ts';

interface Edition {
  readonly madeAt: number;
  readonly refreshToken: string;
  /** An access token, the field `Cookie`, and the cursor of `GET /items?limit=1&sort=-price` that was given then. */
  readonly accessToken?: string;
  readonly cookie?: string;
  readonly cursor?: string;
  readonly stopped: { readonly [file: string]: string };
  readonly killed: { readonly [file: string]: string };
}
const editions: { readonly [edition: string]: Edition } =
  JSON.parse(readFileSync(join(projectDirectory, 'test', 'store', 'editions.json'), 'utf8'));

const books = declareCollection({
  name: 'books',
  singular: 'book',
  fields: { title: { kind: 'text', min: 1 }, pages: { kind: 'integer', min: 1, optional: true } },
  timestamps: true,
});
const items = {
  stopped: [{ id: 1, name: 'Lamp', price: 19.9 }, { id: 3, name: 'Käse', price: 3 }],
  killed: [{ id: 3, name: 'Käse', price: 3 }, { id: 4, name: 'Desk', price: 90 }],
};

async function ask(app: App, method: string, target: string, json?: unknown, fields = {}) {
  const typed = json === undefined ? {} : { 'content-type': 'application/json' };
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  const reply = await app.inject({ method, target, fields: { ...typed, ...fields }, ...body });
  assert.ok(reply.status < 300, `${method} ${target}: ${reply.status} ${reply.body}`);
  return { json: JSON.parse(reply.body), isReplayed: reply.fields.get('idempotency-replayed') === 'true' };
}

for (const [edition, { madeAt, refreshToken, accessToken, cookie, cursor, ...left }] of Object.entries(editions)) {
  for (const way of ['stopped', 'killed'] as const) {
    test(`data of the ${edition} edition, ${way}, can be opened, written, backed up and restored`, {
      skip: isLockedRun && 'commands write anywhere',
    }, async (t) => {
      const root = temporaryDirectory(t);
      const [data = '', copy = '', restored = ''] = ['data', 'copy', 'restored'].map((name) => join(root, name));
      mkdirSync(data);
      for (const [name, text] of Object.entries(left[way])) writeFileSync(join(data, name), text, { mode: 0o600 });
      const run = async (...words: string[]): Promise<void> => {
        const { code, out, err } = await runCommand(dataCommands, words);
        assert.equal(code, 0, out + err);
      };
      await run('check', '--data', data);
      // The sessions of that day are still there.
      const clock = { ...systemClock, now: () => madeAt + 60_000 };
      const open = (directory: string): Promise<App> => createApp({ directory, collections: [books], clock });
      const app = await open(data);
      const credentials = { email: 'ada@example.org', password: 'correct horse battery' };
      const { json: { access_token: token } } =
        await ask(app, 'POST', '/tokens', way === 'stopped' ? { refresh_token: refreshToken } : credentials);
      const own = { authorization: `Bearer ${token}` };
      assert.deepEqual((await ask(app, 'GET', '/items', undefined, own)).json, items[way]);
      if (cookie !== undefined) {
        assert.equal((await ask(app, 'GET', '/dashboard', undefined, { cookie })).json.user.email, credentials.email);
        const held = { authorization: `Bearer ${accessToken}` };
        const next = await ask(app, 'GET', `/items?limit=1&sort=-price&cursor=${cursor}`, undefined, held);
        assert.deepEqual(next.json, [items[way].find(({ name }) => name === 'Käse')]);
      }
      const made = await ask(app, 'POST', '/items', { name: 'New', price: 1 }, own);
      assert.equal(made.json.id, way === 'stopped' ? 4 : 5);
      if (edition !== 'first') {
        // The key of that edition cannot be compared, so nothing is created twice.
        const kept = { ...own, 'idempotency-key': '"kept"' };
        const again = ask(app, 'POST', '/items', { name: 'Käse', price: 3 }, kept);
        await assert.rejects(again, /key_reused.*with an earlier version of Cairn/);
        assert.equal((await ask(app, 'GET', '/books/1', undefined, own)).json.title, 'Emma');
      }
      await app.close();
      // An earlier version refuses a journal of this format before it looks at anything else.
      const journals = readdirSync(data).filter((name) => name.startsWith('journal-'));
      assert.deepEqual(journals.map((name) => readFileSync(join(data, name), 'utf8').slice(0, 12)), ['{"format":2,']);
      await run('backup', copy, '--data', data);
      await run('restore', copy, '--data', restored);
      const other = await open(restored);
      const { json: { access_token } } = await ask(other, 'POST', '/tokens', credentials);
      const found = await ask(other, 'GET', '/items', undefined, { authorization: `Bearer ${access_token}` });
      assert.deepEqual(found.json, [...items[way], made.json]);
      await other.close();
    });
  }
}
