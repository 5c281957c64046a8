import { notFound } from '../auth/access.ts';
import type { KeyRing } from '../auth/keys.ts';
import { decideRefresh, familyHash, newRefreshToken, successorAgain, successorOf } from '../auth/sessions.ts';
import { lastSeenIsDue, newSessionId, secretHash, sessionEndsAt, type SessionLifetimes } from '../auth/sessions.ts';
import type { JsonObject } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import { misfitOf } from '../schema/check.ts';
import { choice, integer, optional, text, type Input } from '../schema/field.ts';
import { faultOf } from '../schema/rules.ts';
import type { Store, StoredRecord, Transaction } from '../store/store.ts';
import type { Audit } from './audit.ts';

/** Times are shown as dates whose years have four digits (RFC 3339 §5.6). */
const time = integer({ min: 0, max: Date.UTC(9999, 0) });

/**
 * A user's stay: a browser's, known by its cookie, or a program's, known by a family of refresh tokens. Of secrets only
 * hashes are kept. Times are milliseconds since the Unix epoch.
 */
const sessionFields = {
  kind: choice(['cookie', 'refresh']),
  userId: integer(),
  /** What the session is found by: the hash of the cookie's secret, or of the family's name. */
  lookupHash: text(),
  /** Of a family: the hashes of the refresh token that is good now, and of the one that it replaced at `lastSeenAt`. */
  tokenHash: optional(text()),
  previousHash: optional(text()),
  createdAt: time,
  lastSeenAt: time,
  address: text(),
  agent: text(),
};

export type SessionRecord = StoredRecord & Input<typeof sessionFields>;
type SessionKind = SessionRecord['kind'];

/** Where a session came from, for its owner to recognise it. */
export interface Origin {
  readonly address: string;
  readonly agent: string;
}

export interface StartedSession {
  /** The only copy of the cookie's secret, or of the refresh token. */
  readonly secret: string;
  readonly session: SessionRecord;
  /** How long the session may live at most, from its start. */
  readonly lifetimeSeconds: number;
}

export interface SessionOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly lifetimes: { readonly cookie: SessionLifetimes; readonly refresh: SessionLifetimes };
  /** A user who starts one more loses the oldest. */
  readonly perUserMax: number;
  /** The keys of the moment, which derive the successors of refresh tokens. */
  readonly ring: () => KeyRing;
  readonly audit: Audit;
}

