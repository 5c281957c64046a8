import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import {
  RawClient,
  createHandle,
  readGreeting,
  makeCertificate,
  startServer,
  textResponse,
} from '../support/http/raw.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import type { Handle } from '../../src/http/message.ts';
import { createApp } from '../support/inside.ts';
import { waitUntil } from '../support/basics.ts';

function statusOf(port: number, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: '/items/1', agent }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    }).on('error', reject);
  });
}

test('TLS: a new certificate is used for new connections, and open ones continue', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-tls-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [first, second] = ['first', 'second'].map((name) => makeCertificate(directory, name));
  if (first === undefined || second === undefined) return t.skip('there is no openssl here');
  const { server, port } = await startServer({}, first);
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const connections = new Set<TLSSocket>();
  agent.on('free', (socket: TLSSocket) => connections.add(socket));
  t.after(async () => {
    agent.destroy();
    await server.drain();
  });
  assert.equal(await readGreeting(port), 'first');
  assert.equal(await statusOf(port, agent), 200);
  assert.throws(() => server.renewTls({ cert: second.cert, key: first.key }));
  assert.equal(await readGreeting(port), 'first', 'a pair that does not fit changes nothing');
  server.renewTls(second);
  assert.equal(await readGreeting(port), 'second');
  assert.equal(await statusOf(port, agent), 200);
  assert.equal(connections.size, 1);
});

test('TLS: versions before 1.2 are refused (RFC 8996)', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-tls-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const tls = makeCertificate(directory, 'only');
  if (tls === undefined) return t.skip('there is no openssl here');
  const { server, port } = await startServer({}, tls);
  t.after(() => server.drain());
  const handshake = async (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<string> => {
    const ciphers = 'DEFAULT@SECLEVEL=0';
    const socket = connect({
      port, host: '127.0.0.1', rejectUnauthorized: false, minVersion: version, maxVersion: version, ciphers,
    });
    return new Promise((resolve) => {
      socket.once('secureConnect', () => resolve(socket.getProtocol() ?? '')).once('error', () => resolve('refused'));
    }).then((outcome) => {
      socket.destroy();
      return String(outcome);
    });
  };
  assert.deepEqual(
    await Promise.all([handshake('TLSv1.1'), handshake('TLSv1.2'), handshake('TLSv1.3')]),
    ['refused', 'TLSv1.2', 'TLSv1.3'],
  );
});

test('TLS: draining answers what is in flight, and sends HSTS', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-tls-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const tls = makeCertificate(directory, 'only');
  if (tls === undefined) return t.skip('there is no openssl here');
  let answer = (): void => undefined;
  const waits = new Promise<void>((resolve) => (answer = resolve));
  const wait: Handle = async () => {
    await waits;
    return textResponse('waited');
  };
  const { server, port } = await startServer({ handle: createHandle({ 'GET /wait': wait }), hstsSeconds: 60 }, tls);
  const broken = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  broken.write('FOO\r\n\r\n');
  assert.match(await readAll(broken), /^HTTP\/1\.1 400 /);
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.write('GET /wait HTTP/1.1\r\nHost: a\r\n\r\n');
  while (server.unanswered === 0) await delay(2);
  const drained = server.drain(60_000);
  await delay(30);
  answer();
  const reply = await readAll(socket);
  assert.match(reply, /^HTTP\/1\.1 200 /);
  assert.match(reply, /\r\nStrict-Transport-Security: max-age=60\r\n/);
  assert.match(reply, /\r\n\r\nwaited$/);
  assert.equal(await drained, 0);
});

test('TLS: Strict-Transport-Security is not sent for names of this machine, nor if it is switched off', async (t) => {
  const directory = temporaryDirectory(t);
  const tls = makeCertificate(directory, 'only');
  if (tls === undefined) return t.skip('there is no openssl here');
  const replies = async (hstsSeconds: number | undefined): Promise<[host: string, isSent: boolean][]> => {
    const { server, port } = await startServer({ hstsSeconds }, tls);
    t.after(() => server.drain());
    const found: [string, boolean][] = [];
    for (const host of ['app.example', 'localhost', 'LOCALHOST:8443', 'app.localhost', '127.0.0.1', '[::1]:1']) {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      if (/\r\nStrict-Transport-Security: /.test(await readAll(socket))) found.push([host, true]);
    }
    return found;
  };
  assert.deepEqual(await replies(60), [['app.example', true]]);
  for (const off of [0, undefined]) assert.deepEqual(await replies(off), []);
});

