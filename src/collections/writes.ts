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
  /** Called with each transaction; what it throws refuses the write. Absent: nothing observes. */
  readonly observe?: Observe | undefined;
}

/**
 * The place where transactions begin that change records for a caller: it calls the observer, and
 * keeps the reply to a request with an `Idempotency-Key`. The operations that it runs are functions
 * of the transaction. Sessions are written without it: no hook observes them.
 */
export class Writes {
  /** True if the work of a transaction runs, and with it rules of a program. */
  isWorking = false;
  readonly #options: WritesOptions;

  constructor(options: WritesOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` as one transaction, in the turn of a caller; absent: that of the principal.
   * @throws CairnError the errors of `observe`, `work` and `Store.write`
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

  /** Returns the published reply to a request with a key. @throws CairnError `key_reused` */
  replay(keyed: KeyedRequest): Reply | undefined {
    return this.#options.idempotencyKeys.replay(keyed);
  }

  /**
   * Does as `write` for a request that is answered with what `work` returns. The reply to a request
   * with a key is kept in the same commit, and a repetition is answered with it.
   * @throws CairnError as `write`, and `key_reused`
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
