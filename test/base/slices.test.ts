import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import { Slices } from '../../src/base/slices.ts';

/** A clock that a test sets. */
function handClock(): { elapsed: () => number; now: () => number; pass: (ms: number) => void } {
  let now = 0;
  return { now: () => now, elapsed: () => now, pass: (ms) => (now += ms) };
}

test('work that is done within a slice is done at once', async () => {
  const clock = handClock();
  const slices = new Slices(clock);
  await slices.breathe();
  let turns = 0;
  const count = setImmediate(() => (turns += 1));
  function* work(): Generator<undefined, string> {
    for (let step = 0; step < 1000; step += 1) yield;
    return 'done';
  }
  assert.equal(await slices.run(work()), 'done');
  assert.equal(turns, 0);
  clearImmediate(count);
});

test('works take turns, one slice in a turn of the loop for all of them', async () => {
  const clock = handClock();
  const slices = new Slices(clock);
  const done: string[] = [];
  let turn = 0;
  const turns: number[] = [];
  let ticking = true;
  const tick = (): void => {
    turn += 1;
    if (ticking) setImmediate(tick);
  };
  tick();
  function* work(name: string): Generator<undefined, void> {
    for (let step = 0; step < 3; step += 1) {
      done.push(name);
      turns.push(turn);
      clock.pass(limits.sliceMs);
      yield;
    }
  }
  await Promise.all([slices.run(work('a')), slices.run(work('b')), slices.run(work('c'))]);
  ticking = false;
  assert.deepEqual(done.join(''), 'abcabcabc');
  const later = turns.slice(3);
  assert.equal(new Set(later).size, later.length, 'no turn of the loop has two slices');
});

test('an error of the work reaches whoever waits for it, and nobody else', async () => {
  const slices = new Slices(handClock());
  function* failing(): Generator<undefined, never> {
    yield;
    throw new Error('as planned');
  }
  function* fine(): Generator<undefined, number> {
    yield;
    return 1;
  }
  const outcomes = await Promise.allSettled([slices.run(failing()), slices.run(fine())]);
  assert.deepEqual(outcomes.map(({ status }) => status), ['rejected', 'fulfilled']);
});
