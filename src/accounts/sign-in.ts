import type { Passwords } from '../auth/passwords.ts';
import type { Attempt } from '../auth/throttle.ts';
import { CairnError } from '../base/errors.ts';
import { callerKey } from '../base/network.ts';
import { emailKey } from '../schema/field.ts';
import type { AccountContext } from './context.ts';
import type { SessionKind, UserRecord } from './records.ts';
import type { Client, Sessions, SignedIn } from './sessions.ts';

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

export class SignIn {
  readonly #context: AccountContext;
  readonly #sessions: Sessions;

  constructor(context: AccountContext, sessions: Sessions) {
    this.#context = context;
    this.#sessions = sessions;
  }

  /**
   * Starts a session for the user with these credentials. The password must still be current in the
   * transaction that starts it.
   * @throws CairnError `invalid_credentials`, `too_many_requests`, `overloaded`, and the errors
   *   of `Store.write`
   */
  async start(credentials: Credentials, kind: SessionKind, client: Client): Promise<SignedIn> {
    const { store, clock, audit } = this.#context;
    const { users } = this.#context.records;
    const caller = callerKey(client.address, undefined);
    for (;;) {
      const known = await this.#authenticate(credentials, client.address);
      const rehashed = await this.#rehashed(known, credentials.password);
      const started = await store.write((tx) => {
        const user = tx.of(users).get(known.id);
        if (user === undefined || user.passwordHash !== known.passwordHash) return undefined;
        const current =
          rehashed === undefined
            ? user
            : tx.of(users).replace(user.id, { ...user, passwordHash: rehashed });
        const started = this.#sessions.start(tx, kind, user.id, client);
        return { user: current, at: clock.now(), ...started };
      }, caller);
      // Another request changed the password or its hash in the meantime: compare again.
      if (started === undefined) continue;
      const { user, session } = started;
      audit('login', {
        userId: user.id,
        sessionId: session.id,
        sessionKind: kind,
        address: client.address,
      });
      return started;
    }
  }

  /** @throws CairnError `invalid_credentials`, `too_many_requests`, `overloaded` */
  async #authenticate({ email, password }: Credentials, address: string): Promise<UserRecord> {
    const { store, throttle, passwords, audit } = this.#context;
    const { users } = this.#context.records;
    await store.confirm();
    const key = emailKey(email);
    const user = users.find('email', key);
    const details = { userId: user?.id, address };
    const hasSession = user !== undefined && this.#sessions.hasLiveFrom(user.id, address);
    let attempt: Attempt;
    try {
      attempt = throttle.signIn(key, address, hasSession);
    } catch (error) {
      audit('login_throttled', details);
      throw error;
    }
    if ((await matchesPassword(passwords, attempt, password, user)) && user !== undefined)
      return user;
    audit('login_failed', details);
    const message = 'Cannot sign in: the e-mail address or the password is wrong';
    throw new CairnError('invalid_credentials', message);
  }

  /**
   * Hashes the password at the configured cost if the stored hash differs, unless the server is
   * busy.
   */
  async #rehashed(
    { id: userId, passwordHash = '' }: UserRecord,
    password: string,
  ): Promise<string | undefined> {
    const { passwords } = this.#context;
    if (!passwords.needsRehash(passwordHash)) return undefined;
    try {
      return await passwords.hash(password, callerKey('', userId));
    } catch (error) {
      if (error instanceof CairnError) return undefined;
      throw error;
    }
  }
}

/**
 * True if this is the user's password. Settles the attempt. An unknown user takes as long as a
 * wrong password.
 * @throws CairnError `overloaded`
 */
export async function matchesPassword(
  passwords: Passwords,
  { turn, settle }: Attempt,
  password: string,
  user: UserRecord | undefined,
): Promise<boolean> {
  try {
    const matches = await passwords.verify(password, user?.passwordHash, turn);
    settle(matches ? 'succeeded' : 'failed');
    return matches;
  } catch (error) {
    settle('withdrawn');
    throw error;
  }
}
