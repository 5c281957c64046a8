import { crc32 } from 'node:zlib';
import { CairnError } from '../../base/errors.ts';
import { limits } from '../../base/limits.ts';
import { readId } from '../../base/record-id.ts';
import { embeddingWriter } from '../../collections/embedded.ts';
import { makeReader, type Purpose, type Reader } from '../../collections/reader.ts';
import { idsIn } from '../../collections/declared-rules.ts';
import type { Declared, Embeddable, ReferenceRules } from '../../collections/declared.ts';
import { representationWriter } from '../../schema/record.ts';
import type { StoredRecord } from '../../store/store.ts';

/** Returns what can be embedded in the records of a collection. */
export function listEmbeddables({ fields, outgoing, incoming }: Declared): Embeddable[] {
  const taken = new Set(Object.keys(fields));
  const own = outgoing.flatMap(({ name, field: { show }, to: of }): Embeddable[] => {
    if (of.isUsers && show === undefined) return [];
    const kind = fields[name]?.kind === 'list' ? 'list' : 'one';
    const short = name.replace(/Ids?$/, '');
    const member = kind === 'list' && short === of.singular ? of.name : short;
    if (taken.has(member)) return [];
    taken.add(member);
    return [{ name, member, of, field: name, kind }];
  });
  const others = incoming.map(({ from: of, name: field }): Embeddable => {
    const isOnly = incoming.filter(({ from }) => from === of).length === 1;
    const member = isOnly && !taken.has(of.name) ? of.name : `${of.name}:${field}`;
    return { name: member, member, of, field, kind: 'referring' };
  });
  return [...own, ...others];
}

export const embed: ReferenceRules['embed'] = (names, embeddables, principal) => {
  const chosen = embeddables.filter(({ name }) => names.includes(name));
  const parts = chosen.map((each) => {
    const operation = each.kind === 'referring' ? 'list' : 'read';
    const reader = makeReader(each.of, principal, operation);
    if (reader.isRefused) throw refusal(each, operation);
    const isOne = each.kind === 'one';
    const find = (record: StoredRecord) => findEmbedded(record, each, reader);
    return { ...each, isOne, reader, find, writeOne: representationWriter(each.of.fields) };
  });
  const isPersonal = parts.some(({ reader }) => reader.test !== undefined);
  const shapes = chosen.map(({ name, of }) => [name, of.name, of.shapeTag]);
  return {
    selection: `~${crc32(JSON.stringify(shapes)).toString(36)}`,
    // A commit gives each collection that it changes a revision higher than all previous ones.
    revisionWith: (own) => Math.max(own, ...chosen.map(({ of }) => of.records.revision)),
    marksIn: isPersonal
      ? (record) =>
          JSON.stringify(
            parts.map(({ find }) => find(record)?.map(({ id, revision }) => [id, revision])),
          )
      : undefined,
    writer: (write) => embeddingWriter(write, parts),
  };
};

function refusal({ name, of }: Embeddable, operation: Purpose): CairnError {
  const message = `Cannot embed ${name}: this caller may not ${operation} ${of.name}`;
  return new CairnError('insufficient_scope', message);
}

/** Finds the records to embed; `undefined` leaves the member out. */
function findEmbedded(
  record: StoredRecord,
  { field, kind }: Embeddable,
  reader: Reader,
): readonly StoredRecord[] | undefined {
  if (kind === 'referring') return reader.members(field, readId(record), limits.embeddedMax);
  const ids = idsIn(record, field);
  if (ids === undefined) return undefined;
  const found = [ids]
    .flat()
    .slice(0, limits.embeddedMax)
    .flatMap((id) => reader.withId(id) ?? []);
  return kind === 'one' && found.length === 0 ? undefined : found;
}
