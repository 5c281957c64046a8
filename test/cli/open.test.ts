import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, watch, writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { declareCollection } from '../../src/collections/define.ts';
import { parseJson } from '../../src/base/json.ts';
import { allCommands } from '../../src/cli/commands.ts';
import { commands as transferCommands } from '../../src/cli/transfer.ts';
import { readDeclarations } from '../../src/cli/declarations.ts';
import { changed, corpus } from '../support/corpus.ts';
import { startCairn, startProcess, sourceArguments, temporaryDirectory } from '../support/cli/spawn.ts';
import { runCommand, type Outcome } from '../support/cli/terminal.ts';
import { isLockedRun } from '../support/basics.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import { createApp } from '../support/inside.ts';

const skip = isLockedRun && 'a locked run reads and writes what its flags name, and a prototype is not locked';

/** Declares and imports a file, and returns what was said, what is served, and what is exported. */
async function taken(t: TestContext, content: unknown) {
  const directory = temporaryDirectory(t);
  const [file, collections, data] = ['db.json', 'db.collections.json', 'data'].map((name) => join(directory, name));
  assert.ok(file !== undefined && collections !== undefined && data !== undefined);
  writeFileSync(file, JSON.stringify(content));
  const run = (...words: string[]): Promise<Outcome> => runCommand(transferCommands, words);
  const declared = await run('declare', file);
  assert.equal(declared.code, 0, declared.err);
  writeFileSync(collections, declared.out);
  const imported = await run('import', file, '--data', data, '--collections', collections);
  assert.equal(imported.code, 0, imported.err);
  const exported = await run('export', '--data', data, '--collections', collections);
  assert.equal(exported.code, 0, exported.err);
  const notes = declared.err.split('\n').filter((line) => line !== '');
  return { notes, again: imported.err, exported: JSON.parse(exported.out), collections, data };
}

for (const [name, content] of Object.entries(corpus)) {
  test(`the file "${name}" is taken whole: what is read and exported equals it`, { skip }, async (t) => {
    const { notes, exported, collections, data } = await taken(t, content);
    assert.deepEqual(notes, []);
    const expected = Array.isArray(content) ? { db: content } : Object(content);
    assert.deepEqual(exported, expected);
    const declarations = readDeclarations(collections);
    const app = await createApp({ auth: 'none', directory: data, ...declarations });
    t.after(() => app.close());
    const get = async (path: string): Promise<unknown> => {
      const { status, body } = await app.inject({ target: path });
      assert.equal(status, 200, `${path}: ${body}`);
      return JSON.parse(body);
    };
    for (const [collection, value] of Object.entries<any>(expected)) {
      assert.deepEqual(await get(`/${collection}`), value);
      const isCollection = declarations.collections.some((one) => one.name === collection && 'id' in one.fields);
      for (const record of isCollection ? value.slice(0, 50) : [])
        assert.deepEqual(await get(`/${collection}/${encodeURIComponent(record.id)}`), record);
    }
  });
}

for (const [what, [content, notes, expected]] of Object.entries(changed)) {
  test(`what is changed of a file is said in a line: ${what}`, { skip }, async (t) => {
    const found = await taken(t, content);
    assert.deepEqual(found.notes, notes);
    assert.deepEqual(found.exported, expected);
    const ofIds = notes.filter((line) => !line.includes(' is called '));
    assert.deepEqual(found.again.split('\n').filter((line) => line !== ''), ofIds, 'an import says it, too');
  });
}

test('what no request could carry is refused with its place', async (t) => {
  for (const [text, problem] of [
    ['{"a":[{"id":1,"x":1,"x":2}]}', /line 1, column \d+/], ['{"a":[{"id":1,"x":12345678901234567891}]}', /line 1/],
    ['{"a":[', /line 1/], ['"text"', /must be an object/], ['', /line 1/],
  ] as const) {
    const file = join(temporaryDirectory(t), 'db.json');
    writeFileSync(file, text);
    const { code, err } = await runCommand(transferCommands, ['declare', file]);
    assert.equal(code, 65, text);
    assert.match(err, problem, text);
  }
});