/** The sessions of all users. Which user a session's `userId` is, and what they may do, is not known here. */
export function createSessions(store: Store, options: SessionOptions) {
  const { clock, random, lifetimes, perUserMax, ring, audit } = options;
  const misfit = misfitOf(sessionFields);
  const records = store.collection<SessionRecord>({
    name: 'sessions',
    parse: (record) => misfit(record) ?? (isSession(record) ? record : undefined),
    unique: { lookup: (session) => session.lookupHash },
    groups: { user: (session) => session.userId },
    whenFull: true,
  });
  /** What is seen of a record, which never changes: to write three dates takes longer than to find the session. */
  const written = new WeakMap<SessionRecord, string>();
  /** Which block of records the next sweep looks at. */
  let sweep = 0;

  /** Starts a session; the secret is the one of its cookie, or the first token of its family. */
  function start(transaction: Transaction, kind: SessionKind, userId: number, origin: Origin): StartedSession {
    const secret = kind === 'cookie' ? newSessionId(random) : newRefreshToken(random);
    const hash = secretHash(secret);
    const hashes = kind === 'cookie' ? { lookupHash: hash } : { lookupHash: familyHash(secret) ?? '', tokenHash: hash };
    const now = clock.now();
    const live = transaction.members(records, 'user', userId).filter((session) => endOf(session) > now);
    const tooMany = live.slice(0, Math.max(0, live.length + 1 - perUserMax));
    for (const { id } of tooMany) transaction.remove(records, id);
    sweepOne(transaction, now);
    const { address } = origin;
    const seen = { createdAt: now, lastSeenAt: now, address, agent: short(origin.agent) };
    const session = transaction.insert(records, { kind, userId, ...hashes, ...seen });
    return { secret, session, lifetimeSeconds: lifetimes[kind].maxSeconds };
  }

  /**
   * Exchanges a refresh token for its successor; `undefined` for one that is good for nothing. One that was used before
   * ends the family: it may be stolen. The caller is answered when this is durable: or else a crash would make the
   * successor look stolen. @throws what `Store.write` throws
   */
  async function refresh(token: string, { address, agent }: Origin): Promise<StartedSession | undefined> {
    const outcome = await store.write((transaction) => {
      const session = family(transaction, token);
      if (session?.tokenHash === undefined) return undefined;
      const now = clock.now();
      const tokenHash = secretHash(token);
      const lifetimeSeconds = lifetimes.refresh.maxSeconds;
      const decision = decideRefresh(session, tokenHash, endOf(session), now);
      if (decision === 'rotate') {
        const secret = successorOf(token, ring());
        const next = { tokenHash: secretHash(secret), previousHash: tokenHash, lastSeenAt: now };
        const rotated = { ...session, ...next, address, agent: short(agent) };
        return { secret, session: transaction.replace(records, session.id, rotated), lifetimeSeconds };
      }
      if (decision === 'repeat') {
        const secret = successorAgain(token, session.tokenHash, ring());
        return secret === undefined ? undefined : { secret, session, lifetimeSeconds };
      }
      transaction.remove(records, session.id);
      return decision === 'reuse' ? { reused: session } : undefined;
    });
    if (outcome?.reused === undefined) return outcome;
    const { userId, id: sessionId } = outcome.reused;
    audit('refresh_token_reused', { userId, sessionId, address });
    return undefined;
  }

  /**
   * Ends the family of a refresh token, whichever of its tokens it is. What is none, or has ended, is let pass
   * (RFC 7009 §2.2).
   */
  async function revoke(token: string, address: string): Promise<void> {
    const ended = await store.write((transaction) => {
      const session = family(transaction, token);
      if (session !== undefined) transaction.remove(records, session.id);
      return session;
    });
    if (ended !== undefined) audit('session_ended', { userId: ended.userId, sessionId: ended.id, address });
  }

  /** Ends the session of the cookie with this secret, or all of its user's; nothing happens where it has ended. */
  async function end(secret: string, everywhere: boolean, address: string): Promise<void> {
    const session = resume(secret);
    if (session === undefined) return;
    await store.write((transaction) => {
      if (everywhere) endAll(transaction, session.userId);
      else transaction.remove(records, session.id);
    });
    audit('logout', { userId: session.userId, sessionId: session.id, everywhere, address });
  }

  /** The live session of the cookie with this secret, noted as seen now; `undefined` when there is none. */
  function resume(secret: string): SessionRecord | undefined {
    const session = records.find('lookup', secretHash(secret));
    const now = clock.now();
    if (session?.kind !== 'cookie' || endOf(session) <= now) return undefined;
    if (lastSeenIsDue(session, now, lifetimes.cookie)) touch(session, now);
    return session;
  }

  /** What was found, unless it has ended. @throws CairnError `not_found` */
  function foundLive(session: SessionRecord | undefined): SessionRecord {
    if (session === undefined || endOf(session) <= clock.now()) throw notFound();
    return session;
  }

  /** A user's live sessions, the oldest first. */
  function of(userId: number): SessionRecord[] {
    const now = clock.now();
    return records.members('user', userId).filter((session) => endOf(session) > now);
  }

  /** What its owner sees of a session, as JSON; of its secret not even the hash. `currentId` is the one that asks. */
  function write(session: SessionRecord, currentId: number | undefined): string {
    let json = written.get(session);
    if (json === undefined) {
      const { id, userId, kind, address, agent } = session;
      const createdAt = new Date(session.createdAt).toISOString();
      const lastSeenAt = new Date(session.lastSeenAt).toISOString();
      const expiresAt = new Date(endOf(session)).toISOString();
      json = JSON.stringify({ id, userId, kind, createdAt, lastSeenAt, expiresAt, address, agent }).slice(0, -1);
      written.set(session, json);
    }
    return `${json},"current":${session.id === currentId}}`;
  }

  /** When the session ends if nothing more is heard of it. */
  function endOf(session: SessionRecord): number {
    return sessionEndsAt(session, lifetimes[session.kind]);
  }

  /** Ends every session of a user. */
  function endAll(transaction: Transaction, userId: number): void {
    for (const { id } of transaction.members(records, 'user', userId)) transaction.remove(records, id);
  }

  function family(transaction: Transaction, token: string): SessionRecord | undefined {
    const lookupHash = familyHash(token);
    const session = lookupHash === undefined ? undefined : transaction.find(records, 'lookup', lookupHash);
    return session?.kind === 'refresh' ? session : undefined;
  }

  /**
   * Removes sessions that have ended from one block of records. Each new session pays for one: so the work is bounded,
   * and over as many new sessions as there are blocks, everything is looked at.
   */
  function sweepOne(transaction: Transaction, now: number): void {
    const { blocks } = records.view();
    const block = blocks[sweep % Math.max(1, blocks.length)] ?? [];
    const ended = block.filter((session) => endOf(session) <= now).slice(0, limits.sessionsSweptMax);
    for (const { id } of ended) {
      const session = transaction.get(records, id);
      if (session !== undefined && endOf(session) <= now) transaction.remove(records, id);
    }
    if (ended.length < limits.sessionsSweptMax) sweep = (sweep + 1) % Math.max(1, blocks.length);
  }

  /** Nobody waits for this: after a crash the session may end earlier by that much, never later. */
  function touch({ id }: SessionRecord, now: number): void {
    const seen = store.write((transaction) => {
      const session = transaction.get(records, id);
      // Other requests of the same moment have come here too.
      if (session === undefined || !lastSeenIsDue(session, now, lifetimes.cookie)) return;
      transaction.replace(records, id, { ...session, lastSeenAt: now });
    });
    seen.catch(() => {});
  }

  return { records, start, refresh, revoke, end, resume, foundLive, of, write, endOf, endAll };
}

export type Sessions = ReturnType<typeof createSessions>;

/** Enough of a `User-Agent` to recognise a browser by. */
function short(agent: string): string {
  return agent.slice(0, limits.sessionAgentLengthMax);
}

function isSession(record: JsonObject & StoredRecord): record is JsonObject & SessionRecord {
  const { kind, userId, tokenHash, createdAt = null, lastSeenAt = null } = record;
  const isDated = [createdAt, lastSeenAt].every((moment) => faultOf(time.rule, moment) === undefined);
  return isDated && Number.isSafeInteger(userId) && (kind === 'cookie' || tokenHash !== undefined);
}
