import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock, Random } from '../../base/system.ts';

const nameLength = 12;
/** How many groups tell which nodes write. */
const recentGroups = 16;
/** The longest wait for the turns of others, and how often it is looked whether it has ended. */
const turnMsMax = 100;
const turnStepMs = 1;

/** Nodes that write do so one after the other: each waits for those that have not written since it did. */
export class Turns {
  /** That of this node: random, and at the beginning of the ids of its groups. */
  readonly name: string;
  readonly #clock: Clock;
  /** The names of the nodes that wrote, or tried to, the last one first. */
  #recent: readonly string[] = [];
  /** How many of them go before this node. */
  #before = 0;
  /** When the last group came, and how long an append usually takes. */
  #lastAt = -Infinity;
  #usualMs = 0;

  constructor(random: Random, clock: Clock) {
    this.name = random(nameLength / 2).toString('hex');
    this.#clock = clock;
  }

  /** Notes that the node writes, or wants to, whose name is at the beginning of `id`. */
  note(id: string): void {
    this.#recent = [id.slice(0, nameLength), ...this.#recent].slice(0, recentGroups);
  }

  /** Notes a group. */
  advance(id: string): void {
    this.note(id);
    this.#lastAt = this.#clock.elapsed();
    this.#before = id.startsWith(this.name) ? new Set(this.#recent).size - 1 : this.#before - 1;
  }

  /** Notes how long an append took. */
  measure(ms: number): void {
    this.#usualMs += (ms - this.#usualMs) / 8;
  }

  /** Waits for the turn of this node, or until something `arrives`. */
  async wait(arrives: () => boolean): Promise<void> {
    while (this.#leftMs > 0 && !arrives()) await sleep(turnStepMs);
  }

  /** Whether this node is to do what one of those that write has to do. */
  get isFirst(): boolean {
    return this.#recent.toSorted()[0] === this.name;
  }

  /** How long the nodes that go first still have. */
  get #leftMs(): number {
    return Math.min(turnMsMax, 4 * this.#usualMs * this.#before) - (this.#clock.elapsed() - this.#lastAt);
  }
}
