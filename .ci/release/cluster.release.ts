import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { projectDirectory } from '../../test/support/source.ts';

test('the suites of the API, accounts and collections pass on a cluster', () => {
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const words = ['.ci/suite.js', 'test', '/api/', '/accounts/', '/collections/'];
  const { status, stdout } = spawnSync(process.execPath, words, {
    cwd: projectDirectory, env: { ...environment, CAIRN_TEST_STORE: 'cluster' }, encoding: 'utf8', maxBuffer: 2 ** 26,
  });
  assert.equal(status, 0, stdout.split(/^(?=not ok)/m).slice(1).join(''));
  assert.match(stdout, /^# pass \d{3}/m);
});
