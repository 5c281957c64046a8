import type { Clock } from '../base/system.ts';

/** Runs tasks in order, at most as many in a second as a rate allows. */
export class Pace {
  readonly #clock: Clock;
  readonly #spacingMs: number;
  /** The tasks that wait, in order. */
  readonly #waiting = new Set<() => void>();
  /** When the next task may run (`Clock.elapsed`). */
  #nextMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#spacingMs = 1000 / perSecond;
  }

  /** Runs a task, at once if it is due. */
  run(task: () => void): void {
    if (this.#waiting.size === 0) this.#nextMs = Math.max(this.#nextMs, this.#clock.elapsed());
    this.#waiting.add(task);
    if (this.#timer === undefined) this.#runDue();
  }

  /** Takes a task out that waits. It costs those behind it no time. */
  forget(task: () => void): void {
    this.#waiting.delete(task);
  }

  /** Runs all tasks that wait. */
  runAll(): void {
    for (const task of this.#waiting) this.#start(task);
  }

  #runDue(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.elapsed();
    for (const task of this.#waiting) {
      if (this.#nextMs > nowMs) {
        this.#timer = setTimeout(() => this.#runDue(), this.#nextMs - nowMs);
        return;
      }
      this.#nextMs += this.#spacingMs;
      this.#start(task);
    }
  }

  #start(task: () => void): void {
    this.#waiting.delete(task);
    task();
  }
}
