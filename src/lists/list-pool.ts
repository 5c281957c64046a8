import { Budget } from '../base/budget.ts';
import { CairnError } from '../base/errors.ts';
import { oldGenerationBytes } from '../base/heap.ts';
import { limits } from '../base/limits.ts';
import { createSlices, type YieldToEventLoop } from '../base/turns.ts';
import type { Clock } from '../base/system.ts';
import { estimateSize } from '../store/memory/size.ts';
import type { RecordChange } from '../store/store.ts';
import { KeptOrders } from './kept-orders.ts';

/** The caller of a list, such as a `Request`. */
export interface ListCaller {
  readonly caller: string;
  readonly signal: AbortSignal;
  /** Aborts the list and `signal`. If absent, the list cannot be aborted. */
  abandon?(): void;
}

export interface ListWork {
  /**
   * Yields to the event loop if due. Called after each step.
   * @throws CairnError `draining` if the caller no longer waits
   */
  readonly pause: () => Promise<void>;
  /** Releases the place. May be called repeatedly. */
  readonly end: () => void;
}

/**
 * The steps of a page before it must wait for its turn: the work of a page that is found at once.
 */
const freeSteps = 2;

/**
 * Shared by the lists of all collections: places for long ones, slices of the event loop, and kept
 * orders.
 */
export class ListPool {
  readonly orders: KeptOrders;
  readonly #yieldToEventLoop: YieldToEventLoop;
  readonly #isStopping: () => boolean;
  readonly places = new Budget(limits.listsMax, limits.listsPerCallerMax);
  /** The long lists being sent, the oldest first, each with `#replacedBytes` at its start. */
  readonly #sending = new Map<ListCaller, number>();
  /** The bytes replaced and removed during lists, which hold on to the old records. */
  #replacedBytes = 0;

  /** `isStopping`: pages still being searched are not waited for. */
  constructor(clock: Clock, isStopping = () => false) {
    this.#isStopping = isStopping;
    this.#yieldToEventLoop = createSlices(clock);
    this.orders = new KeptOrders(this.#yieldToEventLoop);
  }

  /**
   * Begins a list that is sent in pieces, until the work ends or the caller leaves. Without a limit
   * or with embedded records, it takes a place. If none is free, the caller with the most loses
   * one, because slow readers may keep theirs for hours.
   * @throws CairnError `overloaded`, `draining`
   */
  begin(from: ListCaller, takesPlace = true): ListWork {
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
    // A response that is never sent is not read to its end either.
    signal.addEventListener('abort', end);
    return { ...this.withoutPlace(from), end };
  }

  /** Aborts lists that may hold on to too much that commits have replaced or removed. */
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

  /** Returns work on a page, which takes no place but waits for its caller's turn at each step. */
  withoutPlace({ caller, signal }: ListCaller): ListWork {
    const pause = async (): Promise<void> => {
      await this.#yieldToEventLoop(caller);
      if (signal.aborted) throw abandoned;
    };
    return { pause, end: () => undefined };
  }

  /**
   * Runs the steps of a page. After a few steps, the rest wait for the caller's turn.
   * @throws CairnError `draining`
   */
  makePage<Page>(caller: ListCaller, steps: Generator<unknown, Page>): Page | Promise<Page> {
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
