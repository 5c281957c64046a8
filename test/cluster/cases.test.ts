import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';

import {
  assertEqual,
  assertWatched,
  hasCode,
  injectFaults,
  readFigure,
  readGroups,
  isAppend,
  makeNode,
  type Node,
  noLeader,
  putsPointer,
  readsPart,
  isRefusal,
  SetClock,
  sharedLog,
  startEtcd,
  startNode,
  startTwo,
} from '../support/cluster/nodes.ts';
import type { SmallEtcd } from '../support/cluster/small-etcd.ts';
import { makeBlog } from '../support/store/crashes.ts';
import { seedNumbers } from '../support/store/fixtures.ts';
import { askBlogs } from '../support/store/histories.ts';
import { waitUntil } from '../support/basics.ts';

/** The cases of the table in `shared-log.ts` by their labels. `slow-cases.test.ts` has the others. */

test('M1: nodes that start together create the log once', async (t) => {
  const etcd = await startEtcd(t);
  const nodes = await Promise.all([1, 2, 3].map(() => startNode(t, etcd.addresses)));
  assert.equal(new Set(nodes.map(({ store }) => store.epoch)).size, 1);
  assert.deepEqual(etcd.list('cairn/'), ['cairn/head', 'cairn/meta']);
  assert.deepEqual(JSON.parse(etcd.get('cairn/meta') ?? ''), { format: 2, epoch: nodes[0]?.store.epoch, kid: null });
});

test('M1: a node without permission does not create the log', async (t) => {
  const etcd = await startEtcd(t);
  const node = makeNode(etcd.addresses, { creates: false });
  await assert.rejects(node.store.start(), isRefusal(78, /no cluster is there/));
  assert.deepEqual(etcd.list(''), []);
});

