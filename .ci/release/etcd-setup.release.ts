/** The manual's commands for a cluster, literally, from certificates to a signed-in caller. */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { findFreePorts, noEtcd } from '../torture/real-etcd.ts';
import { readHandbook, projectDirectory } from '../../test/support/source.ts';
import { readBlocks } from './machine.ts';

const administrator = { email: 'admin@localhost.localdomain', password: 'correct horse battery' };
const json = { 'Content-Type': 'application/json' };
const typescript = 'typescript' in process.features ? [] : ['--import', import.meta.resolve('tsx')];
const main = join(projectDirectory, 'src', 'main.ts');
const missing = noEtcd ?? ['etcdctl', 'openssl'].find((name) => spawnSync(name, ['version']).error !== undefined);

interface Commands {
  readonly authority: string;
  readonly certificates: string;
  readonly member: string;
  readonly users: string;
  readonly asRoot: string;
  readonly second: string;
  readonly save: string;
  readonly restore: string;
  readonly epoch: string;
  readonly replace: string;
  readonly joining: string;
  readonly alone: string;
  readonly look: string;
}

/** The manual's commands; its machines are other addresses of this one's loopback. */
function commandsFor(clientPort: number, peerPort: number): Commands {
  const [, section = ''] = /\n### Setting up etcd\n([^]*?)\n#{2,3} /.exec(readHandbook()) ?? [];
  const own = Array.from(section.matchAll(/```sh\n([^]*?)```/g), ([, block = '']) => block);
  const blocks = [...own, ...readBlocks('### No etcd')].map(
    (block) => block.replaceAll('10.0.0.', '127.0.0.').replaceAll(':2379', `:${clientPort}`)
      .replaceAll(':2380', `:${peerPort}`));
  assert.equal(blocks.length, 13);
  const [authority = '', certificates = '', member = '', users = '', asRoot = '', ...others] = blocks;
  const [second = '', save = '', restore = '', epoch = '', replace = '', joining = '', alone = '', look = ''] = others;
  return {
    authority, certificates, member, users, asRoot, second, save, restore, epoch, replace, joining, alone, look,
  };
}

/** Adapts a command for the first machine to another one. */
const onMachine = (number: number, command: string): string =>
  command.replace('--name etcd-1', `--name etcd-${number}`).replace('--data-dir etcd-1', `--data-dir etcd-${number}`)
    .replace(/^.*--(listen|initial-advertise)-.*$/gm, (line) => line.replaceAll('127.0.0.1', `127.0.0.${number}`));

