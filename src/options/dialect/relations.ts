/**
 * Finds the members that refer to other records: `postId` of a comment refers to a record of
 * `posts`.
 */
import { parseId } from '../../api/call.ts';
import { localAdministrator } from '../../auth/access.ts';
import type { Scalar } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { recordId } from '../../base/record-id.ts';
import { referenceNames, singularize } from '../../collections/nouns.ts';
import type { Declared, Registry } from '../../collections/declared.ts';
import { makeReader, type Reader } from '../../collections/reader.ts';
import { splitShape } from '../../schema/field.ts';
import { readMore } from '../../schema/record.ts';
import type { StoredRecord } from '../../store/store.ts';

/**
 * The name of the index of references: each member whose name ends in `Id`, by its value as text.
 */
export const referenceGroup = '.refers';
export const memberKey = (name: string, id: Scalar): string => `${name} ${id}`;

/** Reads a collection without restrictions, because the dialect has no authentication. */
const readerFor = (collection: Declared): Reader =>
  makeReader(collection, localAdministrator, 'list');

export const listReferring = (from: Declared, name: string, id: Scalar): StoredRecord[] =>
  readerFor(from).members(referenceGroup, recordId(memberKey(name, id)), limits.pageRecordsMax);

export const findByText = (of: Declared, text: string): StoredRecord | undefined =>
  readerFor(of).withId(recordId(of.ids === undefined ? parseId(text) : text));

export type IsKnown = (name: string) => boolean;

interface Names {
  /** The most usual first. */
  readonly references: readonly string[];
  readonly isKnown: IsKnown;
}

const namesByCollection = new WeakMap<Declared, Names>();

function namesFor(collection: Declared): Names {
  let names = namesByCollection.get(collection);
  if (names === undefined) {
    const references = [...referenceNames(collection.name), `${collection.singular}Id`];
    names = { references, isKnown: countMembers(collection) };
    namesByCollection.set(collection, names);
  }
  return names;
}

export const knownIn = (collection: Declared): IsKnown => namesFor(collection).isKnown;

/**
 * Returns the member of `child` that refers to `parent`: the first usual name that records have, or
 * else json-server's.
 */
export function referenceTo(parent: Declared, child: Declared): string {
  const { references } = namesFor(parent);
  return references.find(knownIn(child)) ?? references[0] ?? '';
}

export function findTarget(member: string, registry: Registry): Declared | undefined {
  const ranked = [...registry.values()].flatMap((collection) => {
    const rank = namesFor(collection).references.indexOf(member);
    if (rank < 0 || collection.isSingle) return [];
    // `productId` belongs to `products`, not to `product`.
    const isSingular = singularize(collection.name) === collection.name;
    return [{ collection, rank: 2 * rank + Number(isSingular) }];
  });
  return ranked.sort((one, other) => one.rank - other.rank)[0]?.collection;
}

/** Counts undeclared members. */
function countMembers({ fields, records }: Declared): IsKnown {
  const counts = new Map<string, number>();
  const count = (record: object, by: 1 | -1): void => {
    for (const name of Object.keys(readMore(record))) {
      const sum = (counts.get(name) ?? 0) + by;
      if (sum > 0) counts.set(name, sum);
      else counts.delete(name);
    }
  };
  if (splitShape(fields).takesMore) {
    for (const block of records.view().blocks) for (const record of block) count(record, 1);
    records.follow((before, after) => {
      if (before !== undefined) count(before, -1);
      if (after !== undefined) count(after, 1);
    });
  }
  return (path) => {
    const [name = ''] = path.split('.');
    return Object.hasOwn(fields, name) || counts.has(name) || counts.has(path);
  };
}
