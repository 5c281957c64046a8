import type { Principal } from '../auth/access.ts';
import { invalidToken } from '../auth/tokens.ts';
import { CairnError, invariant } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { readId, recordId, type RecordId } from '../base/record-id.ts';
import type { Scalar } from '../base/json.ts';
import {
  idField,
  referenceIn,
  type Field,
  type IdKind,
  type NumberField,
  type ReferenceField,
  type Shape,
  type Value,
} from '../schema/field.ts';
import { findKind } from '../schema/kinds.ts';
import { fieldValue, scalarValue, type Write } from '../schema/record.ts';
import { storedRecordParser } from '../schema/stored.ts';
import type {
  Collection,
  Store,
  StoredRecord,
  TableDefinition,
  Transaction,
} from '../store/store.ts';
import { decidingNames } from './permissions.ts';
import type { Readable } from './reader.ts';
import { capitalized, makeShapeTag, type CollectionDeclaration } from './declaration.ts';

/**
 * A record of a declared collection, with the id of the user who created it, which is never shown.
 * It is 0 without authentication, and for commands and programs.
 */
export interface Entry extends StoredRecord {
  readonly ownerId: number;
  readonly [field: string]: Value;
}

/**
 * A declared collection as it is served to operations, routes, lists, the change feed and the
 * OpenAPI document.
 */
export interface Declared extends CollectionDeclaration {
  readonly singular: string;
  readonly records: Collection<Entry>;
  /** The largest record, in bytes of JSON. */
  readonly recordBytesMax: number;
  /** The ids that callers may choose. If absent, the store generates all. */
  readonly ids: IdKind | undefined;
  /** The unique part of its operation ids. */
  readonly noun: string;
  /** The unique fields, with the keys of their indexes. */
  readonly unique: readonly (readonly [field: string, keyOf: ReadUniqueKey])[];
  /** The references in its fields, and those to its records. */
  readonly outgoing: readonly Reference[];
  readonly incoming: Reference[];
  /** The rules of references. Absent if no field of the app refers. */
  readonly references: ReferenceRules | undefined;
  /** The values of `embed` for its records. */
  readonly embeddables: readonly Embeddable[];
  /** True if callers can list their own records, because lists need credentials. */
  readonly hasOwners: boolean;
  /** Part of each entity tag, because the declaration decides how a record looks. */
  readonly shapeTag: string;
  /**
   * Checks that the caller was not removed and may own one more record.
   * @throws CairnError `invalid_token`, `too_many_records`
   */
  readonly checkOwner: (tx: Transaction, principal: Principal) => void;
}

/** Returns the key of a record in a unique index; `undefined` if it has none. */
export type ReadUniqueKey = (record: object) => string | undefined;

/** The target of references: a declared collection, or the users. */
export interface ReferenceTarget
  extends
    Pick<Declared, 'name' | 'singular' | 'fields' | 'display' | 'shapeTag' | 'incoming'>,
    Readable {
  readonly isUsers?: true;
}

/**
 * Returns the users as a target of references, the same for all callers: with the name, for fields
 * that show it.
 */
export const usersAsTarget = (records: Collection<StoredRecord>): ReferenceTarget => ({
  name: 'users',
  singular: 'user',
  isUsers: true,
  records,
  fields: { id: idField, name: { kind: 'text' } },
  access: { list: 'optional', read: 'optional' },
  shapeTag: '',
  incoming: [],
});

/** A field with ids of records, in any collection, or of users. */
export interface Reference {
  readonly from: Declared;
  readonly name: string;
  readonly field: ReferenceField;
  readonly to: ReferenceTarget;
}

/**
 * A value of `embed`, and the member that it adds to records:
 *
 *       authorId          a reference: the record, as `author`; absent if the field is
 *       tagIds            a list of references: the records in its order, as `tag`, or, if `tag`
 *                         is the singular of their collection, as `tags`; absent if the field is
 *       comments          a collection that refers here: its records by id, as `comments`
 *       comments:postId   the same, if several of its fields refer here, or the name is taken
 *
 * A field whose short name is another field cannot be embedded. Arrays have at most `embeddedMax`
 * records.
 */
export interface Embeddable {
  /** The value of `embed`. */
  readonly name: string;
  readonly member: string;
  /** The collection of the embedded records. */
  readonly of: ReferenceTarget;
  /** The referring field: of the record, or, if `kind` is `referring`, of the embedded ones. */
  readonly field: string;
  readonly kind: 'one' | 'list' | 'referring';
}

