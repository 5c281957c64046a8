/**
 * SIGTERM under load: every write that was done is acknowledged, every acknowledged one is kept, each response is
 * complete, the last one announces the end of the connection, and the process exits with 0.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { startCairn, temporaryDirectory, type Running } from '../../test/support/cli/spawn.ts';
import { RawClient } from '../../test/support/http/raw.ts';

/** Fewer than one user may have in flight. */
const callersCount = 500;
const json = { 'content-type': 'application/json' };
const credentials = JSON.stringify({ email: 'admin@localhost.localdomain', password: 'correct horse battery' });

interface Server {
  readonly running: Running;
  readonly port: number;
  readonly authorization: string;
}

async function serve(t: TestContext, data: string): Promise<Server> {
  const words = ['serve', '--port', '0', '--data', data, '--log', 'none'];
  const running = startCairn(t, words);
  const [, port = ''] = await running.find(/ serves http:\/\/127\.0\.0\.1:(\d+)/);
  const reply = await fetch(`http://localhost:${port}/tokens`, { method: 'POST', headers: json, body: credentials });
  const { access_token: token }: { access_token: string } = JSON.parse(await reply.text());
  return { running, port: Number(port), authorization: `Bearer ${token}` };
}

test(`a stop loses no write of ${callersCount} callers that write without a pause`, async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  const first = await serve(t, data);
  const head =
    `POST /items HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${first.authorization}\r\n` +
    'Content-Type: application/json\r\n';
  const answered: string[] = [];
  const unanswered: string[] = [];
  let isStopping = false;
  let told = 0;

  async function call(client: RawClient, caller: number): Promise<void> {
    for (let count = 0; ; count += 1) {
      const name = `${caller}.${count}`;
      const body = JSON.stringify({ name, price: 12.5 });
      client.send(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
      const reply = await client.reply().catch(() => undefined);
      if (reply === undefined) {
        assert.ok(isStopping, 'a connection ended before the stop');
        unanswered.push(name);
        break;
      }
      assert.equal(reply.status, 201, reply.body);
      answered.push(name);
      if (reply.fields.get('connection') !== 'close') continue;
      told += 1;
      break;
    }
    assert.equal(await client.rest(), '', 'nothing comes after the last reply, not even a piece of one');
  }

  const clients = Array.from({ length: callersCount }, () => new RawClient(first.port));
  await delay(2000);
  const done = Promise.all(clients.map(call));
  while (answered.length < 2 * callersCount) await Promise.race([delay(20), done]);
  isStopping = true;
  const stoppedAt = performance.now();
  first.running.child.kill('SIGTERM');
  await done;
  assert.equal(await first.running.ended, 0);
  const stopMs = Math.round(performance.now() - stoppedAt);

  const second = await serve(t, data);
  const headers = { authorization: second.authorization };
  const items: { name: string }[] = JSON.parse(
    await (await fetch(`http://localhost:${second.port}/items`, { headers })).text(),
  );
  const stored = new Set(items.map(({ name }) => name));
  const lost = answered.filter((name) => !stored.has(name)).length;
  const doneUnanswered = unanswered.filter((name) => stored.has(name)).length;
  const counts = { answered: answered.length, told, unanswered: unanswered.length, lost, doneUnanswered, stopMs };
  t.diagnostic(JSON.stringify(counts));
  assert.deepEqual([lost, doneUnanswered, stored.size], [0, 0, answered.length]);
  assert.ok(told > 0, 'some callers were answered while the server stopped');
});
