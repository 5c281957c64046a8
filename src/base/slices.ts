import { limits } from './limits.ts';
import type { Clock } from './system.ts';

/** Resolves at once while the current slice of time lasts, and else in a later turn of the event loop. */
export type YieldToEventLoop = () => Promise<void>;

/**
 * Shares the event loop between long tasks and everything else. A task calls the returned function every few tens of
 * microseconds, wherever it may be interrupted. Each turn of the loop has one slice, however many tasks there are.
 */
export function createSlices(clock: Clock): YieldToEventLoop {
  const waiting: (() => void)[] = [];
  let startedAt = -Infinity;
  const startNext = (): void => {
    startedAt = clock.elapsed();
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(startNext);
  };
  return async function yieldToEventLoop() {
    if (clock.elapsed() - startedAt < limits.sliceMs) return;
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) setImmediate(startNext);
    });
  };
}
