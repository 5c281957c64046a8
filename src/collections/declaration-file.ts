import { isJsonObject } from '../base/json.ts';
import { anything, asJson, flag, mistakesIn, word } from '../schema/declaration.ts';
import type { Shape } from '../schema/field.ts';
import { declare } from './declare.ts';
import type { CollectionDeclaration, CollectionDefinition } from './declaration.ts';
import { collectionMistakes, refuseMistakes, roleMistakes, servedMistakes } from './define.ts';
import type { Served } from './served.ts';

/**
 * Declarations of collections as data:
 *
 *     { "items": false, "roles": ["editor"],
 *       "collections": [{
 *         "name": "books", "singular": "book", "timestamps": true,
 *         "fields": {
 *           "title": { "kind": "text", "min": 1, "max": 200 },
 *           "pages": { "kind": "integer", "min": 1, "optional": true },
 *           "state": { "kind": "choice", "values": ["new", "read"], "default": "new" } },
 *         "access": { "list": "public", "read": "public", "create": "editor" } }] }
 */
export interface Declarations {
  /** True, the default, if the collection `items` exists. */
  readonly items: boolean;
  /** True, the default, if there are users, sessions and tokens. */
  readonly users: boolean;
  readonly roles: readonly string[];
  readonly collections: readonly CollectionDeclaration[];
}

const fileShape: Shape = {
  $schema: word,
  items: flag,
  users: flag,
  roles: anything,
  collections: anything,
};

/**
 * Parses a file of declarations. `taken`: names that collections cannot have, and those on a server
 * without users.
 * @throws DeclarationError with all mistakes
 */
export function parseDeclarations(
  json: unknown,
  taken: readonly string[],
  takenWithoutUsers = taken,
): Declarations {
  const value = asJson(json);
  const mistakes = mistakesIn(fileShape, value, '');
  const { roles: written = [], collections: all = [] } = isJsonObject(value) ? value : {};
  mistakes.push(...roleMistakes(written, '/roles'));
  if (!Array.isArray(all)) mistakes.push(['/collections', 'must be an array']);
  const known = Array.isArray(written) ? written.map(String) : [];
  // The checks found no mistake, so the file and each collection have these members.
  const file = Object(json) as Served<CollectionDefinition>;
  const sound = new Map<string, CollectionDefinition>();
  const names: string[] = [];
  for (const [index, each] of Array.isArray(all) ? all.entries() : []) {
    const place = `/collections/${index}`;
    const own = collectionMistakes(each, place, known);
    mistakes.push(...own);
    const definition = file.collections?.[index];
    if (own.length === 0 && definition !== undefined) sound.set(place, definition);
    else if (isJsonObject(each)) names.push(String(each['name']));
  }
  const others = file.users === false ? takenWithoutUsers : taken;
  if (isJsonObject(value)) mistakes.push(...servedMistakes(sound, names, file, others));
  refuseMistakes('', mistakes);
  const { items = true, users = true, roles = [] } = file;
  return { items, users, roles, collections: (file.collections ?? []).map(declare) };
}
