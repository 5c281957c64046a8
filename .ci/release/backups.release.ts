/** The manual's recipes for backups, and its descriptions for containers, run or read with the available programs. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import { temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { readHandbook } from '../../test/support/source.ts';
import { readBlocks, Machine, program } from './machine.ts';

const [, section = ''] = /^## Backups\n(.*?)^## /ms.exec(readHandbook()) ?? [];
const [script = '', back = ''] = readBlocks('## Backups');
const [service = '', timer = ''] = Array.from(section.matchAll(/^```ini\n(.*?)^```$/gms), ([, unit = '']) => unit);
const [, variable = '', cronLine = ''] = /^(CAIRN_DATA=\S+)\n[\d*]+ \* \* \* \* cairn (.*)$/m.exec(section) ?? [];
const named = /^\d{4}-\d\d-\d\dT\d{6}Z$/;

test('cron and the timer keep 14 checked copies', async (t) => {
  const machine = await Machine.make(t);
  const copies = join(machine.root, 'var/lib/cairn-backup');
  const own = script.replace(/^cairn\(\).*$/m, `cairn() { ${program} "$@"; }`);
  assert.notEqual(own, script);
  writeFileSync(join(machine.root, 'opt/cairn/cairn-backup'), own);
  await machine.use();
  for (let day = 10; day < 26; day += 1) {
    const old = join(copies, `2025-01-${day}T000000Z`);
    mkdirSync(old);
    utimesSync(old, 0, 0);
  }
  mkdirSync(join(copies, '2025-02-01T000000Z.part'));

  const byCron = await machine.type(`env ${variable} ${cronLine}`);
  assert.equal(byCron.status, 0, byCron.out);
  assert.match(byCron.out, /^items: 1 record$[^]*^ok {7}items: 1 record$/m, 'copied, then checked');
  const kept = readdirSync(copies).sort();
  assert.deepEqual([kept.length, kept[0], kept.filter((name) => !named.test(name))], [14, '2025-01-13T000000Z', []]);

  await machine.use();
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(service) ?? [];
  const [, environment = ''] = /^Environment=(.*)$/m.exec(service) ?? [];
  // The unit of the copies need not name the group that may read the server's secret.
  const secret = 'CAIRN_SECRET_FILE=/dev/null/secret';
  const byTimer = await machine.type(`env ${secret} ${environment} ${command}`.replaceAll('%S', '/var/lib'));
  assert.equal(byTimer.status, 0, byTimer.out);
  const [, find = ''] = /`(find [^`]*)`/.exec(section) ?? [];
  assert.equal((await machine.type(find)).out.trim().split('\n').length, 2, 'the two of the last hours');
  const old = new Date(Date.now() - 3 * 3_600_000);
  for (const name of readdirSync(copies)) utimesSync(join(copies, name), old, old);
  assert.deepEqual(await machine.type(find), { status: 1, out: '' }, 'none is of the last hours');

  await machine.use();
  const restored = await machine.type(back);
  assert.equal(restored.status, 0, restored.out);
  assert.equal((await machine.itemNames(await machine.signIn())).length, 2, 'what was made after the copy is gone');

  await machine.type('systemctl stop cairn');
  const file = join(machine.data, 'items.json');
  writeFileSync(file, readFileSync(file, 'utf8').slice(0, -20));
  const before = readdirSync(copies).sort();
  const failed = await machine.type(`env ${variable} ${cronLine}`);
  assert.equal(failed.status, 78, 'a copy of damaged data is none');
  assert.deepEqual(readdirSync(copies).sort(), before, 'and nothing is removed');
});

test('the units for the copies are valid', (t) => {
  const directory = temporaryDirectory(t);
  const files = { 'cairn-backup.service': service, 'cairn-backup.timer': timer };
  for (const [name, unit] of Object.entries(files)) writeFileSync(join(directory, name), unit);
  const paths = Object.keys(files).map((name) => join(directory, name));
  const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', ...paths], { encoding: 'utf8' });
  if (error !== undefined) return t.skip('there is no systemd here');
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /cairn-backup/);
});

/** The YAML documents of the manual after a heading, as JSON, or the reason why they cannot be read here. */
function documentsAfter(heading: string): readonly object[] | string {
  const [, text = ''] = readHandbook().split(`\n${heading}\n`);
  const [own = ''] = text.split('\n## ');
  const blocks = Array.from(own.matchAll(/^```yaml\n(.*?)^```$/gms), ([, block]) => block);
  const read = 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))';
  const input = blocks.join('---\n');
  const { status, stdout, stderr } = spawnSync('python3', ['-c', read], { input, encoding: 'utf8' });
  if (/No module named|ENOENT/.test(stderr ?? 'ENOENT')) return 'Python has no yaml here';
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

