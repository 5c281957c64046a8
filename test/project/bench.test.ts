import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { programArguments } from '../support/cli/spawn.ts';
import { projectDirectory } from '../support/source.ts';
import { explainError, readArguments } from '../../.ci/bench/arguments.ts';

function bench(...words: readonly string[]) {
  const all = [...programArguments('.ci/bench/main'), ...words];
  return spawnSync(process.execPath, all, { cwd: projectDirectory, encoding: 'utf8' });
}

test('the bench shows its usage, and reports a wrong argument in one line', () => {
  const help = bench('--help');
  assert.deepEqual([help.status, help.stderr], [0, '']);
  for (const option of ['peers', 'store', 'wear', 'rounds', 'seconds', 'only', 'former', 'records']) {
    assert.ok(help.stdout.includes(option), option);
  }
  const oneLine = /^Cannot run the bench: .*; see npm run bench -- --help\n$/;
  const { status, stdout, stderr } = bench('--rounds', 'x');
  assert.deepEqual([status, stdout], [64, '']);
  assert.match(stderr, oneLine);
  for (const words of ['--round 1', '--rounds', '--rounds x', '--seconds 0', '--records 1,', 'stores', 'store now']) {
    const isOneLine = (error: unknown): boolean => oneLine.test(explainError(error));
    assert.throws(() => readArguments(words.split(' ')), isOneLine, words);
  }
});
