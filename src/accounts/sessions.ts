import { notFound, type Principal, type SessionHolder, type User } from '../auth/access.ts';
import { decideRefresh, familyHash, newRefreshToken, successorAgain, successorOf } from '../auth/sessions.ts';
import { isLive, lastSeenIsDue, newSessionId, secretHash, sessionEndsAt } from '../auth/sessions.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { networkOf } from '../base/network.ts';
import type { Transaction } from '../store/store.ts';
import type { Audit } from './audit.ts';
import { checkActor, type AccountParts } from './parts.ts';
import type { SessionKind, SessionRecord, UserRecord } from './records.ts';

/** Where a session came from, for its user to recognise it. */
export interface Origin {
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
}

/** The sessions of all users: how they start, go on and end. */
export class Sessions {
  readonly #parts: AccountParts;
  /** The JSON of a record, which never changes: writing three dates takes longer than finding the session. */
  readonly #written = new WeakMap<SessionRecord, string>();
  /** The index of the block of records that was swept last. */
  #swept = 0;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Starts a session. Its secret is that of the cookie, or the first token of a family. */
  start(transaction: Transaction, kind: SessionKind, userId: number, { address, agent }: Origin): StartedSession {
    const { sessions, clock, random } = this.#parts;
    const live = transaction.members(sessions, 'user', userId).filter((session) => this.#isLive(session));
    const surplus = live.slice(0, Math.max(0, live.length + 1 - limits.sessionsPerUserMax));
    for (const { id } of surplus) transaction.remove(sessions, id);
    this.#sweep(transaction);
    const secret = kind === 'cookie' ? newSessionId(random) : newRefreshToken(random);
    const hash = secretHash(secret);
    const hashes = kind === 'cookie' ? { lookupHash: hash } : { lookupHash: familyHash(secret) ?? '', tokenHash: hash };
    const now = clock.now();
    const seen = { createdAt: now, lastSeenAt: now, address, agent: shortened(agent) };
    const session = transaction.insert(sessions, { kind, userId, ...hashes, ...seen });
    return { secret, session };
  }

  /** The holder of the cookie with this secret, with their current role. @throws CairnError `invalid_session` */
  resume(secret: string): SessionHolder {
    const session = this.#find(secret);
    const user = session && this.#parts.users.get(session.userId);
    if (session === undefined || user === undefined) {
      throw new CairnError('invalid_session', 'Cannot accept the session: it has ended, so sign in again');
    }
    return { kind: 'session', userId: user.id, role: user.role, sessionId: session.id };
  }

  /**
   * Exchanges a refresh token for its successor. A token that was used before may be stolen, so it ends its family. The
   * successor is durable before it is returned: after a crash it would look stolen otherwise.
   * @throws CairnError `invalid_credentials`, and what `Store.write` throws
   */
  async refresh(token: string, origin: Origin): Promise<SignedIn> {
    const { store, users, audit } = this.#parts;
    const { secret, session, isReused } = await store.write((transaction) => this.#rotate(transaction, token, origin));
    const user = session && users.get(session.userId);
    if (session !== undefined && secret !== undefined && user !== undefined) return { secret, session, user };
    const { address } = origin;
    if (isReused) audit('refresh_token_reused', { userId: session?.userId, sessionId: session?.id, address });
    throw new CairnError('invalid_credentials', 'Cannot refresh the session: the refresh token is not valid');
  }

  /**
   * Ends the family of a refresh token, also of one that was replaced. Anything else is ignored (RFC 7009 §2.2).
   * @throws what `Store.write` throws
   */
  async revoke(token: string, address: string): Promise<void> {
    await this.#endOne((transaction) => this.#family(transaction, token), { address });
  }

  /**
   * Ends one of the caller's sessions, or for administrators any session.
   * @throws CairnError `not_found`, `actor_changed`, and what `Store.write` throws
   */
  async end(principal: Principal, sessionId: number, address: string): Promise<void> {
    const find = (transaction: Transaction): SessionRecord => {
      checkActor(transaction, principal, this.#parts);
      const session = transaction.get(this.#parts.sessions, sessionId);
      const isAllowed = principal.role === 'admin' || principal.userId === session?.userId;
      if (session === undefined || !isAllowed || !this.#isLive(session)) throw notFound();
      return session;
    };
    await this.#endOne(find, { by: principal.userId, address });
  }

  /**
   * Ends the session of the cookie with this secret, or all sessions of its user. A session that has ended is ignored.
   * @throws what `Store.write` throws
   */
  async signOut(secret: string, everywhere: boolean, address: string): Promise<void> {
    const { store, users, sessions, clock, audit } = this.#parts;
    const session = this.#find(secret);
    if (session === undefined) return;
    const { id: sessionId, userId } = session;
    await store.write((transaction) => {
      if (!everywhere) return transaction.remove(sessions, sessionId);
      this.endAll(transaction, userId);
      const user = transaction.get(users, userId);
      if (user !== undefined) transaction.replace(users, userId, { ...user, signedOutAt: clock.now() });
    });
    audit('logout', { userId, sessionId, everywhere, address });
  }

  /** Ends every session of a user. */
  endAll(transaction: Transaction, userId: number): void {
    const { sessions } = this.#parts;
    for (const { id } of transaction.members(sessions, 'user', userId)) transaction.remove(sessions, id);
  }

  /**
   * The live sessions of a user, the oldest first: the caller's own, or for administrators those of any user.
   * @throws CairnError `insufficient_scope`
   */
  list(caller: User, userId: number): SessionRecord[] {
    if (userId !== caller.userId && caller.role !== 'admin') {
      throw new CairnError('insufficient_scope', 'Cannot show sessions of another user: the role "admin" is required');
    }
    return this.#parts.sessions.members('user', userId).filter((session) => this.#staysLive(session));
  }

  /** Whether a user has a live session from the network of this address. */
  hasLiveFrom(userId: number, address: string): boolean {
    const network = networkOf(address);
    const sessions = this.#parts.sessions.members('user', userId);
    return sessions.some((session) => networkOf(session.address) === network && this.#isLive(session));
  }

  /** The JSON of `sessionFields`. `currentId` is the session of the request. */
  write(session: SessionRecord, currentId: number | undefined): string {
    let json = this.#written.get(session);
    if (json === undefined) {
      const { id, userId, kind, address, agent } = session;
      const moments = [session.createdAt, session.lastSeenAt, sessionEndsAt(session)];
      const [createdAt, lastSeenAt, expiresAt] = moments.map((moment) => new Date(moment).toISOString());
      json = JSON.stringify({ id, userId, kind, createdAt, lastSeenAt, expiresAt, address, agent }).slice(0, -1);
      this.#written.set(session, json);
    }
    return `${json},"current":${session.id === currentId}}`;
  }

  /** Whether the session with this id has not ended. */
  isOpen(id: number): boolean {
    const session = this.#parts.sessions.get(id);
    return session !== undefined && this.#isLive(session);
  }

  #isLive(session: SessionRecord): boolean {
    return isLive(session, this.#parts.clock.now());
  }

  /** The same, and a session that has ended is removed: it must not come back when the clock is set back. */
  #staysLive(session: SessionRecord): boolean {
    if (this.#isLive(session)) return true;
    const { store, sessions } = this.#parts;
    const ended = store.write((transaction) => {
      const current = transaction.get(sessions, session.id);
      if (current !== undefined && !this.#isLive(current)) transaction.remove(sessions, session.id);
    });
    this.#inBackground(ended);
    return false;
  }

  /** Lets the request go on without this write. Where it fails, the next request tries it again. */
  #inBackground(write: Promise<void>): void {
    write.catch(() => undefined);
  }

  /** The live session of the cookie with this secret, which is seen now. */
  #find(secret: string): SessionRecord | undefined {
    const { sessions, clock } = this.#parts;
    const session = sessions.find('lookup', secretHash(secret));
    if (session?.kind !== 'cookie' || !this.#staysLive(session)) return undefined;
    if (lastSeenIsDue(session, clock.now())) this.#touch(session.id);
    return session;
  }

  /** Writes down that a session is used. The request does not wait: after a crash it may end earlier, never later. */
  #touch(id: number): void {
    const { store, sessions, clock } = this.#parts;
    // The write may wait for long.
    const now = clock.now();
    const seen = store.write((transaction) => {
      const session = transaction.get(sessions, id);
      // Another request of the same moment may have written it already.
      if (session === undefined || !lastSeenIsDue(session, now)) return;
      transaction.replace(sessions, id, { ...session, lastSeenAt: now });
    });
    this.#inBackground(seen);
  }

  /** Ends the session that `find` finds, if there is one. */
  async #endOne(
    find: (transaction: Transaction) => SessionRecord | undefined,
    details: Parameters<Audit>[1],
  ): Promise<void> {
    const { store, sessions, audit } = this.#parts;
    const ended = await store.write((transaction) => {
      const session = find(transaction);
      if (session !== undefined) transaction.remove(sessions, session.id);
      return session;
    });
    if (ended !== undefined) audit('session_ended', { userId: ended.userId, sessionId: ended.id, ...details });
  }

  /** Does with a family what `decideRefresh` says of the token. Without a `secret` the token is not valid. */
  #rotate(transaction: Transaction, token: string, { address, agent }: Origin): Rotation {
    const { sessions, clock, ring } = this.#parts;
    const session = this.#family(transaction, token);
    if (session?.tokenHash === undefined) return {};
    const tokenHash = secretHash(token);
    const now = clock.now();
    const decision = decideRefresh(session, tokenHash, now);
    if (decision === 'repeat') return { session, secret: successorAgain(token, session.tokenHash, ring()) };
    if (decision !== 'rotate') {
      transaction.remove(sessions, session.id);
      return { session, isReused: decision === 'reuse' };
    }
    const secret = successorOf(token, ring());
    const next = { tokenHash: secretHash(secret), previousHash: tokenHash, lastSeenAt: now };
    const rotated = { ...session, ...next, address, agent: shortened(agent) };
    return { secret, session: transaction.replace(sessions, session.id, rotated) };
  }

  #family(transaction: Transaction, token: string): SessionRecord | undefined {
    const hash = familyHash(token);
    const session = hash === undefined ? undefined : transaction.find(this.#parts.sessions, 'lookup', hash);
    return session?.kind === 'refresh' ? session : undefined;
  }

  /** Removes ended sessions from one block of records: from another block each time, so that the work is bounded. */
  #sweep(transaction: Transaction): void {
    const { sessions } = this.#parts;
    const { blocks } = sessions.view();
    this.#swept = (this.#swept + 1) % Math.max(1, blocks.length);
    for (const { id } of blocks[this.#swept] ?? []) {
      const session = transaction.get(sessions, id);
      if (session !== undefined && !this.#isLive(session)) transaction.remove(sessions, id);
    }
  }
}

interface Rotation {
  readonly session?: SessionRecord;
  readonly secret?: string | undefined;
  readonly isReused?: boolean;
}

/** Enough of a `User-Agent` to recognise a browser by. */
function shortened(agent: string): string {
  return agent.slice(0, limits.sessionAgentLengthMax);
}
