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
import type { AccountContext } from './context.ts';
import { checkPrincipal } from './principal.ts';
import type { SessionKind, SessionRecord, UserRecord } from './records.ts';

/** The client of a session, shown so that its user can recognise it. */
export interface Client {
  readonly address: string;
  readonly agent: string;
}

export interface StartedSession {
  /** The only copy of the cookie's secret, or of the refresh token. */
  readonly secret: string;
  readonly session: SessionRecord;
}

/** A session that was started or refreshed, and its user. */
export interface SignedIn extends StartedSession {
  readonly user: UserRecord;
  /**
   * When that transaction ran, in milliseconds since the epoch. An access token is dated then, so
   * that a later sign-out everywhere also ends it.
   */
  readonly at: number;
}

export class Sessions {
  readonly #context: AccountContext;
  /**
   * The JSON of sessions, since formatting three dates takes longer than the look-up. The second
   * text is for the request's own session.
   */
  readonly #written = new WeakMap<SessionRecord, readonly [string, string]>();
  /** Hashes of secrets that were once live, for later requests. A full map is cleared. */
  readonly #hashes = new Map<string, string>();
  #swept = 0;

  constructor(context: AccountContext) {
    this.#context = context;
  }

  /** Starts a session. Its secret is the cookie's, or the first token of a family. */
  start(tx: Transaction, kind: SessionKind, userId: number, client: Client): StartedSession {
    const { random } = this.#context;
    const { sessions } = this.#context.records;
    const live = [...tx.of(sessions).referring('user', userId)].filter(this.#isSession);
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
   * Returns the current owner and role of a live cookie, preferably `namedUser`'s, else the first.
   * @throws CairnError `invalid_session`
   */
  resume(secrets: readonly string[], namedUser?: string): SessionPrincipal {
    let found: { session: SessionRecord; user: UserRecord } | undefined;
    for (const secret of secrets) {
      const session = this.#find(secret);
      const user = session && this.#context.records.users.get(session.userId);
      if (session === undefined || user === undefined) continue;
      const isNamed = String(user.id) === namedUser;
      if (found === undefined || isNamed) found = { session, user };
      if (isNamed) break;
    }
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
   * Exchanges a refresh token for its successor. A reused token may have been stolen, so it ends
   * its family. The successor is durable before it is returned, or it would look stolen after a
   * crash.
   * @throws CairnError `invalid_credentials`, and the errors of `Store.write`
   */
  async refresh(token: string, client: Client): Promise<SignedIn> {
    const { store, clock, audit } = this.#context;
    const { users } = this.#context.records;
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
   * Ends the family of a refresh token, even a replaced one. Ignores anything else (RFC 7009 §2.2).
   */
  revoke(tx: Transaction, token: string, address: string): void {
    const session = this.#family(tx, token);
    if (session !== undefined) this.#end(tx, session, { address });
  }

  /**
   * Ends one of the principal's sessions, or any session for an administrator.
   * @throws CairnError `not_found`, `actor_changed`
   */
  end(tx: Transaction, principal: Principal, sessionId: number, address: string): void {
    checkPrincipal(tx, principal, this.#context);
    const session = tx.of(this.#context.records.sessions).get(sessionId);
    const isAllowed = principal.role === 'admin' || principal.userId === session?.userId;
    if (session === undefined || !isAllowed || !this.#isLive(session)) throw notFound();
    this.#end(tx, session, { by: principal.userId, address });
  }

  findUserId(secret: string): number | undefined {
    return this.#find(secret)?.userId;
  }

  /** Ends the session with this secret, or all sessions of its user. Ignores an ended session. */
  signOut(tx: Transaction, secret: string, everywhere: boolean, address: string): void {
    const { clock, audit } = this.#context;
    const { users, sessions } = this.#context.records;
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

  endAll(tx: Transaction, userId: number): void {
    const { sessions } = this.#context.records;
    for (const { id } of [...tx.of(sessions).referring('user', userId)]) tx.of(sessions).remove(id);
  }

  list(userId: number): SessionRecord[] {
    return this.#context.records.sessions.members('user', userId).filter(this.#isSession);
  }

  hasLiveFrom(userId: number, address: string): boolean {
    const network = toNetwork(address);
    return this.list(userId).some((session) => toNetwork(session.address) === network);
  }

  /** Returns the JSON of `sessionFields`. `currentId` is the request's session. */
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

  isOpen(id: number): boolean {
    const session = this.#context.records.sessions.get(id);
    return session !== undefined && this.#isLive(session);
  }

  readonly #isSession = (session: SessionRecord): boolean =>
    session.tokenHash !== invitationMark && this.#isLive(session);

  #isLive(session: SessionRecord): boolean {
    return isLive(session, this.#context.clock.now());
  }

  #find(secret: string): SessionRecord | undefined {
    const remembered = this.#hashes.get(secret);
    const hash = remembered ?? secretHash(secret);
    const session = this.#context.records.sessions.find('lookup', hash);
    if (session?.kind !== 'cookie' || !this.#isLive(session)) return undefined;
    if (remembered === undefined) {
      if (this.#hashes.size >= limits.sessionSecretsMax) this.#hashes.clear();
      this.#hashes.set(secret, hash);
    }
    return session;
  }

  #recordUse(session: SessionRecord): void {
    // The time of use, because the write may be delayed.
    const now = this.#context.clock.now();
    if (!lastSeenIsDue(session, now)) return;
    const { store } = this.#context;
    const { sessions } = this.#context.records;
    // The request does not wait. A failed write is repeated by the next request, and after a crash
    // the session may end earlier but never later.
    const written = store.write((tx) => {
      const current = tx.of(sessions).get(session.id);
      // A concurrent request may have recorded its use already.
      if (current !== undefined && lastSeenIsDue(current, now))
        tx.of(sessions).replace(current.id, { ...current, lastSeenAt: now });
    });
    written.catch(() => undefined);
  }

  #end(tx: Transaction, { id, userId }: SessionRecord, details: Parameters<Audit>[1]): void {
    tx.of(this.#context.records.sessions).remove(id);
    tx.onCommit(() => this.#context.audit('session_ended', { userId, sessionId: id, ...details }));
  }

  /** Applies the decision of `decideRefresh`. The token is valid if there is a `secret`. */
  #rotate(tx: Transaction, token: string, client: Client): Rotation {
    const { clock, ring } = this.#context;
    const { sessions } = this.#context.records;
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
      hash === undefined ? undefined : tx.of(this.#context.records.sessions).find('lookup', hash);
    return session?.kind === 'refresh' ? session : undefined;
  }

  /** Removes ended sessions from the next block of records. One block at a time bounds the work. */
  #sweep(tx: Transaction): void {
    const { sessions } = this.#context.records;
    const { blocks } = sessions.view();
    this.#swept = (this.#swept + 1) % Math.max(1, blocks.length);
    for (const { id } of blocks[this.#swept] ?? []) {
      const session = tx.of(sessions).get(id);
      if (session !== undefined && !this.#isLive(session)) tx.of(sessions).remove(id);
    }
  }

  #useFrom({ address, agent }: Client) {
    const lastSeenAt = this.#context.clock.now();
    return { lastSeenAt, address, agent: agent.slice(0, limits.sessionAgentLengthMax) };
  }
}

interface Rotation {
  readonly session?: SessionRecord;
  readonly secret?: string | undefined;
  readonly isReused?: boolean;
}
