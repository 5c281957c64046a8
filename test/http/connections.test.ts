import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { CairnError } from '../../src/base/errors.ts';
import { systemClock } from '../../src/base/system.ts';
import { Exchange } from '../../src/http/exchange.ts';
import type { HttpServerOptions } from '../../src/http/server-options.ts';
import { HttpServer } from '../../src/http/server.ts';
import { createProxies } from '../../src/options/proxies/proxies.ts';
import { inject } from '../../src/programs/inject.ts';
import type { Handle, Reply, Request } from '../../src/http/message.ts';
import { problemReply } from '../../src/api/replies.ts';
import { waitUntil, withTimeout } from '../support/basics.ts';
import {
  type Listener,
  RawClient,
  createHandle,
  startServer,
  textResponse,
} from '../support/http/raw.ts';

const host = 'HTTP/1.1\r\nHost: a\r\n';
const get = `GET /items/1 ${host}\r\n`;
const last = `GET /items/1 ${host}Connection: close\r\n\r\n`;

async function start(
  context: TestContext,
  limits: HttpServerOptions['limits'],
  routes: Readonly<Record<string, Handle>> = {},
  more: Partial<HttpServerOptions> = {},
): Promise<Listener> {
  const listener = await startServer({ limits, handle: createHandle(routes), ...more });
  context.after(() => listener.server.drain(0));
  return listener;
}

async function assertServes({ port }: Listener): Promise<void> {
  const client = new RawClient(port).send(last);
  await assertLast(client, { status: 200 });
}

async function* chunks(count: number, size: number): AsyncGenerator<string> {
  for (let index = 0; index < count; index += 1) yield String(index % 10).repeat(size);
}

/** A promise that the test resolves. */
function gate(): { readonly passed: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { passed, open };
}

/** A handler that answers "waited" when the test opens its gate. */
function gatedHandler(): { readonly wait: Handle; open: () => void } {
  const { passed, open } = gate();
  const wait: Handle = async () => {
    await passed;
    return textResponse('waited');
  };
  return { wait, open };
}

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

