import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import type { Handle } from '../../src/http/message.ts';
import { createHandle, RawClient, startServer, textResponse } from '../support/http/raw.ts';
import { createGenerator, waitUntil } from '../support/basics.ts';

/** The number of broken connections; CAIRN_BROKEN_CONNECTIONS sets a larger one. */
const connectionsCount = Number(process.env['CAIRN_BROKEN_CONNECTIONS'] ?? 400);
const host = 'HTTP/1.1\r\nHost: a\r\n';
const long = 'y'.repeat(300_000);

async function* pieces(): AsyncGenerator<string> {
  for (let count = 0; count < 5; count += 1) {
    yield long;
    await delay(1);
  }
}

/** Answers after a while, whether or not the caller is still there. */
const later = (body: string): Handle => async (request) => {
  if (request.method === 'POST') await request.receiveBody(200_000);
  request.hold(100_000);
  await delay(2);
  return textResponse(body);
};

const routes: Readonly<Record<string, Handle>> = {
  'GET /long': () => textResponse(long),
  'GET /later': later('later'),
  'GET /long-later': later(long),
  'GET /stream': () => ({ ...textResponse(''), body: pieces() }),
  'POST /body': later('received'),
  'POST /body-long': later(long),
};
const body = 'x'.repeat(100_000);
/** The bytes of a caller whose connection breaks at any point. */
const exchanges = [
  `GET /items/1 ${host}\r\n`,
  `GET /long ${host}\r\n`.repeat(3),
  `GET /later ${host}\r\n`,
  `GET /long-later ${host}\r\n`,
  `GET /long-later ${host}\r\nGET /items/1 ${host}\r\n`,
  `GET /stream ${host}\r\n`,
  `HEAD /stream ${host}\r\n`,
  `POST /body ${host}Content-Length: ${body.length}\r\n\r\n${body}`,
  `POST /body-long ${host}Transfer-Encoding: chunked\r\n\r\n186a0\r\n${body}\r\n0\r\n\r\n`,
  `POST /body ${host}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  `POST /missing ${host}Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(200)}0\r\n\r\n`,
  `GET /items/1 ${host}\r\n`.repeat(40),
  `GET /later ${host}\r\n${`GET /items/1 ${host}\r\n`.repeat(40)}`,
  'CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n',
  'nonsense\r\n\r\n',
  `GET /later ${host}\r\nnonsense\r\n\r\n`,
];

test('connections that break at any point leave all budgets as they were', async (t) => {
  const random = createGenerator('broken connections');
  const { server, port } = await startServer({
    limits: { lingerTimeoutMs: 20, gatheringConnectionsMin: 4 }, handle: createHandle(routes), memoryMax: 64 * 2 ** 20,
  });
  t.after(() => server.drain(0));
  const isQuiet = (): boolean => server.connections === 0 && !server.isBusy;
  let left = connectionsCount;
  const breakOne = async (): Promise<void> => {
    while (left-- > 0) {
      const bytes = random.pick(exchanges);
      const client = new RawClient(port);
      if (random.below(2) === 0) client.socket.pause();
      const end = random.below(3) === 0 ? bytes.length : random.below(bytes.length + 1);
      client.send(bytes.slice(0, end));
      await delay(random.below(8));
      if (random.below(4) === 0) client.socket.destroy();
      else client.socket.resetAndDestroy();
      await client.closed;
    }
  };
  await Promise.all(Array.from({ length: 16 }, breakOne));
  await waitUntil(isQuiet, 'connections or exchanges stay open');
  assert.deepEqual([server.memory.sum, server.exchanges.sum, server.gathered.length], [0, 0, 0]);
  await waitUntil(() => server.reading.size === 0, 'sockets are still paused');

  // A caller has all of its share again.
  const client = new RawClient(port).send(`GET /long ${host}\r\n`);
  assert.equal((await client.reply()).status, 200);
  client.socket.destroy();
  await waitUntil(isQuiet);
});

test('no memory is held for a response if its connection has already broken', async (t) => {
  const made: (() => void)[] = [];
  const wait: Handle = async () => {
    await new Promise<void>((resolve) => made.push(resolve));
    return textResponse(long);
  };
  const { server, port } = await startServer({ handle: createHandle({ 'GET /wait': wait }), memoryMax: 8 * 2 ** 20 });
  t.after(() => server.drain(0));
  for (let count = 0; count < 50; count += 1) {
    const client = new RawClient(port).send(`GET /wait ${host}\r\n`);
    await waitUntil(() => made.length === count + 1);
    client.socket.resetAndDestroy();
    await waitUntil(() => server.connections === 0);
    made.at(-1)?.();
    await waitUntil(() => server.unanswered === 0);
  }
  assert.equal(server.memory.sum, 0);
  const client = new RawClient(port).send(`GET /wait ${host}\r\n`);
  await waitUntil(() => made.length === 51);
  made.at(-1)?.();
  assert.equal((await client.reply()).status, 200, 'the caller is served afterwards');
  client.socket.destroy();
});
