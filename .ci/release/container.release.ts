import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync, chownSync, copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync,
  readlinkSync, rmSync, statSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, test, type TestContext } from 'node:test';
import { startProcess as start, type Running } from '../../test/support/cli/spawn.ts';
import { readHandbook, projectDirectory } from '../../test/support/source.ts';
import { signInAndWrite } from './caller.ts';
import { clone, pack } from './clone.ts';

/**
 * The start-up lines of the manual's container and systemd unit, without an engine: their own root and namespaces,
 * read-only except for the data, without capabilities or a way to gain them. The program is exactly as in these lines.
 */
const block = (kind: string, start: string): string =>
  new RegExp(`^\`\`\`${kind}\n(${start}.*?)^\`\`\`$`, 'ms').exec(readHandbook())?.[1] ?? '';
/** Joins lines that end in a backslash. */
const joined = (text: string): string => text.replace(/ \\\n */g, ' ');
const instructions = joined(block('dockerfile', 'FROM ')).trim().split('\n').map((line): [string, string] => {
  const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
  return [name, rest];
});
const instruction = (wanted: string): string => instructions.find(([name]) => name === wanted)?.[1] ?? '';
const unit = new Map(
  [...joined(block('ini', '\\[Unit\\]\nDescription=Cairn\n')).matchAll(/^(\w+)=(.*)$/gm)]
    .map(([, name = '', value = '']) => [name, value]),
);

const manifest = JSON.parse(readFileSync(join(projectDirectory, 'package.json'), 'utf8'));
/** The manual's line for a program in `/opt/cairn`, and data in this directory. */
function lockedWords(data: string): string[] {
  const [, common = ''] = /^FLAGS="(.*?)"$/ms.exec(readHandbook()) ?? [];
  const placed = joined(common).replace('$PWD', '/opt/cairn/node_modules/cairn-api').replaceAll('$CAIRN_DATA', data);
  const flags = placed.split(' ');
  return ['node', '--permission', ...flags, 'node_modules/cairn-api/dist/main.js', 'serve'];
}
/** The user `node` of the image, and the dynamic user of the systemd unit. */
const uid = 1000;

test('the container runs unprivileged and locked down', () => {
  assert.deepEqual(instructions.map(([name]) => name),
    ['FROM', 'WORKDIR', 'COPY', 'RUN', 'USER', 'VOLUME', 'ENV', 'EXPOSE', 'HEALTHCHECK', 'CMD']);
  const copied = `${manifest.name}-${manifest.version}.tgz cairn-backup ./`;
  assert.equal(instruction('COPY').replace('*', manifest.version), copied);
  assert.equal(instruction('USER'), 'node');
  assert.equal(instruction('VOLUME'), '/data');
  assert.deepEqual(JSON.parse(instruction('CMD')), lockedWords('/data'));
  assert.equal(unit.get('ExecStart'), ['/usr/bin/env', ...lockedWords('%S/cairn')].join(' '));
  assert.ok(instruction('HEALTHCHECK').includes(`http://127.0.0.1:${instruction('EXPOSE')}/readyz`));
  const [major] = /(?<=^node:)\d+/.exec(instruction('FROM')) ?? [];
  assert.ok(readHandbook().includes('Node.js 20, 22, 24 and 26') && ['20', '22', '24', '26'].includes(String(major)));
});

const root = mkdtempSync(join(tmpdir(), 'cairn-root-'));
after(() => rmSync(root, { recursive: true, force: true }));
const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
const canIsolate = spawnSync('unshare', [...namespaces, 'setpriv', '--no-new-privs', 'true']).status === 0;
const skip = !canIsolate && 'namespaces cannot be made here';

const system = ['usr', 'lib', 'lib64', 'bin', 'sbin', 'dev'].filter((name) => existsSync(`/${name}`));

/** The start of a shell script that mounts this machine's programs in the root, read-only. */
function mounts(): string {
  const directories = system.filter((name) => !lstatSync(`/${name}`).isSymbolicLink());
  return [
    'set -eu',
    ...directories.flatMap((name) => [
      `mount --rbind /${name} ${root}/${name}`,
      `mount -o remount,bind,ro ${root}/${name}`,
    ]),
    `mount --bind ${dirname(process.execPath)} ${root}/node`,
    `mount -o remount,bind,ro ${root}/node`,
    `mount -t proc proc ${root}/proc`,
  ].join('\n');
}

