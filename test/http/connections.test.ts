import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { systemClock } from '../../src/base/system.ts';
import { parseTrustedProxies } from '../../src/base/network.ts';
import { Exchange } from '../../src/http/exchange.ts';
import { Exchanger, type ExchangerOptions } from '../../src/http/exchanger.ts';
import { inject } from '../../src/http/inject.ts';
import type { Handle, Reply } from '../../src/http/message.ts';
import { refusal as refuse } from '../../src/api/replies.ts';
import { createHandle, startListener, text, type Listener } from './listener.ts';
import { RawClient, within } from './raw.ts';

const host = 'HTTP/1.1\r\nHost: a\r\n';
const get = `GET /items/1 ${host}\r\n`;
const last = `GET /items/1 ${host}Connection: close\r\n\r\n`;

async function start(
  context: TestContext,
  limits: ExchangerOptions['limits'],
  routes: Readonly<Record<string, Handle>> = {},
  more: Partial<ExchangerOptions> = {},
): Promise<Listener> {
  const listener = await startListener({ limits, handle: createHandle(routes), ...more });
  context.after(() => listener.server.drain(0, 0));
  return listener;
}

async function assertServes({ port }: Listener): Promise<void> {
  const client = new RawClient(port).send(last);
  assert.equal((await client.reply()).status, 200);
  assert.equal(await client.rest(), '');
}

async function* chunks(count: number, size: number): AsyncGenerator<string> {
  for (let index = 0; index < count; index += 1) yield String(index % 10).repeat(size);
}

/** A promise that the test settles itself. */
function gate(): { readonly passed: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { passed, open };
}

/** Waits for something that happens in this process, however long a busy machine takes for it. */
async function until(holds: () => boolean, what: string): Promise<void> {
  for (const end = performance.now() + 20_000; !holds(); await delay(2)) assert.ok(performance.now() < end, what);
}

test('who sends nothing, fields too slowly, or content too slowly, gets 408 in time', async (context) => {
  const listener = await start(context, { headersTimeoutMs: 80, requestTimeoutMs: 160, lingerTimeoutMs: 50 });
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
      assert.equal(reply.fields.get('content-type'), 'application/problem+json');
      assert.equal(await client.rest(), '');
    }),
  );
  await assertServes(listener);
});

test('an idle connection is closed', async (context) => {
  const listener = await start(context, { keepAliveTimeoutMs: 50 });
  const client = new RawClient(listener.port).send(get);
  assert.equal((await client.reply()).status, 200);
  assert.equal(await client.rest(), '');
});

