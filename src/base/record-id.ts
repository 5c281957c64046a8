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

export interface Identified {
  /** The number: positive, increasing in its collection, never reused. */
  readonly id: number;
  readonly [keyName]?: string | number;
}

export const readId = (record: Identified): RecordId => recordId(record[keyName] ?? record.id);

/** Empty if the id equals the record's number. */
export const storedKey = (id: RecordId, number: number): Pick<Identified, typeof keyName> =>
  id === number ? {} : { [keyName]: id };

/** `undefined` if the id equals the record's number. */
export const givenId = ({ [keyName]: id }: Identified): string | undefined =>
  id === undefined ? undefined : String(id);

/** Makes an id from a value of a caller, or a reference. */
export function recordId(value: unknown): RecordId {
  // All ids are made here. A value that is neither a number nor a string matches no record.
  return (typeof value === 'number' || typeof value === 'string' ? value : '') as RecordId;
}

/** Returns the number of a numeric id, or 0, which no record has. */
export const numberIn = (id: RecordId): RecordNumber => (typeof id === 'number' ? id : 0);

export const inPath = (id: RecordId): string => encodeURIComponent(String(id));
