import { costOf } from '../auth/passwords.ts';
import type { Collection } from '../store/store.ts';
import type { UserRecord } from './records.ts';

/** Counts the users by the cost of their password's hash. Built when it is first asked. */
export class HashCosts {
  readonly #users: Collection<UserRecord>;
  #counts: Map<string, number> | undefined;

  constructor(users: Collection<UserRecord>) {
    this.#users = users;
  }

  /** The distinct costs of all stored hashes. A cost that no hash has any more is forgotten. */
  all(): Iterable<string> {
    return (this.#counts ??= this.#count()).keys();
  }

  #count(): Map<string, number> {
    const counts = new Map<string, number>();
    const add = (user: UserRecord | undefined, more: number): void => {
      const cost = costOf(user?.passwordHash ?? '');
      if (cost === undefined) return;
      const count = (counts.get(cost) ?? 0) + more;
      if (count > 0) counts.set(cost, count);
      else counts.delete(cost);
    };
    for (const block of this.#users.view().blocks) for (const user of block) add(user, 1);
    this.#users.follow((before, after) => {
      add(before, -1);
      add(after, 1);
    });
    return counts;
  }
}
