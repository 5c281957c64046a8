/**
 * Each record has a number and an id. The number (`RecordNumber`) is internal: journal, blocks,
 * cursors and entity tags use it. Callers see the id (`RecordId`), which stands in paths and
 * references. Both are equal, unless the collection has another kind of id: then the id is stored
 * in the member `.key`, if it differs from the number. No field has a dot in its name.
 *
 * A branded type keeps numbers and ids from being confused.
 */
type RecordNumber = number;
export type RecordId = (RecordNumber | string) & { readonly [isId]: true };
declare const isId: unique symbol;

export const keyName = '.key';

/** A record with its number, and with its id if that differs. */
export interface Identified {
  /** The number: positive, increasing in its collection, never reused. */
  readonly id: number;
  readonly [keyName]?: string | number;
}

export const readId = (record: Identified): RecordId => recordId(record[keyName] ?? record.id);

/** Returns the stored member for an id that differs from the record's number. */
export const storedKey = (id: RecordId, number: number): Pick<Identified, typeof keyName> =>
  id === number ? {} : { [keyName]: id };

/** Returns the id of a record as a string if it differs from its number. */
export const givenId = ({ [keyName]: id }: Identified): string | undefined =>
  id === undefined ? undefined : String(id);

/** Turns a value from a caller, or a reference, into an id. */
export function recordId(value: unknown): RecordId {
  // All ids are made here. A value that is neither a number nor a string matches no record.
  return (typeof value === 'number' || typeof value === 'string' ? value : '') as RecordId;
}

/** Returns the number of a numeric id, or 0, which no record has. */
export const numberIn = (id: RecordId): RecordNumber => (typeof id === 'number' ? id : 0);

/** Returns an id as it is written in a path. */
export const inPath = (id: RecordId): string => encodeURIComponent(String(id));
