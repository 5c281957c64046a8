import { notFound, type Principal, type SessionHolder, type User } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { emailKey } from '../schema/field.ts';
import type { Origin, SessionRecord, StartedSession } from './sessions.ts';
import type { UserRecord, Users, UsersParts } from './users.ts';

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

export type SignedIn = StartedSession & { readonly user: UserRecord };

/** What sign-in works with. */
type Parts = Pick<UsersParts, 'store' | 'sessions' | 'passwords' | 'audit'> & { readonly users: Users };

/** How people show who they are: by e-mail address and password once, by a session's secret from then on. */
export function createSignIn({ store, users, sessions, passwords, audit }: Parts) {
  /**
   * Compares the password, and starts a session of this kind, with a new secret, if it is still right by then.
   * @throws CairnError `invalid_credentials`, `too_many_requests`, `overloaded`, and what `Store.write` throws
   */
  async function start(credentials: Credentials, kind: SessionRecord['kind'], origin: Origin): Promise<SignedIn> {
    for (;;) {
      const known = await authenticate(credentials, origin.address);
      const passwordHash = (await rehash(known, credentials.password)) ?? known.passwordHash;
      const started = await store.write((transaction) => {
        const user = transaction.get(users.records, known.id);
        if (user === undefined || user.passwordHash !== known.passwordHash) return undefined;
        const changed = passwordHash !== undefined && passwordHash !== user.passwordHash;
        if (changed) transaction.replace(users.records, user.id, { ...user, passwordHash });
        return { user, ...sessions.start(transaction, kind, user.id, origin) };
      });
      // Else the password was changed while it was compared, or another login has hashed it anew: compare once more.
      if (started === undefined) continue;
      const { user, session } = started;
      audit('login', { userId: user.id, sessionId: session.id, sessionKind: kind, address: origin.address });
      return started;
    }
  }

  /**
   * Exchanges a refresh token for its successor.
   * @throws CairnError `invalid_credentials`, and what `Store.write` throws
   */
  async function refresh(token: string, origin: Origin): Promise<SignedIn> {
    const refreshed = await sessions.refresh(token, origin);
    const user = refreshed && users.records.get(refreshed.session.userId);
    if (refreshed !== undefined && user !== undefined) return { ...refreshed, user };
    throw new CairnError('invalid_credentials', 'Cannot refresh: the refresh token is not valid');
  }

  /** Who holds the cookie with this secret, with the role that they have now. @throws CairnError `invalid_session` */
  function resume(secret: string): SessionHolder {
    const session = sessions.resume(secret);
    const user = session && users.records.get(session.userId);
    if (session === undefined || user === undefined) {
      throw new CairnError('invalid_session', 'Cannot accept the session: it has ended, so sign in again');
    }
    return { kind: 'session', userId: user.id, role: user.role, sessionId: session.id };
  }

  /** The sessions of one user: oneself, or for an administrator anybody. @throws CairnError `insufficient_scope` */
  function sessionsOf(caller: User, userId: number): SessionRecord[] {
    if (userId !== caller.userId && caller.role !== 'admin') {
      throw new CairnError('insufficient_scope', 'Cannot show another user\'s sessions: it takes the role "admin"');
    }
    return sessions.of(userId);
  }

  /** Ends one of the caller's sessions, or for an administrator any. @throws CairnError `not_found`, `actor_changed` */
  async function endOne(principal: Principal, sessionId: number, address: string): Promise<void> {
    const ended = await store.write((transaction) => {
      users.checkActor(transaction, principal);
      const session = sessions.foundLive(transaction.get(sessions.records, sessionId));
      if (principal.role !== 'admin' && principal.userId !== session.userId) throw notFound();
      transaction.remove(sessions.records, sessionId);
      return session;
    });
    audit('session_ended', { userId: ended.userId, sessionId, by: principal.userId, address });
  }

  /** The user with these credentials. */
  async function authenticate({ email, password }: Credentials, address: string): Promise<UserRecord> {
    const key = emailKey(email);
    const user = users.records.find('email', key);
    const details = { userId: user?.id, address };
    try {
      if ((await users.knowsPassword(user, password, `sign-in ${key}`, address)) && user !== undefined) return user;
    } catch (error) {
      if (error instanceof CairnError && error.code === 'too_many_requests') audit('login_throttled', details);
      throw error;
    }
    audit('login_failed', details);
    throw new CairnError('invalid_credentials', 'Cannot sign in: the e-mail address or the password is not right');
  }

  /** The password's hash at the cost that is configured now, where that has changed; not at a busy moment. */
  async function rehash({ passwordHash }: UserRecord, password: string): Promise<string | undefined> {
    if (passwordHash === undefined || !passwords.needsRehash(passwordHash)) return undefined;
    try {
      return await passwords.hash(password);
    } catch (error) {
      if (error instanceof CairnError) return undefined;
      throw error;
    }
  }

  return { start, refresh, resume, sessionsOf, endOne };
}

export type SignIn = ReturnType<typeof createSignIn>;
