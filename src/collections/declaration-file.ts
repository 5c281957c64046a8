import type { JsonValue } from '../base/json.ts';
import { aFlag, aText, elements, maybe, members, type Report } from '../schema/declaration.ts';
import {
  checkCollection,
  checkTogether,
  declare,
  DeclarationError,
  type CollectionDeclaration,
  type CollectionDefinition,
} from './collection.ts';
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

/** The content of a file of declarations. */
interface DeclarationFile {
  readonly items?: boolean;
  readonly collections?: readonly CollectionDefinition[];
}

const checkFile = members({
  $schema: maybe(aText),
  items: maybe(aFlag),
  collections: maybe(elements('an array', 0, checkCollection)),
});

interface Served {
  readonly items?: boolean | undefined;
  readonly collections?: readonly CollectionDeclaration[] | undefined;
}

/** Returns the collections that an app serves. `items` is one of them, unless it is `false`. */
export function servedCollections({
  items: hasItems = true,
  collections = [],
}: Served): readonly CollectionDeclaration[] {
  return hasItems ? [itemsCollection, ...collections] : collections;
}

/** Reports what is wrong with collections that are served together, by its place in a file. */
export function checkServed(
  hasItems: boolean,
  collections: readonly CollectionDefinition[],
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
  const mistakes: string[] = [];
  const report = (pointer: string, problem: string): void => {
    mistakes.push(`${pointer === '' ? 'the document' : pointer} ${problem}`);
  };
  const isGood = checkFile(json, '', report);
  // The file has the members of a `DeclarationFile` where the check has found no mistake.
  const { items = true, collections = [] } = isGood ? (json as DeclarationFile) : {};
  checkServed(items, collections, taken, report);
  if (mistakes.length > 0) throw new DeclarationError('', mistakes);
  return { items, collections: collections.map(declare) };
}