test('TLS: a caller that speaks plain HTTP or nonsense is cut off, and others are served', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-tls-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const tls = makeCertificate(directory, 'only');
  if (tls === undefined) return t.skip('there is no openssl here');
  const { server, port, answered } = await startServer({ limits: { lingerTimeoutMs: 20 } }, tls);
  t.after(() => server.drain());
  for (const bytes of ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', '\x16\x03\x01\x00\x05hello', '\0'.repeat(1000)]) {
    const client = new RawClient(port).send(bytes);
    assert.doesNotMatch(await client.rest(), /HTTP/);
  }
  assert.deepEqual(answered, []);
  const agent = new Agent({ rejectUnauthorized: false });
  assert.equal(await statusOf(port, agent), 200);
  agent.destroy();
});

test('TLS: an app renews the certificate of all its TLS listeners', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-tls-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [first, second] = ['first', 'second'].map((name) => makeCertificate(directory, name));
  if (first === undefined || second === undefined) return t.skip('there is no openssl here');
  const app = await createApp();
  t.after(() => app.close());
  const host = '127.0.0.1';
  const plain = await app.listen({ port: 0, host });
  const secure = await app.listen({ port: 0, host, tls: first });
  await app.listen({ port: 0, host });
  await assert.rejects(app.listen({ port: plain, host, tls: first }), { code: 'EADDRINUSE' });
  app.renewTls(second);
  assert.equal(await readGreeting(secure), 'second');
});

function connectFrom(localAddress: string, port: number): TLSSocket {
  return connect({ socket: connectTcp({ port, host: '127.0.0.1', localAddress }), rejectUnauthorized: false });
}

test('TLS: handshakes of one network wait for each other, and those of others do not', async (t) => {
  const tls = makeCertificate(temporaryDirectory(t), 'only');
  if (tls === undefined) return t.skip('there is no openssl here');
  const limits = { handshakesMax: 4, handshakesPerNetworkMax: 2 };
  const { server, port } = await startServer({ limits }, tls);
  t.after(() => server.drain(0));
  const silent = Array.from({ length: 4 }, () => new RawClient(port));
  await waitUntil(() => server.connections === 4, 'they do not connect');
  const greet = (localAddress: string) => connectFrom(localAddress, port);
  const waiting = greet('127.0.0.1');
  let isGreeted = false;
  waiting.once('secureConnect', () => (isGreeted = true));
  const other = greet('127.0.0.2');
  await once(other, 'secureConnect');
  assert.equal(isGreeted, false);
  for (const client of silent) client.socket.destroy();
  await waitUntil(() => isGreeted, 'it waits for ever');
  waiting.write('GET /items/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  assert.match(await readAll(waiting), /^HTTP\/1\.1 200 /);
  other.destroy();
});

test('TLS: if too many handshakes are open, the network with the most loses its oldest', async (t) => {
  const tls = makeCertificate(temporaryDirectory(t), 'only');
  if (tls === undefined) return t.skip('there is no openssl here');
  const { server, port } = await startServer({ limits: { handshakesMax: 2, handshakesPerNetworkMax: 2 } }, tls);
  t.after(() => server.drain(0));
  const silent = Array.from({ length: 2 }, () => new RawClient(port));
  await waitUntil(() => server.connections === 2, 'they do not connect');
  const other = connectFrom('127.0.0.2', port);
  await once(other, 'secureConnect');
  await waitUntil(() => server.connections === 2, 'nobody has lost its place');
  for (const client of silent) client.socket.destroy();
  other.destroy();
});

for (const [what, start] of [
  ['a head', 'GET /items/1 HTTP/1.1\r\nHost: a\r\nX: '],
  ['content that nobody reads', 'POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n'],
] as const) {
  test(`TLS: ${what} in thousands of records of one byte lets others go first, and ends its connection`, async (t) => {
    const tls = makeCertificate(temporaryDirectory(t), 'only');
    if (tls === undefined) return t.skip('there is no openssl here');
    const { server, port } = await startServer({}, tls);
    t.after(() => server.drain(0));
    const pauses = t.mock.method(server.reading, 'pauseNetwork');
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => undefined);
    await once(socket, 'secureConnect');
    socket.resume().write(start);
    let sent = 0;
    // One write is one record.
    for (; sent < 10_000 && !socket.destroyed; sent += 1)
      await new Promise((resolve) => socket.write(sent % 2 === 0 ? 'x' : 'y', resolve));
    assert.ok(sent < 10_000, 'it is not ended');
    assert.ok(pauses.mock.callCount() > 10);
    await waitUntil(() => server.connections === 0, 'it stays open');
  });
}