test('a file is served by its name alone, and what was written is there the next time', { skip }, async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'db.json');
  writeFileSync(file, JSON.stringify({ posts: [{ id: 'a', title: 'Hello', author: { name: 'Ada' } }], users: [] }));
  const start = async (...words: string[]) => {
    const running = startCairn(t, [file, '--port', '0', '--log', 'none', ...words], {});
    const [, url = ''] = await running.find(/^(http:\/\/127\.0\.0\.1:\d+)\/users$/m);
    return { ...running, url, ended: running.ended, stop: () => running.child.kill('SIGTERM'), get: () => running };
  };
  const first = await start();
  assert.match(first.get().out, /^Imported 1 record of .*db\.json into .*db\.data; .*\.json declares them$/m);
  assert.match(first.get().out, /\/posts$/m);
  const made = await fetch(`${first.url}/posts`, {
    method: 'POST', headers: { origin: 'http://localhost:5173', 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'b', anything: [1, { else: null }] }),
  });
  assert.deepEqual([made.status, made.headers.get('access-control-allow-origin')], [201, 'http://localhost:5173']);
  first.stop();
  assert.equal(await first.ended, 0);
  const text = readFileSync(file, 'utf8');
  assert.equal(text, JSON.stringify({ posts: [{ id: 'a', title: 'Hello', author: { name: 'Ada' } }], users: [] }));

  const second = await start();
  const found = await (await fetch(`${second.url}/posts`)).json();
  assert.deepEqual(found, [
    { id: 'a', title: 'Hello', author: { name: 'Ada' } }, { id: 'b', anything: [1, { else: null }] },
  ]);
  assert.equal(second.get().err, '');
  second.stop();
  await second.ended;

  writeFileSync(file, JSON.stringify({ posts: [{ id: 'c' }], users: [] }));
  const third = await start();
  const advice = /db\.json has changed .* type: mv (\S+) (\S+); rm (\S+)$/m;
  const [, from = '', to = '', declaration = ''] = advice.exec(third.get().err) ?? [];
  third.stop();
  await third.ended;
  renameSync(from, to);
  rmSync(declaration);
  const fourth = await start();
  assert.deepEqual(await (await fetch(`${fourth.url}/posts`)).json(), [{ id: 'c' }]);
  fourth.stop();
  await fourth.ended;
  parseJson(readFileSync(join(directory, 'db.collections.json'), 'utf8'));
});

test('of two that open a file for the first time, one serves all of it, and the other says who has it', {
  skip,
}, async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'db.json');
  writeFileSync(file, JSON.stringify({ posts: Array.from({ length: 2000 }, (_, id) => ({ id: id + 1 })) }));
  const both = [1, 2].map(() => startCairn(t, [file, '--port', '0', '--log', 'none'], {}));
  const served = await Promise.any(both.map(async (one) => {
    const [, url = ''] = await one.find(/^(http:\S+)\/posts$/m);
    return { one, url };
  }));
  const other = both.find((one) => one !== served.one);
  assert.equal(await other?.ended, 75, other?.err);
  assert.match(other?.err ?? '', /process \d+ on .* holds it/);
  const posts: unknown[] = Object(await (await fetch(`${served.url}/posts`)).json());
  assert.equal(posts.length, 2000);
  assert.deepEqual(readdirSync(directory).sort(), ['db.collections.json', 'db.data', 'db.json']);
});

test('what imports left that were killed is removed an hour later', { skip }, async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'db.json');
  writeFileSync(file, '{"posts":[]}');
  const [left, running] = ['db.data.unfinished-aaaaaa', 'db.data.unfinished-bbbbbb'];
  for (const name of [left, running]) mkdirSync(join(directory, name));
  const longAgo = new Date(Date.now() - 2 * 3_600_000);
  utimesSync(join(directory, left), longAgo, longAgo);
  const served = startCairn(t, [file, '--port', '0', '--log', 'none'], {});
  await served.find(/\/posts$/m);
  const names = readdirSync(directory).filter((name) => name.startsWith('db.data'));
  assert.deepEqual(names.sort(), ['db.data', running]);
});

