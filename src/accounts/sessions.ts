import { notFound, type Principal, type SessionPrincipal } from '../auth/access.ts';
import {
  decideRefresh,
  familyHash,
  invitationMark,
  isLive,
  lastSeenIsDue,
  newRefreshToken,
  newSessionId,
  secretHash,
  sessionEndsAt,
  successorAgain,
  deriveSuccessor,
} from '../auth/secrets.ts';
import { nextSignOut } from '../auth/tokens.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { callerKey, toNetwork } from '../base/network.ts';
import type { Transaction } from '../store/store.ts';
import type { Audit } from './events.ts';
import type { AccountParts } from './parts.ts';
import { checkPrincipal } from './principal.ts';
import type { SessionKind, SessionRecord, UserRecord } from './records.ts';

/** The client of a session, so that its user can recognise it. */
export interface Client {
  readonly address: string;
  readonly agent: string;
}

/** A session that was just started. */
export interface StartedSession {
  /** The only copy of the cookie's secret, or of the refresh token. */
  readonly secret: string;
  readonly session: SessionRecord;
}

/** A session that was started or refreshed, and its user. */
export interface SignedIn extends StartedSession {
  /** As the transaction saw it that started or refreshed the session. */
  readonly user: UserRecord;
  /**
   * When that transaction ran, in milliseconds since the epoch. An access token is issued as of
   * then, so that a sign-out everywhere that followed ends it, too.
   */
  readonly at: number;
}

