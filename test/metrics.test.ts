import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RequestEntry } from '../src/http/message.ts';
import { silentLog } from '../src/log.ts';
import { createMetrics, exposition } from '../src/operations.ts';
import { parseExposition, sampleValue } from './prometheus.ts';

const entry: RequestEntry = {
  id: 'a', method: 'GET', route: '/items/{id}', status: 200, durationMs: 0.7, bytes: 10, userId: 1,
};

test('requests are counted by method, route and status, and timed by route', () => {
  const metrics = createMetrics(silentLog, '1.2.3');
  const { log } = metrics;
  log.request(entry);
  log.request({ ...entry, durationMs: 3 });
  log.request({ ...entry, durationMs: 60_000, status: 404, method: 'HEAD' });
  log.request({ ...entry, route: undefined, method: 'BREW"\n', status: 405 });
  log.security('login', {});
  log.security('login', {});
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
  assert.ok(Math.abs(begun - process.uptime()) < 1, String(begun));
  assert.equal(value('cairn_info', { version: '1.2.3', node: process.version }), 1);
});

test('a bound of a bucket belongs to the bucket', () => {
  const metrics = createMetrics(silentLog, '1');
  const { log } = metrics;
  log.request({ ...entry, durationMs: 5 });
  const buckets = parseExposition(exposition(metrics.families())).filter(({ name }) => name.endsWith('_bucket'));
  assert.equal(buckets.find(({ labels }) => labels['le'] === '0.0025')?.value, 0);
  assert.equal(buckets.find(({ labels }) => labels['le'] === '0.005')?.value, 1);
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
