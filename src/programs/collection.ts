import type { Prepared } from '../accounts/users.ts';
import type { Principal } from '../auth/access.ts';
import { isScalar, type JsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Application } from '../app/app.ts';
import type { Data } from '../app/data.ts';
import type { Operations } from '../api/operations.ts';
import { preconditionFailed } from '../api/versions.ts';
import { singleNumber } from '../collections/declared-rules.ts';
import type { Declared } from '../collections/declared.ts';
import type { Precondition, Target } from '../collections/resource.ts';
import { searcher } from '../lists/filters.ts';
import { OptionError } from '../config/options.ts';
import { findPage } from '../lists/list.ts';
import type { ListPool } from '../lists/list-pool.ts';
import { parseListQuery, type ListQuery } from '../lists/query.ts';
import { toShown } from '../schema/record.ts';
import { validateElements } from '../schema/validate.ts';
import type { StoredRecord, Transaction } from '../store/store.ts';
import { findPrincipal, type As } from './callers.ts';
import { checkMembers, toId, toJson, toName, refuseMore, type MemberKinds } from './given.ts';

export interface WriteOptions extends As {
  /**
   * The revision to change, from `app.versionOf`. If the record has another, the write fails with
   * `precondition_failed`.
   */
  readonly ifVersion?: string | undefined;
}

/** The records to list. `S` are the terms of `sort`. */
export interface ListOptions<W, S extends string = string> extends As {
  readonly where?: W | undefined;
  /** Fields, each at most once; "-" before a name reverses it. Default: the order of creation. */
  readonly sort?: S | readonly S[] | undefined;
  /** At most 1,000, the default. */
  readonly limit?: number | undefined;
  /** `next` of the previous page. */
  readonly after?: string | undefined;
  /** True to also count all matching records. */
  readonly total?: boolean | undefined;
}

export interface ListPage<O> {
  readonly records: readonly O[];
  /** The `after` of the next page; `undefined` on the last page. */
  readonly next: string | undefined;
  /** Present if `total` was asked for. */
  readonly total?: number;
}

/**
 * A collection for a program, with the validation, references and hooks of requests. With `as`,
 * access rules apply as well. Records have their public form.
 */
export interface ProgramCollection<
  I = JsonObject,
  O = JsonObject,
  P = JsonObject,
  W = object,
  S extends string = string,
> {
  readonly name: string;
  /** Returns `undefined` if no record has this id. @throws CairnError if `as` may not read */
  get(id: number | string, options?: As): O | undefined;
  /** Returns a page. @throws CairnError `invalid_query` for an unknown filter */
  list(options?: ListOptions<W, S>): Promise<ListPage<O>>;
  /** Iterates over all records, page by page, possibly including records written meanwhile. */
  all(options?: Omit<ListOptions<W, S>, 'after' | 'total'>): AsyncGenerator<O, void, undefined>;
  /** Counts the matching records. */
  count(options?: Pick<ListOptions<W>, 'where'> & As): number;
  /** @throws CairnError `validation_failed`, `not_unique`, and the errors of every write */
  create(record: I, options?: As): Promise<O>;
  /** Replaces a record, like PUT. @throws CairnError as `change` */
  replace(id: number | string, record: I, options?: WriteOptions): Promise<O>;
  /**
   * Applies a merge patch (RFC 7396).
   * @throws CairnError as `create`, and `not_found`, `precondition_failed`
   */
  change(id: number | string, patch: P, options?: WriteOptions): Promise<O>;
  /** @throws CairnError `not_found`, `still_referenced`, and the errors of every write */
  remove(id: number | string, options?: WriteOptions): Promise<void>;
}

export interface DeclaredCollection<
  I = JsonObject,
  O = JsonObject,
  P = JsonObject,
  W = object,
  S extends string = string,
> extends ProgramCollection<I, O, P, W, S> {
  /** Creates up to 1,000 records, all or none. @throws CairnError as `create` */
  createMany(records: readonly I[], options?: As): Promise<O[]>;
}

