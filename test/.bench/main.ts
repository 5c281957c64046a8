/**
 * Cairn against a bare `node:http` server that answers the same bytes, in one table; `npm run bench -- --help` says how
 * it is called.
 *
 * A fresh process for each measurement, the two in turn, server and load on a core each where there are two. What
 * counts is the median of the ratios within a round: the figures themselves differ by machine, start and hour.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { createApp } from '../../src/app/app.ts';
import { problemOf, readArguments, usage } from './arguments.ts';
import { ask, coldStart, email, load, password, residentMiB, secret } from './processes.ts';
import { startBare, startCairn, stop, type BareOrder } from './processes.ts';
import { benchCluster } from './cluster.ts';
import { benchStore } from './store.ts';

const { flags, mode, rounds, measureMs, records } = argumentsOfProcess();

function argumentsOfProcess() {
  try {
    const read = readArguments(process.argv.slice(2));
    if (read.flags.help !== true) return read;
    process.stdout.write(usage);
    process.exit();
  } catch (error) {
    process.stderr.write(problemOf(error));
    process.exit(64);
  }
}

const itemsCount = 10_000;
const host = 'HTTP/1.1\r\nHost: 127.0.0.1\r\n';
const directory = mkdtempSync(join(tmpdir(), 'cairn-bench-'));
const template = join(directory, 'template');

interface Case {
  readonly name: string;
  readonly connections: number;
  /** `{known}` and `{cookie}` stand for credentials of one caller, `{token}` for a new token each time. */
  readonly request: string;
  readonly budget?: number;
  readonly aim?: number;
  /** Whether the bare server appends and syncs, too. */
  readonly durable?: boolean;
}

const item = '{"name":"A thing to be sold","price":12.5}';
const create =
  `POST /items ${host}Authorization: Bearer {known}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${item.length}\r\n\r\n${item}`;
const read = (credentials: string): string => `GET /items/77 ${host}${credentials}\r\n\r\n`;
const known = 'Authorization: Bearer {known}';
const page = `GET /items?limit=20&sort=-price ${host}${known}\r\n\r\n`;
const dashboard = `GET /dashboard ${host}Cookie: sid={cookie}\r\n\r\n`;
const cases: readonly Case[] = [
  { name: 'read, known token', connections: 64, request: read(known), budget: 0.8, aim: 1 },
  { name: 'read, known token, 1 connection', connections: 1, request: read(known), budget: 0.8, aim: 1 },
  { name: 'read, new tokens', connections: 64, request: read('Authorization: Bearer {token}'), budget: 0.3, aim: 0.45 },
  { name: 'dashboard, session cookie', connections: 64, request: dashboard, budget: 0.65, aim: 0.85 },
  // A caller has a share of 8 lists that look at so many records.
  { name: 'page of 20, sorted by price', connections: 8, request: page },
  { name: 'create', connections: 64, request: create, budget: 0.45, aim: 0.6 },
  { name: 'create, 1 connection', connections: 1, request: create, budget: 0.2, aim: 0.25 },
  { name: 'create, against a bare log', connections: 64, request: create, budget: 0.85, aim: 1, durable: true },
];

interface Row {
  readonly name: string;
  readonly unit: string;
  readonly bare: number;
  readonly cairn: number;
  /** Of each round; for what is not better the higher it is, the difference. */
  readonly compared: readonly number[];
  readonly budget: number | undefined;
  readonly aim: number | undefined;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, two) => one - two);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** A data directory of its own for one measurement. */
function freshData(): string {
  const data = join(directory, 'data');
  rmSync(data, { recursive: true, force: true });
  cpSync(template, data, { recursive: true });
  return data;
}

async function prepare(): Promise<void> {
  mkdirSync(template);
  const app = await createApp({ directory: template, secret, administrator: { email, password } });
  const signIn = { method: 'POST', target: '/tokens', body: JSON.stringify({ email, password }) };
  const { access_token: token } = JSON.parse((await app.inject({ ...signIn, fields: json })).body);
  const fields = { ...json, Authorization: `Bearer ${token}` };
  const creates = Array.from({ length: itemsCount }, (_, index) =>
    app.inject({
      method: 'POST',
      target: '/items',
      fields,
      body: JSON.stringify({ name: `A thing to be sold, number ${index}`, price: (index * 7919) % 1000 }),
    }),
  );
  for (const { status, body } of await Promise.all(creates)) if (status !== 201) throw new Error(body);
  await app.close();
}
const json = { 'Content-Type': 'application/json' };

