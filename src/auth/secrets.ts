/**
 * The rules of sessions: of browsers, identified by a cookie, and of programs, identified by
 * refresh tokens.
 *
 * A refresh token is opaque and used once: its successor replaces it (RFC 9700 §4.14.2). It
 * consists of its family's name (24 characters), which stays, and a secret (43 characters), which
 * changes: base64url of 144 and 256 random bits. The name identifies the family of even a long
 * replaced token, and can end it, so it must be unguessable too. Only hashes of both are stored.
 *
 * The successor's secret is HMAC-SHA-256(a separate key, the token), so a repeated request gets the
 * same successor although only its hash is stored.
 */
import { hash } from 'node:crypto';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import type { SigningKey, KeyRing } from './keys.ts';

/** A session ends after `idleSeconds` without use, and after `maxSeconds` in any case. */
const lifetimes = {
  cookie: { idleSeconds: limits.cookieIdleSecondsMax, maxSeconds: limits.cookieLifetimeSecondsMax },
  refresh: {
    idleSeconds: limits.refreshIdleSecondsMax,
    maxSeconds: limits.refreshLifetimeSecondsMax,
  },
  invitation: { idleSeconds: limits.invitationSeconds, maxSeconds: limits.invitationSeconds },
};

/**
 * Stands in an invitation for the hash of a refresh token. Earlier versions read an invitation as a
 * session that no token matches, because hashes are longer.
 */
export const invitationMark = 'invitation';

/** When a session started and was last used, in milliseconds since the epoch. */
interface SessionTimes {
  readonly kind: 'cookie' | 'refresh';
  readonly tokenHash?: string | undefined;
  readonly createdAt: number;
  readonly lastSeenAt: number;
}

/** Returns a random secret for the cookie: 256 bits as 43 characters of base64url. */
export function newSessionId(random: Random): string {
  return random(32).toString('base64url');
}

/**
 * Returns the hash stored in place of a random secret: SHA-256 in base64url. Salt and cost would
 * add nothing, because nobody can guess 256 random bits, and the duration of a look-up by hash
 * reveals nothing.
 */
export function secretHash(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** Returns when the session ends unless it is used again, in milliseconds since the epoch. */
export function sessionEndsAt({ kind, tokenHash, createdAt, lastSeenAt }: SessionTimes): number {
  const { idleSeconds, maxSeconds } = lifetimes[tokenHash === invitationMark ? 'invitation' : kind];
  return Math.min(lastSeenAt + idleSeconds * 1000, createdAt + maxSeconds * 1000);
}

export function isLive(session: SessionTimes, now: number): boolean {
  return now < sessionEndsAt(session);
}

/** True if a use at `now` must be recorded: at most once in a twelfth of the idle time. */
export function lastSeenIsDue({ kind, lastSeenAt }: SessionTimes, now: number): boolean {
  return now - lastSeenAt >= (lifetimes[kind].idleSeconds * 1000) / 12;
}

interface RefreshFamily extends SessionTimes {
  /** `tokenHash` belongs to the current token, which replaced the previous one at `lastSeenAt`. */
  readonly previousHash?: string | undefined;
}

export function newRefreshToken(random: Random): string {
  return random(18).toString('base64url') + random(32).toString('base64url');
}

/** Returns the hash of the family's name; `undefined` if this is not a refresh token. */
export function familyHash(token: string): string | undefined {
  return tokenForm.test(token) ? secretHash(token.slice(0, nameLength)) : undefined;
}

export function deriveSuccessor(token: string, { keys: [key] }: KeyRing): string {
  return derive(token, key);
}

/**
 * Returns the successor with this hash; `undefined` if the key that derived it has left the ring.
 */
export function successorAgain(token: string, hash: string, ring: KeyRing): string | undefined {
  return ring.keys
    .map((key) => derive(token, key))
    .find((successor) => secretHash(successor) === hash);
}

/**
 * `rotate` the token, `repeat` the earlier response, or end the family: because the token may be
 * stolen (`reuse`), or because the family has expired (`ended`).
 */
type RefreshDecision = 'rotate' | 'repeat' | 'reuse' | 'ended';

/**
 * Decides about a token of the family:
 *
 * | The token is       | and                              | decision |
 * |--------------------|----------------------------------|----------|
 * | any                | the family is not live           | ended    |
 * | the current one    |                                  | rotate   |
 * | the previous one   | it was replaced at most 30 s ago | repeat   |
 * | the previous one   | it was replaced earlier          | reuse    |
 * | older, or invented |                                  | reuse    |
 */
export function decideRefresh(
  family: RefreshFamily,
  presentedHash: string,
  now: number,
): RefreshDecision {
  if (!isLive(family, now)) return 'ended';
  if (presentedHash === family.tokenHash) return 'rotate';
  const { lastSeenAt, previousHash } = family;
  const isLate = now > lastSeenAt + limits.refreshRepeatSecondsMax * 1000;
  return presentedHash === previousHash && !isLate ? 'repeat' : 'reuse';
}

const nameLength = 24;
const tokenForm = /^[\w-]{67}$/;

function derive(token: string, key: SigningKey): string {
  return token.slice(0, nameLength) + key.successorMac(token);
}
