import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { Shares } from '../base/shares.ts';
import { createSlices } from '../base/slices.ts';
import type { Clock } from '../base/system.ts';

/** The caller of a list; a `Request` names its own. */
export interface ListCaller {
  /** The key of the caller's share. */
  readonly caller: string;
  /** Aborted when nobody waits for the list any more. */
  readonly signal: AbortSignal;
}

/** The work on one list. */
export interface ListWork {
  /**
   * Gives way to other work if that is due. Called after each step.
   * @throws CairnError `overloaded` where the list needs a place and there is none; `draining` where it is to stop
   */
  readonly pause: () => Promise<void>;
  /** Gives the place back. Calling it again does nothing. */
  readonly end: () => void;
}

/** The lists of all collections. They share the event loop, and there is a bounded number of places for long ones. */
export class ListPool {
  readonly #yieldToEventLoop;
  readonly #places = new Shares(limits.listsMax, limits.listsPerCallerMax);

  constructor(clock: Clock) {
    this.#yieldToEventLoop = createSlices(clock);
  }

  /**
   * Begins a list, which takes a place when it goes on after `freeSteps` steps.
   * @throws CairnError `overloaded` where that is at once and there is no place
   */
  begin(request: ListCaller, freeSteps: number): ListWork {
    let hasPlace = false;
    let steps = 0;
    const takePlace = (): void => {
      if (hasPlace || steps < freeSteps) return;
      hasPlace = this.#places.take(request.caller, 1);
      if (!hasPlace) throw tooManyLists;
    };
    takePlace();
    const pause = async (): Promise<void> => {
      steps += 1;
      takePlace();
      await this.#yieldToEventLoop();
      if (request.signal.aborted) throw abandoned;
    };
    const end = (): void => {
      if (hasPlace) this.#places.give(request.caller, 1);
      hasPlace = false;
    };
    return { pause, end };
  }
}

const tooManyLists = new CairnError('overloaded', 'Cannot make the list: too many long lists are under way', {
  retryAfterSeconds: 1,
});
const abandoned = new CairnError('draining', 'Cannot make the list: the caller has gone or the server stops');
