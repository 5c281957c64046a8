import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

test('the suites of the API, of accounts and of collections pass over a cluster', () => {
  const files = ['api', 'accounts', 'collections'].flatMap((folder) => {
    const directory = join(import.meta.dirname, '..', `.${folder}`);
    return readdirSync(directory).filter((name) => name.endsWith('.test.ts')).map((name) => join(directory, name));
  });
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const { status, stdout } = spawnSync(
    process.execPath, [...process.execArgv, '--test', '--test-concurrency=2', '--test-reporter=spec', ...files],
    { env: { ...environment, CAIRN_TEST_STORE: 'cluster' }, encoding: 'utf8' },
  );
  assert.equal(status, 0, stdout.split('failing tests').at(-1));
  assert.match(stdout, /pass \d{3}/);
});
