import type { Cell } from '../auth/access.ts';
import type { Field, IdKind, Shape } from '../schema/field.ts';

/**
 * The access rule of each operation. Changing and removing a record also requires `read`. Lists,
 * embedded arrays and the change feed show what `list` and `read` both allow.
 */
export interface CollectionAccess {
  readonly list: Cell;
  /** Without words that depend on a record. */
  readonly create: Cell;
  readonly read: Cell;
  /** Decided on the record before the change. */
  readonly replace: Cell;
  readonly patch: Cell;
  readonly remove: Cell;
}

/** How the page shows a collection. Nothing else reads these members. */
export interface CollectionHints {
  /** A record's name, such as `{quantity} × {productId}`. `{{` stands for a brace. */
  readonly display?: string | undefined;
  /** The heading under which the collection is listed. */
  readonly group?: string | undefined;
  /** True to leave the collection out of lists of collections. This is not an access rule. */
  readonly hidden?: boolean | undefined;
}

export interface CollectionDeclaration extends CollectionHints {
  /** The plural, as in the path `/<name>`: ASCII letters, digits, `_` and `-`. */
  readonly name: string;
  /** The name of one record, for operation ids and messages. Default: derived from the name. */
  readonly singular?: string;
  /** All fields of a record, in the order in which they are shown. */
  readonly fields: Shape;
  readonly access: CollectionAccess;
  /** True if the server maintains `createdAt` and `updatedAt`, the last two fields. */
  readonly timestamps: boolean;
  /** `remove`: records are removed with their owner. If absent, they are kept. */
  readonly ownerRemoved?: 'remove';
  /** True for a single resource: one value at the path `/<name>`, without an id. */
  readonly isSingle?: true;
  /** True for `items`: its fields never change, and the dashboard shows its records. */
  readonly isBuiltIn?: true;
}

/** A definition for `defineCollection`, or from a file of declarations. */
export interface CollectionDefinition extends Pick<CollectionDeclaration, 'name'>, CollectionHints {
  /**
   * True for one value for the whole server instead of a collection. By default, users read it, and
   * administrators replace and patch it.
   */
  readonly single?: boolean | undefined;
  /** The field of a single resource that is not an object with `fields`. */
  readonly value?: Field | undefined;
  /** Default: derived from the name. */
  readonly singular?: string | undefined;
  /** The kind of ids. By default the server generates them: integers from 1. */
  readonly id?: IdDefinition | undefined;
  /** The fields after `id`. Absent only with `value`. */
  readonly fields?: Shape | undefined;
  /** By default, users list, create and read; owners change and remove. */
  readonly access?: Partial<CollectionAccess> | undefined;
  readonly timestamps?: boolean | undefined;
  /** What happens to a record when its owner is removed. Default: `keep`. */
  readonly ownerRemoved?: 'keep' | 'remove' | undefined;
  /** True if records may have additional members, each like a `json` field. */
  readonly additional?: boolean | undefined;
}

/** The ids of a collection. Callers may always choose texts, and integers if they are `given`. */
export interface IdDefinition {
  readonly kind: IdKind;
  readonly given?: boolean | undefined;
}