test('what imports left that cannot be removed does not keep a file from being served', { skip }, async (t) => {
  const directory = mountSmallDisk(t, '8m');
  if (directory === undefined) return t.skip('no file system can be mounted here');
  const file = join(directory, 'db.json');
  writeFileSync(file, '{"posts":[]}');
  const left = join(directory, 'db.data.unfinished-aaaaaa');
  mkdirSync(left);
  // Nobody can remove where something is mounted.
  assert.equal(mountSmallDisk(t, '64k', left), left);
  const longAgo = new Date(Date.now() - 2 * 3_600_000);
  utimesSync(left, longAgo, longAgo);
  const served = startCairn(t, [file, '--port', '0', '--log', 'none'], {});
  await served.find(/\/posts$/m);
});

test('the declaration has the mode of any file, and what lies with the data is for its owner', {
  skip: skip || (process.platform === 'win32' && 'there are no modes here'),
}, async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'db.json');
  writeFileSync(file, '{"posts":[]}');
  const former = process.umask(0o002);
  t.after(() => process.umask(former));
  const served = startCairn(t, [file, '--port', '0', '--log', 'none'], {});
  await served.find(/\/posts$/m);
  const modeOf = (...path: string[]): string => (statSync(join(directory, ...path)).mode & 0o777).toString(8);
  assert.equal(modeOf('db.collections.json'), '664');
  assert.equal(modeOf('db.data', 'imported.sha256'), '600');
  assert.equal(modeOf('db.data'), '700');
});

test('a file has what json-server takes: a picture of 3 MiB, 6,000 members, 160,000 numbers, names of paths', {
  skip,
}, async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'db.json');
  const words = Object.fromEntries(Array.from({ length: 6000 }, (_, index) => [`word${index}`, 'w']));
  const board = Array.from({ length: 400 }, () => Array.from({ length: 400 }, (_, index) => index));
  const pictures = [{ id: 1, data: 'x'.repeat(3 * 2 ** 20) }];
  const content = { pictures, words, board, status: [{ id: 1, done: true }], changes: { last: 'now' } };
  writeFileSync(file, JSON.stringify(content));
  const served = startCairn(t, [file, '--port', '0', '--log', 'none'], {});
  const [, url = ''] = await served.find(/^(http:\S+)\/status$/m);
  for (const [name, value] of Object.entries(content))
    assert.deepEqual(await (await fetch(`${url}/${name}`)).json(), value, name);
  assert.equal((await fetch(`${url}/-/status`)).status, 200);
  const body = JSON.stringify(pictures[0]);
  assert.equal((await fetch(`${url}/pictures/1`, { method: 'PUT', body })).status, 200);
  assert.equal((await fetch(`${url}/board`, { method: 'PUT', body: JSON.stringify(board) })).status, 200);
  assert.equal(served.err, '');
});

test('a file that was refused is declared anew when it has been mended', { skip }, async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'db.json');
  writeFileSync(file, '{"posts":[{"id":1,"title":"\\ud800"}]}');
  const refused = startCairn(t, [file, '--port', '0', '--log', 'none'], {});
  assert.equal(await refused.ended, 65);
  assert.match(refused.err, /title must not contain unpaired surrogates \(\/posts\/0\/title\)/);
  writeFileSync(file, '{"posts":[{"id":1,"title":"x"}],"tags":[{"id":1}]}');
  const served = startCairn(t, [file, '--port', '0', '--log', 'none'], {});
  await served.find(/\/tags$/m);
});

