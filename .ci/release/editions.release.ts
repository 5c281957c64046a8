/** The format on disk: this version and the previous one open each other's files, however the writer ended. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { projectDirectory } from '../../test/support/source.ts';
import { seedNumbers } from '../../test/support/store/fixtures.ts';

/** The last commit of 0.3.0. */
const earlier = '1b98ef77';

const hasHistory = ((): boolean => {
  try {
    execFileSync('git', ['cat-file', '-e', earlier], { cwd: projectDirectory, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

test('0.3 and this version open each other\'s data', {
  skip: !hasHistory && 'this clone has no history',
}, (t) => {
  const former = temporaryDirectory(t);
  const archive = execFileSync('git', ['archive', earlier, 'src', 'package.json'], {
    cwd: projectDirectory, maxBuffer: 2 ** 28,
  });
  execFileSync('tar', ['-x', '-C', former], { input: archive });
  const data = join(temporaryDirectory(t), 'data');
  const next = seedNumbers(Number(process.env['CAIRN_TEST_SEED'] ?? 1));
  const script = join(import.meta.dirname, 'edition-store.ts');
  const seen = { ends: new Set<string>(), turns: 0 };
  let before: unknown;
  for (let turn = 0; turn < 60; turn += 1) {
    if (turn % 20 === 0) {
      rmSync(data, { recursive: true, force: true });
      mkdirSync(data);
      before = undefined;
    }
    const source = next() < 0.5 ? former : projectDirectory;
    const end = ['stop', 'kill', 'checkpoint'][Math.floor(next() * 3)] ?? '';
    const words = [source, data, String(Math.floor(next() * 6)), end, turn % 20 >= 10 ? 'more' : ''];
    const output = execFileSync(process.execPath, ['--import', 'tsx', script, ...words], {
      cwd: projectDirectory, encoding: 'utf8',
    });
    const [found, left] = output.trim().split('\n').map((line) => Object(JSON.parse(line)));
    // The first process that knows the third collection finds nothing in it.
    const expected = Object(before);
    if (turn % 20 === 10) expected.records.push([]);
    if (before !== undefined) assert.deepEqual(found, expected, `turn ${turn}: ${words.join(' ')}`);
    before = left;
    seen.turns += 1;
    seen.ends.add(`${source === former ? 'before' : 'this'} ${end}`);
  }
  t.diagnostic(`${seen.turns} turns: ${[...seen.ends].sort().join(', ')}`);
  assert.equal(seen.ends.size, 6);
});
