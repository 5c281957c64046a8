/**
 * Nodes of a cluster over a real etcd, each behind its own proxies, while members, nodes and links
 * fail. Then every operation of every node is compared with the log. `CAIRN_TEST_SEED` repeats the
 * order of the faults, except for the kills of nodes that `CAIRN_NODE_KILLS` adds over the run.
 *
 *   CAIRN_CLUSTER_OPERATIONS=200000 CAIRN_NODE_KILLS=30 node --import tsx --test .ci/torture/cluster.torture.ts
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { Proxy, type ProxyMode } from './proxy.ts';
import { makeNode, startNode, type Node } from '../../test/support/cluster/nodes.ts';
import { noEtcd, RealEtcd } from './real-etcd.ts';
import { type Generator, createGenerator } from '../../test/support/basics.ts';
import { hashThings, judge, Witness } from './cluster-judge.ts';
import type { NodeOrder, NodeReport } from './cluster-node.ts';

const seed = process.env['CAIRN_TEST_SEED'] ?? '1';
const operationsWanted = Number(process.env['CAIRN_CLUSTER_OPERATIONS'] ?? 20_000);
const killsWanted = Number(process.env['CAIRN_NODE_KILLS'] ?? 0);
const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];

/** A node's process, restarted whenever it ends, as a service manager does. */
class Member {
  readonly name: string;
  readonly proxies: readonly Proxy[];
  readonly exits: (number | string)[] = [];
  readonly reports: NodeReport[] = [];
  readonly histories: string[] = [];
  readonly #order: Omit<NodeOrder, 'history' | 'name'>;
  readonly #directory: string;
  #child: ChildProcess | undefined;
  #isEnding = false;

  constructor(name: string, directory: string, proxies: readonly Proxy[], order: Omit<NodeOrder, 'history' | 'name'>) {
    this.name = name;
    this.proxies = proxies;
    this.#directory = directory;
    this.#order = order;
  }

