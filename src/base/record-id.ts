/**
 * Each record has two names. Its number (`RecordNumber`) is the store's own: journal, blocks,
 * cursors and entity tags go by it. Its id (`RecordId`) is what callers see, and what a path and a
 * reference have. Both are the same, unless a collection has ids of another kind: then a record is
 * stored with its id as the member `.key`, where that is not its number. No field has a name with a
 * dot.
 *
 * The type of an id takes no number and is taken for none, so that neither is used for the other.
 */
type RecordNumber = number;
export type RecordId = (RecordNumber | string) & { readonly [isId]: true };
declare const isId: unique symbol;

export const keyName = '.key';

/** A record with its number, and with its id if that is not the number. */
export interface Identified {
  /** Positive, monotonic in its collection, never reused. */
  readonly id: number;
  readonly [keyName]?: string | number;
}

/** Returns the id of a record. */
export const readId = (record: Identified): RecordId => recordId(record[keyName] ?? record.id);

/** Returns the member with which a record of this number is stored if it has another id. */
export const storedKey = (id: RecordId, number: number): Pick<Identified, typeof keyName> =>
  id === number ? {} : { [keyName]: id };

/** Returns the id of a record as a text if it is not its number. */
export const givenId = ({ [keyName]: id }: Identified): string | undefined =>
  id === undefined ? undefined : String(id);

/** Returns what callers have sent, or a record refers to, as the id of a record. */
export function recordId(value: unknown): RecordId {
  // All ids are made here. What is neither a number nor a text is the id of no record.
  return (typeof value === 'number' || typeof value === 'string' ? value : '') as RecordId;
}

/** Returns an id as the number of a record; 0, which no record has, if it is a text. */
export const numberIn = (id: RecordId): RecordNumber => (typeof id === 'number' ? id : 0);

/** Returns an id as it is written in a path. */
export const inPath = (id: RecordId): string => encodeURIComponent(String(id));
