import { referenceIn, type Field, type IdKind } from '../schema/field.ts';
import type { CollectionDeclaration } from './declaration.ts';
import { items as itemsCollection } from './items.ts';

/** The collections that are served together, as an app or a file says it. */
export interface Served<C = CollectionDeclaration> {
  readonly items?: boolean | undefined;
  readonly users?: boolean | undefined;
  /** The roles of users in addition to `admin` and `member`. */
  readonly roles?: readonly string[] | undefined;
  readonly collections?: readonly C[] | undefined;
}

/**
 * Returns the collections that an app serves. `items` is one of them, unless it is `false`. Their
 * references know what the ids are to which they refer.
 */
export function servedCollections({
  items: hasItems = true,
  collections = [],
}: Served): readonly CollectionDeclaration[] {
  const given = new Map<string, IdKind>();
  for (const { name, fields } of collections) {
    if (fields['id']?.kind === 'id') given.set(name, fields['id'].of);
  }
  const all = given.size === 0 ? collections : collections.map((each) => referring(each, given));
  return hasItems ? [itemsCollection, ...all] : all;
}

/** Returns a collection with references that know the ids that are `given`. */
function referring(
  collection: CollectionDeclaration,
  given: ReadonlyMap<string, IdKind>,
): CollectionDeclaration {
  const fields: { [name: string]: Field } = { ...collection.fields };
  for (const [name, field] of Object.entries(fields)) {
    const ids = given.get(referenceIn(field)?.to ?? '');
    if (ids === undefined) continue;
    if (field.kind === 'reference') fields[name] = { ...field, ids };
    // A list of references.
    else if (field.kind === 'list' && field.of.kind === 'reference')
      fields[name] = { ...field, of: { ...field.of, ids } };
  }
  return { ...collection, fields };
}
