import { isByRecord, isOpen, listWords, type Cell } from '../auth/access.ts';
import { givenIdField, idField, joinShape, type Field } from '../schema/field.ts';
import type {
  CollectionAccess,
  CollectionDeclaration,
  CollectionDefinition,
} from './declaration.ts';
import { standardAccess } from './items.ts';

/** The words that every rule accepts. `self` is only for users. */
export const anyAccess: readonly string[] = [
  'public',
  'optional',
  'user',
  'admin',
  'member',
  'session',
];

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
