import type { StoreStatus } from './store.ts';
import type { AnyTable } from './table.ts';

/** Runs `work` between two groups: none is in flight while it runs. */
export type BetweenGroups = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * Where groups become durable: all that the rest of the store knows of it. The one on files is `FileJournal`; another
 * log can take its place.
 */
export interface Journal {
  /** Fills the tables with what is durable, and gets ready to append after its last commit: `sequence`, or 0. */
  open(tables: ReadonlyMap<string, AnyTable>): Promise<{ readonly epoch: string; readonly sequence: number }>;
  /**
   * Makes one group durable: commits with the sequence numbers `sequence`, `sequence` + 1, … Called again only when
   * the last call has settled.
   * @throws CairnError `storage_full` when nothing was written and what was put aside is given to later groups; after
   *   any other error the outcome is unknown and nothing may be appended any more
   */
  append(sequence: number, commits: readonly string[]): Promise<void>;
  /** Whether the journal has outgrown the snapshots. */
  readonly checkpointDue: boolean;
  /** Whether there is room again after `storage_full`: then some is put aside again. */
  hasRoom(): Promise<boolean>;
  /**
   * Writes everything up to `sequence` (asked for between two groups) to snapshots. An error of the disk that loses
   * nothing is reported as a notice; after any thrown error nothing may be appended any more.
   */
  checkpoint(between: BetweenGroups): Promise<void>;
  /** Marks a clean stop (unless something failed) and lets everything go. */
  close(clean: boolean): Promise<void>;
  status(): JournalStatus;
}

export type JournalStatus = Pick<
  StoreStatus,
  'journalBytes' | 'appendMs' | 'checkpoints' | 'checkpointFailures' | 'checkpointMs'
>;

/** No files at all: what is appended is as durable as the process. */
export function memoryJournal(epoch: string): Journal {
  return {
    open: () => Promise.resolve({ epoch, sequence: 0 }),
    append: () => Promise.resolve(),
    checkpointDue: false,
    hasRoom: () => Promise.resolve(true),
    checkpoint: () => Promise.resolve(),
    close: () => Promise.resolve(),
    status: () => ({ journalBytes: 0, appendMs: 0, checkpoints: 0, checkpointFailures: 0, checkpointMs: 0 }),
  };
}
