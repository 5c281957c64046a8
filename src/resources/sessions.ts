import type { KeyRing } from '../auth/keys.ts';
import { decideRefresh, familyHash, newRefreshToken, successorAgain, successorOf } from '../auth/refresh.ts';
import { lastSeenIsDue, newSessionId, secretHash, sessionEndsAt, type SessionLifetimes } from '../auth/sessions.ts';
import type { JsonObject } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import type { Collection, Store, StoredRecord, Transaction } from '../store/store.ts';
import { notFound } from './precondition.ts';

/**
 * A user's stay: a browser's, known by its cookie, or a program's, known by a family of refresh tokens. Of secrets only
 * hashes are kept. Times are milliseconds since the Unix epoch.
 */
export interface SessionRecord extends StoredRecord {
  readonly kind: 'cookie' | 'refresh';
  readonly userId: number;
  /** What the session is found by: the hash of the cookie's secret, or of the family's name. */
  readonly lookupHash: string;
  /** Of a family: the hashes of the refresh token that is good now, and of the one that it replaced at `lastSeenAt`. */
  readonly tokenHash?: string;
  readonly previousHash?: string;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  readonly address: string;
  readonly agent: string;
}

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

/** What a refresh came to. `ended`: the family has just been ended, because a token was used again. */
export type Refreshed = StartedSession | { readonly ended: SessionRecord } | undefined;

export interface SessionOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly lifetimes: { readonly cookie: SessionLifetimes; readonly refresh: SessionLifetimes };
  /** A user who starts one more loses the oldest. */
  readonly perUserMax: number;
  /** The keys of the moment, which derive the successors of refresh tokens. */
  readonly ring: () => KeyRing;
}

/** The sessions of all users. Which user a session's `userId` is, and what they may do, is not known here. */
export class Sessions {
  readonly records: Collection<SessionRecord>;
  readonly #store: Store;
  readonly #options: SessionOptions;
  /** What is seen of a record, which never changes: to write three dates takes longer than to find the session. */
  readonly #written = new WeakMap<SessionRecord, string>();
  /** Which block of records the next sweep looks at. */
  #sweep = 0;

  constructor(store: Store, options: SessionOptions) {
    this.#store = store;
    this.#options = options;
    this.records = store.collection<SessionRecord>({
      name: 'sessions',
      parse: (record) => (isSession(record) ? record : undefined),
      unique: { lookup: (session) => session.lookupHash },
      groups: { user: (session) => session.userId },
      whenFull: true,
    });
  }

