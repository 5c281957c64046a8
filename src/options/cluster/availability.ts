import { CairnError } from '../../base/errors.ts';
import { type Clock, timers } from '../../base/system.ts';
import { storageFull, type LogClient, type LogProblem } from '../../store/log.ts';
import { ClusterError, type Txn, type TxnAnswer } from './etcd.ts';
import { roomTest } from './founding.ts';
import type { LogPlace } from './shared-snapshot.ts';

export interface AvailabilityOptions extends LogPlace {
  readonly clock: Clock;
  readonly onNotice: (notice: string, level?: 'warn' | 'error') => void;
}

/** The silence after which callers are told that the outcome is unknown. */
const stalledMs = 5000;
/** The interval of room tests while etcd has room, and the longest wait for one. */
const roomTestMs = 10_000;
const roomTestPatienceMs = 500;

/**
 * etcd's words in cases A9 and A6. Its codes are ambiguous: a request that gRPC finds too large and
 * a used-up quota are both 8, with 429; one that etcd finds too large is 3.
 */
const tooLarge = /too large|larger than/;
const spaceExceeded = /space exceeded/;

const quotaUsedUp = 'the quota of etcd is used up';
const makeRoom = 'start its members with a larger quota, and run "etcdctl alarm disarm"';
const findLeader = 'most of its members have to run: see "etcdctl endpoint status --cluster"';

export const noAnswer: LogProblem = { state: 'unavailable', reason: 'etcd does not answer' };

/** Tracks if etcd accepts groups, and tells callers and operators: cases A5, A6 and A9. */
export class Availability {
  problem: LogProblem | undefined;
  stalledAppends = 0;
  readonly #options: AvailabilityOptions;
  #isStalled = false;
  #isClosing = false;
  #roomTestedAt = -Infinity;

  constructor(options: AvailabilityOptions) {
    this.#options = options;
  }

  /**
   * Asks etcd until it answers, and lets `client` answer its callers after 5 s.
   * @throws CairnError if nothing was written, or if a close ended it, after callers were answered
   */
  async txn(txn: Txn, client: LogClient, isAppend: boolean): Promise<TxnAnswer> {
    const stall = timers.setTimeout(() => {
      if (isAppend) this.stalledAppends += 1;
      this.#stall(client);
    }, stalledMs);
    try {
      const answer = await this.#options.etcd.txn(txn);
      if (isAppend || this.problem === noAnswer) this.#recover();
      return answer;
    } catch (error) {
      if (error instanceof ClusterError) throw this.#refuse(error);
      throw this.#isClosing ? unavailable() : error;
    } finally {
      timers.clearTimeout(stall);
      this.#isStalled = false;
      client.unavailable(undefined);
    }
  }

  async testRoom(): Promise<void> {
    const { etcd, prefix, clock } = this.#options;
    const isFull = this.problem?.state === 'full';
    if (!isFull && clock.elapsed() - this.#roomTestedAt < roomTestMs) return;
    this.#roomTestedAt = clock.elapsed();
    try {
      await etcd.txn(roomTest(prefix), AbortSignal.timeout(roomTestPatienceMs));
      if (isFull) this.#recover();
    } catch (error) {
      if (error instanceof ClusterError) this.#refuse(error);
    }
  }

  /** Abandons stalled requests. */
  async close(finished: Promise<unknown>): Promise<void> {
    this.#isClosing = true;
    if (this.#isStalled) this.#options.etcd.close();
    await finished;
    this.#options.etcd.close();
  }

  #stall(client: LogClient): void {
    const { etcd } = this.#options;
    this.#isStalled = true;
    const reason = `etcd does not answer, and no write succeeds (${etcd.problem})`;
    this.#report(noAnswer, `${reason}: ${findLeader}`);
    client.unavailable(unavailable());
    if (this.#isClosing) etcd.close();
  }

  /** Cases A6 and A9. */
  #refuse({ message: reason }: ClusterError): CairnError {
    if (tooLarge.test(reason)) {
      return new CairnError(
        'content_too_large',
        'Cannot write: the change is too large for etcd; split it',
      );
    }
    if (spaceExceeded.test(reason)) {
      const full: LogProblem = { state: 'full', reason: quotaUsedUp };
      this.#report(full, `${quotaUsedUp}, and no write succeeds: ${makeRoom}`);
      return storageFull(quotaUsedUp);
    }
    this.#report(noAnswer, `no write succeeds: ${reason}`);
    return unavailable();
  }

  #recover(): void {
    if (this.problem !== undefined) this.#options.onNotice('etcd accepts writes again');
    this.problem = undefined;
  }

  #report(problem: LogProblem, notice: string): void {
    if (problem.state !== this.problem?.state) this.#options.onNotice(notice, 'error');
    this.problem = problem;
  }
}

function unavailable(): CairnError {
  const message = 'Cannot reach etcd, which has the log of the store; try again';
  return new CairnError('store_unavailable', message, { retryAfterSeconds: 2 });
}
