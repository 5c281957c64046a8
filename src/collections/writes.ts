import type { Principal } from '../auth/access.ts';
import { invariant } from '../base/errors.ts';
import { callerKey } from '../base/network.ts';
import type { Reply } from '../http/message.ts';
import type { Shape } from '../schema/field.ts';
import { representationOf } from '../schema/record.ts';
import type { Reader, RecordChange, Store, Transaction } from '../store/store.ts';
import { runBeforeWrite, type Change, type Hooks, type Read } from './hooks.ts';
import type { IdempotencyKeys, KeyedRequest } from './idempotency.ts';
import type { Declared, Registry } from './registry.ts';

/** Checks a caller again in the transaction that writes for it. @throws CairnError */
export type CheckActor = (reader: Reader, principal: Principal) => void;

export interface WritesOptions {
  readonly store: Store;
  readonly hooks: Hooks;
  readonly registry: Registry;
  readonly idempotencyKeys: IdempotencyKeys;
  /** Receives the errors of `afterWrite`. */
  readonly onError: (error: unknown) => void;
}

/**
 * The place where a transaction on behalf of a caller begins: it looks at the caller again, runs
 * the hooks, and keeps the reply to a request with an `Idempotency-Key`. The operations that it
 * runs are functions of the transaction.
 */
export class Writes {
  /** The fields that hooks see, by the name of the collection. Others are not told of. */
  readonly shapes = new Map<string, Shape>();
  readonly #options: WritesOptions;

  constructor(options: WritesOptions) {
    this.#options = options;
    for (const { declaration } of options.registry.all)
      this.shapes.set(declaration.name, declaration.fields);
  }

  /**
   * Runs `work` as one transaction.
   * @throws CairnError `write_refused`, and the errors of `check`, `beforeWrite`, `work` and
   *   `Store.write`
   */
  write<T>(principal: Principal, work: (tx: Transaction) => T, check?: CheckActor): Promise<T> {
    const { store, hooks } = this.#options;
    const isHooked = hooks.beforeWrite !== undefined || hooks.afterWrite !== undefined;
    const { userId } = principal;
    const caller = userId === undefined ? 'strangers' : callerKey('', userId);
    return store.write((tx) => {
      check?.(tx, principal);
      if (isHooked) this.#callHooks(tx, principal);
      return work(tx);
    }, caller);
  }

  /**
   * Does the same for a request that is answered with what `work` returns. The reply to a request
   * with a key is kept in the same commit; a repetition is answered with it.
   * @throws CairnError as `write`, and `key_reused`
   */
  async answer(
    principal: Principal,
    keyed: KeyedRequest | undefined,
    work: (tx: Transaction) => Reply,
    check?: CheckActor,
  ): Promise<Reply> {
    if (keyed === undefined) return this.write(principal, work, check);
    const { idempotencyKeys } = this.#options;
    for (;;) {
      const compared = await idempotencyKeys.compare(keyed);
      if (compared.reply !== undefined) return compared.reply;
      const once = (tx: Transaction): Reply | undefined =>
        idempotencyKeys.once(tx, compared, () => work(tx));
      const reply = await this.write(principal, once, check);
      // Otherwise another request with the key was faster: compare with it.
      if (reply !== undefined) return reply;
    }
  }

  #callHooks(tx: Transaction, principal: Principal): void {
    const { hooks, onError } = this.#options;
    const read = readerOf(tx, this.#options.registry);
    tx.onChange((written) => {
      const shape = this.shapes.get(written.collection.name);
      if (shape === undefined) return;
      const change = changeOf(written, shape, principal);
      runBeforeWrite(hooks, change, read);
      tx.onCommit(() => {
        Promise.resolve(change)
          .then((change) => hooks.afterWrite?.(change))
          .catch(onError);
      });
    });
  }
}

function changeOf(
  { collection, id, before, record: after }: RecordChange,
  shape: Shape,
  principal: Principal,
): Change {
  const written = before === undefined ? 'create' : 'update';
  return {
    collection: collection.name,
    operation: after === undefined ? 'remove' : written,
    id,
    principal,
    before: before && representationOf(shape, before),
    after: after && representationOf(shape, after),
  };
}

/** Returns what a hook reads. */
function readerOf(tx: Transaction, registry: Registry): Read {
  const of = (name: string): Declared => {
    const declared = registry.get(name);
    invariant(declared !== undefined, `there is no collection "${name}" to read`);
    return declared;
  };
  return {
    get(name, id) {
      const { records, declaration } = of(name);
      const record = tx.of(records).get(id);
      return record && representationOf(declaration.fields, record);
    },
    members(name, field, id) {
      const { records, declaration } = of(name);
      return Array.from(tx.of(records).referring(field, id), (record) =>
        representationOf(declaration.fields, record),
      );
    },
  };
}
