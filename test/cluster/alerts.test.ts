import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { silentLog } from '../../src/log/log.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { noLeader, SetClock, startEtcd } from '../support/cluster/nodes.ts';
import { isLockedRun, waitUntil } from '../support/basics.ts';
import { readHandbook } from '../support/source.ts';
import { createApp, type App } from '../support/inside.ts';

/** The series of a time in which a node is in trouble, and of one in which it is not. */
interface Series {
  readonly series: string;
  readonly values: string;
}

/** The figures of a node that tell of its store, by their names and labels. */
async function figuresOf(app: App): Promise<ReadonlyMap<string, number>> {
  const ready = await app.inject({ target: '/readyz' });
  const { body: page } = await app.inject({ target: '/metrics' });
  assert.equal(ready.status, app.unready() === undefined ? 200 : 503);
  const lines = page.matchAll(/^(cairn_(?:store_state|cluster_age_seconds)\S*) (\S+)$/gm);
  return new Map(Array.from(lines, ([, name = '', value]) => [name, Number(value)]));
}

/** Five minutes with the first figures and, after them, five with the others. */
function seriesOf(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): Series[] {
  return Array.from(before, ([series, value]) => ({ series, values: `${value}x30 ${after.get(series)}x30` }));
}

test('the alerts in the manual fire only while etcd has no room or no majority', async (t) => {
  const rules = /^```yaml\n(groups:\n.*?)^```$/ms.exec(readHandbook())?.[1] ?? '';
  if (isLockedRun || spawnSync('promtool', ['--version']).error !== undefined) {
    return t.skip('promtool is not to be had here');
  }
  const etcd = await startEtcd(t);
  const clock = new SetClock();
  // A busy machine may take seconds for what should take milliseconds.
  const cluster = { members: etcd.addresses, maxAgeMs: 60_000 };
  const app = await createApp({ cluster, clock, auth: 'none', log: silentLog });
  t.after(() => app.close());
  const well = await figuresOf(app);
  etcd.quota = 0;
  await waitUntil(() => app.store.state === 'full');
  const full = await figuresOf(app);
  etcd.quota = Number.POSITIVE_INFINITY;
  etcd.disarm();
  await waitUntil(() => app.unready() === undefined);
  etcd.onRequest = () => noLeader;
  clock.offsetMs += 3600_000;
  await waitUntil(() => app.unready() === 'store_unavailable');
  const cut = new Map(await figuresOf(app));
  assert.ok((cut.get('cairn_cluster_age_seconds') ?? 0) >= 3600);
  etcd.onRequest = () => undefined;
  await waitUntil(() => app.unready() === undefined);

  const growing = { series: 'cairn_cluster_age_seconds', values: '0+10x30 0.1x30' };
  const isAge = ({ series }: Series): boolean => series.startsWith('cairn_cluster_age');
  const of = (size: number) => ({ series: 'etcd_mvcc_db_total_size_in_bytes', values: `${size}x60` });
  const quota = { series: 'etcd_server_quota_backend_bytes', values: '1000x121' };
  const cases: [string, Series[], string[]][] = [
    ['no room', seriesOf(full, well), ['CairnAcceptsNoWrites']],
    ['no majority', [...seriesOf(cut, well).filter((each) => !isAge(each)), growing],
      ['CairnAcceptsNoWrites', 'CairnNodeIsCutOff']],
    ['a member without a quorum', [{ series: 'etcd_server_has_leader', values: '0x30 1x30' }],
      ['EtcdMemberHasNoQuorum']],
    ['a quota that fills up', [quota, { ...of(800), values: '800x90 700x30' }], ['EtcdQuotaFillsUp']],
  ];
  const expected = (names: readonly string[]) =>
    names.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
  const firing = 'sum by (alertname) (ALERTS{alertstate="firing"})';
  const tests = cases.map(([name, series, alerts]) => ({
    name,
    interval: '10s',
    input_series: series,
    promql_expr_test: [
      { expr: firing, eval_time: name.includes('quota') ? '12m' : '4m', exp_samples: expected(alerts) },
      { expr: firing, eval_time: name.includes('quota') ? '19m' : '9m', exp_samples: [] },
    ],
  }));
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'rules.yml'), rules);
  // JSON is YAML.
  const file = join(directory, 'tests.yml');
  writeFileSync(file, JSON.stringify({ rule_files: ['rules.yml'], evaluation_interval: '10s', tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
});
