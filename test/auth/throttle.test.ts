import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Throttle } from '../../src/auth/throttle.ts';
import { CairnError } from '../../src/base/errors.ts';
import { TestClock, testRandom } from './helpers.ts';

function setUp() {
  const clock = new TestClock();
  return { clock, throttle: new Throttle({ clock, random: testRandom('throttle') }) };
}

/** Seconds to wait, or 0 when the attempt was let through; it then fails. */
function fail(throttle: Throttle, account: string, address: string): number {
  try {
    throttle.attempt(account, address)('failed');
    return 0;
  } catch (error) {
    assert.ok(error instanceof CairnError);
    assert.equal(error.code, 'too_many_requests');
    assert.ok(Number.isInteger(error.retryAfterSeconds) && (error.retryAfterSeconds ?? 0) > 0);
    return error.retryAfterSeconds ?? 0;
  }
}

/** How many attempts in a row are let through before one is refused. */
function failuresUntilRefused(attempt: (index: number) => number): number {
  for (let index = 0; index < 10_000; index += 1) if (attempt(index) > 0) return index;
  throw new Error('never refused');
}

test('an account from one address: 5 failures, then one a minute, and refused attempts do not count', () => {
  const { clock, throttle } = setUp();
  const attempt = () => fail(throttle, 'a@example.org', '192.0.2.1');
  assert.equal(failuresUntilRefused(attempt), 5);
  for (let index = 0; index < 100; index += 1) assert.equal(attempt(), 60);
  clock.advance(59);
  assert.equal(attempt(), 1);
  clock.advance(1);
  assert.equal(attempt(), 0);
  assert.equal(attempt(), 60);
  clock.advance(3600);
  assert.equal(failuresUntilRefused(attempt), 5, 'an hour later all is forgotten');
});

test('capitals make no other account', () => {
  const { throttle } = setUp();
  const names = ['a@example.org', 'A@example.org', 'a@EXAMPLE.org'];
  assert.equal(failuresUntilRefused((index) => fail(throttle, names[index % 3] ?? '', '192.0.2.1')), 5);
});

test('one address: 30 failures on whatever accounts', () => {
  const { throttle } = setUp();
  assert.equal(failuresUntilRefused((index) => fail(throttle, `${index}@example.org`, '192.0.2.1')), 30);
  assert.equal(fail(throttle, 'z@example.org', '192.0.2.2'), 0, 'another address');
});

test('one IPv6 network of 64 bits is one address', () => {
  const { throttle } = setUp();
  const inside = (index: number) => `2001:db8:0:1:${index.toString(16)}::1`;
  assert.equal(failuresUntilRefused((index) => fail(throttle, `${index}@example.org`, inside(index))), 30);
  assert.equal(fail(throttle, 'z@example.org', '2001:db8:0:2::1'), 0);
});

test('one account: 30 failures from whatever addresses', () => {
  const { throttle } = setUp();
  assert.equal(failuresUntilRefused((index) => fail(throttle, 'a@example.org', `192.0.2.${index}`)), 30);
  assert.equal(fail(throttle, 'b@example.org', '192.0.2.200'), 0, 'another account');
});

test('all together: 600 failures', () => {
  const { throttle } = setUp();
  const attempt = (index: number) => fail(throttle, `${index}@example.org`, `10.0.${index >> 8}.${index & 255}`);
  assert.equal(failuresUntilRefused(attempt), 600);
});

test('an address that signed in before is not held up by what others do', () => {
  const { throttle } = setUp();
  throttle.attempt('a@example.org', '192.0.2.1')('succeeded');
  for (let index = 0; index < 1000; index += 1) {
    fail(throttle, 'a@example.org', `10.0.${index >> 8}.${index & 255}`);
    fail(throttle, `${index}@example.org`, `10.1.${index >> 8}.${index & 255}`);
  }
  assert.ok(fail(throttle, 'a@example.org', '192.0.2.2') > 0);
  assert.ok(fail(throttle, 'b@example.org', '192.0.2.1') > 0, 'it was another account that signed in here');
  assert.equal(failuresUntilRefused(() => fail(throttle, 'a@example.org', '192.0.2.1')), 5, 'but by its own failures');
});

test('a good login forgets the failures of its account from its address, and no others', () => {
  const { throttle } = setUp();
  const attempt = (account: string) => () => fail(throttle, account, '192.0.2.1');
  for (let index = 0; index < 4; index += 1) attempt('a@example.org')();
  throttle.attempt('a@example.org', '192.0.2.1')('succeeded');
  assert.equal(failuresUntilRefused(attempt('a@example.org')), 5);
  // 4 + 5 failures of the address so far, and the one that was good.
  assert.equal(failuresUntilRefused((index) => attempt(`${index}@example.org`)()), 21);
});

test('good logins and withdrawn attempts do not count', () => {
  const { throttle } = setUp();
  for (let index = 0; index < 1000; index += 1) {
    throttle.attempt('a@example.org', '192.0.2.1')('succeeded');
    throttle.attempt(`${index}@example.org`, '192.0.2.1')('withdrawn');
  }
  assert.equal(failuresUntilRefused(() => fail(throttle, 'b@example.org', '192.0.2.1')), 5);
});

test('attempts at the same time are no more than may fail; the next one waits for them, and no longer', () => {
  const { throttle } = setUp();
  assert.equal(fail(throttle, 'a@example.org', '192.0.2.1'), 0);
  const begin = () => throttle.attempt('a@example.org', '192.0.2.1');
  const running = Array.from({ length: 4 }, begin);
  assert.throws(begin, { code: 'too_many_requests', retryAfterSeconds: 1, message: /are being checked at this/ });
  running[0]?.('withdrawn');
  running.push(begin());
  for (const settle of running.slice(1)) settle('failed');
  assert.throws(begin, { code: 'too_many_requests', retryAfterSeconds: 60, message: /attempts have failed/ });
});

test('no number of good logins at the same time holds up the one after them', () => {
  const { throttle } = setUp();
  for (let round = 0; round < 100; round += 1) {
    const running = Array.from({ length: 5 }, () => throttle.attempt('a@example.org', '192.0.2.1'));
    for (const settle of running) settle('succeeded');
  }
});

test('30 e-mail addresses may be asked for from one place, then one in 10 seconds; sign-in goes on', () => {
  const { clock, throttle } = setUp();
  for (let index = 0; index < 30; index += 1) throttle.countNewEmail('192.0.2.1');
  assert.throws(() => throttle.countNewEmail('192.0.2.1'), { code: 'too_many_requests', retryAfterSeconds: 10 });
  throttle.countNewEmail('192.0.2.2');
  clock.advance(10);
  throttle.countNewEmail('192.0.2.1');
  assert.equal(failuresUntilRefused(() => fail(throttle, 'a@example.org', '192.0.2.1')), 5);
});

test('many names take no more memory and hold up few others', () => {
  const { clock, throttle } = setUp();
  const before = process.memoryUsage().arrayBuffers;
  for (let index = 0; index < 20_000; index += 1) {
    throttle.attempt(`name ${index}`, `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`)('failed');
    clock.advance(0.2);
  }
  assert.ok(process.memoryUsage().arrayBuffers - before < 100_000);
  let heldUp = 0;
  for (let index = 0; index < 1000; index += 1) {
    clock.advance(0.2);
    if (fail(throttle, `other ${index}`, `172.16.${index >> 8}.${index & 255}`) > 0) heldUp += 1;
  }
  assert.equal(heldUp, 0);
});
