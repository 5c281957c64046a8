import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isLockedRun } from '../.support/locked.ts';
import { TestClock } from '../.support/auth/helpers.ts';
import { openTestApp } from '../.support/app.ts';

test('the status shows administrators the version, the records and the store', async (t) => {
  const { ask, token } = await openTestApp(t);
  const authorization = `Bearer ${await token('admin')}`;
  const before = Object((await ask('GET', '/status', { fields: { authorization } })).json);
  assert.match(before.version, /^\d+\.\d+\.\d+$/);
  assert.equal(before.state, 'writable');
  assert.ok(Date.parse(before.startedAt) <= Date.now());
  await ask('POST', '/items', { fields: { authorization }, json: { name: 'Lamp', price: 5 } });
  const after = Object((await ask('GET', '/status', { fields: { authorization } })).json);
  assert.equal(after.records, before.records + 1);
});

test('with a directory, it shows the free space and the last checkpoint', { skip: isLockedRun }, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-status-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const { ask, token } = await openTestApp(t, { directory });
  const fields = { authorization: `Bearer ${await token('admin')}` };
  const status = Object((await ask('GET', '/status', { fields })).json);
  assert.ok(status.freeBytes > 0);
  assert.ok(status.journalBytes > 0);
  assert.ok(Date.now() - Date.parse(status.checkpointedAt) < 600_000);
});

test('the status has figures of the last hour, minute by minute', { skip: isLockedRun }, async (t) => {
  const clock = new TestClock();
  const { ask, token } = await openTestApp(t, { clock });
  const fields = { authorization: `Bearer ${await token('admin')}` };
  const minutes = async (): Promise<unknown[]> => Object((await ask('GET', '/status', { fields })).json).minutes;
  assert.equal((await minutes()).length, 1);
  clock.advance(10 * 60);
  assert.equal((await minutes()).length, 11);
});