/** A single resource for a program. With `as`, access rules apply. */
export interface ProgramSingle<I = JsonValue, O = JsonValue, P = JsonValue> {
  readonly name: string;
  /** Returns `undefined` until it is first set. @throws CairnError if `as` may not read */
  get(options?: As): O | undefined;
  /** Sets it, like PUT. @throws CairnError as `change` of a collection */
  replace(value: I, options?: WriteOptions): Promise<O>;
  /** Applies a merge patch (RFC 7396). @throws CairnError as `change` of a collection */
  change(patch: P, options?: WriteOptions): Promise<O>;
}

/** The methods, each with its options and the operation whose access rule applies. */
const asOption = { as: 'any' } as const;
const writeOptions = { ...asOption, ifVersion: 'text' } as const;
const countOptions = { ...asOption, where: 'object' } as const;
const allOptions = { ...countOptions, sort: 'any', limit: 'number' } as const;
const methods = {
  get: ['read', asOption],
  find: ['read', {}],
  referring: ['list', {}],
  list: ['list', { ...allOptions, after: 'text', total: 'boolean' }],
  all: ['list', allOptions],
  count: ['list', countOptions],
  create: ['create', asOption],
  createMany: ['create', asOption],
  replace: ['replace', writeOptions],
  change: ['patch', writeOptions],
  remove: ['remove', writeOptions],
} as const satisfies { readonly [name: string]: readonly [string, MemberKinds] };

export interface Found {
  readonly declared: Declared;
  readonly operations: ProgramOperations;
}

export class Program {
  readonly data: Data;
  readonly pool: ListPool;
  readonly versions = new WeakMap<object, string>();
  readonly #all: ReadonlyMap<string, Found>;

  constructor({ data, listPool, operations }: Application) {
    this.data = data;
    this.pool = listPool;
    const all = Array.from(data.registry.values(), (declared): [string, Found][] => {
      const { name } = declared;
      const own = operations.declared.get(name);
      return own ? [[name, { declared, operations: new ProgramOperations(own, this) }]] : [];
    });
    this.#all = new Map(all.flat());
  }

  /** Finds a collection or a single resource by its declaration or name. @throws OptionError */
  find(kind: 'collection' | 'single', given: unknown): Found {
    const name = toName(given);
    const found = this.#all.get(name);
    const nameKind = ({ declared }: Found): string => (declared.isSingle ? 'single' : 'collection');
    if (found !== undefined && nameKind(found) === kind) return found;
    const others = [...this.#all.values()].filter((one) => nameKind(one) === kind);
    let advice = `there are ${others.map(({ declared }) => declared.name).join(', ') || 'none'}`;
    if (found !== undefined) advice = `use ${nameKind(found)}`;
    else if (name === 'users') advice = 'use app.users';
    throw new OptionError(`Cannot use ${kind} "${name}": ${advice}`, kind);
  }

  /** @throws OptionError */
  findPrincipal(options: As): Principal {
    return findPrincipal(options, this.data.users.records);
  }

  /**
   * Begins a write in its own transaction.
   * @throws TypeError inside a transaction, synchronously
   */
  begin<T>(write: () => Promise<T>): Promise<T> {
    if (this.data.writes.isWorking) throw new TypeError(nested);
    return write();
  }
}

const nested =
  'Cannot begin a write within a transaction: write by its tx, or return from a hook what it sets';

/** The operations of one collection as a program calls them, inside or outside a transaction. */
export class ProgramOperations {
  readonly served: Operations;
  readonly program: Program;
  /** For use outside transactions. Users have no `createMany`. */
  readonly collection: Sending;

  constructor(served: Operations, program: Program) {
    this.served = served;
    this.program = program;
    const { name } = served.collection;
    this.collection = Object.freeze({ name, ...createReads(this), ...createWrites(this) });
  }

  /** Returns a record as programs see it. An object has a revision. */
  shown(record: StoredRecord): JsonValue {
    const value = toShown(this.served.collection.fields, record);
    if (typeof value === 'object' && value !== null)
      this.program.versions.set(value, this.served.tagOf(record.revision));
    return value;
  }

