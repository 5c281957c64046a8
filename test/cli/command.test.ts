import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { CairnError, type ExitCode } from '../../src/base/errors.ts';
import type { Invocation, Command, Terminal } from '../../src/cli/command.ts';
import { passwordFile, readPassword } from '../../src/cli/user.ts';
import { flagOnly, options, toggle } from '../../src/config/options.ts';
import type { Environment } from '../../src/config/read.ts';
import { version } from '../../src/base/version.ts';
import { startProcess, temporaryDirectory, programArguments } from '../support/cli/spawn.ts';
import { runCommand, type Outcome } from '../support/cli/terminal.ts';
import { isLockedRun } from '../support/basics.ts';

const loud = flagOnly(toggle('loud', 'speak up'));

/** A command that tells what it was called with. */
function command(
  name: string, operands: readonly string[], work: (call: Invocation) => Promise<string> | string,
): Command {
  return {
    name, summary: `Does ${name}`, operands, options: [options.port, options.directory, loud, passwordFile],
    run: async (call): Promise<ExitCode> => {
      call.terminal.out(`${await work(call)}\n`);
      return 0;
    },
  };
}

const commands = [
  command('serve', [], (call) => `${call.read(options.port)} ${call.read(options.directory)} ${call.read(loud)}`),
  command('copy', ['FROM', 'TO'], (call) => call.operands.join('→')),
  command('user add', [], async (call) => `<${await readPassword(call)}>`),
  command('user list', [], () => 'users'),
  command('break', [], () => JSON.parse('{')),
  command('refuse', [], () => {
    throw new CairnError('store_failed', 'Cannot start the store: it is locked');
  }),
  command('open', ['CODE', 'PATH'], ({ operands: [code = '', path = ''] }) => {
    throw Object.assign(new Error(`${code}: no, open '${path}'`), { syscall: 'open', code, path });
  }),
  command('reach', ['PATH'], ({ operands: [resource = ''] }) => {
    throw Object.assign(new Error('Access is restricted'), { code: 'ERR_ACCESS_DENIED', resource });
  }),
  command('fail', [], () => {
    throw Object.assign(new Error('EACCES: permission denied, open \'x\''), { syscall: 'open', code: 'EACCES' });
  }),
];

function call(words: string, environment: Environment = {}, input: Terminal['input'] = stdin('')): Promise<Outcome> {
  return runCommand(commands, words.split(' ').filter((word) => word !== ''), input, environment);
}

function stdin(text: string): PassThrough {
  return new PassThrough().end(text);
}

/** A terminal at which somebody types `keys` once it is asked for them. */
function keyboard(...answers: readonly string[]): PassThrough & { modes: boolean[] } {
  const modes: boolean[] = [];
  const input = new PassThrough();
  const pending = [...answers];
  return Object.assign(input, {
    isTTY: true,
    modes,
    setRawMode: (mode: boolean) => {
      modes.push(mode);
      if (mode) setImmediate(() => input.write(pending.shift() ?? ''));
    },
  });
}

test('a command takes flags in any order and form, and variables', async () => {
  assert.equal((await call('')).out, '3000 data false\n');
  assert.equal((await call('serve --port 1 --data=d --loud')).out, '1 d true\n');
  assert.equal((await call('--loud --port=1')).out, '1 data true\n');
  assert.equal((await call('', { CAIRN_PORT: '7', CAIRN_LOUD: 'true' })).out, '7 data false\n');
  assert.equal((await call('--data=-x')).out, '3000 -x false\n');
  assert.equal((await call('copy a --port 1 b')).out, 'a→b\n');
  assert.equal((await call('copy -- -a b')).out, '-a→b\n');
  assert.equal((await call('user list')).out, 'users\n');
});

const wrong: readonly [words: string, message: string][] = [
  ['--pasword-file x', 'Cannot run cairn serve: it has no option --pasword-file; did you mean --password-file?'],
  ['--port', 'Cannot use --port: it needs a value, as in --port=PORT'],
  ['--port --loud', 'Cannot use --port: it needs a value, as in --port=PORT'],
  ['--port x', 'Cannot use --port "x": must be a whole number from 0 to 65535'],
  ['--loud=true', 'Cannot use --loud: it does not take a value'],
  ['--no-loud', 'Cannot run cairn serve: it has no option --no-loud; did you mean --loud?'],
  ['serve now', 'Cannot run cairn serve: it takes no arguments, and got "now"'],
  ['copy a', 'Cannot run cairn copy: it takes FROM TO'],
  ['copy a b c', 'Cannot run cairn copy: it takes FROM TO'],
  ['-p 1', 'Cannot run cairn serve: it has no option -p; type --port'],
  ['update', 'Cannot run cairn "update": no such command; src/docs/operations.md#upgrade says how to upgrade'],
  ['db.json5', 'Cannot run cairn "db.json5": no such command; save the data as a .json file'],
  ['fly', 'Cannot run cairn "fly": no such command; see cairn --help'],
  ['user', 'Cannot run cairn "user": no such command; see cairn user --help'],
  ['user ad', 'Cannot run cairn "user ad": no such command; did you mean cairn user add?'],
  ['usr list --data .', 'Cannot run cairn "usr list": no such command; did you mean cairn user list?'],
  ['coppy --data .', 'Cannot run cairn "coppy": no such command; did you mean cairn copy?'],
  ['coppy db.json', 'Cannot run cairn "coppy db.json": no such command; did you mean cairn copy?'],
];

