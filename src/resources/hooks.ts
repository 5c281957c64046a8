import type { Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
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
   * Runs inside the transaction, so it must be synchronous and change nothing itself. What it throws refuses the
   * write with 422 `write_refused`, and the error's message becomes the `detail` that the caller reads.
   */
  readonly beforeWrite?: ((change: Change) => void) | undefined;
  /** Runs once the write is durable and visible, and cannot undo it: it must not throw. */
  readonly afterWrite?: ((change: Change) => void) | undefined;
}

/** A record before and after a write; one of them is absent where it was created or removed. */
export interface Written<R extends StoredRecord> {
  readonly before?: R | undefined;
  readonly after?: R | undefined;
}

/** Whose records are written, and which of their fields may be seen. */
export interface Subject {
  readonly name: string;
  readonly fields: Shape;
}

/**
 * Runs `work` as one transaction with the hooks around it.
 * @throws CairnError `write_refused`, and what `work` and `Store.write` throw
 */
export async function writeWithHooks<W extends Written<StoredRecord>>(
  store: Store,
  hooks: Hooks,
  { name, fields }: Subject,
  principal: Principal,
  work: (transaction: Transaction) => W,
): Promise<W> {
  if (hooks.beforeWrite === undefined && hooks.afterWrite === undefined) return store.write(work);
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
    try {
      hooks.beforeWrite?.(change);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : 'a rule of this installation refuses it';
      throw new CairnError('write_refused', `Cannot write to ${name}: ${reason}`, { cause });
    }
    return { written, change };
  });
  hooks.afterWrite?.(change);
  return written;
}
