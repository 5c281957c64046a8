import type { Principal } from '../auth/access.ts';
import { callerKey } from '../base/network.ts';
import type { Reply } from '../http/message.ts';
import type { Store, Transaction } from '../store/store.ts';
import type { IdempotencyKeys, KeyedRequest } from './idempotency.ts';

/** Observes a transaction on behalf of a caller, before its work begins. */
export type Observe = (tx: Transaction, principal: Principal) => void;

interface WritesOptions {
  readonly store: Store;
  readonly idempotencyKeys: IdempotencyKeys;
  /** Called with each transaction; an error refuses the write. */
  readonly observe?: Observe | undefined;
}

/**
 * Begins transactions that change records for a caller. It calls the observer, and keeps the
 * response to a request with an `Idempotency-Key`. The operations that it runs are functions of the
 * transaction. Sessions are written without it, because no hook observes them.
 */
export class Writes {
  /** True while the work of a transaction runs, including a program's rules. */
  isWorking = false;
  readonly #options: WritesOptions;

  constructor(options: WritesOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` as one transaction, in a caller's turn (default: the principal's).
   * @throws the errors of `observe`, `work` and `Store.write`
   */
  write<T>(
    principal: Principal,
    work: (tx: Transaction) => T,
    caller = callerKey('strangers', principal.userId),
  ): Promise<T> {
    const { store, observe } = this.#options;
    return store.write((tx) => {
      this.isWorking = true;
      try {
        observe?.(tx, principal);
        return work(tx);
      } finally {
        this.isWorking = false;
      }
    }, caller);
  }

  /** @throws CairnError `key_reused` */
  replay(keyed: KeyedRequest): Reply | undefined {
    return this.#options.idempotencyKeys.replay(keyed);
  }

  /**
   * Runs `work`, and responds with its result. With a key, the same commit keeps the response, and
   * a repetition gets it again.
   * @throws as `write`; CairnError `key_reused`
   */
  answer(
    principal: Principal,
    keyed: KeyedRequest | undefined,
    work: (tx: Transaction) => Reply,
    caller: string,
  ): Promise<Reply> {
    if (keyed === undefined) return this.write(principal, work, caller);
    const { idempotencyKeys } = this.#options;
    const once = (tx: Transaction): Reply => idempotencyKeys.once(tx, keyed, () => work(tx));
    return this.write(principal, once, caller);
  }
}
