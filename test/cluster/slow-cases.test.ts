import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import {
  assertEqual, assertWatched, codeIs, groupsIn, isAppend, noLeader, startEtcd, until,
} from '../.support/cluster/cases.ts';
import { figure, startNode } from '../.support/cluster/nodes.ts';

/** The cases of `shared-log.ts` in which seconds have to pass. */
suite('slow cases', { concurrency: true }, () => {
  test('A5: an unanswered append is repeated until its outcome is known', async (t) => {
    const run = async (applied: 'first' | 'last' | 'never') => {
      const etcd = await startEtcd(t, 2);
      const [node, other] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
      await node.add('a');
      await until(() => other.names().length === 1);
      let away = true;
      let attempts = 0;
      etcd.onRequest = (request) => {
        if (!away || !isAppend(request)) return undefined;
        attempts += 1;
        return applied === 'first' && attempts === 1 ? 'apply-unanswered' : noLeader;
      };
      const begun = performance.now();
      const written = assert.rejects(node.add('b'), codeIs('outcome_unknown'));
      await delay(100);
      const waiting = assert.rejects(node.add('c'), codeIs('store_unavailable'));
      await Promise.all([written, waiting]);
      const took = performance.now() - begun;
      assert.ok(took > 4500 && took < 15_000, `told after ${took} ms`);
      await assert.rejects(node.add('d'), codeIs('store_unavailable'));
      assert.equal(node.store.status().state, 'unavailable');
      assert.equal(figure(node.store, 'unknown_appends_total'), 1);
      if (applied === 'never') {
        etcd.onRequest = (request) => (isAppend(request) && request.member === 0 && away ? noLeader : undefined);
        // Another node comes first, so the append loses. Its caller was answered, so it is not run again.
        etcd.put('cairn/other', 'x');
      }
      away = false;
      await until(() => node.names().length === 2);
      assert.deepEqual(node.names(), ['a', 'b']);
      await node.add('e');
      assert.deepEqual(groupsIn(etcd).length, 3);
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
    await assert.rejects(node.add('a'), codeIs('outcome_unknown'));
    await other.add('b');
    away = false;
    await until(() => node.names().length === 1);
    await node.add('c');
    assert.deepEqual(node.names(), ['b', 'c']);
    await assertEqual(t, etcd, node, other);
  });

  test('W4: a watch that is silent for 5 s is replaced', async (t) => {
    const etcd = await startEtcd(t);
    const [one, two] = [await startNode(t, etcd.addresses), await startNode(t, etcd.addresses)];
    etcd.silent.add(0);
    const begun = performance.now();
    for (let n = 0; n < 4; n += 1) {
      await one.add(`n${n}`);
      await until(() => two.names().length === n + 1);
    }
    etcd.silent.clear();
    const watches = () => etcd.requests.filter(({ path }) => path === '/v3/watch').length;
    await until(() => watches() >= 4, 20_000);
    assert.ok(performance.now() - begun > 4500);
    await delay(100);
    await assertWatched(one, two);
  });
});
