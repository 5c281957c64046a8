import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastSeenIsDue, newSessionId, secretHash, sessionEndsAt } from '../../src/auth/sessions.ts';
import { testRandom } from './helpers.ts';

const lifetimes = { idleSeconds: 12 * 60, maxSeconds: 3600 };

test('FIPS 180-4 example "abc": a secret is stored as its SHA-256', () => {
  const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  assert.equal(Buffer.from(secretHash('abc'), 'base64url').toString('hex'), expected);
});

test('a session id is 256 bits that nobody else gets', () => {
  const random = testRandom('sid');
  const [one, two] = [newSessionId(random), newSessionId(random)];
  assert.match(one, /^[\w-]{43}$/);
  assert.notEqual(one, two);
});

test('a session ends by the earlier of idleness and age', () => {
  assert.equal(sessionEndsAt({ createdAt: 0, lastSeenAt: 0 }, lifetimes), 720_000);
  assert.equal(sessionEndsAt({ createdAt: 0, lastSeenAt: 2_880_000 }, lifetimes), 3_600_000);
  assert.equal(sessionEndsAt({ createdAt: 0, lastSeenAt: 3_599_000 }, lifetimes), 3_600_000);
});

test('a use is written down once in a twelfth of the idle time', () => {
  const seenAt = (now: number) => lastSeenIsDue({ createdAt: 0, lastSeenAt: 1000 }, now, lifetimes);
  assert.equal(seenAt(1000), false);
  assert.equal(seenAt(60_999), false);
  assert.equal(seenAt(61_000), true);
  assert.equal(seenAt(0), false, 'a clock that went back');
});
