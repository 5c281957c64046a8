import assert from 'node:assert/strict';
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { FatalError } from '../../src/base/errors.ts';
import { commands as dataCommands } from '../../src/cli/data.ts';
import { parseDeclarations, type Declarations } from '../../src/collections/declaration-file.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { runCommand } from '../support/cli/terminal.ts';
import { isLockedRun } from '../support/basics.ts';
import { createApp } from '../support/inside.ts';

/** "cairn check" says what a start would say, so nobody has to try one to find out. */
const books = (pages: object): string =>
  JSON.stringify({ collections: [{ name: 'books', singular: 'book', fields: { title: { kind: 'text' }, ...pages } }] });
const declared = books({});
const administrator = { email: 'ada@example.org', password: 'correct horse battery' };

/** A store with books in its snapshots, and in a journal that was not closed. */
async function makeStore(t: TestContext): Promise<string> {
  const [live, directory] = [temporaryDirectory(t), temporaryDirectory(t)];
  const collections = parseDeclarations(JSON.parse(declared), []);
  for (const titles of [['Persuasion'], ['Emma', 'Sanditon']]) {
    const app = await createApp({ directory: live, scryptCost: 1, administrator, ...collections });
    for (const title of titles) await app.collection('books').create({ title });
    if (titles.length === 2) cpSync(live, directory, { recursive: true });
    await app.close();
  }
  rmSync(join(directory, 'lock'));
  return directory;
}

const edit = (name: string, change: (text: string) => string) => (directory: string): void => {
  const path = join(directory, name);
  const text = readFileSync(path, 'utf8');
  assert.notEqual(change(text), text, name);
  writeFileSync(path, change(text));
};
const journalOf = (directory: string): string =>
  readdirSync(directory).find((name) => name.startsWith('journal-')) ?? '';

const canChangeModes = !isLockedRun && process.getuid !== undefined;
const troubles: Readonly<Record<string, (directory: string) => void>> = {
  'a flipped letter in a snapshot': edit('users.json', (text) => text.replace('ada@', 'adb@')),
  'a snapshot that was cut short': (directory) => truncateSync(join(directory, 'users.json'), 100),
  'a snapshot that is missing': (directory) => rmSync(join(directory, 'users.json')),
  'a snapshot of a newer version': edit('books.json', (text) => text.replace('"format":1', '"format":9')),
  'a journal that is missing': (directory) => rmSync(join(directory, journalOf(directory))),
  'a flipped letter in the journal': (directory) =>
    edit(journalOf(directory), (text) => text.replace('"Emma"', '"Enma"'))(directory),
  'keys that are none': (directory) => writeFileSync(join(directory, 'keys.json'), '{}'),
  ...(canChangeModes && {
    'keys that others can change': (directory: string) => chmodSync(join(directory, 'keys.json'), 0o666),
    'keys that others can replace': (directory: string) => chmodSync(directory, 0o777),
  }),
  'nothing': () => undefined,
};

async function start(directory: string, declarations: Declarations): Promise<FatalError | undefined> {
  try {
    await (await createApp({ directory, scryptCost: 1, administrator, ...declarations })).close();
  } catch (error) {
    assert.ok(error instanceof FatalError, String(error));
    return error;
  }
  return undefined;
}

/** Checks a directory, starts a server on it, and compares what they say. */
async function compare(t: TestContext, directory: string, declaration: string): Promise<string> {
  const file = join(temporaryDirectory(t), 'collections.json');
  writeFileSync(file, declaration);
  const environment = { CAIRN_DATA: directory, CAIRN_COLLECTIONS: file };
  const { code, out } = await runCommand(dataCommands, ['check'], '', environment);
  const refusal = await start(directory, parseDeclarations(JSON.parse(declaration), []));
  assert.equal(code, refusal?.exitCode ?? 0, `${out}\n${refusal?.message}`);
  const [, problem = ''] = /^(?:Cannot open the store: )?(.*?\[\w\d\]|.*)/.exec(refusal?.message ?? '') ?? [];
  assert.ok(out.includes(problem), `${out}\ndoes not say\n${problem}`);
  return problem;
}

test('check says what a start says', async (t) => {
  const store = await makeStore(t);
  const copied = (): string => {
    const directory = temporaryDirectory(t);
    cpSync(store, directory, { recursive: true });
    return directory;
  };
  for (const [what, harm] of Object.entries(troubles)) {
    await t.test(`of ${what}`, async () => {
      const directory = copied();
      harm(directory);
      const problem = await compare(t, directory, declared);
      assert.equal(problem !== '', what !== 'nothing');
    });
  }
  await t.test('of another declaration', async () => {
    const pages = { pages: { kind: 'integer', min: 1, max: 10 } };
    assert.match(await compare(t, copied(), books(pages)), /record 1 has no "pages".*\[D1\]$/);
  });
});
