import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { isLockedRun } from '../support/locked.ts';
import { silentLog } from '../../src/log/log.ts';
import { openTestApp } from '../support/app.ts';
import { until } from '../support/until.ts';

test('a start on a disk without a free byte serves who is signed in, and goes on when there is room', async (t) => {
  const disk = mkdtempSync(join(tmpdir(), 'cairn-disk-'));
  const mounted = isLockedRun ? undefined : spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'none', disk]);
  if (mounted?.status !== 0) {
    rmSync(disk, { recursive: true });
    return t.skip('no file system can be mounted here');
  }
  t.after(() => {
    spawnSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true });
  });
  const directory = join(disk, 'data');
  const secret = 'a secret that both starts know, and 32 bytes';
  const first = await openTestApp(t, { directory, secret });
  const [cookie, token] = [await first.cookie('member'), await first.token('member')];
  await (await first.as('member'))('POST', '/items', { json: { name: 'Lamp', price: 1 } });
  await first.app.close();

  const filler = join(disk, 'filler');
  assert.throws(() => writeFileSync(filler, Buffer.alloc(8 * 1024 * 1024)), { code: 'ENOSPC' });
  const said: string[] = [];
  const log = { ...silentLog, message: (_: string, text: string) => void said.push(text) };
  const { app, ask } = await openTestApp(t, { directory, secret, log });
  assert.match(said.join(), /the disk is full: nothing is written until 1\d{6} bytes are free in .*data$/);
  for (const fields of [{ cookie }, { authorization: `Bearer ${token}` }]) {
    assert.equal((await ask('GET', '/items/1', { fields })).status, 200);
    const refused = await ask('POST', '/items', { fields, json: { name: 'Chair', price: 2 } });
    assert.deepEqual([refused.status, refused.code], [507, 'storage_full']);
    assert.match(Object(refused.json).detail, /: 1\d{6} bytes have to be free$/);
    assert.equal((await ask('DELETE', '/items/1', { fields })).code, 'storage_full');
  }
  assert.equal((await ask('GET', '/dashboard', { fields: { cookie } })).status, 200);
  assert.equal((await ask('POST', '/login', { json: first.credentials('member') })).code, 'storage_full');
  const ready = await ask('GET', '/readyz');
  assert.deepEqual([ready.status, ready.json], [200, { status: 'ready', writes: 'full' }]);

  rmSync(filler);
  await until(() => app.store.state === 'writable');
  const fields = { cookie };
  assert.equal((await ask('POST', '/items', { fields, json: { name: 'Chair', price: 2 } })).status, 201);
  await app.close();
});
