import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newKeyRing } from '../../src/auth/keys.ts';
import { rotateKeyRing } from '../../src/cli/keys.ts';
import {
  decideRefresh, familyHash, newRefreshToken, secretHash, successorAgain, deriveSuccessor,
} from '../../src/auth/secrets.ts';
import { createRandom } from '../support/basics.ts';

const rotatedAt = 1_000_000_000;
const endsAfter = 14 * 24 * 3600_000;
const times = { createdAt: 0, lastSeenAt: rotatedAt };
const state = { kind: 'refresh', tokenHash: 'current', previousHash: 'previous', ...times } as const;
const unused = { ...state, previousHash: undefined };

const table = [
  ['the current one', state, 'current', 0, 'rotate'],
  ['the current one, late', state, 'current', endsAfter - 1, 'rotate'],
  ['the current one, at the end', state, 'current', endsAfter, 'ended'],
  ['the previous one, immediately', state, 'previous', 0, 'repeat'],
  ['the previous one, after 30 s', state, 'previous', 30_000, 'repeat'],
  ['the previous one, after more than 30 s', state, 'previous', 30_001, 'reuse'],
  ['the previous one, after the clock was set back', state, 'previous', -5000, 'repeat'],
  ['the previous one, at the end', state, 'previous', endsAfter, 'ended'],
  ['the current one, after the clock was set far back', state, 'current', -60_001, 'rotate'],
  ['the previous one, after the clock was set far back', state, 'previous', -60_001, 'repeat'],
  ['the current one, before the family was started', { ...state, createdAt: rotatedAt }, 'current', -60_001, 'rotate'],
  ['an older one', state, 'older', 0, 'reuse'],
  ['an older one, at the end', state, 'older', endsAfter, 'ended'],
  ['the first one', unused, 'current', 0, 'rotate'],
  ['an invented one', unused, 'other', 0, 'reuse'],
] as const;
for (const [name, family, presented, after, expected] of table) {
  test(`refresh with ${name}: ${expected}`, () => {
    assert.equal(decideRefresh(family, presented, rotatedAt + after), expected);
  });
}

test('a token has 67 characters, and its successors have the same family', () => {
  const random = createRandom('refresh');
  const ring = newKeyRing(random, 0);
  const first = newRefreshToken(random);
  const second = deriveSuccessor(first, ring);
  const third = deriveSuccessor(second, ring);
  for (const token of [first, second, third]) {
    assert.match(token, /^[\w-]{67}$/);
    assert.equal(familyHash(token), familyHash(first));
  }
  assert.equal(new Set([first, second, third]).size, 3);
  assert.notEqual(familyHash(newRefreshToken(random)), familyHash(first));
});

test('a text that is not a refresh token has no family', () => {
  const token = newRefreshToken(createRandom('form'));
  for (const text of ['', token.slice(1), `${token}A`]) assert.equal(familyHash(text), undefined);
  for (const last of ['=', 'é', '\n', '+', ' ']) assert.equal(familyHash(token.slice(1) + last), undefined);
});

test('the same successor is derived again, even after a rotation, until the key leaves the ring', () => {
  const random = createRandom('again');
  const ring = newKeyRing(random, 0);
  const token = newRefreshToken(random);
  const successor = deriveSuccessor(token, ring);
  const hash = secretHash(successor);
  assert.equal(successorAgain(token, hash, ring), successor);
  const rotated = rotateKeyRing(ring, random, 1000);
  assert.notEqual(deriveSuccessor(token, rotated), successor);
  assert.equal(successorAgain(token, hash, rotated), successor);
  assert.equal(successorAgain(token, hash, newKeyRing(random, 0)), undefined);
});
