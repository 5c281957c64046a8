/** `kill -9` at any moment of an import: nothing of it is there, or all of it. `CAIRN_TEST_SEED` replays. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startCairn, temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { runBeforeTests } from '../../test/support/basics.ts';
import { seedNumbers } from '../../test/support/store/fixtures.ts';
import { crashImports } from '../../test/support/store/crashes.ts';

const kills = Number(process.env['CAIRN_IMPORT_KILLS'] ?? 40);
const seed = Number(process.env['CAIRN_TEST_SEED'] ?? 1);
const perImport = 20_000;
const rowsMax = 5 * perImport;

/** As many imports as kills, each with many crashes. */
const crashes = await runBeforeTests(() => crashImports(kills));

test(`an import is complete or absent after any crash of ${kills} seeds`, (t) => {
  const { states, none, whole } = crashes();
  t.diagnostic(`${states} states: nothing in ${none}, everything in ${whole}`);
  assert.ok(none > 4 * kills && whole > 40 * kills, `${none} and ${whole}`);
});

test(`an import that is killed at any of ${kills} moments is complete or absent`, async (t) => {
  const next = seedNumbers(seed);
  const directory = temporaryDirectory(t);
  const first = join(directory, 'first');
  const [data, file, own] = ['data', 'db.json', 'own.json'].map((name) => join(directory, name));
  assert.ok(data !== undefined && file !== undefined && own !== undefined);
  const fields = {
    text: { kind: 'text', unique: true }, nextId: { kind: 'reference', to: 'rows', optional: true },
  };
  writeFileSync(own, JSON.stringify({ items: false, collections: [{ name: 'rows', singular: 'row', fields }] }));
  const words = ['--data', data, '--collections', own];
  let [there, round, tookMs] = [0, 0, 0];
  const seen = { nothing: 0, everything: 0 };
  const exported = async (): Promise<number> => {
    const server = startCairn(t, ['export', ...words]);
    assert.equal(await server.ended, 0, server.err);
    return JSON.parse(server.out).rows.length;
  };
  for (let kill = 0; kill <= kills; kill += 1) {
    // References lead from each chunk of the file into the next one.
    const base = round * perImport;
    const rows = Array.from({ length: perImport }, (_, n) => ({
      id: base + n + 1, text: `${base + n} ${'x'.repeat(100)}`, nextId: base + ((n + perImport / 2) % perImport) + 1,
    }));
    writeFileSync(file, JSON.stringify({ rows }));
    const begun = performance.now();
    const importing = startCairn(t, ['import', file, ...words]);
    // The first one shows how long it takes.
    if (kill > 0) await Promise.race([delay(next() * tookMs * 1.1), importing.ended]);
    if (kill > 0) importing.child.kill('SIGKILL');
    const code = await importing.ended;
    if (kill === 0) tookMs = performance.now() - begun;
    const found = await exported();
    assert.ok(found === there || found === there + perImport, `kill ${kill}: ${found} records, ${there} before`);
    assert.ok(code !== 0 || found === there + perImport, `kill ${kill}: it had ended well`);
    seen[found === there ? 'nothing' : 'everything'] += 1;
    if (found > there) round += 1;
    there = found;
    if (kill === 0) cpSync(data, first, { recursive: true });
    if (kill % 10 === 0) {
      const checking = startCairn(t, ['check', ...words]);
      assert.equal(await checking.ended, 0, checking.out);
    }
    // A store that only grows would make each kill slower, and this process too small to read it.
    if (there < rowsMax || kill === kills) continue;
    rmSync(data, { recursive: true });
    cpSync(first, data, { recursive: true });
    there = perImport;
  }
  assert.match(readFileSync(join(data, 'rows.json'), 'utf8'), /"count":/);
  t.diagnostic(`seed ${seed}: nothing ${seen.nothing} times, everything ${seen.everything} times`);
});

test('a file whose records do not fit into memory or a commit does not create a store', async (t) => {
  const directory = temporaryDirectory(t);
  const [data, file, own] = ['data', 'db.json', 'own.json'].map((name) => join(directory, name));
  assert.ok(data !== undefined && file !== undefined && own !== undefined);
  const fields = { text: { kind: 'text', unique: true } };
  writeFileSync(own, JSON.stringify({ items: false, collections: [{ name: 'rows', singular: 'row', fields }] }));
  const rows = Array.from({ length: 1_500_000 }, (_, n) => `{"id":${n + 1},"text":"${n}"}`);
  writeFileSync(file, `{"rows":[${rows.join()}]}`);
  const environment = { NODE_OPTIONS: '--max-old-space-size=200' };
  const importing = startCairn(t, ['import', file, '--data', data, '--collections', own], environment);
  assert.equal(await importing.ended, 65, importing.err);
  const problem = /^Cannot read .*: it may take [\d,]+ MiB of memory, and [\d,]+ MiB are left; split it, or give /m;
  assert.match(importing.err, problem);
  assert.ok(!existsSync(data));
  // A little more than 256 MiB of text.
  const long = Array.from({ length: 2_700 }, (_, n) => `{"id":${n + 1},"text":"${n}${'x'.repeat(99_990)}"}`);
  const longFields = { text: { kind: 'text', max: 100_000 } };
  const collections = [{ name: 'rows', singular: 'row', fields: longFields }];
  writeFileSync(own, JSON.stringify({ items: false, collections }));
  writeFileSync(file, `{"rows":[${long.join()}]}`);
  const tooLong = startCairn(t, ['import', file, '--data', data, '--collections', own]);
  assert.equal(await tooLong.ended, 65, tooLong.err);
  const figures = /at most 256 MiB of records are written at once, and it has 258 MiB:/;
  assert.match(tooLong.err, figures);
  assert.ok(!existsSync(data));
});
