import { userFields } from '../accounts/user-fields.ts';
import type { CompleteOptions } from '../app/options.ts';
import { localAdministrator, type Principal } from '../auth/access.ts';
import { OptionError } from '../config/options.ts';
import { CairnError, invariant, InvariantError, type ErrorCode } from '../base/errors.ts';
import type { JsonObject, JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { readId } from '../base/record-id.ts';
import { timers } from '../base/system.ts';
import type { Declared, Registry } from '../collections/declared.ts';
import { isObject } from '../schema/declaration.ts';
import { draft } from '../schema/validate.ts';
import { checkMembers, toId, isPlain, refusePromise, toJson, toName } from './given.ts';
import type { Observe } from '../collections/writes.ts';
import type { Shape } from '../schema/field.ts';
import { toShown } from '../schema/record.ts';
import type { RecordChange, StoredRecord, Transaction } from '../store/store.ts';
import { toCaller, type Caller } from './callers.ts';
import type { NoPromise, Output, ReferenceName } from './types.ts';
import { findReferring, type Members } from './write.ts';

/** A write to one collection, with its records as callers see them. */
export interface Change<O = JsonObject> {
  readonly collection: string;
  readonly operation: 'create' | 'update' | 'remove';
  readonly id: number | string;
  readonly caller: Caller;
  /** `undefined` for `create`. */
  readonly before: O | undefined;
  /** `undefined` for `remove`. */
  readonly after: O | undefined;
  /**
   * Returns this change with the types of a declared collection; `undefined` if it is in another
   * one.
   */
  of<const C extends { readonly name: string }>(collection: C): Change<Output<C>> | undefined;
}

/** Reads other records in their state within the transaction, regardless of access. */
export interface Read {
  /** A record of a declared collection as callers see it; `undefined` if there is none. */
  get<const C extends string | { readonly name: string }>(
    collection: C,
    id: number | string,
  ): Output<C> | undefined;
  /**
   * The records of a collection whose `field` refers to this id, read as they are used.
   * @throws InvariantError for more than 50,000
   */
  referring<const C extends string | { readonly name: string }>(
    collection: C,
    field: ReferenceName<C>,
    id: number | string,
  ): Members<Output<C>>;
}

/**
 * Rules and reactions of a program. Hooks run only for writes: a request that gets the stored
 * response to its `Idempotency-Key` writes nothing.
 */
export interface Hooks {
  /**
   * Runs inside the transaction, synchronously, and must change nothing. It may return fields to
   * set, as a merge patch (RFC 7396), validated like a request's: not ids, timestamps or fields of
   * users. Its arguments are frozen. With several servers on one store, it may run more than once
   * for a write.
   *
   * An error refuses the write and undoes the whole transaction, even if the work of `app.write`
   * catches it. A CairnError `validation_failed`, `write_refused` or `conflict` (409) is the
   * response itself; any other error becomes `write_refused` (422) with its message. A TypeError,
   * ReferenceError, RangeError, InvariantError or OptionError is a bug: the response is 500, and
   * the error is logged.
   *
   * @example
   *     const hooks: Hooks = {
   *       beforeWrite(change) {
   *         const task = change.of(tasks)?.after;
   *         if (task?.title === '') throw new Error('a task needs a title');
   *       },
   *     };
   */
  readonly beforeWrite?:
    ((change: Change, read: Read) => (object & NoPromise) | undefined | void) | undefined;
  /**
   * Runs once the write is durable and visible. It cannot undo the write, and its errors are
   * logged. Callers do not wait for it; `close` does, for up to 30 s.
   */
  readonly afterWrite?: ((change: Change) => void | Promise<void>) | undefined;
}

/**
 * Calls `hooks` with the changes of declared collections and of users. `onError` receives the
 * errors of `afterWrite`.
 * @throws OptionError unless these are hooks
 */
export function hooked(
  hooks: Hooks,
  onError: (error: unknown) => void,
): Pick<CompleteOptions, 'observer' | 'settled'> {
  checkHooks(hooks);
  const running = new Set<Promise<void>>();
  const begin = (change: Change): void => {
    const run: Promise<void> = Promise.resolve(change)
      .then((change) => hooks.afterWrite?.(change))
      .catch(onError)
      .finally(() => running.delete(run));
    running.add(run);
  };
  return {
    observer: (registry) => createObserver(hooks, registry, begin),
    async settled() {
      const ended = async (): Promise<void> => {
        while (running.size > 0) await Promise.all(running);
      };
      const stop = new AbortController();
      const late = timers.sleep(limits.drainTimeoutMs, undefined, { signal: stop.signal }).then(
        () => {
          onError(new Error(lateMessage));
          // A stop checks twice, and waits for them once.
          running.clear();
        },
        () => undefined,
      );
      await Promise.race([ended(), late]);
      stop.abort();
    },
  };
}

/**
 * Plain JavaScript may pass anything. An instance of a class may have other members.
 * @throws OptionError
 */
function checkHooks(hooks: Hooks): void {
  const { beforeWrite, afterWrite } = Object(hooks);
  const isOwn = isObject(hooks) && !isPlain(hooks);
  checkMembers('hooks', isOwn ? { beforeWrite, afterWrite } : hooks, hookKinds);
}

const lateMessage = `Cannot wait for afterWrite any longer: it takes over ${limits.drainTimeoutMs / 1000} s`;
const hookKinds = { beforeWrite: 'function', afterWrite: 'function' } as const;

function createObserver(
  hooks: Hooks,
  registry: Registry,
  begin: (change: Change) => void,
): Observe {
  return (tx, principal) => {
    const read = createRead(tx, registry);
    tx.onChange((pending) => {
      const { name } = pending.collection;
      const declared = registry.get(name);
      const shape = declared?.fields ?? (name === 'users' ? userFields : undefined);
      // Sessions, API keys and kept replies reach no hook.
      if (shape === undefined) return undefined;
      // beforeWrite sees the requested change first, and may refuse it by throwing.
      const asked = toChange(pending, shape, principal);
      const fields = runBeforeWrite(hooks, asked, read);
      // The fields that it returned are validated; the resulting record replaces the pending one.
      const record = fields && amend(tx, principal, declared, pending, fields);
      // Once the commit is durable, afterWrite sees the change as written.
      const change = record ? toChange({ ...pending, record }, shape, principal) : asked;
      if (hooks.afterWrite !== undefined) tx.onCommit(() => begin(change));
      return record;
    });
  };
}

function toChange(
  { collection, id, before, record: after }: RecordChange,
  shape: Shape,
  principal: Principal,
): Change {
  const written = before === undefined ? 'create' : 'update';
  const change = {
    collection: collection.name,
    operation: after === undefined ? 'remove' : written,
    id: readId(after ?? before ?? { id }),
    caller: toCaller(principal),
    before: before && frozen(toShown(shape, before)),
    after: after && frozen(toShown(shape, after)),
    of: (one: unknown) => (toName(one) === collection.name ? change : undefined),
  };
  // The store has checked its records against the declaration.
  return Object.freeze(change) as Change;
}

/** Freezes a value deeply, so that setting a member is a TypeError. */
function frozen<T extends JsonValue>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const one of Object.values(value)) frozen<JsonValue>(one);
  return Object.freeze(value);
}

