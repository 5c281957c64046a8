import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RequestEntry } from '../../src/http/message.ts';
import { Minutes } from '../../src/features/page/minutes.ts';
import { TestClock } from '../support/basics.ts';

const entry: RequestEntry = {
  id: '', method: 'GET', target: '/items', route: '/items', status: 200, durationMs: 1, bytes: 0, userId: undefined,
  address: '192.0.2.7',
};

test('minutes count requests, writes, failed sign-ins and records', () => {
  const clock = new TestClock();
  let records = 7;
  const minutes = new Minutes(clock, () => records);
  minutes.request(entry);
  minutes.request({ ...entry, method: 'POST', status: 201 });
  minutes.request({ ...entry, method: 'POST', status: 422 });
  minutes.request({ ...entry, method: 'POST', route: '/login', status: 401 });
  clock.advance(60);
  minutes.request({ ...entry, method: 'DELETE', status: 204 });
  records = 9;
  const figures = minutes.recent().map((each) => [each.requests, each.writes, each.failedSignIns, each.records]);
  assert.deepEqual(figures, [[4, 1, 1, 7], [1, 1, 0, 9]]);
});

test('the 99th percentile is exact to a quarter, from nothing to a minute', () => {
  const clock = new TestClock();
  const minutes = new Minutes(clock, () => 0);
  const p99 = (): number => minutes.recent().at(-1)?.p99Ms ?? NaN;
  assert.equal(p99(), 0, 'no request');
  for (const durationMs of [0, 0.12, 0.3, 1, 4, 250, 9000, 60_000]) {
    clock.advance(60);
    for (let count = 0; count < 99; count += 1) minutes.request({ ...entry, durationMs });
    // One in a hundred may take longer.
    minutes.request({ ...entry, durationMs: 65_000 });
    assert.ok(p99() >= durationMs && p99() <= Math.max(durationMs * 1.25, 0.1) + 0.1, `${durationMs}: ${p99()}`);
  }
});

test('minutes without requests are kept, sixty in all, also after a long silence', () => {
  const clock = new TestClock();
  const minutes = new Minutes(clock, () => 1);
  minutes.request(entry);
  clock.advance(3 * 60);
  assert.deepEqual(minutes.recent().map(({ requests }) => requests), [1, 0, 0, 0]);
  clock.advance(24 * 3600);
  const hour = minutes.recent();
  assert.equal(hour.length, 60);
  const starts = hour.map(({ at }) => Date.parse(at));
  assert.deepEqual(starts, starts.map((_, index) => (starts[0] ?? 0) + index * 60_000));
  assert.equal(starts.at(-1), Math.floor(clock.now() / 60_000) * 60_000);
});

test('a feed is counted as a request, but its duration is not a latency', () => {
  const minutes = new Minutes(new TestClock(), () => 0);
  minutes.request({ ...entry, durationMs: 1 });
  minutes.request({ ...entry, target: '/changes', route: '/changes', durationMs: 7000 });
  const [{ requests, p99Ms } = { requests: 0, p99Ms: 0 }] = minutes.recent();
  assert.equal(requests, 2);
  assert.ok(p99Ms < 2, `${p99Ms} ms`);
});
