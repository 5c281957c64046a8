/**
 * Repeats the most expensive requests of one caller, and measures their cost for another caller. Each figure is
 * compared with one of the same run, since machines and hours differ.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { RawClient } from '../../test/support/http/raw.ts';
import type { CallersOrder } from './callers.ts';
import { password, formatRequest, startServer, typescript, type Served } from './served.ts';

const title = { kind: 'text', min: 1 };

/** Lets `callers` connections repeat a request from another process, until the test is over. */
async function crowd(context: TestContext, { port }: Served, callers: number, request: string): Promise<void> {
  const child = spawn(process.execPath, [...typescript, join(import.meta.dirname, 'callers.ts')], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  context.after(() => child.kill('SIGKILL'));
  const order: CallersOrder = { port, callers, requests: [request], connectMs: 1500, durationMs: 60_000 };
  child.stdin.end(JSON.stringify(order));
  await delay(3500);
}

/** Returns the median and the 90th percentile of a request's duration, sequentially on one connection. */
async function timesOf({ port }: Served, request: string, status: number, count: number) {
  const client = new RawClient(port);
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const askedMs = performance.now();
    assert.equal((await client.send(request).reply()).status, status);
    times.push(performance.now() - askedMs);
  }
  client.socket.destroy();
  times.sort((one, two) => one - two);
  const at = (share: number): number => times[Math.floor(times.length * share)] ?? NaN;
  return { middle: at(0.5), ninth: at(0.9) };
}

const shown = (figures: object): string =>
  Object.entries(figures).map(([name, value]) => `${name} ${Number(value).toFixed(1)}`).join(', ');

async function createMany(server: Served, target: string, records: readonly object[]): Promise<void> {
  for (let start = 0; start < records.length; start += 1000) {
    const part = records.slice(start, start + 1000);
    const { status, body } = await server.ask(formatRequest(`POST ${target}/batch`, server.admin, part));
    assert.equal(status, 201, body.slice(0, 300));
  }
}

test("300 connections that repeat a refused cascade do not block another caller's writes", async (context) => {
  const server = await startServer(context, [
    { name: 'parents', singular: 'parent', fields: { title } },
    {
      name: 'children', singular: 'child',
      fields: { parentId: { kind: 'reference', to: 'parents', onDelete: 'remove' } },
    },
    { name: 'blockers', singular: 'blocker', fields: { childId: { kind: 'reference', to: 'children' } } },
  ]);
  const [attacker, other] = [await server.signUp('attacker'), await server.signUp('other')];
  await server.ask(formatRequest('POST /parents', attacker, { title: 'One' }));
  await createMany(server, '/children', Array.from({ length: 9900 }, () => ({ parentId: 1 })));
  await server.ask(formatRequest('POST /blockers', server.admin, { childId: 9900 }));
  const removal = formatRequest('DELETE /parents/1', attacker);
  assert.equal((await server.ask(removal)).status, 409);
  const refused = await timesOf(server, removal, 409, 20);
  const write = formatRequest('POST /items', other, { name: 'thing', price: 1 });
  const alone = await timesOf(server, write, 201, 100);
  await crowd(context, server, 300, removal);
  const beside = await timesOf(server, write, 201, 100);
  console.log(`# a refused cascade ms: ${shown(refused)}; a write alone: ${shown(alone)}; beside: ${shown(beside)}`);
  const bound = Math.max(250, 10 * refused.middle);
  assert.ok(beside.ninth < bound, `a write takes ${beside.ninth} ms beside 300 that are refused`);
});

test("64 streams that catch up do not slow down another caller's writes", async (context) => {
  const server = await startServer(context);
  const [attacker, other] = [await server.signUp('attacker'), await server.signUp('other')];
  const first = new RawClient(server.port).send(formatRequest('GET /changes', attacker));
  while (!/^id: .+$/m.test(first.unread)) await delay(5);
  const [, since = ''] = /^id: (.+)$/m.exec(first.unread) ?? [];
  first.socket.destroy();
  const name = 'a thing '.repeat(10);
  await createMany(server, '/items', Array.from({ length: 10_000 }, (_, price) => ({ name, price })));
  const write = formatRequest('POST /items', other, { name: 'thing', price: 1 });
  await timesOf(server, write, 201, 300);
  const alone = await timesOf(server, write, 201, 300);
  const residentMiB = (line: string): number =>
    Number(new RegExp(`${line}:\\s+(\\d+)`).exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1]) / 1024;
  const before = residentMiB('VmRSS');
  // The last 9,000 events are remembered, whatever is written meanwhile.
  const [epoch = '', sequence] = since.split('-');
  const request = formatRequest(`GET /changes?since=${epoch}-${Number(sequence) + 1}`, attacker);
  const isRead = (index: number): boolean => index % 2 === 0;
  let received = 0;
  const streams: Socket[] = Array.from({ length: 63 }, (_, index) => {
    const socket = connect({ port: server.port, host: '127.0.0.1' });
    socket.write(request);
    if (isRead(index)) socket.on('data', ({ length }) => (received += length));
    return socket;
  });
  const beside = await timesOf(server, write, 201, 300);
  const grownMiB = residentMiB('VmHWM') - before;
  for (const socket of streams) socket.destroy();
  const readMiB = received / 2 ** 20;
  console.log(`# a write alone ms: ${shown(alone)}; beside: ${shown(beside)}; MiB: ${shown({ readMiB, grownMiB })}`);
  assert.ok(received > 0 && grownMiB < 128, `the server grew by ${grownMiB} MiB`);
  assert.ok(beside.middle < 3 * alone.middle, 'a write takes many times as long');
});

