import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { loader } from '../cli/spawn.ts';
import { projectDirectory } from '../source.ts';

function bench(...words: readonly string[]) {
  const main = join(projectDirectory, 'test', 'bench', 'main.ts');
  return spawnSync(process.execPath, [...loader, main, ...words], { cwd: projectDirectory, encoding: 'utf8' });
}

test('the bench tells how it is called, and what is wrong in one line', () => {
  const help = bench('--help');
  assert.deepEqual([help.status, help.stderr], [0, '']);
  for (const option of ['store', 'rounds', 'seconds', 'only', 'save', 'compare', 'records']) {
    assert.ok(help.stdout.includes(option), option);
  }
  for (const words of ['--round 1', '--rounds', '--rounds x', '--seconds 0', '--records 1,', 'stores', 'store now']) {
    const { status, stdout, stderr } = bench(...words.split(' '));
    assert.deepEqual([status, stdout], [64, ''], words);
    assert.match(stderr, /^Cannot run the bench: .*; see npm run bench -- --help\n$/, words);
  }
});