/** Checks parts of a reply, and that the connection ends with it. */
async function assertLast(
  client: RawClient, expected: Readonly<Record<string, unknown>>, message?: string,
): Promise<void> {
  const { status, body, fields } = await client.reply();
  const found: Readonly<Record<string, unknown>> = {
    status, body, length: body.length, connection: fields.get('connection'),
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(found[name], value, message);
  assert.equal(await client.rest(), '', message);
}

/** Waits until every connection of a listener is closed. */
async function allClosed({ server }: Listener): Promise<void> {
  await waitUntil(() => server.connections === 0, 'a connection stays open');
}

test('a caller that sends nothing, or fields or content too slowly, gets 408 in time', async (context) => {
  const listener = await start(context, { headersTimeoutMs: 600, requestTimeoutMs: 900, lingerTimeoutMs: 50 });
  const starts = ['', 'GET /items/1 HT', `GET /items/1 ${host}X: `, `POST /echo ${host}Content-Length: 3\r\n\r\na`];
  const more = [`POST /echo ${host}Transfer-Encoding: chunked\r\n\r\n3\r\nab`, `${get}GET /it`];
  await Promise.all(
    [...starts, ...more].map(async (bytes) => {
      const client = new RawClient(listener.port);
      if (bytes !== '') client.send(bytes);
      if (bytes.startsWith(get)) assert.equal((await client.reply()).status, 200);
      const reply = await client.reply();
      assert.equal(reply.status, 408, bytes);
      assert.equal(reply.fields.get('connection'), 'close');
      const isProblem = reply.fields.get('content-type') === 'application/problem+json';
      assert.equal(isProblem, bytes.startsWith('POST'), 'a request in flight gets its own response');
      assert.equal(await client.rest(), '');
    }),
  );
  await assertServes(listener);
});

test('an idle connection is closed', async (context) => {
  const listener = await start(context, { keepAliveTimeoutMs: 50 });
  const client = new RawClient(listener.port).send(get);
  await assertLast(client, { status: 200 });
});

test('a caller that leaves while it sends a body changes nothing; one that half-closes is served', async (context) => {
  let stored = 0;
  const listener = await start(context, {}, {
    'POST /store': async (request) => {
      await request.receiveBody(10);
      stored += 1;
      await delay(20);
      return textResponse('stored');
    },
  });
  const left = new RawClient(listener.port).send(`POST /store ${host}Content-Length: 3\r\n\r\nab`);
  left.socket.end();
  assert.equal((await left.reply()).status, 400);
  await left.rest();
  const reset = new RawClient(listener.port).send(`POST /store ${host}Content-Length: 3\r\n\r\nab`);
  await delay(20);
  reset.socket.resetAndDestroy();
  assert.equal(stored, 0);
  const half = new RawClient(listener.port).send(`POST /store ${host}Content-Length: 3\r\n\r\nabc`);
  half.socket.end();
  assert.equal((await half.reply()).body, 'stored');
  await half.rest();
  assert.equal(stored, 1);
  await assertServes(listener);
});

test('a client that reads nothing is cut off, and a slow one is not', async (context) => {
  let returned = 0;
  async function* endless(): AsyncGenerator<string> {
    try {
      for (;;) yield 'x'.repeat(64 * 1024);
    } finally {
      returned += 1;
    }
  }
  const listener = await start(context, { slowReaderTimeoutMs: 100 }, {
    'GET /endless': () => ({ ...textResponse(''), body: endless() }),
  });
  const lazy = new RawClient(listener.port).send(`GET /endless ${host}\r\n`);
  lazy.socket.pause();
  await waitUntil(() => returned > 0, 'the stream was not ended');
  lazy.socket.destroy();
  // On a busy machine, a pause may take many times as long.
  const patient = await start(context, { slowReaderTimeoutMs: 10_000 }, {
    'GET /long': () => ({ ...textResponse(''), body: chunks(100, 16 * 1024) }),
  });
  const slow = new RawClient(patient.port).send(`GET /long ${host}\r\n`);
  for (let pauses = 0; pauses < 5; pauses += 1) {
    slow.socket.pause();
    await delay(20);
    slow.socket.resume();
    await delay(5);
  }
  assert.equal((await slow.reply()).body.length, 100 * 16 * 1024);
  slow.socket.destroy();
  const [one] = listener.answered;
  assert.equal(one?.route, '/endless');
  await assertServes(listener);
});

test('a client that does not read a large response is cut off', async (context) => {
  const big = textResponse('y'.repeat(8 * 1024 * 1024));
  const listener = await start(context, { slowReaderTimeoutMs: 100 }, { 'GET /big': () => big });
  const lazy = new RawClient(listener.port).send(`GET /big ${host}\r\n`);
  lazy.socket.pause();
  const sentAt = performance.now();
  await waitUntil(() => listener.answered.length > 0, 'it is not answered');
  await allClosed(listener);
  assert.ok(performance.now() - sentAt > 95, 'it is given its time');
  lazy.socket.resume();
  await lazy.closed;
  assert.ok(lazy.unread.length < 8 * 1024 * 1024, 'the reply was cut');
  await assertServes(listener);
});

test('a caller that leaves ends its stream', async (context) => {
  const ended = gate();
  const listener = await start(context, {}, {
    'GET /endless': () => ({
      ...textResponse(''),
      body: (async function* () {
        try {
          for (;;) yield 'x'.repeat(1024);
        } finally {
          ended.open();
        }
      })(),
    }),
  });
  const client = new RawClient(listener.port).send(`GET /endless ${host}\r\n`);
  client.socket.once('data', () => client.socket.destroy());
  await withTimeout(ended.passed, 'the stream was not ended');
  await assertServes(listener);
});

test("a handler learns that its caller has left, and the key of the caller's share", async (context) => {
  const requests: Request[] = [];
  const listener = await start(context, {}, {
    'GET /wait': async (request) => {
      requests.push(request);
      await once(request.signal, 'abort');
      return textResponse('nobody reads this');
    },
    'GET /kept': async (request) => {
      requests.push(request);
      await delay(1, undefined, { signal: request.signal });
      return textResponse('kept');
    },
  });
  const kept = new RawClient(listener.port);
  for (let count = 0; count < 3; count += 1) {
    assert.equal((await kept.send(`GET /kept ${host}\r\n`).reply()).body, 'kept');
  }
  const client = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  while (requests.length < 4) await delay(2);
  const [first, , , last] = requests;
  assert.equal(first?.caller, '127.0.0.1');
  Object.assign(first ?? {}, { userId: 7 });
  assert.equal(first?.caller, 'user 7');
  assert.equal(last?.signal.aborted, false);
  client.socket.resetAndDestroy();
  await waitUntil(() => last?.signal.aborted === true, 'the handler is not told');
  assert.deepEqual(requests.map(({ signal }) => signal.aborted), [false, false, false, true]);
  const { server } = listener;
  const stopped = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  while (requests.length < 5) await delay(2);
  kept.socket.destroy();
  await server.drain(1);
  await stopped.closed;
  await waitUntil(() => requests[4]?.signal.aborted === true, 'a stop that cuts off a handler does not tell it');
});

test('a stream that fails never looks complete, and errors are not shown to the caller', async (context) => {
  const failures: unknown[] = [];
  const onError = (error: unknown): number => failures.push(error);
  const broken: Handle = () => {
    throw new TypeError('a bug');
  };
  const routes: Record<string, Handle> = {
    'GET /bug': broken,
    'GET /broken': () => ({
      ...textResponse(''),
      body: (async function* () {
        yield 'half';
        await delay(1);
        throw new Error('broken');
      })(),
    }),
  };
  const listener = await start(context, {}, routes, { onError });
  const client = new RawClient(listener.port).send(`GET /broken ${host}\r\n`);
  await client.closed;
  assert.match(client.unread, /half/);
  assert.doesNotMatch(client.unread, /\r\n0\r\n/);
  assert.equal(listener.answered.length, 1);
  const bug = new RawClient(listener.port).send(`GET /bug ${host}\r\n`);
  const reply = await bug.reply();
  assert.equal(reply.status, 500);
  assert.doesNotMatch(reply.body, /a bug/);
  bug.socket.destroy();
  assert.deepEqual(failures.map(String), ['Error: broken', 'TypeError: a bug']);
  await assertServes(listener);
});

test('of 1,000 pipelined requests 16 are answered in order, then the connection ends', async (context) => {
  for (const gatheringConnectionsMin of [0, 8]) {
    const listener = await start(context, { gatheringConnectionsMin });
    for (const count of [16, 17, 1000]) {
      const client = new RawClient(listener.port);
      let bytes = '';
      for (let id = 0; id < count; id += 1) bytes += `GET /items/${id} ${host}\r\n`;
      client.send(bytes);
      for (let id = 0; id < 16; id += 1) assert.equal((await client.reply()).body, `item /items/${id}`);
      if (count === 16) assert.equal((await client.send(get).reply()).body, 'item /items/1', 'it goes on');
      else assert.equal(await client.rest(), '');
      client.socket.destroy();
    }
    await allClosed(listener);
    assert.deepEqual([listener.server.openExchanges, listener.server.memory.sum], [0, 0]);
    await assertServes(listener);
  }
});

/** Returns the largest growth of a figure in one turn of the event loop, until `isOver`. */
async function growthPerTurn(figure: () => number, isOver: () => boolean): Promise<number> {
  let [before, most] = [figure(), 0];
  while (!isOver()) {
    await new Promise(setImmediate);
    const now = figure();
    most = Math.max(most, now - before);
    before = now;
  }
  return most;
}

test('requests that are ignored are not parsed', async (context) => {
  const { wait, open } = gatedHandler();
  const { server } = await start(context, {}, { 'GET /wait': wait });
  for (const [first, expected] of [[`GET /wait ${host}\r\n`, 2], [get, 17]] as const) {
    let parsed = 0;
    const own = createServer((incoming, outgoing) => {
      parsed += 1;
      server.receive(incoming, outgoing);
    });
    context.after(() => own.close());
    await once(own.listen(0, '127.0.0.1'), 'listening');
    const address = own.address();
    assert.ok(typeof address === 'object' && address !== null);
    const client = new RawClient(address.port).send(first + get.repeat(1000));
    await waitUntil(() => parsed > 1, 'nothing is parsed');
    open();
    await client.reply();
    client.socket.destroy();
    assert.equal(parsed, expected, first);
  }
});

test('bodies in tiny chunks are read from one connection per turn, and an endless one is not parsed', async (t) => {
  let [begun, read] = [0, 0];
  const count = (request: Request): void => {
    begun += 1;
    assert.ok(request instanceof Exchange);
    request.incoming.on('data', () => (read += 1));
  };
  const counted: Handle = async (request) => {
    count(request);
    return textResponse(String((await request.receiveBody(100_000)).length));
  };
  const ignored: Handle = (request) => {
    count(request);
    return textResponse('ignored');
  };
  const listener = await start(t, {}, { 'POST /counted': counted, 'POST /ignored': ignored });
  const chunked = (path: string, chunks: number): string =>
    `POST ${path} ${host}Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(chunks)}0\r\n\r\n`;
  const clients = Array.from({ length: 8 }, () => new RawClient(listener.port));
  await waitUntil(() => listener.server.connections === 8, 'they do not connect');
  for (const path of ['/counted', '/missing']) {
    for (const client of clients) client.send(chunked(path, 100));
    const { answered } = listener;
    const [before, figure] = path === '/counted' ? [0, () => begun] : [answered.length, () => answered.length];
    const together = await growthPerTurn(figure, () => figure() === before + 8);
    assert.ok(together <= 2, `${together} connections in a turn`);
    for (const client of clients) assert.equal((await client.reply()).status, path === '/counted' ? 200 : 404);
    if (path === '/missing') for (const client of clients) client.socket.destroy();
  }

  // Of what follows, only what has been read together with it is parsed.
  for (const path of ['/counted', '/ignored']) {
    const client = new RawClient(listener.port);
    read = 0;
    const reply = await client.send(chunked(path, 60_000)).reply();
    assert.equal(reply.status, path === '/counted' ? 413 : 200);
    await client.closed;
    assert.ok(read < 12_000, `${read} chunks of ${path} are parsed`);
    client.socket.destroy();
  }
});

test('a response without a body counts in memory while an earlier one is unread', async (context) => {
  const big = textResponse('y'.repeat(8 * 1024 * 1024));
  const listener = await start(context, {}, { 'GET /big': () => big }, { memoryMax: 256 * 1024 * 1024 });
  const { memory } = listener.server;
  const heldWith = async (more: string): Promise<number> => {
    const client = new RawClient(listener.port);
    client.socket.pause();
    const before = listener.answered.length;
    client.send(`GET /big ${host}\r\n${more}`);
    await waitUntil(() => listener.answered.length === before + (more === '' ? 1 : 11), 'not all are answered');
    const held = memory.sum;
    client.socket.destroy();
    await waitUntil(() => memory.sum === 0, 'memory is not given back');
    return held;
  };
  const one = await heldWith('');
  const heads = await heldWith(`HEAD /items/1 ${host}\r\n`.repeat(10));
  assert.ok(heads - one >= 10 * 4096, `${heads - one} bytes`);
});

test('a request that arrives behind an unfinished reply ends the connection with that reply', async (context) => {
  let handled = 0;
  const later: Handle = async () => {
    handled += 1;
    await delay(20);
    return textResponse('later');
  };
  const stream: Handle = () => ({ ...textResponse(''), body: slowChunks() });
  async function* slowChunks(): AsyncGenerator<string> {
    for (const chunk of ['one', 'two', 'three']) {
      yield chunk;
      await delay(10);
    }
  }
  for (const gatheringConnectionsMin of [0, 8]) {
    const routes = { 'GET /later': later, 'GET /stream': stream };
    const listener = await start(context, { gatheringConnectionsMin, lingerTimeoutMs: 20 }, routes);
    const next = `GET /later ${host}\r\n`;
    const post = `POST /echo ${host}Content-Length: 9\r\n\r\nabc`;
    for (const follower of [next, next.repeat(1000), post, 'GET /la', `CONNECT a:1 ${host}\r\n`, 'nonsense\r\n\r\n']) {
      handled = 0;
      const client = new RawClient(listener.port);
      client.send(`GET /items/1 ${host}\r\nGET /items/2 ${host}\r\nGET /later ${host}\r\n${follower}`);
      assert.equal((await client.reply()).body, 'item /items/1');
      assert.equal((await client.reply()).body, 'item /items/2');
      const reply = await client.reply();
      const isWhole = follower !== 'GET /la';
      const isLast = reply.fields.get('connection') === 'close';
      assert.deepEqual([reply.body, isLast], ['later', isWhole], follower.slice(0, 20));
      if (!isWhole) continue;
      assert.equal(await client.rest(), '');
      assert.equal(handled, 1);
      const streamed = new RawClient(listener.port).send(`GET /stream ${host}\r\n${follower}`);
      assert.equal((await streamed.reply()).body, 'onetwothree');
      assert.equal(await streamed.rest(), '', follower.slice(0, 20));
    }
    await assertServes(listener);
  }
});

test('endless pipelined requests behind an unfinished reply are discarded unparsed', async (context) => {
  const waits = gate();
  let socket: Socket | undefined;
  const listener = await start(context, {}, {
    'GET /wait': async (request) => {
      assert.ok(request instanceof Exchange);
      ({ socket } = request.incoming);
      await waits.passed;
      return textResponse('waited');
    },
  });
  const before = heapBytes();
  const client = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  const tiny = `GET / HTTP/1.1\r\n\r\n`;
  const megabyte = tiny.repeat(Math.ceil((1024 * 1024) / tiny.length));
  for (let count = 0; count < 12; count += 1) client.send(megabyte);
  await waitUntil(() => (socket?.bytesRead ?? 0) > 12 * 1024 * 1024, 'it is not discarded');
  assert.ok(heapBytes() - before < 16 * 1024 * 1024, 'what follows is not parsed');
  waits.open();
  const reply = await client.reply();
  assert.deepEqual([reply.body, reply.fields.get('connection')], ['waited', 'close']);
  assert.equal(await client.rest(), '');
  await assertServes(listener);
});

test('responses do not pile up for a caller that reads nothing', async (context) => {
  let handled = 0;
  const big: Handle = () => {
    handled += 1;
    return textResponse(String(handled % 10).repeat(1024 * 1024));
  };
  for (const gatheringConnectionsMin of [0, 8]) {
    handled = 0;
    const limits = { gatheringConnectionsMin, slowReaderTimeoutMs: 300 };
    const listener = await start(context, limits, { 'GET /big': big }, { memoryMax: 32 * 1024 * 1024 });
    const client = new RawClient(listener.port);
    client.socket.pause();
    client.send(`GET /big ${host}\r\n`.repeat(60));
    await waitUntil(() => handled > 0, 'nothing is handled');
    await delay(50);
    assert.ok(handled < 16, `${handled} replies wait in memory`);
    await allClosed(listener);
    assert.equal(listener.answered.length, handled);
    assert.equal(listener.server.openExchanges, 0);
    client.socket.destroy();
    await assertServes(listener);
  }
});

test("a connection of another network does not wait until a flooding one's are read", async (context) => {
  const { port, answered } = await start(context, {});
  const from = (localAddress: string): Socket => connect({ port, host: '127.0.0.1', localAddress });
  const flood = `POST /nowhere ${host}Transfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(10_000)}`;
  const crowd = Array.from({ length: 200 }, () => {
    const socket = from('127.0.0.2').on('error', () => undefined);
    socket.write(flood);
    return socket;
  });
  await Promise.all(crowd.map((socket) => once(socket, 'connect')));
  const other = new RawClient(from('127.0.0.3')).send(last);
  await assertLast(other, { status: 200 });
  for (const socket of crowd) socket.destroy();
  const refused = answered.filter(({ status }) => status === 404).length;
  assert.ok(refused < 100, `${refused} of 200 were read before`);
});

test('a caller that pipelines small requests and reads nothing is cut off in time', async (context) => {
  const small = textResponse('x'.repeat(20_000));
  const listener = await start(context, { slowReaderTimeoutMs: 100 }, { 'GET /small': () => small });
  const client = new RawClient(listener.port);
  client.socket.pause();
  while (listener.server.connections === 0) await delay(1);
  for (let count = 0; count < 100 && listener.server.connections > 0; count += 1) {
    client.send(`GET /small ${host}\r\n`.repeat(100));
    await delay(5);
  }
  await allClosed(listener);
  client.socket.destroy();
  await assertServes(listener);
});

test('requests behind an unfinished response take no memory', async (context) => {
  const { wait, open } = gatedHandler();
  const { server, port } = await start(context, { lingerTimeoutMs: 20 }, { 'GET /wait': wait });
  const client = new RawClient(port).send(`GET /wait ${host}\r\n${get.repeat(220)}`);
  await waitUntil(() => server.unanswered === 1, 'it does not arrive');
  assert.equal(server.memory.sum, 0);
  open();
  await assertLast(client, { body: 'waited' });
});

test('a message that was received keeps no listeners, which would keep its body', async (context) => {
  const counts: number[] = [];
  const listener = await start(context, {}, {
    'POST /value': async (request) => {
      // The request of a server has the message of Node.
      const { incoming } = Object(request);
      const count = (): void => void counts.push(incoming.listenerCount('data'), incoming.listenerCount('end'));
      count();
      await request.receiveBody(100);
      count();
      return textResponse('received');
    },
  });
  const client = new RawClient(listener.port).send(`POST /value ${host}Content-Length: 3\r\n\r\none`);
  assert.equal((await client.reply()).body, 'received');
  assert.deepEqual(counts.slice(2), counts.slice(0, 2));
});

test('a read that is pipelined behind a write never sees the old value', async (context) => {
  let value = 'old';
  const listener = await start(context, {}, {
    'POST /value': async (request) => {
      const sent = (await request.receiveBody(100)).toString();
      await delay(5);
      value = sent;
      return textResponse('written');
    },
    'GET /value': () => textResponse(value),
  });
  const client = new RawClient(listener.port);
  const write = `POST /value ${host}Content-Length: 3\r\n\r\n`;
  const read = `GET /value ${host}\r\n`;
  client.send(`${read}${write}one`);
  for (const expected of ['old', 'written']) assert.equal((await client.reply()).body, expected);
  client.send(`${read}${write}two${read}`);
  assert.equal((await client.reply()).body, 'one');
  await assertLast(client, { body: 'written' });
  assert.equal(value, 'two');
});

test('CONNECT on a connection that breaks harms no other caller', async (context) => {
  const listener = await start(context, { lingerTimeoutMs: 20 });
  for (let round = 0; round < 20; round += 1) {
    const client = new RawClient(listener.port).send('CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n');
    if (round % 2 === 0) assert.equal((await client.reply()).status, 405);
    client.send('x'.repeat(10_000)).socket.resetAndDestroy();
  }
  await allClosed(listener);
  await assertServes(listener);
});

test('CONNECT behind a streamed reply leaves the reply complete', async (context) => {
  const listener = await start(context, {}, {
    'GET /long': () => ({ ...textResponse(''), body: chunks(200, 64 * 1024) }),
  });
  // A request between the two is ignored, and has the connection end already.
  for (const between of ['', get]) {
    const client = new RawClient(listener.port);
    client.send(`GET /long ${host}\r\n${between}CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n`);
    // Read when it is all there: the client parses anew whenever something arrives.
    await withTimeout(client.closed, `the reply does not end with ${between.length} bytes between`);
    await assertLast(client, { length: 200 * 64 * 1024 });
  }
  await assertServes(listener);
});

test('a caller that leaves before its reply is ready leaves no state behind', async (context) => {
  const { wait, open } = gatedHandler();
  const listener = await start(context, {}, { 'GET /wait': wait });
  const client = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  client.send(`POST /echo ${host}Content-Length: 3\r\n\r\nabc`.repeat(3));
  client.send(`POST /echo ${host}Content-Length: 3\r\n\r\na`);
  while (listener.server.unanswered === 0) await delay(2);
  await delay(20);
  client.socket.resetAndDestroy();
  await allClosed(listener);
  open();
  const { server } = listener;
  await waitUntil(() => server.unanswered + server.memory.sum === 0, 'something is left');
});

test('after "Connection: close" from either side nothing more is handled', async (context) => {
  for (const gatheringConnectionsMin of [0, 8]) {
    let handled = 0;
    const count: Handle = () => {
      handled += 1;
      return textResponse('counted');
    };
    const routes: Record<string, Handle> = { 'GET /count': count, 'GET /later': async (request) => count(request) };
    const listener = await start(context, { gatheringConnectionsMin, lingerTimeoutMs: 20 }, routes);
    for (const path of ['count', 'later']) {
      for (const option of ['close', 'Close', 'close\t', 'x, close', 'close,x']) {
        handled = 0;
        const asked = new RawClient(listener.port);
        asked.send(`GET /${path} ${host}Connection: ${option}\r\n\r\nGET /${path} ${host}\r\n`);
        await assertLast(asked, { connection: 'close' }, option);
        assert.equal(handled, 1);
      }
      handled = 0;
      listener.server.isDraining = true;
      const told = new RawClient(listener.port).send(`GET /${path} ${host}\r\n`.repeat(5));
      await assertLast(told, { connection: 'close' });
      assert.equal(handled, 1);
      listener.server.isDraining = false;
    }
  }
});

test("no request is handled after a reply that ends its connection by Node's own rules", async (context) => {
  let handled = 0;
  const count = (reply: () => Reply): Handle => () => {
    handled += 1;
    return reply();
  };
  const listener = await start(context, {}, {
    'GET /stream': count(() => ({ ...textResponse(''), body: chunks(3, 10) })),
  });
  const client = new RawClient(listener.port);
  client.send('GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'.repeat(3));
  await client.closed;
  await assertLast(client, { connection: 'close' });
  assert.equal(handled, 1);
  await assertServes(listener);
});

test('a reply with a malformed field breaks its connection, and no other', async (context) => {
  const failures: unknown[] = [];
  const split: Handle = () => ({ ...textResponse(''), fields: ['Location', '/a\r\nSet-Cookie: b'] });
  const onError = (error: unknown): number => failures.push(error);
  const listener = await start(context, {}, { 'GET /split': split }, { onError });
  const client = new RawClient(listener.port).send(`GET /split ${host}\r\n`);
  await client.closed;
  assert.equal(client.unread, '');
  assert.equal(failures.length, 1);
  await assertServes(listener);
});

test('a request that waits for 100 Continue behind another gets no such line in a reply', async (context) => {
  const bytes: Handle = () => ({ status: 200, fields: ['Content-Type', 'text/plain'], body: Buffer.from('bytes') });
  const listener = await start(context, {}, { 'GET /bytes': bytes });
  const client = new RawClient(listener.port);
  client.send(`${get}GET /bytes ${host}Expect: 100-continue\r\n\r\n`);
  assert.equal((await client.reply()).body, 'item /items/1');
  await assertLast(client, { status: 200, body: 'bytes' });
});

test('content over the limit is refused before it is read, or as soon as it is too long', async (context) => {
  const listener = await start(context, { lingerTimeoutMs: 50 });
  const announced = new RawClient(listener.port).send(`POST /echo ${host}Content-Length: 100000\r\n\r\n`);
  await assertLast(announced, { status: 413 });
  const expected = new RawClient(listener.port);
  expected.send(`POST /echo ${host}Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n`);
  assert.equal((await expected.reply()).status, 100, 'Node continues any request');
  await assertLast(expected, { status: 413 });
  const chunk = `100\r\n${'x'.repeat(256)}\r\n`;
  const chunked = new RawClient(listener.port).send(`POST /echo ${host}Transfer-Encoding: chunked\r\n\r\n`);
  chunked.send(chunk.repeat(5));
  assert.equal((await chunked.reply()).status, 413);
  chunked.send(chunk);
  assert.equal(await chunked.rest(), '');
  const endless = new RawClient(listener.port).send(`POST /ignore ${host}Transfer-Encoding: chunked\r\n\r\n`);
  endless.send(chunk.repeat(1000));
  await assertLast(endless, { body: 'ignored' });
  // A head that is refused may be followed by content too, and its sender gets to read why.
  const odd = new RawClient(listener.port).send(`POST /echo ${host}Host: b\r\nContent-Length: 900000\r\n\r\n`);
  odd.send('x'.repeat(800_000));
  await assertLast(odd, { status: 400 });
  const exact = new RawClient(listener.port).send(`POST /echo ${host}Content-Length: 1000\r\n\r\n${'z'.repeat(1000)}`);
  assert.equal((await exact.reply()).body.length, 1000);
  exact.socket.destroy();
  await assertServes(listener);
});

test('a body in tiny chunks takes no more memory than its size', async (context) => {
  const big: Handle = async (request) => textResponse((await request.receiveBody(1024 * 1024)).toString('latin1'));
  const listener = await start(context, {}, { 'POST /big': big });
  const parts = Array.from({ length: 50_000 }, (_, index) => String(index % 10).repeat(17));
  const content = parts.join('');
  const client = new RawClient(listener.port).send(`POST /big ${host}Transfer-Encoding: chunked\r\n\r\n`);
  while (listener.server.unanswered === 0) await delay(2);
  const before = heapBytes();
  client.send(parts.map((part) => `11\r\n${part}\r\n`).join(''));
  const { memory } = listener.server;
  await waitUntil(() => memory.sum >= content.length, 'the chunks do not arrive');
  assert.ok(heapBytes() - before < 5 * 1024 * 1024, 'each chunk used to take 200 bytes more');
  client.send('5\r\nabcde\r\n0\r\n\r\n');
  assert.equal((await client.reply()).body, `${content}abcde`);
  client.socket.destroy();
});

test('a flood is refused at the cap of its address, and at the cap of all', async (context) => {
  const perAddress = await start(context, { connectionsPerAddressMax: 5 });
  const inAll = await start(context, { connectionsMax: 5 });
  for (const listener of [perAddress, inAll]) {
    const clients = Array.from({ length: 5 }, () => new RawClient(listener.port).send(`POST /echo ${host}`));
    await waitUntil(() => listener.server.connections === 5, 'they do not connect');
    for (let flood = 0; flood < 15; flood += 1) clients.push(new RawClient(listener.port));
    for (const client of clients.slice(5)) await client.closed;
    assert.equal(listener.server.connections, 5);
    assert.equal(listener.server.refused, 15);
    for (const client of clients) client.socket.destroy();
    await allClosed(listener);
    await assertServes(listener);
  }
  const trusted = { proxies: createProxies(['127.0.0.1']) };
  const proxied = await start(context, { connectionsPerAddressMax: 5 }, {}, trusted);
  const clients = Array.from({ length: 20 }, () => new RawClient(proxied.port).send(get));
  for (const client of clients) assert.equal((await client.reply()).status, 200);
  for (const client of clients) client.socket.destroy();
});

test('RFC 6177 §2: the cap counts the /48 of IPv6 that one site has, and mapped IPv4 by address', async (t) => {
  const peerName: unknown = Reflect.get(Socket.prototype, '_getpeername');
  let prefix = '2001:db8::';
  let drawn = 0;
  // Where `remoteAddress` comes from: there is one address to connect from, and this has to look like many.
  Object.assign(Socket.prototype, { _getpeername: () => ({ address: `${prefix}${(drawn += 1)}`, port: 1 }) });
  t.after(() => Reflect.set(Socket.prototype, '_getpeername', peerName));
  const listener = await start(t, { connectionsPerAddressMax: 5 });
  const clients: RawClient[] = [];
  const connectAll = async (count: number): Promise<void> => {
    const more = Array.from({ length: count }, () => new RawClient(listener.port).send(get));
    for (const client of more) assert.equal((await client.reply()).status, 200);
    clients.push(...more);
  };
  await connectAll(3);
  prefix = '2001:db8:0:1::';
  await connectAll(2);
  await new RawClient(listener.port).rest();
  assert.equal(listener.server.connections, 5);
  prefix = '2001:db8:1::';
  await connectAll(5);
  prefix = '::ffff:10.0.0.';
  await connectAll(6);
  for (const client of clients) client.socket.destroy();
});

test('two ports share the cap of all', async (context) => {
  const { server, port } = await start(context, { connectionsMax: 2 });
  const second = await server.listen({ port: 0, host: '127.0.0.1' });
  const idle = [port, second].map((each) => new RawClient(each).send(get));
  for (const client of idle) assert.equal((await client.reply()).status, 200);
  await new RawClient(second).rest();
  assert.equal(server.refused, 1);
  for (const client of idle) client.socket.destroy();
});

test('beyond the limit of requests in flight callers get 503, but probes are always answered', async (context) => {
  const { wait, open } = gatedHandler();
  /** Each user has one, since a single one gets no more than half of all. */
  const ofUser: Handle = (request) => {
    request.authenticated(Number(request.target.split('?')[1]));
    return wait(request);
  };
  const routes = { 'GET /wait': ofUser, 'GET /livez': () => textResponse('alive') };
  const always = { alwaysServedTargets: new Set(['/livez']) };
  const listener = await start(context, { requestsInFlightMax: 3 }, routes, always);
  const waiting = Array.from({ length: 3 }, (_, user) =>
    new RawClient(listener.port).send(`GET /wait?${user} ${host}\r\n`));
  while (listener.server.unanswered < 3) await delay(2);
  const shed = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  const reply = await shed.reply();
  assert.equal(reply.status, 503);
  assert.equal(reply.fields.get('retry-after'), '1');
  shed.send(`GET /livez ${host}\r\n`);
  assert.equal((await shed.reply()).body, 'alive');
  open();
  for (const client of waiting) assert.equal((await client.reply()).body, 'waited');
  shed.send(`GET /wait ${host}\r\n`);
  assert.equal((await shed.reply()).body, 'waited');
  for (const client of [...waiting, shed]) client.socket.destroy();
});

test('a caller has a share of the requests in flight, and the rest stays for others', async (context) => {
  const { wait, open } = gatedHandler();
  /** Waits for the user that the query names, with or without content. */
  const known: Handle = async (request) => {
    request.authenticated(Number(request.target.split('?')[1]));
    if (request.method === 'POST') await request.receiveBody(10);
    return wait(request);
  };
  const routes = { 'GET /wait': known, 'POST /wait': known };
  const limits = { requestsInFlightMax: 8, requestsInFlightPerCallerMax: 3 };
  const listener = await start(context, limits, routes);
  const { exchanges: inFlight } = listener.server;
  const ask = (user: number): RawClient => new RawClient(listener.port).send(`GET /wait?${user} ${host}\r\n`);
  const begin = (user: number): RawClient =>
    new RawClient(listener.port).send(`POST /wait?${user} ${host}Content-Length: 2\r\n\r\na`);
  // Two of them wait for their content, and do not count.
  const slow = [begin(1), begin(1)];
  await waitUntil(() => listener.server.unanswered === 2, 'they do not arrive');
  assert.equal(inFlight.sum, 0);
  const first = [ask(1), ask(1), ask(1)];
  await waitUntil(() => inFlight.sum === 3, 'they are not in flight');
  for (const client of [ask(1), ...slow.map((client) => client.send('b'))]) {
    const reply = await client.reply();
    assert.deepEqual([reply.status, reply.fields.get('retry-after')], [503, '1']);
    client.socket.destroy();
  }
  const others = [ask(2), ask(3)];
  await waitUntil(() => inFlight.sum === 5, 'others are refused');
  open();
  for (const client of [...first, ...others]) {
    assert.equal((await client.reply()).body, 'waited');
    client.socket.destroy();
  }
  await waitUntil(() => inFlight.sum === 0, 'places are not given back');
  const again = ask(1);
  assert.equal((await again.reply()).body, 'waited');
  again.socket.destroy();
});

test('replies that wait for slow readers count in the share of their caller', async (context) => {
  // More than the system keeps for a connection that nobody reads.
  const size = 8 * 1024 * 1024;
  const ended: string[] = [];
  async function* endless(): AsyncGenerator<string> {
    try {
      for (;;) yield 'x'.repeat(1024);
    } finally {
      ended.push('stream');
    }
  }
  const big: Handle = (request) => {
    request.authenticated(Number(request.target.split('?')[1]));
    return textResponse('y'.repeat(size));
  };
  const stream: Handle = async (request) => {
    request.authenticated(Number(request.target.split('?')[1]));
    const body = endless();
    await body.next();
    return { ...textResponse(''), body };
  };
  // Each reply is there as a text and as its bytes, and a caller's share is a quarter.
  const routes = { 'GET /big': big, 'GET /stream': stream };
  const listener = await start(context, {}, routes, { memoryMax: 4 * 2 * 2 * size });
  const { memory: waiting } = listener.server;
  const slow = (target: string): RawClient => {
    const client = new RawClient(listener.port);
    client.socket.pause();
    return client.send(`GET ${target} ${host}\r\n`);
  };
  const held = [slow('/big?1'), slow('/big?1')];
  await waitUntil(() => waiting.sum === 4 * size, 'they are not counted');
  for (const target of ['/big?1', '/stream?1']) {
    const client = new RawClient(listener.port).send(`GET ${target} ${host}\r\n`);
    const reply = await client.reply();
    assert.deepEqual([reply.status, reply.fields.get('retry-after')], [503, '1'], target);
    client.socket.destroy();
  }
  assert.deepEqual(ended, ['stream'], 'a stream that is not sent gives back what it holds');
  await assertServes(listener);
  const other = slow('/stream?2');
  await waitUntil(() => waiting.sum > 4 * size, 'others are refused');
  for (const client of [...held, other]) client.socket.destroy();
  await waitUntil(() => waiting.sum === 0, 'memory is not given back');
  const again = new RawClient(listener.port).send(`GET /big?1 ${host}\r\n`);
  assert.equal((await again.reply()).body.length, size);
  await waitUntil(() => waiting.sum === 0, 'memory is not given back after a reply');
  again.socket.destroy();
});

test('the pieces of a stream count before the next one is made, with the record in each', async (context) => {
  const size = 1024 * 1024;
  let made = 0;
  async function* pages(): AsyncGenerator<string> {
    for (let count = 0; count < 12; count += 1) {
      made += 1;
      yield 'z'.repeat(size);
    }
  }
  const page: Handle = (request) => {
    request.authenticated(Number(request.target.split('?')[1]));
    return { ...textResponse(''), body: pages() };
  };
  // A caller has a share of four streams: each piece, the record in it, and a slice of 64 KiB.
  const more = { memoryMax: 4 * 4 * (2 * size + 65_536) };
  const listener = await start(context, {}, { 'GET /page': page }, more);
  const { memory } = listener.server;
  const clients = Array.from({ length: 40 }, () => {
    const client = new RawClient(listener.port);
    client.socket.pause();
    return client.send(`GET /page?1 ${host}\r\n`);
  });
  await waitUntil(() => listener.answered.length === 36, 'they are not refused');
  assert.equal(memory.sum, 4 * (2 * size + 65_536));
  assert.ok(made < 40 + 4 * 11, `${made} pieces`);
  for (const { socket } of clients) socket.destroy();
  await waitUntil(() => memory.sum === 0, 'memory is not given back');
  const other = new RawClient(listener.port).send(`GET /page?1 ${host}\r\n`);
  await waitUntil(() => other.unread.startsWith('HTTP/1.1 200'), 'its caller is refused');
  other.socket.destroy();
});

test('a stream that fails before its first piece gets an answer, and pairs are not split', async (context) => {
  async function* failing(): AsyncGenerator<string> {
    throw new CairnError('draining', 'Cannot do it: the server stops');
  }
  // A piece of pairs behind one unit: each slice would end in the middle of one.
  const pairs = `x${'😀'.repeat(100_000)}`;
  async function* whole(): AsyncGenerator<string> {
    yield pairs;
  }
  const routes: Record<string, Handle> = {
    'GET /failing': () => ({ ...textResponse(''), body: failing() }),
    'GET /pairs': () => ({ ...textResponse(''), body: whole() }),
  };
  const listener = await start(context, {}, routes);
  const client = new RawClient(listener.port).send(`GET /failing ${host}\r\n`);
  assert.equal((await client.reply()).status, 503);
  const { body } = await client.send(`GET /pairs ${host}\r\n`).reply();
  assert.equal(Buffer.from(body, 'latin1').toString(), pairs);
  client.socket.destroy();
});

test('if all memory for responses is taken, the caller with the most loses its oldest one', async (context) => {
  // More than the buffers of the system take.
  const size = 8 * 1024 * 1024;
  const big: Handle = (request) => {
    request.authenticated(Number(request.target.split('?')[1]));
    return textResponse('y'.repeat(size));
  };
  // Each reply is there as a text and as its bytes.
  const [bounds, more] = [{ waitingPerCallerShareMax: 1 / 2 }, { memoryMax: 8 * size }];
  const listener = await start(context, bounds, { 'GET /big': big }, more);
  const { memory: waiting } = listener.server;
  const held: RawClient[] = [];
  for (const user of [1, 1, 2, 3]) {
    const client = new RawClient(listener.port);
    client.socket.pause();
    held.push(client.send(`GET /big?${user} ${host}\r\n`));
    await waitUntil(() => waiting.sum === held.length * 2 * size, 'it is not counted');
  }
  const ask = (user: number): RawClient => new RawClient(listener.port).send(`GET /big?${user} ${host}\r\n`);
  const [again, other] = [ask(2), ask(4)];
  assert.equal((await again.reply()).status, 503);
  assert.equal((await other.reply()).body.length, size);
  assert.equal(waiting.heldBy('user 1'), 2 * size);
  held[0]?.socket.resume();
  await held[0]?.closed;
  assert.ok((held[0]?.unread.length ?? size) < size, 'the oldest is broken off');
  for (const client of [...held, again, other]) client.socket.destroy();
  await waitUntil(() => waiting.sum === 0, 'memory is not given back');
});

// A shorter one arrives in one go.
for (const length of [5000, 100_000]) {
  test(`bodies of ${length} bytes are read one in a turn of the loop, however many have arrived`, async (context) => {
    let [turn, nowMs, arrived] = [0, 0, 0];
    const turns: number[] = [];
    const receive: Handle = async (request) => {
      request.authenticated(Number(request.target.split('?')[1]));
      if ((arrived += 1) === 5) open();
      await allArrived;
      await request.receiveBody(100_000);
      // To read it takes 5 ms.
      nowMs += 5;
      turns.push(turn);
      return textResponse('read');
    };
    const { passed: allArrived, open } = gate();
    const clock = { ...systemClock, elapsed: () => nowMs };
    const listener = await start(context, {}, { 'POST /large': receive }, { clock });
    const watch = (): void => {
      turn += 1;
      if (turns.length < 5) setImmediate(watch);
    };
    setImmediate(watch);
    const body = 'x'.repeat(length);
    const send = (user: number): RawClient =>
      new RawClient(listener.port).send(`POST /large?${user} ${host}Content-Length: ${body.length}\r\n\r\n${body}`);
    const clients = [1, 1, 1, 1, 2].map(send);
    for (const client of clients) assert.equal((await client.reply()).body, 'read');
    for (const client of clients) client.socket.destroy();
    assert.equal(new Set(turns).size, 5, turns.join());
  });
}

test('slow bodies do not count as requests in flight, and share a bound in bytes', async (context) => {
  const limits = { requestsInFlightMax: 3, uncountedBodyBytesMax: 0 };
  const listener = await start(context, limits, {}, { memoryMax: 4 * 5700 });
  const begin = (bytes: number): RawClient =>
    new RawClient(listener.port).send(`POST /echo ${host}Content-Length: 90\r\n\r\n${'x'.repeat(bytes)}`);
  // In memory, a body is three times its bytes and what each chunk takes, 256 bytes.
  const slow = Array.from({ length: 5 }, () => begin(1));
  while (listener.server.unanswered < 5) await delay(2);
  await assertServes(listener);
  const large = begin(80);
  while (listener.server.unanswered < 6) await delay(2);
  const refused = await begin(89).reply();
  assert.deepEqual([refused.status, refused.fields.get('retry-after')], [503, '1']);
  assert.equal((await large.send('x'.repeat(10)).reply()).body.length, 90);
  for (const client of slow) assert.equal((await client.send('x'.repeat(89)).reply()).body.length, 90);
  for (const client of [...slow, large]) client.socket.destroy();
});

test('a slow body does not count as in flight even if the request waited before it', async (context) => {
  const { wait, open } = gatedHandler();
  const confirmed: Handle = async (request) => {
    await wait(request);
    return textResponse(String(await request.receiveBody(1000)));
  };
  const { server, port } = await start(context, {}, { 'POST /confirmed': confirmed });
  const { exchanges: inFlight } = server;
  const client = new RawClient(port).send(`POST /confirmed ${host}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n`);
  assert.equal((await client.reply()).status, 100);
  await waitUntil(() => inFlight.sum === 1, 'it waits for the gate');
  open();
  await waitUntil(() => inFlight.sum === 0, 'it still counts');
  assert.equal((await client.send('ab').reply()).body, 'ab');
  assert.equal(inFlight.sum, 0);
});

/** Takes large bodies; the user who sends one is named by the query. */
const upload: Handle = async (request) => {
  const [, user] = request.target.split('?');
  if (user !== undefined) request.authenticated(Number(user));
  return textResponse(String((await request.receiveBody(100_000)).length));
};

/** Begins bodies of 64 KiB, and leaves the last byte of each out. */
function beginUploads({ port }: Listener, count: number, target: string, fields = ''): RawClient[] {
  const head = `POST ${target} ${host}${fields}Content-Length: 65536\r\n\r\n`;
  return Array.from({ length: count }, () => new RawClient(port).send(head + 'x'.repeat(65_535)));
}

test('a caller has a share of the memory for bodies, and the one with the most makes room for others', async (t) => {
  const proxies = createProxies(['127.0.0.1']);
  // A body is there three times, and each of its chunks takes 256 bytes.
  const unit = 3 * (65_536 + 8 * 256);
  const listener = await start(t, {}, { 'POST /{name}': upload }, { proxies, memoryMax: 16 * unit });
  const from = (address: string): string => `X-Forwarded-For: ${address}\r\n`;
  const { server, server: { memory } } = listener;
  const held = [
    ...beginUploads(listener, 6, '/login', from('192.0.2.1')),
    ...beginUploads(listener, 6, '/login', from('192.0.2.2')),
    ...beginUploads(listener, 6, '/items?7'),
    ...beginUploads(listener, 3, '/items?8'),
  ];
  await waitUntil(() => server.unanswered === 15, 'six of the bodies are not refused');
  for (const caller of ['192.0.2.1', '192.0.2.2', 'user 7']) assert.ok(memory.heldBy(caller) <= 4 * unit, caller);

  const [refused] = beginUploads(listener, 1, '/login', from('192.0.2.2'));
  assert.deepEqual((await refused?.reply())?.status, 503);
  const served = [
    ...beginUploads(listener, 1, '/login', from('192.0.2.3')),
    ...beginUploads(listener, 1, '/items?9'),
  ];
  await waitUntil(() => server.unanswered === 16, 'nobody has made room');
  for (const client of served) assert.equal((await client.send('x').reply()).body, '65536');
  assert.equal(memory.refusals.brokenOff, 1);
  const small = `POST /login ${host}${from('192.0.2.1')}Content-Length: 4096\r\n\r\n${'x'.repeat(4096)}`;
  const signIn = new RawClient(listener.port).send(small);
  assert.equal((await signIn.reply()).body, '4096', 'a small body is always received');

  for (const client of [...held, refused, ...served, signIn]) client?.socket.destroy();
  const left = (): number => server.unanswered + memory.sum;
  await waitUntil(() => left() === 0, 'memory is not given back');
});

test('draining finishes all of 1,000 requests in flight', async (context) => {
  const waits = gate();
  const wait: Handle = async (request) => {
    await request.receiveBody(10);
    await waits.passed;
    return textResponse('waited');
  };
  const limits = { headersTimeoutMs: 60_000, requestsInFlightPerCallerMax: 2000 };
  const listener = await start(context, limits, { 'POST /wait': wait });
  const { server } = listener;
  const idle = [new RawClient(listener.port), new RawClient(listener.port).send(get)];
  assert.equal((await idle[1]?.reply())?.status, 200);
  const begun = new RawClient(listener.port).send(`POST /wait ${host}Content-Length: 3\r\n`);
  const clients = Array.from({ length: 1000 }, () =>
    new RawClient(listener.port).send(`POST /wait ${host}Content-Length: 3\r\n\r\nabc`),
  );
  while (server.unanswered < 1000) await delay(5);
  const drained = server.drain(20_000);
  assert.equal(await idle[0]?.rest(), '', 'it has sent nothing');
  const refused = new RawClient(listener.port);
  await refused.closed;
  begun.send('\r\nabc');
  waits.open();
  for (const client of [...clients, begun]) {
    const reply = await client.reply();
    assert.equal(reply.body, 'waited');
    assert.equal(reply.fields.get('connection'), 'close');
    assert.equal(await client.rest(), '');
  }
  assert.equal(await idle[1]?.rest(), '');
  assert.equal(await drained, 0);
});

test('draining lets a slow reader have the rest of its reply', async (context) => {
  const big = textResponse('y'.repeat(8 * 1024 * 1024));
  const listener = await start(context, {}, { 'GET /big': () => big });
  const client = new RawClient(listener.port);
  await once(client.socket, 'connect');
  client.socket.pause();
  client.send(`GET /big ${host}\r\n`);
  await waitUntil(() => listener.server.openExchanges === 1, 'the reply is not begun');
  const drained = listener.server.drain(20_000);
  await delay(50);
  client.socket.resume();
  // Read when it is all there: the client parses anew whenever something arrives.
  await withTimeout(client.closed, 'the connection does not end');
  await assertLast(client, { length: 8 * 1024 * 1024 });
  assert.equal(await drained, 0);
});

test('a closed port does not end the wait for a response on another', async (context) => {
  const big = textResponse('y'.repeat(8 * 1024 * 1024));
  const { server, port } = await start(context, {}, { 'GET /big': () => big });
  await server.listen({ port: 0, host: '127.0.0.1' });
  const client = new RawClient(port);
  await once(client.socket, 'connect');
  client.socket.pause();
  client.send(`GET /big ${host}\r\n`);
  await waitUntil(() => server.openExchanges === 1, 'the reply is not begun');
  const drained = server.drain(20_000);
  await delay(50);
  client.socket.resume();
  await withTimeout(client.closed, 'the connection does not end');
  await assertLast(client, { length: 8 * 1024 * 1024 });
  assert.equal(await drained, 0);
});

test('a port that is bound during a stop cuts nothing, and serves nobody', async (context) => {
  const { wait, open } = gatedHandler();
  const { server, port } = await start(context, {}, { 'GET /wait': wait });
  const client = new RawClient(port).send(`GET /wait ${host}\r\n`);
  await waitUntil(() => server.unanswered === 1, 'it does not arrive');
  const bound = server.listen({ port: 0, host: '127.0.0.1' });
  const drained = server.drain(20_000);
  const late = new RawClient(await bound);
  await late.closed;
  open();
  await assertLast(client, { body: 'waited', connection: 'close' });
  assert.equal(await drained, 0);
});

test('draining ends at its deadline and returns the number of connections that it cut off', async (context) => {
  const listener = await start(context, {}, { 'GET /wait': () => new Promise<Reply>(() => undefined) });
  const client = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  while (listener.server.unanswered < 1) await delay(2);
  assert.equal(await listener.server.drain(50), 1);
  await client.closed;
});

test('a trusted proxy names the caller, and HSTS is sent over TLS only', async (context) => {
  const show: Handle = (request) => textResponse(request.address);
  const trusted = { proxies: createProxies(['127.0.0.1']), hstsSeconds: 31_536_000 };
  const listener = await start(context, {}, { 'GET /who': show }, trusted);
  const client = new RawClient(listener.port);
  client.send(`GET /who ${host}X-Forwarded-For: 9.9.9.9, 198.51.100.7\r\nX-Forwarded-Proto: https\r\n\r\n`);
  const proxied = await client.reply();
  assert.equal(proxied.body, '198.51.100.7');
  assert.equal(proxied.fields.get('strict-transport-security'), 'max-age=31536000');
  client.send(`GET /who ${host}\r\n`);
  const direct = await client.reply();
  assert.equal(direct.body, '127.0.0.1');
  assert.equal(direct.fields.get('strict-transport-security'), undefined);
  client.socket.destroy();
});

test('an untrusted proxy is reported once, and is itself the caller', async (context) => {
  const reported: string[] = [];
  const show: Handle = (request) => textResponse(request.address);
  const onUntrustedProxy = (address: string): number => reported.push(address);
  const listener = await start(context, {}, { 'GET /who': show }, { onUntrustedProxy });
  for (let count = 0; count < 3; count += 1) {
    const client = new RawClient(listener.port).send(`GET /who ${host}X-Forwarded-For: 192.0.2.1\r\n\r\n`);
    assert.equal((await client.reply()).body, '127.0.0.1');
    client.socket.destroy();
  }
  assert.deepEqual(reported, ['127.0.0.1']);
});

test('every reply has a request id, and a valid one from a trusted proxy is used', async (context) => {
  const trusted = { proxies: createProxies(['127.0.0.1']) };
  const routes: Record<string, Handle> = {
    'GET /stream': () => ({ ...textResponse(''), body: chunks(2, 3) }),
    'GET /empty': () => ({ status: 204, fields: [], body: undefined }),
  };
  const listener = await start(context, {}, routes, trusted);
  const direct = await start(context, {}, routes);
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  const idOf = async ({ port }: Listener, path: string, sent?: string): Promise<string> => {
    const field = sent === undefined ? '' : `X-Request-Id: ${sent}\r\n`;
    const client = new RawClient(port).send(`GET ${path} ${host}${field}Connection: close\r\n\r\n`);
    const { fields } = await client.reply();
    await client.rest();
    return fields.get('x-request-id') ?? '';
  };
  for (const path of ['/items/1', '/stream', '/empty', '/nowhere', '/%zz']) {
    assert.match(await idOf(listener, path), uuid, path);
  }
  const sane = ['0123456789abcdef0123456789abcdef', 'Root=1-67891233-abcdef012345678912345678', 'a', 'x'.repeat(128)];
  for (const id of sane) {
    assert.equal(await idOf(listener, '/items/1', id), id);
    assert.equal(listener.answered.at(-1)?.id, id, 'the log has the same');
    assert.match(await idOf(direct, '/items/1', id), uuid, 'callers themselves choose none');
  }
  for (const id of ['', 'a b', '"a"', 'a\\', '<a>', 'ä', 'x'.repeat(129), 'a\r\nX-Request-Id: b']) {
    assert.match(await idOf(listener, '/items/1', id), uuid, id);
  }
});

test("an embedder's own server can hand its requests on, and inject needs no port", async (context) => {
  const nextId = (): string => 'id';
  const own = new HttpServer({ handle: createHandle(), problemReply, clock: systemClock, nextId });
  const server = createServer((incoming, outgoing) => own.receive(incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const client = new RawClient(address.port).send(`GET //x ${host}\r\n${last}`);
  assert.equal((await client.reply()).status, 404);
  assert.equal((await client.reply()).body, 'item /items/1');
  await client.rest();
  const ask = (target: string, more = {}): ReturnType<typeof inject> =>
    inject({ handle: createHandle(), problemReply, nextId }, { target, ...more });
  assert.equal((await ask('/items/1')).body, 'item /items/1');
  assert.equal((await ask('/items/1', { method: 'HEAD' })).body, '');
  assert.equal((await ask('/items/%zz')).status, 400);
  assert.equal((await ask('/echo', { method: 'POST', body: 'abc' })).body, 'abc');
  assert.equal((await ask('/echo', { method: 'POST', body: 'x'.repeat(1001) })).status, 413);
  assert.equal((await ask('/items/1', { headers: { Host: 'a/b' } })).status, 400);
  assert.equal((await ask('/items/1', { method: 'PUT' })).headers.get('allow'), 'GET, HEAD, OPTIONS');
});
