import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { readLines, replaceFile } from '../../src/store/disk/files.ts';
import { NodeFiles } from '../../src/store/disk/node-files.ts';
import { isLockedRun } from '../support/basics.ts';
import { createPerson, SimulatedDisk, startStore } from '../support/store/fixtures.ts';
import { createApp } from '../support/inside.ts';

test('a new data directory is accessible only to its owner', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  t.after(() => rmSync(base, { recursive: true }));
  const mistyped = new NodeFiles(join(base, 'a', 'b c'));
  await assert.rejects(mistyped.prepare(), /^Error: Cannot make .*: there is no directory .*; make it first$/);
  const directory = join(base, 'b c');
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
const asRoot = { skip: (process.getuid?.() !== 0 || isLockedRun) && 'only root is refused' };
test('root is refused in another user\'s directory, with the command to use instead', asRoot, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  t.after(() => rmSync(directory, { recursive: true }));
  chownSync(directory, 1234, 5678);
  const message = new RegExp(`^Cannot use ${directory} as root: .*; run the same command by sudo -u '#1234'$`);
  await assert.rejects(createApp({ directory }), { message });
  assert.deepEqual(readdirSync(directory), []);
});

const onDisk = { skip: isLockedRun && 'Node.js may deny syncs, and other files are out of reach' };
test('the system is asked to sync data, the directory and each write of a journal', onDisk, async (t) => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'cairn-syncs-')));
  t.after(() => rmSync(directory, { recursive: true }));
  const probe = await open(directory);
  const handles: FileHandle = Object.getPrototypeOf(probe);
  await probe.close();
  const synced: string[] = [];
  const pathOf = ({ fd }: FileHandle): string =>
    process.platform === 'linux' ? readlinkSync(`/proc/self/fd/${fd}`).replace(directory, '') : '';
  for (const name of ['sync', 'datasync'] as const) {
    const real = handles[name];
    t.mock.method(handles, name, function (this: FileHandle) {
      synced.push(`${name} ${pathOf(this)}`.trim());
      return real.call(this);
    });
  }
  const done = (): string[] => synced.splice(0);
  const isNamed = process.platform === 'linux';
  const expected = (...lines: string[]) => lines.map((line) => (isNamed ? line.trim() : line.split(' ')[0]));
  const directorySync = process.platform === 'win32' ? [] : ['sync '];

  const below = new NodeFiles(join(directory, 'a'));
  await below.prepare();
  const parents = directorySync.length === 0 ? [] : ['sync ', 'sync /a'];
  assert.deepEqual(done(), expected(...parents), 'the new name, and the directory itself');
  await below.close();
  const files = new NodeFiles(directory);
  await files.prepare();
  assert.deepEqual(done(), expected(...directorySync));
  await files.syncDirectory();
  assert.deepEqual(done(), expected(...directorySync));

  await replaceFile(files, 'people.json', Buffer.from('one'));
  const [data = '', ...rest] = done();
  assert.match(data, isNamed ? /^datasync \/people\.json\.tmp$/ : /^datasync$/, 'before it has its name');
  assert.deepEqual(rest, expected(...directorySync), 'and after');

  const journal = await files.open('journal-1.jsonl', 'journal');
  if (isNamed) {
    const descriptors = readdirSync('/proc/self/fd').filter((fd) => existsSync(`/proc/self/fd/${fd}`));
    const fd = descriptors.find((each) => readlinkSync(`/proc/self/fd/${each}`) === join(directory, 'journal-1.jsonl'));
    const [, flags = ''] = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')) ?? [];
    assert.equal(Number.parseInt(flags, 8) & constants.O_DSYNC, constants.O_DSYNC, flags);
  }
  await journal.write(Buffer.from('line\n'), 0);
  await journal.sync();
  assert.deepEqual(done(), isNamed ? [] : ['datasync'], 'a write that is written through needs no more');
  await journal.truncate(0);
  assert.deepEqual(done(), expected('sync /journal-1.jsonl'));
  await journal.close();
  await files.close();
});

test('a directory that cannot be synced is refused', onLinux, async () => {
  await assert.rejects(createApp({ directory: realpathSync('/proc/self') }), { code: 'EINVAL' });
});

