import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

/**
 * The source of time. All code that depends on time takes a `Clock`, so that a test can
 * set it.
 */
export interface Clock {
  /** Wall-clock time in milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since an arbitrary start, which never go back; for durations only. */
  elapsed(): number;
}

const elapsed = performance.now.bind(performance);

/** The clock of the machine. No other file reads it. */
export const systemClock: Clock = { now: () => Date.now(), elapsed };

/**
 * The timers of Node.js as they were when this file was loaded: a program's tests may replace the
 * global ones by fake ones, which never fire. No other file uses timers.
 */
export const timers = {
  ...process.getBuiltinModule('node:timers'),
  sleep: process.getBuiltinModule('node:timers/promises').setTimeout,
};

/**
 * A source of `size` unpredictable bytes. It is injected, so that a test can run from a
 * seed.
 */
export type Random = (size: number) => Buffer;

/** The generator of the operating system. No other file uses it. */
export const systemRandom: Random = (size) => randomBytes(size);

/**
 * What is used of `node:http`. An import reads all that it exports; from Node.js 22 on, this loads
 * a WebSocket client, which takes 6 MB.
 */
export const { createServer, METHODS, STATUS_CODES } = process.getBuiltinModule('node:http');

/** Returns how many files and sockets the process may have open; Infinity if the system does not say. */
export function descriptorsMax(): number {
  let told: string;
  try {
    told = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // There is no such file, or the permission model denies it. A report takes milliseconds.
    told = JSON.stringify(process.report.getReport());
  }
  const [, soft = Infinity] = /(?:Max open files\s+|"open_files":\{"soft":)(\d+)/.exec(told) ?? [];
  return Number(soft);
}