for (const [what, key, value, message] of [
  ['a newer format', 'cairn/meta', '{"format":3,"epoch":"x","kid":null}', /{"format":3.*all nodes need the same/],
  ['a meta key that cannot be read', 'cairn/meta', 'x', /its key meta is x, which/],
  ['the format of 0.1', 'cairn/meta', '{"format":1,"epoch":"x","kid":null}', /all nodes need the same version/],
  ['another secret', 'cairn/meta', '{"format":2,"epoch":"x","kid":"k"}', /the same CAIRN_SECRET or none/],
  ['something else below the prefix', 'cairn/things', 'x', /holds cairn\/things.*--cluster-prefix/],
] satisfies [string, string, string, RegExp][]) {
  test(`M2: ${what} is refused, and nothing is written`, async (t) => {
    const etcd = await startEtcd(t);
    etcd.put(key, value);
    const { revision } = etcd;
    await assert.rejects(makeNode(etcd.addresses).store.start(), isRefusal(78, message));
    assert.equal(etcd.revision, revision);
  });
}

test('M2: a node with a secret is refused if the keys are in etcd', async (t) => {
  const etcd = await startEtcd(t);
  await startNode(t, etcd.addresses);
  await assert.rejects(makeNode(etcd.addresses, { kid: 'k' }).store.start(), isRefusal(78, /the same CAIRN_SECRET/));
});

const stateOf = ({ store }: Node): string => store.status().state;

/** A cluster with a snapshot of two records, and a group after it. */
async function startWithSnapshot(t: TestContext): Promise<{ etcd: SmallEtcd; node: Node }> {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  await node.add('a');
  await node.add('b');
  await node.store.checkpoint();
  await node.add('c');
  return { etcd, node };
}

const partKey = (etcd: SmallEtcd): string => etcd.list('cairn/snapshot/')[0] ?? '';

for (const [what, damage] of [
  ['a head that is missing', (etcd) => etcd.remove('cairn/head')],
  ['a part of the snapshot that is missing', (etcd) => etcd.remove(partKey(etcd))],
  ['a part of the snapshot that cannot be read', (etcd) => etcd.put(partKey(etcd), 'x')],
  ['a pointer that cannot be read', (etcd) => etcd.put('cairn/snapshot', '{}')],
  ['a gap after the snapshot', (etcd) => etcd.remove(etcd.list('cairn/log/').at(-1) ?? '')],
  ['a group whose chain does not fit', (etcd) => {
    const key = etcd.list('cairn/log/').at(-1) ?? '';
    etcd.put(key, (etcd.get(key) ?? '').replace('"c"', '"d"'));
  }],
] satisfies [string, (etcd: SmallEtcd) => void][]) {
  test(`M3: ${what} is refused`, async (t) => {
    const { etcd, node } = await startWithSnapshot(t);
    await node.close();
    damage(etcd);
    await assert.rejects(makeNode(etcd.addresses).store.start(), isRefusal(78, /restore a backup/));
  });
}

test('M3: a snapshot with a changed record is refused', async (t) => {
  const { etcd, node } = await startWithSnapshot(t);
  await node.close();
  const { gunzipSync, gzipSync } = await import('node:zlib');
  const part = etcd.bytesOf(partKey(etcd));
  etcd.put(partKey(etcd), gzipSync(gunzipSync(part).toString().replace('"b"', '"z"')));
  await assert.rejects(makeNode(etcd.addresses).store.start(), isRefusal(78, /part of its snapshot was changed/));
});

test('M4: a snapshot that is replaced while it is read is read again', async (t) => {
  const { etcd } = await startWithSnapshot(t);
  const [key = ''] = etcd.list('cairn/snapshot/');
  const part = etcd.bytesOf(key);
  let replaced = 0;
  etcd.onRequest = (request) => {
    if (!readsPart(request) || replaced === 4) return undefined;
    // After the pointer was read, another node replaces the snapshot, and removes its parts.
    replaced += 1;
    for (const former of etcd.list('cairn/snapshot/')) etcd.remove(former);
    etcd.put(`cairn/snapshot/s${replaced}/0`, part);
    etcd.put('cairn/snapshot', (etcd.get('cairn/snapshot') ?? '').replace(/"name":"\w+"/, `"name":"s${replaced}"`));
    return undefined;
  };
  const node = await startNode(t, etcd.addresses);
  assert.deepEqual([node.names(), replaced], [['a', 'b', 'c'], 4]);
});

test('A1, A3: the loser of a race applies the winner\'s group and decides again', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  await one.add('a');
  await waitUntil(() => two.names().length === 1);
  etcd.losesEvents = true;
  await one.add('b');
  const seen: string[][] = [];
  const added = two.store.write((transaction) => {
    seen.push([1, 2].flatMap((id) => transaction.of(two.things).get(id)?.name ?? []));
    return transaction.of(two.things).insert({ name: 'c' });
  });
  assert.deepEqual([await added, seen], [{ id: 3, revision: 3, name: 'c' }, [['a'], ['a', 'b']]]);
  assert.deepEqual(two.names(), ['a', 'b', 'c']);
  assert.deepEqual(readFigure(two.store, 'lost_appends_total'), 1);
  assert.deepEqual(readFigure(two.store, 'reruns_total'), 1);
  await assertEqual(t, etcd, one, two);
});

test('A3: a refusal considers everything that other nodes have acknowledged', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  etcd.losesEvents = true;
  await one.add('a');
  // This node does not know of "a" yet, so it sees nothing to refuse.
  await assert.rejects(two.add('a'), /has this key already/);
  await one.store.write((transaction) => transaction.of(one.things).remove(1));
  // Now it knows of "a", which was removed: the confirmation of a read finds that out.
  await two.store.write((transaction) => assert.equal(transaction.of(two.things).find('name', 'a')?.id ?? 0, 0)).catch(
    (error: unknown) => assert.fail(String(error)),
  );
});

test('A2: an append that succeeded without a response counts', async (t) => {
  const etcd = await startEtcd(t, 2);
  const node = await startNode(t, etcd.addresses);
  injectFaults(etcd, isAppend, 'apply-unanswered', 'lose');
  assert.deepEqual(await node.add('a'), { id: 1, revision: 1, name: 'a' });
  await node.add('b');
  assert.deepEqual([node.names(), readGroups(etcd).length], [['a', 'b'], 2]);
  await assertEqual(t, etcd, node);
});

