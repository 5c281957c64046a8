import { readReason } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import type { Random } from '../../base/system.ts';
import type { AvailabilityOptions } from './availability.ts';
import { isAt } from './etcd.ts';
import type { GroupHead } from './group-format.ts';
import {
  noSnapshot,
  partLength,
  trimLog,
  writeSnapshot,
  type LogImage,
} from './shared-snapshot.ts';

export interface CheckpointOptions extends AvailabilityOptions {
  readonly random: Random;
}

/** A checkpoint is due when the log is longer than this and than the snapshot. */
const bytesMin = limits.checkpointBytesMin;

export class Checkpoints {
  readonly counts = { checkpoints: 0, checkpointFailures: 0 };
  /** The current snapshot, as far as this node knows. */
  snapshot = noSnapshot;
  /** Settles when the snapshot in progress is done. */
  writing: Promise<void> | undefined;
  readonly #options: CheckpointOptions;
  /** From 1 to 2, and different on each node, so that one node begins before the others. */
  readonly #patience: number;
  /** After a failure, the log size at which to try again. */
  #postponedTo = 0;

  constructor(options: CheckpointOptions) {
    this.#options = options;
    this.#patience = 1 + (options.random(1)[0] ?? 0) / 256;
  }

  logBytes(head: GroupHead): number {
    return head.bytes - this.snapshot.head.bytes;
  }

  isDue(head: GroupHead): boolean {
    const { parts } = this.snapshot;
    const dueAt = this.#patience * Math.max(bytesMin, parts * partLength);
    return this.logBytes(head) > dueAt && head.bytes > this.#postponedTo;
  }

  /**
   * Writes a snapshot if `isSame` holds and no other node has written one meanwhile. A failure
   * postpones it with a notice. Nodes that lag still find the groups since the previous snapshot.
   */
  write(view: () => Promise<LogImage>, isSame: JsonObject): Promise<void> {
    this.writing ??= this.#write(view, isSame).finally(() => (this.writing = undefined));
    return this.writing;
  }

  async #write(view: () => Promise<LogImage>, isSame: JsonObject): Promise<void> {
    const { prefix, random, onNotice } = this.#options;
    // Read before the view: a snapshot must not replace a later one.
    const { revision, head } = this.snapshot;
    const image = await view();
    const compare = [isAt(`${prefix}snapshot`, revision), isSame];
    const name = random(8).toString('hex');
    try {
      const written = await writeSnapshot(this.#options, image, name, compare);
      if (written !== undefined) {
        this.snapshot = written;
        await trimLog(this.#options, head.sequence + 1);
        this.counts.checkpoints += 1;
      }
    } catch (error) {
      this.#postponedTo = image.head.bytes + bytesMin;
      onNotice(`a checkpoint was postponed: ${readReason(error)}`, 'error');
      this.counts.checkpointFailures += 1;
    }
  }
}
