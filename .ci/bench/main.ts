/**
 * Compares Cairn with a bare `node:http` server that sends the same, with the previous release and with peers, in one
 * table. `npm run bench -- --help` shows the usage.
 *
 * Each measurement has a fresh process, and each round runs all of them in turn. With two cores, server and load have
 * one each. The figure that counts is the processor time of a request (all threads, as the system reports it) as a
 * ratio to the bare server's in the same round: requests per second differ by machine, start and hour.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { version } from '../../src/base/version.ts';
import { explainError, readArguments, usage } from './arguments.ts';
import { benchCluster } from './cluster.ts';
import { ancestors, bare, cairn, former, host, itemsCount, parent, peers } from './contenders.ts';
import type { Case, Contender } from './contenders.ts';
import type { LoadResult } from './load.ts';
import { sendRequest, load, measureResidentMiB, secret, stop } from './processes.ts';
import { benchStore } from './store.ts';
import { benchWear } from './wear.ts';

const { flags, mode, rounds, measureMs, records } = argumentsOfProcess();
const warmUpMs = mode === 'parent' ? 700 : 2000;

function argumentsOfProcess() {
  try {
    const read = readArguments(process.argv.slice(2));
    if (read.flags.help !== true) return read;
    process.stdout.write(usage);
    process.exit();
  } catch (error) {
    process.stderr.write(explainError(error));
    process.exit(64);
  }
}

const project = join(import.meta.dirname, '..', '..');
const work = mkdtempSync(join(tmpdir(), 'cairn-bench-'));

const item = '{"name":"A thing to be sold","price":12.5}';
const create =
  `POST /items ${host}Authorization: Bearer {known}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${item.length}\r\n\r\n${item}`;
const get = (target: string, credentials = 'Authorization: Bearer {known}'): string =>
  `GET ${target} ${host}${credentials}\r\n\r\n`;
const dashboard = get('/dashboard', 'Cookie: sid={cookie}');
const read: Case = { name: 'a read', connections: 64, request: get('/items/77'), budget: 1.2 };
const write: Case = { name: 'a create', connections: 64, request: create, budget: 2.3 };
// prettier-ignore
const cases: readonly Case[] = [
  read,
  { name: 'a read, 1 connection', connections: 1, request: get('/items/77') },
  { name: 'the dashboard, by cookie, 1 connection', connections: 1, request: dashboard },
  { name: 'a read, new tokens', connections: 64, request: get('/items/77', 'Authorization: Bearer {token}') },
  { name: 'the dashboard, by cookie', connections: 64, request: dashboard, budget: 1.25 },
  { name: 'a page of 20', connections: 64, request: get('/items?limit=20') },
  { name: 'a page of 20, by cursor', connections: 64, request: get('/items?limit=20&cursor={cursor}'), budget: 2.2 },
  { name: 'a page of 20, by number', connections: 64, request: get('/items?limit=20&offset=40'), budget: 2.2 },
  { name: 'a page of 20, by price', connections: 8, request: get('/items?limit=20&sort=-price') },
  { name: 'a page of 20, filtered', connections: 8, request: get('/items?limit=20&price:gte=500') },
  { name: 'all 10,000 items', connections: 1, request: get('/items'), warmUpRequests: 50 },
  { name: 'a search', connections: 1, request: get('/items?q=9876&limit=20'), warmUpRequests: 200 },
  write,
  { name: 'a create, 1 connection', connections: 1, request: create, budget: 4.6 },
  { name: 'a create that 16 feeds tell', connections: 16, request: create, listeners: 16, warmUpRequests: 2000 },
];

type Figures = Pick<LoadResult, 'microseconds' | 'requestsPerSecond' | 'allocated' | 'promoted'>;

/** Medians, and for each round the ratios of the processor time to the bare server's and to this tree's. */
interface Row extends Figures {
  readonly one: Case;
  readonly contender: string;
  readonly ratios: readonly number[];
  readonly ratiosToTree: readonly number[];
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, two) => one - two);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/**
 * Runs all contenders that support the case in each round, in reverse order every second time. The bare server is the
 * first.
 */
