import { crc32 } from 'node:zlib';
import { isByRecord, isOpen, listWords, type Cell } from '../auth/access.ts';
import {
  givenIdField,
  idField,
  joinShape,
  type Field,
  type IdKind,
  type Shape,
  type Value,
} from '../schema/field.ts';

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

/** The words that every rule accepts. `self` is only for users. */
export const anyAccess: readonly string[] = [
  'public',
  'optional',
  'user',
  'admin',
  'member',
  'session',
];

/** How the page shows a collection. Nothing else reads these members. */
export interface CollectionHints {
  /** A record's name, such as `{quantity} × {productId}`. `{{` stands for a brace. */
  readonly display?: string | undefined;
  /** The heading under which the collection is listed. */
  readonly group?: string | undefined;
  /** True to leave the collection out of lists of collections. This is not an access rule. */
  readonly hidden?: boolean | undefined;
}

/**
 * A collection as data, from which routes, validation, storage and the OpenAPI document are
 * derived.
 */
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

/** Returns the declaration of a checked definition, which it also contains. */
export function declare(definition: CollectionDefinition): CollectionDeclaration {
  const { name, singular, id, access, timestamps = false, additional = false } = definition;
  const { display, group, hidden } = definition;
  const isSingle = definition.single === true;
  const isGiven = id !== undefined && (id.kind !== 'integer' || id.given === true);
  const fields = {
    ...(!isSingle && { id: isGiven ? givenIdField(id.kind) : idField }),
    ...definition.fields,
    ...(timestamps && timestampFields),
  };
  const declaration = {
    name,
    ...(singular !== undefined && { singular }),
    fields: joinShape(fields, additional, definition.value),
    access: simplifyAccess(isSingle ? accessOfSingle(access) : { ...standardAccess, ...access }),
    timestamps,
    ...(definition.ownerRemoved === 'remove' && { ownerRemoved: definition.ownerRemoved }),
    ...(isSingle && { isSingle }),
    ...(display !== undefined && { display }),
    ...(group !== undefined && { group }),
    ...(hidden && { hidden }),
  };
  // Not enumerable, because it repeats the rest.
  return Object.defineProperty(declaration, 'definition', { value: definition });
}

/** Returns the access rules of a single resource. Reading includes following its changes. */
function accessOfSingle({
  read = 'user',
  replace = 'admin',
  patch = 'admin',
}: Partial<CollectionAccess> = {}): CollectionAccess {
  return { list: read, create: 'admin', read, replace, patch, remove: 'admin' };
}

/** Reduces lists of one word to that word, and limits `list`. */
const simplifyAccess = (access: CollectionAccess): CollectionAccess => ({
  list: simplifyCell(listCell(access)),
  create: simplifyCell(access.create),
  read: simplifyCell(access.read),
  replace: simplifyCell(access.replace),
  patch: simplifyCell(access.patch),
  remove: simplifyCell(access.remove),
});

/** Returns the effective `list` access, which is never wider than a roles-only `read`. */
function listCell({ list, read }: CollectionAccess): Cell {
  const roles = listWords(read);
  if (roles.some((word) => isOpen(word) || isByRecord(word))) return list;
  if (listWords(list).some(isOpen)) return read;
  const words = listWords(list).filter((word) => isByRecord(word) || roles.includes(word));
  return words.length > 0 ? words : 'admin';
}

function simplifyCell(cell: Cell): Cell {
  const words = listWords(cell);
  const [word] = words;
  return word !== undefined && words.length === 1 ? word : words;
}

export const standardAccess: CollectionAccess = {
  list: 'user',
  create: 'user',
  read: 'user',
  replace: 'owner',
  patch: 'owner',
  remove: 'owner',
};

/** A record from before its collection had timestamps shows the start of the Unix epoch. */
const serverTime = (description: string): Field => ({
  kind: 'timestamp',
  readOnly: true,
  default: new Date(0).toISOString(),
  description,
});
export const timestampFields = {
  createdAt: serverTime('When the record was created; set by the server.'),
  updatedAt: serverTime('When the record was last changed; set by the server.'),
};

/**
 * Adds the timestamps to a record written now, in milliseconds, if its collection has any.
 * `createdAt` is absent for a new record.
 */
export function addTimes<R extends { readonly [field: string]: Value }>(
  { timestamps }: CollectionDeclaration,
  record: R,
  now: number,
  createdAt?: Value,
): R {
  if (!timestamps) return record;
  const updatedAt = new Date(now).toISOString();
  return { ...record, createdAt: createdAt ?? updatedAt, updatedAt };
}

/** `items` → `Items`, `spare-parts` → `SpareParts`. */
export function capitalized(name: string): string {
  return name.replaceAll(/(?:^|-)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

export function makeShapeTag(fields: Shape): string {
  const shape = Object.entries(fields).map(([name, { kind, default: fallback }]) => [
    name,
    kind,
    fallback,
  ]);
  return crc32(JSON.stringify(shape)).toString(36);
}
