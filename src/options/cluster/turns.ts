import { type Clock, type Random, timers } from '../../base/system.ts';

const nameLength = 12;
/** The number of recent groups that show which nodes are writing. */
const recentGroups = 16;
/** The longest wait for other nodes, and the interval of its checks. */
const turnMsMax = 100;
const turnStepMs = 1;

/** Makes nodes take turns: each waits for the others that have not written since it did. */
export class WriterTurns {
  /** Begins the ids of this node's groups. */
  readonly name: string;
  readonly #clock: Clock;
  #recent: readonly string[] = [];
  /** The number of nodes whose turn comes before this one's. */
  #before = 0;
  #lastGroupAt = -Infinity;
  #usualMs = 0;

  constructor(random: Random, clock: Clock) {
    this.name = random(nameLength / 2).toString('hex');
    this.#clock = clock;
  }

  /** Notes a node that writes, or wants to. */
  note(id: string): void {
    this.#recent = [id.slice(0, nameLength), ...this.#recent].slice(0, recentGroups);
  }

  advance(id: string): void {
    this.note(id);
    this.#lastGroupAt = this.#clock.elapsed();
    const isOwn = id.startsWith(this.name);
    this.#before = isOwn ? new Set(this.#recent).size - 1 : this.#before - 1;
  }

  measure(ms: number): void {
    this.#usualMs += (ms - this.#usualMs) / 8;
  }

  /** Ends early if `hasArrived` reports a group. */
  async wait(hasArrived: () => boolean): Promise<void> {
    while (this.#leftMs > 0 && !hasArrived()) await timers.sleep(turnStepMs);
  }

  get #leftMs(): number {
    const allowedMs = Math.min(turnMsMax, 4 * this.#usualMs * this.#before);
    return allowedMs - (this.#clock.elapsed() - this.#lastGroupAt);
  }
}
