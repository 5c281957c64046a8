import { invariant } from '../base/errors.ts';
import { isDeclared, type CollectionDeclaration } from './declaration.ts';
import { items as itemsCollection } from './items.ts';

/** What is served together, as an app or a file says it. */
export interface Served<C = CollectionDeclaration> {
  readonly items?: boolean | undefined;
  readonly users?: boolean | undefined;
  readonly collections?: readonly C[] | undefined;
}

/**
 * Returns the collections that an app serves. `items` is one of them, unless it is `false`.
 * @throws InvariantError for a declaration that `defineCollection` did not make
 */
export function servedCollections({
  items: hasItems = true,
  collections = [],
}: Served): readonly CollectionDeclaration[] {
  for (const each of collections) {
    invariant(isDeclared(each), `"${each.name}" was not declared by defineCollection`);
  }
  return hasItems ? [itemsCollection, ...collections] : collections;
}
