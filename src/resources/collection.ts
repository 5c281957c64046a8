import { notFound, type Access, type Principal } from '../auth/access.ts';
import { CairnError, invariant } from '../base/errors.ts';
import type { JsonObject, JsonValue, Scalar } from '../base/json.ts';
import { accept, misfitOf } from '../schema/check.ts';
import { id, number, text, type Shape } from '../schema/field.ts';
import { contradictionOf } from '../schema/rules.ts';
import type { Store, StoredRecord, Transaction } from '../store/store.ts';
import type { HookedWrite } from './hooks.ts';

/** Who may do what with a collection's records. Only what changes a record looks at its owner. */
export type CollectionAccess = {
  readonly [operation in keyof typeof standardAccess]: (typeof standardAccess)[operation] | (typeof anyAccess)[number];
};

const standardAccess = {
  list: 'user',
  create: 'user',
  read: 'user',
  replace: 'owner',
  patch: 'owner',
  remove: 'owner',
} as const;
/** Only a user can be `self`. */
const anyAccess = ['public', 'optional', 'user', 'admin', 'session'] as const satisfies readonly Access[];

/** A collection as data: routes, validation, storage and the OpenAPI document are all derived from it. */
export interface CollectionDeclaration {
  /** The plural, in lower case: the path `/<name>` and the file `<name>.json`. */
  readonly name: string;
  /** One of them, for operation ids and messages. */
  readonly singular: string;
  /** In the order in which they are shown, after `id`. */
  readonly fields: Shape;
  readonly access: CollectionAccess;
}

/** A record of a declared collection: its fields, and who created it (stored, never shown; 0 is nobody). */
export interface Entry extends StoredRecord {
  readonly ownerId: number;
  readonly [field: string]: Scalar;
}

const reservedFields = ['id', 'revision', 'ownerId'];
/** What the OpenAPI document calls by these names already. */
const reservedSingulars =
  'user session startedSession token tokens credentials grant revocation logout dashboard counts health issue problem';
/** What it calls the bodies and selections of another collection. */
const derivedTitle = /^new[A-Z]|[a-z0-9](?:Replacement|Patch|Selection)$/;
const declared = new WeakSet<CollectionDeclaration>();

/**
 * Declares a collection of your own, `/<name>` and `/<name>/{id}`; `items` is declared by this very function.
 * Everybody who is signed in may read and create, the owner and administrators may change, unless `access` says else.
 * @throws InvariantError for a name that no path or file can have or that is taken, and for a field that contradicts
 *   its own rule
 */
export function defineCollection(
  declaration: Omit<CollectionDeclaration, 'access'> & { readonly access?: Partial<CollectionAccess> },
): CollectionDeclaration {
  const { name, singular, fields, access } = declaration;
  invariant(/^[a-z][a-z0-9-]{0,62}$/.test(name), `a collection is named in lower case, not "${name}"`);
  invariant(/^[a-z][A-Za-z0-9]{0,62}$/.test(singular), `one of "${name}" is a single word, not "${singular}"`);
  invariant(name !== 'keys', '"keys" is the name of another file beside those of the collections');
  const isReserved = reservedSingulars.split(' ').includes(singular) || derivedTitle.test(singular);
  invariant(!isReserved, `one of "${name}" cannot be called "${singular}": something else in the API is`);
  for (const [field, declaration] of Object.entries(fields)) {
    invariant(!reservedFields.includes(field), `"${field}" in "${name}" is a name that every record has already`);
    invariant(/^[A-Za-z][A-Za-z0-9_]{0,62}$/.test(field), `a field is named by letters and digits, not "${field}"`);
    const { access } = declaration;
    invariant(access === 'read-write', `"${field}" in "${name}" is ${access}, and nothing would set or show it`);
    const contradiction = contradictionOf(declaration);
    invariant(contradiction === undefined, `"${field}" in "${name}" has ${contradiction}`);
  }
  for (const [operation, who] of Object.entries(access ?? {})) {
    const standard = Object.entries(standardAccess).find(([known]) => known === operation)?.[1];
    const known = standard !== undefined && [standard, ...anyAccess].some((one) => one === who);
    invariant(known, `"${operation}" in "${name}" cannot be for "${who}"`);
  }
  const checked = { name, singular, fields: { id: id(), ...fields }, access: { ...standardAccess, ...access } };
  declared.add(checked);
  return checked;
}

