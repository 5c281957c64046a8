import { reasonOf } from '../../base/errors.ts';
import { limits } from '../../base/limits.ts';
import type { Clock } from '../../base/system.ts';
import { writeSnapshots, type Image, type Target } from '../format/snapshot.ts';
import { noFigures } from '../log.ts';

interface CheckpointerOptions {
  readonly clock: Clock;
  /** Whether a checkpoint is also due soon after a write, so that the JSON files have it. */
  readonly atRest: boolean;
  /** Called with what an operator should know. */
  readonly onNotice: (notice: string, level?: 'error') => void;
}

/** The journals that a checkpoint replaces. */
export interface Journals {
  /** The size of all of them. */
  readonly bytes: number;
  /** The size of the groups in them: how much they grew by since the last checkpoint. */
  readonly groupBytes: number;
  /** Sequence number of the last commit. */
  readonly sequence: number;
  /** Whether nothing can be written any more. */
  readonly hasFailed: boolean;
  /** Begins a new journal between two groups. Returns all records as they are there. */
  rotate(): Promise<Image>;
  /** Removes the journals before the new one. */
  removeOlder(): Promise<void>;
}

/** The shortest time between two checkpoints at rest, or on a full disk, to drop what was removed. */
const pauseMs = 30_000;
/** How long nothing was written where a store is at rest. */
const restMs = 5000;
/**
 * How many times as large as what was written since the last checkpoint the JSON files may be
 * for one at rest, which writes all of them: flash wears off.
 */
const restSizeMax = 10;

/**
 * Decides when the records are written to snapshots, and writes them: when the journals outgrew
 * the snapshots, at rest, and on a full disk.
 */
export class Checkpointer {
  /** Sequence number of the last commit that the snapshots hold. */
  through = 0;
  /** The size of the largest snapshot. */
  largestBytes = 0;
  /** When the snapshots were last known to hold everything; only shown. */
  checkpointedAt: number | undefined;
  readonly figures = { ...noFigures };
  readonly #options: CheckpointerOptions;
  readonly #target: Target;
  readonly #journals: Journals;
  #bytes = 0;
  /** Size of the journals beyond which a checkpoint is due, and when the last one began. */
  #dueBytes = 0;
  #beganAt = -Infinity;
  #running: Promise<void> | undefined;

  constructor(options: CheckpointerOptions, target: Target, journals: Journals) {
    this.#options = options;
    this.#target = target;
    this.#journals = journals;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Settles when no checkpoint is being written. */
  async settled(): Promise<void> {
    await this.#running?.catch(() => undefined);
  }

  /** Notes snapshots of these sizes that hold all commits up to `through`. */
  note(through: number, sizes: readonly number[]): void {
    this.through = through;
    this.checkpointedAt = this.#options.clock.now();
    this.largestBytes = Math.max(0, ...sizes);
    this.#bytes = sizes.reduce((sum, size) => sum + size, 0);
    this.#dueBytes = Math.max(limits.checkpointBytesMin, this.#bytes);
  }

  /** Begins a checkpoint where it is time for one. The last group was appended at `appendedAt`. */
  beginIfDue(appendedAt: number, isFull: boolean): void {
    const now = this.#options.clock.elapsed();
    const { bytes, groupBytes, sequence } = this.#journals;
    const isSmall = this.#bytes <= restSizeMax * groupBytes;
    const isAtRest = this.#options.atRest && isSmall && now - appendedAt >= restMs;
    const hasPaused = now - this.#beganAt >= pauseMs;
    const isWorthIt = this.through < sequence && hasPaused && (isFull || isAtRest);
    // A failure of the log is reported to its client.
    if (isWorthIt || bytes > this.#dueBytes) this.run().catch(() => undefined);
  }

  /** Writes snapshots of all commits, unless they have them. @throws where the log has failed */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Where an error of the disk loses nothing, the checkpoint is put off with a notice. */
  async #run(): Promise<void> {
    if (this.through === this.#journals.sequence) return;
    const { clock, onNotice } = this.#options;
    this.#beganAt = clock.elapsed();
    try {
      const image = await this.#journals.rotate();
      this.note(image.through, await writeSnapshots(this.#target, image));
      await this.#journals.removeOlder();
      this.figures.checkpoints += 1;
    } catch (error) {
      if (this.#journals.hasFailed) throw error;
      this.#dueBytes = this.#journals.bytes + limits.checkpointBytesMin;
      onNotice(`a checkpoint was put off: ${reasonOf(error)}`, 'error');
      this.figures.checkpointFailures += 1;
    }
    this.figures.checkpointMs = clock.elapsed() - this.#beganAt;
  }
}
