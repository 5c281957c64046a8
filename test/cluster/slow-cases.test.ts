import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { commands as userCommands } from '../../src/cli/user.ts';
import { Etcd, isAt, put } from '../../src/options/cluster/etcd.ts';
import { runCommand } from '../support/cli/terminal.ts';
import {
  assertEqual,
  assertWatched,
  hasCode,
  injectFaults,
  readFigure,
  readGroups,
  isAppend,
  noLeader,
  isRefusal,
  spaceExceeded,
  startEtcd,
  startNode,
  startTwo,
} from '../support/cluster/nodes.ts';
import type { SmallEtcd } from '../support/cluster/small-etcd.ts';
import { timeoutMs, waitUntil } from '../support/basics.ts';

function openClient(t: TestContext, etcd: SmallEtcd): Etcd {
  const client = new Etcd({ members: etcd.addresses }, 0);
  t.after(() => client.close());
  return client;
}

/** The cases, of `shared-log.ts` and others, in which seconds have to pass. They pass for all of them at once. */
suite('slow cases', { concurrency: true }, () => {
  test('A5: an unanswered append is repeated until its outcome is known', async (t) => {
    const run = async (applied: 'first' | 'last' | 'never') => {
      const etcd = await startEtcd(t, 2);
      const [node, other] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
      await node.add('a');
      await waitUntil(() => other.names().length === 1);
      let away = true;
      let attempts = 0;
      etcd.onRequest = (request) => {
        if (!away || !isAppend(request)) return undefined;
        attempts += 1;
        return applied === 'first' && attempts === 1 ? 'apply-unanswered' : noLeader;
      };
      const begun = performance.now();
      const written = assert.rejects(node.add('b'), hasCode('outcome_unknown'));
      await delay(100);
      const waiting = assert.rejects(node.add('c'), hasCode('store_unavailable'));
      await Promise.all([written, waiting]);
      const took = performance.now() - begun;
      assert.ok(took > 4500, `told after ${took} ms`);
      await assert.rejects(node.add('d'), hasCode('store_unavailable'));
      assert.equal(node.store.status().state, 'unavailable');
      assert.equal(readFigure(node.store, 'unknown_appends_total'), 1);
      if (applied === 'never') {
        etcd.onRequest = (request) => (isAppend(request) && request.member === 0 && away ? noLeader : undefined);
        // Another node comes first, so the append loses. Its caller was answered, so it is not run again.
        etcd.put('cairn/other', 'x');
      }
      away = false;
      await waitUntil(() => node.names().length === 2);
      assert.deepEqual(node.names(), ['a', 'b']);
      await node.add('e');
      assert.deepEqual(readGroups(etcd).length, 3);
      assert.deepEqual(node.failures, []);
      assert.equal(node.store.status().state, 'writable');
      const notices = node.notices.join('\n');
      assert.match(notices, /^etcd does not answer.*endpoint status --cluster"\netcd accepts writes again$/);
      await assertEqual(t, etcd, node, other);
    };
    await Promise.all([run('first'), run('last')]);
  });

  test('A5: an unanswered append that loses is not run again', async (t) => {
    const etcd = await startEtcd(t);
    const [node, other] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
    let away = true;
    let ours = '';
    etcd.onRequest = (request) => {
      if (!isAppend(request)) return undefined;
      const text = JSON.stringify(request.body);
      ours ||= text;
      return away && text === ours ? noLeader : undefined;
    };
    await assert.rejects(node.add('a'), hasCode('outcome_unknown'));
    await other.add('b');
    away = false;
    await waitUntil(() => node.names().length === 1);
    await node.add('c');
    assert.deepEqual(node.names(), ['b', 'c']);
    await assertEqual(t, etcd, node, other);
  });

  for (const [what, change] of [
    ['was removed from the log', (etcd) => {
      for (const key of etcd.list('cairn/log/')) etcd.remove(key);
      etcd.put('cairn/log/0000000000000009', '{"id":"other-2"}\n');
      etcd.put('cairn/head', '{"sequence":9,"id":"other-2","chain":5}');
    }],
    ['was lost in a restore of etcd', (etcd, before) => etcd.restore(before)],
  ] satisfies [string, (etcd: SmallEtcd, before: ReturnType<SmallEtcd['save']>) => void][]) {
    test(`A4: the outcome of an unanswered append that ${what} is unknown, and the node ends`, async (t) => {
      const etcd = await startEtcd(t);
      const node = await startNode(t, etcd.addresses);
      const before = etcd.save();
      await node.add('a');
      let attempts = 0;
      etcd.onRequest = (request) => {
        if (!isAppend(request)) return undefined;
        attempts += 1;
        if (attempts === 1) return 'apply-unanswered';
        if (attempts === 2) change(etcd, before);
        return undefined;
      };
      const waiting = node.add('b');
      await assert.rejects(waiting, hasCode('outcome_unknown'));
      assert.equal(node.failures.length, 1);
      assert.ok(isRefusal(75, /start the node again/)(node.failures[0]));
      await assert.rejects(node.add('c'), hasCode('store_failed'));
      assert.deepEqual(node.names(), ['a']);
    });
  }

  test('A5: the log contains etcd\'s answer, even a refusal of a repeated request', async (t) => {
    const etcd = await startEtcd(t);
    etcd.users.set('cairn', 'secret');
    const node = await startNode(t, etcd.addresses, { etcd: { user: { name: 'cairn', password: 'secret' } } });
    etcd.users.set('cairn', 'another');
    etcd.endTokens();
    await waitUntil(() => node.notices.length > 0);
    assert.match(node.notices.join('\n'), /no write succeeds.*http:\S+ answers 400: .*authentication failed/);
  });

  test('A5: a node can stop during an unanswered append', async (t) => {
    const etcd = await startEtcd(t);
    const node = await startNode(t, etcd.addresses);
    etcd.onRequest = () => noLeader;
    const lost = assert.rejects(node.add('a'), hasCode('outcome_unknown'));
    await delay(50);
    await node.close();
    await lost;
  });

  test('A6: a refusal because of the quota does not decide an earlier attempt', async (t) => {
    const etcd = await startEtcd(t);
    const node = await startNode(t, etcd.addresses);
    injectFaults(etcd, isAppend, 'apply-unanswered', spaceExceeded, spaceExceeded);
    await node.add('a');
    assert.deepEqual([node.names(), readGroups(etcd).length], [['a'], 1]);
  });

  test('W4: a watch is replaced after 5 s of silence', async (t) => {
    const started = await startTwo(t);
    const { etcd, one, two } = started;
    etcd.silent.add(0);
    const begun = performance.now();
    for (let n = 0; n < 4; n += 1) {
      await one.add(`n${n}`);
      await waitUntil(() => two.names().length === n + 1);
    }
    etcd.silent.clear();
    const watches = () => etcd.requests.filter(({ path }) => path === '/v3/watch').length;
    await waitUntil(() => watches() >= 4);
    assert.ok(performance.now() - begun > 4500);
    await assertWatched(started);
  });

  test('a watch ends after 5 s of silence', async (t) => {
    const client = openClient(t, await startEtcd(t));
    const begun = performance.now();
    await assert.rejects(client.watch('w/', 2, () => undefined), /aborted|is silent/);
    const took = performance.now() - begun;
    assert.ok(took > 4900, `${took} ms`);
  });

  test('after 1.5 s of silence the same request goes to the next member', async (t) => {
    const etcd = await startEtcd(t, 2);
    const client = openClient(t, etcd);
    injectFaults(etcd, () => true, { heldMs: 7000, then: 'apply' });
    const begun = performance.now();
    assert.equal((await client.txn({ compare: [isAt('k', 0)], success: [put('k', 'v')] })).succeeded, true);
    const took = performance.now() - begun;
    assert.ok(took > 1400, `${took} ms`);
    assert.deepEqual(etcd.requests[0]?.body, etcd.requests[1]?.body);
  });

  test('A8: a token is renewed if a restored etcd ignores it', async (t) => {
    const etcd = await startEtcd(t);
    etcd.users.set('cairn', 'secret');
    const client = new Etcd({ members: etcd.addresses, user: { name: 'cairn', password: 'secret' } }, 0);
    t.after(() => client.close());
    await client.txn({ success: [put('k', '1')] });
    // etcd's tokens contain an index of its log, and it waits until it has reached that index.
    let isRenewed = false;
    etcd.onRequest = ({ path }) => {
      isRenewed ||= path.endsWith('authenticate');
      return isRenewed ? undefined : { heldMs: 60_000, then: 'apply' };
    };
    await client.txn({ success: [put('k', '2')] }, AbortSignal.timeout(timeoutMs));
    assert.equal(etcd.get('k'), '2');
  });

  test('a command ends after 10 s without reaching etcd', async () => {
    const environment = { CAIRN_CLUSTER: 'https://127.0.0.1:1' };
    const { code, out, err } = await runCommand(userCommands, ['user', 'list'], '', environment);
    assert.deepEqual([code, out], [74, '']);
    assert.match(err, /^Cannot reach etcd: no member answers \(.*ECONNREFUSED.*\n$/);
  });
});