/** Fills in the credentials that a request names. */
async function signedIn(port: number, request: string): Promise<string> {
  const body = JSON.stringify({ email, password });
  const fields = `${host}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  if (request.includes('{cookie}')) {
    return request.replace('{cookie}', /sid=([^;]+)/.exec(await ask(port, `POST /login ${fields}`))?.[1] ?? '');
  }
  if (!request.includes('{known}')) return request;
  const tokens = await ask(port, `POST /tokens ${fields}`);
  return request.replace('{known}', /"access_token":"([^"]+)/.exec(tokens)?.[1] ?? '');
}

/** What the bare server shall answer: Cairn's own status and content. */
async function learn({ request, durable }: Case): Promise<BareOrder> {
  const server = await startCairn(directory, freshData());
  const reply = await ask(server.port, await signedIn(server.port, request.replace('{token}', '{known}')));
  await stop(server);
  const status = Number(reply.slice(9, 12));
  const body = reply.slice(reply.indexOf('\r\n\r\n') + 4);
  const log = durable === true ? { log: join(directory, 'bare.jsonl') } : {};
  return { status, body, ...log };
}

async function measure(one: Case): Promise<Row> {
  const order = await learn(one);
  const [bare, cairn, ratios]: [number[], number[], number[]] = [[], [], []];
  const { connections } = one;
  for (let round = 0; round < rounds; round += 1) {
    const bareServer = await startBare(directory, order);
    const common = { connections, warmUpMs: 2000, measureMs, secret };
    const ceiling = await load({ ...common, port: bareServer.port, request: one.request });
    await stop(bareServer);
    const server = await startCairn(directory, freshData());
    const request = await signedIn(server.port, one.request);
    const result = await load({ ...common, port: server.port, request });
    await stop(server);
    if (result.failures + ceiling.failures > 0) throw new Error(`${one.name}: ${result.failures} requests failed`);
    bare.push(ceiling.requestsPerSecond);
    cairn.push(result.requestsPerSecond);
    ratios.push(result.requestsPerSecond / ceiling.requestsPerSecond);
    process.stderr.write('.');
  }
  const { name, budget, aim } = one;
  return { name, unit: 'requests/s', bare: median(bare), cairn: median(cairn), compared: ratios, budget, aim };
}

/** Cold start and memory at rest with 10,000 items; these are differences, and smaller is better. */
async function measureRest(): Promise<Row[]> {
  const order: BareOrder = { status: 200, body: '{}' };
  const request = `GET /livez ${host}\r\n`;
  const [coldBare, coldCairn, restBare, restCairn]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let round = 0; round < rounds; round += 1) {
    coldBare.push(await coldStart(() => startBare(directory, order), request));
    const data = freshData();
    coldCairn.push(await coldStart(() => startCairn(directory, data), request));
    for (const [rest, begin] of [
      [restBare, () => startBare(directory, order)],
      [restCairn, () => startCairn(directory, data)],
    ] as const) {
      const server = await begin();
      await ask(server.port, request);
      await delay(1000);
      rest.push(residentMiB(server));
      await stop(server);
    }
    process.stderr.write('.');
  }
  const difference = (one: number[], two: number[]): number[] => one.map((value, index) => value - (two[index] ?? 0));
  const row = (name: string, unit: string, bare: number[], cairn: number[], budget: number, aim: number): Row => ({
    name, unit, bare: median(bare), cairn: median(cairn), compared: difference(cairn, bare), budget, aim,
  });
  return [
    row('cold start, 10,000 items', 'ms', coldBare, coldCairn, 40, 15),
    row('memory at rest, 10,000 items', 'MiB', restBare, restCairn, 12, 6),
  ];
}

function show(rows: readonly Row[], before: readonly Row[]): string {
  const was = before.length > 0 ? ['was'] : [];
  const lines = [['', 'bare', 'Cairn', '', 'ratio or difference', 'must', 'aim', ...was]];
  for (const { name, unit, bare, cairn, compared, budget, aim } of rows) {
    const digits = unit === 'requests/s' ? 2 : 1;
    const [low, high] = [Math.min(...compared), Math.max(...compared)].map((value) => value.toFixed(digits));
    const earlier = before.find((row) => row.name === name);
    lines.push([
      name, bare.toFixed(0), cairn.toFixed(0), unit, `${median(compared).toFixed(digits)} (${low}–${high})`,
      String(budget ?? ''), String(aim ?? ''),
      ...(earlier === undefined ? [] : [median(earlier.compared).toFixed(digits)]),
    ]);
  }
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const pad = (cell: string, column: number): string => cell.padEnd(widths[column] ?? 0);
  return lines.map((line) => line.map(pad).join('  ').trimEnd()).join('\n');
}

const note = `
Ratios are Cairn over bare within a round, differences Cairn minus bare: median (lowest–highest) of ${rounds} rounds.
Processes of one program differ by tens of percent from start to start; trust a change only when its ranges part.
`;

try {
  const built = spawnSync('npm', ['run', '--silent', 'build'], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (built.status !== 0) throw new Error('The build failed');
  if (mode === 'store') {
    process.stdout.write(`${await benchStore({ directory, rounds, measureMs, records })}\n`);
  } else if (mode === 'cluster') {
    process.stdout.write(`${await benchCluster({ directory, rounds, measureMs })}\n`);
  } else {
    await benchServer();
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}

async function benchServer(): Promise<void> {
  await prepare();
  const rows: Row[] = [];
  for (const one of cases) if (one.name.includes(flags.only)) rows.push(await measure(one));
  if ('cold start, memory at rest'.includes(flags.only)) rows.push(...(await measureRest()));
  process.stderr.write('\n');
  const before: Row[] = flags.compare === undefined ? [] : JSON.parse(readFileSync(flags.compare, 'utf8'));
  process.stdout.write(`Node ${process.version}\n${show(rows, before)}\n${note}`);
  if (flags.save !== undefined) writeFileSync(flags.save, `${JSON.stringify(rows, null, 2)}\n`);
}
