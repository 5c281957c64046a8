import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newKeyRing, rotateKeyRing } from '../../src/auth/keys.ts';
import {
  decideRefresh, familyHash, newRefreshToken, secretHash, successorAgain, successorOf,
} from '../../src/auth/sessions.ts';
import { testRandom } from './helpers.ts';

const rotatedAt = 1_000_000_000;
const endsAfter = 14 * 24 * 3600_000;
const times = { createdAt: 0, lastSeenAt: rotatedAt };
const state = { kind: 'refresh', tokenHash: 'current', previousHash: 'previous', ...times } as const;
const unused = { ...state, previousHash: undefined };

const table = [
  ['the current one', state, 'current', 0, 'rotate'],
  ['the current one, late', state, 'current', endsAfter - 1, 'rotate'],
  ['the current one, at the end', state, 'current', endsAfter, 'ended'],
  ['the one before, at once', state, 'previous', 0, 'repeat'],
  ['the one before, after 30 s', state, 'previous', 30_000, 'repeat'],
  ['the one before, after more than 30 s', state, 'previous', 30_001, 'reuse'],
  ['the one before, by a clock that went back', state, 'previous', -5000, 'repeat'],
  ['the one before, at the end', state, 'previous', endsAfter, 'ended'],
  ['the current one, by a clock that went far back', state, 'current', -60_001, 'ended'],
  ['an older one', state, 'older', 0, 'reuse'],
  ['an older one, at the end', state, 'older', endsAfter, 'ended'],
  ['the first one', unused, 'current', 0, 'rotate'],
  ['one made up', unused, 'other', 0, 'reuse'],
] as const;
for (const [name, family, presented, after, expected] of table) {
  test(`refresh with ${name}: ${expected}`, () => {
    assert.equal(decideRefresh(family, presented, rotatedAt + after), expected);
  });
}

test('a token is 67 characters, of a family that its successors keep', () => {
  const random = testRandom('refresh');
  const ring = newKeyRing(random, 0);
  const first = newRefreshToken(random);
  const second = successorOf(first, ring);
  const third = successorOf(second, ring);
  for (const token of [first, second, third]) {
    assert.match(token, /^[\w-]{67}$/);
    assert.equal(familyHash(token), familyHash(first));
  }
  assert.equal(new Set([first, second, third]).size, 3);
  assert.notEqual(familyHash(newRefreshToken(random)), familyHash(first));
});

test('a text that is no refresh token has no family', () => {
  const token = newRefreshToken(testRandom('form'));
  for (const text of ['', token.slice(1), `${token}A`]) assert.equal(familyHash(text), undefined);
  for (const last of ['=', 'é', '\n', '+', ' ']) assert.equal(familyHash(token.slice(1) + last), undefined);
});

test('the successor is the same again, also after the keys were rotated, until the key has left', () => {
  const random = testRandom('again');
  const ring = newKeyRing(random, 0);
  const token = newRefreshToken(random);
  const successor = successorOf(token, ring);
  const hash = secretHash(successor);
  assert.equal(successorAgain(token, hash, ring), successor);
  const rotated = rotateKeyRing(ring, random, 1000);
  assert.notEqual(successorOf(token, rotated), successor);
  assert.equal(successorAgain(token, hash, rotated), successor);
  assert.equal(successorAgain(token, hash, newKeyRing(random, 0)), undefined);
});
