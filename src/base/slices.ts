import { limits } from './limits.ts';
import type { Clock } from './system.ts';

/**
 * Shares the event loop between long work and everything else. Work is a generator that yields wherever it may be
 * interrupted, every few tens of microseconds; however many works there are, a turn of the loop has one slice for all.
 */
export class Slices {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #startedAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `work` to its end and resolves with what it returns. What it does before its first yield is done at once. */
  async run<T>(work: Iterator<unknown, T>): Promise<T> {
    for (;;) {
      const step = work.next();
      if (step.done === true) return step.value;
      await this.breathe();
    }
  }

  /** Waits for a slice in a later turn of the loop, if the current one is over. */
  async breathe(): Promise<void> {
    if (this.#clock.elapsed() - this.#startedAt < limits.sliceMs) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(this.#next);
    });
  }

  readonly #next = (): void => {
    this.#startedAt = this.#clock.elapsed();
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(this.#next);
  };
}
