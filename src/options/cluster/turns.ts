import { type Clock, type Random, timers } from '../../base/system.ts';

const nameLength = 12;
/** The number of recent groups that show which nodes are writing. */
const recentGroups = 16;
/** The longest wait for other nodes, and the interval of its checks. */
const turnMsMax = 100;
const turnStepMs = 1;

/** Makes nodes take turns: each waits for the others that have not written since it did. */
export class WriterTurns {
  /** The random name of this node, which begins the ids of its groups. */
  readonly name: string;
  readonly #clock: Clock;
  /** Names of the nodes that wrote, or tried to, latest first. */
  #recent: readonly string[] = [];
  /** The number of nodes whose turn comes before this one's. */
  #before = 0;
  #lastGroupAt = -Infinity;
  /** The usual duration of an append. */
  #usualMs = 0;

  constructor(random: Random, clock: Clock) {
    this.name = random(nameLength / 2).toString('hex');
    this.#clock = clock;
  }

  /** Notes a node that writes, or wants to; its name begins `id`. */
  note(id: string): void {
    this.#recent = [id.slice(0, nameLength), ...this.#recent].slice(0, recentGroups);
  }

  /** Notes the group `id`, now the last one of the log. */
  advance(id: string): void {
    this.note(id);
    this.#lastGroupAt = this.#clock.elapsed();
    const isOwn = id.startsWith(this.name);
    this.#before = isOwn ? new Set(this.#recent).size - 1 : this.#before - 1;
  }

  /** Notes the duration of an append. */
  measure(ms: number): void {
    this.#usualMs += (ms - this.#usualMs) / 8;
  }

  /** True if nodes before this one still have time. */
  get isOfOthers(): boolean {
    return this.#leftMs > 0;
  }

  /** Waits for this node's turn, or until `hasArrived` reports a group. */
  async wait(hasArrived: () => boolean): Promise<void> {
    while (this.#leftMs > 0 && !hasArrived()) await timers.sleep(turnStepMs);
  }

  /** The time that the nodes before this one still have. */
  get #leftMs(): number {
    const allowedMs = Math.min(turnMsMax, 4 * this.#usualMs * this.#before);
    return allowedMs - (this.#clock.elapsed() - this.#lastGroupAt);
  }
}
