import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';

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
