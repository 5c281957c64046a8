import { Budget } from '../base/budget.ts';
import { CairnError } from '../base/errors.ts';
import { oldGenerationBytes } from '../base/heap.ts';
import { limits } from '../base/limits.ts';
import { createSlices, type YieldToEventLoop } from '../base/turns.ts';
import type { Clock } from '../base/system.ts';
import { estimateSize } from '../store/memory/size.ts';
import type { RecordChange } from '../store/store.ts';
import { KeptOrders } from './kept-orders.ts';

/** The caller of a list. A `Request` has these members. */
export interface Caller {
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

/** The steps of a page without a turn: as much work as a page that is found at once. */
const freeSteps = 2;

/**
 * The parts that the lists of all collections share: the places for long ones, their slices of the
 * event loop, and the orders that are kept.
 */
export class ListPool {
  readonly orders: KeptOrders;
  readonly #yieldToEventLoop: YieldToEventLoop;
  readonly #isStopping: () => boolean;
  readonly places = new Budget(limits.listsMax, limits.listsPerCallerMax);
  /** The long lists being sent, the oldest first, each with the value of `#replacedBytes` at its start. */
  readonly #sending = new Map<Caller, number>();
  /** The bytes replaced and removed while lists were sent, which keep the records of their moment. */
  #replacedBytes = 0;

  /** `isStopping`: pages that are still searched for are not waited for. */
  constructor(clock: Clock, isStopping = () => false) {
    this.#isStopping = isStopping;
    this.#yieldToEventLoop = createSlices(clock);
    this.orders = new KeptOrders(this.#yieldToEventLoop);
  }

  /**
   * Begins a list that is sent in pieces, until the work ends or the caller leaves. One without a
   * limit, or that embeds records, takes a place. If others have all places, the caller with the
   * most loses one: slow readers may keep theirs for hours.
   * @throws CairnError `overloaded`; `draining`
   */
  begin(from: Caller, takesPlace = true): ListWork {
    const { caller, signal, abandon } = from;
    if (signal.aborted) throw abandoned;
    const breakOff = abandon && (() => from.abandon?.());
    const place = takesPlace ? this.places.take(caller, 1, breakOff) : undefined;
    if (takesPlace && place === undefined) throw tooManyLists;
    const sent = { caller, signal, ...(breakOff && { abandon: breakOff }) };
    this.#sending.set(sent, this.#replacedBytes);
    const end = (): void => {
      signal.removeEventListener('abort', end);
      this.#sending.delete(sent);
      place?.release();
    };
    // A reply that is never sent is not read to its end either.
    signal.addEventListener('abort', end);
    return { ...this.withoutPlace(from), end };
  }

  /** Breaks off the lists that may keep too much of what commits have replaced or removed. */
  readonly follow = (changes: readonly RecordChange[]): void => {
    if (this.#sending.size === 0) return;
    for (const { before } of changes) this.#replacedBytes += estimateSize(before);
    const most = oldGenerationBytes() * limits.replacedHeapShareMax;
    for (const [sent, since] of this.#sending) {
      if (this.#replacedBytes - since <= most) break;
      this.places.refusals.brokenOff += 1;
      sent.abandon?.();
    }
  };

  /** Returns work on a page: it takes no place, but its caller's turns with each step. */
  withoutPlace({ caller, signal }: Caller): ListWork {
    const pause = async (): Promise<void> => {
      await this.#yieldToEventLoop(caller);
      if (signal.aborted) throw abandoned;
    };
    return { pause, end: () => undefined };
  }

  /**
   * Runs the steps that make a page, and returns the page. If it needs more than a few steps,
   * they are run in its caller's turns. @throws CairnError `draining`
   */
  makePage<Page>(caller: Caller, steps: Generator<unknown, Page>): Page | Promise<Page> {
    for (let step = 0; step < freeSteps; step += 1) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
    const work = this.withoutPlace(caller);
    const pause = async (): Promise<void> => {
      await work.pause();
      if (this.#isStopping()) throw abandoned;
    };
    return finish(steps, { ...work, pause });
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
