import { CairnError } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import type { Random } from '../base/system.ts';
import type { LogStatus } from './store.ts';

/**
 * Makes groups of commits durable, in one order. The writer knows no other part of the
 * storage, so that a journal on a disk, a log that several processes share, and memory
 * are interchangeable.
 */
export interface Log {
  /** Fills the tables with the durable records, and prepares to append. Called first. */
  open(events: LogEvents): Promise<{
    /** Identifies this store among all others. A restore or a repair makes a new epoch. */
    readonly epoch: string;
    /** Sequence number of the last durable commit; 0 before the first. */
    readonly sequence: number;
  }>;
  /**
   * Called before each batch is decided, repeatedly until it returns nothing. Waits until
   * this process may write, or groups of other processes have arrived, and returns those.
   * Never rejects.
   */
  ready(): Promise<readonly ForeignGroup[]>;
  /**
   * Whether the writer should call `ready`, and then `confirm` if it still is, without a
   * write.
   */
  readonly isDue: boolean;
  /** Whether the last confirmation is recent enough for reads of the published records. */
  readonly isCurrent: boolean;
  /** Makes a group durable. Called again only after it has answered. Never rejects. */
  append(group: Group): Promise<Answer>;
  /**
   * Finds out whether the last commit that this process knows is still the last one of
   * the log. Then the results and refusals of a batch without changes are true. Never
   * rejects.
   */
  confirm(): Promise<Answer>;
  /** Whether there is little room. Then the writer refuses transactions that grow. */
  readonly isFull: boolean;
  /** Whether the log is long enough for a checkpoint. */
  readonly checkpointDue: boolean;
  /**
   * Writes all records as they are between two groups, so that earlier groups can be
   * removed. `between` runs its work while no group is in flight. @throws where the log
   * has failed
   */
  checkpoint(between: <T>(work: () => Promise<T>) => Promise<T>): Promise<void>;
  /**
   * Called last. Abandons an operation that has stalled; no other is in flight. Never
   * rejects.
   */
  close(): Promise<void>;
  /** Figures for the metrics. A full log then checks whether there is room again. */
  status(): LogStatus;
}

/** Events of a log, which may come at any time. */
export interface LogEvents {
  /** Nothing can be appended any more. */
  onFailure(error: unknown): void;
  /**
   * The operation in progress takes so long that its callers should be answered. It goes
   * on.
   */
  onStalled(): void;
  /** `isDue` has become true. */
  onDue(): void;
}

/** Commits that become durable together. */
export interface Group {
  /** Sequence number of the first commit; the others follow it. */
  readonly first: number;
  /** Each a JSON array of changes: `["collection", record]` or `["collection", id]`. */
  readonly commits: readonly string[];
}

/** A group that another process appended. */
export interface ForeignGroup {
  readonly first: number;
  readonly commits: readonly JsonValue[];
}

/**
 * The outcome of an attempt.
 * - `won`: the group is durable, and follows the last commit that this process knew.
 * - `lost`: nothing was written, because other processes appended these groups before.
 * - `refused`: nothing was written, for this reason. The next group may be accepted.
 * - `unknown`: it is unknown whether the group was written. Nothing may be appended any
 *   more.
 */
export type Answer =
  | Won
  | { readonly outcome: 'refused'; readonly error: CairnError }
  | { readonly outcome: 'lost'; readonly groups: readonly ForeignGroup[] }
  | { readonly outcome: 'unknown'; readonly error: unknown };

export interface Won {
  readonly outcome: 'won';
}

export const won: Won = { outcome: 'won' };

/** The error for a write for which there is no room. */
export function storageFull(reason = 'the disk has no room left'): CairnError {
  return new CairnError('storage_full', `Cannot write: ${reason}`);
}

/** Makes a new epoch, which no store had before. */
export function newEpoch(random: Random): string {
  return random(8).toString('hex');
}

/** The figures of a log that has done nothing. */
export const noFigures = { appendMs: 0, checkpoints: 0, checkpointFailures: 0, checkpointMs: 0 };

/** A log without files. Its commits are lost with the process. */
export function memoryLog(random: Random): Log {
  return {
    open: async () => ({ epoch: newEpoch(random), sequence: 0 }),
    ready: async () => [],
    isDue: false,
    isCurrent: true,
    append: async () => won,
    confirm: async () => won,
    isFull: false,
    checkpointDue: false,
    checkpoint: async () => undefined,
    close: async () => undefined,
    status: () => ({ journalBytes: 0, ...noFigures }),
  };
}
