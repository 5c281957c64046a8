import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { CairnError } from '../../../src/base/errors.ts';
import { type Clock, systemClock, systemRandom } from '../../../src/base/system.ts';
import {
  ClusterError, rangeEnd, Etcd, type EtcdOptions, hasValue, isAt, type KeyValue, put, range, remove,
} from '../../../src/options/cluster/etcd.ts';
import { SharedLog, type SharedLogOptions } from '../../../src/options/cluster/shared-log.ts';
import type { Tables } from '../../../src/store/memory/table.ts';
import { openStore } from '../../../src/store/open-store.ts';
import type { Collection, StoredRecord } from '../../../src/store/store.ts';
import type { Writer } from '../../../src/store/writer.ts';
import { waitUntil } from '../basics.ts';
import { type Fault, SmallEtcd, type SmallRequest } from './small-etcd.ts';

export interface Thing extends StoredRecord {
  readonly name: string;
  /** The operation that wrote it, if the test needs it. */
  readonly by?: string;
}

export interface NodeOptions extends Partial<Omit<SharedLogOptions, 'etcd'>> {
  readonly etcd?: Partial<EtcdOptions>;
  /** The index of the member that is asked first. */
  readonly first?: number;
  /** The name of the collection; `things` if absent. */
  readonly collection?: string;
}

/** One node of a cluster: a store over the log in etcd, with a collection of things. */
export interface Node {
  readonly store: Writer;
  readonly things: Collection<Thing>;
  readonly notices: string[];
  /** The failures that ended it. */
  readonly failures: unknown[];
  /** The key ring in etcd. */
  keysSeen: string;
  add(name: string): Promise<Thing>;
  names(): string[];
  close(): Promise<void>;
}

/** Makes the log of a node. */
export function sharedLog(members: readonly string[], options: Omit<NodeOptions, 'collection'> = {}) {
  const { etcd, first = 0, ...log } = options;
  return (tables: Tables) => new SharedLog({
    etcd: new Etcd({ members, ...etcd }, first),
    prefix: 'cairn/',
    kid: null,
    creates: true,
    maxAgeMs: 5000,
    clock: systemClock,
    random: systemRandom,
    onNotice: () => undefined,
    onKeys: () => undefined,
    ...log,
  }, tables);
}

/** Makes a node that has not started. */
export function makeNode(members: readonly string[], options: NodeOptions = {}): Node {
  const { collection = 'things', clock = systemClock, ...log } = options;
  const notices: string[] = [];
  const failures: unknown[] = [];
  const store = openStore({
    clock,
    random: systemRandom,
    onFailure: (error) => void failures.push(error),
    log: sharedLog(members, {
      clock,
      onNotice: (notice) => void notices.push(notice),
      onKeys: (content) => void (node.keysSeen = String(content)),
      ...log,
    }),
  });
  const things = store.collection<Thing>({
    name: collection,
    parse: ({ name, by = '', ...rest }) =>
      typeof name === 'string' && typeof by === 'string' ? { ...rest, name, ...(by !== '' && { by }) } : 'is none',
    unique: { name: ({ name }) => name },
  });
  const node: Node = {
    store, things, notices, failures,
    keysSeen: '',
    add: (name) => store.write((transaction) => transaction.of(things).insert({ name })),
    names: () => things.view().blocks.flat().map(({ name }) => name),
    close: () => store.close(),
  };
  return node;
}

export async function startNode(t: TestContext, members: readonly string[], options: NodeOptions = {}): Promise<Node> {
  const node = makeNode(members, options);
  t.after(() => node.close());
  await node.store.start();
  return node;
}

/** A clock that a test can advance. */
export class SetClock implements Clock {
  offsetMs = 0;
  now(): number {
    return Date.now() + this.offsetMs;
  }
  elapsed(): number {
    return performance.now() + this.offsetMs;
  }
}

/** A figure of a node's log, which the metrics show as `cairn_cluster_…`. */
export function readFigure(store: Pick<Writer, 'status'>, name: string): number {
  const found = store.status().figures?.find(([, each]) => each === `cairn_cluster_${name}`);
  assert.ok(found !== undefined, name);
  return found[3];
}

