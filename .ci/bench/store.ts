/**
 * Measures the store at its limits: `npm run bench -- store`. Compares durable creates at several numbers of
 * connections and records with a bare `node:http` server with group commit, one that writes nothing, and an append +
 * datasync loop, all in the same run. Then it measures start-up, memory per record, and the longest stall during a
 * checkpoint.
 */
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';

import { openData, type Data } from '../../src/app/data.ts';
import { completeOptions } from '../../src/programs/options.ts';
import { systemClock, systemRandom } from '../../src/base/system.ts';
import { CollectionResource } from '../../src/collections/resource.ts';
import type { LoadResult } from './load.ts';
import { sendRequest, email, load, password, measureResidentMiB, secret } from './processes.ts';
import { startBare, startCairn, stop, type Server } from './processes.ts';
import { createApp } from '../../test/support/inside.ts';

export interface StoreBench {
  /** Scratch space, on the disk to be measured. */
  readonly directory: string;
  readonly rounds: number;
  readonly measureMs: number;
  readonly records: readonly number[];
}

const connectionCounts = [1, 16, 64, 256];
const item = '{"name":"A thing to be sold","price":12.5}';
const fields = 'HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n';
const create = (token: string): string =>
  `POST /items ${fields}Authorization: Bearer ${token}\r\nContent-Length: ${item.length}\r\n\r\n${item}`;
const created = { status: 201, body: '{"id":1000001,"name":"A thing to be sold","price":12.5}' };

export async function benchStore(bench: StoreBench): Promise<string> {
  const templates = new Map<number, string>();
  for (const records of bench.records) templates.set(records, await fill(bench.directory, records));
  return [
    `Node ${process.version}, median of ${bench.rounds} rounds; ratios within a round`,
    await creates(bench, templates),
    await starts(bench, templates),
    await stalls(bench, templates),
  ].join('\n\n');
}

function itemsOf({ store, registry }: Data): Pick<Data, 'store'> & { items: CollectionResource } {
  const items = registry.get('items');
  assert.ok(items !== undefined);
  return { store, items: new CollectionResource(items, { clock: systemClock, random: systemRandom }) };
}

/** Makes a stopped data directory with this many items. */
async function fill(directory: string, records: number): Promise<string> {
  const template = join(directory, `template-${records}`);
  const app = await createApp({ directory: template, secret, administrator: { email, password } });
  await app.close();
  const { store, items } = itemsOf(await openStarted(template));
  const perCommit = 1000;
  for (let done = 0; done < records; done += perCommit) {
    await store.write((tx) => {
      for (let n = done; n < Math.min(records, done + perCommit); n += 1) {
        tx.of(items.records).insert({ name: `A thing to be sold, number ${n}`, price: (n * 7919) % 1000, ownerId: 1 });
      }
    });
  }
  await store.close();
  return template;
}

/** Only the store, in this process. */
async function openStarted(directory: string): Promise<Data> {
  const data = openData(completeOptions({ directory }));
  await data.store.start();
  return data;
}

function fresh(directory: string, template: string): string {
  const data = join(directory, 'data');
  rmSync(data, { recursive: true, force: true });
  cpSync(template, data, { recursive: true });
  return data;
}

async function creates(bench: StoreBench, templates: ReadonlyMap<number, string>): Promise<string> {
  const lines = [['records', 'connections', 'Cairn/s', 'of bare log', 'of bare http', 'p99 ms', 'max ms']];
  const loops: number[] = [];
  const all = new Map<string, { cairn: LoadResult; ofLog: number; ofHttp: number }[]>();
  for (let round = 0; round < bench.rounds; round += 1) {
    loops.push(await appendLoop(bench.directory));
    for (const connections of connectionCounts) {
      const measure = async (server: Server, token: string): Promise<LoadResult> => {
        const common = { connections, warmUpMs: 2000, measureMs: bench.measureMs, secret };
        const result = await load({ ...common, port: server.port, request: create(token) });
        await stop(server);
        if (result.failures > 0) throw new Error(`${result.failures} requests failed`);
        return result;
      };
      const bare = await measure(await startBare(bench.directory, created), 'x');
      const log = join(bench.directory, 'bare.jsonl');
      const bareLog = await measure(await startBare(bench.directory, { ...created, log }), 'x');
      for (const [records, template] of templates) {
        const server = await startCairn(bench.directory, ['--data', fresh(bench.directory, template)]);
        const cairn = await measure(server, await tokenOf(server));
        const key = `${records} ${connections}`;
        const ofLog = cairn.requestsPerSecond / bareLog.requestsPerSecond;
        const ofHttp = cairn.requestsPerSecond / bare.requestsPerSecond;
        all.set(key, [...(all.get(key) ?? []), { cairn, ofLog, ofHttp }]);
        process.stderr.write('.');
      }
    }
  }
  for (const [key, rounds] of all) {
    const of = (value: (round: (typeof rounds)[number]) => number): number => median(rounds.map(value));
    lines.push([
      ...key.split(' '),
      of(({ cairn }) => cairn.requestsPerSecond).toFixed(0),
      of(({ ofLog }) => ofLog).toFixed(2),
      of(({ ofHttp }) => ofHttp).toFixed(2),
      of(({ cairn }) => cairn.p99Ms).toFixed(1),
      of(({ cairn }) => cairn.maxMs).toFixed(1),
    ]);
  }
  return `${table(lines)}\nappend + datasync loop, one line at a time: ${median(loops).toFixed(0)}/s`;
}

