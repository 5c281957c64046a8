import { crc32 } from 'node:zlib';
import { CairnError } from '../base/errors.ts';
import { pointerTo, type Scalar } from '../base/json.ts';
import { readId, recordId, storedKey, type RecordId } from '../base/record-id.ts';
import { uuid7 } from '../base/uuid.ts';
import { declaredRecordParser } from '../schema/declared-record.ts';
import {
  referenceIn,
  type Field,
  type IdKind,
  type CompleteInput,
  type ReferenceField,
  type Shape,
} from '../schema/field.ts';
import { findKind } from '../schema/kinds.ts';
import { fieldValue, representationWriter, scalarValue } from '../schema/record.ts';
import { hasSetters, keepUnsettable } from '../schema/setters.ts';
import { validationFailed } from '../schema/validate.ts';
import type { CollectionDeclaration } from './declaration.ts';
import { addDescription, isOwned, withOwner } from './registry.ts';
import type { Declared, DescribedFields, Entry, EntryRules, ReadUniqueKey } from './declared.ts';
import { decidingNames } from './permissions.ts';

/**
 * What declared collections need, and `items` do not: indexes of references, unique values, ids
 * that callers give, times, and bounds of records. It is loaded with the checks of declarations.
 */

function describe(
  { fields, access, isSingle, ownerRemoved }: CollectionDeclaration,
  countsOwners: boolean,
): DescribedFields {
  const parse = declaredRecordParser(withOwner(fields), isOwned);
  const references = listReferences(fields);
  const groups = references.map(([field]) => field);
  if (countsOwners || ownerRemoved || decidingNames(access).includes('ownerId'))
    groups.push('ownerId');
  const ids = readIdKind(fields);
  const unique = uniqueFields(fields);
  return {
    ids,
    shapeTag: makeShapeTag(fields),
    rules: {
      unique,
      keepUnsettable: hasSetters(fields) ? keepUnsettable : undefined,
      check,
      toStored,
      addTimes,
    },
    table: {
      hasKeys: ids !== undefined,
      parse: isSingle
        ? (record) => (record.id === singleNumber ? parse(record) : notSingle)
        : parse,
      unique: Object.fromEntries(unique),
      groups: {
        ...Object.fromEntries(
          groups.map((field) => [field, (entry: Entry) => idsIn(entry, field)]),
        ),
        ...(ids === 'any' && { [textsName]: hasTextId }),
      },
      references: Object.fromEntries(references.map(([field, { to }]) => [field, to])),
    },
  };
}

const check: EntryRules['check'] = (tx, principal, collection, input, before) => {
  const { fields, ids, references, singular, rules, recordBytesMax } = collection;
  checkSize(fields, input, recordBytesMax);
  references?.check(tx, principal, collection, input, before);
  const records = tx.of(collection.records);
  const taken: string[] = [];
  const { id: given } = input;
  if (ids && given !== undefined && records.withId(recordId(given)) !== undefined) taken.push('id');
  for (const [field, keyOf] of rules?.unique ?? []) {
    const key = keyOf(input);
    const holder = key === undefined ? undefined : records.find(field, key);
    if (holder !== undefined && holder.id !== before?.id) taken.push(field);
  }
  if (taken.length === 0) return;
  const issues = taken.map((field) => ({
    pointer: pointerTo(field),
    code: 'not_unique',
    detail: `must be unique: another ${singular} has this value`,
  }));
  const message = `Cannot write the ${singular}: a value is not unique`;
  throw new CairnError('not_unique', message, { issues });
};

/**
 * Checks that a record is not larger than a body can be: patches could make it grow. Its size is
 * the length of its JSON text.
 * @throws CairnError `validation_failed`
 */
export function checkSize(shape: Shape, record: CompleteInput<Shape>, bytesMax: number): void {
  const json = representationWriter(shape)(record);
  if (json.length <= bytesMax / 3 || Buffer.byteLength(json) <= bytesMax) return;
  const detail = `must be at most ${bytesMax} bytes of JSON`;
  throw validationFailed([{ pointer: '', code: 'too_large', detail }]);
}

const toStored: EntryRules['toStored'] = (
  collection,
  input,
  number,
  ownerId,
  { clock, random },
) => {
  const now = clock.now();
  // An imported file may have the times.
  const timed = input['createdAt'] === undefined ? addTimes(collection, input, now) : input;
  if (collection.ids === undefined) return { ownerId, ...timed };
  const { id: given, ...fields } = timed;
  const id = given ?? (makesTexts(collection) ? uuid7(now, random) : number);
  return { ownerId, ...storedKey(recordId(id), number), ...fields };
};

/**
 * Adds the timestamps to a record written now, in milliseconds, if its collection has any.
 * `createdAt` is absent for a new record.
 */
export const addTimes: EntryRules['addTimes'] = ({ timestamps }, record, now, createdAt) => {
  if (!timestamps) return record;
  const updatedAt = new Date(now).toISOString();
  return { ...record, createdAt: createdAt ?? updatedAt, updatedAt };
};

/** The owner, as a field, of records that are removed with the user. */
export const ownerField: ReferenceField = { kind: 'reference', to: 'users', onDelete: 'remove' };

export const singleNumber = 1;
const notSingle =
  'is one of several, and the declaration has a single resource: declare a collection';

export function listReferences(fields: Shape): [name: string, field: ReferenceField][] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const reference = referenceIn(field);
    return reference === undefined ? [] : [[name, reference]];
  });
}

/** The group of records with text ids, in a collection that also has numbers. */
const textsName = '.texts';
const hasTextId = (entry: Entry): number | undefined =>
  typeof readId(entry) === 'string' ? 1 : undefined;

/** True if a record without an id gets a text, because a number would be unlike the other ids. */
const makesTexts = ({ ids, records }: Declared): boolean =>
  ids === 'text' || (ids === 'any' && records.countAtMost(textsName, 1) > 0);

function readIdKind({ id }: Shape): IdKind | undefined {
  return id?.kind === 'id' ? id.of : undefined;
}

export function idsIn(record: object, name: string): RecordId | RecordId[] | undefined {
  const value = fieldValue(record, name);
  if (Array.isArray(value)) return value.map(recordId);
  return value === undefined || value === null ? undefined : recordId(value);
}

function uniqueFields(fields: Shape): EntryRules['unique'] {
  return Object.entries(fields).flatMap(([field, one]) =>
    'unique' in one && one.unique ? [[field, uniqueKey(field, one)]] : [],
  );
}

/** Returns the key of a field in its unique index. Absent values are not duplicates. */
function uniqueKey(name: string, field: Field): ReadUniqueKey {
  const { compared = (value: Scalar) => value } = findKind(field);
  return (record) => {
    const value = scalarValue(record, name);
    return value === undefined ? undefined : String(compared(value));
  };
}

export function makeShapeTag(fields: Shape): string {
  const shape = Object.entries(fields).map(([name, { kind, default: fallback }]) => [
    name,
    kind,
    fallback,
  ]);
  return crc32(JSON.stringify(shape)).toString(36);
}

addDescription(describe);
