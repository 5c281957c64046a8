import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { Agent, get } from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestEntry } from '../../src/http/message.ts';
import { exposition, Metrics } from '../../src/features/metrics/exposition.ts';
import { parseExposition, sampleValue } from '../support/contract.ts';
import { isLockedRun } from '../support/basics.ts';
import { createApp } from '../support/inside.ts';
import { startApp } from '../support/app.ts';
import { limits } from '../../src/base/limits.ts';
import { defineCollection, defineRoute } from '../../src/index.ts';

const entry: RequestEntry = {
  id: 'a', method: 'GET', target: '/items/1', route: '/items/{id}', status: 200, durationMs: 0.7, bytes: 10, userId: 1,
  address: '192.0.2.7',
};

test('requests are counted by method, route and status, and timed by route', () => {
  const metrics = new Metrics();
  metrics.request(entry);
  metrics.request({ ...entry, durationMs: 3 });
  metrics.request({ ...entry, durationMs: 60_000, status: 404, method: 'HEAD' });
  metrics.request({ ...entry, route: undefined, method: 'BREW"\n', status: 405 });
  metrics.security('login');
  metrics.security('login');
  const page = parseExposition(exposition(metrics.families()));
  const value = (name: string, labels: Record<string, string>) => sampleValue(page, name, labels);
  const route = '/items/{id}';
  assert.equal(value('cairn_http_requests_total', { route, method: 'GET', status: '200' }), 2);
  assert.equal(value('cairn_http_requests_total', { route, method: 'HEAD', status: '404' }), 1);
  assert.equal(value('cairn_http_requests_total', { route: '', method: 'other', status: '405' }), 1);
  const bucket = (le: string): number | undefined => value('cairn_http_request_duration_seconds_bucket', { route, le });
  assert.deepEqual(['0.0005', '0.001', '0.0025', '0.005', '10', '+Inf'].map(bucket), [0, 1, 1, 2, 2, 3]);
  assert.equal(value('cairn_http_request_duration_seconds_count', { route }), 3);
  assert.equal(value('cairn_http_request_duration_seconds_sum', { route }), 60.0037);
  assert.equal(value('cairn_events_total', { event: 'login' }), 2);
  assert.equal(value('cairn_events_total', { event: 'login_failed' }), 0, 'known before it happens');
  const begun = Date.now() / 1000 - (value('process_start_time_seconds', {}) ?? 0);
  assert.ok(Math.abs(begun - process.uptime()) < 60, String(begun));
});

test('a bound of a bucket belongs to the bucket', () => {
  const metrics = new Metrics();
  metrics.request({ ...entry, durationMs: 5 });
  const buckets = parseExposition(exposition(metrics.families())).filter(({ name }) => name.endsWith('_bucket'));
  assert.equal(buckets.find(({ labels }) => labels['le'] === '0.0025')?.value, 0);
  assert.equal(buckets.find(({ labels }) => labels['le'] === '0.005')?.value, 1);
});

test('the delay of the event loop is a histogram that only grows', async () => {
  const metrics = new Metrics();
  const count = (le: string): number => {
    const page = parseExposition(exposition(metrics.families()));
    return sampleValue(page, 'cairn_event_loop_delay_seconds_bucket', { le }) ?? NaN;
  };
  // The first page begins to measure.
  count('0.1');
  await sleep(50);
  const began = performance.now();
  while (performance.now() - began < 150);
  await sleep(50);
  const slow = count('+Inf') - count('0.1');
  assert.ok(slow >= 1, 'a blocked loop is seen');
  assert.ok(count('+Inf') - count('0.1') >= slow, 'and a second scrape still shows it');
});

