/** A crowd of callers in a process of its own, which reads its order as a line of JSON from standard input. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * The task of the crowd: this many callers connect. After `connectMs` all of them send a request at once, and each
 * sends another as soon as it has its response. (Node.js accepts one connection per turn of its event loop, so a crowd
 * that sends earlier never gets in.)
 */
export interface CallersOrder {
  readonly port: number;
  readonly callers: number;
  /** The requests, which the callers take in turn. */
  readonly requests: readonly string[];
  readonly connectMs: number;
  readonly durationMs: number;
}

/** The responses of the crowd: 201, 503 with `Retry-After`, anything else, and broken connections. */
export interface Counts {
  done: number;
  shed: number;
  other: number;
  broken: number;
}

const order: CallersOrder = JSON.parse(await text(process.stdin));
const requests = order.requests.map((request) => Buffer.from(request));
const counts: Counts = { done: 0, shed: 0, other: 0, broken: 0 };

const started = new Promise((resolve) => setTimeout(resolve, order.connectMs));

function call(index: number): void {
  const request = requests[index % requests.length] ?? '';
  // One address may hold 1,024 connections, so the crowd comes from eight.
  const socket = connect({
    port: order.port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (index % 8)}`, noDelay: true,
  });
  let received = '';
  socket.on('connect', () => void started.then(() => socket.write(request)));
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    const head = received.indexOf('\r\n\r\n');
    const length = /\r\ncontent-length: (\d+)/i.exec(received)?.[1];
    if (head === -1 || length === undefined || received.length < head + 4 + Number(length)) return;
    if (received.startsWith('HTTP/1.1 201')) counts.done += 1;
    else if (/^HTTP\/1\.1 503[^]*\r\nRetry-After: \d+\r\n/.test(received)) counts.shed += 1;
    else counts.other += 1;
    received = '';
    socket.write(request);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    counts.broken += 1;
    setTimeout(() => call(index), 100);
  });
}

for (let index = 0; index < order.callers; index += 1) call(index);
const report = (): boolean => process.stdout.write(JSON.stringify(counts), () => process.exit());
setTimeout(report, order.connectMs + order.durationMs);
