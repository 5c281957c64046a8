import { invariant } from '../base/errors.ts';
import type { JsonValue } from '../base/json.ts';
import { aFlag, aText, elements, maybe, members, type Report } from '../schema/declaration.ts';
import {
  checkCollection,
  checkTogether,
  declare,
  isDeclared,
  refuseMistakes,
  type CollectionDeclaration,
  type CollectionDefinition,
} from './declaration.ts';
import { items as itemsCollection } from './items.ts';

/**
 * Declarations of collections as data:
 *
 *   { "items": false,
 *     "collections": [{
 *       "name": "books", "singular": "book", "timestamps": true,
 *       "fields": {
 *         "title": { "kind": "text", "min": 1, "max": 200 },
 *         "pages": { "kind": "integer", "min": 1, "optional": true },
 *         "state": { "kind": "choice", "values": ["new", "read"], "default": "new" } },
 *       "access": { "list": "public", "read": "public" } }] }
 */
export interface Declarations {
  /** Whether the collection `items` exists, which is the default. */
  readonly items: boolean;
  readonly collections: readonly CollectionDeclaration[];
}

const checkFile = members({
  $schema: maybe(aText),
  items: maybe(aFlag),
  collections: maybe(elements('an array', 0, checkCollection)),
});

/** What is served together, as an app or a file says it. */
export interface Served<C> {
  readonly items?: boolean | undefined;
  readonly collections?: readonly C[] | undefined;
}

/**
 * Returns the collections that an app serves. `items` is one of them, unless it is `false`.
 * @throws InvariantError for a declaration that `defineCollection` did not make
 */
export function servedCollections({
  items: hasItems = true,
  collections = [],
}: Served<CollectionDeclaration>): readonly CollectionDeclaration[] {
  for (const each of collections) {
    invariant(isDeclared(each), `"${each.name}" was not declared by defineCollection`);
  }
  return hasItems ? [itemsCollection, ...collections] : collections;
}

/** Reports what is wrong with collections that are served together, by its place in a file. */
export function checkServed(
  { items: hasItems = true, collections = [] }: Served<CollectionDefinition>,
  taken: readonly string[],
  report: Report,
): void {
  const all = new Map<string, CollectionDefinition>(hasItems ? [['/items', itemsCollection]] : []);
  for (const [index, each] of collections.entries()) all.set(`/collections/${index}`, each);
  checkTogether(all, taken, report);
}

/**
 * Parses a file of declarations. `taken`: names that collections cannot have.
 * @throws DeclarationError with all mistakes
 */
export function parseDeclarations(json: JsonValue, taken: readonly string[]): Declarations {
  // The file has these members where the check finds no mistake.
  const file = json as Served<CollectionDefinition>;
  refuseMistakes('', (report) => {
    if (checkFile(json, '', report)) checkServed(file, taken, report);
  });
  const { items = true, collections = [] } = file;
  return { items, collections: collections.map(declare) };
}
