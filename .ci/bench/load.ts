/**
 * A load generator: keeps one request in flight on each connection for a while, and counts the responses. It runs as a
 * process of its own, reads its order as a line of JSON from standard input, and prints a line of JSON.
 */
import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';

export interface LoadOrder {
  readonly port: number;
  /** The server's process, to read its processor time. */
  readonly pid?: number;
  readonly connections: number;
  /** The number of additional connections that send `feed`, and read the response. */
  readonly listeners?: number;
  readonly feed?: string;
  readonly warmUpMs: number;
  /**
   * The least number of warm-up requests, because V8 still compiles meanwhile. Ends early after ten times the duration.
   */
  readonly warmUpRequests?: number | undefined;
  readonly measureMs: number;
  /** A whole request. `{token}` stands for a new token each time, signed with `secret`. */
  readonly request: string;
  readonly secret: string;
  /** The file to which the server writes its allocations when it gets signals (`garbage.cjs`). */
  readonly garbage?: string | undefined;
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  /** Processor time for each request, of all threads of the server; `NaN` if the system does not report it. */
  readonly microseconds: number;
  /** Bytes allocated for each request, and bytes that reached the old space; `NaN` if not counted. */
  readonly allocated: number;
  readonly promoted: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Responses other than 2xx, and broken connections. */
  readonly failures: number;
}

/** Warm-up callers before a run with one, which would otherwise measure Node's compiler. */
const warmUpConnections = 64;

/** More than any server remembers, so that each token is new to it again when its turn comes back. */
const tokensCount = 100_000;

/** Encodes a request for the wire; one with `{token}` becomes many. */
function* encode({ request, secret }: LoadOrder): Generator<Buffer> {
  if (!request.includes('{token}')) return yield Buffer.from(request);
  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const header = encoded({ alg: 'HS256', typ: 'JWT' });
  const iat = Math.floor(Date.now() / 1000);
  for (let jti = 0; jti < tokensCount; jti += 1) {
    const signed = `${header}.${encoded({ userId: 1, role: 'admin', iat, exp: iat + 900, jti: String(jti) })}`;
    const signature = createHmac('sha256', secret).update(signed).digest('base64url');
    yield Buffer.from(request.replace('{token}', `${signed}.${signature}`));
  }
}

/** Returns the end of the response at the start of `received`; -1 if it is incomplete. */
function endOfReply(received: string): number {
  const head = received.indexOf('\r\n\r\n');
  if (head === -1) return -1;
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, head))?.[1];
  if (length === undefined) {
    const last = received.indexOf('\r\n0\r\n\r\n', head);
    return last === -1 ? -1 : last + 7;
  }
  const end = head + 4 + Number(length);
  return end > received.length ? -1 : end;
}

/** Processor time of all threads of a process so far, in milliseconds: the first field of proc(5)'s schedstat. */
function processorMs(pid: number | undefined): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const statOf = (id: string): string => readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8');
    const nanoseconds = threads.map((id) => Number(statOf(id).split(' ')[0]));
    return nanoseconds.reduce((sum, value) => sum + value, 0) / 1e6;
  } catch {
    return Number.NaN;
  }
}

/** Starts or stops counting the server's allocations; resolves with the sums after stopping. */
async function garbageOf({ pid, garbage }: LoadOrder, end: boolean): Promise<{ allocated: number; promoted: number }> {
  if (garbage === undefined || pid === undefined) return { allocated: Number.NaN, promoted: Number.NaN };
  process.kill(pid, 'SIGUSR2');
  while (end && !existsSync(garbage)) await new Promise((resolve) => setTimeout(resolve, 5));
  return end ? JSON.parse(readFileSync(garbage, 'utf8')) : { allocated: 0, promoted: 0 };
}

export async function run(order: LoadOrder): Promise<LoadResult> {
  const requests = [...encode(order)];
  const latencies: number[] = [];
  let [next, answered, failures, measuring] = [0, 0, 0, false];
  const ask = (socket: Socket): number => {
    next = (next + 1) % requests.length;
    socket.write(requests[next] ?? '');
    return performance.now();
  };
  const sockets = new Set<Socket>();
  const open = (): void => {
    const socket = connect({ port: order.port, host: '127.0.0.1', noDelay: true });
    sockets.add(socket);
    let received = '';
    let askedMs = 0;
    socket.on('connect', () => (askedMs = ask(socket)));
    socket.on('data', (chunk: Buffer) => {
      received = received === '' ? chunk.toString('latin1') : received + chunk.toString('latin1');
      const end = endOfReply(received);
      if (end === -1) return;
      answered += 1;
      if (received[9] !== '2') failures += 1;
      const isLast = /\r\nconnection: close\r\n/i.test(received.slice(0, received.indexOf('\r\n\r\n') + 2));
      received = received.slice(end);
      const now = performance.now();
      if (measuring) latencies.push(now - askedMs);
      if (!isLast) return void (askedMs = ask(socket));
      // A server may end a connection after a number of requests.
      sockets.delete(socket);
      socket.removeAllListeners('end').destroy();
      open();
    });
    socket.on('error', () => (failures += 1));
    socket.on('end', () => (failures += 1));
  };
  const listeners = Array.from({ length: order.listeners ?? 0 }, () => {
    const socket = connect({ port: order.port, host: '127.0.0.1' });
    socket.on('error', () => (failures += 1)).resume().write(order.feed ?? '');
    return socket;
  });
  const { connections, warmUpRequests = 20_000 } = order;
  const callers = connections === 1 && order.warmUpRequests === undefined ? warmUpConnections : connections;
  for (let count = 0; count < callers; count += 1) open();
  for (let times = 0; times < 10 && (times === 0 || answered < warmUpRequests); times += 1) {
    await new Promise((resolve) => setTimeout(resolve, order.warmUpMs));
  }
  for (const socket of [...sockets].slice(order.connections)) {
    sockets.delete(socket);
    socket.removeAllListeners('data').removeAllListeners('end').destroy();
  }
  await garbageOf(order, false);
  const [startedMs, failuresBefore, usedMs] = [performance.now(), failures, processorMs(order.pid)];
  measuring = true;
  await new Promise((resolve) => setTimeout(resolve, order.measureMs));
  measuring = false;
  const seconds = (performance.now() - startedMs) / 1000;
  const microseconds = ((processorMs(order.pid) - usedMs) * 1000) / latencies.length;
  const { allocated, promoted } = await garbageOf(order, true);
  for (const socket of [...sockets, ...listeners]) socket.destroy();
  latencies.sort((one, two) => one - two);
  const quantile = (share: number): number => latencies[Math.floor((latencies.length - 1) * share)] ?? 0;
  return {
    requestsPerSecond: latencies.length / seconds,
    microseconds,
    allocated: allocated / latencies.length,
    promoted: promoted / latencies.length,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    maxMs: quantile(1),
    failures: failures - failuresBefore,
  };
}

if (process.argv[1]?.endsWith('load.ts') === true) {
  const order: LoadOrder = JSON.parse(await text(process.stdin));
  process.stdout.write(JSON.stringify(await run(order)));
}
