import { limits } from './limits.ts';
import type { Clock } from './system.ts';

/**
 * When records began, where the clock may be wrong. A beginning in the future says that this clock
 * is behind, or that the one was ahead that wrote it. Then the age counts from when this run first
 * saw the record: nothing ends for that, and in one run nothing lives for longer than its lifetime.
 * A restart begins to count again.
 */
export class Beginnings {
  readonly #clock: Clock;
  /** When records from the future were first seen, in elapsed milliseconds, by their ids. */
  readonly #seen = new Map<number, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of({ id, createdAt }: { readonly id: number; readonly createdAt: number }): number {
    const now = this.#clock.now();
    if (createdAt <= now + limits.clockSkewSecondsMax * 1000) return createdAt;
    const elapsed = this.#clock.elapsed();
    const seen = this.#seen.get(id) ?? elapsed;
    this.#seen.set(id, seen);
    return now - (elapsed - seen);
  }
}
