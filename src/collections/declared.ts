import type { Principal } from '../auth/access.ts';
import type { Clock, Random } from '../base/system.ts';
import type { IdKind, CompleteInput, ReferenceField, Shape, Value } from '../schema/field.ts';
import type { Write } from '../schema/record.ts';
import type { KeepUnsettable } from '../schema/setters.ts';
import type {
  Collection,
  StoredRecord,
  TableDefinition,
  Transaction,
  Unstored,
} from '../store/store.ts';
import type { CollectionDeclaration } from './declaration.ts';
import type { Readable } from './reader.ts';

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
  /** The references of its fields, and those to its records. */
  readonly outgoing: Reference[];
  readonly incoming: Reference[];
  /** The rules of references. Absent if no field of the app refers. */
  readonly references: ReferenceRules | undefined;
  readonly embeddables: Embeddable[];
  /** True if callers can list their own records, because lists need credentials. */
  readonly hasOwners: boolean;
  /** Part of each entity tag, because the declaration decides how a record looks. */
  readonly shapeTag: string;
  /** The rules of its records. `items` has none beyond those of fields. */
  readonly rules?: EntryRules;
  /** @throws CairnError `invalid_token`, `too_many_records` */
  readonly checkOwner: (tx: Transaction, principal: Principal) => void;
}

/** Returns the key of a record in a unique index; `undefined` if it has none. */
export type ReadUniqueKey = (record: object) => string | undefined;

export interface CollectionTools {
  readonly clock: Clock;
  readonly random: Random;
}

export interface EntryRules {
  readonly unique: readonly (readonly [field: string, keyOf: ReadUniqueKey])[];
  /** If absent, callers may set all fields. */
  readonly keepUnsettable: KeepUnsettable | undefined;
  /** @throws CairnError `validation_failed`, `not_unique` */
  check(
    tx: Transaction,
    principal: Principal,
    collection: Declared,
    input: CompleteInput<Shape>,
    before?: Entry,
  ): void;
  /** Returns a new record as stored, with its times and any id that is not a number. */
  toStored(
    collection: Declared,
    input: CompleteInput<Shape>,
    number: number,
    ownerId: number,
    tools: CollectionTools,
  ): Unstored<Entry>;
  /** Adds the times to a record written now, if its collection has any. */
  addTimes<R extends { readonly [field: string]: Value }>(
    collection: CollectionDeclaration,
    record: R,
    now: number,
    createdAt?: Value,
  ): R;
}

/** The properties derived from a declaration's fields. */
export interface DescribedFields extends Pick<Declared, 'ids' | 'shapeTag' | 'rules'> {
  readonly table: Omit<TableDefinition<Entry>, 'name'>;
}

/** The target of references: a declared collection, or the users. */
export interface ReferenceTarget
  extends
    Pick<Declared, 'name' | 'singular' | 'fields' | 'display' | 'shapeTag' | 'incoming'>,
    Readable {
  readonly isUsers?: true;
}

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
  readonly name: string;
  readonly member: string;
  readonly of: ReferenceTarget;
  /** The referring field: of the record, or, if `kind` is `referring`, of the embedded ones. */
  readonly field: string;
  readonly kind: 'one' | 'list' | 'referring';
}

export interface Embedded {
  /** The part of the entity tag for the embedded collections; empty without any. */
  readonly selection: string;
  readonly revisionWith: (own: number) => number;
  /**
   * Names a record's embedded records with their revisions. Present if they depend on the caller,
   * because revisions of whole collections would reveal changes to hidden records.
   */
  readonly marksIn?: ((record: StoredRecord) => string) | undefined;
  /** Extends a writer with embedded records. If absent, nothing is embedded. */
  readonly writer?: (write: Write) => (record: StoredRecord) => Iterable<string>;
}

export interface ReferenceRules {
  /** Adds the references, and what can be embedded, to collections and users. */
  link(registry: Registry, users: ReferenceTarget | undefined): void;
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

export type Registry = ReadonlyMap<string, Declared>;
