import { CairnError } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import type { Random } from '../base/system.ts';
import type { LogStatus } from './store.ts';

/**
 * Where groups of commits become durable, in one order. It is all that the writer knows of durability, so that a
 * journal on a disk, a log that several processes share, and plain memory can take each other's place.
 */
export interface Log {
  /** Fills the tables with what is durable and gets ready to append. Comes first. */
  open(events: LogEvents): Promise<{
    /** Tells this store from all others, and from what it was before a restore or a repair. */
    readonly epoch: string;
    /** Sequence number of the last durable commit; 0 before the first. */
    readonly sequence: number;
  }>;
  /**
   * Comes before each batch is decided, again and again until it returns nothing. Waits until it is this process's turn
   * to write, or groups that other processes have appended are here, and returns these. Never rejects.
   */
  ready(): Promise<readonly ForeignGroup[]>;
  /** Whether the writer should look at the log by `ready`, and by `confirm` if it still is, though nothing waits. */
  readonly isDue: boolean;
  /** Whether a confirmation is recent enough for reads of what is published here. */
  readonly isCurrent: boolean;
  /** Makes a group durable. Called again only after it has answered; never rejects. */
  append(group: Group): Promise<Answer>;
  /**
   * Finds out whether the last commit that this process knows is still the last one of the log: what a batch without
   * changes has seen, and refused, is then true. Never rejects.
   */
  confirm(): Promise<Answer>;
  /** While it has little room: the writer refuses what grows. */
  readonly isFull: boolean;
  /** Finds out whether there is room again. Never rejects. */
  checkRoom(): Promise<void>;
  /** Whether there is so much in the log that a checkpoint is worth its cost. */
  readonly checkpointDue: boolean;
  /**
   * Writes all records anew, as they are between two groups, so that the groups up to there are not needed any more.
   * `between` runs its work while no group is in flight. @throws what makes the log fail for good
   */
  checkpoint(between: <T>(work: () => Promise<T>) => Promise<T>): Promise<void>;
  /** Comes last, when nothing is in flight but what has stalled: that is given up. Never rejects. */
  close(): Promise<void>;
  /** Figures for the metrics. */
  status(): LogStatus;
}

/** What a log tells the writer, at any time. */
export interface LogEvents {
  /** Nothing can be appended any more. */
  onFailure(error: unknown): void;
  /** The operation in progress takes so long that its callers should be told so. It goes on. */
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
 * What became of an attempt.
 * - `won`: it is durable, and follows the last commit that this process knew.
 * - `lost`: nothing was written, since other processes appended these groups before.
 * - `refused`: nothing was written, for this reason; another group may be.
 * - `unknown`: nobody can say whether it was written, and nothing may be appended any more.
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

/** Makes a new name for a store's state, unlike any before it. */
export function newEpoch(random: Random): string {
  return random(8).toString('hex');
}

/** A log without files: what is appended is as durable as the process. */
export function memoryLog(random: Random): Log {
  return {
    open: async () => ({ epoch: newEpoch(random), sequence: 0 }),
    ready: async () => [],
    isDue: false,
    isCurrent: true,
    append: async () => won,
    confirm: async () => won,
    isFull: false,
    checkRoom: async () => undefined,
    checkpointDue: false,
    checkpoint: async () => undefined,
    close: async () => undefined,
    status: () => ({ journalBytes: 0, appendMs: 0, checkpoints: 0, checkpointFailures: 0, checkpointMs: 0 }),
  };
}
