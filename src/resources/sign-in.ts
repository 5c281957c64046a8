import type { Passwords } from '../auth/passwords.ts';
import type { SessionHolder } from '../auth/principal.ts';
import { CairnError } from '../base/errors.ts';
import { emailKey } from '../schema/field.ts';
import type { Store } from '../store/store.ts';
import type { Origin, Sessions, StartedSession } from './sessions.ts';
import type { UserRecord, Users } from './users.ts';

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

/** How people show who they are: by e-mail address and password once, by a session's secret from then on. */
export class SignIn {
  readonly #store: Store;
  readonly #users: Users;
  readonly #sessions: Sessions;
  readonly #passwords: Passwords;

  constructor(store: Store, users: Users, sessions: Sessions, passwords: Passwords) {
    this.#store = store;
    this.#users = users;
    this.#sessions = sessions;
    this.#passwords = passwords;
  }

  /**
   * The user with these credentials. That there is no such user costs the same time as a wrong password.
   * @throws CairnError `invalid_credentials`, `too_many_requests`, `overloaded`
   */
  async authenticate({ email, password }: Credentials): Promise<UserRecord> {
    const user = this.#users.records.find('email', emailKey(email));
    const matches = await this.#passwords.verify(password, user?.passwordHash);
    if (user === undefined || !matches) throw invalidCredentials();
    return user;
  }

  /** Starts a session with a new id. @throws CairnError as `authenticate`, and what `Store.write` throws */
  async start(credentials: Credentials, origin: Origin): Promise<StartedSession & { readonly user: UserRecord }> {
    const known = await this.authenticate(credentials);
    return this.#store.write((transaction) => {
      const user = transaction.get(this.#users.records, known.id);
      // The password may have changed while it was being compared.
      if (user === undefined || user.passwordHash !== known.passwordHash) throw invalidCredentials();
      return { user, ...this.#sessions.start(transaction, user.id, origin) };
    });
  }

  /** Who holds the session with this secret, with the role that they have now. @throws CairnError `invalid_session` */
  resume(secret: string): SessionHolder {
    const session = this.#sessions.resume(secret);
    const user = session && this.#users.records.get(session.userId);
    if (session === undefined || user === undefined) {
      throw new CairnError('invalid_session', 'Cannot accept the session: it has ended, so sign in again');
    }
    return { kind: 'session', userId: user.id, role: user.role, sessionId: session.id };
  }

  /** Ends the session with this secret, or all of its user's. Nothing happens where it has ended already. */
  async end(secret: string, everywhere: boolean): Promise<void> {
    const session = this.#sessions.resume(secret);
    if (session === undefined) return;
    await this.#store.write((transaction) => {
      if (everywhere) this.#sessions.endAll(transaction, session.userId);
      else transaction.remove(this.#sessions.records, session.id);
    });
  }
}

function invalidCredentials(): CairnError {
  return new CairnError('invalid_credentials', 'Cannot sign in: the e-mail address or the password is not right');
}
