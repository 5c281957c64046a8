import { crc32 } from 'node:zlib';
import { CairnError } from '../../base/errors.ts';
import { limits } from '../../base/limits.ts';
import { idOf } from '../../base/record-id.ts';
import { readerOf, type Purpose, type Reader } from '../../collections/reader.ts';
import { idsIn, type Embeddable, type ReferenceRules } from '../../collections/registry.ts';
import type { PieceWriter } from '../../lists/list.ts';
import { representationWriter, type Write } from '../../schema/record.ts';
import type { StoredRecord } from '../../store/store.ts';

export const embeddablesOf: ReferenceRules['embeddablesOf'] = ({ fields, outgoing, incoming }) => {
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
};

export const embed: ReferenceRules['embed'] = (names, embeddables, principal) => {
  const chosen = embeddables.filter(({ name }) => names.includes(name));
  const parts = chosen.map((each) => {
    const operation = each.kind === 'referring' ? 'list' : 'read';
    const reader = readerOf(each.of, principal, operation);
    if (reader.isRefused) throw refusal(each, operation);
    return { ...each, reader, writeOne: representationWriter(each.of.fields) };
  });
  const isPersonal = parts.some(({ reader }) => reader.test !== undefined);
  const shapes = chosen.map(({ name, of }) => [name, of.name, of.shapeTag]);
  return {
    selection: `~${crc32(JSON.stringify(shapes)).toString(36)}`,
    // A commit gives each collection that it changes a higher revision than all had before.
    revisionWith: (own) => Math.max(own, ...chosen.map(({ of }) => of.records.revision)),
    marksIn: isPersonal ? (record) => marksIn(record, parts) : undefined,
    writer: (write) => embeddingWriter(write, parts),
  };
};

function refusal({ name, of }: Embeddable, operation: Purpose): CairnError {
  const message = `Cannot embed ${name}: this caller may not ${operation} ${of.name}`;
  return new CairnError('insufficient_scope', message);
}

/** What is embedded, for a caller. */
interface Part extends Embeddable {
  readonly reader: Reader;
  readonly writeOne: Write;
}

function marksIn(record: StoredRecord, parts: readonly Part[]): string {
  const found = parts.map((part) => recordsIn(record, part));
  return JSON.stringify(found.map((all) => all?.map(({ id, revision }) => [id, revision])));
}

/** Records are embedded as they are when they are written. */
function embeddingWriter(write: Write, parts: readonly Part[]): PieceWriter {
  return function* writeWithEmbedded(record) {
    const own = write(record);
    yield own.slice(0, -1);
    let separator = own === '{}' ? '' : ',';
    for (const part of parts) {
      const { member, kind, writeOne } = part;
      const found = recordsIn(record, part);
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
  { field, kind, reader }: Part,
): readonly StoredRecord[] | undefined {
  if (kind === 'referring') return reader.members(field, idOf(record), limits.embeddedMax);
  const ids = idsIn(record, field);
  if (ids === undefined) return undefined;
  const found = [ids]
    .flat()
    .slice(0, limits.embeddedMax)
    .flatMap((id) => reader.withId(id) ?? []);
  return kind === 'one' && found.length === 0 ? undefined : found;
}