  start(): void {
    // Each process has its own name, and so have its operations.
    const name = `${this.name}-${this.exits.length}`;
    const history = join(this.#directory, `${name}.jsonl`);
    this.histories.push(history);
    const script = join(import.meta.dirname, 'cluster-node.ts');
    const child = spawn(process.execPath, [...typescript, script], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    child.stdin.write(`${JSON.stringify({ ...this.#order, name, history } satisfies NodeOrder)}\n`);
    child.stdin.on('error', () => undefined);
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{')) this.reports.push(JSON.parse(line) as NodeReport);
    });
    child.on('exit', (code, signal) => {
      this.exits.push(code ?? signal ?? '');
      this.#child = undefined;
      if (!this.#isEnding) setTimeout(() => this.start(), 500);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  set mode(mode: ProxyMode) {
    for (const proxy of this.proxies) proxy.mode = mode;
  }

  /** Ends its callers, and returns its last report. */
  async end(): Promise<NodeReport> {
    this.#isEnding = true;
    while (this.#child === undefined) await delay(50);
    const child = this.#child;
    const before = this.reports.length;
    child.stdin?.write('end\n');
    if (child.exitCode === null) await once(child, 'exit');
    const last = this.reports.at(-1);
    assert.ok(last !== undefined && this.reports.length > before, `${this.name} ended with ${this.exits.at(-1)}`);
    return last;
  }

  get operations(): number {
    return this.histories.reduce((sum, file) => sum + (existsSync(file) ? countLines(file) / 2 : 0), 0);
  }

  kill(): void {
    this.#isEnding = true;
    this.signal('SIGKILL');
  }
}

function countLines(file: string): number {
  let lines = 0;
  for (const byte of readFileSync(file)) if (byte === 0x0a) lines += 1;
  return lines;
}

interface Cluster {
  readonly etcd: RealEtcd;
  readonly nodes: readonly Member[];
  readonly witness: Witness;
  /** The node without faults. */
  readonly undisturbed: Node;
}

interface ClusterOptions {
  readonly members: number;
  readonly nodes: number;
  readonly callers: number;
  readonly flags?: readonly string[];
}

async function startCluster(t: TestContext, { members, nodes: count, callers, flags = [] }: ClusterOptions) {
  const directory = mkdtempSync(join(tmpdir(), 'cairn-cluster-'));
  const etcd = await RealEtcd.start({ members, flags });
  const undisturbed = makeNode(etcd.addresses);
  const witness = new Witness();
  undisturbed.store.onPublished(witness.see);
  await undisturbed.store.start();
  const nodes: Member[] = [];
  for (let index = 0; index < count; index += 1) {
    const proxies = await Promise.all(etcd.addresses.map((address) => Proxy.start(address)));
    const addresses = proxies.map(({ address }) => address);
    // Each clock is wrong by other hours.
    const skewMs = (index - 1) * 5 * 3600_000;
    const order = { seed, members: addresses, first: index, callers, skewMs };
    nodes.push(new Member(`n${index}`, directory, proxies, order));
  }
  for (const node of nodes) node.start();
  t.after(async () => {
    for (const node of nodes) node.kill();
    for (const node of nodes) for (const proxy of node.proxies) await proxy.stop();
    await undisturbed.close();
    await etcd.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  while (nodes.some(({ reports }) => reports.length === 0)) await delay(50);
  return { etcd, nodes, witness, undisturbed } satisfies Cluster;
}

type Fault = (cluster: Cluster, random: Generator) => Promise<void>;

const between = (random: Generator, from: number, to: number): Promise<void> => delay(from + random.below(to - from));

async function whilePaused(etcd: RealEtcd, members: readonly number[], work: Promise<void>): Promise<void> {
  for (const member of members) etcd.signal(member, 'SIGSTOP');
  await work;
  for (const member of members) etcd.signal(member, 'SIGCONT');
}

async function whileSteered(node: Member, mode: ProxyMode, work: Promise<void>): Promise<void> {
  node.mode = mode;
  await work;
  node.mode = 'pass';
}

const faults: Readonly<Record<string, Fault>> = {
  async 'the leader of etcd is killed'({ etcd }, random) {
    const leader = Math.max(0, await etcd.leader());
    await etcd.kill(leader);
    await between(random, 500, 3000);
    etcd.launch(leader);
  },
  async 'a member of etcd is killed'({ etcd }, random) {
    const member = random.below(etcd.addresses.length);
    await etcd.kill(member);
    await between(random, 500, 3000);
    etcd.launch(member);
  },
  async 'all members of etcd are killed'({ etcd }, random) {
    for (const member of etcd.addresses.keys()) await etcd.kill(member);
    await between(random, 200, 1500);
    for (const member of etcd.addresses.keys()) etcd.launch(member);
  },
  async 'the leader of etcd is paused'({ etcd }, random) {
    await whilePaused(etcd, [Math.max(0, await etcd.leader())], between(random, 1000, 7000));
  },
  async 'a majority of etcd is paused'({ etcd }, random) {
    await whilePaused(etcd, [0, 1], between(random, 1000, 8000));
  },
  async 'a node is killed'({ nodes }, random) {
    random.pick(nodes).signal('SIGKILL');
    await between(random, 200, 1000);
  },
  async 'a node is paused'({ nodes }, random) {
    const node = random.pick(nodes);
    node.signal('SIGSTOP');
    await between(random, 300, 4500);
    node.signal('SIGCONT');
  },
  'a node is cut off, and hears nothing': ({ nodes }, random) =>
    whileSteered(random.pick(nodes), 'hold', between(random, 500, 8000)),
  'a node is cut off, and is refused': ({ nodes }, random) =>
    whileSteered(random.pick(nodes), 'refuse', between(random, 500, 6000)),
  'a node is heard, and hears nothing': ({ nodes }, random) =>
    whileSteered(random.pick(nodes), 'mute', between(random, 300, 3000)),
  async 'one link is cut'({ nodes }, random) {
    const proxy = random.pick(random.pick(nodes).proxies);
    proxy.mode = random.pick(['hold', 'refuse', 'mute']);
    await between(random, 500, 4000);
    proxy.mode = 'pass';
  },
  async 'the links of a node are slow'({ nodes }, random) {
    const { proxies } = random.pick(nodes);
    for (const proxy of proxies) proxy.delayMs = 5 + random.below(120);
    await between(random, 500, 3000);
    for (const proxy of proxies) proxy.delayMs = 0;
  },
  async 'connections are reset'({ nodes }, random) {
    for (let times = 0; times < 10; times += 1) {
      for (const proxy of random.pick(nodes).proxies) proxy.reset();
      await between(random, 5, 100);
    }
  },
  async 'old groups are trimmed, and etcd is compacted'({ etcd, undisturbed }) {
    await undisturbed.store.checkpoint();
    await undisturbed.store.checkpoint();
    await compact(etcd);
  },
};

async function compact(etcd: RealEtcd): Promise<void> {
  for (const address of etcd.addresses) {
    const post = (path: string, body: object) =>
      fetch(address + path, { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(2000) });
    try {
      const status = Object(await (await post('/v3/maintenance/status', {})).json());
      await post('/v3/kv/compaction', { revision: status.header.revision });
      return;
    } catch {
      // Try the next member.
    }
  }
}

/** Ends the callers, and compares all operations with the log. */
async function settle(t: TestContext, { etcd, nodes, witness, undisturbed }: Cluster): Promise<number> {
  const last = await Promise.all(nodes.map((node) => node.end()));
  await undisturbed.store.confirm();
  const fresh = await startNode(t, etcd.addresses);
  const hashes = [...last.map(({ hash }) => hash), hashThings(undisturbed.things), hashThings(fresh.things)];
  const { problems, ...counts } = judge(nodes.flatMap(({ histories }) => histories).filter(existsSync), witness);
  const sum = (of: (report: NodeReport) => number): number => last.reduce((total, report) => total + of(report), 0);
  const exits = nodes.map(({ exits }) => exits.join(' '));
  t.diagnostic(JSON.stringify({ ...counts, problems: problems.length, sequence: fresh.store.status().sequence, exits,
    lostAppends: sum(({ lost }) => lost), reruns: sum(({ reruns }) => reruns) }));
  assert.deepEqual(problems.slice(0, 20), []);
  assert.deepEqual(undisturbed.failures, []);
  // A node may have confirmed before the last write of another one.
  assert.equal(new Set(hashes.slice(-2)).size, 1);
  for (const { exits } of nodes) for (const exit of exits) assert.ok([0, 75, 'SIGKILL'].includes(exit), `exit ${exit}`);
  return counts.operations;
}

test(
  `a cluster stays consistent over ${operationsWanted} operations while everything fails (CAIRN_TEST_SEED=${seed})`,
  { skip: noEtcd },
  async (t) => {
    const cluster = await startCluster(t, { members: 3, nodes: 3, callers: 32 });
    const random = createGenerator('cluster faults', seed);
    const counts = new Map<string, number>();
    const begun = performance.now();
    const nodeKill = 'a node is killed';
    for (;;) {
      const operations = cluster.nodes.reduce((sum, node) => sum + node.operations, 0);
      const kills = counts.get(nodeKill) ?? 0;
      if (operations >= operationsWanted && kills >= killsWanted) break;
      const picked = random.pick(Object.keys(faults));
      const name = kills < killsWanted * (operations / operationsWanted) ? nodeKill : picked;
      counts.set(name, (counts.get(name) ?? 0) + 1);
      await faults[name]?.(cluster, random);
      await between(random, 300, 2500);
    }
    t.diagnostic(`${((performance.now() - begun) / 1000).toFixed(0)} s, ${JSON.stringify(Object.fromEntries(counts))}`);
    const operations = await settle(t, cluster);
    assert.ok(operations >= operationsWanted);
  },
);