test('wrong usage is one line that says what is wrong, and exit code 64', async () => {
  for (const [words, message] of wrong) {
    assert.deepEqual(await call(words), { code: 64, out: '', err: `${message}\n` }, words);
  }
  const { err, code } = await call('--secret=hunter2hunter2');
  assert.match(err, /^Cannot run cairn serve: it has no option --secret; see/);
  assert.doesNotMatch(err, /hunter2/);
  assert.equal(code, 64);
});

const screen = ' (see src/docs/troubleshooting.md#does-not-start)';

test('failures have exit codes of their own, and only a bug shows its stack', async () => {
  assert.deepEqual(await call('refuse'), { code: 74, out: '', err: `Cannot start the store: it is locked${screen}\n` });
  assert.deepEqual(await call('fail'), {
    code: 74,
    out: '',
    err: "Cannot go on: EACCES: permission denied, open 'x'; run this as the owner of the files, " +
      `or use another --data, or a --port above 1023${screen}\n`,
  });
  const bug = await call('break');
  assert.equal(bug.code, 70);
  assert.match(bug.err, /^Cannot go on, because of a bug in Cairn: SyntaxError: .*\n {4}at /);
});

const denied: readonly [words: string, message: RegExp][] = [
  ['open EACCES d/lock', /^Cannot go on: EACCES: no, open 'd\/lock'; run this as the owner of the files/],
  ['open EROFS d/lock', /^Cannot go on: EROFS: no, open 'd\/lock'; the file system is read-only/],
  ['open ENOSPC d/lock', /^Cannot go on: ENOSPC: no, open 'd\/lock'; make room where .*#disk-is-full\)\n$/],
  ['open ENOTDIR a', /^Cannot go on: ENOTDIR: no, open 'a'; it has to be a directory \(see .*\n$/],
  ['open ENOENT p', /^Cannot go on: ENOENT: no, open 'p' \(see .*\n$/],
  ['reach d/lock',
    /^Cannot go on: "d\/lock" is out of reach; the flags of this locked-down run have to allow it \(see /],
];

test('what a system refuses is told with its file, and with what to do', async () => {
  for (const [words, message] of denied) {
    const { code, err } = await call(words);
    assert.match(err, message);
    assert.equal(code, 74);
  }
});

test('versions of Node.js whose parser lets through what is refused are told from those that do', {
  skip: isLockedRun && 'another program would have to be allowed',
}, async (t) => {
  const refused = { '20.19.1': 78, '21.7.3': 78, '22.11.0': 78 };
  const versions = { ...refused, '20.19.2': 0, '20.20.0': 0, '22.12.0': 0, '26.0.0': 0 };
  await Promise.all(Object.entries(versions).map(async ([node, code]) => {
    const other = `Object.defineProperty(process.versions, 'node', { value: '${node}' })`;
    const program = [...programArguments('src/main'), '--version'];
    const cairn = startProcess(t, ['--import', `data:text/javascript,${encodeURIComponent(other)}`, ...program], {});
    assert.equal(await cairn.ended, code, node);
    assert.match(code === 0 ? cairn.out : cairn.err, code === 0 ? /^cairn / : /^Cannot run on Node.js .*: Cairn needs/);
  }));
});

test('--version and --help say what there is', async () => {
  const line = `cairn ${version} on Node.js ${process.version}\n`;
  assert.deepEqual(await call('--version'), { code: 0, out: line, err: '' });
  const { out } = await call('--help');
  for (const { name, summary } of commands) assert.ok(out.includes(name) && out.includes(summary), name);
  const { out: help, code } = await call('user add --help --port x');
  assert.equal(code, 0);
  assert.match(help, /^Usage: cairn user add \[OPTIONS\]\n\nDoes user add\.\n/);
  assert.match(help, /--port PORT, CAIRN_PORT\n {6}port to listen on; 0 takes any free one \(default: 3000\)\n/);
  assert.match(help, /--loud\n/);
  assert.equal((await call('help user add')).out, help);
  assert.match((await call('--port 1 --help')).out, /^Usage: cairn serve \[OPTIONS\]/);
  assert.equal((await call('help')).out, out);
  const family = await call('user --help');
  assert.equal(family.code, 0);
  assert.match(family.out, /user add .*Does user add\n.*user list .*Does user list\n/);
  assert.doesNotMatch(family.out, /copy/);
});

test('a password comes from a file, from standard input, or from a terminal that does not show it', async (t) => {
  const file = join(temporaryDirectory(t), 'password');
  writeFileSync(file, 'from a file \n');
  assert.equal((await call(`user add --password-file ${file}`)).out, '<from a file >\n');
  assert.equal((await call('user add --password-file -', {}, stdin('from input\r\n'))).out, '<from input>\n');
  assert.equal((await call('user add', {}, stdin('from a pipe'))).out, '<from a pipe>\n');
  const typed = keyboard('secrex\u007ft wörds\r', 'secret wörds\r');
  assert.deepEqual(await call('user add', {}, typed), {
    code: 0, out: '<secret wörds>\n', err: 'Password: \nOnce more: \n',
  });
  assert.deepEqual(typed.modes, [true, false, true, false]);
  assert.equal((await call('user add', {}, stdin('\n'))).err, 'Cannot set the password: it is empty\n');
  assert.match((await call('user add', {}, keyboard('one\r', 'two\r'))).err, /the two were not the same; try again\n$/);
  const interrupted = await call('user add', {}, keyboard('half\u0003'));
  assert.equal(interrupted.code, 64);
});
