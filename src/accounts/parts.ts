import { localAdministrator, type Principal } from '../auth/access.ts';
import type { KeyRing } from '../auth/keys.ts';
import type { Passwords, Turn } from '../auth/passwords.ts';
import type { Throttle } from '../auth/throttle.ts';
import { CairnError } from '../base/errors.ts';
import { callerKey } from '../base/network.ts';
import type { Clock, Random } from '../base/system.ts';
import type { HookedWrites } from '../collections/hooks.ts';
import type { IdempotencyKeys } from '../collections/idempotency.ts';
import type { Store, Transaction } from '../store/store.ts';
import type { Audit } from './audit.ts';
import type { AccountRecords } from './records.ts';

/** What users, sessions and signing in work with. */
export interface AccountParts extends AccountRecords {
  readonly store: Store;
  readonly writes: HookedWrites;
  readonly idempotencyKeys: IdempotencyKeys;
  readonly passwords: Passwords;
  readonly throttle: Throttle;
  /** The current keys, which derive the successors of refresh tokens. */
  readonly ring: () => KeyRing;
  readonly clock: Clock;
  readonly random: Random;
  readonly audit: Audit;
  /** Of a new password, in characters. */
  readonly passwordLengthMin: number;
}

/** Whose turn it is when a password of this user is hashed, or of somebody unknown at this address. */
export function turnOf(userId: number | undefined, address = ''): Turn {
  return { caller: callerKey(address, userId), isKnown: userId !== undefined };
}

/**
 * Looks the caller up once more, inside the transaction that writes users or sessions on its behalf: a token outlives
 * the user's demotion and the sign-out that was meant to end it, and a request whose body is still arriving outlives
 * its session.
 * @throws CairnError `actor_changed`
 */
export function checkActor(
  reader: Pick<Transaction, 'get'>,
  principal: Principal,
  { users, sessions }: AccountRecords,
): void {
  if (principal.kind === 'anonymous' || principal === localAdministrator) return;
  const user = reader.get(users, principal.userId);
  const isCurrent =
    principal.kind === 'session'
      ? reader.get(sessions, principal.sessionId) !== undefined
      : principal.issuedAt * 1000 > (user?.signedOutAt ?? 0);
  if (isCurrent && user?.role === principal.role) return;
  throw new CairnError('actor_changed', 'Cannot write: the caller was removed, signed out or given another role');
}

/**
 * The same before the transaction: a caller that it would refuse must not guess at passwords first, use up the attempts
 * of the account or have passwords hashed.
 * @throws CairnError `actor_changed`
 */
export async function checkActorFirst(principal: Principal, parts: AccountParts): Promise<void> {
  try {
    checkActor(published, principal, parts);
  } catch {
    // Another node may have given the caller the role or the session.
    await parts.store.confirm();
    checkActor(published, principal, parts);
  }
}

const published: Pick<Transaction, 'get'> = { get: (collection, id) => collection.get(id) };
