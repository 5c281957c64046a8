import { test } from 'node:test';
import { checkConformance } from '../support/cluster/nodes.ts';
import { SmallEtcd } from '../support/cluster/small-etcd.ts';

test('the simulated etcd behaves like etcd', async (t) => {
  const etcd = await SmallEtcd.start();
  t.after(() => etcd.stop());
  await checkConformance(t, etcd.addresses[0] ?? '');
});
