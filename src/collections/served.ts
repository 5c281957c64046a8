import { referenceIn, type Field, type IdKind } from '../schema/field.ts';
import type { CollectionDeclaration } from './declaration.ts';
import { items as itemsCollection } from './items.ts';

export interface Served<C = CollectionDeclaration> {
  readonly items?: boolean | undefined;
  readonly users?: boolean | undefined;
  readonly roles?: readonly string[] | undefined;
  readonly collections?: readonly C[] | undefined;
}

/**
 * Returns the collections that an app serves, including `items` unless it is `false`. Their
 * references get the id kinds of their targets.
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

/** Gives references the kinds of the ids that are `given`. */
function referring(
  collection: CollectionDeclaration,
  given: ReadonlyMap<string, IdKind>,
): CollectionDeclaration {
  const fields: { [name: string]: Field } = { ...collection.fields };
  for (const [name, field] of Object.entries(fields)) {
    const ids = given.get(referenceIn(field)?.to ?? '');
    if (ids === undefined) continue;
    if (field.kind === 'reference') fields[name] = { ...field, ids };
    else if (field.kind === 'list' && field.of.kind === 'reference')
      fields[name] = { ...field, of: { ...field.of, ids } };
  }
  return { ...collection, fields };
}
