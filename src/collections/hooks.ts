import type { Principal } from '../auth/access.ts';
import { CairnError, InvariantError, type ErrorCode } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';

/** One write to a collection, with the record as callers see it. */
export interface Change {
  readonly collection: string;
  readonly operation: 'create' | 'update' | 'remove';
  readonly id: number;
  readonly principal: Principal;
  /** `undefined` for `create`. */
  readonly before: JsonObject | undefined;
  /** `undefined` for `remove`. */
  readonly after: JsonObject | undefined;
}

/** Reads other records as the transaction leaves them, without regard to access. */
export interface Read {
  /** The record of a declared collection as callers see it; `undefined` if there is none. */
  get(collection: string, id: number): JsonObject | undefined;
  /** The records of a collection whose reference `field` has this id. */
  members(collection: string, field: string, id: number): JsonObject[];
}

/** Rules and reactions of an embedder. */
export interface Hooks {
  /**
   * Runs inside the transaction. It must be synchronous, change nothing and return
   * nothing. With several servers on one store, it may run more than once for a write. An
   * error that it throws refuses the write with 422: a CairnError `validation_failed` or
   * `write_refused` with its issues, any other error as `write_refused` with its message.
   * A TypeError, ReferenceError, RangeError or InvariantError, such as for a collection that
   * is not there to read, is treated as a bug: the response is 500, and it is logged.
   */
  readonly beforeWrite?: ((change: Change, read: Read) => undefined) | undefined;
  /**
   * Runs when the write is durable and visible. It cannot undo the write; errors are
   * logged.
   */
  readonly afterWrite?: ((change: Change) => void | Promise<void>) | undefined;
}

/** Runs `beforeWrite`. @throws the error that refuses the write */
export function runBeforeWrite(hooks: Hooks, change: Change, read: Read): void {
  let returned: unknown;
  try {
    returned = hooks.beforeWrite?.(change, read);
  } catch (error) {
    if (bugs.some((bug) => error instanceof bug)) throw error;
    if (error instanceof CairnError && refusals.includes(error.code)) throw error;
    const reason =
      (error instanceof Error && error.message) || 'a rule of this installation refuses it';
    throw new CairnError('write_refused', `Cannot write to ${change.collection}: ${reason}`, {
      cause: error,
    });
  }
  if (returned === undefined) return;
  // A hook in plain JavaScript may return a promise. Its rejection must not end the
  // process.
  Promise.resolve(returned).catch(() => undefined);
  throw new InvariantError('beforeWrite must be synchronous and return nothing');
}

const bugs = [TypeError, ReferenceError, RangeError, InvariantError];
const refusals: readonly ErrorCode[] = ['validation_failed', 'write_refused'];
