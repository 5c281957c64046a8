/** Checks the assumption of other tests' simulated disk: exactly these syncs are requested from the system. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { projectDirectory } from '../../test/support/source.ts';

/** A call, with the first and last line of its trace. */
interface Call {
  readonly name: string;
  readonly text: string;
  readonly began: number;
  readonly ended: number;
}

function parse(trace: string): Call[] {
  const calls: Call[] = [];
  const open = new Map<string, { readonly text: string; readonly began: number }>();
  for (const [line, printed] of trace.split('\n').entries()) {
    const [, thread = '', said = ''] = /^(\d+) +(.*)$/.exec(printed) ?? [];
    // If another thread's call came between, strace prints a call on two lines.
    const [, begun] = /^(.*) <unfinished [.]{3}>$/.exec(said) ?? [];
    if (begun !== undefined) {
      open.set(thread, { text: begun, began: line });
      continue;
    }
    const [, rest] = /^<[.]{3} \w+ resumed>(.*)$/.exec(said) ?? [];
    const { text, began } = rest === undefined ? { text: '', began: line } : (open.get(thread) ?? {});
    const whole = `${text}${rest ?? said}`;
    const name = /^(\w+)\(/.exec(whole)?.[1];
    if (began === undefined || name === undefined) continue;
    calls.push({ name, text: whole, began, ended: line });
  }
  return calls;
}

const traces = spawnSync('strace', ['-f', 'true']).status === 0;
const skip = !traces && 'strace is not here, or may not trace';

test('writes, syncs and renames reach the system in the order that the promises need', { skip }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-calls-'));
  try {
    const names = 'openat,write,pwrite64,fsync,fdatasync,rename,link,unlink';
    const trace = join(directory, 'trace');
    const data = join(directory, 'data');
    const strace = ['-f', '-y', '-s', '200', '--seccomp-bpf', '-e', `trace=${names}`, '-o', trace];
    const racer = ['--import', 'tsx', join(import.meta.dirname, 'racer.ts'), data];
    const { status, stdout } = spawnSync('strace', [...strace, process.execPath, ...racer], {
      cwd: projectDirectory,
      env: { ...process.env, UV_USE_IO_URING: '0' },
      input: 'open\nwrite\nwrite\ncheckpoint\nclose\n',
      encoding: 'utf8',
      timeout: 60_000,
    });
    assert.deepEqual([status, stdout], [0, 'ready\nopened\n1\n2\ndone\nclosed\n']);
    const all = parse(readFileSync(trace, 'utf8'));
    const calls = all.filter(({ text }) => text.includes(data) || text.startsWith('write(1'));
    const find = (what: RegExp, from = 0): Call => {
      const found = calls.find(({ text, began }) => began >= from && what.test(text));
      assert.ok(found, `no ${what.source} after line ${from}:\n${calls.map(({ text }) => text).join('\n')}`);
      return found;
    };
    const directorySync = new RegExp(`^f(data)?sync\\(\\d+<${data}>`);

    // A group is written through before it is acknowledged.
    const journal = find(/^openat.*journal-1\.jsonl", .*O_CREAT/);
    assert.match(journal.text, /O_EXCL/);
    assert.match(journal.text, /O_DSYNC/);
    const durable = find(directorySync, journal.ended);
    for (const sequence of [1, 2]) {
      const group = find(new RegExp(`^pwrite64\\(.*journal-1.*\\{\\\\"sequence\\\\":${sequence},`));
      assert.ok(durable.ended < group.began);
      assert.ok(group.ended < find(new RegExp(`^write\\(1.*"${sequence}\\\\n"`)).began);
    }
    // A snapshot is synced before it gets its name, and the directory before its journal is removed.
    const renamed = find(/^rename\(.*people\.json\.\w+\.tmp", .*people\.json"\)/);
    const ofSnapshot = /^(pwrite64|fdatasync|fsync)\(.*people\.json\.\w+\.tmp/;
    const before = calls.filter(({ text, ended }) => ofSnapshot.test(text) && ended < renamed.began);
    assert.match(before.map(({ name }) => name).join(), /^(pwrite64,)+fdatasync(,fdatasync)*$/);
    assert.ok(find(directorySync, renamed.ended).ended < find(/^unlink\(.*journal-1\.jsonl"/).began);
    // The same holds for the journal that closes the store.
    const closing = find(/^openat.*journal-3\.jsonl", .*O_CREAT/);
    assert.ok(find(directorySync, closing.ended).ended < find(/^unlink\(.*journal-2\.jsonl"/).began);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
