import { createHash } from 'node:crypto';

import type { Clock } from '../base/clock.ts';
import type { JsonObject } from '../base/json.ts';
import type { Random } from '../base/random.ts';
import type { Collection, Store, StoredRecord, Transaction } from '../store/store.ts';
import { notFound } from './precondition.ts';

/** A user's stay, known by a secret of which only the hash is kept. Times are milliseconds since the Unix epoch. */
export interface SessionRecord extends StoredRecord {
  readonly kind: 'cookie';
  readonly userId: number;
  /** SHA-256 of the secret in base64url. A secret of 256 random bits needs no slow hash. */
  readonly secretHash: string;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** The end that no activity moves. */
  readonly expiresAt: number;
  readonly address: string;
  readonly agent: string;
}

export interface SessionLifetimes {
  readonly idleSeconds: number;
  readonly maxSeconds: number;
}

/** Where a session came from, for its owner to recognise it. */
export interface Origin {
  readonly address: string;
  readonly agent: string;
}

export interface StartedSession {
  /** The only copy of the secret, for the caller's cookie. */
  readonly secret: string;
  readonly session: SessionRecord;
}

/** The sessions of all users. Which user a session's `userId` is, and what they may do, is not known here. */
export class Sessions {
  readonly records: Collection<SessionRecord>;
  readonly lifetimes: SessionLifetimes;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(store: Store, clock: Clock, random: Random, lifetimes: SessionLifetimes) {
    this.#store = store;
    this.#clock = clock;
    this.#random = random;
    this.lifetimes = lifetimes;
    this.records = store.collection<SessionRecord>({
      name: 'sessions',
      parse: (record) => (isSession(record) ? record : undefined),
      unique: { secret: (session) => session.secretHash },
      groups: { user: (session) => session.userId },
    });
  }

  start(transaction: Transaction, userId: number, origin: Origin): StartedSession {
    const secret = this.#random(32).toString('base64url');
    const now = this.#clock.now();
    const session = transaction.insert(this.records, {
      kind: 'cookie',
      userId,
      secretHash: hashOf(secret),
      createdAt: now,
      lastSeenAt: now,
      expiresAt: now + this.lifetimes.maxSeconds * 1000,
      address: origin.address,
      agent: origin.agent.slice(0, 200),
    });
    return { secret, session };
  }

  /** The live session with this secret, noted as seen now; `undefined` when there is none or it has ended. */
  resume(secret: string): SessionRecord | undefined {
    const session = this.records.find('secret', hashOf(secret));
    const now = this.#clock.now();
    if (session === undefined || this.endOf(session) <= now) return undefined;
    if (now - session.lastSeenAt > (this.lifetimes.idleSeconds * 1000) / 12) this.#touch(session, now);
    return session;
  }

  /** @throws CairnError `not_found` */
  read(id: number): SessionRecord {
    const session = this.records.get(id);
    if (session === undefined) throw notFound();
    return session;
  }

  /** What its owner sees of a session, its secret's hash least of all. */
  present(session: SessionRecord): JsonObject {
    return {
      id: session.id,
      createdAt: new Date(session.createdAt).toISOString(),
      expiresAt: new Date(this.endOf(session)).toISOString(),
    };
  }

  /** When the session ends if nothing more is heard of it. */
  endOf(session: SessionRecord): number {
    return Math.min(session.expiresAt, session.lastSeenAt + this.lifetimes.idleSeconds * 1000);
  }

  /** Nobody waits for this: after a crash the session may end earlier by that much, never later. */
  #touch({ id }: SessionRecord, now: number): void {
    const seen = this.#store.write((transaction) => {
      const session = transaction.get(this.records, id);
      if (session !== undefined) transaction.replace(this.records, id, { ...session, lastSeenAt: now });
    });
    seen.catch(() => {});
  }

  /** Ends the session with this secret at once, if there is one. */
  async end(secret: string): Promise<void> {
    const session = this.records.find('secret', hashOf(secret));
    if (session !== undefined) await this.#store.write((transaction) => transaction.remove(this.records, session.id));
  }

  /** Ends every session of a user, but for the one with the id `except`. */
  endAll(transaction: Transaction, userId: number, except?: number): void {
    for (const { id } of transaction.members(this.records, 'user', userId)) {
      if (id !== except) transaction.remove(this.records, id);
    }
  }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

const numbers = ['id', 'revision', 'userId', 'createdAt', 'lastSeenAt', 'expiresAt'];
const strings = ['secretHash', 'address', 'agent'];

function isSession(record: JsonObject): record is JsonObject & SessionRecord {
  return (
    record['kind'] === 'cookie' &&
    numbers.every((name) => Number.isSafeInteger(record[name])) &&
    strings.every((name) => typeof record[name] === 'string')
  );
}
