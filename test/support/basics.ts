/** Helpers for any test: seeded randomness, waiting, clocks, and whether the run is locked down. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { TestContext } from 'node:test';
import promises, { setTimeout as delay } from 'node:timers/promises';
import { type Clock, type Random, timers } from '../../src/base/system.ts';

/** Random numbers that can be had again: the seed is printed, and `CAIRN_TEST_SEED` sets it. */
export interface Generator {
  /** A whole number from 0 to `bound` - 1. */
  below(bound: number): number;
  pick<T>(choices: readonly T[]): T;
}

/** A generator of its own for each `use`, so that one test does not change what another one draws. */
export function createGenerator(use: string, seed = process.env['CAIRN_TEST_SEED'] ?? '1'): Generator {
  console.log(`# ${use}: CAIRN_TEST_SEED=${seed}`);
  return generateFrom(`${use} ${seed}`);
}

/** The numbers that follow from a text. */
export function generateFrom(text: string): Generator {
  let state = 2166136261;
  for (const character of text) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 16777619);
  const below = (bound: number): number => {
    // Mulberry32: small, quick and good enough to shuffle tests.
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
  return {
    below,
    pick: (choices) => {
      const choice = choices[below(choices.length)];
      if (choice === undefined) throw new Error('Cannot pick from nothing');
      return choice;
    },
  };
}

/**
 * Does work with very many promises, and returns what gives its result or throws its error. It is called before a file
 * defines its first test: from then on the test runner watches each promise, which makes them several times as dear.
 */
export async function runBeforeTests<Result>(work: () => Promise<Result>): Promise<() => Result> {
  const [outcome] = await Promise.allSettled([work()]);
  return () => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  };
}

/** True if the suite runs locked down, from the tree that .ci/release/locked.release.ts built. */
export const isLockedRun = process.env['CAIRN_TEST_LOCKED'] === 'true';

/** The store's message if a locked-down Node.js denies syncs. */
export const deniedSyncNotices =
  isLockedRun && Number.parseInt(process.versions.node, 10) >= 26
    ? ['this Node denies syncs of directories: files are written through']
    : [];

/** The longest wait for something that must happen. Only a failure takes this long, even on a busy machine. */
export const timeoutMs = 60_000;

/** Waits until something holds in this process, or on its disk. */
export async function waitUntil(holds: () => boolean, what = `never held: ${holds}`): Promise<void> {
  for (const end = performance.now() + timeoutMs; !holds(); await delay(2)) assert.ok(performance.now() < end, what);
}

/** Rejects with `what` when the promise never settles. */
export async function withTimeout<T>(promise: Promise<T>, what: string | (() => string)): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const tell = (): string => `${typeof what === 'string' ? what : what()} within ${timeoutMs} ms`;
    timer = setTimeout(() => reject(new Error(tell())), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Fake timers of the source, which fire only when a test lets time pass. */
export interface FakeTimers {
  tick(ms: number): void;
  /** Puts the real timers back. The end of the test does so, too. */
  reset(): void;
}

/** Replaces the timers of the source, which keeps its own ones whatever a program does to the global ones. */
export function fakeTimers(t: TestContext, api: 'setTimeout' | 'setInterval' = 'setTimeout'): FakeTimers {
  const real = { ...timers };
  t.mock.timers.enable({ apis: [api] });
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  Object.assign(timers, { setTimeout, clearTimeout, setInterval, clearInterval, sleep: promises.setTimeout });
  const reset = (): void => {
    Object.assign(timers, real);
    t.mock.timers.reset();
  };
  t.after(reset);
  return { tick: (ms) => t.mock.timers.tick(ms), reset };
}

/** A clock that only advances when a test moves it. */
export class TestClock implements Clock {
  time = Date.UTC(2026, 0, 2, 3, 4, 5);
  #stepMs = 0;
  readonly now = () => this.time + this.#stepMs;
  readonly elapsed = () => this.time;
  /** Advances the time. */
  advance(seconds: number): void {
    this.time += seconds * 1000;
  }
  /** Sets the wall clock forward or back, without advancing the elapsed time. */
  step(seconds: number): void {
    this.#stepMs += seconds * 1000;
  }
}

/** Returns reproducible random bytes. */
export function createRandom(seed: string): Random {
  let counter = 0;
  return (size) => {
    const blocks: Buffer[] = [];
    for (let made = 0; made < size; made += 32) {
      counter += 1;
      blocks.push(createHash('sha256').update(`${seed} ${counter}`).digest());
    }
    return Buffer.concat(blocks).subarray(0, size);
  };
}

export const base64url = (text: string | Buffer) => Buffer.from(text).toString('base64url');
