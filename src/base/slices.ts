import { limits } from './limits.ts';
import type { Clock } from './system.ts';

/**
 * Resolves at once within the current slice of time, and otherwise in a later turn of the
 * event loop.
 */
export type YieldToEventLoop = () => Promise<void>;

/**
 * Shares the event loop between long tasks and all other work. A long task calls the
 * returned function every few tens of microseconds. Each turn of the loop has one slice
 * for all tasks.
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
