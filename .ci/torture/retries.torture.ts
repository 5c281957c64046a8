/** Callers that retry with an idempotency key, and a server that is killed all the time: each request is done once. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { startProcess, temporaryDirectory, type Running } from '../../test/support/cli/spawn.ts';
import { createGenerator } from '../../test/support/basics.ts';
import { projectDirectory } from '../../test/support/source.ts';

const kills = Number(process.env['CAIRN_RETRY_KILLS'] ?? 60);
const callers = 8;

interface Sent {
  readonly key: string;
  /** One record or several, each with a unique name. */
  readonly names: readonly string[];
  readonly isArray: boolean;
}

test(`${callers} callers that retry run each request exactly once despite ${kills} times kill -9`, async (t) => {
  const random = createGenerator('retries');
  const data = join(temporaryDirectory(t), 'data');
  const server = await start();
  /** The ids of the records in each response. */
  const answered = new Map<string, readonly number[]>();
  const seen = { requests: 0, attempts: 0, replays: 0 };
  let isOver = false;

  async function start(): Promise<{ running: Running; origin: string }> {
    const words = ['serve', '--data', data, '--port', '0', '--auth', 'none', '--log', 'json'];
    const running = startProcess(t, [join(projectDirectory, 'dist', 'main.js'), ...words]);
    const [, origin = ''] = await running.find(/ serves (http:\/\/127\.0\.0\.1:\d+)/);
    return { running, origin };
  }

  /** Repeats a request until there is a response, as a client does after losing one. */
  async function send({ key, names, isArray }: Sent): Promise<void> {
    const records = names.map((name) => ({ name, price: 1 }));
    const body = JSON.stringify(isArray ? records : records[0]);
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    for (;;) {
      seen.attempts += 1;
      try {
        const signal = AbortSignal.timeout(20_000);
        const url = `${server.origin}${isArray ? '/items/batch' : '/items'}`;
        const response = await fetch(url, { method: 'POST', headers, body, signal });
        const text = await response.text();
        assert.ok([201, 503].includes(response.status), `${response.status}: ${text}`);
        if (response.status !== 201) continue;
        const found: { id: number; name: string }[] = [JSON.parse(text)].flat();
        const ids = found.map(({ id }) => id);
        assert.deepEqual(found.map(({ name }) => name), names);
        assert.deepEqual(ids, answered.get(key) ?? ids, 'the same request got other records');
        answered.set(key, ids);
        if (response.headers.get('idempotency-replayed') === 'true') seen.replays += 1;
        return;
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        await delay(20);
      }
    }
  }

  async function call(caller: number): Promise<void> {
    for (let count = 0; !isOver; count += 1) {
      const isArray = random.below(4) === 0;
      const names = Array.from({ length: isArray ? 1 + random.below(20) : 1 }, (_, n) => `${caller}.${count}.${n}`);
      const sent = { key: randomUUID(), names, isArray };
      seen.requests += 1;
      await send(sent);
      // Sometimes a caller loses a response that had come.
      if (random.below(10) === 0) await send(sent);
    }
  }

  const all = Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  all.catch(() => (isOver = true));
  for (let kill = 0; kill < kills && !isOver; kill += 1) {
    await delay(random.below(60));
    const before = answered.size;
    server.running.child.kill('SIGKILL');
    await server.running.ended;
    Object.assign(server, await start());
    for (let waited = 0; answered.size === before && waited < 5000; waited += 5) await delay(5);
  }
  isOver = true;
  await all;
  const response = await fetch(`${server.origin}/items`);
  const items: { id: number; name: string }[] = JSON.parse(await response.text());
  const expected = [...answered.values()].flat().sort((a, b) => a - b);
  assert.equal(new Set(items.map(({ name }) => name)).size, items.length, 'a request was done twice');
  assert.deepEqual(items.map(({ id }) => id), expected, 'a request was not done, or done and not answered');
  server.running.child.kill('SIGKILL');
  await server.running.ended;
  t.diagnostic(JSON.stringify({ kills, items: items.length, ...seen }));
});