test('an etcd set up as in the manual serves two clusters', async (t) => {
  if (missing !== undefined) return t.skip(`${missing} is not installed here`);
  const directory = mkdtempSync(join(tmpdir(), 'cairn-etcd-setup-'));
  const running: ChildProcess[] = [];
  t.after(async () => {
    for (const child of running.reverse()) await end(child);
    rmSync(directory, { recursive: true });
  });
  const [clientPort = 0, peerPort = 0, ...ports] = await findFreePorts(4);
  const commands = commandsFor(clientPort, peerPort);
  const { authority, certificates, member, users, asRoot, second, save, restore, epoch } = commands;
  const startMembers = (command: string): ChildProcess[] => [1, 2, 3].map((number) => {
    writeFileSync(join(directory, `member-${number}`), onMachine(number, command));
    return startMember(number);
  });
  const startMember = (number: number, ...words: string[]): ChildProcess => {
    const child = spawn('sh', [`member-${number}`, ...words], { cwd: directory, stdio: 'ignore' });
    running.push(child);
    return child;
  };
  const startNode = async (port: number, name: string, password: string): Promise<ChildProcess> => {
    const node = spawn(process.execPath, [
      ...typescript, main, 'serve', '--port', String(port), '--log-level', 'warn',
      '--cluster', [1, 2, 3].map((number) => `https://127.0.0.${number}:${clientPort}`).join(','),
      '--cluster-user', name, '--cluster-prefix', `${name}/`, '--cluster-ca', 'etcd-ca.pem',
      '--cluster-cert', 'node.pem', '--cluster-key', 'node.key',
    ], {
      cwd: directory, stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env, CAIRN_CLUSTER_PASSWORD_FILE: password, CAIRN_ADMIN_PASSWORD: administrator.password,
        CAIRN_DATA: join(directory, 'data'),
      },
    });
    running.push(node);
    const complaints: string[] = [];
    node.stderr?.on('data', (chunk) => complaints.push(String(chunk)));
    for (let tries = 0; (await signIn(port)) === ''; tries += 1) {
      assert.ok(tries < 600 && node.exitCode === null, complaints.join(''));
      await delay(100);
    }
    return node;
  };

  run(directory, authority + certificates);
  const members = startMembers(member);
  run(directory, users);
  const [port = 0, otherPort = 0] = ports;
  const node = await startNode(port, 'cairn', 'etcd-password');
  const environment = users.split('\n').filter((line) => line.startsWith('export')).join('\n');
  const root = `${environment}\n${asRoot}`;
  run(directory, `${root}\n${second}`);
  const other = await startNode(otherPort, 'cairn-test', 'test-password');
  for (const [user, password, key] of [['cairn', 'etcd', 'cairn-test/meta'], ['cairn-test', 'test', 'cairn/meta']]) {
    const as = `${environment}\nexport ETCDCTL_USER=${user}:$(cat ${password}-password)\netcdctl get ${key}`;
    const denied = spawnSync('bash', ['-c', as], { cwd: directory, encoding: 'utf8' });
    assert.match(denied.stderr, /permission denied/, 'the role is for the prefix alone');
  }

  assert.equal(await addItem(port), 1);
  run(directory, `${root}\n${save}`);
  assert.equal(await addItem(port), 2);
  for (const child of [node, other, ...members]) await end(child);
  for (const number of [1, 2, 3]) run(directory, `${environment}\n${onMachine(number, restore)}`);
  const [survivor, ...lost] = startMembers(member.replace('--data-dir etcd-1', '--data-dir etcd-1-restored'));
  const cairn = `cairn() { '${[process.execPath, ...typescript, main].join("' '")}' "$@"; }\n`;
  run(directory, `${root}\nuntil etcdctl endpoint health > health 2>&1; do sleep 0.2; done\n${cairn}${
    epoch}`);
  const restored = await startNode(port, 'cairn', 'etcd-password');
  assert.equal(await addItem(port), 2, 'what was written after the snapshot is gone');

  // A running member uses new certificates.
  const shown = `openssl s_client -connect 127.0.0.1:${clientPort} -cert node.pem -key node.key < /dev/null`;
  run(directory, `${certificates}
    [ "$(${shown} 2> /dev/null | openssl x509 -noout -serial)" = "$(openssl x509 -noout -serial -in member.pem)" ]`);
  assert.equal(run(directory, `${root}\n${commands.look}`).match(/^notAfter=/gm)?.length, 3);

  for (const child of [restored, ...lost]) await end(child);
  const byItself = commands.alone.replace(/runuser -u etcd -- sh member/, 'sh member-1');
  const [stop = '', force = '', start = ''] = byItself.trim().split('\n');
  assert.deepEqual([stop, start], ['systemctl stop etcd', 'systemctl start etcd']);
  await end(survivor);
  const forced = spawnSync('bash', ['-c', force.replace('timeout 30', 'timeout 5')], { cwd: directory });
  assert.equal(forced.status, 124);
  startMember(1);
  const alone = `${root}\nexport ETCDCTL_ENDPOINTS=https://127.0.0.1:${clientPort}\n`;
  const healthy = 'until etcdctl endpoint health > health 2>&1; do sleep 0.2; done\n';
  const own = epoch.replace(/--cluster (\S+?),\S+/, '--cluster $1');
  assert.notEqual(own, epoch);
  run(directory, `${alone}${healthy}${cairn}${own}`);
  const last = await startNode(port, 'cairn', 'etcd-password');
  assert.equal(await addItem(port), 3);
  await end(last);

  // The others are added one by one; the third as in the manual.
  const peers = (count: number): string =>
    [1, 2, 3].slice(0, count).map((number) => `etcd-${number}=https://127.0.0.${number}:${peerPort}`).join();
  const [, add = ''] = commands.replace.trim().split('\n');
  const [, flags = ''] = /sh member (.*)$/s.exec(commands.joining.replace(/\s*\\\n\s*/, ' ').trim()) ?? [];
  assert.ok(flags.includes(peers(3)));
  for (const number of [2, 3]) {
    rmSync(join(directory, `etcd-${number}-restored`), { recursive: true });
    run(directory, `${alone}until ${onMachine(number, add.replaceAll('etcd-3', `etcd-${number}`)
      .replaceAll('127.0.0.3', `127.0.0.${number}`))}; do sleep 0.2; done`);
    startMember(number, ...flags.replace(peers(3), peers(number)).split(' '));
    run(directory, `${alone}export ETCDCTL_ENDPOINTS=https://127.0.0.${number}:${clientPort}\n${healthy}`);
  }
  // A machine that is gone, in a cluster of three. etcd makes an id of the addresses and the second: a member removed
  // in the second in which it was added cannot be added again in it.
  const added = Math.floor(Date.now() / 1000);
  await end(running.at(-1));
  while (Math.floor(Date.now() / 1000) === added) await delay(50);
  rmSync(join(directory, 'etcd-3-restored'), { recursive: true });
  run(directory, `${alone}${commands.replace}`);
  startMember(3, ...flags.split(' '));
  run(directory, `${root}\n${healthy}`);
  await startNode(port, 'cairn', 'etcd-password');
  assert.equal(await addItem(port), 4);
});

test('the unit of an etcd member is valid', (t) => {
  const [, section = ''] = /\n### Setting up etcd\n([^]*?)\n#{2,3} /.exec(readHandbook()) ?? [];
  const [, unit = ''] = /^```ini\n(.*?)^```$/ms.exec(section) ?? [];
  const path = join(temporaryDirectory(t), 'etcd.service');
  writeFileSync(path, unit);
  const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
  if (error !== undefined) return t.skip('there is no systemd here');
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /etcd\.service/);
});

/** Signs in; returns the token, or nothing if the node does not serve yet. */
async function signIn(port: number): Promise<string> {
  const request = { method: 'POST', headers: json, body: JSON.stringify(administrator) };
  const answer = await fetch(`http://127.0.0.1:${port}/tokens`, request).catch(() => undefined);
  return answer?.status === 201 ? Object(await answer.json()).access_token : '';
}

/** Creates an item; returns the number of items. */
async function addItem(port: number): Promise<number> {
  const [url, headers] = [`http://127.0.0.1:${port}/items`, { ...json, Authorization: `Bearer ${await signIn(port)}` }];
  const made = await fetch(url, { method: 'POST', headers, body: '{"name":"Lamp","price":1}' });
  assert.equal(made.status, 201);
  const items: unknown[] = Object(await (await fetch(url, { headers })).json());
  return items.length;
}

function run(directory: string, commands: string): string {
  const { status, stdout, stderr } = spawnSync('bash', ['-e', '-c', commands], { cwd: directory, encoding: 'utf8' });
  assert.equal(status, 0, `${commands}\n${stdout}${stderr}`);
  return stdout;
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}
