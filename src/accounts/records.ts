import type { Role } from '../auth/access.ts';
import type { JsonObject } from '../base/json.ts';
import { storedRecordCheck } from '../schema/check.ts';
import { boolean, choice, id, integer, optional, text, timestamp, type Input } from '../schema/field.ts';
import { emailKey } from '../schema/field.ts';
import { ruleViolation } from '../schema/rules.ts';
import type { Collection, Store, StoredRecord } from '../store/store.ts';
import { userFields } from './user-fields.ts';

export interface UserRecord extends StoredRecord {
  readonly name: string;
  readonly email: string;
  readonly role: Role;
  /** A PHC string. A user without one cannot sign in. */
  readonly passwordHash?: string | undefined;
  /**
   * When all sessions of the user were ended at once, by a new password or a sign-out everywhere, in milliseconds since
   * the epoch: bearer tokens that were issued before write no users and sessions.
   */
  readonly signedOutAt?: number | undefined;
}

const common = {
  userId: integer({ min: 1 }),
  kind: choice(['cookie', 'refresh'], { description: 'A browser, or a program with a refresh token.' }),
  address: text({ example: '192.0.2.1' }),
  agent: text({ example: 'curl/8.5.0' }),
};

/** What a session's user sees of it. */
export const sessionFields = {
  id: id(),
  ...common,
  createdAt: timestamp(),
  lastSeenAt: timestamp(),
  expiresAt: timestamp(),
  current: boolean({ description: 'Whether it is the session of this request.' }),
};

/** Milliseconds since the epoch, in a year of four digits (RFC 3339 §5.6). */
const time = integer({ min: 0, max: Date.UTC(9999, 0) });

const storedSessionFields = {
  ...common,
  /** The hash that the session is found by: of the cookie's secret, or of the name of the refresh tokens' family. */
  lookupHash: text(),
  /** The hash of the refresh token that is good now, and of the one that it replaced at `lastSeenAt`. */
  tokenHash: optional(text()),
  previousHash: optional(text()),
  createdAt: time,
  lastSeenAt: time,
};

/**
 * A session: a browser's, known by its cookie, or a program's, known by a family of refresh tokens. Only hashes of
 * secrets are stored.
 */
export type SessionRecord = StoredRecord & Input<typeof storedSessionFields>;
export type SessionKind = SessionRecord['kind'];

/** The collections of users and of their sessions. */
export interface AccountRecords {
  readonly users: Collection<UserRecord>;
  readonly sessions: Collection<SessionRecord>;
}

/** Registers both collections with a store that has not started. */
export function accountRecords(store: Store): AccountRecords {
  const userMisfit = storedRecordCheck(userFields);
  const sessionMisfit = storedRecordCheck(storedSessionFields);
  return {
    sessions: store.collection<SessionRecord>({
      name: 'sessions',
      parse: (record) => sessionMisfit(record) ?? (isSession(record) ? record : undefined),
      unique: { lookup: (session) => session.lookupHash },
      groups: { user: (session) => session.userId },
      whenFull: true,
    }),
    users: store.collection<UserRecord>({
      name: 'users',
      parse: (record) => userMisfit(record) ?? (isUser(record) ? record : undefined),
      unique: { email: (user) => emailKey(user.email) },
      groups: { administrators: (user) => (user.role === 'admin' ? 'admin' : undefined) },
    }),
  };
}

function isUser(record: JsonObject & StoredRecord): record is JsonObject & UserRecord {
  const { passwordHash = '', signedOutAt = 0 } = record;
  return typeof passwordHash === 'string' && typeof signedOutAt === 'number';
}

function isSession(record: JsonObject & StoredRecord): record is JsonObject & SessionRecord {
  const { kind, userId, tokenHash, createdAt = null, lastSeenAt = null } = record;
  const isDated = [createdAt, lastSeenAt].every((moment) => ruleViolation(time.rule, moment) === undefined);
  return isDated && Number.isSafeInteger(userId) && (kind === 'cookie' || tokenHash !== undefined);
}
