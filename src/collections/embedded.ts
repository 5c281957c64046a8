import type { Write } from '../schema/record.ts';
import type { StoredRecord } from '../store/store.ts';

export interface EmbeddedMember {
  readonly member: string;
  readonly isOne: boolean;
  /** Finds the records to embed; `undefined` leaves the member out. */
  find(record: StoredRecord): readonly StoredRecord[] | undefined;
  readonly writeOne: Write;
}

/** Returns a writer that extends `write` with what is embedded at that moment. */
export function embeddingWriter(write: Write, members: readonly EmbeddedMember[]) {
  return function* writeWithEmbedded(record: StoredRecord): Generator<string, void> {
    const own = write(record);
    yield own.slice(0, -1);
    let separator = own === '{}' ? '' : ',';
    for (const { member, isOne, find, writeOne } of members) {
      const found = find(record);
      if (found === undefined) continue;
      yield `${separator}${JSON.stringify(member)}:${isOne ? '' : '['}`;
      for (const [index, one] of found.entries()) yield (index > 0 ? ',' : '') + writeOne(one);
      if (!isOne) yield ']';
      separator = ',';
    }
    yield '}';
  };
}
