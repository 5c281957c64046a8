/** The reference's commands for a cluster, from certificates to a signed-in caller, as they stand there. */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts, noEtcd } from '../.support/cluster/real-etcd.ts';
import { handbook, projectDirectory } from '../.support/source.ts';

const administrator = { email: 'admin@localhost.localdomain', password: 'correct horse battery' };
const missing = noEtcd ?? ['etcdctl', 'openssl'].find((name) => spawnSync(name, ['version']).error !== undefined);

test('a node needs only the role, the user and the certificates that the reference makes', async (t) => {
  if (missing !== undefined) return t.skip(`${missing} is not installed here`);
  const directory = mkdtempSync(join(tmpdir(), 'cairn-etcd-setup-'));
  const running: ChildProcess[] = [];
  t.after(async () => {
    for (const child of running.reverse()) await end(child);
    rmSync(directory, { recursive: true });
  });
  const [clientPort = 0, peerPort = 0, port = 0] = await freePorts(3);
  const [, section = ''] = /\n### Setting up etcd\n([^]*?)\n##+ /.exec(handbook) ?? [];
  // The reference's machines are other addresses of this one's loopback.
  const [certificates = '', member = '', users = ''] = [...section.matchAll(/```sh\n([^]*?)```/g)].map(
    ([, block = '']) => block.replaceAll('10.0.0.', '127.0.0.').replaceAll(':2379', `:${clientPort}`)
      .replaceAll(':2380', `:${peerPort}`));
  run(directory, certificates);
  for (const number of [1, 2, 3]) {
    const command = member
      .replace('--name etcd-1 --data-dir etcd-1', `--name etcd-${number} --data-dir etcd-${number}`)
      .replace(/^.*--listen-.*$/gm, (line) => line.replaceAll('127.0.0.1', `127.0.0.${number}`));
    running.push(spawn('bash', ['-c', `exec ${command}`], { cwd: directory, stdio: 'ignore' }));
  }
  run(directory, users);

  const members = [1, 2, 3].map((number) => `https://127.0.0.${number}:${clientPort}`).join(',');
  const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];
  const node = spawn(process.execPath, [
    ...typescript, join(projectDirectory, 'src', 'main.ts'), 'serve', '--port', String(port),
    '--data', join(directory, 'data'), '--cluster', members, '--cluster-user', 'cairn',
    '--cluster-ca', join(directory, 'etcd-ca.pem'), '--cluster-cert', join(directory, 'node.pem'),
    '--cluster-key', join(directory, 'node.key'),
  ], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env, CAIRN_CLUSTER_PASSWORD_FILE: join(directory, 'etcd-password'),
      CAIRN_ADMIN_PASSWORD: administrator.password,
    },
  });
  running.push(node);
  const complaints: string[] = [];
  node.stderr?.on('data', (chunk) => complaints.push(String(chunk)));
  const body = JSON.stringify(administrator);
  const signIn = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body };
  const url = `http://127.0.0.1:${port}/tokens`;
  const signedIn = () => fetch(url, signIn).then(({ status }) => status, () => 0);
  for (let tries = 0; (await signedIn()) !== 201; tries += 1) {
    assert.ok(tries < 300 && node.exitCode === null, complaints.join(''));
    await delay(100);
  }

  const environment = users.split('\n').filter((line) => line.startsWith('export')).join('\n');
  const asNode = `${environment}\nexport ETCDCTL_USER=cairn:$(cat etcd-password)`;
  const denied = spawnSync('bash', ['-c', `${asNode}\netcdctl get other/key`], { cwd: directory, encoding: 'utf8' });
  assert.match(denied.stderr, /permission denied/, 'the role is for the prefix alone');
});

function run(directory: string, commands: string): void {
  const { status, stdout, stderr } = spawnSync('bash', ['-e', '-c', commands], { cwd: directory, encoding: 'utf8' });
  assert.equal(status, 0, `${commands}\n${stdout}${stderr}`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}