export interface Embedded {
  /** The part of the entity tag for the embedded collections; empty without any. */
  readonly selection: string;
  /** Combines a record's revision with those of its embedded collections. */
  readonly revisionWith: (own: number) => number;
  /**
   * Names a record's embedded records with their revisions. Present if they depend on the caller,
   * because revisions of whole collections would reveal changes to hidden records.
   */
  readonly marksIn?: ((record: StoredRecord) => string) | undefined;
  /** Extends a writer with embedded records. If absent, nothing is embedded. */
  readonly writer?: (write: Write) => (record: StoredRecord) => Iterable<string>;
}

/** The rules of references. An app without references does not load them. */
export interface ReferenceRules {
  listEmbeddables(declared: Declared): readonly Embeddable[];
  /**
   * Embeds `names`, at least one.
   * @throws CairnError `insufficient_scope` if the caller may not read or list them
   */
  embed(
    names: readonly string[],
    embeddables: readonly Embeddable[],
    principal: Principal,
  ): Embedded;
  /**
   * Checks that each record that a written one refers to exists and is readable for the caller.
   * @throws CairnError `validation_failed` with an issue `no_such_record` for each
   */
  check(
    tx: Transaction,
    principal: Principal,
    declared: Declared,
    input: object,
    before?: Entry,
  ): void;
  /**
   * Removes a record, and treats the records that refer to it, at most `most`, as their fields
   * declare. `now` is the time of the change.
   * @throws CairnError `still_referenced`
   */
  remove(
    tx: Transaction,
    principal: Principal,
    target: ReferenceTarget,
    record: StoredRecord,
    now: number,
    most?: number,
  ): void;
}

export type Groups = NonNullable<TableDefinition<Entry>['groups']>;

/** A dialect's additions to all tables of declared collections. */
export interface TableRules {
  readonly groups?: Groups;
  /** Default: `limits.recordBytesMax`. */
  readonly recordBytesMax?: number;
}

/** The declared collections of an app, by name. */
export type Registry = ReadonlyMap<string, Declared>;

/**
 * Registers the tables of all declarations with a store that has not started. `users` is absent on
 * a server without them.
 */
export function makeRegistry(
  store: Store,
  declarations: readonly CollectionDeclaration[],
  users: ReferenceTarget | undefined,
  references?: ReferenceRules,
  recordsPerOwner?: number,
  { groups = {}, recordBytesMax = limits.recordBytesMax }: TableRules = {},
): Registry {
  const isBounded = recordsPerOwner !== undefined;
  const tables: Collection<Entry>[] = [];
  const checkOwner: Declared['checkOwner'] = (tx, { userId: ownerId = 0, role }) => {
    const others = users && tx.of(users.records);
    // User ids are never reused, but the token of a removed user lives on for a while.
    const wasGiven = others !== undefined && ownerId > 0 && ownerId < others.nextId;
    if (wasGiven && others.get(ownerId) === undefined) throw invalidToken();
    if (!isBounded || role === 'admin') return;
    let owned = 0;
    for (const table of tables) owned += tx.of(table).referring('ownerId', ownerId).countAtMost;
    if (owned < recordsPerOwner) return;
    const message = `Cannot write: you own ${owned} records, and may own ${recordsPerOwner}`;
    throw new CairnError('too_many_records', `${message}: remove some`);
  };
  const nouns = new Set<string>();
  const all = declarations.map((declaration) => {
    const { name, fields, access, isBuiltIn } = declaration;
    let noun = capitalized(name);
    while (nouns.has(noun)) noun += '_';
    nouns.add(noun);
    const unique = uniqueFields(fields);
    const records = store.collection(addTable(declaration, unique, isBounded, groups));
    tables.push(records);
    const outgoing: Reference[] = [];
    const incoming: Reference[] = [];
    const embeddables: Embeddable[] = [];
    return {
      ...declaration,
      singular: declaration.singular ?? name,
      records,
      recordBytesMax,
      ids: readIdKind(fields),
      noun,
      unique,
      outgoing,
      incoming,
      references,
      embeddables,
      hasOwners: access.list !== 'public',
      shapeTag: isBuiltIn ? '' : makeShapeTag(fields),
      checkOwner,
    };
  });
  const registry = new Map(all.map((each) => [each.name, each]));
  for (const from of all) {
    for (const [name, field] of listReferences(from.fields)) {
      const to = registry.get(field.to) ?? users;
      invariant(to?.name === field.to, `${field.to} is declared, to which ${name} refers`);
      const reference = { from, name, field, to };
      from.outgoing.push(reference);
      to.incoming.push(reference);
    }
    if (from.ownerRemoved)
      users?.incoming.push({ from, name: 'ownerId', field: ownerField, to: users });
  }
  for (const each of all) each.embeddables.push(...(references?.listEmbeddables(each) ?? []));
  return registry;
}

