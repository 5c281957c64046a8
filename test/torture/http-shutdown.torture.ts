/**
 * SIGTERM under load: with a grace, every request that was ever sent is answered, each caller is told to go before its
 * connection ends, and the process exits with 0.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { RawClient } from '../http/raw.ts';

const host = 'HTTP/1.1\r\nHost: a\r\n';
const credentials = { email: 'admin@example.org', password: 'administrator of the tests' };
const callersCount = 1000;

test('of 1,000 callers that write without a pause, a stop cuts none off', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-shutdown-'));
  context.after(() => rmSync(directory, { recursive: true }));
  const main = join(import.meta.dirname, '../../src/main.ts');
  const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];
  const options = ['--port', '0', '--data', directory, '--log', 'none', '--shutdown-grace', '5s'];
  const server = spawn(
    process.execPath,
    [...typescript, main, 'serve', ...options, '--admin-email', credentials.email],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, CAIRN_ADMIN_PASSWORD: credentials.password } },
  );
  const exited = once(server, 'exit');
  const [line] = await once(server.stdout, 'data');
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(String(line))?.[1]);
  const json = 'Content-Type: application/json\r\n';
  const signIn = JSON.stringify(credentials);
  const client = new RawClient(port);
  client.send(`POST /tokens ${host}${json}Content-Length: ${signIn.length}\r\n\r\n${signIn}`);
  const token = /"access_token":"([^"]+)/.exec((await client.reply()).body)?.[1] ?? '';
  client.socket.destroy();
  const item = '{"name":"thing","price":12.5}';
  const request =
    `POST /items ${host}Authorization: Bearer ${token}\r\n${json}Content-Length: ${item.length}\r\n\r\n${item}`;

  let created = 0;
  const callers = Array.from({ length: callersCount }, () => new RawClient(port, 30_000));
  await delay(2000);
  const done = callers.map(async (caller) => {
    for (;;) {
      const reply = await caller.send(request).reply();
      assert.equal(reply.status, 201, reply.body);
      created += 1;
      if (reply.fields.get('connection') === 'close') break;
    }
    assert.equal(await caller.rest(), '');
  });
  while (created < 2 * callersCount) await delay(20);
  server.kill('SIGTERM');
  await Promise.all(done);
  assert.deepEqual(await exited, [0, null]);
  console.log(`# ${created} records created, none of them unanswered`);
});
