import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Beginnings } from '../../src/base/beginnings.ts';
import { TestClock } from '../support/auth/helpers.ts';

test('the age of what began in the future counts from when this run first saw it, whatever the clock does', () => {
  const clock = new TestClock();
  const beginnings = new Beginnings(clock);
  const record = { id: 1, createdAt: clock.now() + 60_001 };
  assert.equal(beginnings.of({ id: 2, createdAt: clock.now() + 60_000 }), clock.now() + 60_000, 'within the skew');
  const age = () => (clock.now() - beginnings.of(record)) / 1000;
  assert.equal(age(), 0);
  clock.step(-1_000_000);
  assert.equal(age(), 0);
  clock.advance(100);
  assert.equal(age(), 100);
  clock.step(1_000_000);
  assert.equal(clock.now() - beginnings.of(record), 39_999, 'once the clock is right, it is what the record says');
});