const path = '/node:/usr/local/bin:/usr/bin:/bin';

/** The image: the instructions up to RUN, done one by one. */
function makeImage(): void {
  const packed = pack(clone(join(mkdtempSync(join(root, 'clone-')), 'cairn')));
  const work = join(root, instruction('WORKDIR'));
  for (const name of ['etc', 'root', 'node', 'proc', 'tmp']) mkdirSync(join(root, name));
  for (const name of system) {
    if (lstatSync(`/${name}`).isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), join(root, name));
    else mkdirSync(join(root, name));
  }
  mkdirSync(work, { recursive: true });
  writeFileSync(join(root, 'etc', 'passwd'), `root:x:0:0::/root:/bin/sh\nnode:x:${uid}:${uid}::/home/node:/bin/sh\n`);
  writeFileSync(join(root, 'etc', 'group'), `root:x:0:\nnode:x:${uid}:\n`);
  copyFileSync(packed.file, join(work, basename(packed.file)));
  const [, backup = ''] = /^```sh\n(#!\/bin\/sh\n# cairn-backup .*?)^```$/ms.exec(readHandbook()) ?? [];
  writeFileSync(join(work, 'cairn-backup'), backup);
  chmodSync(root, 0o755);
  const script = `${mounts()}\nexec chroot ${root} /bin/sh -euc '
    cd ${instruction('WORKDIR')}; export HOME=/root PATH=${path} npm_config_offline=true; ${instruction('RUN')}'`;
  const { status, stdout, stderr } = spawnSync('unshare', [...namespaces, 'sh', '-c', script], { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
}

/** Starts `command` in the root, where only the directory `data` is writable. */
function startIn(t: TestContext, data: string, variables: readonly string[], command: string): Running {
  const settings = ['CAIRN_PORT=0', 'CAIRN_SCRYPT_COST=14', `PATH=${path}`, ...variables].join(' ');
  const script = `mount --bind ${root} ${root}
cd ${root}
mount -o remount,bind,ro ${root}
mount --bind ${root}${data} ${root}${data}
mount -o remount,bind,rw ${root}${data}
${mounts()}
exec chroot ${root} setpriv --reuid ${uid} --regid ${uid} --clear-groups --no-new-privs \\
  --bounding-set=-all --inh-caps=-all env -i ${settings} sh -c 'cd ${instruction('WORKDIR')}; exec "$@"' \\
  sh ${command}`;
  return start(t, [...namespaces, 'sh', '-c', script], {}, 'unshare');
}

/** One life: ready, a sign-in with the stored password, another item, an end. Returns the number of items. */
async function live(server: Running, directory: string, signal: NodeJS.Signals): Promise<number> {
  // The only child of `unshare` is the first process of its namespace.
  const { pid } = server.child;
  const [, port = ''] = await server.find(/Cairn serves http:\/\/[\d.]+:(\d+)/);
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
  try {
    assertConfined(child, directory);
    const items = await write(`http://127.0.0.1:${port}`, join(root, directory, 'admin-password'));
    process.kill(child, signal);
    const code = await server.ended;
    if (signal === 'SIGTERM') assert.equal(code, 0, server.err);
    return items;
  } catch (error) {
    process.kill(child, 'SIGKILL');
    throw error;
  }
}

function assertConfined(pid: number, directory: string): void {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  assert.match(status, new RegExp(`^Uid:\t${uid}\t${uid}\t${uid}\t${uid}$`, 'm'));
  assert.match(status, /^CapEff:\t0+$/m);
  assert.match(status, /^CapBnd:\t0+$/m);
  assert.match(status, /^NoNewPrivs:\t1$/m);
  assert.match(status, /^NSpid:(\t\d+)*\t1$/m);
  const mounts = readFileSync(`/proc/${pid}/mountinfo`, 'utf8').trim().split('\n').map((line) => line.split(' '));
  const writable = mounts.flatMap(([, , , , at = '', how = '']) => (/^rw\b/.test(how) ? [at] : []));
  assert.deepEqual(writable.filter((at) => !/^\/(dev|proc)(\/|$)/.test(at)), [directory]);
}

/** Signs in as the administrator and creates an item. Returns the number of items. */
async function write(base: string, passwordFile: string): Promise<number> {
  assert.equal((await fetch(`${base}/livez`)).status, 200);
  return signInAndWrite(base, readFileSync(passwordFile, 'utf8').trim());
}

test('the container and the unit keep their data', { skip }, async (t) => {
  makeImage();
  const state = '/var/lib/cairn';
  mkdirSync(join(root, state), { recursive: true });
  chmodSync(join(root, state), 0o700);
  chownSync(join(root, state), uid, uid);
  assert.equal(statSync(join(root, 'data')).uid, uid, 'RUN made the volume');
  const unitVariables = (unit.get('Environment') ?? '').replaceAll('%S', '/var/lib').split(' ');
  assert.ok(unitVariables.includes(`CAIRN_DATA=${state}`));
  const shellWord = (word: string): string => `'${word}'`;
  const unitWords = String(unit.get('ExecStart')).replaceAll('%S', '/var/lib').split(' ');
  const ofThisNode = (words: readonly string[]): string => {
    const own = process.allowedNodeEnvironmentFlags.has('--permission') ? [] : ['--experimental-permission'];
    return words.flatMap((word) => (word === '--permission' && own.length > 0 ? own : [word])).map(shellWord).join(' ');
  };
  const commands: [string, readonly string[], string][] = [
    ['/data', instruction('ENV').split(' '), ofThisNode(JSON.parse(instruction('CMD')) as string[])],
    [state, unitVariables, ofThisNode(unitWords)],
  ];
  for (const [data, told, command] of commands) {
    const items: number[] = [];
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      items.push(await live(startIn(t, data, told, command), data, signal));
    }
    // Another container cannot see that the killed process is gone: it waits until the lock is stale.
    items.push(await live(startIn(t, data, told, command), data, 'SIGTERM'));
    assert.deepEqual(items, [1, 2, 3], `${data}: also after kill -9`);
    assert.ok(readdirSync(join(root, data)).includes('items.json'));
  }

  // As `docker run … -v cairn:/data:ro -v cairn-backup:/backup cairn sh cairn-backup /backup`.
  const asShown = /^docker run .* -v cairn:\/data:ro -v cairn-backup:\/backup cairn sh cairn-backup \/backup$/m;
  assert.match(readHandbook(), asShown);
  const copying = startIn(t, '/backup', instruction('ENV').split(' '), 'sh cairn-backup /backup');
  assert.equal(await copying.ended, 0, copying.err);
  const [copy = '', ...others] = readdirSync(join(root, 'backup'));
  assert.match(copy, /^\d{4}-\d\d-\d\dT\d{6}Z$/);
  assert.deepEqual(others, []);
  assert.match(readFileSync(join(root, 'backup', copy, 'items.json'), 'utf8'), /"Lamp"/);

  // As with `--env-file /etc/cairn/env -v /etc/cairn:/etc/cairn:ro`.
  mkdirSync(join(root, 'etc', 'cairn'));
  const notes = { name: 'notes', singular: 'note', fields: { text: { kind: 'text' } }, access: { list: 'public' } };
  writeFileSync(join(root, 'etc', 'cairn', 'collections.json'), JSON.stringify({ collections: [notes] }));

  // Kubernetes does this to a volume for `fsGroup`: the files also belong to the group.
  const opened = spawnSync('chmod', ['-R', 'g+rwX,g+s', join(root, 'data')]);
  assert.equal(opened.status, 0);
  const given = `${instruction('ENV')} CAIRN_COLLECTIONS=/etc/cairn/collections.json`;
  const serving = startIn(t, '/data', given.split(' '), ofThisNode(JSON.parse(instruction('CMD')) as string[]));
  assert.equal(await live(serving, '/data', 'SIGTERM'), 4);
  assert.ok(readdirSync(join(root, 'data')).includes('notes.json'), 'it has read its collections');
});