/** @throws CairnError `validation_failed`, `not_unique` */
function amend(
  tx: Transaction,
  principal: Principal,
  declared: Declared | undefined,
  { id, collection }: RecordChange,
  set: object,
): StoredRecord {
  const record = declared && tx.of(declared.records).get(id);
  const canSet = record !== undefined && declared !== undefined;
  invariant(canSet, `beforeWrite sets no fields of ${collection.name}, or of what is removed`);
  const { fields } = declared;
  const change = draft('patch', { shape: fields }, toJson(set), localAdministrator);
  const { id: _, ...values } = change.against(record);
  declared.rules?.check(tx, principal, declared, values, record);
  const kept = Object.entries(record).filter(
    ([name]) => name === 'id' || !Object.hasOwn(fields, name) || fields[name]?.readOnly === true,
  );
  return { id: record.id, revision: record.revision, ...Object.fromEntries(kept), ...values };
}

function createRead(tx: Transaction, registry: Registry): Read {
  const of = (given: unknown): Declared => {
    const name = toName(given);
    const declared = registry.get(name);
    invariant(declared !== undefined, `there is no collection "${name}" to read`);
    return declared;
  };
  const read = {
    get(collection: unknown, id: unknown) {
      const { records, fields } = of(collection);
      const record = tx.of(records).withId(toId(id));
      return record && toShown(fields, record);
    },
    referring(collection: unknown, field: string, id: number | string) {
      const declared = of(collection);
      const shown = (record: StoredRecord) => toShown(declared.fields, record);
      return findReferring(tx, declared, field, id, shown);
    },
  };
  // The store has checked the records against the declarations, so their types hold.
  return read as Read;
}

/** Runs `beforeWrite` and returns the fields to set. @throws the error that refuses the write */
function runBeforeWrite(hooks: Hooks, change: Change, read: Read): object | undefined {
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
  refusePromise(returned, 'beforeWrite');
  if (returned === undefined || isObject(returned)) return returned;
  throw new TypeError('beforeWrite must return the fields to set, or nothing');
}

const bugs = [TypeError, ReferenceError, RangeError, InvariantError, OptionError];
const refusals: readonly ErrorCode[] = ['validation_failed', 'write_refused', 'conflict'];
