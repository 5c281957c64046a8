import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLive, lastSeenIsDue, newSessionId, secretHash, sessionEndsAt } from '../../src/auth/secrets.ts';
import { createRandom } from '../support/basics.ts';

const kind = 'cookie';
const hour = 3600_000;

test('FIPS 180-4 example "abc": a secret is stored as its SHA-256', () => {
  const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  assert.equal(Buffer.from(secretHash('abc'), 'base64url').toString('hex'), expected);
});

test('a session id has 256 random bits', () => {
  const random = createRandom('sid');
  const [one, two] = [newSessionId(random), newSessionId(random)];
  assert.match(one, /^[\w-]{43}$/);
  assert.notEqual(one, two);
});

test('a session ends at the earlier of its idle and absolute limits', () => {
  assert.equal(sessionEndsAt({ kind, createdAt: 0, lastSeenAt: 0 }), 12 * hour);
  assert.equal(sessionEndsAt({ kind, createdAt: 0, lastSeenAt: 156 * hour }), 168 * hour);
  assert.equal(sessionEndsAt({ kind, createdAt: 0, lastSeenAt: 167 * hour }), 168 * hour);
  assert.equal(sessionEndsAt({ kind: 'refresh', createdAt: 0, lastSeenAt: 0 }), 14 * 24 * hour);
});

test('a session is live until its end; one from the future counts as new', () => {
  const times = { kind, createdAt: hour, lastSeenAt: 2 * hour } as const;
  const liveAt = (now: number) => isLive(times, now);
  assert.deepEqual([0, hour, 14 * hour - 1, 14 * hour].map(liveAt), [true, true, true, false]);
});

test('a session that was used by a clock that was ahead ends by its start', () => {
  const times = { kind, createdAt: 0, lastSeenAt: 10_000 * hour } as const;
  assert.equal(isLive(times, 168 * hour - 1), true);
  assert.equal(isLive(times, 168 * hour), false);
});

test('a use is recorded at most once in a twelfth of the idle time', () => {
  const seenAt = (now: number) => lastSeenIsDue({ kind, createdAt: 0, lastSeenAt: 1000 }, now);
  assert.equal(seenAt(1000), false);
  assert.equal(seenAt(hour + 999), false);
  assert.equal(seenAt(hour + 1000), true);
  assert.equal(seenAt(-hour), false, 'the clock was set back');
});
