import { createHash } from 'node:crypto';
import type { Clock, Random } from '../../../src/base/system.ts';

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
export function testRandom(seed: string): Random {
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