test("40 concurrent password changes delay another caller's sign-in by at most three hashes", async (context) => {
  const server = await startServer(context);
  const attacker = await server.signUp('attacker');
  await server.signUp('other');
  const signIn = formatRequest('POST /tokens', '', { email: 'other@example.org', password });
  const timed = async (): Promise<number> => {
    const askedMs = performance.now();
    assert.equal((await server.ask(signIn)).status, 201);
    return performance.now() - askedMs;
  };
  // Two hashes at a time, like the other cases.
  const pair = await Promise.all([timed(), timed()]);
  const hashMs = Math.max(...pair);
  const change = { currentPassword: password, password: 'another password of the tests' };
  const { body } = await server.ask(formatRequest('GET /users?email=attacker@example.org', server.admin));
  const [, id = ''] = /"id":(\d+)/.exec(body) ?? [];
  const request = formatRequest(`PATCH /users/${id}`, attacker, change).replace('/json', '/merge-patch+json');
  const crowded = Array.from({ length: 40 }, () => new RawClient(server.port).send(request));
  const statuses = new Map<number, number>();
  const all = Promise.all(crowded.map(async (client) => {
    const { status } = await client.reply();
    client.socket.destroy();
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }));
  await delay(hashMs / 4);
  const besideMs = await timed();
  await all;
  console.log(`# a sign-in: ${shown({ hashMs, besideMs })}; changes by status: ${[...statuses].join(' ')}`);
  assert.ok(besideMs < 3 * hashMs, `a sign-in takes ${besideMs} ms, a hash ${hashMs} ms`);
});

test("500 searches of one caller slow down another caller's sorted page at most threefold", async (context) => {
  const server = await startServer(context);
  const [attacker, other] = [await server.signUp('attacker'), await server.signUp('other')];
  const name = 'a thing to be sold '.repeat(4);
  const items = Array.from({ length: 8000 }, (_, index) => ({ name, price: (index * 7919) % 1000 }));
  await createMany(server, '/items', items);
  const page = formatRequest('GET /items?sort=-price&limit=1000', other);
  await timesOf(server, page, 200, 50);
  const alone = await timesOf(server, page, 200, 100);
  await crowd(context, server, 500, formatRequest('GET /items?q=zzz&limit=1000', attacker));
  const beside = await timesOf(server, page, 200, 100);
  console.log(`# a sorted page alone ms: ${shown(alone)}; beside: ${shown(beside)}`);
  assert.ok(beside.middle < 3 * alone.middle + 20, 'a sorted page takes many times as long');
});

test('100 connections with 1,700 requests each behind an unread list fit into a small heap', async (context) => {
  const server = await startServer(context, undefined, ['--max-old-space-size=96', '--max-semi-space-size=16']);
  const attacker = await server.signUp('attacker');
  const name = 'a thing to be sold '.repeat(4);
  await createMany(server, '/items', Array.from({ length: 10_000 }, () => ({ name, price: 1 })));
  const brief = formatRequest('HEAD /livez', '').repeat(1700);
  const slow = formatRequest('GET /items', attacker) + brief;
  // Callers with many addresses, and with one.
  for (const [addresses, requests] of [[100, slow], [1, slow], [250, brief], [1, brief]] as const) {
    const sockets: Socket[] = Array.from({ length: Math.max(addresses, 100) }, (_, index) => {
      const localAddress = `127.0.0.${2 + (index % addresses)}`;
      const socket = connect({ port: server.port, host: '127.0.0.1', localAddress });
      socket.on('error', () => undefined).pause().write(requests);
      return socket;
    });
    const { ninth } = await timesOf(server, formatRequest('GET /livez', ''), 200, 200);
    console.log(`# /livez beside ${addresses} addresses: ${ninth.toFixed(1)} ms`);
    for (const socket of sockets) socket.destroy();
    // A tenth of this on a busy machine; without bounds the process ends.
    assert.ok(ninth < 2500, `/livez takes ${ninth} ms`);
  }
});

test('connections from many addresses with the largest headers fit into a small heap', async (context) => {
  const server = await startServer(context, undefined, ['--max-old-space-size=96', '--max-semi-space-size=16']);
  const fields = Array.from({ length: 90 }, (_, index) => `X-${index}: ${'x'.repeat(165)}\r\n`).join('');
  const head = formatRequest('POST /login', '', {}).replace('\r\n\r\n{}', `\r\n${fields}`);
  let open = 0;
  const sockets = await Promise.all(
    Array.from({ length: 1500 }, async (_, index) => {
      const socket = connect({ port: server.port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (index % 5)}` });
      socket.on('error', () => undefined).on('close', () => (open -= 1));
      await once(socket, 'connect');
      open += 1;
      // The content does not come.
      socket.write(`${head}\r\n`);
      return socket;
    }),
  );
  while (open > 600) await delay(20);
  for (const socket of sockets) socket.destroy();
  await delay(100);
  assert.equal((await server.ask(formatRequest('GET /livez', ''))).status, 200);
});
