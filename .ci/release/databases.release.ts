/** The manual's recipes for SQLite and PostgreSQL, run with the real ones if installed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { commands } from '../../src/cli/transfer.ts';
import { runCommand } from '../../test/support/cli/terminal.ts';
import { temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { corpus } from '../../test/support/corpus.ts';
import { readHandbook } from '../../test/support/source.ts';

const records = [
  ...Object(corpus['placeholder']).posts, ...Object(corpus['shop']).products, ...Object(corpus['mixedIds']).rows,
  { id: "it's", quotes: '"\\\'`$HOME :x', lines: 'a\nb\tc', 'größe': null, nested: { a: [1.5, { b: '😀' }] } },
].map((record, at) => ({ ...record, id: typeof record.id === 'string' ? record.id : at + 0.5 }));

function recipe(text: string): string {
  const all = Array.from(readHandbook().matchAll(/^```sql\n(.*?)^```$/gms), ([, sql = '']) => sql);
  const found = all.find((sql) => sql.includes(text));
  assert.ok(found !== undefined, text);
  return found;
}

/** Imports records and exports them, and returns the directory with `export.json`. */
async function exported(t: TestContext): Promise<string> {
  const directory = temporaryDirectory(t);
  const [file, declared, data] = ['db.json', 'declared.json', 'data'].map((name) => join(directory, name));
  assert.ok(file !== undefined && declared !== undefined && data !== undefined);
  writeFileSync(file, JSON.stringify({ posts: records, profile: { name: 'one' } }));
  writeFileSync(declared, (await runCommand(commands, ['declare', file])).out);
  const imported = await runCommand(commands, ['import', file, '--data', data, '--collections', declared]);
  assert.equal(imported.code, 0, imported.err);
  const { out } = await runCommand(commands, ['export', '--data', data, '--collections', declared]);
  writeFileSync(join(directory, 'export.json'), out);
  return directory;
}

function run(cwd: string, words: readonly string[], input: string, uid?: number): string {
  const [program = '', ...args] = words;
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, input, encoding: 'utf8', ...(uid && { uid }) });
  assert.equal(status, 0, stdout + stderr);
  return stdout;
}

const isInstalled = (program: string): boolean => spawnSync(program, ['--version']).status === 0;
const ids = records.map(({ id }) => String(id));

test('SQLite loads an export', { skip: !isInstalled('sqlite3') && 'sqlite3 is not installed' }, async (t) => {
  const directory = await exported(t);
  const asked = `${recipe('json_each')}\n.mode json\nselect id, record from posts order by rowid;`;
  const rows = JSON.parse(run(directory, ['sqlite3', 'cairn.db'], asked));
  assert.deepEqual(rows.map(({ id }: { id: unknown }) => String(id)), ids);
  assert.deepEqual(rows.map(({ record }: { record: string }) => JSON.parse(record)), records);
});

/** Debian and others keep the programs of the server here. */
const servers = '/usr/lib/postgresql';
const newest = existsSync(servers) ? readdirSync(servers).sort((a, b) => Number(b) - Number(a))[0] : undefined;
const binaries = newest === undefined ? undefined : join(servers, newest, 'bin');
const hasServer = binaries !== undefined && existsSync(join(binaries, 'initdb')) && isInstalled('psql');

test('PostgreSQL loads an export', { skip: !hasServer && 'PostgreSQL is not installed' }, async (t) => {
  const directory = await exported(t);
  // The server refuses to run as root; "nobody" is 65534 on most systems.
  const uid = process.getuid?.() === 0 ? 65_534 : undefined;
  const own = temporaryDirectory(t);
  if (uid !== undefined) chownSync(own, uid, uid);
  const server = (program: string, ...words: string[]): string =>
    run(own, [join(binaries ?? '', program), ...words], '', uid);
  server('initdb', '-D', 'd', '-A', 'trust', '-U', 'postgres', '-N', '--locale=C', '-E', 'UTF8');
  server('pg_ctl', 'start', '-w', '-D', 'd', '-l', 'log', '-o', `-c listen_addresses= -k ${own} -F`);
  try {
    const asked = `${recipe('json_array_elements')}\nselect json_agg(posts) from posts;`;
    const psql = ['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-h', own, '-U', 'postgres', 'postgres'];
    const rows = JSON.parse(run(directory, psql, asked));
    assert.deepEqual(rows.map(({ id }: { id: string }) => id), ids);
    assert.deepEqual(rows.map(({ record }: { record: unknown }) => record), records);
  } finally {
    server('pg_ctl', 'stop', '-D', 'd', '-m', 'immediate');
  }
});