test('who leaves within content changes nothing, and who half-closes after it is answered', async (context) => {
  let stored = 0;
  const listener = await start(context, {}, {
    'POST /store': async (request) => {
      await request.receiveBody(10);
      stored += 1;
      await delay(20);
      return text('stored');
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

test('a reader that takes nothing is cut off, and one that goes on taking is not', async (context) => {
  let returned = 0;
  async function* endless(): AsyncGenerator<string> {
    try {
      for (;;) yield 'x'.repeat(64 * 1024);
    } finally {
      returned += 1;
    }
  }
  const listener = await start(context, { slowReaderTimeoutMs: 100 }, {
    'GET /endless': () => ({ ...text(''), body: endless() }),
    'GET /long': () => ({ ...text(''), body: chunks(100, 16 * 1024) }),
  });
  const lazy = new RawClient(listener.port).send(`GET /endless ${host}\r\n`);
  lazy.socket.pause();
  await within(5000, (async () => { while (returned === 0) await delay(10); })(), 'the stream was not ended');
  lazy.socket.destroy();
  const slow = new RawClient(listener.port).send(`GET /long ${host}\r\n`);
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

test('a reader that leaves a large reply lying is cut off, after a time that grows with its size', async (context) => {
  const big = text('y'.repeat(8 * 1024 * 1024));
  const listener = await start(context, { slowReaderTimeoutMs: 4 }, { 'GET /big': () => big });
  const lazy = new RawClient(listener.port).send(`GET /big ${host}\r\n`);
  lazy.socket.pause();
  while (listener.answered.length === 0) await delay(10);
  lazy.socket.resume();
  await lazy.closed;
  assert.ok(lazy.unread.length < 8 * 1024 * 1024, 'the connection was cut');
  assert.ok((listener.answered[0]?.durationMs ?? 0) > 128 * 4 - 5, 'each 64 KiB is given its time');
  await assertServes(listener);
});

test('a caller that leaves ends the stream it asked for', async (context) => {
  const ended = gate();
  const listener = await start(context, {}, {
    'GET /endless': () => ({
      ...text(''),
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
  await within(5000, ended.passed, 'the stream was not ended');
  await assertServes(listener);
});

test('a stream that fails half-way never looks whole, and no failure is shown to the caller', async (context) => {
  const failures: unknown[] = [];
  const onFailure = (error: unknown): number => failures.push(error);
  const broken: Handle = () => {
    throw new TypeError('a bug');
  };
  const routes: Record<string, Handle> = {
    'GET /bug': broken,
    'GET /broken': () => ({
      ...text(''),
      body: (async function* () {
        yield 'half';
        await delay(1);
        throw new Error('broken');
      })(),
    }),
  };
  const listener = await start(context, {}, routes, { onFailure });
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

test('1,000 pipelined requests are answered in order, one at a time', async (context) => {
  let running = 0;
  let together = 0;
  const slowly: Handle = async (request) => {
    running += 1;
    together = Math.max(together, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return text(request.target);
  };
  const routes = { 'GET /slow/{id}': slowly };
  const listeners = [await start(context, {}, routes), await start(context, { gatheringConnectionsMin: 0 }, routes)];
  for (const [path, listener] of ['slow', 'items'].flatMap((one) => listeners.map((two) => [one, two] as const))) {
    const client = new RawClient(listener.port);
    let bytes = '';
    for (let id = 0; id < 1000; id += 1) bytes += `GET /${path}/${id} ${host}\r\n`;
    client.send(bytes);
    for (let id = 0; id < 1000; id += 1) {
      const { body } = await client.reply();
      assert.ok(body.endsWith(`/${path}/${id}`), body);
    }
    client.socket.destroy();
    await assertServes(listener);
  }
  assert.equal(together, 1);
});

test('of what is pipelined without end, little is read', async (context) => {
  const waits = gate();
  let socket: Socket | undefined;
  const listener = await start(context, {}, {
    'GET /wait': async (request) => {
      assert.ok(request instanceof Exchange);
      ({ socket } = request.incoming);
      await waits.passed;
      return text('waited');
    },
  });
  const client = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  const megabyte = get.repeat(Math.ceil((1024 * 1024) / get.length));
  for (let count = 0; count < 12; count += 1) client.send(megabyte);
  await until(() => socket?.isPaused() === true, 'reading goes on');
  const bytesRead = socket?.bytesRead ?? Infinity;
  assert.ok(bytesRead < 1024 * 1024, `${bytesRead} bytes are read`);
  // The system has more of them by now.
  await delay(100);
  assert.equal(socket?.bytesRead, bytesRead);
  assert.ok(client.socket.writableLength > 4 * 1024 * 1024, 'the sender is held back');
  waits.open();
  assert.equal((await client.reply()).body, 'waited');
  assert.equal((await client.reply()).body, 'item /items/1');
  client.socket.destroy();
  await assertServes(listener);
});

test('what is pipelined on all connections together has a bound, and comes back within it', async (context) => {
  let waits = gate();
  const wait: Handle = async () => {
    await waits.passed;
    return text('waited');
  };
  const listener = await start(context, { waitingRequestsMax: 100 }, { 'GET /wait': wait });
  const pipeline = (count: number): RawClient =>
    new RawClient(listener.port).send(`GET /wait ${host}\r\n${get.repeat(count)}`);
  for (let round = 0; round < 3; round += 1) {
    const first = pipeline(60);
    await until(() => listener.exchanger.inFlight === 1, 'it does not arrive');
    const second = pipeline(70);
    assert.equal(await second.rest(), '');
    assert.equal(listener.exchanger.refused, round + 1);
    const modest = pipeline(2);
    await until(() => listener.exchanger.inFlight === 2, 'it does not arrive');
    waits.open();
    for (const body of ['waited', 'item /items/1', 'item /items/1']) assert.equal((await modest.reply()).body, body);
    modest.socket.destroy();
    assert.equal((await first.reply()).body, 'waited');
    for (let id = 0; id < 60; id += 1) assert.equal((await first.reply()).body, 'item /items/1');
    first.socket.destroy();
    await until(() => listener.exchanger.inFlight + listener.exchanger.connections === 0, 'they stay');
    waits = gate();
  }
});

test('of pipelined requests, the next one is looked at when the reply before it was taken', async (context) => {
  let handled = 0;
  const big: Handle = () => {
    handled += 1;
    return text(String(handled % 10).repeat(1024 * 1024));
  };
  for (const gatheringConnectionsMin of [0, 8]) {
    handled = 0;
    const listener = await start(context, { gatheringConnectionsMin }, { 'GET /big': big });
    const client = new RawClient(listener.port);
    client.socket.pause();
    client.send(`GET /big ${host}\r\n`.repeat(60));
    let [before, turns] = [0, 0];
    await until(() => {
      turns = handled === before ? turns + 1 : 0;
      before = handled;
      return handled > 0 && turns === 20;
    }, 'it never comes to rest');
    assert.ok(handled < 20, `${handled} replies wait in memory`);
    client.socket.resume();
    for (const first of ['1', '2', '3']) assert.equal((await client.reply()).body[0], first);
    client.socket.destroy();
    await assertServes(listener);
  }
});

test('a write is answered before the read behind it is looked at', async (context) => {
  let value = 'old';
  const listener = await start(context, {}, {
    'POST /value': async (request) => {
      const sent = (await request.receiveBody(100)).toString();
      await delay(5);
      value = sent;
      return text('written');
    },
    'GET /value': () => text(value),
  });
  const client = new RawClient(listener.port);
  const write = `POST /value ${host}Content-Length: 3\r\n\r\n`;
  const read = `GET /value ${host}\r\n`;
  client.send(`${read}${write}one${read}${write}two${read}FOO`);
  for (const expected of ['old', 'written', 'one', 'written', 'two']) {
    assert.equal((await client.reply()).body, expected);
  }
  assert.equal((await client.reply()).status, 400);
  await client.rest();
});

test('who asks for a tunnel and breaks the connection harms nobody', async (context) => {
  const listener = await start(context, { lingerTimeoutMs: 20 });
  for (let round = 0; round < 20; round += 1) {
    const client = new RawClient(listener.port).send('CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n');
    if (round % 2 === 0) assert.equal((await client.reply()).status, 405);
    client.send('x'.repeat(10_000)).socket.resetAndDestroy();
  }
  while (listener.exchanger.connections > 0) await delay(2);
  await assertServes(listener);
});

test('who asks for a tunnel behind a streamed reply gets all of the reply first', async (context) => {
  const listener = await start(context, {}, {
    'GET /long': () => ({ ...text(''), body: chunks(200, 64 * 1024) }),
  });
  const client = new RawClient(listener.port, 10_000);
  client.send(`GET /long ${host}\r\nCONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n`);
  assert.equal((await client.reply()).body.length, 200 * 64 * 1024);
  assert.equal((await client.reply()).status, 405);
  await client.rest();
});

test('who leaves while requests wait for their turn leaves nothing in flight', async (context) => {
  const waits = gate();
  const wait: Handle = async () => {
    await waits.passed;
    return text('waited');
  };
  const listener = await start(context, {}, { 'GET /wait': wait });
  const client = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  client.send(`POST /echo ${host}Content-Length: 3\r\n\r\nabc`.repeat(3));
  client.send(`POST /echo ${host}Content-Length: 3\r\n\r\na`);
  while (listener.exchanger.inFlight === 0) await delay(2);
  await delay(20);
  client.socket.resetAndDestroy();
  while (listener.exchanger.connections > 0) await delay(2);
  waits.open();
  await delay(20);
  assert.equal(listener.exchanger.inFlight, 0);
});

test('after "Connection: close" from either side nothing more is handled', async (context) => {
  for (const gatheringConnectionsMin of [0, 8]) {
    let handled = 0;
    const count: Handle = () => {
      handled += 1;
      return text('counted');
    };
    const routes: Record<string, Handle> = { 'GET /count': count, 'GET /later': async (request) => count(request) };
    const listener = await start(context, { requestsPerConnectionMax: 2, gatheringConnectionsMin }, routes);
    for (const path of ['count', 'later']) {
      handled = 0;
      const asked = new RawClient(listener.port);
      asked.send(`GET /${path} ${host}Connection: close\r\n\r\nGET /${path} ${host}\r\n`);
      assert.equal((await asked.reply()).fields.get('connection'), 'close');
      assert.equal(await asked.rest(), '');
      assert.equal(handled, 1);
      const told = new RawClient(listener.port).send(`GET /${path} ${host}\r\n`.repeat(5));
      assert.notEqual((await told.reply()).fields.get('connection'), 'close');
      assert.equal((await told.reply()).fields.get('connection'), 'close');
      assert.equal(await told.rest(), '');
      assert.equal(handled, 3);
    }
  }
});

test('nor behind a reply whose connection Node itself would end', async (context) => {
  let handled = 0;
  const count = (reply: () => Reply): Handle => () => {
    handled += 1;
    return reply();
  };
  const listener = await start(context, {}, {
    'GET /count': count(() => text('counted')),
    'GET /stream': count(() => ({ ...text(''), body: chunks(3, 10) })),
  });
  for (const head of [`GET /count ${host}Expect: 100-continue`, 'GET /stream HTTP/1.0\r\nConnection: keep-alive']) {
    handled = 0;
    const client = new RawClient(listener.port).send(`${head}\r\n\r\n`.repeat(3));
    await client.closed;
    assert.equal((await client.reply()).fields.get('connection'), 'close');
    assert.equal(await client.rest(), '');
    assert.equal(handled, 1, head);
  }
  await assertServes(listener);
});

test('a reply that cannot stand on the wire breaks its connection, and no other', async (context) => {
  const failures: unknown[] = [];
  const split: Handle = () => ({ ...text(''), fields: ['Location', '/a\r\nSet-Cookie: b'] });
  const onFailure = (error: unknown): number => failures.push(error);
  const listener = await start(context, {}, { 'GET /split': split }, { onFailure });
  const client = new RawClient(listener.port).send(`GET /split ${host}\r\n`);
  await client.closed;
  assert.equal(client.unread, '');
  assert.equal(failures.length, 1);
  await assertServes(listener);
});

test('content over the limit is refused unread, or as soon as it is too much', async (context) => {
  const listener = await start(context, { lingerTimeoutMs: 50 });
  const announced = new RawClient(listener.port).send(`POST /echo ${host}Content-Length: 100000\r\n\r\n`);
  assert.equal((await announced.reply()).status, 413);
  assert.equal(await announced.rest(), '');
  const expected = new RawClient(listener.port);
  expected.send(`POST /echo ${host}Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n`);
  assert.equal((await expected.reply()).status, 413, 'and no "100 Continue" before it');
  assert.equal(await expected.rest(), '');
  const chunk = `100\r\n${'x'.repeat(256)}\r\n`;
  const chunked = new RawClient(listener.port).send(`POST /echo ${host}Transfer-Encoding: chunked\r\n\r\n`);
  chunked.send(chunk.repeat(5));
  assert.equal((await chunked.reply()).status, 413);
  chunked.send(chunk);
  assert.equal(await chunked.rest(), '');
  const endless = new RawClient(listener.port).send(`POST /ignore ${host}Transfer-Encoding: chunked\r\n\r\n`);
  endless.send(chunk.repeat(1000));
  assert.equal((await endless.reply()).body, 'ignored');
  assert.equal(await endless.rest(), '');
  // A head that is refused may be followed by content too, and its sender gets to read why.
  const odd = new RawClient(listener.port).send(`POST /echo ${host}Expect: x\r\nContent-Length: 900000\r\n\r\n`);
  odd.send('x'.repeat(800_000));
  assert.equal((await odd.reply()).status, 417);
  assert.equal(await odd.rest(), '');
  const exact = new RawClient(listener.port).send(`POST /echo ${host}Content-Length: 1000\r\n\r\n${'z'.repeat(1000)}`);
  assert.equal((await exact.reply()).body.length, 1000);
  exact.socket.destroy();
  await assertServes(listener);
});

test('content in tiny chunks is put together, in memory of its own size', async (context) => {
  const big: Handle = async (request) => text((await request.receiveBody(1024 * 1024)).toString('latin1'));
  const listener = await start(context, {}, { 'POST /big': big });
  const content = Array.from({ length: 100_000 }, (_, index) => String(index % 10)).join('');
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const heapBytes = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const client = new RawClient(listener.port, 20_000).send(`POST /big ${host}Transfer-Encoding: chunked\r\n\r\n`);
  while (listener.exchanger.inFlight === 0) await delay(2);
  const before = heapBytes();
  client.send([...content].map((digit) => `1\r\n${digit}\r\n`).join(''));
  const { arriving } = listener.exchanger.context;
  await until(() => arriving.bytes === content.length, 'the chunks do not arrive');
  assert.ok(heapBytes() - before < 5 * 1024 * 1024, 'each chunk of one byte used to take 200');
  client.send('5\r\nabcde\r\n0\r\n\r\n');
  assert.equal((await client.reply()).body, `${content}abcde`);
  client.socket.destroy();
});

test('a flood is refused at the cap of its address, and at the cap of all', async (context) => {
  const perAddress = await start(context, { connectionsPerAddressMax: 5 });
  const inAll = await start(context, { connectionsMax: 5 });
  for (const listener of [perAddress, inAll]) {
    const clients = Array.from({ length: 5 }, () => new RawClient(listener.port).send(`POST /echo ${host}`));
    await delay(30);
    for (let flood = 0; flood < 15; flood += 1) clients.push(new RawClient(listener.port));
    for (const client of clients.slice(5)) await client.closed;
    assert.equal(listener.exchanger.connections, 5);
    assert.equal(listener.exchanger.refused, 15);
    for (const client of clients) client.socket.destroy();
    while (listener.exchanger.connections > 0) await delay(5);
    await assertServes(listener);
  }
  const trusted = { proxies: parseTrustedProxies(['127.0.0.1']) };
  const proxied = await start(context, { connectionsPerAddressMax: 5 }, {}, trusted);
  const clients = Array.from({ length: 20 }, () => new RawClient(proxied.port).send(get));
  for (const client of clients) assert.equal((await client.reply()).status, 200);
  for (const client of clients) client.socket.destroy();
});

test('RFC 4291 §2.5.4: the cap counts the /64 that one caller has of IPv6, and mapped IPv4 by address', async (t) => {
  const peerName: unknown = Reflect.get(Socket.prototype, '_getpeername');
  let prefix = '2001:db8::';
  let drawn = 0;
  // Where `remoteAddress` comes from: there is one address to connect from, and this has to look like many.
  Object.assign(Socket.prototype, { _getpeername: () => ({ address: `${prefix}${(drawn += 1)}`, port: 1 }) });
  t.after(() => Reflect.set(Socket.prototype, '_getpeername', peerName));
  const listener = await start(t, { connectionsPerAddressMax: 5 });
  const clients = Array.from({ length: 5 }, () => new RawClient(listener.port).send(get));
  for (const client of clients) assert.equal((await client.reply()).status, 200);
  await new RawClient(listener.port).rest();
  assert.equal(listener.exchanger.connections, 5);
  prefix = '::ffff:10.0.0.';
  for (let other = 0; other < 6; other += 1) clients.push(new RawClient(listener.port).send(get));
  for (const client of clients.slice(5)) assert.equal((await client.reply()).status, 200);
  for (const client of clients) client.socket.destroy();
});

test('at the cap of all, idle connections make room', async (context) => {
  const listener = await start(context, { connectionsMax: 5 });
  const idle = Array.from({ length: 5 }, () => new RawClient(listener.port).send(get));
  for (const client of idle) assert.equal((await client.reply()).status, 200);
  const refused = new RawClient(listener.port);
  await refused.rest();
  for (const client of idle) await client.rest();
  await assertServes(listener);
});

test('beyond the requests in flight callers are told to come back, but health is always answered', async (context) => {
  const waits = gate();
  const wait: Handle = async () => {
    await waits.passed;
    return text('waited');
  };
  const routes = { 'GET /wait': wait, 'GET /livez': () => text('alive') };
  const listener = await start(context, { requestsInFlightMax: 3 }, routes, { unshed: new Set(['/livez']) });
  const waiting = Array.from({ length: 3 }, () => new RawClient(listener.port).send(`GET /wait ${host}\r\n`));
  while (listener.exchanger.inFlight < 3) await delay(2);
  const shed = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  const reply = await shed.reply();
  assert.equal(reply.status, 503);
  assert.equal(reply.fields.get('retry-after'), '1');
  shed.send(`GET /livez ${host}\r\n`);
  assert.equal((await shed.reply()).body, 'alive');
  waits.open();
  for (const client of waiting) assert.equal((await client.reply()).body, 'waited');
  shed.send(`GET /wait ${host}\r\n`);
  assert.equal((await shed.reply()).body, 'waited');
  for (const client of [...waiting, shed]) client.socket.destroy();
});

test('slow bodies keep nobody out, and share a bound in bytes', async (context) => {
  const listener = await start(context, { requestsInFlightMax: 3, arrivingBytesMax: 100 });
  const begin = (bytes: number): RawClient =>
    new RawClient(listener.port).send(`POST /echo ${host}Content-Length: 90\r\n\r\n${'x'.repeat(bytes)}`);
  const slow = Array.from({ length: 5 }, () => begin(1));
  while (listener.exchanger.inFlight < 5) await delay(2);
  await assertServes(listener);
  const large = begin(80);
  while (listener.exchanger.inFlight < 6) await delay(2);
  const refused = await begin(89).reply();
  assert.deepEqual([refused.status, refused.fields.get('retry-after')], [503, '1']);
  assert.equal((await large.send('x'.repeat(10)).reply()).body.length, 90);
  for (const client of slow) assert.equal((await client.send('x'.repeat(89)).reply()).body.length, 90);
  for (const client of [...slow, large]) client.socket.destroy();
});

test('of 1,000 requests in flight, draining cuts none', async (context) => {
  const waits = gate();
  const wait: Handle = async (request) => {
    await request.receiveBody(10);
    await waits.passed;
    return text('waited');
  };
  const listener = await start(context, {}, { 'POST /wait': wait });
  const { server, exchanger } = listener;
  const idle = [new RawClient(listener.port), new RawClient(listener.port).send(get)];
  assert.equal((await idle[1]?.reply())?.status, 200);
  const begun = new RawClient(listener.port).send(`POST /wait ${host}Content-Length: 3\r\n`);
  const clients = Array.from({ length: 1000 }, () =>
    new RawClient(listener.port, 20_000).send(`POST /wait ${host}Content-Length: 3\r\n\r\nabc`),
  );
  while (exchanger.inFlight < 1000) await delay(5);
  const drained = server.drain(1000, 20_000);
  // During the grace new connections are still served, and told to go.
  const late = new RawClient(listener.port).send(get);
  assert.equal((await late.reply()).fields.get('connection'), 'close');
  for (const client of idle) assert.equal(await client.rest(), '');
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
  assert.equal(await drained, 0);
});

test('draining ends at its deadline, and tells how many were cut off', async (context) => {
  const listener = await start(context, {}, { 'GET /wait': () => new Promise<Reply>(() => undefined) });
  const client = new RawClient(listener.port).send(`GET /wait ${host}\r\n`);
  while (listener.exchanger.inFlight < 1) await delay(2);
  assert.equal(await listener.server.drain(0, 50), 1);
  await client.closed;
});

test('the caller is whom a trusted proxy names, and HSTS is sent to those on TLS only', async (context) => {
  const show: Handle = (request) => text(request.address);
  const trusted = { proxies: parseTrustedProxies(['127.0.0.1']) };
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

test("an embedder's own server hands requests over, and a test needs no port", async (context) => {
  const nextId = (): string => 'id';
  const exchanger = new Exchanger({ handle: createHandle(), refuse, proxies: () => false, clock: systemClock, nextId });
  const server = createServer((incoming, outgoing) => exchanger.receive(incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const client = new RawClient(address.port).send(`GET //x ${host}\r\n${last}`);
  assert.equal((await client.reply()).status, 404);
  assert.equal((await client.reply()).body, 'item /items/1');
  await client.rest();
  const ask = (target: string, more = {}): ReturnType<typeof inject> =>
    inject(createHandle(), refuse, nextId, { target, ...more });
  assert.equal((await ask('/items/1')).body, 'item /items/1');
  assert.equal((await ask('/items/1', { method: 'HEAD' })).body, '');
  assert.equal((await ask('/items/%zz')).status, 400);
  assert.equal((await ask('/echo', { method: 'POST', body: 'abc' })).body, 'abc');
  assert.equal((await ask('/echo', { method: 'POST', body: 'x'.repeat(1001) })).status, 413);
  assert.equal((await ask('/items/1', { fields: { Host: 'a/b' } })).status, 400);
  assert.equal((await ask('/items/1', { method: 'PUT' })).fields.get('allow'), 'GET, HEAD, OPTIONS');
});
