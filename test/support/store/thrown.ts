/**
 * Transactions in which a hook throws, at any change of any operation, and whose work catches the error or not. Either
 * all operations that were not refused are there, or none, in memory and in a copy of the files.
 */
import assert from 'node:assert/strict';
import { CairnError, InvariantError } from '../../../src/base/errors.ts';
import type { RecordChange, StoredRecord, Transaction } from '../../../src/store/store.ts';
import { BlogModel, makeBlog, randomOperation, type Blog, type Operation } from './blog.ts';
import { seeded, small } from './fixtures.ts';
import { SimulatedDisk } from './simulated-disk.ts';

/** What a hook may throw: whatever it is, nothing of the transaction is stored. */
const mistakes: readonly unknown[] = [
  new Error('a hook throws'), new CairnError('write_refused', 'a hook refuses'), null, Object.create(null),
];

/** One transaction, as it is planned. */
interface Plan {
  readonly steps: readonly { readonly operation: Operation; readonly catches: boolean }[];
  /** The change at which the hook fails. */
  readonly failsAt: number;
  /** What it throws; `undefined` if it sets a value that cannot be encoded instead. */
  readonly mistake: unknown;
}

const seen = { transactions: 0, done: 0, refused: 0, failed: 0, caught: 0, kills: 0 };

export async function throwAtRandom(seed: number, transactions: number): Promise<typeof seen> {
  const next = seeded(seed);
  const disk = new SimulatedDisk();
  const blog = makeBlog({ files: disk, ...small });
  await blog.store.start();
  const model = new BlogModel();
  const counts = { ...seen };
  while (counts.transactions < transactions) {
    // Several at a time, so that those that fail share a batch with those that do not.
    const plans = Array.from({ length: 1 + Math.floor(next() * 6) }, () => plan(next, blog));
    const judges = await Promise.all(plans.map((each) => transact(blog, each, counts)));
    for (const judge of judges) judge(model);
    counts.transactions += plans.length;
    assert.equal(blog.content(), model.content(), `seed ${seed}: in memory`);
    if (next() < 0.05) await blog.store.checkpoint();
    if (next() > 0.1 && counts.transactions < transactions) continue;
    await openCopy(disk, blog, `seed ${seed}: on the disk`);
    counts.kills += 1;
  }
  return counts;
}

function plan(next: () => number, blog: Blog): Plan {
  const steps = Array.from({ length: 1 + Math.floor(next() * 3) }, () => {
    const operation = randomOperation(next, blog.ids);
    const catches = next() < 0.7;
    // Each record of a batch is an operation of its own, which may fail by itself.
    return operation.kind === 'create'
      ? operation.records.map((record) => ({ operation: { ...operation, records: [record] }, catches }))
      : [{ operation, catches }];
  }).flat();
  const failsAt = next() < 0.5 ? 1 + Math.floor(next() * 5) : 0;
  const mistake = next() < 0.1 ? undefined : mistakes[Math.floor(next() * mistakes.length)];
  return { steps, failsAt, mistake };
}

/** Runs a transaction. Returns what does the same on a model, in the order of the calls. */
async function transact(
  blog: Blog,
  { steps, failsAt, mistake }: Plan,
  counts: typeof seen,
): Promise<(model: BlogModel) => void> {
  let hasFailed = false;
  let hasCaught = false;
  const work = (perform: (operation: Operation) => unknown, tx: Transaction): string[] => {
    let changes = 0;
    hasFailed = hasCaught = false;
    tx.onChange((change) => {
      changes += 1;
      if (changes !== failsAt || (mistake === undefined && change.record === undefined)) return amended(change);
      hasFailed = true;
      if (mistake !== undefined) throw mistake;
      return change.record && Object.assign({ ...change.record }, { title: 1n });
    });
    return steps.map(({ operation, catches }) => {
      try {
        perform(operation);
        return 'done';
      } catch (error) {
        if (!catches) throw error;
        hasCaught ||= hasFailed;
        return error instanceof CairnError ? error.code : 'failed';
      }
    });
  };
  const result = await blog.transact(work).then((outcomes) => ({ outcomes }), (error: unknown) => ({ error }));
  if (hasFailed) counts.failed += 1;
  if (hasCaught) counts.caught += 1;
  if ('error' in result) {
    const { error } = result;
    const isMistake = mistake === undefined ? isUnencodable(error) : error === mistake;
    if (!isMistake) assert.ok(error instanceof CairnError, String(error instanceof Error && error.stack));
    if (!hasFailed) counts.refused += 1;
    return () => undefined;
  }
  assert.ok(!hasFailed, 'a transaction succeeds although a hook has failed in it');
  counts.done += 1;
  return (model) => {
    for (const [index, { operation }] of steps.entries()) {
      assert.equal(result.outcomes[index], model.run(asAmended(operation)), JSON.stringify(operation));
    }
  };
}

/** What goes along with a removal is compared with what was to be written, before it is encoded. */
const isUnencodable = (error: unknown): boolean => error instanceof TypeError || error instanceof InvariantError;

/** The hook sets another title in place of a long one. */
function amended({ record }: RecordChange): StoredRecord | undefined {
  const isLong = record !== undefined && 'title' in record && String(record.title).startsWith('long');
  return isLong ? Object.assign({ ...record }, { title: 'amended' }) : undefined;
}

function asAmended(operation: Operation): Operation {
  const set = <V extends { readonly [field: string]: unknown }>(values: V) =>
    String(values['title']).startsWith('long') ? { ...values, title: 'amended' } : values;
  if (operation.kind === 'remove' || operation.name !== 'posts') return operation;
  if (operation.kind === 'patch') return { ...operation, values: set(operation.values) };
  return { ...operation, records: operation.records.map(set) };
}

/** What a process that is killed now leaves must open, and hold what was acknowledged and nothing else. */
async function openCopy(disk: SimulatedDisk, blog: Blog, where: string): Promise<void> {
  const content = disk.content();
  content.delete('lock');
  const again = makeBlog({ files: new SimulatedDisk(content), ...small });
  await again.store.start();
  assert.equal(again.state(), blog.state(), where);
}