async function measure(one: Case, contenders: readonly Contender[]): Promise<Row[]> {
  const measured = new Map<string, Figures[]>();
  const taking = contenders.filter((each) => each.takes(one));
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of round % 2 === 0 ? taking : taking.toReversed()) {
      const figures = await measureOnce(one, contender);
      measured.set(contender.name, [...(measured.get(contender.name) ?? []), figures]);
      process.stderr.write('.');
    }
  }
  const [ceiling = []] = measured.values();
  const tree = measured.get('Cairn') ?? [];
  return Array.from(measured, ([contender, figures]) => {
    const of = (key: keyof Figures): number => median(figures.map((each) => each[key]));
    const over = (others: readonly Figures[]): number[] =>
      figures.map(({ microseconds }, round) => microseconds / (others[round]?.microseconds ?? Number.NaN));
    return {
      one, contender, ratios: over(ceiling), ratiosToTree: over(tree),
      microseconds: of('microseconds'), requestsPerSecond: of('requestsPerSecond'),
      allocated: of('allocated'), promoted: of('promoted'),
    };
  });
}

async function measureOnce(one: Case, contender: Contender): Promise<Figures> {
  const server = await contender.start(one);
  const request = await contender.signIn(server.port, one);
  const { port, process: { pid = 0 } } = server;
  const { connections, listeners = 0, warmUpRequests } = one;
  const feeds = { listeners, feed: await contender.signIn(server.port, { ...one, request: get('/changes') }) };
  const measured = { pid, garbage: server.garbage, warmUpMs, warmUpRequests, measureMs };
  const result = await load({ port, connections, request, secret, ...feeds, ...measured });
  await stop(server);
  if (result.failures > 0) throw new Error(`${one.name}, ${contender.name}: ${result.failures} requests failed`);
  return result;
}

function show(rows: readonly Row[]): string {
  const counts = rows.some(({ allocated }) => allocated > 0);
  const lines = [['', '', 'µs a request', 'requests/s', 'of bare', 'must', 'of this tree']];
  if (counts) lines[0]?.push('bytes allocated', 'to the old space');
  let former = '';
  for (const row of rows) {
    const { one, contender, microseconds, requestsPerSecond, ratios, ratiosToTree, allocated, promoted } = row;
    lines.push([
      one.name === former ? '' : one.name, contender, microseconds.toFixed(1), requestsPerSecond.toFixed(0),
      contender === 'bare' ? '' : findRange(ratios), contender === 'Cairn' ? String(one.budget ?? '') : '',
      contender === 'Cairn' ? '' : findRange(ratiosToTree),
      ...(counts ? [allocated.toFixed(0), promoted.toFixed(0)] : []),
    ]);
    former = one.name;
  }
  return table(lines);
}

function findRange(ratios: readonly number[]): string {
  const [low, high] = [Math.min(...ratios), Math.max(...ratios)].map((value) => value.toFixed(2));
  return `${median(ratios).toFixed(2)} (${low}–${high})`;
}

function table(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const pad = (cell: string, column: number): string => cell.padEnd(widths[column] ?? 0);
  return lines.map((line) => line.map(pad).join('  ').trimEnd()).join('\n');
}

/** Medians of the time to the first response of a process, and of its memory a second later. */
async function measureRest(contenders: readonly Contender[]): Promise<string> {
  const measured = new Map(contenders.map(({ name }) => [name, { startMs: [0].slice(1), MiB: [0].slice(1) }]));
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of contenders) {
      const beganMs = performance.now();
      const server = await contender.start(read);
      await sendRequest(server.port, `GET /livez ${host}\r\n`);
      measured.get(contender.name)?.startMs.push(performance.now() - beganMs);
      await delay(1000);
      measured.get(contender.name)?.MiB.push(measureResidentMiB(server));
      await stop(server);
      process.stderr.write('.');
    }
  }
  const lines = Array.from(measured, ([name, { startMs, MiB }]) =>
    [name, median(startMs).toFixed(0), median(MiB).toFixed(0)]);
  return table([[`with ${itemsCount.toLocaleString('en')} items`, 'ms to the first answer', 'MiB at rest'], ...lines]);
}

