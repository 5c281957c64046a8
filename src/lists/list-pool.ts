import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { Shares } from '../base/shares.ts';
import { createSlices } from '../base/slices.ts';
import type { Clock } from '../base/system.ts';

/** The caller of a list. A `Request` has these members. */
export interface ListCaller {
  /** The key of the caller's share. */
  readonly caller: string;
  /** Aborted when the caller no longer waits for the list. */
  readonly signal: AbortSignal;
}

/** The work on one list. */
export interface ListWork {
  /**
   * Yields to the event loop if that is due. Called after each step.
   * @throws CairnError `overloaded` if the list needs a place and there is none,
   *   `draining` if the caller no longer waits
   */
  readonly pause: () => Promise<void>;
  /** Gives the place back. Further calls do nothing. */
  readonly end: () => void;
}

/**
 * The places for long lists, shared by all collections, and their slices of the event
 * loop.
 */
export class ListPool {
  readonly #yieldToEventLoop;
  readonly #places = new Shares(limits.listsMax, limits.listsPerCallerMax);

  constructor(clock: Clock) {
    this.#yieldToEventLoop = createSlices(clock);
  }

  /**
   * Starts a list. It takes a place when it continues after `freeSteps` steps.
   * @throws CairnError `overloaded` if that is immediately and there is no place
   */
  begin({ caller, signal }: ListCaller, freeSteps: number): ListWork {
    let hasPlace = false;
    let steps = 0;
    const takePlace = (): void => {
      if (hasPlace || steps < freeSteps) return;
      hasPlace = this.#places.take(caller, 1);
      if (!hasPlace) throw tooManyLists;
    };
    takePlace();
    const pause = async (): Promise<void> => {
      steps += 1;
      takePlace();
      await this.#yieldToEventLoop();
      if (signal.aborted) throw abandoned;
    };
    const end = (): void => {
      if (hasPlace) this.#places.give(caller, 1);
      hasPlace = false;
    };
    return { pause, end };
  }
}

const tooManyLists = new CairnError(
  'overloaded',
  'Cannot read the list: too many long lists are in progress',
  { retryAfterSeconds: 1 },
);
const abandoned = new CairnError(
  'draining',
  'Cannot read the list: the caller disconnected or the server is stopping',
);
