import type { Principal } from '../auth/access.ts';
import { OptionError } from '../config/options.ts';
import { invariant } from '../base/errors.ts';
import { isScalar, type JsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Declared } from '../collections/declared.ts';
import type { StoredRecord, Transaction } from '../store/store.ts';
import { planWrites, toSingle, type Found, type Program, type WriteOptions } from './collection.ts';
import { toId } from './given.ts';
import type { Input, Output, Patch, ReferenceName, Single, UniqueName } from './types.ts';

/** A program's transaction, which is all or nothing. It is usable only while its work runs. */
export interface ProgramTransaction {
  /** @throws OptionError for an unknown collection */
  collection<const C extends string | { readonly name: string }>(
    collection: C,
  ): TransactionCollection<Input<C>, Output<C>, Patch<C>, UniqueName<C>, ReferenceName<C>>;
  /** @throws OptionError for an unknown single resource */
  single<const C extends string | { readonly name: string }>(
    single: C,
  ): TransactionSingle<Single<C, Input<C>>, Single<C, Output<C>>, Single<C, Patch<C>>>;
}

/** A single resource within the transaction. */
export interface TransactionSingle<I = JsonValue, O = JsonValue, P = JsonValue> {
  get(): O | undefined;
  replace(value: I, options?: Pick<WriteOptions, 'ifVersion'>): O;
  change(patch: P, options?: Pick<WriteOptions, 'ifVersion'>): O;
}

/** A collection within the transaction. `U` are its unique fields, `R` its fields that refer. */
export interface TransactionCollection<
  I = JsonObject,
  O = JsonObject,
  P = JsonObject,
  U extends string = string,
  R extends string = string,
> {
  get(id: number | string): O | undefined;
  /** Finds the record with this value in a `unique` field. */
  find(field: U, value: string | number): O | undefined;
  /** Returns the records whose `field` refers to this id, read as they are used. */
  referring(field: R, id: number | string): Members<O>;
  create(record: I): O;
  replace(id: number | string, record: I, options?: Pick<WriteOptions, 'ifVersion'>): O;
  change(id: number | string, patch: P, options?: Pick<WriteOptions, 'ifVersion'>): O;
  remove(id: number | string, options?: Pick<WriteOptions, 'ifVersion'>): void;
}

/** Records that are read as they are used. */
export interface Members<O = JsonObject> extends Iterable<O> {
  readonly count: number;
}

/** Records of any type, because the code checks them. */
interface Sending extends TransactionCollection<unknown, JsonValue, unknown> {
  get(id: number | string, options?: object): JsonValue | undefined;
  create(record: unknown, options?: object): JsonValue;
}

export function programTransaction(
  tx: Transaction,
  principal: Principal,
  program: Program,
): ProgramTransaction {
  const transaction = {
    collection: (given: unknown) =>
      transactionCollection(tx, principal, program.find('collection', given)),
    single: (given: unknown) =>
      toSingle(transactionCollection(tx, principal, program.find('single', given))),
  };
  // The store has checked the records against the declarations, so their types hold.
  return transaction as unknown as ProgramTransaction;
}

function transactionCollection(
  tx: Transaction,
  principal: Principal,
  { declared, operations }: Found,
): Sending {
  const { served } = operations;
  const records = tx.of(declared.records);
  const { test: isRead = () => true } = served.reader(principal, 'read');
  const { test: isListed } = served.reader(principal, 'list');
  const shown = (record: StoredRecord): JsonValue => operations.shown(record);
  const write =
    <A extends unknown[], T>(plan: (...given: A) => { run(tx: Transaction): T }) =>
    (...given: A): T =>
      plan(...given).run(tx);
  const { create, replace, change, remove } = planWrites(operations, principal);
  return {
    // Plain JavaScript may pass options, although a transaction takes none.
    get(id, options = {}) {
      operations.admit('get', options, id, principal);
      const record = served.read(principal, toId(id), tx);
      return record && shown(record);
    },
    find(field, value) {
      operations.admit('find', {}, undefined, principal);
      const [, keyOf] = declared.rules?.unique.find(([name]) => name === field) ?? [];
      if (keyOf === undefined)
        throw new OptionError(
          `Cannot find by "${field}": it is not unique in ${declared.name}`,
          field,
        );
      if (!isScalar(value))
        throw new OptionError(`Cannot find by ${field}: its value is a text or a number`, field);
      const key = keyOf({ [field]: value });
      const record = key === undefined ? undefined : records.find(field, key);
      return record && isRead(record) ? shown(record) : undefined;
    },
    referring(field, id) {
      operations.admit('referring', {}, undefined, principal);
      return findReferring(tx, declared, field, id, shown, isListed);
    },
    create: write(create),
    replace: write(replace),
    change: write(change),
    remove: write(remove),
  };
}

/** Returns the records whose `field` refers to this id and that pass `test`. */
export function findReferring<T>(
  tx: Transaction,
  { name, outgoing, records }: Declared,
  field: string,
  id: number | string,
  shown: (record: StoredRecord) => T,
  test: (record: StoredRecord) => boolean = () => true,
): Members<T> {
  if (!outgoing.some((reference) => reference.name === field)) {
    const names = outgoing.map((reference) => reference.name).join(', ') || 'none';
    const problem = `it is not a reference; the references of ${name} are: ${names}`;
    throw new OptionError(`Cannot read what refers by "${field}": ${problem}`, field);
  }
  const referring = tx.of(records).referring(field, toId(id));
  const isBounded = referring.countAtMost <= limits.hookRecordsMax;
  invariant(isBounded, `a program reads more than ${limits.hookRecordsMax} of ${name} in a write`);
  return {
    get count() {
      return [...referring].filter(test).length;
    },
    *[Symbol.iterator]() {
      for (const record of referring) if (test(record)) yield shown(record);
    },
  };
}
