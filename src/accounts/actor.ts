import { localAdministrator, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import type { Transaction } from '../store/store.ts';
import type { AccountParts } from './parts.ts';
import type { AccountRecords } from './records.ts';

/**
 * Checks the caller again, inside the transaction that writes users or sessions for it: a
 * token stays valid after the user is demoted or signed out everywhere, and a session can
 * end while the body of a request is arriving.
 * @throws CairnError `actor_changed`
 */
export function checkActor(
  transaction: Transaction,
  principal: Principal,
  { users, sessions }: AccountRecords,
): void {
  if (principal.kind === 'anonymous' || principal === localAdministrator) return;
  const user = transaction.of(users).get(principal.userId);
  const isCurrent =
    principal.kind === 'session'
      ? transaction.of(sessions).get(principal.sessionId) !== undefined
      : principal.issuedAt * 1000 > (user?.signedOutAt ?? 0);
  if (isCurrent && user?.role === principal.role) return;
  throw new CairnError(
    'actor_changed',
    'Cannot write users or sessions: the caller was removed, signed out or given another role',
  );
}

/**
 * Does the same check before the transaction that writes: a caller that will be refused must
 * not guess passwords, use up the attempts of an account, or have passwords hashed. The
 * transaction that it takes writes nothing.
 * @throws CairnError `actor_changed`, and the errors of `Store.write`
 */
export async function checkActorFirst(principal: Principal, parts: AccountParts): Promise<void> {
  await parts.store.write((transaction) => checkActor(transaction, principal, parts));
}