export async function startEtcd(t: TestContext, members = 1): Promise<SmallEtcd> {
  const etcd = await SmallEtcd.start(members);
  t.after(() => etcd.stop());
  return etcd;
}

interface Operation {
  readonly request_put?: { readonly key: string };
  readonly request_range?: { readonly key: string };
}

/** The keys that `success` of a transaction puts. */
export function listPuts({ body }: SmallRequest): string[] {
  const { success = [] } = body as { success?: Operation[] };
  return success.flatMap(({ request_put: put }) => (put ? [Buffer.from(put.key, 'base64').toString()] : []));
}

export const isAppend = (request: SmallRequest): boolean =>
  listPuts(request).some((key) => key.startsWith('cairn/log/'));
export const putsPointer = (request: SmallRequest): boolean => listPuts(request).includes('cairn/snapshot');

export function readsPart({ body }: SmallRequest): boolean {
  const { success = [] } = body as { success?: Operation[] };
  const isPart = (key: string): boolean => Buffer.from(key, 'base64').toString().startsWith('cairn/snapshot/');
  return success.some(({ request_range: range }) => range !== undefined && isPart(range.key));
}

/** Answers the first matching requests with these faults. */
export function injectFaults(
  etcd: SmallEtcd,
  which: (request: SmallRequest) => boolean,
  ...faults: readonly Fault[]
): void {
  const rest = [...faults];
  etcd.onRequest = (request) => (which(request) ? rest.shift() : undefined);
}

export const noLeader: Fault = { status: 503, code: 14, message: 'etcdserver: no leader' };
export const spaceExceeded: Fault = { status: 429, code: 8, message: 'etcdserver: mvcc: database space exceeded' };

export const isRefusal = (exitCode: number, message: RegExp) => (error: unknown): boolean => {
  assert.ok(error instanceof ClusterError, String(error));
  assert.match(error.message, message);
  return error.exitCode === exitCode;
};

export const hasCode =
  (code: string) =>
  (error: unknown): boolean =>
    error instanceof CairnError && error.code === code;

export const readGroups = (etcd: SmallEtcd): string[] => etcd.list('cairn/log/').map((key) => etcd.get(key) ?? '');

/** Asserts that all nodes have the same records as a node that starts now. */
export async function assertEqual(t: TestContext, etcd: SmallEtcd, ...nodes: readonly Node[]): Promise<void> {
  const fresh = await startNode(t, etcd.addresses);
  for (const node of nodes) {
    await node.store.confirm();
    assert.deepEqual(node.things.view().blocks.flat(), fresh.things.view().blocks.flat());
    assert.equal(node.store.status().sequence, fresh.store.status().sequence);
  }
}

/** Two nodes, and the clock of the second. */
export async function startTwo(t: TestContext) {
  const etcd = await startEtcd(t);
  const clock = { ...systemClock };
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses, { clock })];
  return { etcd, one, two, clock };
}

/** Asserts that `two` of `startTwo` gets the writes of `one` from the watch: for it, no time passes to confirm. */
export async function assertWatched({ one, two, clock }: Awaited<ReturnType<typeof startTwo>>): Promise<void> {
  const stoppedAt = clock.elapsed();
  clock.elapsed = () => stoppedAt;
  await two.store.confirm();
  for (let n = 0; n < 5; n += 1) {
    const count = two.names().length;
    await one.add(`watched ${n}`);
    await waitUntil(() => two.names().length > count);
  }
  clock.elapsed = systemClock.elapsed;
}

/**
 * Checks what Cairn relies on in the JSON gateway of the etcd at `address`: the small one of the
 * tests, or a real one. Its database must be empty.
 */
