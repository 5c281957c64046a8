import type { Principal } from '../auth/principal.ts';
import { CairnError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
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

/** Whose records are written, and how they look from outside. */
export interface Subject<R extends StoredRecord> {
  readonly name: string;
  present(record: R): JsonObject;
}

/**
 * Runs `work` as one transaction with the hooks around it.
 * @throws CairnError `write_refused`, and what `work` and `Store.write` throw
 */
export async function writeWithHooks<R extends StoredRecord, W extends Written<R>>(
  store: Store,
  hooks: Hooks,
  subject: Subject<R>,
  principal: Principal,
  work: (transaction: Transaction) => W,
): Promise<W> {
  if (hooks.beforeWrite === undefined && hooks.afterWrite === undefined) return await store.write(work);
  const { written, change } = await store.write((transaction) => {
    const written = work(transaction);
    const change = describe(subject, principal, written);
    if (change !== undefined) askBefore(hooks, change);
    return { written, change };
  });
  if (change !== undefined) hooks.afterWrite?.(change);
  return written;
}

/** `undefined` where nothing was changed. */
function describe<R extends StoredRecord>(
  subject: Subject<R>,
  principal: Principal,
  { before, after }: Written<R>,
): Change | undefined {
  const id = before?.id ?? after?.id;
  if (id === undefined || before === after) return undefined;
  return {
    collection: subject.name,
    operation: before === undefined ? 'create' : after === undefined ? 'remove' : 'update',
    id,
    principal,
    before: before && subject.present(before),
    after: after && subject.present(after),
  };
}

function askBefore(hooks: Hooks, change: Change): void {
  try {
    hooks.beforeWrite?.(change);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'a rule of this installation refuses it';
    throw new CairnError('write_refused', `Cannot write to ${change.collection}: ${reason}`, { cause });
  }
}
