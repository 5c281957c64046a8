import { costOf } from '../auth/passwords.ts';
import type { Collection, Store } from '../store/store.ts';
import type { UserRecord } from './records.ts';

/** Counts the users by the cost of their password's hash. Built when it is first asked. */
export class HashCosts {
  readonly #store: Store;
  readonly #users: Collection<UserRecord>;
  #counts: Map<string, number> | undefined;

  constructor(store: Store, users: Collection<UserRecord>) {
    this.#store = store;
    this.#users = users;
  }

  /** The distinct costs of all stored hashes. A cost that no hash has any more is forgotten. */
  all(): Iterable<string> {
    return (this.#counts ??= this.#count()).keys();
  }

  #count(): Map<string, number> {
    const counts = new Map<string, number>();
    const add = (phc: unknown, more: number): void => {
      const cost = typeof phc === 'string' ? costOf(phc) : undefined;
      if (cost === undefined) return;
      const count = (counts.get(cost) ?? 0) + more;
      if (count > 0) counts.set(cost, count);
      else counts.delete(cost);
    };
    for (const block of this.#users.view().blocks)
      for (const user of block) add(user.passwordHash, 1);
    this.#store.onPublished((changes) => {
      for (const { collection, before, record } of changes) {
        if (collection.name !== this.#users.name) continue;
        add(hashOf(before), -1);
        add(hashOf(record), 1);
      }
    });
    return counts;
  }
}

function hashOf(record: object | undefined): unknown {
  return record !== undefined && 'passwordHash' in record ? record.passwordHash : undefined;
}
