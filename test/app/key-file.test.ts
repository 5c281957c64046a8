import assert from 'node:assert/strict';
import { chmodSync, chownSync, statSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { isLockedRun } from '../support/basics.ts';
import { createApp } from '../support/inside.ts';

const skip = isLockedRun || process.getuid === undefined ? 'modes cannot be changed here' : false;
/** A group to which this process does not belong. */
const foreign = 54_321;

test('keys that others can read, change or replace are refused, with the remedy', { skip }, async (t) => {
  const directory = temporaryDirectory(t);
  await (await createApp({ directory })).close();
  const file = join(directory, 'keys.json');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const cases: readonly [path: string, mode: number, group: number | undefined, remedy: string | undefined][] = [
    [file, 0o666, undefined, `chmod o= ${file}`], [file, 0o644, undefined, `chmod o= ${file}`],
    [file, 0o602, undefined, `chmod o= ${file}`], [file, 0o660, undefined, undefined],
    [file, 0o640, undefined, undefined], [file, 0o640, foreign, `chmod g= ${file}`],
    [file, 0o666, foreign, `chmod go= ${file}`], [file, 0o600, foreign, undefined],
    [directory, 0o777, undefined, `chmod o-w ${directory}`], [directory, 0o755, undefined, undefined],
    [directory, 0o770, undefined, undefined], [directory, 0o770, foreign, `chmod g-w ${directory}`],
  ];
  for (const [path, mode, group, remedy] of cases) {
    const label = `${path} ${mode.toString(8)} ${group ?? 'own group'}`;
    const { uid, gid } = statSync(path);
    // Only root may give a file to any group.
    if (group !== undefined && process.getuid?.() !== 0) continue;
    chownSync(path, uid, group ?? gid);
    chmodSync(path, mode);
    if (remedy !== undefined) {
      const start = createApp({ directory });
      const refusal = await start.then(() => undefined, (error: Error) => error);
      assert.equal(refusal?.name, 'KeyRingError', label);
      assert.ok(refusal.message.endsWith(`; run ${remedy}`), `${label}: ${refusal.message}`);
      assert.equal(spawnSync('sh', ['-c', remedy]).status, 0, label);
    }
    await (await createApp({ directory })).close();
    chownSync(path, uid, gid);
    chmodSync(path, path === file ? 0o600 : 0o700);
  }
});

test('keys that another user owns are refused, with the remedy', {
  skip: skip || (process.getuid?.() !== 0 && 'only root gives files to another user'),
}, async (t) => {
  const directory = temporaryDirectory(t);
  await (await createApp({ directory })).close();
  const file = join(directory, 'keys.json');
  chownSync(file, foreign, 0);
  const remedy = `chown 0 ${file}`;
  const message = `Cannot use the keys: another user (${foreign}) owns ${file}, can change it, and so sign tokens; ` +
    `run ${remedy}`;
  await assert.rejects(createApp({ directory }), { name: 'KeyRingError', message });
  assert.equal(spawnSync('sh', ['-c', remedy]).status, 0);
  await (await createApp({ directory })).close();
});

test('a start in a new directory that others can write to is refused before it makes keys', { skip }, async (t) => {
  const directory = temporaryDirectory(t);
  chmodSync(directory, 0o777);
  await assert.rejects(createApp({ directory }), { name: 'KeyRingError', exitCode: 78 });
  assert.equal(statSync(join(directory, 'keys.json'), { throwIfNoEntry: false }), undefined);
  const app = await createApp({ directory, secret: 'a secret that needs no file of keys' });
  await app.close();
});
