/**
 * The rules of sessions: of browsers, known by a cookie, and of programs, known by refresh tokens.
 *
 * Refresh tokens are opaque and used once; each is replaced by its successor (RFC 9700 §4.14.2). A token is the name of
 * its family (24 characters), which stays, and a secret (43 characters), which changes: base64url of 144 and 256 random
 * bits. The name finds the family even of a token that was replaced long ago. It is as unguessable as a secret, since
 * it can end the family. Both are stored as hashes.
 *
 * The successor's secret is HMAC-SHA-256(a key of its own, the token). So a repeated request gets the same successor,
 * which need not be stored in the clear.
 */
import { hash } from 'node:crypto';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import type { Key, KeyRing } from './keys.ts';

/** A session ends when it was not used for `idleSeconds`, and after `maxSeconds` in any case. */
const lifetimes = {
  cookie: { idleSeconds: limits.cookieIdleSecondsMax, maxSeconds: limits.cookieLifetimeSecondsMax },
  refresh: { idleSeconds: limits.refreshIdleSecondsMax, maxSeconds: limits.refreshLifetimeSecondsMax },
};

/** When a session began and was last used, in milliseconds since the epoch. */
export interface SessionTimes {
  readonly kind: keyof typeof lifetimes;
  readonly createdAt: number;
  readonly lastSeenAt: number;
}

/** A session id for the cookie: 256 bits as 43 characters of base64url. */
export function newSessionId(random: Random): string {
  return random(32).toString('base64url');
}

/**
 * What is stored in place of a secret that Cairn made: SHA-256 in base64url. Salt and cost would add nothing, because
 * nobody can guess 256 random bits; and a look-up by the hash reveals nothing by its time.
 */
export function secretHash(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** When the session ends if it is not used again, in milliseconds since the epoch. */
export function sessionEndsAt({ kind, createdAt, lastSeenAt }: SessionTimes): number {
  const { idleSeconds, maxSeconds } = lifetimes[kind];
  return Math.min(lastSeenAt + idleSeconds * 1000, createdAt + maxSeconds * 1000);
}

/**
 * Whether the session has begun and not ended at `now`. One from the future was started or used by a clock that was
 * wrong, so nobody can tell when it should end.
 */
export function isLive(session: SessionTimes, now: number): boolean {
  const { createdAt, lastSeenAt } = session;
  return now < sessionEndsAt(session) && Math.max(createdAt, lastSeenAt) <= now + limits.clockSkewSecondsMax * 1000;
}

/** Whether a use of the session at `now` is worth a write: at most one in a twelfth of the idle time. */
export function lastSeenIsDue({ kind, lastSeenAt }: SessionTimes, now: number): boolean {
  return now - lastSeenAt >= (lifetimes[kind].idleSeconds * 1000) / 12;
}

/** What is stored of a family of refresh tokens. */
export interface RefreshFamily extends SessionTimes {
  /** The hash of the token that is good now, which replaced the previous one at `lastSeenAt`. */
  readonly tokenHash?: string | undefined;
  readonly previousHash?: string | undefined;
}

/** The first token of a new family. */
export function newRefreshToken(random: Random): string {
  return random(18).toString('base64url') + random(32).toString('base64url');
}

/** The hash of the family's name; `undefined` for anything that is no refresh token. */
export function familyHash(token: string): string | undefined {
  return tokenForm.test(token) ? secretHash(token.slice(0, nameLength)) : undefined;
}

/** The successor of a token, derived by the key that signs. */
export function successorOf(token: string, { keys: [key] }: KeyRing): string {
  return derive(token, key);
}

/** The successor with this hash, derived by the key that derived it then; `undefined` if that key has left the ring. */
export function successorAgain(token: string, hash: string, ring: KeyRing): string | undefined {
  return ring.keys.map((key) => derive(token, key)).find((successor) => secretHash(successor) === hash);
}

/**
 * What is done with a token of the family: `rotate` it, `repeat` the answer that it got, end the family because its
 * token was used again and may be stolen (`reuse`), or end it because its time is over (`ended`).
 */
export type RefreshDecision = 'rotate' | 'repeat' | 'reuse' | 'ended';

/**
 * | The token is             | and                              | then   |
 * |--------------------------|----------------------------------|--------|
 * | any                      | the family is not live           | ended  |
 * | the current one          |                                  | rotate |
 * | the previous one         | it was replaced at most 30 s ago | repeat |
 * | the previous one         | it was replaced earlier          | reuse  |
 * | an older one, or made up |                                  | reuse  |
 */
export function decideRefresh(family: RefreshFamily, presentedHash: string, now: number): RefreshDecision {
  if (!isLive(family, now)) return 'ended';
  if (presentedHash === family.tokenHash) return 'rotate';
  const isRepeatable = now <= family.lastSeenAt + limits.refreshRepeatSecondsMax * 1000;
  return presentedHash === family.previousHash && isRepeatable ? 'repeat' : 'reuse';
}

const nameLength = 24;
const tokenForm = /^[\w-]{67}$/;

function derive(token: string, key: Key): string {
  return token.slice(0, nameLength) + key.successorMac(token);
}
