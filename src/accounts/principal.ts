import type { Principal } from '../auth/access.ts';
import { lastSignOut } from '../auth/tokens.ts';
import { CairnError } from '../base/errors.ts';
import type { ReadTransaction } from '../store/store.ts';
import type { AccountContext } from './context.ts';

/**
 * Checks the caller again inside a transaction that writes users or sessions for it: a token stays
 * valid after the user is demoted or signed out everywhere, and a session can end while the body of
 * a request arrives.
 * @throws CairnError `actor_changed`
 */
export function checkPrincipal(
  reader: ReadTransaction,
  principal: Principal,
  { records, clock }: Pick<AccountContext, 'records' | 'clock'>,
): void {
  if (principal.kind === 'anonymous' || principal.kind === 'local') return;
  const user = reader.of(records.users).get(principal.userId);
  const isCurrent =
    principal.kind === 'session'
      ? reader.of(records.sessions).get(principal.sessionId) !== undefined
      : principal.kind === 'bearer' &&
        principal.issuedAt * 1000 > lastSignOut(clock.now(), user?.signedOutAt);
  if (isCurrent && user?.role === principal.role) return;
  throw new CairnError(
    'actor_changed',
    'Cannot write users or sessions: the caller was removed, signed out or given another role',
  );
}
