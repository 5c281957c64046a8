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
 * The access of each operation. A record is changed and removed by callers who may read it; lists,
 * embedded arrays and the change feed show what `list` and `read` allow.
 */
export interface CollectionAccess {
  readonly list: Cell;
  /** Without words that depend on a record. */
  readonly create: Cell;
  readonly read: Cell;
  /** Decided on the record as it is before the change. */
  readonly replace: Cell;
  readonly patch: Cell;
  readonly remove: Cell;
}

/** The words of access that every cell takes. `self` is left out: it is only for users. */
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
  /** The name of a record, such as `{quantity} × {productId}`. A brace is written `{{`. */
  readonly display?: string | undefined;
  /** The heading under which the collection is listed. */
  readonly group?: string | undefined;
  /** True to leave the collection out of lists of collections. This is not a rule of access. */
  readonly hidden?: boolean | undefined;
}

/**
 * A collection as data. Routes, validation, storage and the OpenAPI document are derived
 * from it.
 */
export interface CollectionDeclaration extends CollectionHints {
  /** The plural, as in the path `/<name>`: letters of either case, digits, `_` and `-`. */
  readonly name: string;
  /** The name of one record, for operation ids and messages. Absent: it follows from the name. */
  readonly singular?: string;
  /** All fields of a record, in the order in which they are shown. */
  readonly fields: Shape;
  readonly access: CollectionAccess;
  /** True if the server maintains `createdAt` and `updatedAt`, the last two fields. */
  readonly timestamps: boolean;
  /** `remove`: records are removed with the user who owns them. Absent: they are kept. */
  readonly ownerRemoved?: 'remove';
  /** True for a resource of its own: one value at the path `/<name>`, which has no id. */
  readonly isSingle?: true;
  /** True for `items`: its fields never change, and the dashboard shows its records. */
  readonly isBuiltIn?: true;
}

/** A definition as `defineCollection` takes it, and as a file of declarations has it. */
export interface CollectionDefinition extends Pick<CollectionDeclaration, 'name'>, CollectionHints {
  /**
   * True if it is one value for the whole server, instead of a collection. Users can read it by default,
   * and administrators replace and patch it.
   */
  readonly single?: boolean | undefined;
  /** The field of a single resource that is not an object with `fields`. */
  readonly value?: Field | undefined;
  /** Absent: it follows from the name. */
  readonly singular?: string | undefined;
  /** The kind of ids. By default the server makes them: integers from 1 on. */
  readonly id?: IdDefinition | undefined;
  /** The fields after `id`. Absent only with `value`. */
  readonly fields?: Shape | undefined;
  /** By default users can list, create and read, and owners can change and remove. */
  readonly access?: Partial<CollectionAccess> | undefined;
  readonly timestamps?: boolean | undefined;
  /** The effect of removing the user who owns a record: `keep` by default. */
  readonly ownerRemoved?: 'keep' | 'remove' | undefined;
  /** True if records may have further members, each of which is like a `json` field. */
  readonly additional?: boolean | undefined;
}

/** The ids of a collection. Callers may always give texts, and integers if they are `given`. */
export interface IdDefinition {
  readonly kind: IdKind;
  readonly given?: boolean | undefined;
}

/** Returns the declaration of a definition that was checked, which has the definition, too. */
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
  // Not shown, because it says the same once more.
  return Object.defineProperty(declaration, 'definition', { value: definition });
}

/** Returns the access of a single resource. Who may read it may follow its changes. */
function accessOfSingle({
  read = 'user',
  replace = 'admin',
  patch = 'admin',
}: Partial<CollectionAccess> = {}): CollectionAccess {
  return { list: read, create: 'admin', read, replace, patch, remove: 'admin' };
}

/** Returns the access with cells of one word as that word, and who is shown lists. */
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

/**
 * A record written before its collection had timestamps shows the start of the Unix
 * epoch.
 */
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
 * Returns the timestamps of a record that is written now, in milliseconds; none where its
 * collection has none. `createdAt` is absent for a new record.
 */
export function makeTimes(
  { timestamps }: CollectionDeclaration,
  now: number,
  createdAt?: Value,
): { readonly [field: string]: Value } {
  if (!timestamps) return {};
  const updatedAt = new Date(now).toISOString();
  return { createdAt: createdAt ?? updatedAt, updatedAt };
}

/** `items` → `Items`, `spare-parts` → `SpareParts`. */
export function capitalized(name: string): string {
  return name.replaceAll(/(?:^|-)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Identifies the shape of records. */
export function makeShapeTag(fields: Shape): string {
  const shape = Object.entries(fields).map(([name, { kind, default: fallback }]) => [
    name,
    kind,
    fallback,
  ]);
  return crc32(JSON.stringify(shape)).toString(36);
}
