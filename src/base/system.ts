import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The source of time. It is injected, so that a test can set it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since an arbitrary start, never decreasing; for durations only. */
  elapsed(): number;
}

const elapsed = performance.now.bind(performance);

/** The machine's clock. No other file reads it. */
export const systemClock: Clock = { now: () => Date.now(), elapsed };

/**
 * The timers of Node.js, captured at load: a program's tests may replace the global ones with fakes
 * that never fire. No other file uses timers.
 */
export const timers = {
  ...process.getBuiltinModule('node:timers'),
  sleep: process.getBuiltinModule('node:timers/promises').setTimeout,
};

/** Injected, so that a test can run from a seed. */
export type Random = (size: number) => Buffer;

/** The generator of the operating system. No other file uses it. */
export const systemRandom: Random = (size) => randomBytes(size);

/**
 * The used part of `node:http`. An import would read every export; since Node.js 22 that loads a
 * WebSocket client of 6 MB.
 */
export const { createServer, METHODS, STATUS_CODES } = process.getBuiltinModule('node:http');

/** Returns the most files and sockets that the process may open; Infinity if unknown. */
export function descriptorsMax(): number {
  let told: string;
  try {
    told = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // The file is absent, or the permission model denies it. A report takes milliseconds.
    told = JSON.stringify(process.report.getReport());
  }
  const [, soft = Infinity] = /(?:Max open files\s+|"open_files":\{"soft":)(\d+)/.exec(told) ?? [];
  return Number(soft);
}
