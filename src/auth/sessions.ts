import { hash } from 'node:crypto';
import type { Random } from '../base/system.ts';

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
