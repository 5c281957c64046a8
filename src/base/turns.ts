import { limits } from './limits.ts';
import { type Clock, timers } from './system.ts';

/**
 * A fair queue: callers take turns, however many tasks each has, and one caller's tasks keep their
 * order.
 */
export class Turns<T> {
  /** The first caller is next. */
  readonly #queues = new Map<string, T[]>();

  size = 0;

  add(caller: string, task: T): void {
    const own = this.#queues.get(caller);
    if (own !== undefined) own.push(task);
    else this.#queues.set(caller, [task]);
    this.size += 1;
  }

  /** The task's caller goes to the end. */
  next(): T | undefined {
    const [first] = this.#queues;
    if (first === undefined) return undefined;
    const [caller, tasks] = first;
    const task = tasks.shift();
    // A caller that is alone stays where it is.
    if (tasks.length === 0 || this.#queues.size > 1) this.#queues.delete(caller);
    if (tasks.length > 0) this.#queues.set(caller, tasks);
    this.size -= 1;
    return task;
  }

  clear(): T[] {
    const all = [...this.#queues.values()].flat();
    this.#queues.clear();
    this.size = 0;
    return all;
  }

  remove(caller: string, task: T): void {
    const tasks = this.#queues.get(caller) ?? [];
    const index = tasks.indexOf(task);
    if (index === -1) return;
    tasks.splice(index, 1);
    this.size -= 1;
    if (tasks.length === 0) this.#queues.delete(caller);
  }
}

/**
 * Resolves at once within the current time slice, otherwise in a later turn of the event loop.
 * Callers take turns.
 */
export type YieldToEventLoop = (caller?: string) => Promise<void>;

/**
 * Shares the event loop between long tasks and all other work. A long task calls the returned
 * function every few tens of microseconds. Each turn of the loop has one slice for all tasks.
 */
export function createSlices(clock: Clock): YieldToEventLoop {
  const waiting = new Turns<() => void>();
  let startedAt = -Infinity;
  const startNext = (): void => {
    startedAt = clock.elapsed();
    waiting.next()?.();
    if (waiting.size > 0) timers.setImmediate(startNext);
  };
  return async function yieldToEventLoop(caller = '') {
    if (clock.elapsed() - startedAt < limits.sliceMs) return;
    await new Promise<void>((resolve) => {
      if (waiting.size === 0) timers.setImmediate(startNext);
      waiting.add(caller, resolve);
    });
  };
}

export function atOnce<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}