test('the Kubernetes manifest matches the image', (t) => {
  const documents = documentsAfter('### Kubernetes');
  if (typeof documents === 'string') return t.skip(documents);
  const kinds = documents.map((each) => `${Object(each).kind} ${Object(each).metadata.name}`);
  assert.deepEqual(kinds, ['PersistentVolumeClaim cairn', 'PersistentVolumeClaim cairn-backup', 'Service cairn',
    'Deployment cairn', 'CronJob cairn-backup', 'Pod cairn-shell']);
  const [, , service, deployment, cronJob, shell] = documents.map(({ ...each }) => Object(each).spec);
  assert.deepEqual([deployment.replicas, deployment.strategy], [1, { type: 'Recreate' }]);
  assert.deepEqual(deployment.selector.matchLabels, service.selector);
  assert.deepEqual(deployment.template.metadata.labels, service.selector);
  const job = cronJob.jobTemplate.spec.template.spec;
  for (const pod of [deployment.template.spec, job, shell]) {
    assert.equal(pod.enableServiceLinks, false, 'else CAIRN_PORT is an address');
    const { runAsUser, runAsGroup, fsGroup, runAsNonRoot } = pod.securityContext;
    assert.deepEqual([runAsUser, runAsGroup, fsGroup, runAsNonRoot], [1000, 1000, 1000, true], 'the user node');
    const [container] = pod.containers;
    const mounted = container.volumeMounts.map(({ name }: { name: string }) => name);
    assert.deepEqual(pod.volumes.map(({ name }: { name: string }) => name), mounted);
    for (const { persistentVolumeClaim } of pod.volumes) {
      assert.ok(kinds.includes(`PersistentVolumeClaim ${persistentVolumeClaim.claimName}`));
    }
  }
  const [{ startupProbe, livenessProbe, readinessProbe, ports }] = deployment.template.spec.containers;
  assert.deepEqual(ports.map(({ containerPort }: { containerPort: number }) => containerPort), [3000]);
  assert.match(readHandbook(), /^EXPOSE 3000$/m);
  assert.deepEqual([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => Object.values(httpGet)),
    [['/livez', 'http'], ['/livez', 'http'], ['/readyz', 'http']]);
  assert.ok(startupProbe.periodSeconds * startupProbe.failureThreshold >= 60, 'the wait of 20 s, and loading');
  assert.ok(deployment.template.spec.terminationGracePeriodSeconds * 1000 >= limits.drainTimeoutMs + 20_000);
  assert.deepEqual([job.restartPolicy, job.containers[0].command], ['Never', ['sh', 'cairn-backup', '/backup']]);
  assert.equal(job.containers[0].volumeMounts[0].readOnly, true);
  const [near] = job.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution;
  assert.deepEqual(near.labelSelector.matchLabels, service.selector);
});

test('the Compose file matches the line for Docker', (t) => {
  const documents = documentsAfter('## Container');
  if (typeof documents === 'string') return t.skip(documents);
  const { services, volumes } = Object(documents[0]);
  for (const { read_only, cap_drop, security_opt } of Object.values<Record<string, unknown>>(services)) {
    assert.deepEqual([read_only, cap_drop, security_opt], [true, ['ALL'], ['no-new-privileges']]);
  }
  assert.ok(Number.parseInt(services.cairn.stop_grace_period, 10) * 1000 >= limits.drainTimeoutMs + 20_000);
  assert.deepEqual([...services.cairn.volumes, ...services.backup.volumes],
    ['cairn:/data', 'cairn:/data:ro', 'backup:/backup']);
  assert.deepEqual(Object.keys(volumes), ['cairn', 'backup']);
  assert.match(services.backup.command[2], /sh cairn-backup \/backup/);
});
