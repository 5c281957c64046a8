import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { Shares } from '../base/shares.ts';
import { createSlices, type YieldToEventLoop } from '../base/turns.ts';
import type { Clock } from '../base/system.ts';
import { KeptOrders } from './kept-orders.ts';

/** The caller of a list. A `Request` has these members. */
export interface ListCaller {
  /** The key of the caller's share. */
  readonly caller: string;
  /** Aborted when the caller no longer waits for the list. */
  readonly signal: AbortSignal;
  /** Breaks the list off, and aborts `signal`. Absent: the list cannot be broken off. */
  abandon?(): void;
}

/** The work on one list. */
export interface ListWork {
  /**
   * Yields to the event loop if that is due. Called after each step.
   * @throws CairnError `draining` if the caller no longer waits
   */
  readonly pause: () => Promise<void>;
  /** Gives the place back. Further calls do nothing. */
  readonly end: () => void;
}

/** A page that waits for a place. */
interface WaitingPage {
  readonly begin: () => void;
  readonly refuse: (reason: CairnError) => void;
}

/** The steps of a page without a place: as much work as a page that is found at once. */
const freeSteps = 2;

/**
 * What the lists of all collections share: the places for long ones, their slices of the
 * event loop, and the orders that are kept.
 */
export class ListPool {
  readonly orders: KeptOrders;
  readonly #yieldToEventLoop: YieldToEventLoop;
  readonly #lists = new Shares(limits.listsMax, limits.listsPerCallerMax);
  /** The lists of each caller that have a place and can be broken off, the oldest first. */
  readonly #breakable = new Map<string, Set<ListCaller>>();
  /** Apart from the lists that are sent, so that slow readers keep no page from being made. */
  readonly #pages = new Shares(Infinity, limits.searchedPagesPerCallerMax);
  /** The pages that wait for another one of their caller, since its share is used up. */
  readonly #waiting = new Map<string, WaitingPage[]>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#yieldToEventLoop = createSlices(clock);
    this.orders = new KeptOrders(this.#yieldToEventLoop);
  }

  /**
   * Takes a place for a list without a limit, or for a long answer that embeds records, until
   * the work ends or the caller leaves. Where others have all places, the caller with the most
   * loses one: slow readers may keep theirs for hours.
   * @throws CairnError `overloaded`; `draining`
   */
  begin(from: ListCaller): ListWork {
    const { caller, signal } = from;
    if (this.#lists.sum === limits.listsMax) this.#makeRoom(caller);
    if (signal.aborted) throw abandoned;
    if (!this.#lists.take(caller, 1)) throw tooManyLists;
    const own = this.#breakable.get(caller) ?? new Set();
    this.#breakable.set(caller, own);
    if (from.abandon !== undefined) own.add(from);
    const work = this.#work(from, () => {
      own.delete(from);
      if (own.size === 0) this.#breakable.delete(caller);
      signal.removeEventListener('abort', work.end);
      this.#lists.give(caller, 1);
    });
    // A reply that is never sent is not read to its end either.
    signal.addEventListener('abort', work.end);
    return work;
  }

  /** Returns work on a page that was found: it takes no place, but pauses while it is sent. */
  withoutPlace(caller: ListCaller): ListWork {
    return this.#work(caller, () => undefined);
  }

  /**
   * Refuses the pages that wait, and those that would: the server is stopping, and to make
   * hundreds of them one after the other would hold it up.
   */
  close(): void {
    this.#isClosed = true;
    for (const page of [...this.#waiting.values()].flat()) page.refuse(abandoned);
    this.#waiting.clear();
  }

  /** Breaks off the oldest list of the caller that has the most, if that has two more. */
  #makeRoom(caller: string): void {
    let most: ReadonlySet<ListCaller> = new Set();
    for (const lists of this.#breakable.values()) if (lists.size > most.size) most = lists;
    const [oldest] = most;
    if (this.#lists.heldBy(caller) + 1 < most.size) oldest?.abandon?.();
  }

  /**
   * Runs the steps that make a page, and returns the page. If it needs more than a few steps,
   * it takes a place, or waits for one of its caller. To wait costs less than to be refused:
   * a refused caller may ask again at once. @throws CairnError `overloaded`; `draining`
   */
  makePage<Page>(caller: ListCaller, steps: Generator<unknown, Page>): Page | Promise<Page> {
    for (let step = 0; step < freeSteps; step += 1) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
    return this.#finish(caller, steps);
  }

  async #finish<Page>(caller: ListCaller, steps: Generator<unknown, Page>): Promise<Page> {
    const work = await this.#beginPage(caller);
    try {
      return await finish(steps, work);
    } finally {
      work.end();
    }
  }

  async #beginPage(from: ListCaller): Promise<ListWork> {
    const { caller } = from;
    if (!this.#pages.take(caller, 1)) {
      const waiting = this.#waiting.get(caller) ?? [];
      if (waiting.length >= limits.waitingPagesPerCallerMax) throw tooManyLists;
      if (this.#isClosed) throw abandoned;
      this.#waiting.set(caller, waiting);
      await new Promise<void>((begin, refuse) => waiting.push({ begin, refuse }));
    }
    return this.#work(from, () => this.#endPage(caller));
  }

  /** Gives the place of a page to the next one of the same caller, or back. */
  #endPage(caller: string): void {
    const waiting = this.#waiting.get(caller) ?? [];
    const next = waiting.shift();
    if (waiting.length === 0) this.#waiting.delete(caller);
    if (next === undefined) this.#pages.give(caller, 1);
    else next.begin();
  }

  /** The work of a list that has a place. */
  #work({ caller, signal }: ListCaller, giveBack: () => void): ListWork {
    let hasPlace = true;
    const pause = async (): Promise<void> => {
      await this.#yieldToEventLoop(caller);
      if (signal.aborted) throw abandoned;
    };
    const end = (): void => {
      if (hasPlace) giveBack();
      hasPlace = false;
    };
    return { pause, end };
  }
}

/** Runs all steps, with pauses, and returns their result. */
export async function finish<T>(steps: Generator<unknown, T>, { pause }: ListWork): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await pause();
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
