import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestEntry } from '../../src/http/message.ts';
import { Operations } from '../../src/options/operations/listener.ts';
import { silentLog } from '../../src/log/log.ts';
import { exposition, Metrics } from '../../src/options/operations/metrics.ts';
import { RawClient } from '../support/http/raw.ts';
import { parseExposition, sampleValue } from '../support/prometheus.ts';
import { isLockedRun } from '../support/locked.ts';
import { createApp } from '../support/inside.ts';

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
  await sleep(50);
  const began = performance.now();
  while (performance.now() - began < 150);
  await sleep(50);
  const slow = count('+Inf') - count('0.1');
  assert.ok(slow >= 1, 'a blocked loop is seen');
  assert.ok(count('+Inf') - count('0.1') >= slow, 'and a second scrape still shows it');
});

test('on loopback the operations listener is asked by a loopback name, elsewhere by any', async (t) => {
  const app = await createApp();
  t.after(() => app.close());
  const statusFor = async (listening: string, head: string): Promise<number> => {
    const operations = new Operations();
    const port = await operations.listen({ app, log: silentLog, directory: '.' }, 0, listening);
    const { status } = await new RawClient(port).send(`GET /livez ${head}Connection: close\r\n\r\n`).reply();
    await operations.drain();
    return status;
  };
  for (const host of ['localhost', '127.0.0.1:3001', '[::1]:3001']) {
    assert.equal(await statusFor('127.0.0.1', `HTTP/1.1\r\nHost: ${host}\r\n`), 200, host);
  }
  assert.equal(await statusFor('127.0.0.1', 'HTTP/1.0\r\n'), 200, 'a probe without a Host');
  for (const host of ['evil.example', 'localhost.evil.example:3001', '192.0.2.1']) {
    assert.equal(await statusFor('127.0.0.1', `HTTP/1.1\r\nHost: ${host}\r\n`), 421, host);
  }
  assert.equal(await statusFor('0.0.0.0', 'HTTP/1.1\r\nHost: cairn.internal\r\n'), 200);
});

test('promtool finds nothing to object to', async (t) => {
  const lint = (text: string) => spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (isLockedRun || lint('').error !== undefined) return t.skip('promtool is not to be had here');
  const app = await createApp();
  t.after(() => app.close());
  const operations = new Operations();
  operations.observer.request(entry);
  const port = await operations.listen({ app, log: silentLog, directory: '.' }, 0, '127.0.0.1');
  t.after(() => operations.drain());
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
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

test('the grammar check finds what is wrong', () => {
  const wrong = [
    'a 1', '# TYPE a gauge\na 1', '# HELP a x\n# TYPE a gauge\na{b=c} 1\n', '# HELP a x\n# TYPE a gauge\na 1,5\n',
    '# HELP a x\n# TYPE a gauge\na 1\na 1\n', '# HELP a x\n# TYPE a gauge\nb 1\n', '# HELP a x\n# TYPE a meter\na 1\n',
    '# HELP a x\n# TYPE a counter\na 1\n', '# HELP a x\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n',
  ];
  for (const text of wrong) assert.throws(() => parseExposition(text), { name: 'AssertionError' }, text);
});