test('/metrics is for administrators and their read-only API keys', async (t) => {
  const { client, signIn, createToken, credentials } = await startApp(t, { withoutPort: true });
  const statusFor = async (authorization: string, method = 'GET'): Promise<number> =>
    (await client.send(method, '/metrics', { headers: { authorization } })).status;
  const [admin, member] = [await createToken('admin'), await createToken('member')];
  assert.equal((await client.get('/metrics')).status, 401);
  assert.equal(await statusFor(`Bearer ${member}`), 403);
  assert.equal(await statusFor(`Bearer ${admin}`, 'POST'), 405);
  const page = await client.get('/metrics', { headers: { authorization: `Bearer ${admin}` } });
  assert.equal(page.status, 200);
  assert.equal(page.header('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  for (const [who, status] of [['admin', 200], ['member', 403]] as const) {
    const { password: currentPassword } = credentials(who);
    const json = { name: 'Prometheus', readOnly: true, currentPassword };
    const made = await (await signIn(who)).post('/keys', { json });
    assert.equal(await statusFor(`Bearer ${String(Object(made.json).key)}`), status, who);
  }
});

test('a collection or route called metrics replaces the metrics, and the log says so', async (t) => {
  const lines: string[] = [];
  const log = { info() {}, error() {}, warn: (line: string) => void lines.push(line) };
  const metrics = defineCollection({ name: 'metrics', fields: { title: { kind: 'text' } } });
  const route = defineRoute({ method: 'GET', path: '/metrics', access: 'public', summary: 'Own', handle: () => [] });
  for (const own of [{ collections: [metrics] }, { routes: [route] }]) {
    const app = await createApp({ auth: 'none', log, ...own });
    t.after(() => app.close());
    assert.equal((await app.inject({ target: '/metrics' })).body, '[]');
    assert.match(lines.splice(0).join(), /^\/metrics is not served: .*; rename it .*or read \/status$/);
  }
});

test('/metrics is served when the share of the caller is used up', async (t) => {
  const wait = defineRoute({
    method: 'GET', path: '/wait', access: 'user', summary: 'Wait',
    handle: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(1))),
  });
  const app = await createApp({ auth: 'none', routes: [wait] });
  t.after(() => app.close());
  const url = `http://127.0.0.1:${await app.listen({ port: 0, host: '127.0.0.1' })}`;
  const leaving = new AbortController();
  t.after(() => leaving.abort());
  const { requestsInFlightPerCallerMax: most } = limits;
  const agent = new Agent({ maxSockets: Infinity });
  t.after(() => agent.destroy());
  let isRefused = (status: number): void => void status;
  const refused = new Promise<number>((resolve) => (isRefused = resolve));
  for (let sent = 0; sent <= most; sent += 1)
    get(`${url}/wait`, { agent, signal: leaving.signal }, ({ statusCode = 0 }) => isRefused(statusCode))
      .on('error', () => undefined);
  assert.equal(await refused, 503, 'the share is used up');
  assert.equal((await fetch(`${url}/items`)).status, 503);
  assert.equal((await fetch(`${url}/metrics`)).status, 200);
});

test('promtool accepts the metrics', async (t) => {
  const lint = (text: string) => spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (isLockedRun || lint('').error !== undefined) return t.skip('promtool is not to be had here');
  const app = await createApp({ auth: 'none' });
  t.after(() => app.close());
  const url = `http://127.0.0.1:${await app.listen({ port: 0, host: '127.0.0.1' })}/metrics`;
  // The second one shows the first.
  await (await fetch(url)).text();
  const page = await (await fetch(url)).text();
  assert.match(page, /route="\/metrics"/);
  const { status, stdout, stderr } = lint(page);
  assert.deepEqual([status, stdout, stderr], [0, '', '']);
});

test('Prometheus text format 0.0.4: labels and numbers of any kind', () => {
  const page = exposition([
    ['gauge', 'a_path', 'Backslash', [['{path="C:\\\\dir \\"x\\"\\ny"}', 1]]],
    ['counter', 'b_total', 'Infinite', Infinity],
    ['gauge', 'c', 'None', NaN],
    ['gauge', 'd', 'Empty', []],
  ]);
  const samples = parseExposition(page);
  assert.equal(samples.find(({ name }) => name === 'a_path')?.labels['path'], 'C:\\dir "x"\ny');
  assert.equal(samples.find(({ name }) => name === 'b_total')?.value, Infinity);
  assert.ok(Number.isNaN(samples.find(({ name }) => name === 'c')?.value));
});

test('the grammar check finds mistakes', () => {
  const wrong = [
    'a 1', '# TYPE a gauge\na 1', '# HELP a x\n# TYPE a gauge\na{b=c} 1\n', '# HELP a x\n# TYPE a gauge\na 1,5\n',
    '# HELP a x\n# TYPE a gauge\na 1\na 1\n', '# HELP a x\n# TYPE a gauge\nb 1\n', '# HELP a x\n# TYPE a meter\na 1\n',
    '# HELP a x\n# TYPE a counter\na 1\n', '# HELP a x\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n',
  ];
  for (const text of wrong) assert.throws(() => parseExposition(text), { name: 'AssertionError' }, text);
});
