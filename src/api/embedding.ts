import { crc32 } from 'node:zlib';
import { hasAccess, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { shapeTagOf, type CollectionDeclaration } from '../collections/declaration.ts';
import { idsIn, referencesOf } from '../collections/registry.ts';
import type { ListSubject } from '../lists/query.ts';
import type { PieceWriter } from '../lists/list.ts';
import type { Shape } from '../schema/field.ts';
import { representationWriter, type Write } from '../schema/record.ts';
import type { Collection, StoredRecord } from '../store/store.ts';

/**
 * What `embed` adds to the records of a collection:
 *
 *   authorId          a reference: the record, as `author`; absent where the field is
 *   tagIds            a list of references: the records in its order, as `tag`, or, where `tag`
 *                     is the singular of their collection, as `tags`; absent where the field is
 *   comments          a collection that refers here: its records by id, as `comments`
 *   comments:postId   the same, where several of its fields refer here, or the name is taken
 *
 * A field whose short name is that of another field cannot be embedded. No array has more than
 * `embeddedMax` records.
 */
export interface Embeddable {
  /** As `embed` names it. */
  readonly name: string;
  /** The member that it adds. */
  readonly member: string;
  /** The collection of the embedded records. */
  readonly of: CollectionDeclaration;
  /** The field that refers: of the record, or, if it is `referring`, of the embedded ones. */
  readonly field: string;
  readonly kind: 'one' | 'list' | 'referring';
}

/** Returns what can be embedded in the records of a collection. `all` are served with it. */
export function embeddablesOf(
  { name, fields }: CollectionDeclaration,
  all: readonly CollectionDeclaration[],
): Embeddable[] {
  const taken = new Set(Object.keys(fields));
  const own = referencesOf(fields).flatMap(([field, { to }]): Embeddable[] => {
    const of = all.find((each) => each.name === to);
    const kind = fields[field]?.kind === 'list' ? 'list' : 'one';
    const short = field.replace(/Ids?$/, '');
    const member = kind === 'list' && short === of?.singular ? of.name : short;
    if (of === undefined || taken.has(member)) return [];
    taken.add(member);
    return [{ name: field, member, of, field, kind }];
  });
  const others = all.flatMap((of): Embeddable[] => {
    const referring = referencesOf(of.fields).filter(([, { to }]) => to === name);
    const isPlain = referring.length === 1 && !taken.has(of.name);
    return referring.map(([field]) => {
      const member = isPlain ? of.name : `${of.name}:${field}`;
      return { name: member, member, of, field, kind: 'referring' };
    });
  });
  return [...own, ...others];
}

/** The members of a `RoutedCollection` on which its lists depend. */
interface ListedCollection {
  readonly fields: Shape;
  readonly hasOwners?: boolean;
  readonly embeddables?: readonly Embeddable[];
}

/** Returns the subject of the parameters of lists and single records. */
export function subjectOf({ fields, hasOwners, embeddables }: ListedCollection): ListSubject {
  return { shape: fields, hasOwners, embeddable: embeddables?.map(({ name }) => name) };
}

/** Returns the records of a declared collection. */
export type RecordsOf = (collection: string) => Collection<StoredRecord>;

/** What a request embeds. */
export interface Embedded {
  /** The part of the entity tag that stands for what is embedded; empty for nothing. */
  readonly selection: string;
  /** Returns the revision of records of this revision together with what is embedded. */
  readonly revisionWith: (own: number) => number;
  /** Returns the writer of records that `write` writes alone. Absent: nothing is embedded. */
  readonly writer?: (write: Write) => PieceWriter;
}

/**
 * Returns what `names` embed. `recordsOf` returns the records of a collection.
 * @throws CairnError `insufficient_scope` where the caller may not read or list them
 */
export function embeddedBy(
  names: readonly string[],
  embeddables: readonly Embeddable[],
  principal: Principal,
  recordsOf: RecordsOf,
): Embedded {
  if (names.length === 0) return { selection: '', revisionWith: (own) => own };
  const chosen = embeddables.filter(({ name }) => names.includes(name));
  for (const each of chosen) checkAccess(each, principal);
  const shapes = chosen.map(({ name, of }) => [name, of.name, shapeTagOf(of.fields)]);
  return {
    selection: `~${crc32(JSON.stringify(shapes)).toString(36)}`,
    // A commit gives each collection that it changes a higher revision than all had before.
    revisionWith: (own) => Math.max(own, ...chosen.map(({ of }) => recordsOf(of.name).revision)),
    writer: (write) => embeddingWriter(write, chosen, recordsOf),
  };
}

/** @throws CairnError `insufficient_scope` */
function checkAccess({ name, of, kind }: Embeddable, principal: Principal): void {
  const operation = kind === 'referring' ? 'list' : 'read';
  if (hasAccess(of.access[operation], principal)) return;
  const message = `Cannot embed ${name}: this caller may not ${operation} ${of.name}`;
  throw new CairnError('insufficient_scope', message);
}

/** Records are embedded as they are when they are written. */
function embeddingWriter(
  write: Write,
  chosen: readonly Embeddable[],
  recordsOf: RecordsOf,
): PieceWriter {
  const parts = chosen.map((each) => {
    const { name, fields } = each.of;
    return { ...each, records: recordsOf(name), writeOne: representationWriter(fields) };
  });
  return function* writeWithEmbedded(record) {
    const own = write(record);
    yield own.slice(0, -1);
    let separator = own === '{}' ? '' : ',';
    for (const { member, field, kind, records, writeOne } of parts) {
      const found = recordsIn(record, field, kind, records);
      if (found === undefined) continue;
      yield `${separator}"${member}":${kind === 'one' ? '' : '['}`;
      for (const [index, one] of found.entries()) yield (index > 0 ? ',' : '') + writeOne(one);
      if (kind !== 'one') yield ']';
      separator = ',';
    }
    yield '}';
  };
}

/** Returns the records to embed in one; `undefined` where the member is absent. */
function recordsIn(
  record: StoredRecord,
  field: string,
  kind: Embeddable['kind'],
  records: Collection<StoredRecord>,
): readonly StoredRecord[] | undefined {
  if (kind === 'referring') return records.members(field, record.id, limits.embeddedMax);
  const ids = idsIn(record, field);
  if (ids === undefined) return undefined;
  const found = [ids]
    .flat()
    .slice(0, limits.embeddedMax)
    .flatMap((id) => records.get(id) ?? []);
  return kind === 'one' && found.length === 0 ? undefined : found;
}