test('A2: an append without a response counts even if another node appended after it', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  let attempts = 0;
  etcd.onRequest = (request) => {
    if (!isAppend(request) || attempts > 2) return undefined;
    attempts += 1;
    // The first attempt succeeds. Before the third, the other node appends.
    return attempts === 1 ? 'apply-unanswered' : attempts === 2 ? undefined : 'lose';
  };
  const [first] = await Promise.all([one.add('a'), waitUntil(() => two.names().length === 1).then(() => two.add('b'))]);
  assert.equal(first.id, 1);
  await assertEqual(t, etcd, one, two);
  assert.equal(readGroups(etcd).length, 2);
});

for (const [what, key, value] of [
  ['a newer version has changed the format', 'cairn/meta', '{"format":3}'],
  ['there is a new epoch', 'cairn/meta', '{"format":2,"epoch":"new","kid":null}'],
] satisfies [string, string, string][]) {
  test(`A4: a running node stops writing if ${what}`, async (t) => {
    const etcd = await startEtcd(t);
    const node = await startNode(t, etcd.addresses);
    await node.add('a');
    etcd.put(key, value);
    await assert.rejects(node.add('b'), hasCode('outcome_unknown'));
    assert.ok(isRefusal(75, /new epoch or format/)(node.failures[0]));
    assert.equal(readGroups(etcd).length, 1);
  });
}

test('A4: after a restore of etcd, a node notices that a known group was replaced', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  await one.add('a');
  await waitUntil(() => two.names().length === 1);
  const before = etcd.save();
  await one.add('b');
  await waitUntil(() => two.names().length === 2);
  etcd.restore(before);
  // etcd's revisions continue from the backup, so the new group gets the revision of the lost one.
  const fresh = await startNode(t, etcd.addresses);
  await fresh.add('x');
  // The write finds it out, or the node has found it out before by reading.
  await assert.rejects(two.add('c'), (error) => hasCode('outcome_unknown')(error) || hasCode('store_failed')(error));
  assert.ok(isRefusal(75, /does not follow/)(two.failures[0]));
  await assertEqual(t, etcd, fresh);
});

test('A6: if the quota is used up, writes fail until there is room, and reads continue', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  await node.add('a');
  etcd.quota = 0;
  await assert.rejects(node.add('b'), hasCode('storage_full'));
  await node.store.confirm();
  assert.equal(stateOf(node), 'full');
  etcd.quota = Number.POSITIVE_INFINITY;
  etcd.disarm();
  await waitUntil(() => stateOf(node) === 'writable');
  await node.add('b');
  const notices = node.notices.join('\n');
  assert.match(notices, /^the quota of etcd is used up.*"etcdctl alarm disarm"\netcd accepts writes again$/);
  assert.deepEqual(node.names(), ['a', 'b']);
  await assertEqual(t, etcd, node);
});

test('A6: an idle node notices a used-up quota without writing', async (t) => {
  const etcd = await startEtcd(t);
  etcd.quota = 100;
  const node = await startNode(t, etcd.addresses);
  const { revision } = etcd;
  etcd.quota = 0;
  await waitUntil(() => stateOf(node) === 'full');
  assert.equal(readFigure(node.store, 'age_seconds') < 1, true, 'reads go on');
  await assert.rejects(node.add('a'), hasCode('storage_full'));
  assert.equal(etcd.revision, revision);
  assert.equal(node.notices.length, 1);
});

test('A7: a request that is refused as too many is sent again', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  injectFaults(etcd, isAppend, { status: 429, code: 8, message: 'etcdserver: too many requests' });
  await node.add('a');
  assert.equal(readGroups(etcd).length, 1);
});

