import { randomBytes } from 'node:crypto';

/** The source of time. Everything that depends on time takes a `Clock`, so that a test can set it. */
export interface Clock {
  /** Wall-clock time in milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds from an arbitrary start that never go back; for durations only. */
  elapsed(): number;
}

/** The machine's own clock. The only place in Cairn that asks for the time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
};

/** A source of `size` unpredictable bytes. Injected, so that a test can be replayed from a seed. */
export type Random = (size: number) => Buffer;

/** The operating system's generator. The only place in Cairn that asks for randomness. */
export const systemRandom: Random = (size) => randomBytes(size);
