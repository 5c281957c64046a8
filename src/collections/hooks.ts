import type { Principal } from '../auth/access.ts';
import { CairnError, invariant, InvariantError, type ErrorCode } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import type { Shape } from '../schema/field.ts';
import { representationOf } from '../schema/record.ts';
import type { Collection, Store, StoredRecord, Transaction, Unstored } from '../store/store.ts';

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

/** A collection whose writes are reported to the hooks. */
export interface HookedCollection<R extends StoredRecord> {
  readonly records: Collection<R>;
  /** The fields that the hooks see. */
  readonly fields: Shape;
}

/** Writes records in one transaction, and reports each of them to the hooks. */
export interface RecordWriter {
  insert<R extends StoredRecord>(collection: HookedCollection<R>, record: Unstored<R>): R;
  replace<R extends StoredRecord>(
    collection: HookedCollection<R>,
    before: R,
    record: Unstored<R>,
  ): R;
  remove<R extends StoredRecord>(collection: HookedCollection<R>, before: R): void;
}

/** Writes to a store, with the hooks before and after each. */
export class HookedWrites {
  readonly #store: Store;
  readonly #hooks: Hooks;
  readonly #collectionOf: (name: string) => HookedCollection<StoredRecord> | undefined;
  readonly #onError: (error: unknown) => void;

  /**
   * `collectionOf` finds a declared collection by its name. `onError` receives the errors of
   * `afterWrite`.
   */
  constructor(
    store: Store,
    hooks: Hooks,
    collectionOf: (name: string) => HookedCollection<StoredRecord> | undefined,
    onError: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#hooks = hooks;
    this.#collectionOf = collectionOf;
    this.#onError = onError;
  }

  /**
   * Runs `work` as one transaction, which writes records by `writer`.
   * @throws CairnError `write_refused`, and the errors of `beforeWrite`, `work` and
   *   `Store.write`
   */
  async write<T>(
    principal: Principal,
    work: (transaction: Transaction, writer: RecordWriter) => T,
  ): Promise<T> {
    const { beforeWrite, afterWrite } = this.#hooks;
    const isHooked = beforeWrite !== undefined || afterWrite !== undefined;
    const { result, changes } = await this.#store.write((transaction) => {
      const changes: Change[] = [];
      const onWritten: OnWritten = ({ records, fields }, id, before, after) => {
        if (!isHooked) return;
        const written = before === undefined ? 'create' : 'update';
        const change: Change = {
          collection: records.name,
          operation: after === undefined ? 'remove' : written,
          id,
          principal,
          before: before && representationOf(fields, before),
          after: after && representationOf(fields, after),
        };
        this.#beforeWrite(change, this.#reader(transaction));
        changes.push(change);
      };
      return { result: work(transaction, writerOf(transaction, onWritten)), changes };
    });
    for (const change of changes) {
      Promise.resolve(change)
        .then((change) => this.#hooks.afterWrite?.(change))
        .catch(this.#onError);
    }
    return result;
  }

  #reader(transaction: Transaction): Read {
    const of = (name: string): HookedCollection<StoredRecord> => {
      const collection = this.#collectionOf(name);
      invariant(collection !== undefined, `there is no collection "${name}" to read`);
      return collection;
    };
    return {
      get(name, id) {
        const { records, fields } = of(name);
        const record = transaction.of(records).get(id);
        return record && representationOf(fields, record);
      },
      members(name, field, id) {
        const { records, fields } = of(name);
        const members = [...transaction.of(records).referring(field, id)];
        return members.map((record) => representationOf(fields, record));
      },
    };
  }

  /** Runs `beforeWrite`. @throws the error that refuses the write */
  #beforeWrite(change: Change, read: Read): void {
    let returned: unknown;
    try {
      returned = this.#hooks.beforeWrite?.(change, read);
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
}

const bugs = [TypeError, ReferenceError, RangeError, InvariantError];
const refusals: readonly ErrorCode[] = ['validation_failed', 'write_refused'];

/** Called with each record that a transaction has written, before it ends. */
type OnWritten = (
  collection: HookedCollection<StoredRecord>,
  id: number,
  before: StoredRecord | undefined,
  after: StoredRecord | undefined,
) => void;

function writerOf(transaction: Transaction, onWritten: OnWritten): RecordWriter {
  return {
    insert(collection, record) {
      const after = transaction.of(collection.records).insert(record);
      onWritten(collection, after.id, undefined, after);
      return after;
    },
    replace(collection, before, record) {
      const after = transaction.of(collection.records).replace(before.id, record);
      onWritten(collection, before.id, before, after);
      return after;
    },
    remove(collection, before) {
      transaction.of(collection.records).remove(before.id);
      onWritten(collection, before.id, before, undefined);
    },
  };
}