test('A8: an expired token is renewed', async (t) => {
  const etcd = await startEtcd(t);
  etcd.users.set('cairn', 'secret');
  const node = await startNode(t, etcd.addresses, { etcd: { user: { name: 'cairn', password: 'secret' } } });
  await node.add('a');
  etcd.endTokens();
  await node.add('b');
  assert.deepEqual(node.names(), ['a', 'b']);
});

test('A9: only the transaction that is too large is refused', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  const large = node.store.write((transaction) => {
    transaction.of(node.things).insert({ name: 'x'.repeat(1_600_000) });
  });
  const [small] = await Promise.all([
    node.add('a'),
    assert.rejects(large, hasCode('content_too_large')),
    node.add('b'),
  ]);
  assert.equal(small.name, 'a');
  assert.deepEqual(node.names(), ['a', 'b']);
  await node.store.write((transaction) => transaction.of(node.things).insert({ name: 'y'.repeat(1_400_000) }));
  await assertEqual(t, etcd, node);
});

test('W1: the watch delivers a group at once', async (t) => {
  const started = await startTwo(t);
  await started.one.store.confirm();
  await assertWatched(started);
});

test('W2: known groups are ignored', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  for (const name of ['a', 'b', 'c']) await one.add(name);
  await waitUntil(() => two.names().length === 3);
  // As if another client wrote the same again: the watch brings all of it once more.
  for (const key of etcd.list('cairn/log/')) etcd.put(key, etcd.bytesOf(key));
  etcd.put('cairn/log/0000000000000002', 'not even a group');
  await one.add('d');
  await waitUntil(() => two.names().length === 4);
  assert.deepEqual(two.names(), ['a', 'b', 'c', 'd']);
  assert.deepEqual([one.failures, two.failures], [[], []]);
});

test('W3: groups that the watch missed are read', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  await one.store.confirm();
  etcd.losesEvents = true;
  for (let n = 0; n < 20; n += 1) await one.add(`n${n}`);
  etcd.losesEvents = false;
  await one.add('last');
  await waitUntil(() => two.names().length === 21);
  etcd.losesEvents = true;
  await one.add('silently');
  await waitUntil(() => two.names().length === 22);
});

test('W3: a group that does not match the chain is not applied', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  etcd.put('cairn/log/0000000000000001', '{"id":"x-1","sequence":1,"commits":[[["things",1]]],"crc":"00000000"}\n');
  await node.add('a').catch(() => undefined);
  assert.deepEqual(node.names(), ['a'], 'the head does not name that group');
});

test('W4: a watch restarts if its revision was compacted', async (t) => {
  const started = await startTwo(t);
  const { etcd, one, two } = started;
  for (let n = 0; n < 5; n += 1) await one.add(`n${n}`);
  etcd.compact();
  etcd.endWatches();
  await one.add('a');
  etcd.compact();
  await waitUntil(() => two.names().length === 6);
  await assertWatched(started);
});

test('F1: an idle node notices that etcd was restored', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  const before = etcd.save();
  await node.add('a');
  etcd.restore(before);
  await waitUntil(() => node.failures.length === 1);
  assert.ok(isRefusal(75, /start the node again/)(node.failures[0]));
});

test('F2: a node that was disconnected is not current until it confirms', async (t) => {
  const etcd = await startEtcd(t);
  const clock = new SetClock();
  const node = await startNode(t, etcd.addresses, { clock, maxAgeMs: 120_000 });
  assert.equal(stateOf(node), 'writable');
  etcd.onRequest = () => noLeader;
  clock.offsetMs += 60_000;
  assert.equal(stateOf(node), 'writable');
  clock.offsetMs += 60_000;
  assert.equal(stateOf(node), 'unavailable');
  etcd.onRequest = () => undefined;
  await waitUntil(() => stateOf(node) === 'writable');
});

test('F2: a wrong time of day changes nothing', async (t) => {
  const etcd = await startEtcd(t);
  const clock = new SetClock();
  const wrong = { now: () => clock.now() - 5 * 3600_000, elapsed: () => clock.elapsed() };
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses, { clock: wrong })];
  await one.add('a');
  await two.add('b');
  assert.equal(stateOf(two), 'writable');
});

