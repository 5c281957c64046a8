import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { NodeFiles } from '../../src/store/node-files.ts';
import { isLockedRun } from '../support/locked.ts';

test('a data directory is made with all that is missing above it, for its owner alone', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  t.after(() => rmSync(base, { recursive: true }));
  const directory = join(base, 'a', 'b c');
  for (const _ of [1, 2]) {
    const files = new NodeFiles(directory);
    await files.prepare();
    await files.close();
  }
  if (process.platform !== 'win32') assert.equal(statSync(directory).mode & 0o777, 0o700);
});

const onLinux = {
  skip: (process.platform !== 'linux' || isLockedRun) && 'there is no such file system within reach',
};
test(
  'a directory that cannot be made is refused, also where the system says that nothing is there',
  onLinux,
  async () => {
    await assert.rejects(new NodeFiles('/proc/nothing/here').prepare(), { code: 'ENOENT' });
  },
);