export async function checkConformance(t: TestContext, address: string): Promise<void> {
  const etcd = new Etcd({ members: [address] }, 0);
  t.after(() => etcd.close());
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const post = async (path: string, body: unknown) => {
    const response = await fetch(address + path, { method: 'POST', body: JSON.stringify(body) });
    return { status: response.status, json: Object(await response.json()) };
  };
  const refused = async (path: string, body: unknown): Promise<unknown[]> => {
    const { status, json } = await post(path, body);
    return [status, json.code, json.message];
  };
  const textsOf = (keys: readonly KeyValue[] = []): string[] => keys.map(({ key, value }) => `${key}=${value}`);

  await t.test('a txn does `success` where its conditions hold, and else `failure`', async () => {
    const first = await etcd.txn({ compare: [isAt('t/a', 0)], success: [put('t/a', 'one')] });
    assert.equal(first.succeeded, true);
    const condition = [isAt('t/a', first.revision), hasValue('t/a', 'one')];
    const second = await etcd.txn({ compare: condition, success: [put('t/a', 'two'), put('t/b', '2')] });
    assert.deepEqual([second.succeeded, second.revision], [true, first.revision + 1]);
    const lost = await etcd.txn(
      { compare: condition, success: [put('t/a', 'x')], failure: [range('t/a'), range('t/none'), range('t/', 't0')] },
    );
    assert.deepEqual([lost.succeeded, lost.revision], [false, second.revision]);
    assert.deepEqual(lost.found.map(textsOf), [['t/a=two'], [], ['t/a=two', 't/b=2']]);
    assert.deepEqual(lost.found[0]?.[0]?.revision, second.revision);
  });

  await t.test('a range sees what the same txn has put before it', async () => {
    const { found, revision } = await etcd.txn({ success: [put('t/c', '3'), range('t/c')] });
    assert.deepEqual([textsOf(found[1]), found[1]?.[0]?.revision], [['t/c=3'], revision]);
    await etcd.txn({ success: [remove('t/c', '')] });
  });

  await t.test('an absent key has no value, not even an empty one, and revision 0', async () => {
    const read = [range('t/none')];
    const holds = async (compare: ReturnType<typeof isAt>) =>
      (await etcd.txn({ compare: [compare], success: read, failure: read })).succeeded;
    assert.equal(await holds(hasValue('t/none', '')), false);
    assert.equal(await holds(isAt('t/none', 0)), true);
    assert.equal(await holds(isAt('t/a', 0)), false);
  });

  await t.test('members that are zero, false or empty are absent', async () => {
    const lost = await post('/v3/kv/txn', {
      compare: [{ key: base64('t/a'), target: 'CREATE', result: 'EQUAL', create_revision: '0' }], failure: [],
    });
    assert.deepEqual([lost.status, Object.keys(lost.json)], [200, ['header']]);
    assert.deepEqual(Object.keys(lost.json.header).sort(), ['cluster_id', 'member_id', 'raft_term', 'revision']);
    const none = await post('/v3/kv/range', { key: base64('t/none') });
    assert.deepEqual(Object.keys(none.json), ['header']);
    const answer = await post('/v3/kv/txn', { success: [remove('t/none', ''), put('t/empty', ''), range('t/empty')] });
    const { succeeded, responses } = answer.json;
    assert.equal(succeeded, true);
    assert.deepEqual([Object.keys(responses[0]), responses.length], [["response_delete_range"], 3]);
    const [kv] = (await post('/v3/kv/range', { key: base64('t/empty') })).json.kvs;
    assert.deepEqual(Object.keys(kv).sort(), ['create_revision', 'key', 'mod_revision', 'version']);
  });

  await t.test('a range has a limit and a revision of the past', async () => {
    const { revision } = await etcd.txn({ success: [put('r/1', 'a'), put('r/2', 'b'), put('r/3', 'c')] });
    await etcd.txn({ success: [remove('r/2', ''), put('r/4', 'd')] });
    const end = rangeEnd('r/');
    const success = [range('r/', end, { limit: '2' }), range('r/', end, { revision: String(revision) })];
    const { found } = await etcd.txn({ success });
    assert.deepEqual(found.map(textsOf), [['r/1=a', 'r/3=c'], ['r/1=a', 'r/2=b', 'r/3=c']]);
    const below = { key: base64('r/'), range_end: base64('r0') };
    const page = await post('/v3/kv/range', { ...below, limit: '1', keys_only: true });
    assert.deepEqual([page.json.more, page.json.count, page.json.kvs.length, page.json.kvs[0].value],
      [true, '3', 1, undefined]);
    const future = await refused('/v3/kv/range', { key: base64('r/1'), revision: String(revision + 1000) });
    assert.deepEqual(future, [400, 11, 'etcdserver: mvcc: required revision is a future revision']);
  });

  await t.test('removals of a range in a txn with puts', async () => {
    await etcd.txn({ success: [put('d/1', 'a'), put('d/2', 'b'), put('d/3', 'c')] });
    const answer = await etcd.txn({ success: [put('e', 'x'), remove('d/1', 'd/3'), range('d/', rangeEnd('d/'))] });
    assert.deepEqual(answer.found.map(textsOf), [[], [], ['d/3=c']]);
  });

  await t.test('compacted revisions are refused', async () => {
    const { revision } = await etcd.txn({ success: [put('c/1', 'a')] });
    await etcd.txn({ success: [put('c/1', 'b')] });
    const later = await etcd.txn({ success: [put('c/1', 'c')] });
    await post('/v3/kv/compaction', { revision: String(later.revision) });
    await assert.rejects(
      etcd.txn({ success: [range('c/1', '', { revision: String(revision) })] }),
      /answers 400: etcdserver: mvcc: required revision has been compacted/,
    );
    await etcd.watch('c/', revision, () => undefined);
  });

  await t.test('a watch tells the puts from a revision on, and no removals', async () => {
    const { revision } = await etcd.txn({ success: [put('w/1', 'a')] });
    await etcd.txn({ success: [put('w/2', 'b'), put('v', 'not asked for')] });
    await etcd.txn({ success: [remove('w/1', 'w/2')] });
    const other = new Etcd({ members: [address] }, 0);
    // A put whose answer took too long was sent again, and then its event comes twice.
    const told = new Set<string>();
    let heard = 0;
    const watching = other.watch('w/', revision, (keys) => {
      for (const text of textsOf(keys)) told.add(text);
      heard = keys.at(-1)?.revision ?? heard;
    }).catch(() => undefined);
    while (told.size < 2) await delay(5);
    const large = 'x'.repeat(1_000_000);
    let last = 0;
    for (const key of ['w/3', 'w/4']) last = (await etcd.txn({ success: [put(key, large)] })).revision;
    while (heard < last) await delay(5);
    other.close();
    await watching;
    assert.deepEqual([...told], ['w/1=a', 'w/2=b', `w/3=${large}`, `w/4=${large}`]);
  });

  await t.test('requests that are too large or wrong are refused, and nothing is written', async () => {
    const { revision } = await etcd.txn({ success: [range('t/a')] });
    const txn = (success: unknown[]) => refused('/v3/kv/txn', { success });
    assert.deepEqual(await txn([put('t/big', Buffer.alloc(1_573_400))]), [400, 3, 'etcdserver: request is too large']);
    assert.deepEqual(await txn(Array.from({ length: 129 }, (_, n) => put(`t/${n}`, ''))),
      [400, 3, 'etcdserver: too many operations in txn request']);
    assert.deepEqual(await txn([put('t/a', '1'), put('t/a', '2')]),
      [400, 3, 'etcdserver: duplicate key given in txn request']);
    assert.equal((await etcd.txn({ success: [range('t/a')] })).revision, revision);
    assert.equal((await etcd.txn({ success: [put('t/big', Buffer.alloc(1_572_000))] })).succeeded, true);
    assert.equal((await etcd.txn({ success: [range('t/big')] })).found[0]?.[0]?.value.length, 1_572_000);
  });

  await t.test('a survey is answered', () => etcd.survey('cairn/meta'));

  await t.test('eight groups of 1 MiB come in one answer', async () => {
    for (let n = 0; n < 8; n += 1) await etcd.txn({ success: [put(`g/${n}`, Buffer.alloc(1024 ** 2, n))] });
    const { found } = await etcd.txn({ success: [range('g/', rangeEnd('g/'), { limit: '8' })] });
    assert.deepEqual(found[0]?.map(({ value }) => [value.length, value[5]]),
      Array.from({ length: 8 }, (_, n) => [1024 ** 2, n]));
  });
}
