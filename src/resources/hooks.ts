import type { Principal } from '../auth/access.ts';
import { CairnError, InvariantError, type ErrorCode } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import type { Shape } from '../schema/field.ts';
import { representationOf } from '../schema/representation.ts';
import type { Store, StoredRecord, Transaction } from '../store/store.ts';

/** One write to a collection, as representations: what a caller may see of the record before and after it. */
export interface Change {
  readonly collection: string;
  readonly operation: 'create' | 'update' | 'remove';
  readonly id: number;
  readonly principal: Principal;
  /** Absent for `create`. */
  readonly before: JsonObject | undefined;
  /** Absent for `remove`. */
  readonly after: JsonObject | undefined;
}

/** An embedder's own rules and reactions. */
export interface Hooks {
  /**
   * Runs inside the transaction, so it is synchronous, changes nothing and returns nothing. What it throws refuses the
   * write with 422: a CairnError `validation_failed` or `write_refused` as it is, with its issues; another error as
   * `write_refused` with its message. A TypeError, ReferenceError or RangeError is a fault: 500, and logged.
   */
  readonly beforeWrite?: ((change: Change) => undefined) | undefined;
  /** Runs once the write is durable and visible, and cannot undo it: what it throws, or rejects with, is logged. */
  readonly afterWrite?: ((change: Change) => void | Promise<void>) | undefined;
}

/** A record before and after a write; one of them is absent where it was created or removed. */
export interface Written<R extends StoredRecord> {
  readonly before?: R | undefined;
  readonly after?: R | undefined;
}

/**
 * Runs `work` as one transaction with the hooks around it.
 * @throws CairnError `write_refused`, what `beforeWrite` throws, and what `work` and `Store.write` throw
 */
export type HookedWrite = <W extends Written<StoredRecord>>(
  collection: { readonly name: string; readonly fields: Shape },
  principal: Principal,
  work: (transaction: Transaction) => W,
) => Promise<W>;

/** Puts the hooks around the writes of a store; `onFault` is told what `afterWrite` throws. @throws RangeError */
export function hookedWrite(store: Store, hooks: Hooks, onFault: (error: unknown) => void): HookedWrite {
  const given = ['beforeWrite', 'afterWrite'] as const;
  const wrong = given.find((name) => !['undefined', 'function'].includes(typeof hooks[name]));
  if (wrong !== undefined) throw new RangeError(`Cannot use hooks.${wrong}: it must be a function`);
  if (given.every((name) => hooks[name] === undefined)) return (_, __, work) => store.write(work);
  return async ({ name, fields }, principal, work) => {
    const { written, change } = await store.write((transaction) => {
      const written = work(transaction);
      const { before, after } = written;
      const change: Change = {
        collection: name,
        operation: before === undefined ? 'create' : after === undefined ? 'remove' : 'update',
        id: (before ?? after)?.id ?? 0,
        principal,
        before: before && representationOf(fields, before),
        after: after && representationOf(fields, after),
      };
      ask(hooks, change);
      return { written, change };
    });
    Promise.resolve(change)
      .then((told) => hooks.afterWrite?.(told))
      .catch(onFault);
    return written;
  };
}

/** Lets `beforeWrite` refuse. What it returns is looked at, since not every hook has seen a compiler. */
function ask(hooks: Hooks, change: Change): void {
  let returned: unknown;
  try {
    returned = hooks.beforeWrite?.(change);
  } catch (error) {
    if (faults.some((fault) => error instanceof fault)) throw error;
    if (error instanceof CairnError && passed.includes(error.code)) throw error;
    const reason = (error instanceof Error && error.message) || 'a rule of this installation refuses it';
    throw new CairnError('write_refused', `Cannot write to ${change.collection}: ${reason}`, { cause: error });
  }
  if (returned === undefined) return;
  Promise.resolve(returned).catch(() => undefined);
  throw new InvariantError('beforeWrite must be synchronous and return nothing');
}

const faults = [TypeError, ReferenceError, RangeError];
const passed: readonly ErrorCode[] = ['validation_failed', 'write_refused'];
