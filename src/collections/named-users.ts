import { fieldValue } from '../schema/record.ts';
import type { StoredRecord } from '../store/store.ts';

/** The ids of users that a block names. If there are many, several share a bit. */
const usersIn = new WeakMap<readonly StoredRecord[], Uint8Array>();
const usersBits = 4096;
const locate = (userId: number): readonly [byte: number, bit: number] => [
  (userId % usersBits) >> 3,
  1 << (userId % 8),
];

/**
 * True if a block may have records that name a user, or another one with the same bit. The result
 * is cached, because blocks never change. `namesOf` returns the names of the values.
 */
export function mayName(
  block: readonly StoredRecord[],
  userId: number,
  namesOf: () => readonly string[],
): boolean {
  let users = usersIn.get(block);
  if (users === undefined) {
    users = new Uint8Array(usersBits / 8);
    for (const name of namesOf())
      for (const record of block)
        for (const user of [fieldValue(record, name)].flat()) {
          const [byte, bit] = locate(Number(user));
          users[byte] = (users[byte] ?? 0) | bit;
        }
    usersIn.set(block, users);
  }
  const [byte, bit] = locate(userId);
  return ((users[byte] ?? 0) & bit) !== 0;
}
