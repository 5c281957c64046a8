/** One node of the cluster's benchmark: writes with several clients, and reports in one line of JSON. */
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

import { systemClock as clock, systemRandom as random } from '../../src/base/system.ts';
import { NodeFiles } from '../../src/store/disk/node-files.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { StoredRecord } from '../../src/store/store.ts';
import { readFigure, sharedLog } from '../../test/support/cluster/nodes.ts';

export interface BenchOrder {
  /** Addresses of etcd. If absent, the journal in `directory` is used. */
  readonly members?: readonly string[];
  readonly directory: string;
  readonly prefix: string;
  readonly first: number;
  readonly clients: number;
  readonly measureMs: number;
}

export interface BenchReport {
  readonly commits: number;
  readonly groups: number;
  readonly lostAppends: number;
  readonly reruns: number;
  /** In ms, ascending: of each write, and of each foreign record from its decision to its publication. */
  readonly latencies: readonly number[];
  readonly lags: readonly number[];
}

interface Thing extends StoredRecord {
  readonly name: string;
  /** In µs of the machine's one monotonic clock. */
  readonly at: number;
}

const microseconds = (): number => Number(process.hrtime.bigint() / 1000n);
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { members, directory, prefix, first, clients, measureMs }: BenchOrder = JSON.parse((await input.next()).value);
const place = members === undefined
  ? { files: new NodeFiles(directory) }
  : { log: sharedLog(members, { prefix, first }) };
const store = openStore({ clock, random, ...place, onFailure: (error) => console.error(error) });
const things = store.collection<Thing>({
  name: 'things',
  parse: ({ name, at, ...rest }) =>
    typeof name === 'string' && typeof at === 'number' ? { ...rest, name, at } : 'is none',
});
const lags: number[] = [];
let isMeasured = false;
store.onPublished((changes) => {
  const now = microseconds();
  for (const { record } of changes) {
    if (!isMeasured || record === undefined || !('at' in record) || !('name' in record)) continue;
    if (record.name !== `thing of ${process.pid}`) lags.push((now - Number(record.at)) / 1000);
  }
});
await store.start();
process.stdout.write('"ready"\n');
await input.next();

let isGoing = true;
const latencies: number[] = [];
const callers = Array.from({ length: clients }, async () => {
  while (isGoing) {
    const started = performance.now();
    await store.write((tx) => {
      tx.of(things).insert({ name: `thing of ${process.pid}`, at: microseconds() });
    });
    if (isMeasured) latencies.push(performance.now() - started);
  }
});
await delay(measureMs / 4);
const before = figures();
isMeasured = true;
await delay(measureMs);
isMeasured = false;
const after = figures();
isGoing = false;
await Promise.all(callers);
const ascending = (values: number[]): number[] => values.sort((a, b) => a - b);
const report: BenchReport = {
  commits: latencies.length,
  groups: after.groups - before.groups,
  lostAppends: after.lostAppends - before.lostAppends,
  reruns: after.reruns - before.reruns,
  latencies: ascending(latencies),
  lags: ascending(lags),
};
process.stdout.write(`${JSON.stringify(report)}\n`);
await input.next();
await store.close();
process.exit(0);

function figures() {
  const { groups } = store.status();
  const count = (name: string): number => (members === undefined ? 0 : readFigure(store, name));
  return { groups, lostAppends: count('lost_appends_total'), reruns: count('reruns_total') };
}
