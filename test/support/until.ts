import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { timers } from '../../src/base/system.ts';

/** How long a test waits for what has to come: only what never comes takes as long, also on a machine that is busy. */
export const patienceMs = 60_000;

/** Waits until something holds in this process, or on its disk. */
export async function until(holds: () => boolean, what = `never held: ${holds}`): Promise<void> {
  for (const end = performance.now() + patienceMs; !holds(); await delay(2)) assert.ok(performance.now() < end, what);
}

/** Rejects with `what` when the promise never settles. */
export async function within<T>(promise: Promise<T>, what: string | (() => string)): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const tell = (): string => `${typeof what === 'string' ? what : what()} within ${patienceMs} ms`;
    timer = setTimeout(() => reject(new Error(tell())), patienceMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

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
