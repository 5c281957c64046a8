import { aFlag, aText, elements, maybe, members } from '../schema/declaration.ts';
import { declare, type CollectionDeclaration, type CollectionDefinition } from './declaration.ts';
import {
  checkCollection,
  checkRoles,
  checkServed,
  refuseMistakes,
  withSingulars,
} from './define.ts';
import type { Served } from './served.ts';

/**
 * Declarations of collections as data:
 *
 *   { "items": false, "roles": ["editor"],
 *     "collections": [{
 *       "name": "books", "singular": "book", "timestamps": true,
 *       "fields": {
 *         "title": { "kind": "text", "min": 1, "max": 200 },
 *         "pages": { "kind": "integer", "min": 1, "optional": true },
 *         "state": { "kind": "choice", "values": ["new", "read"], "default": "new" } },
 *       "access": { "list": "public", "read": "public", "create": "editor" } }] }
 */
export interface Declarations {
  /** Whether the collection `items` exists, which is the default. */
  readonly items: boolean;
  /** Whether there are users, sessions and tokens, which is the default. */
  readonly users: boolean;
  /** The roles of users beside `admin` and `member`. */
  readonly roles: readonly string[];
  readonly collections: readonly CollectionDeclaration[];
}

const checkFile = members({
  $schema: maybe(aText),
  items: maybe(aFlag),
  users: maybe(aFlag),
  roles: maybe(checkRoles),
  collections: maybe(elements('an array', 0, checkCollection)),
});

/**
 * Parses a file of declarations. `taken`: names that collections cannot have, and those of a
 * server without users.
 * @throws DeclarationError with all mistakes
 */
export function parseDeclarations(
  json: unknown,
  taken: readonly string[],
  takenWithoutUsers = taken,
): Declarations {
  // The file has these members where the check finds no mistake.
  const file = json as Served<CollectionDefinition>;
  refuseMistakes('', (report) => {
    if (checkFile(json, '', report))
      checkServed(file, file.users === false ? takenWithoutUsers : taken, report);
  });
  const { items = true, users = true, roles = [] } = file;
  return { items, users, roles, collections: withSingulars(file).map(declare) };
}
