import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { greetedBy, makeCertificate } from './certificates.ts';
import { startListener } from './listener.ts';

function statusOf(port: number, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: '/items/1', agent }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    }).on('error', reject);
  });
}

test('TLS: a new certificate meets new connections, and open ones go on', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-tls-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [first, second] = ['first', 'second'].map((name) => makeCertificate(directory, name));
  if (first === undefined || second === undefined) return t.skip('there is no openssl here');
  const { server, port } = await startListener({ tls: first });
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const connections = new Set<TLSSocket>();
  agent.on('free', (socket: TLSSocket) => connections.add(socket));
  t.after(async () => {
    agent.destroy();
    await server.drain(0);
  });
  assert.equal(await greetedBy(port), 'first');
  assert.equal(await statusOf(port, agent), 200);
  assert.throws(() => server.renewTls({ cert: second.cert, key: first.key }));
  assert.equal(await greetedBy(port), 'first', 'a pair that does not fit changes nothing');
  server.renewTls(second);
  assert.equal(await greetedBy(port), 'second');
  assert.equal(await statusOf(port, agent), 200);
  assert.equal(connections.size, 1);
});

test('TLS: versions before 1.2 are refused (RFC 8996)', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-tls-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const tls = makeCertificate(directory, 'only');
  if (tls === undefined) return t.skip('there is no openssl here');
  const { server, port } = await startListener({ tls });
  t.after(() => server.drain(0));
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