/** The sessions of all users: starts, refreshes, lists and ends them. */
export class Sessions {
  readonly #parts: AccountParts;
  /**
   * The JSON of a record, which is immutable: formatting three dates is slower than the
   * look-up. The second text is that of the session of the request.
   */
  readonly #written = new WeakMap<SessionRecord, readonly [string, string]>();
  /** Hashes of secrets that were live once, which requests repeat. A full map is cleared. */
  readonly #hashes = new Map<string, string>();
  /** The index of the block of records that was swept last. */
  #swept = 0;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Starts a session. Its secret is the cookie's, or the first token of a family. */
  start(tx: Transaction, kind: SessionKind, userId: number, client: Client): StartedSession {
    const { sessions, random } = this.#parts;
    const live = [...tx.of(sessions).referring('user', userId)].filter(this.#isSession);
    // Leaves room for this session.
    const surplus = live.slice(0, 1 - limits.sessionsPerUserMax);
    for (const session of surplus) this.#end(tx, session, { address: client.address });
    this.#sweep(tx);
    const secret = kind === 'cookie' ? newSessionId(random) : newRefreshToken(random);
    const hash = secretHash(secret);
    const hashes =
      kind === 'cookie'
        ? { lookupHash: hash }
        : { lookupHash: familyHash(secret) ?? '', tokenHash: hash };
    const use = this.#useFrom(client);
    const session = tx.of(sessions).insert({
      kind,
      userId,
      ...hashes,
      ...use,
      createdAt: use.lastSeenAt,
    });
    return { secret, session };
  }

  /**
   * Returns who has a cookie with one of these secrets: of those that are live, the one of the user
   * that the caller names, else the first. The role is the current one.
   * @throws CairnError `invalid_session`
   */
  resume(secrets: readonly string[], namedUser?: string): SessionPrincipal {
    const live = secrets.flatMap((secret) => {
      const session = this.#find(secret);
      const user = session && this.#parts.users.get(session.userId);
      return session === undefined || user === undefined ? [] : [{ session, user }];
    });
    const found = live.find(({ user }) => String(user.id) === namedUser) ?? live[0];
    if (found !== undefined) {
      const { session, user } = found;
      this.#recordUse(session);
      return { kind: 'session', userId: user.id, role: user.role, sessionId: session.id };
    }
    throw new CairnError(
      'invalid_session',
      'Cannot accept the session: it has ended, so sign in again',
    );
  }

  /**
   * Exchanges a refresh token for its successor. A reused token may have been stolen, so it
   * ends its family. The successor is durable before it is returned: otherwise it would look
   * stolen after a crash.
   * @throws CairnError `invalid_credentials`, and the errors of `Store.write`
   */
  async refresh(token: string, client: Client): Promise<SignedIn> {
    const { store, users, clock, audit } = this.#parts;
    const caller = callerKey(client.address, undefined);
    const { secret, session, user, at, isReused } = await store.write((tx) => {
      const rotation = this.#rotate(tx, token, client);
      const user = rotation.session && tx.of(users).get(rotation.session.userId);
      return { ...rotation, user, at: clock.now() };
    }, caller);
    if (session !== undefined && secret !== undefined && user !== undefined)
      return { secret, session, user, at };
    const { address } = client;
    if (isReused)
      audit('refresh_token_reused', { userId: session?.userId, sessionId: session?.id, address });
    const message = 'Cannot refresh the session: the refresh token is not valid, so sign in again';
    throw new CairnError('invalid_credentials', message);
  }

  /**
   * Ends the family of a refresh token, even if the token was replaced. Ignores anything else
   * (RFC 7009 §2.2).
   */
  revoke(tx: Transaction, token: string, address: string): void {
    const session = this.#family(tx, token);
    if (session !== undefined) this.#end(tx, session, { address });
  }

  /**
   * Ends one of the principal's sessions. Administrators can end any session.
   * @throws CairnError `not_found`, `actor_changed`
   */
  end(tx: Transaction, principal: Principal, sessionId: number, address: string): void {
    checkPrincipal(tx, principal, this.#parts);
    const session = tx.of(this.#parts.sessions).get(sessionId);
    const isAllowed = principal.role === 'admin' || principal.userId === session?.userId;
    if (session === undefined || !isAllowed || !this.#isLive(session)) throw notFound();
    this.#end(tx, session, { by: principal.userId, address });
  }

  /** Returns the owner of the session with this secret; `undefined` if it has ended. */
  findUserId(secret: string): number | undefined {
    return this.#find(secret)?.userId;
  }

  /**
   * Ends the session of the cookie with this secret, or all sessions of its user. Ignores a
   * session that has ended.
   */
  signOut(tx: Transaction, secret: string, everywhere: boolean, address: string): void {
    const { users, sessions, clock, audit } = this.#parts;
    const session = tx.of(sessions).find('lookup', secretHash(secret));
    if (session?.kind !== 'cookie' || !this.#isLive(session)) return;
    const { id: sessionId, userId } = session;
    if (everywhere) {
      this.endAll(tx, userId);
      const user = tx.of(users).get(userId);
      const signedOutAt = nextSignOut(clock.now(), user?.signedOutAt);
      if (user !== undefined) tx.of(users).replace(userId, { ...user, signedOutAt });
    } else tx.of(sessions).remove(sessionId);
    tx.onCommit(() => audit('logout', { userId, sessionId, everywhere, address }));
  }

  /** Ends all sessions of a user. */
  endAll(tx: Transaction, userId: number): void {
    const { sessions } = this.#parts;
    for (const { id } of [...tx.of(sessions).referring('user', userId)]) tx.of(sessions).remove(id);
  }

  /** Returns the live sessions of a user, the oldest first. */
  list(userId: number): SessionRecord[] {
    return this.#parts.sessions.members('user', userId).filter(this.#isSession);
  }

  /** Returns true if a user has a live session from the network of this address. */
  hasLiveFrom(userId: number, address: string): boolean {
    const network = toNetwork(address);
    return this.list(userId).some((session) => toNetwork(session.address) === network);
  }

  /** Returns the JSON of `sessionFields`. `currentId` is the session of the request. */
  write(session: SessionRecord, currentId: number | undefined): string {
    let written = this.#written.get(session);
    if (written === undefined) {
      const { id, userId, kind, address, agent } = session;
      const times = [session.createdAt, session.lastSeenAt, sessionEndsAt(session)];
      const [createdAt, lastSeenAt, expiresAt] = times.map((time) => new Date(time).toISOString());
      const shown = { id, userId, kind, createdAt, lastSeenAt, expiresAt, address, agent };
      const text = (current: boolean): string => JSON.stringify({ ...shown, current });
      written = [text(false), text(true)];
      this.#written.set(session, written);
    }
    return written[session.id === currentId ? 1 : 0];
  }

  /** Returns true if the session with this id has not ended. */
  isOpen(id: number): boolean {
    const session = this.#parts.sessions.get(id);
    return session !== undefined && this.#isLive(session);
  }

  /** Returns true for what its user knows as a session, until it ends. */
  readonly #isSession = (session: SessionRecord): boolean =>
    session.tokenHash !== invitationMark && this.#isLive(session);

  #isLive(session: SessionRecord): boolean {
    return isLive(session, this.#parts.clock.now());
  }

  /** Returns the live session of the cookie with this secret. */
  #find(secret: string): SessionRecord | undefined {
    const remembered = this.#hashes.get(secret);
    const hash = remembered ?? secretHash(secret);
    const session = this.#parts.sessions.find('lookup', hash);
    if (session?.kind !== 'cookie' || !this.#isLive(session)) return undefined;
    if (remembered === undefined) {
      if (this.#hashes.size >= limits.sessionSecretsMax) this.#hashes.clear();
      this.#hashes.set(secret, hash);
    }
    return session;
  }

  /** Records that a session is used now. */
  #recordUse(session: SessionRecord): void {
    // The time of the use, since the write may be delayed.
    const now = this.#parts.clock.now();
    if (!lastSeenIsDue(session, now)) return;
    const { store, sessions } = this.#parts;
    // The request continues meanwhile. If the write fails, the next request tries again; after a
    // crash the session may end earlier, but never later.
    const written = store.write((tx) => {
      const current = tx.of(sessions).get(session.id);
      // Another request at the same time may have recorded its use already.
      if (current !== undefined && lastSeenIsDue(current, now))
        tx.of(sessions).replace(current.id, { ...current, lastSeenAt: now });
    });
    written.catch(() => undefined);
  }

  #end(tx: Transaction, { id, userId }: SessionRecord, details: Parameters<Audit>[1]): void {
    tx.of(this.#parts.sessions).remove(id);
    tx.onCommit(() => this.#parts.audit('session_ended', { userId, sessionId: id, ...details }));
  }

  /** Applies the decision of `decideRefresh`. The token is valid if there is a `secret`. */
  #rotate(tx: Transaction, token: string, client: Client): Rotation {
    const { sessions, clock, ring } = this.#parts;
    const session = this.#family(tx, token);
    if (session?.tokenHash === undefined) return {};
    const tokenHash = secretHash(token);
    const decision = decideRefresh(session, tokenHash, clock.now());
    if (decision === 'repeat')
      return { session, secret: successorAgain(token, session.tokenHash, ring()) };
    if (decision !== 'rotate') {
      tx.of(sessions).remove(session.id);
      return { session, isReused: decision === 'reuse' };
    }
    const secret = deriveSuccessor(token, ring());
    const hashes = { tokenHash: secretHash(secret), previousHash: tokenHash };
    const rotated = { ...session, ...hashes, ...this.#useFrom(client) };
    return { secret, session: tx.of(sessions).replace(session.id, rotated) };
  }

  #family(tx: Transaction, token: string): SessionRecord | undefined {
    const hash = familyHash(token);
    const session =
      hash === undefined ? undefined : tx.of(this.#parts.sessions).find('lookup', hash);
    return session?.kind === 'refresh' ? session : undefined;
  }

  /** Removes ended sessions from the next block of records. One block at a time bounds the work. */
  #sweep(tx: Transaction): void {
    const { sessions } = this.#parts;
    const { blocks } = sessions.view();
    this.#swept = (this.#swept + 1) % Math.max(1, blocks.length);
    for (const { id } of blocks[this.#swept] ?? []) {
      const session = tx.of(sessions).get(id);
      if (session !== undefined && !this.#isLive(session)) tx.of(sessions).remove(id);
    }
  }

  /** The fields of a session that is used now. */
  #useFrom({ address, agent }: Client) {
    const lastSeenAt = this.#parts.clock.now();
    return { lastSeenAt, address, agent: agent.slice(0, limits.sessionAgentLengthMax) };
  }
}

/** The result of using a refresh token. */
interface Rotation {
  readonly session?: SessionRecord;
  readonly secret?: string | undefined;
  readonly isReused?: boolean;
}
