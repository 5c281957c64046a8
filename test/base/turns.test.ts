import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import { createSlices, Turns } from '../../src/base/turns.ts';

/** A clock that a test sets. */
function handClock(): { elapsed: () => number; now: () => number; pass: (ms: number) => void } {
  let now = 0;
  return { now: () => now, elapsed: () => now, pass: (ms) => (now += ms) };
}

test('work that fits into a slice runs at once', async () => {
  const clock = handClock();
  const breathe = createSlices(clock);
  await breathe();
  let turns = 0;
  const count = setImmediate(() => (turns += 1));
  for (let step = 0; step < 1000; step += 1) await breathe();
  assert.equal(turns, 0);
  clearImmediate(count);
});

test('all work shares one slice per turn of the event loop', async () => {
  const clock = handClock();
  const breathe = createSlices(clock);
  const done: string[] = [];
  let turn = 0;
  const turns: number[] = [];
  let ticking = true;
  const tick = (): void => {
    turn += 1;
    if (ticking) setImmediate(tick);
  };
  tick();
  const work = async (name: string): Promise<void> => {
    for (let step = 0; step < 3; step += 1) {
      done.push(name);
      turns.push(turn);
      clock.pass(limits.sliceMs);
      await breathe();
    }
  };
  await Promise.all([work('a'), work('b'), work('c')]);
  ticking = false;
  assert.deepEqual(done.join(''), 'abcabcabc');
  const later = turns.slice(3);
  assert.equal(new Set(later).size, later.length, 'no turn of the loop has two slices');
});

test('callers take turns, however much work each has', async () => {
  const clock = handClock();
  const breathe = createSlices(clock);
  const done: string[] = [];
  const work = async (caller: string): Promise<void> => {
    for (let step = 0; step < 3; step += 1) {
      done.push(caller);
      clock.pass(limits.sliceMs);
      await breathe(caller);
    }
  };
  await Promise.all([...'aaaab'].map(work));
  assert.equal(done.join(''), 'aaaabababaaaaaa');
});

test('callers take turns with one task each', () => {
  const turns = new Turns<string>();
  const add = (caller: string, count: number): void => {
    for (let index = 0; index < count; index += 1) turns.add(caller, `${caller}${index}`);
  };
  add('a', 4);
  add('b', 2);
  add('c', 1);
  const order = Array.from({ length: 8 }, () => turns.next());
  assert.deepEqual(order, ['a0', 'b0', 'c0', 'a1', 'b1', 'a2', 'a3', undefined]);
  add('a', 1);
  add('b', 1);
  assert.deepEqual([turns.next(), turns.clear(), turns.size], ['a0', ['b0'], 0]);
});
