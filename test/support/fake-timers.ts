import type { TestContext } from 'node:test';

import { timers } from '../../src/base/system.ts';

/** Fake timers of the source, which fire only when a test lets time pass. */
export interface FakeTimers {
  tick(ms: number): void;
  /** Puts the real timers back. The end of the test does so, too. */
  reset(): void;
}

/** Replaces the timers of the source, which keeps its own ones whatever a program does to the global ones. */
export function fakeTimers(t: TestContext, api: 'setTimeout' | 'setInterval' = 'setTimeout'): FakeTimers {
  const real = { ...timers };
  t.mock.timers.enable({ apis: [api] });
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  Object.assign(timers, { setTimeout, clearTimeout, setInterval, clearInterval });
  const reset = (): void => {
    Object.assign(timers, real);
    t.mock.timers.reset();
  };
  t.after(reset);
  return { tick: (ms) => t.mock.timers.tick(ms), reset };
}
