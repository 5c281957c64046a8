import { limits } from './limits.ts';
import type { Clock } from './system.ts';

/**
 * Resolves at once within the current slice of time, and otherwise in a later turn of the
 * event loop. Callers take turns, however many tasks each of them has.
 */
export type YieldToEventLoop = (caller?: string) => Promise<void>;

/**
 * Shares the event loop between long tasks and all other work. A long task calls the
 * returned function every few tens of microseconds. Each turn of the loop has one slice
 * for all tasks.
 */
export function createSlices(clock: Clock): YieldToEventLoop {
  /** The tasks of each caller that wait, the caller whose turn is next first. */
  const waiting = new Map<string, (() => void)[]>();
  let startedAt = -Infinity;
  const startNext = (): void => {
    startedAt = clock.elapsed();
    const [[caller, tasks] = ['', []]] = waiting;
    waiting.delete(caller);
    tasks.shift()?.();
    if (tasks.length > 0) waiting.set(caller, tasks);
    if (waiting.size > 0) setImmediate(startNext);
  };
  return async function yieldToEventLoop(caller = '') {
    if (clock.elapsed() - startedAt < limits.sliceMs) return;
    await new Promise<void>((resolve) => {
      if (waiting.size === 0) setImmediate(startNext);
      const tasks = waiting.get(caller) ?? [];
      if (tasks.push(resolve) === 1) waiting.set(caller, tasks);
    });
  };
}
