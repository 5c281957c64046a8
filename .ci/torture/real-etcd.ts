import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Why a real etcd cannot run here; `undefined` if it can. */
export const noEtcd = spawnSync('etcd', ['--version']).status === 0
  ? undefined
  : 'there is no etcd here: apt-get install etcd-server';

export interface RealEtcdOptions {
  readonly members?: number;
  /** Additional flags of each member. */
  readonly flags?: readonly string[];
}

/** The processes to kill when the tests end. */
const running = new Set<ChildProcess>();

function endAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

process.once('exit', endAll);
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    endAll();
    process.exit(70);
  });
}

/** A real etcd of one or more members on loopback, with its data in a temporary directory. */
export class RealEtcd {
  readonly addresses: string[] = [];
  readonly directory = mkdtempSync(join(tmpdir(), 'cairn-etcd-'));
  readonly #peers: string[] = [];
  readonly #flags: readonly string[];
  readonly #processes: (ChildProcess | undefined)[] = [];

  private constructor(flags: readonly string[]) {
    this.#flags = flags;
  }

  static async start({ members = 1, flags = [] }: RealEtcdOptions = {}): Promise<RealEtcd> {
    const etcd = new RealEtcd(flags);
    const ports = await findFreePorts(2 * members);
    for (let member = 0; member < members; member += 1) {
      etcd.addresses.push(`http://127.0.0.1:${ports[2 * member]}`);
      etcd.#peers.push(`http://127.0.0.1:${ports[2 * member + 1]}`);
    }
    for (let member = 0; member < members; member += 1) etcd.launch(member);
    for (const address of etcd.addresses) await waitUntilHealthy(address);
    return etcd;
  }

  /** Starts a member, also after `kill`. */
  launch(member: number, ...flags: readonly string[]): void {
    const [client = '', peer = ''] = [this.addresses[member], this.#peers[member]];
    const cluster = this.#peers.map((url, index) => `m${index}=${url}`).join(',');
    const child = spawn('etcd', [
      '--name', `m${member}`, '--data-dir', this.dataOf(member), '--initial-cluster', cluster,
      '--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls', peer,
      '--initial-advertise-peer-urls', peer, '--log-level', 'error', ...this.#flags, ...flags,
    ], { stdio: 'ignore', env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch } });
    this.#processes[member] = child;
    running.add(child);
    child.on('exit', () => running.delete(child));
  }

  dataOf(member: number): string {
    return join(this.directory, `m${member}`);
  }

  async kill(member: number): Promise<void> {
    const child = this.#processes[member];
    this.#processes[member] = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  signal(member: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#processes[member]?.kill(signal);
  }

  /** The index of the leader, according to the first member that responds; -1 if none does. */
  async leader(): Promise<number> {
    const states = await Promise.all(this.addresses.map(async (address) => {
      const asked = fetch(`${address}/v3/maintenance/status`, { method: 'POST', body: '{}' });
      const response = await asked.catch(() => null);
      const status = Object((await response?.json().catch(() => null)) ?? {});
      return { leader: status.leader as string | undefined, id: status.header?.member_id as string | undefined };
    }));
    const leader = states.find((state) => state.leader !== undefined && state.leader !== '0')?.leader;
    return states.findIndex(({ id }) => id !== undefined && id === leader);
  }

  async stop(): Promise<void> {
    for (const [member, child] of this.#processes.entries()) {
      child?.kill('SIGCONT');
      await this.kill(member);
    }
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Waits until a member serves a linearizable read. */
export async function waitUntilHealthy(address: string, timeoutMs = 20_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const response = await fetch(`${address}/health`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
    if (response?.ok === true) return;
    if (performance.now() > end) throw new Error(`${address} is not healthy`);
    await delay(50);
  }
}

export async function findFreePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
