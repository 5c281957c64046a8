import type { Write } from '../schema/record.ts';
import type { StoredRecord } from '../store/store.ts';

export interface EmbeddedMember {
  readonly member: string;
  readonly isOne: boolean;
  /** Finds the records to embed; `undefined` leaves the member out. */
  find(record: StoredRecord): readonly StoredRecord[] | undefined;
  readonly writeOne: Write;
}

/**
 * Returns a writer that extends `write` with what is embedded at that moment. It yields after a few
 * records, since all of them may be very long.
 */
export function embeddingWriter(write: Write, members: readonly EmbeddedMember[]) {
  return function* writeWithEmbedded(record: StoredRecord): Generator<string, void> {
    const own = write(record);
    let piece = own.slice(0, -1);
    let separator = own === '{}' ? '' : ',';
    for (const { member, isOne, find, writeOne } of members) {
      const found = find(record);
      if (found === undefined) continue;
      piece += `${separator}${JSON.stringify(member)}:${isOne ? '' : '['}`;
      separator = '';
      for (const one of found) {
        piece += separator + writeOne(one);
        separator = ',';
        if (piece.length < pieceLength) continue;
        yield piece;
        piece = '';
      }
      if (!isOne) piece += ']';
      separator = ',';
    }
    yield `${piece}}`;
  };
}

const pieceLength = 16_384;
