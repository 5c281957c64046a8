/**
 * One node of a cluster under torture, in its own process. Its callers write and read without a pause, and note in a
 * file when each operation begins and ends. The first line on standard input is its order in JSON; the next line ends
 * the callers. It exits like a server: with 75 if the log went on without it.
 */
import { openSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

import { CairnError } from '../../src/base/errors.ts';
import { systemClock } from '../../src/base/system.ts';
import { ClusterError } from '../../src/options/cluster/etcd.ts';
import type { Transaction } from '../../src/store/store.ts';
import { readFigure, makeNode } from '../../test/support/cluster/nodes.ts';
import { type Generator, createGenerator } from '../../test/support/basics.ts';
import { hashThings, type Ended, type Kind, type Started } from './cluster-judge.ts';

export interface NodeOrder {
  readonly name: string;
  readonly seed: string;
  readonly members: readonly string[];
  readonly first: number;
  readonly callers: number;
  readonly history: string;
  /** The error of its clock. */
  readonly skewMs: number;
  readonly user?: { readonly name: string; readonly password: string };
}

/** A line of JSON on the node's output. */
export interface NodeReport {
  readonly state: 'started' | 'stopped';
  readonly sequence: number;
  readonly hash: string;
  readonly reruns: number;
  readonly lost: number;
  readonly unanswered: number;
}

/** A refusal, with the revision of the record that the transaction saw. */
class Refusal extends Error {
  readonly sees: number;

  constructor(sees: number) {
    super('refused');
    this.sees = sees;
  }
}

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const order: NodeOrder = JSON.parse((await input.next()).value);
const history = openSync(order.history, 'a');
const note = (line: Started | Ended): void => void writeSync(history, `${JSON.stringify(line)}\n`);
/** Microseconds of the machine's one monotonic clock, the same in every process. */
const now = (): number => Number(process.hrtime.bigint() / 1000n);

let going = true;
const clock = { now: () => systemClock.now() + order.skewMs, elapsed: () => systemClock.elapsed() };
const node = makeNode(order.members, { clock, first: order.first, ...(order.user && { etcd: { user: order.user } }) });
const failed = setInterval(() => {
  const [failure] = node.failures;
  if (failure !== undefined) process.exit(failure instanceof ClusterError ? failure.exitCode : 70);
}, 5);

try {
  await node.store.start();
} catch (error) {
  process.stderr.write(`${order.name}: ${String(error)}\n`);
  process.exit(error instanceof ClusterError ? error.exitCode : 74);
}
report('started');
void input.next().then(({ done }) => {
  // The test process has ended.
  if (done === true) process.exit(70);
  going = false;
});
await Promise.all(Array.from({ length: order.callers }, (_, caller) => call(caller)));
for (;;) {
  try {
    await node.store.confirm();
    break;
  } catch {
    await delay(100);
  }
}
report('stopped');
clearInterval(failed);
await node.close();
process.exit(0);

function report(state: NodeReport['state']): void {
  const { sequence } = node.store.status();
  const told: NodeReport = {
    state,
    sequence,
    hash: hashThings(node.things),
    reruns: readFigure(node.store, 'reruns_total'),
    lost: readFigure(node.store, 'lost_appends_total'),
    unanswered: readFigure(node.store, 'unknown_appends_total'),
  };
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

/** Runs one operation after another. */
async function call(caller: number): Promise<void> {
  const random = createGenerator(`${order.name} ${caller}`, order.seed);
  for (let count = 0; going; count += 1) {
    const id = `${order.name}.${caller}.${count}`;
    const operation = choose(random, id);
    note(['s', id, operation.kind, operation.key, now()]);
    try {
      const { sees, revision } = await operation.run();
      note(['e', id, 'done', sees, revision, now()]);
    } catch (error) {
      const isRefused = error instanceof Refusal;
      const [outcome, sees] = isRefused ? ['refused' as const, error.sees] : [outcomeOf(error), 0];
      note(['e', id, outcome, sees, 0, now()]);
      if (outcome !== 'refused') await delay(random.below(50));
    }
    // Members and other nodes need processor time, too.
    if (random.below(8) === 0) await delay(random.below(5));
    if (random.below(20_000) === 0) void node.store.checkpoint();
  }
}

function outcomeOf(error: unknown): 'unknown' | 'failed' {
  if (!(error instanceof CairnError)) throw error;
  return error.code === 'outcome_unknown' ? 'unknown' : 'failed';
}

interface Seen {
  /** The revision of the record with the operation's key before it; 0 without one. */
  readonly sees: number;
  /** The revision that the operation wrote; 0 if it wrote nothing. */
  readonly revision: number;
}

interface Operation {
  readonly kind: Kind;
  readonly key: string;
  run(): Promise<Seen>;
}

function choose(random: Generator, by: string): Operation {
  const { store, things } = node;
  const write = (work: (transaction: Transaction) => Seen): Promise<Seen> => store.write(work);
  const draw = random.below(100);
  const key = draw < 45 ? by : `${draw < 70 ? 'slot' : 'register'} ${random.below(12)}`;
  const find = (transaction: Transaction) => transaction.of(things).find('name', key);
  const add = (transaction: Transaction): Seen => ({
    sees: 0, revision: transaction.of(things).insert({ name: key, by }).revision,
  });
  if (draw < 45) return { kind: 'add', key, run: () => write(add) };
  if (draw < 60) {
    // The unique key may be taken.
    const run = () => write((transaction) => {
      const holder = find(transaction);
      if (holder !== undefined) throw new Refusal(holder.revision);
      return add(transaction);
    });
    return { kind: 'claim', key, run };
  }
  if (draw < 70) {
    const run = () => write((transaction) => {
      const holder = find(transaction);
      if (holder === undefined) throw new Refusal(0);
      transaction.of(things).remove(holder.id);
      // A removal does not name its operation, so a record in the same commit does.
      const { revision } = transaction.of(things).insert({ name: `removed by ${by}`, by });
      return { sees: holder.revision, revision };
    });
    return { kind: 'remove', key, run };
  }
  if (draw < 85) {
    const run = () => write((transaction) => {
      const found = find(transaction);
      if (found === undefined) return add(transaction);
      return { sees: found.revision, revision: transaction.of(things).replace(found.id, { name: key, by }).revision };
    });
    return { kind: 'set', key, run };
  }
  if (draw < 93) {
    const run = () => write((transaction) => ({ sees: find(transaction)?.revision ?? 0, revision: 0 }));
    return { kind: 'read', key, run };
  }
  const run = async () => {
    await store.confirm();
    return { sees: things.find('name', key)?.revision ?? 0, revision: 0 };
  };
  return { kind: 'read', key, run };
}
