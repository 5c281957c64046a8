import type { Refusals } from '../base/budget.ts';
import type { Store } from '../store/store.ts';
import type { Log } from './log.ts';

export interface Load {
  /** Requests that wait for a disk, a hash or the like. */
  readonly inFlight: number;
  readonly connections: number;
  /** Connections refused so far because a limit was reached. */
  readonly refused: number;
  /** Open streams of the change feed. */
  readonly listeners: number;
  /** Callers of the change feed, disconnected because they read too slowly. */
  readonly dropped: number;
  readonly refusals: Refusals & { memoryFull: number; diskFull: number };
}

/** The parts of a server that an operator monitors. */
export interface Operated {
  readonly app: {
    readonly store: Pick<Store, 'status'>;
    readonly certificate: string | undefined;
    unready(): string | undefined;
    load(): Load;
  };
  readonly log: Pick<Log, 'dropped' | 'message'>;
  /** Absent if the data are elsewhere. */
  readonly directory: string | undefined;
}
