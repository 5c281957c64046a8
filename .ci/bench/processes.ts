import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

import type { LoadOrder, LoadResult } from './load.ts';

export const secret = 'the secret of the benchmark, 32 bytes or more';
export const email = 'admin@localhost.localdomain';
export const password = 'the password of the benchmark';

/** If the system can: servers on one core, load on another. */
const pinned = availableParallelism() > 1 && spawnSync('taskset', ['-c', '0', 'true']).status === 0;
const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];

/** The only response of a bare server (`bare.js`). */
export interface BareOrder {
  readonly status: number;
  readonly body: string | readonly unknown[];
  /** The file to which bodies are appended and synced. If absent, they are not even read. */
  readonly log?: string;
}

export interface Server {
  readonly port: number;
  readonly process: ChildProcess;
  /** The file to which it writes its allocations (`garbage.cjs`). */
  readonly garbage?: string;
}

type Output = number | 'pipe';
function start(core: number, args: readonly string[], output: Output, environment = {}, cwd = '.'): ChildProcess {
  const command = pinned ? ['taskset', '-c', String(core), process.execPath, ...args] : [process.execPath, ...args];
  const [name = '', ...rest] = command;
  return spawn(name, rest, {
    cwd,
    stdio: ['pipe', output, 'inherit'],
    env: { ...process.env, ...environment },
  });
}

/** Starts a bare server; `directory` receives its order, which may be long, and its output. */
export function startBare(directory: string, order: BareOrder, startIt = startProgram): Promise<Server> {
  const path = join(directory, 'order.json');
  writeFileSync(path, JSON.stringify(order));
  return startIt(directory, [join(import.meta.dirname, 'bare.js'), path]);
}

/** Starts the built Cairn with these arguments, with its log in a file. */
export function startCairn(directory: string, data: readonly string[]): Promise<Server> {
  const main = join(import.meta.dirname, '../../dist/main.js');
  const options = ['--port', '0', '--log', 'json', ...data];
  return startProgram(directory, [main, 'serve', ...options]);
}

/** Starts a server that prints its address, with its output in this directory. */
export function startProgram(directory: string, words: readonly string[], environment = {}): Promise<Server> {
  const secrets = { CAIRN_SECRET: secret, CAIRN_ADMIN_PASSWORD: password };
  return serverFrom(directory, (output) => start(0, words, output, { ...secrets, ...environment }, directory));
}

/** Starts a server that counts its allocations when `load` tells it to. */
export async function startCounted(directory: string, words: readonly string[]): Promise<Server> {
  const garbage = join(directory, 'garbage.json');
  rmSync(garbage, { force: true });
  const counter = ['--require', join(import.meta.dirname, 'garbage.cjs')];
  const server = await startProgram(directory, [...counter, ...words], { CAIRN_BENCH_GARBAGE: garbage });
  return { ...server, garbage };
}

/** The output is a file, as a log's often is; its last start-up line has the port. */
async function serverFrom(directory: string, begin: (output: number) => ChildProcess): Promise<Server> {
  const path = join(directory, 'output.log');
  const child = begin(openSync(path, 'w', 0o600));
  for (;;) {
    const port = / serves http:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(path, 'utf8'))?.[1];
    if (port !== undefined) return { port: Number(port), process: child };
    if (child.exitCode !== null) throw new Error(`The server ended: ${readFileSync(path, 'utf8')}`);
    await delay(1);
  }
}

export async function stop({ process: child }: Server): Promise<void> {
  child.kill('SIGTERM');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

export async function load(order: LoadOrder): Promise<LoadResult> {
  const child = start(1, [...typescript, join(import.meta.dirname, 'load.ts')], 'pipe');
  child.stdin?.end(JSON.stringify(order));
  if (child.stdout === null) throw new Error('The load generator has no output');
  return JSON.parse(await text(child.stdout));
}

/** Sends one request on a connection of its own; resolves with the whole response. */
export async function sendRequest(port: number, request: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.end(request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
  return await text(socket);
}

/** Resident memory in MiB, if the system reports it. */
export function measureResidentMiB({ process: child }: Server): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}