/** Things with a price, in whatever unit the installation uses. */
export const items = defineCollection({
  name: 'items',
  singular: 'item',
  fields: {
    name: text({ min: 1, max: 200, example: 'Lamp' }),
    price: number({ min: 0, max: 1e12, example: 24.5 }),
  },
});

/**
 * What a caller requires of the record that a write replaces, decided inside the transaction, where no other write can
 * come between. The order of the checks is: authorization, 404, 428, 422, 412.
 */
export interface Precondition {
  /** @throws CairnError `precondition_required` where the installation demands one and none was sent */
  demand(): void;
  /** @throws CairnError `precondition_failed` unless the version with this revision is one that the caller named */
  check(revision: number): void;
}

/** Requires nothing. */
export const unconditional: Precondition = { demand: () => {}, check: () => {} };

/** A record that is to be written: who asks for it, from where, and what they require of it. */
export interface Target {
  readonly principal: Principal;
  readonly id: number;
  readonly precondition: Precondition;
  readonly address?: string;
}

/** @throws CairnError `not_found` where there is no such record */
export function found<R extends StoredRecord>(record: R | undefined): R {
  if (record === undefined) throw notFound();
  return record;
}

/**
 * What is done with the records of a declared collection.
 * @throws InvariantError for a declaration that `defineCollection` has not checked
 */
export function createCollection(declaration: CollectionDeclaration, store: Store, write: HookedWrite) {
  const { name, singular, fields, access } = declaration;
  invariant(declared.has(declaration), `"${name}" is no collection that defineCollection made`);
  const misfit = misfitOf(fields);
  const records = store.collection<Entry>({
    name,
    parse: (record) => misfit(record) ?? (isEntry(record) ? record : undefined),
  });

  /** @throws CairnError `validation_failed`, `write_refused`, and what `Store.write` throws */
  async function create(principal: Principal, body: JsonValue): Promise<Entry> {
    const input = accept(fields, body, { kind: 'create' });
    const { after } = await write(declaration, principal, (transaction) => ({
      after: transaction.insert(records, { ownerId: principal.userId ?? nobody, ...input }),
    }));
    return after;
  }

  /** Replaces (PUT) or patches (PATCH) a record. @throws CairnError in the order that `Precondition` tells */
  async function change({ principal, id, precondition }: Target, kind: 'replace' | 'patch', body: JsonValue) {
    const { after } = await write(declaration, principal, (transaction) => {
      const before = changeable(transaction, principal, access[kind], id);
      precondition.demand();
      const input = accept(fields, body, { kind, stored: before });
      precondition.check(before.revision);
      return { before, after: transaction.replace(records, id, { ownerId: before.ownerId, ...input }) };
    });
    return { record: after, renewed: undefined };
  }

  /** @throws CairnError in the order that `Precondition` tells */
  async function remove({ principal, id, precondition }: Target): Promise<void> {
    await write(declaration, principal, (transaction) => {
      const before = changeable(transaction, principal, access.remove, id);
      precondition.demand();
      precondition.check(before.revision);
      transaction.remove(records, id);
      return { before };
    });
  }

  /** The record that is to be changed. @throws CairnError `not_found`, `not_owner` */
  function changeable(transaction: Transaction, principal: Principal, access: Access, id: number): Entry {
    const entry = found(transaction.get(records, id));
    if (access !== 'owner' || principal.role === 'admin' || principal.userId === entry.ownerId) return entry;
    throw new CairnError('not_owner', `Cannot change the ${singular}: somebody else created it`);
  }

  return { declaration, records, create, change, remove };
}

export type CollectionResource = ReturnType<typeof createCollection>;

const nobody = 0;

function isEntry(record: JsonObject & StoredRecord): record is JsonObject & Entry {
  return Number.isSafeInteger(record['ownerId']);
}
