/**
 * Measures nodes over a real etcd with three members on loopback: `npm run bench -- cluster`. One run compares the
 * commits of 1, 2 and 3 nodes with commits to the local journal, then reads of servers.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { RealEtcd } from '../torture/real-etcd.ts';
import type { BenchOrder, BenchReport } from './cluster-node.ts';
import { sendRequest, email, load, password, secret, startCairn, stop } from './processes.ts';

export interface ClusterBench {
  readonly directory: string;
  readonly rounds: number;
  readonly measureMs: number;
}

const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];
const clientCounts = [1, 16, 64];

export async function benchCluster(bench: ClusterBench): Promise<string> {
  const etcd = await RealEtcd.start({ members: 3 });
  try {
    const lines = [['nodes', 'clients', 'commits/s', 'of local', 'groups/s', 'lost', 're-runs', 'p50 ms', 'p99 ms',
      'lag p50', 'lag p99', 'shares']];
    for (const clients of clientCounts) lines.push(...(await commits(bench, etcd, clients)));
    const head = `Node ${process.version}, etcd of 3 members, medians of ${bench.rounds} rounds`;
    return [head, table(lines), await reads(bench, etcd)].join('\n\n');
  } finally {
    await etcd.stop();
  }
}

/** Measures the local journal and 1, 2 and 3 nodes in turn, each with `clients` clients. */
async function commits(bench: ClusterBench, etcd: RealEtcd, clients: number): Promise<string[][]> {
  const rows = new Map<number, Row[]>([[0, []], [1, []], [2, []], [3, []]]);
  for (let round = 0; round < bench.rounds; round += 1) {
    let local = 0;
    for (const [nodes, measured] of rows) {
      const row = rowOf(await measure(bench, etcd, nodes, clients), bench.measureMs);
      if (nodes === 0) local = row.rate;
      measured.push({ ...row, ofLocal: row.rate / local });
    }
  }
  return Array.from(rows, ([nodes, measured]) => {
    const middle = (of: (row: Row) => number, digits = 0): string => median(measured.map(of)).toFixed(digits);
    return [
      nodes === 0 ? 'local' : String(nodes), String(clients), middle(({ rate }) => rate),
      middle(({ ofLocal }) => ofLocal, 2), middle(({ groups }) => groups), middle(({ lost }) => lost, 2),
      middle(({ reruns }) => reruns, 2), middle(({ p50 }) => p50, 1), middle(({ p99 }) => p99, 1),
      middle(({ lag50 }) => lag50, 1), middle(({ lag99 }) => lag99, 1),
      `${middle(({ least }) => least)}–${middle(({ most }) => most)} %`,
    ];
  });
}

interface Row {
  readonly rate: number;
  readonly ofLocal: number;
  readonly groups: number;
  /** The share of appends that lost against another node's. */
  readonly lost: number;
  /** Per commit. */
  readonly reruns: number;
  readonly p50: number;
  readonly p99: number;
  readonly lag50: number;
  readonly lag99: number;
  /** The smallest and largest share of a node, in per cent. */
  readonly least: number;
  readonly most: number;
}

function rowOf(reports: readonly BenchReport[], measureMs: number): Row {
  const sum = (of: (report: BenchReport) => number): number => reports.reduce((total, report) => total + of(report), 0);
  const merged = (of: (report: BenchReport) => readonly number[]) => reports.flatMap(of).sort((a, b) => a - b);
  const at = (values: readonly number[], part: number): number => values[Math.floor(values.length * part)] ?? NaN;
  const total = sum(({ commits }) => commits);
  const lost = sum(({ lostAppends }) => lostAppends);
  const [latencies, lags] = [merged(({ latencies }) => latencies), merged(({ lags }) => lags)];
  const shares = reports.map(({ commits }) => (100 * commits) / total);
  // Each node publishes everybody's groups.
  const groups = sum(({ groups }) => groups) / reports.length;
  return {
    rate: (total / measureMs) * 1000, ofLocal: 0, groups: (groups / measureMs) * 1000,
    lost: lost / (groups + lost), reruns: sum(({ reruns }) => reruns) / total,
    p50: at(latencies, 0.5), p99: at(latencies, 0.99), lag50: at(lags, 0.5), lag99: at(lags, 0.99),
    least: Math.min(...shares), most: Math.max(...shares),
  };
}

/** Runs `count` nodes on an empty log. With 0, one process uses the local journal. */
async function measure(
  { directory, measureMs }: ClusterBench, etcd: RealEtcd, count: number, clients: number,
): Promise<BenchReport[]> {
  const data = mkdtempSync(join(directory, 'node-'));
  const nodes = Array.from({ length: Math.max(1, count) }, (_, first) => {
    const script = join(import.meta.dirname, 'cluster-node.ts');
    const child = spawn(process.execPath, [...typescript, script], { stdio: ['pipe', 'pipe', 'inherit'] });
    const place = count === 0 ? {} : { members: etcd.addresses };
    const order: BenchOrder = { ...place, directory: data, prefix: `${data}/`, first, clients, measureMs };
    child.stdin.write(`${JSON.stringify(order)}\n`);
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
  });
  for (const { lines } of nodes) await lines.next();
  for (const { child } of nodes) child.stdin.write('go\n');
  const reports: BenchReport[] = [];
  for (const { lines } of nodes) reports.push(JSON.parse((await lines.next()).value));
  for (const { child } of nodes) child.stdin.end('end\n');
  return reports;
}

async function reads({ directory, rounds, measureMs }: ClusterBench, etcd: RealEtcd): Promise<string> {
  const cluster = ['--cluster', etcd.addresses.join(',')];
  const servers = [await startCairn(mkdtempSync(join(directory, 'a-')), cluster)];
  servers.push(await startCairn(mkdtempSync(join(directory, 'a-')), cluster));
  const [port = 0] = servers.map((server) => server.port);
  const body = JSON.stringify({ email, password });
  const head = 'HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n';
  const answer = await sendRequest(port, `POST /tokens ${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  const token = /"access_token":"([^"]+)/.exec(answer)?.[1] ?? '';
  const request = `GET /items ${head}Authorization: Bearer ${token}\r\n\r\n`;
  const rates = new Map<number, number[]>([[1, []], [2, []]]);
  for (let round = 0; round < rounds; round += 1) {
    for (const [count, measured] of rates) {
      const loads = servers.slice(0, count).map(({ port }) =>
        load({ port, request, connections: 32, warmUpMs: 1000, measureMs, secret }));
      const results = await Promise.all(loads);
      measured.push(results.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0));
    }
  }
  for (const server of servers) await stop(server);
  const lines = Array.from(rates, ([count, measured]) => [String(count), median(measured).toFixed(0)]);
  return table([['servers', 'GET /items per second'], ...lines]);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

function table(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) => line.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  ')).join('\n');
}