/** Measures the disk with one writer: lines of about 120 bytes, each synced. */
async function appendLoop(directory: string): Promise<number> {
  const path = join(directory, 'loop');
  const file = await open(path, 'w');
  const line = Buffer.from(`${'x'.repeat(119)}\n`);
  const begun = performance.now();
  let count = 0;
  for (; performance.now() - begun < 1000; count += 1) {
    await file.write(line, 0, line.length, count * line.length);
    await file.datasync();
  }
  await file.close();
  rmSync(path);
  return (count / (performance.now() - begun)) * 1000;
}

async function tokenOf({ port }: Server): Promise<string> {
  const body = JSON.stringify({ email, password });
  const reply = await sendRequest(port, `POST /tokens ${fields}Content-Length: ${body.length}\r\n\r\n${body}`);
  return /"access_token":"([^"]+)/.exec(reply)?.[1] ?? '';
}

async function starts(bench: StoreBench, templates: ReadonlyMap<number, string>): Promise<string> {
  const lines = [['records', 'ms to the first reply', 'MiB at rest', 'bytes per record']];
  const empty = await fill(bench.directory, 0);
  const rest = await startOf(bench, empty);
  for (const [records, template] of templates) {
    const { ms, mib } = await startOf(bench, template);
    const each = ((mib - rest.mib) * 1024 * 1024) / records;
    lines.push([String(records), `${ms.toFixed(0)} (empty: ${rest.ms.toFixed(0)})`, mib.toFixed(0), each.toFixed(0)]);
  }
  return table(lines);
}

async function startOf(bench: StoreBench, template: string): Promise<{ ms: number; mib: number }> {
  const [ms, mib]: [number[], number[]] = [[], []];
  for (let round = 0; round < bench.rounds; round += 1) {
    const data = fresh(bench.directory, template);
    const begun = performance.now();
    const server = await startCairn(bench.directory, ['--data', data]);
    await sendRequest(server.port, `GET /livez ${fields}\r\n`);
    ms.push(performance.now() - begun);
    mib.push(measureResidentMiB(server));
    await stop(server);
  }
  return { ms: median(ms), mib: median(mib) };
}

/** With 64 writers in this process: the longest wait of a write and of the loop, with and without a checkpoint. */
async function stalls(bench: StoreBench, templates: ReadonlyMap<number, string>): Promise<string> {
  const lines = [['records', '', 'writes/s', 'longest write ms', 'longest stall of the loop ms']];
  for (const [records, template] of templates) {
    const data = await openStarted(fresh(bench.directory, template));
    const plain = await writeWhile(data, () => new Promise((resolve) => setTimeout(resolve, bench.measureMs)));
    const during = await writeWhile(data, () => data.store.checkpoint());
    lines.push([String(records), 'no checkpoint', ...plain], ['', 'during a checkpoint', ...during]);
    await data.store.close();
  }
  return table(lines);
}

async function writeWhile(data: Data, work: () => Promise<void>): Promise<string[]> {
  const { store, items } = itemsOf(data);
  const delays = monitorEventLoopDelay({ resolution: 1 });
  let writes = 0;
  let longest = 0;
  let going = true;
  const writer = async (): Promise<void> => {
    while (going) {
      const begun = performance.now();
      await store.write((tx) => tx.of(items.records).insert({ name: 'A thing to be sold', price: 12.5, ownerId: 1 }));
      longest = Math.max(longest, performance.now() - begun);
      writes += 1;
    }
  };
  const begun = performance.now();
  delays.enable();
  const writers = Array.from({ length: 64 }, writer);
  await work();
  going = false;
  delays.disable();
  await Promise.all(writers);
  const perSecond = (writes / (performance.now() - begun)) * 1000;
  return [perSecond.toFixed(0), longest.toFixed(1), (delays.max / 1e6).toFixed(1)];
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, two) => one - two);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function table(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}
