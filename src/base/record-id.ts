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

/** Returns the id of a record. */
export function idOf(record: { readonly id: number; readonly [keyName]?: unknown }): RecordId {
  const key = record[keyName];
  return recordId(typeof key === 'string' || typeof key === 'number' ? key : record.id);
}

/** Returns what callers have sent, or a record refers to, as the id of a record. */
export function recordId(value: unknown): RecordId {
  // All ids are made here. What is neither a number nor a text is the id of no record.
  return (typeof value === 'number' || typeof value === 'string' ? value : '') as RecordId;
}

/** Returns an id as the number of a record; 0, which no record has, if it is a text. */
export const numberIn = (id: RecordId): RecordNumber => (typeof id === 'number' ? id : 0);

/** Returns an id as it is written in a path. */
export const inPath = (id: RecordId): string => encodeURIComponent(String(id));
