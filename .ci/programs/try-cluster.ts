/**
 * A cluster to try: three members of etcd and two nodes of Cairn on loopback, until Ctrl-C, which removes everything.
 * With ports as arguments, a node listens on each of them.
 *
 *   node .ci/programs/try-cluster.ts, or on Node.js 20: npx tsx .ci/programs/try-cluster.ts
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';

import { findFreePorts, noEtcd, RealEtcd } from '../torture/real-etcd.ts';

if (noEtcd !== undefined) {
  process.stderr.write(`Cannot try a cluster: ${noEtcd}\n`);
  process.exit(69);
}
const readsTypeScript = Boolean(Reflect.get(process.features, 'typescript'));
const typescript = readsTypeScript ? [] : ['--import', 'tsx'];
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
const password = randomBytes(12).toString('base64url');

const etcd = await RealEtcd.start({ members: 3 });
const ports = process.argv.length > 2 ? process.argv.slice(2).map(Number) : await findFreePorts(2);
const optionsOf = (port: number): string[] => {
  const options = ['--cluster', etcd.addresses.join(','), '--port', String(port)];
  return [...options, '--log-level', 'warn'];
};
const nodes = ports.map((port) => {
  const options = optionsOf(port);
  return spawn(process.execPath, [...typescript, main, 'serve', ...options], {
    stdio: 'inherit',
    env: { ...process.env, CAIRN_ADMIN_PASSWORD: password },
  });
});
let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // The listeners of the test helpers end the process at once.
  process.removeAllListeners(signal);
  process.on(signal, () => void stop());
}
for (const port of ports) {
  for (;;) {
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (ready?.ok === true || isStopping) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
process.stdout.write(`etcd:  ${etcd.addresses.join(',')}\n`);
for (const [index, port] of ports.entries()) {
  process.stdout.write(`Cairn: http://127.0.0.1:${port}/ (process ${nodes[index]?.pid})\n`);
}
process.stdout.write(`Sign in anywhere as admin@localhost.localdomain with the password ${password}\n`);
process.stdout.write('Ctrl-C ends all of it\n');
process.stdout.write('Kill a process: the other node goes on. Start the first one again:\n');
const program = readsTypeScript ? 'node' : 'npx tsx';
process.stdout.write(`  ${program} src/main.ts serve ${optionsOf(ports[0] ?? 0).join(' ')}\n`);

async function stop(): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  const ended = nodes.map((node) => node.exitCode ?? node.signalCode ?? once(node, 'exit'));
  for (const node of nodes) node.kill('SIGTERM');
  await Promise.all(ended);
  await etcd.stop();
  process.exit(0);
}
