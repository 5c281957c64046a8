import assert from 'node:assert/strict';
import { test } from 'node:test';

import { oldGenerationBytes } from '../../src/base/heap.ts';
import { limits } from '../../src/base/limits.ts';

const heapShares =
  limits.recordsHeapShareMax + limits.waitingHeapShareMax + limits.keptOrdersHeapShareMax +
  limits.replacedHeapShareMax + limits.eventsHeapShareMax;

for (const [what, low, high] of [
  ['what waits leaves room for kept orders', limits.waitingHeapShareMax, 1 / 4 - limits.keptOrdersHeapShareMax],
  ['no part of the heap is for two', heapShares, 0.92],
  ['a caller has at most half of what waits', limits.waitingPerCallerShareMax, 1 / 2],
  ['half in flight is for others', limits.requestsInFlightPerCallerMax, limits.requestsInFlightMax / 2],
  ['a network has at most half of the connections', limits.connectionsPerAddressMax, limits.connectionsMax / 2],
  ['a caller has at most half of the lists', limits.listsPerCallerMax, limits.listsMax / 2],
  ['a caller has at most half of the streams', limits.listenersPerCallerMax, limits.listenersMax / 2],
  ['each request in flight can wait for the disk', limits.requestsInFlightMax, limits.waitingTransactionsMax],
  ['kept replies leave most memory to other records', limits.keptMemoryShareMax, 1 / 4],
  ['a body holds a batch of small records', limits.elementsMax * 5, limits.jsonValuesMax],
  ['a page holds what one request creates', limits.elementsMax, limits.pageRecordsMax],
  ['a body without sign-in is within that of a user', limits.anonymousBodyBytesMax, limits.bodyBytesMax],
  ['a body holds most records', limits.bodyBytesMax, limits.recordBytesMax],
  ['a body that does not count is small', limits.uncountedBodyBytesMax, limits.anonymousBodyBytesMax],
  ['a token of its own is within all', limits.accessTokenSeconds, limits.accessTokenLifetimeSecondsMax],
  ['a used cookie lives longer', limits.cookieIdleSecondsMax, limits.cookieLifetimeSecondsMax],
  ['a refresh token that is used lives longer', limits.refreshIdleSecondsMax, limits.refreshLifetimeSecondsMax],
  ['a request arrives within the time of its fields and body', limits.headersTimeoutMs, limits.requestTimeoutMs],
  ['a slow reader is cut off before a stop is', limits.slowReaderTimeoutMs, limits.drainTimeoutMs],
  ['a network has at most half of the handshakes', limits.handshakesPerNetworkMax, limits.handshakesMax / 2],
] as const) {
  test(`the bounds agree: ${what}`, () => assert.ok(low <= high, `${low} is more than ${high}`));
}

test('shares of memory are parts of the old generation only', () => {
  const mebibytes = (limit: number, version: string): number =>
    oldGenerationBytes(limit * 1024 * 1024, version) / (1024 * 1024);
  assert.equal(mebibytes(144, '20.20.2'), 96);
  assert.equal(mebibytes(4096 + 192, '24.21.0'), 4096);
  assert.equal(mebibytes(144, '24.21.0'), 72, 'a young generation that was made smaller is not subtracted');
});