/** Explains the rows to a newcomer. */
function inWords(rows: readonly Row[]): string {
  const of = (contender: string, name: string): number =>
    rows.find((row) => row.contender === contender && row.one.name === name)?.microseconds ?? Number.NaN;
  const say = (name: string, rest: string): string[] => {
    const cost = of('Cairn', name);
    return Number.isNaN(cost) ? [] : [`${name} costs ${cost.toFixed(1)} µs of processor time${rest}`];
  };
  const log = of('Cairn', 'a read') - of('Cairn without a log', 'a read');
  const share = `, of which ${of('bare', 'a read').toFixed(1)} are Node's own and ${log.toFixed(1)} the log`;
  const lines = [
    ...say('a read', share),
    ...say('the dashboard, by cookie', ''),
    ...say('a page of 20', ''),
    ...say('a create', `, its share of the sync included; a bare log takes ${of('bare log', 'a create').toFixed(1)}`),
  ];
  return lines.map((line) => `${line.charAt(0).toUpperCase()}${line.slice(1)}.`).join('\n');
}

async function benchServer(): Promise<string> {
  const own = await cairn('Cairn', project, work);
  const silent = await cairn('Cairn without a log', project, work, ['--log', 'none']);
  const contenders = [
    bare(own, work),
    bare(own, work, true),
    own,
    { ...silent, takes: ({ name }: Case) => name === read.name },
    ...(flags.former === undefined ? [] : [await former(flags.former, project, work)]),
    ...(mode === 'peers' ? await others(own) : []),
  ];
  const rows: Row[] = [];
  for (const one of cases.filter(({ name }) => name.includes(flags.only))) {
    rows.push(...(await measure({ ...one, isCounted: mode === 'peers' }, contenders)));
  }
  const rest = flags.only === '' ? [await measureRest(contenders.filter(({ name }) => name !== 'bare log'))] : [];
  process.stderr.write('\n');
  return [show(rows), ...rest, inWords(rows), note].join('\n\n');
}

/** This tree a second time, its ancestors, and other servers. */
async function others(own: Contender): Promise<Contender[]> {
  return [{ ...own, name: 'Cairn again' }, ...(await ancestors(project, work)), ...(await peers(work))];
}

/** Shows the cost of a read and a create at this commit and the previous one; no figure fails the run. */
async function benchParent(): Promise<string> {
  const before = await parent(project, work);
  if (before === undefined) return 'No parent to compare with.';
  const contenders = [await cairn('Cairn', project, work), before];
  const rows = [...(await measure(read, contenders)), ...(await measure(write, contenders))];
  process.stderr.write('\n');
  const lines = rows.filter(({ contender }) => contender === 'parent').map(({ one, microseconds, ratiosToTree }) => {
    const ratios = findRange(ratiosToTree.map((ratio) => 1 / ratio));
    return [one.name, microseconds.toFixed(1), ratios];
  });
  return table([['', 'µs of the parent', 'of the parent'], ...lines]);
}

const note = `Medians of ${rounds} rounds of ${measureMs / 1000} s; ratios are of processor time within a round
(lowest–highest). Processes of one program differ from start to start; trust a change only when its ranges part.`;

/** The day, the version and the machine, without which figures say nothing. */
function heading(): string {
  const { stdout } = spawnSync('git', ['describe', '--always', '--dirty'], { cwd: project, encoding: 'utf8' });
  const processors = cpus();
  const machine = `${processors.length} × ${processors[0]?.model.trim() ?? 'an unknown processor'}`;
  const day = new Date().toISOString().slice(0, 10);
  return `${day}, Cairn ${version} (${stdout.trim()}), Node ${process.version}, ${machine}`;
}

try {
  const built = spawnSync('npm', ['run', '--silent', 'build'], {
    cwd: project, stdio: ['ignore', 'inherit', 'inherit'], shell: process.platform === 'win32',
  });
  if (built.status !== 0) throw new Error('The build failed');
  const modes = {
    store: () => benchStore({ directory: work, rounds, measureMs, records }),
    cluster: () => benchCluster({ directory: work, rounds, measureMs }),
    wear: () => benchWear(join(project, 'dist', 'main.js')),
  };
  const isMode = mode === 'store' || mode === 'cluster' || mode === 'wear';
  const tables = isMode ? await modes[mode]() : await (mode === 'parent' ? benchParent() : benchServer());
  process.stdout.write(`${heading()}\n\n${tables}\n`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
