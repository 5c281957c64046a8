/**
 * One caller sends searches of 1,000,000 items on 600 connections at once, and leaves, over and over: those beyond its
 * share of the requests in flight are refused, the rest wait for each other, other callers are served meanwhile,
 * nothing is left behind, and the process stops in time during such searches.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { fillItems } from '../bench/fill.ts';
import { RawClient, type RawReply } from '../../test/support/http/raw.ts';

const host = 'HTTP/1.1\r\nHost: a\r\n';
const credentials = { email: 'admin@localhost.localdomain', password: 'administrator of the tests' };
const itemsCount = Number(process.env['ITEMS'] ?? 1_000_000);
const connectionsCount = 600;
const wavesCount = 5;
const waveMs = 3000;
/** A stop waits 30 s for requests. */
const stopMsMax = 60_000;

async function ask(port: number, head: string, body = ''): Promise<RawReply> {
  const client = new RawClient(port);
  const length = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const reply = await client.send(`${head.replace('\r\n', ` ${host}${length}`)}\r\n${body}`).reply();
  client.socket.destroy();
  return reply;
}

const tokenIn = ({ body }: RawReply): string => /"access_token":"([^"]+)/.exec(body)?.[1] ?? '';

test('600 connections that search a million items keep nobody out', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-many-lists-'));
  context.after(() => rmSync(directory, { recursive: true }));
  await fillItems(directory, itemsCount);
  const main = join(import.meta.dirname, '../../src/main.ts');
  const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];
  const options = ['--port', '0', '--data', directory, '--log', 'none'];
  const server = spawn(process.execPath, [...typescript, main, 'serve', ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, CAIRN_ADMIN_PASSWORD: credentials.password },
  });
  context.after(() => server.kill('SIGKILL'));
  const exited = once(server, 'exit');
  const [line] = await once(server.stdout, 'data');
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(String(line))?.[1]);
  const authorize = (token: string): string => `Authorization: Bearer ${token}\r\n`;
  const admin = authorize(tokenIn(await ask(port, 'POST /tokens\r\n', JSON.stringify(credentials))));
  const member = { name: 'Mallory', email: 'mallory@example.org', password: 'a password of the tests' };
  assert.equal((await ask(port, `POST /users\r\n${admin}`, JSON.stringify(member))).status, 201);
  const { email, password } = member;
  const attacker = authorize(tokenIn(await ask(port, 'POST /tokens\r\n', JSON.stringify({ email, password }))));
  const search = 'GET /items?name:contains=zzz&limit=1';

  const crowd = (): RawClient[] =>
    Array.from({ length: connectionsCount }, () => {
      const client = new RawClient(port);
      return client.send(`${search} ${host}${attacker}\r\n`);
    });
  const counts = { others: 0, refused: 0, slowestMs: 0, shed: 0 };
  for (let wave = 0; wave < wavesCount; wave += 1) {
    const clients = crowd();
    const endsAt = performance.now() + waveMs;
    while (performance.now() < endsAt) {
      const startedAt = performance.now();
      const { status } = await ask(port, `GET /items/77\r\n${admin}`);
      counts.others += 1;
      counts.refused += Number(status !== 200);
      counts.slowestMs = Math.max(counts.slowestMs, Math.round(performance.now() - startedAt));
    }
    counts.shed += clients.filter(({ unread }) => unread.startsWith('HTTP/1.1 503')).length;
    assert.ok(clients.every(({ unread }) => !unread.startsWith('HTTP/1.1 503') || /Retry-After: 1\r/.test(unread)));
    for (const { socket } of clients) socket.resetAndDestroy();
  }
  const startedAt = performance.now();
  const { status } = await ask(port, `${search}\r\n${admin}`);
  const searchMs = Math.round(performance.now() - startedAt);
  console.log(`# ${counts.others} requests of others, ${counts.refused} refused, the slowest ${counts.slowestMs} ms`);
  console.log(`# ${counts.shed} searches of the crowd refused; one of another caller right afterwards: ${searchMs} ms`);
  assert.deepEqual([counts.refused, status], [0, 200]);
  assert.ok(counts.others > 50 && counts.shed > wavesCount);

  crowd();
  await delay(500);
  const stoppedAt = performance.now();
  server.kill('SIGTERM');
  assert.deepEqual(await exited, [0, null]);
  const stopMs = Math.round(performance.now() - stoppedAt);
  console.log(`# stopped after ${stopMs} ms`);
  assert.ok(stopMs < stopMsMax);
});
