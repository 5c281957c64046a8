import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Throttle } from '../../src/auth/throttle.ts';
import { CairnError } from '../../src/base/errors.ts';
import { limits } from '../../src/base/limits.ts';
import { TestClock } from '../support/basics.ts';

function setUp() {
  const clock = new TestClock();
  return { clock, throttle: new Throttle(clock) };
}

/** Makes an attempt that fails. Returns the seconds to wait if it was refused, or 0. */
function fail(throttle: Throttle, account: string, address: string): number {
  try {
    throttle.signIn(account, address).settle('failed');
    return 0;
  } catch (error) {
    assert.ok(error instanceof CairnError);
    assert.equal(error.code, 'too_many_requests');
    assert.ok(Number.isInteger(error.retryAfterSeconds) && (error.retryAfterSeconds ?? 0) > 0);
    return error.retryAfterSeconds ?? 0;
  }
}

/** Returns how many attempts are admitted before one is refused. */
function failuresUntilRefused(attempt: (index: number) => number): number {
  for (let index = 0; index < 10_000; index += 1) if (attempt(index) > 0) return index;
  throw new Error('never refused');
}

test('an account from one address: 5 failures, then one per minute; refused attempts do not count', () => {
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

test('accounts are compared without regard to case', () => {
  const { throttle } = setUp();
  const names = ['a@example.org', 'A@example.org', 'a@EXAMPLE.org'];
  assert.equal(failuresUntilRefused((index) => fail(throttle, names[index % 3] ?? '', '192.0.2.1')), 5);
});

test('one address: 30 failures on any accounts', () => {
  const { throttle } = setUp();
  assert.equal(failuresUntilRefused((index) => fail(throttle, `${index}@example.org`, '192.0.2.1')), 30);
  assert.equal(fail(throttle, 'z@example.org', '192.0.2.2'), 0, 'another address');
});

test('one IPv6 network of 48 bits is one network', () => {
  const { throttle } = setUp();
  assert.equal(failuresUntilRefused((index) => fail(throttle, anyone(index), inOneSite(index))), 30);
  assert.equal(fail(throttle, 'z@example.org', '2001:db8:8::1'), 0, 'another network');
  assert.equal(fail(throttle, 'z@example.org', '192.0.2.1'), 0, 'an IPv4 address');
});

test('two unknown callers: the failures of one do not delay the other', () => {
  for (const [one, other] of [['192.0.2.1', '192.0.2.2'], ['2001:db8:7::1', '2001:db8:8::1'], ['192.0.2.1', '::1']]) {
    const { throttle } = setUp();
    for (let index = 0; index < 100; index += 1) fail(throttle, anyone(index), one ?? '');
    assert.equal(failuresUntilRefused(() => fail(throttle, 'a', other ?? '')), 5);
    assert.equal(failuresUntilRefused((index) => fail(throttle, `b${index}`, other ?? '')), 25);
  }
});

test('one account: 30 failures from any addresses', () => {
  const { throttle } = setUp();
  assert.equal(failuresUntilRefused((index) => fail(throttle, 'a@example.org', `192.0.2.${index}`)), 30);
  assert.equal(fail(throttle, 'b@example.org', '192.0.2.200'), 0, 'another account');
});

/** Asks for an e-mail address. Returns the seconds to wait if it was refused, or 0. */
function ask(throttle: Throttle, userId: number | undefined, address: string): number {
  try {
    throttle.countNewEmail(userId, address);
    return 0;
  } catch (error) {
    assert.ok(error instanceof CairnError && error.code === 'too_many_requests');
    return error.retryAfterSeconds ?? 0;
  }
}

const anywhere = (index: number): string => `10.0.${index >> 8}.${index & 255}`;
const inOneSite = (index: number): string => `2001:db8:7:${index.toString(16)}::1`;
const anyone = (index: number): string => `${index}@example.org`;

/** Each count: how many are admitted at once, and then one in how many seconds. */
const rates: readonly [string, number, number, (throttle: Throttle, index: number) => number][] = [
  ['failures of an account from one address', 5, 60, (throttle) => fail(throttle, 'a', '192.0.2.1')],
  ['failures of one address', 30, 10, (throttle, index) => fail(throttle, anyone(index), '192.0.2.1')],
  ['failures of one IPv6 network', 30, 10, (throttle, index) => fail(throttle, anyone(index), inOneSite(index))],
  ['all failures', 600, 0.2, (throttle, index) => fail(throttle, anyone(index), anywhere(index))],
  ['failures of one account', 30, 120, (throttle, index) => fail(throttle, 'a', anywhere(index))],
  ['e-mail addresses of one address', 30, 10, (throttle) => ask(throttle, undefined, '192.0.2.1')],
  ['e-mail addresses of one IPv6 network', 30, 10, (throttle, index) => ask(throttle, undefined, inOneSite(index))],
  ['all e-mail addresses of strangers', 600, 0.2, (throttle, index) => ask(throttle, undefined, anywhere(index))],
  ['e-mail addresses of one user', 30, 10, (throttle, index) => ask(throttle, 7, anywhere(index))],
];
for (const [what, burst, seconds, attempt] of rates) {
  test(`${what}: ${burst} at once, then one in ${seconds} s`, () => {
    const { clock, throttle } = setUp();
    assert.equal(failuresUntilRefused((index) => attempt(throttle, index)), burst);
    assert.equal(attempt(throttle, burst), Math.ceil(seconds));
    clock.advance(seconds * 0.9);
    assert.ok(attempt(throttle, burst) > 0, 'too early');
    clock.advance(seconds * 0.2);
    assert.deepEqual([attempt(throttle, burst), attempt(throttle, burst + 1)], [0, Math.ceil(seconds * 0.9)]);
  });
}

/** Makes 1,000 failures on this account from elsewhere, and on other accounts from this address. */
function attack(throttle: Throttle): void {
  for (let index = 0; index < 1000; index += 1) {
    const elsewhere = anywhere(index);
    fail(throttle, 'a@example.org', elsewhere);
    fail(throttle, `${index}@example.org`, '192.0.2.1');
    fail(throttle, `${index}@example.org`, elsewhere);
  }
}

test("other people's failures do not delay an account from a network where it has signed in before", () => {
  const { throttle } = setUp();
  throttle.signIn('a@example.org', '192.0.2.1').settle('succeeded');
  attack(throttle);
  assert.ok(fail(throttle, 'a@example.org', '192.0.2.2') > 0, 'another address');
  assert.ok(fail(throttle, 'b@example.org', '192.0.2.1') > 0, 'another account');
  assert.equal(failuresUntilRefused(() => fail(throttle, 'a@example.org', '192.0.2.1')), 5, 'but by its own failures');
});

test("other people's failures do not delay an account with a session, even after a restart", () => {
  const { throttle } = setUp();
  attack(throttle);
  assert.throws(() => throttle.signIn('a@example.org', '192.0.2.1'), { code: 'too_many_requests' });
  const { settle, turn } = throttle.signIn('a@example.org', '192.0.2.1', true);
  settle('failed');
  assert.match(turn, / /, 'not an address');
});

test('a successful sign-in clears only the failures of its account from its address', () => {
  const { throttle } = setUp();
  const attempt = (account: string) => () => fail(throttle, account, '192.0.2.1');
  for (let index = 0; index < 4; index += 1) attempt('a@example.org')();
  throttle.signIn('a@example.org', '192.0.2.1').settle('succeeded');
  assert.equal(failuresUntilRefused(attempt('a@example.org')), 5);
  // The address has 4 failures; those after the sign-in count only for the pair.
  assert.equal(failuresUntilRefused((index) => attempt(`${index}@example.org`)()), 26);
});

test('attempts that are withdrawn or succeed do not count', () => {
  const { throttle } = setUp();
  for (let index = 0; index < 100; index += 1) {
    throttle.signIn('a@example.org', '192.0.2.1').settle('withdrawn');
    throttle.signIn('a@example.org', '192.0.2.1').settle('succeeded');
  }
});

test('hashes are counted by account and address if the pair signed in before, else by network', () => {
  const { throttle } = setUp();
  const turnOf = (account: string, address: string, hasSession = false) => {
    const { turn, settle } = throttle.signIn(account, address, hasSession);
    settle('withdrawn');
    return turn;
  };
  assert.deepEqual(turnOf('a@example.org', '2001:db8::1'), turnOf('b@example.org', '2001:db8::2'));
  const [one, two] = [turnOf('a@example.org', '192.0.2.1', true), turnOf('b@example.org', '192.0.2.1', true)];
  assert.deepEqual([one.includes(' '), two.includes(' '), one === two], [true, true, false]);
  assert.equal(turnOf('c@example.org', '192.0.2.1'), '192.0.2.1');
});

test('concurrent attempts count as failures until they are decided', () => {
  const { throttle } = setUp();
  assert.equal(fail(throttle, 'a@example.org', '192.0.2.1'), 0);
  const begin = () => throttle.signIn('a@example.org', '192.0.2.1');
  const running = Array.from({ length: 4 }, begin);
  assert.throws(begin, { code: 'too_many_requests', retryAfterSeconds: 60 });
  running[0]?.settle('withdrawn');
  running.push(begin());
  for (const { settle } of running.slice(1)) settle('failed');
  assert.throws(begin, { code: 'too_many_requests', retryAfterSeconds: 60, message: /attempts have failed/ });
});

test('concurrent successful sign-ins do not delay later ones', () => {
  const { clock, throttle } = setUp();
  for (let round = 0; round < 100; round += 1) {
    const running = Array.from({ length: 5 }, () => throttle.signIn('a@example.org', '192.0.2.1'));
    for (const { settle } of running) settle('succeeded');
    clock.advance(25);
  }
});

test('one address: 30 new e-mail addresses, then one per 10 seconds; sign-ins are not affected', () => {
  const { clock, throttle } = setUp();
  const ask = () => throttle.countNewEmail(undefined, '192.0.2.1');
  for (let index = 0; index < 30; index += 1) ask();
  assert.throws(ask, { code: 'too_many_requests', retryAfterSeconds: 10 });
  throttle.countNewEmail(undefined, '192.0.2.2');
  clock.advance(10);
  ask();
  assert.equal(failuresUntilRefused(() => fail(throttle, 'a@example.org', '192.0.2.1')), 5);
});

test("in total: 600 new e-mail addresses from anonymous callers, then five per second; users' own do not count", () => {
  const { clock, throttle } = setUp();
  const stranger = (index: number): void => throttle.countNewEmail(undefined, `10.0.${index >> 8}.${index & 255}`);
  const user = (userId: number): void => throttle.countNewEmail(userId, '192.0.2.1');
  for (let index = 0; index < 600; index += 1) stranger(index);
  assert.throws(() => stranger(600), { code: 'too_many_requests', retryAfterSeconds: 1 });
  for (let index = 0; index < 1000; index += 1) user(index);
  clock.advance(1);
  stranger(600);
});

test('one user: 30 new e-mail addresses from anywhere, then one per 10 seconds', () => {
  const { throttle } = setUp();
  for (let index = 0; index < 30; index += 1) throttle.countNewEmail(7, `192.0.2.${index}`);
  assert.throws(() => throttle.countNewEmail(7, '192.0.2.99'), { retryAfterSeconds: 10 });
  throttle.countNewEmail(8, '192.0.2.1');
});

test('wrong current passwords are counted by user, apart from sign-ins', () => {
  const { throttle } = setUp();
  attack(throttle);
  for (let index = 0; index < 5; index += 1) throttle.proof(7).settle('failed');
  assert.throws(() => throttle.proof(7), { code: 'too_many_requests', retryAfterSeconds: 60 });
  assert.equal(throttle.proof(8).turn, 'user 8');
});

/** Memory in use after a garbage collection. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

test('the throttle forgets the oldest failures and known pairs when it has too many names', () => {
  const { throttle } = setUp();
  for (let index = 0; index < 5; index += 1) throttle.proof(0).settle('failed');
  throttle.signIn('a@example.org', '192.0.2.1').settle('succeeded');
  for (let userId = 1; userId < limits.throttleEntriesMax; userId += 1) throttle.proof(userId).settle('failed');
  assert.throws(() => throttle.proof(0), { code: 'too_many_requests' });
  throttle.proof(limits.throttleEntriesMax).settle('failed');
  throttle.proof(0).settle('failed');
  assert.match(throttle.signIn('a@example.org', '192.0.2.1').turn, / /);
  for (let index = 0; index < limits.throttleEntriesMax; index += 1)
    throttle.signIn(anyone(index), '192.0.2.1').settle('succeeded');
  assert.equal(throttle.signIn('a@example.org', '192.0.2.1').turn, '192.0.2.1');
});

test('a flood of names takes bounded memory and delays few other accounts', () => {
  const { clock, throttle } = setUp();
  const before = heapUsed();
  for (let index = 0; index < 20_000; index += 1) {
    throttle.signIn(`name ${index}`, `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`).settle('failed');
    clock.advance(0.2);
  }
  assert.ok(heapUsed() - before < 1_000_000, 'names whose failures are forgotten are dropped');
  let heldUp = 0;
  for (let index = 0; index < 1000; index += 1) {
    clock.advance(0.2);
    if (fail(throttle, `other ${index}`, `172.16.${index >> 8}.${index & 255}`) > 0) heldUp += 1;
  }
  assert.equal(heldUp, 0);
});
