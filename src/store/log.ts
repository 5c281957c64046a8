import { CairnError, InvariantError } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import type { Random } from '../base/system.ts';
import type { LogStatus, RecordChange } from './store.ts';

/**
 * Makes groups of commits durable, in one order. A journal on disk, a log shared by several
 * processes, and memory are interchangeable for the writer.
 */
export interface CommitLog {
  /** Fills the tables with the durable records, and prepares to append. Called first. */
  open(client: LogClient): Promise<{
    /** Identifies this store among all others. A restore or a repair makes a new epoch. */
    readonly epoch: string;
    /** Sequence number of the last durable commit; 0 before the first. */
    readonly sequence: number;
  }>;
  /**
   * Makes a group durable. For a group without commits, finds out if others have appended anything.
   * Called again only after it has resolved. Never rejects.
   */
  append(group: Group): Promise<Answer>;
  /** The reason why it does not accept all groups now, if any. */
  readonly problem: LogProblem | undefined;
  /**
   * Writes all records between two groups, so that earlier groups can be removed. The log also does
   * so by itself. @throws if the log has failed
   */
  checkpoint(): Promise<void>;
  /**
   * Called last. `answered` settles when no write waits any more, with false if the tables may hold
   * only half of the last group; a stalled log abandons the writes. Never rejects.
   */
  close(answered: Promise<boolean>): Promise<void>;
  status(): LogStatus;
}

/**
 * `full`: there is no room for transactions that grow. `unavailable`: the log does not respond, so
 * nothing can be written until it does, and reads may be old.
 */
export interface LogProblem {
  readonly state: 'full' | 'unavailable';
  readonly reason: string;
}

/** The part of the writer that a log may call at any time. */
export interface LogClient {
  /** Runs work while no group is in flight. */
  between<T>(work: () => Promise<T>): Promise<T>;
  /** Nothing can be appended any more. */
  onFailure(error: unknown): void;
  /**
   * For a shared log: reports another process's commits, whose changes are in the tables. No group
   * is in flight.
   */
  published(changes: readonly RecordChange[]): void;
  /**
   * Rejects all waiting writes, and refuses new ones with `reason` until called with `undefined`.
   * The group in flight continues.
   */
  unavailable(reason: CairnError | undefined): void;
}

export interface Group {
  readonly first: number;
  /** Each a JSON array of changes: `["collection", record]` or `["collection", id]`. */
  readonly commits: readonly string[];
  /** The same changes, in order. */
  readonly changes: readonly RecordChange[];
}

/**
 * Refuses a group that does not follow commit `last`, or whose commits are not its changes. A
 * mistake above a log may cost a write, but must never make the log unreadable. A group without
 * commits and changes is fine.
 */
export function refuseMisfit({ first, commits, changes }: Group, last: number): Answer | undefined {
  let sequence = first - 1;
  const follow = changes.every((change) => {
    sequence += Number(change.sequence === sequence + 1);
    return change.sequence === sequence && sequence >= first;
  });
  if (follow && sequence === last + commits.length && first === last + 1) return undefined;
  const message = `Cannot write: ${commits.length} commits from ${first} on do not follow ${last}`;
  return { outcome: 'refused', error: new InvariantError(message) };
}

export interface ReadGroup {
  readonly first: number;
  readonly commits: readonly JsonValue[];
}

/**
 * The outcome of an attempt.
 * - `won`: the group is durable, and follows the last commit that this process knew.
 * - `lost`: nothing was written, because the basis of the batch has changed: another process came
 *   first, or the disk became full or has room again. The batch has to run again, after the log's
 *   work in between.
 * - `refused`: nothing of the group is in the log, or will be, for this reason. The next group may
 *   be accepted.
 * - `unknown`: the group may or may not have been written. Nothing may be appended any more.
 */
export type Answer =
  | typeof won
  | typeof lost
  | { readonly outcome: 'refused'; readonly error: Error }
  | { readonly outcome: 'unknown'; readonly error: unknown };

export const won = { outcome: 'won' } as const;
export const lost = { outcome: 'lost' } as const;

export function storageFull(reason: string): CairnError {
  return new CairnError('storage_full', `Cannot write: ${reason}`);
}

/** Makes an epoch that no store had before. */
export function newEpoch(random: Random): string {
  return random(8).toString('hex');
}

export const noFigures = { appendMs: 0, checkpoints: 0, checkpointFailures: 0 };

/** A log without files. Its commits are lost with the process. */
export function memoryLog(random: Random): CommitLog {
  return {
    open: async () => ({ epoch: newEpoch(random), sequence: 0 }),
    append: async () => won,
    problem: undefined,
    checkpoint: async () => undefined,
    close: async (answered) => void (await answered),
    status: () => ({ journalBytes: 0, ...noFigures }),
  };
}
