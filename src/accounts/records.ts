import type { Role } from '../auth/access.ts';
import { storedRecordParser } from '../schema/stored.ts';
import { emailKey, idField, type CompleteInput, type Shape } from '../schema/field.ts';
import type { Collection, Store, StoredRecord } from '../store/store.ts';
import { userFields } from './user-fields.ts';

export interface UserRecord extends StoredRecord {
  readonly name: string;
  readonly email: string;
  readonly role: Role;
  /** A PHC string. A user without one cannot sign in. */
  readonly passwordHash?: string | undefined;
  /**
   * When a new password, a new role or a sign-out everywhere ended all sessions of the user, in
   * milliseconds since the epoch. Bearer tokens issued earlier cannot write users or sessions. A
   * token dated by a clock that was ahead counts as issued later.
   */
  readonly signedOutAt?: number | undefined;
}

const storedUserFields = {
  ...userFields,
  // A role stays even if no declaration names it any more.
  role: { kind: 'text', default: 'member' },
  passwordHash: { kind: 'text', optional: true },
  signedOutAt: { kind: 'number', optional: true },
} as const satisfies Shape;

const common = {
  userId: { kind: 'integer', min: 1 },
  kind: {
    kind: 'choice',
    values: ['cookie', 'refresh'],
    description: 'A browser, or a program with a refresh token.',
  },
  address: { kind: 'text', example: '192.0.2.1' },
  agent: { kind: 'text', example: 'curl/8.5.0' },
} as const satisfies Shape;

export const sessionFields = {
  id: idField,
  ...common,
  createdAt: { kind: 'timestamp' },
  lastSeenAt: { kind: 'timestamp' },
  expiresAt: { kind: 'timestamp' },
  current: { kind: 'boolean', description: 'True if it is the session of this request.' },
} as const satisfies Shape;

const storedSessionFields = {
  ...common,
  /**
   * The hash of the cookie's secret, or of the refresh token family's name. Identifies the session.
   */
  lookupHash: { kind: 'text' },
  /** The hashes of the current refresh token, and of the one it replaced at `lastSeenAt`. */
  tokenHash: { kind: 'text', optional: true },
  previousHash: { kind: 'text', optional: true },
  /** Milliseconds since the epoch. */
  createdAt: { kind: 'integer' },
  lastSeenAt: { kind: 'integer' },
} as const satisfies Shape;

/**
 * A session: the cookie of a browser, or a program's family of refresh tokens. Only hashes
 * of secrets are stored.
 */
export type SessionRecord = StoredRecord & CompleteInput<typeof storedSessionFields>;
export type SessionKind = SessionRecord['kind'];

export const apiKeyFields = {
  id: idField,
  userId: { kind: 'integer', min: 1 },
  name: { kind: 'text', min: 1, example: 'Backup script' },
  readOnly: { kind: 'boolean', default: false, description: 'True if it is for GET only.' },
  createdAt: { kind: 'timestamp' },
  expiresAt: { kind: 'timestamp', optional: true },
  lastUsedAt: { kind: 'timestamp', optional: true, description: 'To the hour.' },
} as const satisfies Shape;

const storedApiKeyFields = { ...apiKeyFields, hash: { kind: 'text' } } as const satisfies Shape;

/** An API key. Only its hash is stored. */
export type ApiKeyRecord = StoredRecord & CompleteInput<typeof storedApiKeyFields>;

export interface AccountRecords {
  readonly users: Collection<UserRecord>;
  readonly sessions: Collection<SessionRecord>;
  readonly apiKeys: Collection<ApiKeyRecord>;
}

export function accountRecords(store: Pick<Store, 'collection'>): AccountRecords {
  return {
    apiKeys: store.collection<ApiKeyRecord>({
      name: 'api-keys',
      isServers: true,
      parse: storedRecordParser(storedApiKeyFields),
      unique: { hash: ({ hash }) => hash },
      groups: { user: ({ userId }) => userId },
    }),
    sessions: store.collection<SessionRecord>({
      name: 'sessions',
      isServers: true,
      parse: storedRecordParser(storedSessionFields, isSound),
      unique: { lookup: (session) => session.lookupHash },
      groups: { user: (session) => session.userId },
      whenFull: 'written',
    }),
    users: store.collection<UserRecord>({
      name: 'users',
      isServers: true,
      parse: storedRecordParser(storedUserFields),
      unique: { email: (user) => emailKey(user.email) },
      groups: { administrators: (user) => (user.role === 'admin' ? 'admin' : undefined) },
      whenFull: 'changed',
    }),
  };
}

function isSound(session: CompleteInput<typeof storedSessionFields>): boolean {
  const { kind, userId, tokenHash, createdAt, lastSeenAt } = session;
  const isWhole = [userId, createdAt, lastSeenAt].every((value) => Number.isSafeInteger(value));
  const isDated = [createdAt, lastSeenAt].every((time) => time >= 0 && time <= lastTime);
  return isWhole && isDated && (kind === 'cookie' || tokenHash !== undefined);
}

/** The last time with a four-digit year (RFC 3339 §5.6), in milliseconds. */
const lastTime = Date.UTC(9999, 0);