  /**
   * Returns the principal of a call, once its access is checked. In a transaction, `principal`
   * takes the place of `as`.
   * @throws OptionError; CairnError if the caller has no access
   */
  admit(
    method: keyof typeof methods,
    options: WriteOptions,
    id: number | string = 0,
    principal?: Principal,
  ): Principal {
    const { name } = this.served.collection;
    const [operation, kinds] = methods[method];
    const { as, ...others }: MemberKinds = kinds;
    checkMembers(`${method} of ${name}`, options, principal === undefined ? kinds : others);
    const caller = principal ?? this.program.findPrincipal(options);
    this.served.admit(operation, caller, toId(id));
    return caller;
  }

  target(principal: Principal, id: number | string, { ifVersion }: WriteOptions): Target {
    const precondition: Precondition = (revision) => {
      const version = revision === undefined ? undefined : this.served.tagOf(revision);
      if (ifVersion !== undefined && ifVersion !== version) throw preconditionFailed(version);
    };
    return { principal, id: toId(id), precondition };
  }

  /** @throws CairnError `invalid_query` */
  query(options: ListOptions<object>, principal: Principal): ListQuery {
    const { where = {}, sort, limit = limits.pageRecordsMax, after } = options;
    const parameters = new Map([['limit', [String(limit)]]]);
    if (sort !== undefined) parameters.set('sort', [String(sort)]);
    if (after !== undefined) parameters.set('cursor', [after]);
    for (const [name, value] of Object.entries(where)) {
      const parameter = listOwn.includes(name) ? `${name}:eq` : name;
      if (value === null) parameters.set(`${name}:exists`, ['false']);
      else if (value !== undefined) parameters.set(parameter, toTexts(name, value));
    }
    return parseListQuery(this.served.collection, parameters, principal.userId);
  }
}

/** The list parameters that are options of their own. */
const listOwn = ['limit', 'offset', 'cursor', 'sort', 'fields', 'embed'];

/** @throws OptionError for anything but a text, a number or a boolean */
function toTexts(name: string, given: unknown): string[] {
  const all: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (all.length === 0) throw new OptionError(`Cannot use where: "${name}" has no values`, 'where');
  if (!all.every(isScalar))
    throw new OptionError(`Cannot use where: "${name}" takes texts, numbers and booleans`, 'where');
  if (Array.isArray(given) && name.endsWith(':in'))
    return [all.map((one) => String(one).replaceAll(/[\\,]/g, '\\$&')).join(',')];
  return all.map(String);
}

type Sending = DeclaredCollection<unknown, JsonValue, unknown>;

export function toSingle(all: {
  get(id: number, options?: As): unknown;
  replace(id: number, value: unknown, options?: WriteOptions): unknown;
  change(id: number, patch: unknown, options?: WriteOptions): unknown;
}) {
  return {
    get: (options?: As) => all.get(singleNumber, options),
    replace: (value: unknown, options?: WriteOptions) => all.replace(singleNumber, value, options),
    change: (patch: unknown, options?: WriteOptions) => all.change(singleNumber, patch, options),
  };
}

function createReads(
  operations: ProgramOperations,
): Pick<Sending, 'get' | 'list' | 'all' | 'count'> {
  const { served, program } = operations;
  const { fields } = served.collection;
  const { records } = served.resource;
  const list = async (
    options: ListOptions<object> = {},
    ...more: never[]
  ): Promise<ListPage<JsonValue>> => {
    refuseMore('list', more);
    const principal = operations.admit('list', options);
    const query = operations.query(options, principal);
    const caller = { caller: 'program', signal: never };
    const withTotal = options.total === true;
    const { limit = limits.pageRecordsMax } = query;
    const reader = served.reader(principal, 'list');
    const source = { fields, records, pool: program.pool };
    const page = await findPage(source, { query, withTotal, caller, reader }, limit);
    return {
      records: page.records.map((record) => operations.shown(record)),
      next: page.next,
      ...(page.total !== undefined && { total: page.total }),
    };
  };
  return {
    get(id, options = {}) {
      const principal = operations.admit('get', options, id);
      const record = served.read(principal, toId(id));
      return record && operations.shown(record);
    },
    list,
    async *all(options = {}, ...more: never[]) {
      refuseMore('all', more);
      operations.admit('all', options);
      let after: string | undefined;
      do {
        // A spread copies only own members, and `as` may be inherited.
        const asker = 'as' in options && { as: options.as };
        const page: ListPage<JsonValue> = await list({ ...options, ...asker, after });
        yield* page.records;
        after = page.next;
      } while (after !== undefined);
    },
    count(options = {}, ...more: never[]) {
      refuseMore('count', more);
      const principal = operations.admit('count', options);
      const { filters } = operations.query(options, principal);
      const { test } = served.reader(principal, 'list');
      if (filters.length === 0 && test === undefined) return records.size;
      const search = searcher(fields, filters);
      let count = 0;
      for (const block of records.view().blocks) {
        const seen = test === undefined ? block : block.filter(test);
        for (const { length } of search(seen)) count += length;
      }
      return count;
    },
  };
}

interface Plan<T> {
  readonly principal: Principal;
  readonly prepare?: () => Promise<Prepared> | undefined;
  readonly run: (tx: Transaction, prepared?: Prepared) => T;
}

/** Returns the checks of each write. In a transaction, `caller` takes the place of `as`. */
export function planWrites(operations: ProgramOperations, caller?: Principal) {
  const { resource, collection } = operations.served;
  const { create, ...bodies } = collection.bodies;
  const change =
    (method: 'replace' | 'change') =>
    (id: number | string, sent: unknown, options: WriteOptions = {}): Plan<JsonValue> => {
      const principal = operations.admit(method, options, id, caller);
      const draft = bodies[methods[method][0]].validate(toJson(sent), principal);
      const target = operations.target(principal, id, options);
      return {
        principal,
        prepare: () => resource.prepareChange?.(target, draft),
        run: (tx, prepared) =>
          operations.shown(resource.change(tx, target, draft, prepared).record),
      };
    };
  return {
    create(record: unknown, options: As = {}): Plan<JsonValue> {
      const principal = operations.admit('create', options, undefined, caller);
      const input = create.validate(toJson(record), principal);
      return {
        principal,
        prepare: () => resource.prepareCreate?.(principal, input, ''),
        run: (tx, prepared) => operations.shown(resource.create(tx, principal, input, prepared)),
      };
    },
    createMany(sent: readonly unknown[], options: As = {}): Plan<JsonValue[]> {
      const principal = operations.admit('createMany', options, undefined, caller);
      const inputs = validateElements(toJson(sent), (one) => create.validate(one, principal));
      const run = (tx: Transaction) => resource.createMany?.(tx, principal, inputs) ?? [];
      return { principal, run: (tx) => run(tx).map((one) => operations.shown(one)) };
    },
    replace: change('replace'),
    change: change('change'),
    remove(id: number | string, options: WriteOptions = {}): Plan<void> {
      const principal = operations.admit('remove', options, id, caller);
      const target = operations.target(principal, id, options);
      return { principal, run: (tx) => resource.remove(tx, target) };
    },
  };
}

function createWrites(
  operations: ProgramOperations,
): Pick<Sending, 'create' | 'createMany' | 'replace' | 'change' | 'remove'> {
  const { program } = operations;
  const write =
    <A extends unknown[], T>(plan: (...given: A) => Plan<T>) =>
    (...given: A): Promise<T> =>
      program.begin(async () => {
        const { principal, prepare, run } = plan(...given);
        const prepared = await prepare?.();
        return program.data.writes.write(principal, (tx) => run(tx, prepared));
      });
  const { create, createMany, replace, change, remove } = planWrites(operations);
  return {
    create: write(create),
    createMany: write(createMany),
    replace: write(replace),
    change: write(change),
    remove: write(remove),
  };
}

/** Lists of a program are never cancelled. */
const never = new AbortController().signal;
