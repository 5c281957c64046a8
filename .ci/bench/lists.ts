/**
 * Measures lists of many items, and their effect on another caller.
 *
 *   npx tsx .ci/bench/lists.ts [items]
 *
 * The server is a process of its own. One connection asks for an item over and over; the table shows its slowest
 * response while another connection read each list.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { fillItems } from './fill.ts';
import { createApp } from '../../test/support/inside.ts';

const lists: readonly [what: string, target: string][] = [
  ['nothing', ''],
  ['a page by id', '/items?limit=20'],
  ['a page by price', '/items?limit=20&sort=price'],
  ['a page of 1,000 by name', '/items?limit=1000&sort=name'],
  ['a page of 1,000 by what grows with the id', '/items?limit=1000&sort=-price'],
  ['a page by price of items that are few', '/items?limit=20&sort=price&name:contains=99999'],
  ['a page of items that are few', '/items?limit=20&price:lt=0.01'],
  ['all items', '/items'],
  ['all items by price', '/items?sort=price'],
  ['all items by name', '/items?sort=name'],
  ['all items by price that are few', '/items?sort=price&name:contains=99999'],
];

async function serve(directory: string): Promise<void> {
  const app = await createApp({ directory, auth: 'none', page: false });
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  process.on('disconnect', () => process.exit());
  process.send?.(port);
}

/** Reads a target to its end, and resolves with the duration and the size. */
async function read(port: number, agent: Agent, path: string): Promise<{ ms: number; bytes: number }> {
  const started = performance.now();
  const asked = get({ port, host: '127.0.0.1', path, agent });
  const [answer] = await once(asked, 'response');
  let bytes = 0;
  for await (const chunk of answer) bytes += Number(Object(chunk).length);
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode}`);
  return { ms: performance.now() - started, bytes };
}

async function measure(port: number): Promise<void> {
  const [pinger, reader] = [new Agent({ keepAlive: true }), new Agent({ keepAlive: true })];
  for (const [what, target] of lists) {
    let reading = true;
    const pings: number[] = [];
    const pinging = (async () => {
      while (reading) pings.push((await read(port, pinger, '/items/77')).ms);
    })();
    const { ms, bytes } = target === '' ? await delay(5000, { ms: 0, bytes: 0 }) : await read(port, reader, target);
    if (ms < 100) await delay(100);
    reading = false;
    await pinging;
    pings.sort((a, b) => a - b);
    const [median = 0, worst = 0] = [pings[pings.length >> 1], pings.at(-1)];
    const others = `others: ${median.toFixed(1)} ms median, ${worst.toFixed(1)} ms at most of ${pings.length}`;
    console.log(`${what.padEnd(45)} ${ms.toFixed(1).padStart(8)} ms ${String(bytes).padStart(9)} bytes  ${others}`);
  }
  pinger.destroy();
  reader.destroy();
}

const [, script = '', first = '1000000', directory] = process.argv;
if (first === 'serve' && directory !== undefined) {
  await serve(directory);
} else {
  const data = mkdtempSync(join(tmpdir(), 'cairn-lists-'));
  await fillItems(data, Number(first));
  const server: ChildProcess = fork(script, ['serve', data]);
  const [port] = await once(server, 'message');
  await measure(Number(port));
  server.disconnect();
  await once(server, 'exit');
  rmSync(data, { recursive: true });
}