test('a file that is not there, an address and a cluster are refused', { skip }, async (t) => {
  const open = (await import('../../src/cli/open.ts')).commands;
  const missing = await runCommand(open, ['no-such-file.json']);
  assert.deepEqual([missing.code, missing.out], [64, '']);
  assert.match(missing.err, /no-such-file\.json: there is no such file/);
  const directory = temporaryDirectory(t);
  const mistyped = await runCommand(open, [join(directory, 'tpyo', 'db.json')]);
  assert.deepEqual([mistyped.code, readdirSync(directory)], [64, []], 'nothing is made for a path that is mistyped');
  const address = await runCommand(open, ['https://example.com/db.json']);
  assert.equal(address.code, 64);
  assert.match(address.err, /^Cannot open https:\/\/example\.com\/db\.json: it is an address; download it first/);
  const clustered = await runCommand(open, ['db.json'], '', { CAIRN_CLUSTER: 'http://127.0.0.1:2379' });
  assert.equal(clustered.code, 64);
  assert.match(clustered.err, /Cannot open together with CAIRN_CLUSTER/);
  const other = await runCommand(await allCommands(), ['db.json', '--base-path', '/api']);
  assert.equal(other.err, 'Cannot run cairn open: it has no option --base-path; cairn serve has it\n');
});

for (const [option, hint] of Object.entries({
  '-w': 'leave it out', '-p': 'type --port', '--delay': "developer tools", '--id': 'rename the member to id',
  '--routes': 'the proxy of your front end', '--static': 'the server of your front end',
  '--again': 'db.data aside',
})) {
  test(`${option} is answered with what to do instead`, async () => {
    const { code, err } = await runCommand(await allCommands(), ['db.json', option, '1']);
    assert.equal(code, 64);
    assert.ok(err.includes(`it has no option ${option}; `) && err.includes(hint), err);
  });
}

test('--watch does nothing but say so, and other devices are told what to type with --share', { skip }, async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'db.json');
  writeFileSync(file, '{"posts":[]}');
  const served = startCairn(t, [file, '--watch', '--share', '--port', '0', '--log', 'none'], {});
  const [, url = ''] = await served.find(/^(http:\/\/localhost:\d+)\/posts$/m);
  const { port } = new URL(url);
  await served.find(new RegExp(`^In an Android emulator: http://10\\.0\\.2\\.2:${port}$`, 'm'));
  await served.find(new RegExp(`^In a container: http://host\\.docker\\.internal:${port}$`, 'm'));
  assert.match(served.err, /^--watch does nothing: /m);
  assert.match(served.out, /^Every device on your networks can read and change all data: --share$/m);
  const headers = { origin: 'capacitor://localhost', 'content-type': 'application/json' };
  const made = await fetch(`http://127.0.0.1:${port}/posts`, { method: 'POST', headers, body: '{}' });
  assert.deepEqual([made.status, made.headers.get('access-control-allow-origin')], [201, 'capacitor://localhost']);
});

const hasScript = process.platform === 'linux' && !isLockedRun && spawnSync('script', ['--version']).status === 0;

test('closing its terminal stops a server', { skip: skip || (!hasScript && 'there is no script(1)') }, async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'db.json');
  writeFileSync(file, '{"posts":[]}');
  const words = [process.execPath, ...sourceArguments, file, '--port', '0', '--log', 'none'].map((word) => `'${word}'`);
  const terminal = startProcess(t, ['-qefc', words.join(' '), '/dev/null'], process.env, 'script');
  await terminal.find(/\/posts\r?$/m);
  const lock = join(directory, 'db.data', 'lock');
  const { pid } = JSON.parse(readFileSync(lock, 'utf8'));
  t.after(() => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  });
  const ended = new Promise<void>((resolve) => {
    const watcher = watch(join(directory, 'db.data'), () => {
      if (existsSync(lock)) return;
      watcher.close();
      resolve();
    });
  });
  terminal.child.kill('SIGKILL');
  await ended;
});

test('a single value is read whatever the query adds, as clients of json-server expect', async (t) => {
  const access = { read: 'public' } as const;
  const profile = declareCollection({ name: 'profile', single: true, value: { kind: 'json' }, access });
  const app = await createApp({ auth: 'none', dialect: 'json-server', collections: [profile] });
  t.after(() => app.close());
  assert.equal((await app.inject({ target: '/profile?_=1' })).status, 404);
  const headers = { 'content-type': 'application/json' };
  await app.inject({ method: 'PUT', target: '/profile', fields: headers, body: '{"a":1}' });
  assert.equal((await app.inject({ target: '/profile?_=1' })).body, '{"a":1}');
});
