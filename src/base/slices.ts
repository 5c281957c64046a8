import { limits } from './limits.ts';
import type { Clock } from './system.ts';

/** Waits for a slice of time in a later turn of the loop, if the current one is over. */
export type Breathe = () => Promise<void>;

/**
 * Shares the event loop between long work and everything else. Work breathes wherever it may be interrupted, every few
 * tens of microseconds; however many works there are, a turn of the loop has one slice for all.
 */
export function createSlices(clock: Clock): Breathe {
  const waiting: (() => void)[] = [];
  let startedAt = -Infinity;
  const next = (): void => {
    startedAt = clock.elapsed();
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(next);
  };
  return async function breathe() {
    if (clock.elapsed() - startedAt < limits.sliceMs) return;
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) setImmediate(next);
    });
  };
}
