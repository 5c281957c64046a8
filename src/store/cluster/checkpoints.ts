import { limits } from '../../base/limits.ts';
import type { Clock, Random } from '../../base/system.ts';
import type { JsonObject } from '../../base/json.ts';
import type { AnyTable } from '../memory/table.ts';
import { imageOf } from '../recovery/snapshot.ts';
import { isAt } from './etcd.ts';
import { trimLog, writeSnapshot, type Head, type Place } from './shared-snapshot.ts';

export interface CheckpointOptions extends Place {
  readonly clock: Clock;
  readonly random: Random;
  /** Takes what an operator should know. */
  readonly onNotice: (notice: string, level?: 'warn' | 'error') => void;
}

/** One moment of the log. */
export interface Moment {
  readonly head: Head;
  readonly epoch: string;
  /** Holds while nobody has changed the epoch or the format. */
  readonly isSame: JsonObject;
}

/** A checkpoint is due when the log is longer than this and than the snapshot. As much stays for nodes that lag. */
const bytesMin = 4 * limits.checkpointBytesMin;

/** When one node's checkpoints are due, and what they do. */
export class Checkpoints {
  readonly counts = { checkpoints: 0, checkpointFailures: 0, checkpointMs: 0 };
  /** The bytes of the groups since the present snapshot. */
  logBytes = 0;
  readonly #options: CheckpointOptions;
  readonly #tables: ReadonlyMap<string, AnyTable>;
  #dueAt = bytesMin;
  /** The revision of etcd that wrote the pointer to the snapshot, and the last sequence number when it was seen. */
  #revision = 0;
  #sequence = 0;

  constructor(options: CheckpointOptions, tables: ReadonlyMap<string, AnyTable>) {
    this.#options = options;
    this.#tables = tables;
  }

  /** Notes the present snapshot: its size where it is known, and the groups that came since the view of it. */
  note(revision: number, sequence: number, bytes?: number, logBytes = 0): void {
    if (revision === this.#revision) return;
    this.#revision = revision;
    this.#sequence = sequence;
    this.logBytes = logBytes;
    if (bytes !== undefined) this.#dueAt = Math.max(bytesMin, bytes);
  }

  /** How often one is due: at 1 a node should write it, at 2 any node. */
  get excess(): number {
    return this.logBytes / this.#dueAt;
  }

  /** Writes a snapshot, unless another node has. Where that fails, it is put off with a notice. */
  async write(between: <T>(work: () => Promise<T>) => Promise<T>, moment: () => Moment): Promise<void> {
    const { clock, onNotice } = this.#options;
    const started = clock.elapsed();
    try {
      await this.#write(between, moment);
      this.counts.checkpoints += 1;
    } catch (error) {
      this.#dueAt = this.logBytes + bytesMin;
      onNotice(`a checkpoint was put off: ${error instanceof Error ? error.message : String(error)}`, 'error');
      this.counts.checkpointFailures += 1;
    }
    this.counts.checkpointMs = clock.elapsed() - started;
  }

  /** Then removes the groups that came before the former snapshot was seen. */
  async #write(between: <T>(work: () => Promise<T>) => Promise<T>, moment: () => Moment): Promise<void> {
    const { prefix, random } = this.#options;
    const isLast = isAt(`${prefix}snapshot`, this.#revision);
    const trimmed = this.#sequence + 1;
    const { views, head, isSame, bytes } = await between(async () => {
      const { head, epoch, isSame } = moment();
      const { views } = imageOf(this.#tables.values(), epoch, head.sequence);
      return { views, head, isSame, bytes: this.logBytes };
    });
    const snapshot = { views, head, name: random(8).toString('hex') };
    const written = await writeSnapshot(this.#options, snapshot, { compare: [isLast, isSame] });
    if (written === undefined) return;
    this.note(written.revision, head.sequence, written.bytes, this.logBytes - bytes);
    await trimLog(this.#options, trimmed);
  }
}