test('F2: a node that slept is not current until it confirms', async (t) => {
  const etcd = await startEtcd(t);
  const clock = new SetClock();
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses, { clock })];
  await one.add('a');
  await two.add('b');
  clock.offsetMs += 3600_000;
  assert.equal(stateOf(two), 'unavailable');
  await two.store.confirm();
  assert.equal(stateOf(two), 'writable');
});

test('C1: a node keeps the records of a collection that it does not declare', async (t) => {
  const etcd = await startEtcd(t);
  const one = await startNode(t, etcd.addresses);
  const without = await startNode(t, etcd.addresses, { collection: 'others' });
  await one.add('a');
  await without.store.confirm();
  await without.add('of another kind');
  await without.store.checkpoint();
  const fresh = await startNode(t, etcd.addresses);
  assert.deepEqual(fresh.names(), ['a']);
  assert.deepEqual(without.names(), ['of another kind']);
  assert.deepEqual(fresh.store.status().collections.map(({ name, records }) => [name, records]),
    [['things', 1], ['others', 1]]);
});

test('S1: one of two concurrent snapshots remains', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  for (const name of ['a', 'b']) await one.add(name);
  await two.store.confirm();
  etcd.delayMs = 20;
  await Promise.all([one.store.checkpoint(), two.store.checkpoint()]);
  etcd.delayMs = 0;
  const names = new Set(etcd.list('cairn/snapshot/').map((key) => key.split('/')[2]));
  assert.equal(names.size, 1);
  const counts = [one, two].map(({ store }) => store.status().checkpoints);
  assert.deepEqual(counts.sort(), [0, 1], 'only one of them counts');
  await one.add('c');
  await one.store.checkpoint();
  await two.store.checkpoint();
  await assertEqual(t, etcd, one, two);
  assert.deepEqual([...one.notices, ...two.notices], []);
});

test('S2: an unanswered swap of the pointer may have succeeded', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  await node.add('a');
  injectFaults(etcd, putsPointer, 'apply-unanswered');
  await node.store.checkpoint();
  assert.equal(etcd.list('cairn/snapshot/').length, 1);
  await node.add('b');
  await node.store.checkpoint();
  assert.equal(etcd.list('cairn/snapshot/').length, 1, 'the part of the former snapshot is removed');
  assert.deepEqual(node.notices, []);
  await assertEqual(t, etcd, node);
});

test('a snapshot of several parts is read back unchanged', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  for (let n = 0; n < 5; n += 1) {
    await node.store.write((transaction) => {
      for (let m = 0; m < 700; m += 1) transaction.of(node.things).insert({ name: `${n} ${m} ${'é'.repeat(500)}` });
    });
  }
  await node.store.checkpoint();
  assert.ok(etcd.list('cairn/snapshot/').length > 2);
  await assertEqual(t, etcd, node);
});

test('P1: groups remain until the second snapshot after them', async (t) => {
  const etcd = await startEtcd(t, 2);
  const [first = '', second = ''] = etcd.addresses;
  const [one, sleeper] = [await startNode(t, [first]), await startNode(t, [second])];
  for (const name of ['a', 'b', 'c']) await one.add(name);
  await waitUntil(() => sleeper.names().length === 3);
  etcd.silent.add(1);
  let asleep = true;
  etcd.onRequest = ({ member }) => (asleep && member === 1 ? noLeader : undefined);
  // It has decided, and sleeps now.
  const late = assert.rejects(sleeper.add('late'), hasCode('outcome_unknown'));
  await one.store.checkpoint();
  for (const name of ['d', 'e']) await one.add(name);
  assert.equal(readGroups(etcd).length, 5, 'the groups since the former snapshot remain');
  await one.store.checkpoint();
  assert.deepEqual(etcd.list('cairn/log/'), ['cairn/log/0000000000000004', 'cairn/log/0000000000000005']);
  await one.store.checkpoint();
  assert.deepEqual(etcd.list('cairn/log/'), []);
  asleep = false;
  await late;
  assert.ok(isRefusal(75, /does not follow/)(sleeper.failures[0]));
  await one.add('f');
  await assertEqual(t, etcd, one);
  assert.deepEqual(one.names(), ['a', 'b', 'c', 'd', 'e', 'f']);
});

