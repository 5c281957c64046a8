/**
 * Sessions of browsers, known by a cookie, and of programs, known by refresh tokens.
 *
 * Refresh tokens are opaque, used once, each replaced by its successor (RFC 9700 §4.14.2). A token is the name of its
 * family (24 characters), which stays, and a secret (43 characters), which changes: base64url of 144 and 256 random
 * bits. The name finds the family even for a token that was replaced long ago; it is as unguessable as a secret, since
 * whoever has it can end the family. Both are stored as hashes.
 *
 * The successor's secret is HMAC-SHA-256(a key of its own, the token). Whoever repeats a request gets the same
 * successor, and it need not be kept anywhere in the clear.
 */
import { hash } from 'node:crypto';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import type { Key, KeyRing } from './keys.ts';

/** A session ends when nobody used it for the one time, and at the latest after the other. */
export interface SessionLifetimes {
  readonly idleSeconds: number;
  readonly maxSeconds: number;
}

/** When a session began and was last used, in milliseconds since the epoch. */
export interface SessionTimes {
  readonly createdAt: number;
  readonly lastSeenAt: number;
}

/** A session id for the cookie: 256 bits as 43 characters of base64url. */
export function newSessionId(random: Random): string {
  return random(32).toString('base64url');
}

/**
 * What is stored in place of a secret that Cairn made: SHA-256 in base64url. A guess at 256 random bits is hopeless,
 * so that neither salt nor cost would add anything; and a look-up by the hash tells nothing by its time.
 */
export function secretHash(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** When the session ends if it is not used again, in milliseconds since the epoch. */
export function sessionEndsAt({ createdAt, lastSeenAt }: SessionTimes, lifetimes: SessionLifetimes): number {
  return Math.min(lastSeenAt + lifetimes.idleSeconds * 1000, createdAt + lifetimes.maxSeconds * 1000);
}

/** Whether a use of the session at `now` is worth writing down: at most once in a twelfth of the idle time. */
export function lastSeenIsDue({ lastSeenAt }: SessionTimes, now: number, { idleSeconds }: SessionLifetimes): boolean {
  return now - lastSeenAt >= (idleSeconds * 1000) / 12;
}

/** What is stored of a family. */
export interface RefreshFamily {
  /** The hash of the token that is good now, which replaced the one before it at `lastSeenAt`. */
  readonly tokenHash?: string | undefined;
  readonly previousHash?: string | undefined;
  readonly lastSeenAt: number;
}

/** The first token of a new family. */
export function newRefreshToken(random: Random): string {
  return random(18).toString('base64url') + random(32).toString('base64url');
}

/** The hash of the family's name; `undefined` for what is no refresh token. */
export function familyHash(token: string): string | undefined {
  return tokenForm.test(token) ? secretHash(token.slice(0, nameLength)) : undefined;
}

/** The successor that the signing key derives. */
export function successorOf(token: string, { keys: [key] }: KeyRing): string {
  return derive(token, key);
}

/** The successor with this hash, by whichever key derived it; `undefined` when that key has left the ring. */
export function successorAgain(token: string, hash: string, ring: KeyRing): string | undefined {
  return ring.keys.map((key) => derive(token, key)).find((successor) => secretHash(successor) === hash);
}

/**
 * What a token of the family is good for: to `rotate` it, to `repeat` what it got, or to end a family whose token was
 * used again (`reuse`) and may be stolen.
 *
 * | The token is                  | and                            | then   |
 * |-------------------------------|--------------------------------|--------|
 * | any                           | the family's end has come      | ended  |
 * | the current one               |                                | rotate |
 * | the one before                | it was replaced at most 30 s ago | repeat |
 * | the one before                | it was replaced longer ago     | reuse  |
 * | an older one, or made up      |                                | reuse  |
 */
export function decideRefresh(family: RefreshFamily, presentedHash: string, endsAt: number, now: number) {
  if (now >= endsAt) return 'ended';
  if (presentedHash === family.tokenHash) return 'rotate';
  const isRepeatable = now <= family.lastSeenAt + limits.refreshRepeatSecondsMax * 1000;
  return presentedHash === family.previousHash && isRepeatable ? 'repeat' : 'reuse';
}

const nameLength = 24;
const tokenForm = /^[\w-]{67}$/;

function derive(token: string, key: Key): string {
  return token.slice(0, nameLength) + key.successorMac(token);
}
