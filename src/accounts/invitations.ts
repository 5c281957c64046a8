import { anonymous, type Principal } from '../auth/access.ts';
import { passwordIssues } from '../auth/password-rules.ts';
import { invitationMark, isLive, newSessionId, secretHash } from '../auth/secrets.ts';
import type { Attempt } from '../auth/throttle.ts';
import { nextSignOut } from '../auth/tokens.ts';
import { CairnError } from '../base/errors.ts';
import { callerKey } from '../base/network.ts';
import { found } from '../collections/resource.ts';
import { validationFailed } from '../schema/validate.ts';
import {
  published,
  type Collection,
  type ReadTransaction,
  type Transaction,
} from '../store/store.ts';
import type { AccountContext } from './context.ts';
import { checkPrincipal } from './principal.ts';
import type { SessionRecord, UserRecord } from './records.ts';
import type { Sessions } from './sessions.ts';

export interface Acceptance {
  readonly token: string;
  readonly password: string;
}

/**
 * Invitations let users without a password choose one. An invitation is 256 random bits, stored as
 * SHA-256 among the user's sessions. It works once, within 24 hours. A newer invitation, a
 * password, another e-mail address or role, or the user's removal ends it.
 */
export class Invitations {
  readonly #context: AccountContext;
  readonly #sessions: Sessions;

  constructor(context: AccountContext, sessions: Sessions) {
    this.#context = context;
    this.#sessions = sessions;
  }

  /** @throws CairnError `actor_changed`, `not_found`; `conflict` if the user has a password */
  make(tx: Transaction, principal: Principal, userId: number, address?: string): string {
    const { random, clock, audit } = this.#context;
    const { users, sessions } = this.#context.records;
    checkPrincipal(tx, principal, this.#context);
    const user = found(tx.of(users).get(userId));
    if (user.passwordHash !== undefined)
      throw new CairnError('conflict', 'Cannot invite the user: they have a password already');
    endInvitations(tx, sessions, userId);
    const secret = newSessionId(random);
    const now = clock.now();
    tx.of(sessions).insert({
      ...{ kind: 'refresh', userId, lookupHash: secretHash(secret), tokenHash: invitationMark },
      ...{ createdAt: now, lastSeenAt: now, address: '', agent: '' },
    });
    tx.onCommit(() => audit('invitation_made', { userId, by: principal.userId, address }));
    return secret;
  }

  /**
   * Sets the invited user's password. The invitation is checked before anything is hashed.
   * @throws CairnError `invalid_credentials` for every invalid invitation; `validation_failed`
   *   for the password, `too_many_requests`, `overloaded`
   */
  async accept({ token, password }: Acceptance, address: string): Promise<void> {
    const { store, writes, passwords, passwordLengthMin } = this.#context;
    await store.confirm();
    const attempt = this.#attempt(address);
    try {
      const user = this.#invited(published, token);
      const issues = passwordIssues(password, user.email, passwordLengthMin);
      if (issues.length > 0) throw validationFailed(issues);
      const passwordHash = await passwords.hash(password, attempt.turn);
      const work = (tx: Transaction): void => this.#consume(tx, token, passwordHash, address);
      await writes.write(anonymous, work, callerKey(address, undefined));
    } catch (error) {
      const isGuess = error instanceof CairnError && error.code === 'invalid_credentials';
      attempt.settle(isGuess ? 'failed' : 'withdrawn');
      if (isGuess) this.#context.audit('login_failed', { address });
      throw error;
    }
    attempt.settle('succeeded');
  }

  #attempt(address: string): Attempt {
    try {
      return this.#context.throttle.invitation(address);
    } catch (error) {
      this.#context.audit('login_throttled', { address });
      throw error;
    }
  }

  #consume(tx: Transaction, token: string, passwordHash: string, address: string): void {
    const { clock, audit } = this.#context;
    const { users } = this.#context.records;
    const user = this.#invited(tx, token);
    this.#sessions.endAll(tx, user.id);
    const signedOutAt = nextSignOut(clock.now(), user.signedOutAt);
    tx.of(users).replace(user.id, { ...user, passwordHash, signedOutAt });
    tx.onCommit(() => audit('password_changed', { userId: user.id, by: user.id, address }));
  }

  /** @throws CairnError `invalid_credentials` */
  #invited(reader: ReadTransaction, token: string): UserRecord {
    const { clock } = this.#context;
    const { users, sessions } = this.#context.records;
    const session = reader.of(sessions).find('lookup', secretHash(token));
    const isGood = session?.tokenHash === invitationMark && isLive(session, clock.now());
    const user = isGood ? reader.of(users).get(session.userId) : undefined;
    if (user !== undefined && user.passwordHash === undefined) return user;
    throw new CairnError(
      'invalid_credentials',
      'Cannot accept the invitation: it is not valid, has expired or was used; ask for a new one',
    );
  }
}

export function endInvitations(
  tx: Transaction,
  sessions: Collection<SessionRecord>,
  userId: number,
): void {
  for (const { id, tokenHash } of [...tx.of(sessions).referring('user', userId)])
    if (tokenHash === invitationMark) tx.of(sessions).remove(id);
}