/** The owner, as a field, of records that are removed with the user. */
export const ownerField: ReferenceField = { kind: 'reference', to: 'users', onDelete: 'remove' };

function addTable(
  { name, fields, access, isSingle, ownerRemoved }: CollectionDeclaration,
  unique: Declared['unique'],
  countsOwners: boolean,
  others: Groups,
): TableDefinition<Entry> {
  const stored: Shape & { readonly ownerId: NumberField } = {
    ...fields,
    ownerId: { kind: 'integer', readOnly: true },
  };
  const parse = storedRecordParser(stored, ({ ownerId }) => Number.isSafeInteger(ownerId));
  const references = listReferences(fields);
  const groups = references.map(([field]) => field);
  if (countsOwners || ownerRemoved || decidingNames(access).includes('ownerId'))
    groups.push('ownerId');
  const ids = readIdKind(fields);
  return {
    name,
    hasKeys: ids !== undefined,
    parse: isSingle ? (record) => (record.id === singleNumber ? parse(record) : notSingle) : parse,
    unique: Object.fromEntries(unique),
    groups: {
      ...Object.fromEntries(groups.map((field) => [field, (entry: Entry) => idsIn(entry, field)])),
      ...(ids === 'any' && { [textsName]: hasTextId }),
      ...others,
    },
    references: Object.fromEntries(references.map(([field, { to }]) => [field, to])),
  };
}

/** The number of a single resource's record. */
export const singleNumber = 1;
const notSingle =
  'is one of several, and the declaration has a single resource: declare a collection';

function listReferences(fields: Shape): [name: string, field: ReferenceField][] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const reference = referenceIn(field);
    return reference === undefined ? [] : [[name, reference]];
  });
}

/**
 * Returns a stored record without some values of a field; `undefined` if the field is required and
 * not a list.
 */
export function without(
  record: Entry,
  fields: Shape,
  name: string,
  some: ReadonlySet<Value>,
): Entry | undefined {
  const values = fieldValue(record, name);
  if (Array.isArray(values))
    return { ...record, [name]: values.filter((each: Value) => !some.has(each)) };
  if (fields[name]?.optional !== true) return undefined;
  const changed = { ...record };
  Reflect.deleteProperty(changed, name);
  return changed;
}

/** The group of records with text ids, in a collection that also has numbers. */
const textsName = '.texts';
const hasTextId = (entry: Entry): number | undefined =>
  typeof readId(entry) === 'string' ? 1 : undefined;

/** True if a record without an id gets a text, because a number would be unlike the other ids. */
export const makesTexts = ({ ids, records }: Declared): boolean =>
  ids === 'text' || (ids === 'any' && records.countAtMost(textsName, 1) > 0);

/** Returns the kind of ids that callers may choose, if they may. */
export function readIdKind({ id }: Shape): IdKind | undefined {
  return id?.kind === 'id' ? id.of : undefined;
}

export function idsIn(record: object, name: string): RecordId | RecordId[] | undefined {
  const value = fieldValue(record, name);
  if (Array.isArray(value)) return value.map(recordId);
  return value === undefined || value === null ? undefined : recordId(value);
}

function uniqueFields(fields: Shape): Declared['unique'] {
  return Object.entries(fields).flatMap(([field, one]) =>
    'unique' in one && one.unique ? [[field, uniqueKey(field, one)]] : [],
  );
}

/** Returns the key of a field in its unique index. Absent values are not duplicates. */
function uniqueKey(name: string, field: Field): ReadUniqueKey {
  const { compared = (value: Scalar) => value } = findKind(field);
  return (record) => {
    const value = scalarValue(record, name);
    return value === undefined ? undefined : String(compared(value));
  };
}
