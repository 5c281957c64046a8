import assert from 'node:assert/strict';
import { chmodSync, chownSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkDirectory, checkFileSystem } from '../../src/cli/findings.ts';
import { isLockedRun } from '../support/basics.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';

test('file systems that do not keep promises are told apart', () => {
  const nfs = 0x6969;
  const tmpfs = 0x01021994;
  const ext4 = 0xef53;
  assert.deepEqual([nfs, tmpfs, ext4].map((kind) => checkFileSystem(kind).level), ['failure', 'warning', 'ok']);
});

test('a directory: modes that let others in', (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'users.json');
  writeFileSync(file, '', { mode: 0o600 });
  const failures = (): string[] =>
    checkDirectory(directory).filter(({ level }) => level === 'failure').map(({ text }) => text);
  assert.deepEqual(failures(), []);
  // A running server may have removed by now what was listed before.
  if (!isLockedRun) symlinkSync('gone', join(directory, 'items.json.tmp'));
  writeFileSync(join(directory, '.gitignore'), '*', { mode: 0o644 });
  chmodSync(directory, 0o755);
  assert.deepEqual(failures(), [], 'no file can be read, and what is not ours is not our concern');
  chmodSync(file, 0o604);
  assert.deepEqual(failures(), [
    'The data directory can be read by other users of this machine (mode 0755): chmod go= it',
    'users.json can be read by other users of this machine (mode 0604): chmod go= it',
  ]);
});

test('a group that may read the data: a failure, but where it is that of the process', {
  skip: process.getuid?.() !== 0 || isLockedRun ? 'only root gives files to another group' : false,
}, (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'users.json');
  writeFileSync(file, '');
  chmodSync(file, 0o660);
  const levels = (): string[] =>
    checkDirectory(directory).filter(({ text }) => text.startsWith('users.json')).map(({ level }) => level);
  assert.deepEqual(levels(), ['warning'], 'as Kubernetes has it for fsGroup, which a start accepts');
  chownSync(file, 0, 4711);
  assert.deepEqual(levels(), ['failure']);
});
