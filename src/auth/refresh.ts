/**
 * Refresh tokens: opaque, used once, each replaced by its successor (RFC 9700 §4.14.2).
 *
 * A token is the name of its family (24 characters), which stays, and a secret (43 characters), which changes:
 * base64url of 144 and 256 random bits. The name finds the family even for a token that was replaced long ago; it is
 * as unguessable as a secret, because whoever has it can end the family. Both are stored as hashes.
 *
 * The successor's secret is HMAC-SHA-256(a key of its own, the token). Whoever repeats a request gets the same
 * successor, and it need not be kept anywhere in the clear.
 */
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import type { Key, KeyRing } from './keys.ts';
import { secretHash } from './sessions.ts';

/** What is stored of a family. */
export interface RefreshState {
  /** The hash of the token that is good now. */
  readonly currentHash: string;
  /** The hash of the one before it. */
  readonly previousHash: string | undefined;
  /** When the current token replaced the previous one, in milliseconds since the epoch. */
  readonly rotatedAt: number;
  /** When the family ends: it has been idle, or it is old. */
  readonly endsAt: number;
}

/** `rotate`: answer with the successor. `repeat`: again. `reuse`: it may be stolen, so end the family. */
export type RefreshDecision = 'rotate' | 'repeat' | 'reuse' | 'ended';

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
 * What a token of the family is good for.
 *
 * | The token is                  | and                            | then   |
 * |-------------------------------|--------------------------------|--------|
 * | any                           | the family's end has come      | ended  |
 * | the current one               |                                | rotate |
 * | the one before                | it was replaced at most 30 s ago | repeat |
 * | the one before                | it was replaced longer ago     | reuse  |
 * | an older one, or made up      |                                | reuse  |
 */
export function decideRefresh(state: RefreshState, presentedHash: string, now: number): RefreshDecision {
  if (now >= state.endsAt) return 'ended';
  if (presentedHash === state.currentHash) return 'rotate';
  const repeatable = now <= state.rotatedAt + limits.refreshRepeatSecondsMax * 1000;
  return presentedHash === state.previousHash && repeatable ? 'repeat' : 'reuse';
}

const nameLength = 24;
const tokenForm = /^[\w-]{67}$/;

function derive(token: string, key: Key): string {
  return token.slice(0, nameLength) + key.successorMac(token);
}