test('a directory that cannot be synced is closed', onLinux, async () => {
  const directory = realpathSync('/proc/self');
  await assert.rejects(createApp({ directory }));
  const open = readdirSync('/proc/self/fd').map((descriptor) => join('/proc/self/fd', descriptor));
  const paths = open.filter((link) => existsSync(link)).map((link) => readlinkSync(link));
  assert.ok(!paths.includes(directory), paths.join());
});

test(
  'symbolic links are not followed when writing',
  { skip: isLockedRun && 'its own directory is all within reach' },
  async (t) => {
    const base = mkdtempSync(join(tmpdir(), 'cairn-files-'));
    t.after(() => rmSync(base, { recursive: true }));
    const [directory, secret] = [join(base, 'data'), join(base, 'secret')];
    mkdirSync(directory);
    writeFileSync(secret, 'of another');
    for (const name of ['a', 'a.tmp']) symlinkSync(secret, join(directory, name));
    const files = new NodeFiles(directory);
    await files.prepare();
    await assert.rejects(replaceFile(files, 'a', Buffer.from('ours')), { code: 'ELOOP' });
    await files.close();
    assert.equal(readFileSync(secret, 'utf8'), 'of another');
  },
);

test('a pipe or directory in place of a file is refused at once', onLinux, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  t.after(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, 'directory'));
  execFileSync('mkfifo', [join(directory, 'pipe')]);
  for (const name of ['directory', 'pipe']) {
    const message = `Cannot read ${join(directory, name)}: it is not a file`;
    await assert.rejects(new NodeFiles(directory).open(name, 'read'), { message });
  }
});

const goes = { skip: isLockedRun && 'its own directory is all that is within reach' };
test('a lock that is a dangling link is refused at once', goes, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  t.after(() => rmSync(directory, { recursive: true }));
  symlinkSync('nowhere', join(directory, 'lock'));
  const message = `Cannot read ${realpathSync(directory)}/lock: it is a broken link: remove it`;
  await assert.rejects(startStore({ files: new NodeFiles(realpathSync(directory)) }), { message });
  assert.deepEqual(readdirSync(directory), ['lock']);
});

test('a store continues when its lock is touched', goes, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const { store, people } = await startStore({ files: new NodeFiles(join(directory, 'data')) });
  utimesSync(join(directory, 'data', 'lock'), 1, 1);
  await store.write((tx) => tx.of(people).insert(createPerson('ann')));
  await store.close();
});

test('a store continues when the process changes directory', goes, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  const before = process.cwd();
  t.after(() => {
    process.chdir(before);
    rmSync(directory, { recursive: true });
  });
  process.chdir(directory);
  const { store, people } = await startStore({ files: new NodeFiles('data') });
  process.chdir(before);
  await store.write((tx) => tx.of(people).insert(createPerson('ann')));
  await store.close();
});

test('a new journal does not replace another file', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-files-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const files = new NodeFiles(directory);
  writeFileSync(join(directory, 'a'), 'a');
  for (const mode of ['journal', 'exclusive'] as const) await assert.rejects(files.open('a', mode), { code: 'EEXIST' });
  await (await files.open('b', 'journal')).close();
  const content = readdirSync(directory).map((name) => name + readFileSync(join(directory, name), 'utf8'));
  assert.deepEqual(content.sort(), ['aa', 'b']);
});

test('reading a line of many chunks copies it only a few times', async (t) => {
  const long = Buffer.alloc(8 * 1024 * 1024, 'x');
  const content = Buffer.concat([Buffer.from('a\nb\n'), long, Buffer.from('\nc')]);
  const disk = new SimulatedDisk(new Map([['file', content]]));
  const concat = t.mock.method(Buffer, 'concat');
  const lines: (readonly [number, number, string])[] = [];
  for await (const { offset, bytes } of readLines(disk, 'file')) {
    lines.push([offset, bytes.length, bytes.toString('latin1', 0, 2)]);
  }
  assert.deepEqual(lines, [
    [0, 2, 'a\n'], [2, 2, 'b\n'], [4, long.length + 1, 'xx'], [long.length + 5, 1, 'c'],
  ]);
  const copied = concat.mock.calls.reduce((sum, { result }) => sum + (result?.length ?? 0), 0);
  assert.ok(copied < 3 * content.length, `${copied} of ${content.length} bytes`);
});