test('P2: nodes that write concurrently take turns', async (t) => {
  const etcd = await startEtcd(t);
  etcd.delayMs = 3;
  const nodes: Node[] = [];
  for (let n = 0; n < 3; n += 1) nodes.push(await startNode(t, etcd.addresses));
  const counts = nodes.map(() => 0);
  const sum = (): number => counts.reduce((all, count) => all + count);
  await Promise.all(nodes.flatMap((node, index) => [1, 2, 3].map(async (client) => {
    while (sum() < 150) {
      await node.add(`${index} ${client} ${counts[index]}`);
      counts[index] = (counts[index] ?? 0) + 1;
    }
  })));
  const total = sum();
  const reruns = nodes.reduce((all, { store }) => all + readFigure(store, 'reruns_total'), 0);
  assert.ok(reruns / total < 0.5, `${reruns} of ${total} were run again`);
  assert.ok(Math.min(...counts) > total / 6, `shares: ${counts}`);
  await assertEqual(t, etcd, ...nodes);
});

test('waiting calls share one confirmation', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  etcd.losesEvents = true;
  await one.add('a');
  const before = etcd.requests.length;
  await Promise.all(Array.from({ length: 500 }, () => two.store.confirm()));
  assert.deepEqual(two.names(), ['a']);
  assert.ok(etcd.requests.length - before < 6, `${etcd.requests.length - before} requests`);
});

test('a node notices a new key ring', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  etcd.put('cairn/keys', '1');
  await waitUntil(() => node.keysSeen === '1');
  etcd.put('cairn/keys', '2');
  await node.store.confirm();
  assert.equal(node.keysSeen, '2');
});

test('a node that only writes notices a new key ring', async (t) => {
  const etcd = await startEtcd(t);
  const node = await startNode(t, etcd.addresses);
  await node.add('a');
  etcd.put('cairn/keys', '1');
  // A confirmation that shares its batch with a write is an append.
  await Promise.all([node.add('b'), node.store.confirm()]);
  assert.equal(node.keysSeen, '1');
});

test('a node that only writes notices another node\'s snapshot', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  await one.add('a');
  await waitUntil(() => two.names().length === 1);
  await one.store.checkpoint();
  await Promise.all([two.add('b'), two.store.confirm()]);
  const [, last = ''] = readGroups(etcd);
  assert.equal(two.store.status().journalBytes, last.length);
});

test('listeners receive the changes of all nodes in commit order', async (t) => {
  const etcd = await startEtcd(t);
  const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
  const heard = [one, two].map(({ store }) => {
    const sequences: number[] = [];
    store.onPublished((changes) => sequences.push(...changes.map(({ sequence }) => sequence)));
    return sequences;
  });
  await Promise.all(Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? one : two).add(`n${n}`)));
  await Promise.all([one.store.confirm(), two.store.confirm()]);
  const expected = Array.from({ length: 60 }, (_, n) => n + 1);
  assert.deepEqual(heard, [expected, expected]);
});

test('references and unique values hold across nodes that write concurrently', async (t) => {
  const etcd = await startEtcd(t);
  const nodes = [1, 2, 3].map(() => makeBlog({ log: sharedLog(etcd.addresses) }));
  for (const { store } of nodes) {
    await store.start();
    t.after(() => store.close());
  }
  const { done, failed, model } = await askBlogs(seedNumbers(1), [...nodes, ...nodes, ...nodes], 12);
  assert.deepEqual([done, failed], [108, 0]);
  const late = makeBlog({ log: sharedLog(etcd.addresses) });
  await late.store.start();
  assert.equal(late.content(), model.content());
  await late.store.close();
});
