/**
 * Far more callers than the server can carry, each sending its next request after any response: the server still
 * answers health checks, does nearly as much useful work as at its best, and its memory stays bounded.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { RawClient } from '../../test/support/http/raw.ts';
import type { CallersOrder, Counts } from './callers.ts';
import { formatRequest, startServer, typescript } from './served.ts';

const callersBy = [64, 256, 1024, 4096];
const connectMs = 2000;
const stepMs = 4000;
/** Sequential health checks meanwhile; dozens if the machine does nothing else. */
const checksMin = 4;

/** The memory that the server may take, apart from the records created meanwhile. */
const memoryMiBMax = 320;
const bytesPerRecord = 512;

/** Sends a liveness check; returns its duration in milliseconds. */
async function isAlive(client: RawClient): Promise<number> {
  const askedMs = performance.now();
  assert.equal((await client.send(formatRequest('GET /livez', '')).reply()).status, 200);
  return performance.now() - askedMs;
}

test('under overload, health checks and requests are served in bounded memory', async (context) => {
  const server = await startServer(context);
  const { port } = server;
  // One user has a share of the requests in flight, so the crowd has eight users, like its addresses.
  const requests: string[] = [];
  for (let member = 0; member < 8; member += 1) {
    const token = await server.signUp(`member${member}`);
    requests.push(formatRequest('POST /items', token, { name: 'thing', price: 12.5 }));
  }

  const done: number[] = [];
  console.log('# callers  done/s  shed/s  other  broken  checks  slowest probe ms  held connection ms  memory MiB');
  for (const callers of callersBy) {
    const crowd = spawn(process.execPath, [...typescript, join(import.meta.dirname, 'callers.ts')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const order: CallersOrder = { port, callers, requests, connectMs, durationMs: stepMs };
    crowd.stdin.end(JSON.stringify(order));
    const report = text(crowd.stdout);
    const held = new RawClient(port);
    const slowestMs = { probe: 0, held: 0 };
    let checks = 0;
    while (crowd.exitCode === null) {
      // Each probe uses a new connection.
      const probe = new RawClient(port);
      slowestMs.probe = Math.max(slowestMs.probe, await isAlive(probe));
      probe.socket.destroy();
      slowestMs.held = Math.max(slowestMs.held, await isAlive(held));
      checks += 1;
      await delay(50);
    }
    held.socket.destroy();
    const counts: Counts = JSON.parse(await report);
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    const memoryMiB = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    const perSecond = (count: number): string => ((count * 1000) / stepMs).toFixed(0);
    const cells = [callers, perSecond(counts.done), perSecond(counts.shed), counts.other, counts.broken, checks];
    const tails = [slowestMs.probe, slowestMs.held, memoryMiB].map((value) => value.toFixed(0));
    console.log(`# ${[...cells, ...tails].join('  ')}`);
    assert.equal(counts.other, 0);
    assert.ok(checks >= checksMin, `${checks} health checks were answered`);
    done.push(counts.done);
    const recordsMiB = (done.reduce((sum, count) => sum + count, 0) * bytesPerRecord) / 2 ** 20;
    assert.ok(memoryMiB - recordsMiB < memoryMiBMax, `${memoryMiB} MiB, of which ${recordsMiB} are for records`);
    await delay(500);
  }
  const best = Math.max(...done);
  assert.ok(done.every((count) => count > best / 10), `work goes on under load: ${done.join(', ')}`);
});