  /** Starts a session; the secret is the one of its cookie, or the first token of its family. */
  start(transaction: Transaction, kind: SessionRecord['kind'], userId: number, origin: Origin): StartedSession {
    const { random, lifetimes } = this.#options;
    const secret = kind === 'cookie' ? newSessionId(random) : newRefreshToken(random);
    const hash = secretHash(secret);
    const hashes = kind === 'cookie' ? { lookupHash: hash } : { lookupHash: familyHash(secret) ?? '', tokenHash: hash };
    const now = this.#options.clock.now();
    const own = transaction.members(this.records, 'user', userId);
    for (const { id } of own.slice(0, Math.max(0, own.length + 1 - this.#options.perUserMax))) {
      transaction.remove(this.records, id);
    }
    this.#sweepOne(transaction, now);
    const { address } = origin;
    const seen = { createdAt: now, lastSeenAt: now, address, agent: short(origin.agent) };
    const session = transaction.insert(this.records, { kind, userId, ...hashes, ...seen });
    return { secret, session, lifetimeSeconds: lifetimes[kind].maxSeconds };
  }

  /**
   * Exchanges a refresh token for its successor; `undefined` for one that is good for nothing. The caller is answered
   * when this is durable: or else a crash would make the successor look stolen.
   */
  refresh(transaction: Transaction, token: string, { address, agent }: Origin): Refreshed {
    const session = this.#family(transaction, token);
    if (session?.tokenHash === undefined) return undefined;
    const now = this.#options.clock.now();
    const ring = this.#options.ring();
    const tokenHash = secretHash(token);
    const lifetimeSeconds = this.#options.lifetimes.refresh.maxSeconds;
    const { lastSeenAt: rotatedAt, tokenHash: currentHash, previousHash } = session;
    const state = { currentHash, previousHash, rotatedAt, endsAt: this.endOf(session) };
    switch (decideRefresh(state, tokenHash, now)) {
      case 'rotate': {
        const secret = successorOf(token, ring);
        const next = { tokenHash: secretHash(secret), previousHash: tokenHash, lastSeenAt: now };
        const rotated = { ...session, ...next, address, agent: short(agent) };
        return { secret, session: transaction.replace(this.records, session.id, rotated), lifetimeSeconds };
      }
      case 'repeat': {
        const secret = successorAgain(token, currentHash, ring);
        return secret === undefined ? undefined : { secret, session, lifetimeSeconds };
      }
      case 'reuse':
        transaction.remove(this.records, session.id);
        return { ended: session };
      case 'ended':
        transaction.remove(this.records, session.id);
        return undefined;
    }
  }

  /** Ends the family of a refresh token, whichever of its tokens it is, and returns it if there is one. */
  revoke(transaction: Transaction, token: string): SessionRecord | undefined {
    const session = this.#family(transaction, token);
    if (session !== undefined) transaction.remove(this.records, session.id);
    return session;
  }

  /** The live session of the cookie with this secret, noted as seen now; `undefined` when there is none. */
  resume(secret: string): SessionRecord | undefined {
    const session = this.records.find('lookup', secretHash(secret));
    const now = this.#options.clock.now();
    if (session?.kind !== 'cookie' || this.endOf(session) <= now) return undefined;
    if (lastSeenIsDue(session, now, this.#options.lifetimes.cookie)) this.#touch(session, now);
    return session;
  }

  /** The session with this id, unless it has ended. @throws CairnError `not_found` */
  read(id: number): SessionRecord {
    const session = this.records.get(id);
    if (session === undefined || this.endOf(session) <= this.#options.clock.now()) throw notFound();
    return session;
  }

  /** A user's live sessions, the oldest first. */
  of(userId: number): SessionRecord[] {
    const now = this.#options.clock.now();
    return this.records.members('user', userId).filter((session) => this.endOf(session) > now);
  }

  /** What its owner sees of a session, as JSON; of its secret not even the hash. `currentId` is the one that asks. */
  write(session: SessionRecord, currentId: number | undefined): string {
    let written = this.#written.get(session);
    if (written === undefined) {
      const { id, userId, kind, address, agent } = session;
      const createdAt = new Date(session.createdAt).toISOString();
      const lastSeenAt = new Date(session.lastSeenAt).toISOString();
      const expiresAt = new Date(this.endOf(session)).toISOString();
      written = JSON.stringify({ id, userId, kind, createdAt, lastSeenAt, expiresAt, address, agent }).slice(0, -1);
      this.#written.set(session, written);
    }
    return `${written},"current":${session.id === currentId}}`;
  }

  /** When the session ends if nothing more is heard of it. */
  endOf(session: SessionRecord): number {
    return sessionEndsAt(session, this.#options.lifetimes[session.kind]);
  }

  /** Ends every session of a user. */
  endAll(transaction: Transaction, userId: number): void {
    for (const { id } of transaction.members(this.records, 'user', userId)) transaction.remove(this.records, id);
  }

  #family(transaction: Transaction, token: string): SessionRecord | undefined {
    const lookupHash = familyHash(token);
    const session = lookupHash === undefined ? undefined : transaction.find(this.records, 'lookup', lookupHash);
    return session?.kind === 'refresh' ? session : undefined;
  }

  /**
   * Removes sessions that have ended from one block of records. Each new session pays for one: so the work is bounded,
   * and over as many new sessions as there are blocks, everything is looked at.
   */
  #sweepOne(transaction: Transaction, now: number): void {
    const view = this.records.view();
    const blocks = [...view.blocks()];
    view.close();
    const block = blocks[this.#sweep % Math.max(1, blocks.length)] ?? [];
    const ended = block.filter((session) => this.endOf(session) <= now).slice(0, limits.sessionsSweptMax);
    for (const { id } of ended) {
      const session = transaction.get(this.records, id);
      if (session !== undefined && this.endOf(session) <= now) transaction.remove(this.records, id);
    }
    if (ended.length < limits.sessionsSweptMax) this.#sweep = (this.#sweep + 1) % Math.max(1, blocks.length);
  }

  /** Nobody waits for this: after a crash the session may end earlier by that much, never later. */
  #touch({ id }: SessionRecord, now: number): void {
    const seen = this.#store.write((transaction) => {
      const session = transaction.get(this.records, id);
      // Other requests of the same moment have come here too.
      if (session === undefined || !lastSeenIsDue(session, now, this.#options.lifetimes.cookie)) return;
      transaction.replace(this.records, id, { ...session, lastSeenAt: now });
    });
    seen.catch(() => {});
  }
}

/** Enough of a `User-Agent` to recognise a browser by. */
function short(agent: string): string {
  return agent.slice(0, limits.sessionAgentLengthMax);
}

const times = ['createdAt', 'lastSeenAt'];
const strings = ['lookupHash', 'address', 'agent'];
/** Times are shown as dates whose years have four digits (RFC 3339 §5.6). */
const timeMax = Date.UTC(9999, 0);

function isSession(record: JsonObject & StoredRecord): record is JsonObject & SessionRecord {
  const { kind, userId, tokenHash, previousHash } = record;
  const hashes = [tokenHash, previousHash];
  return (
    (kind === 'cookie' || (kind === 'refresh' && tokenHash !== undefined)) &&
    Number.isSafeInteger(userId) &&
    times.every((name) => isTime(record[name])) &&
    strings.every((name) => typeof record[name] === 'string') &&
    hashes.every((hash) => hash === undefined || typeof hash === 'string')
  );
}

function isTime(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= timeMax;
}
