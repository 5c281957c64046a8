/** The claims of an access token (RFC 7519 §4.1), after `jws.ts` has verified its signature. */
import { parseJsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { isRole, type TokenPrincipal } from './access.ts';

/** The user of a token, and its validity in seconds since the epoch. */
export interface Claims {
  readonly bearer: TokenPrincipal;
  readonly from: number;
  /** The first second after its validity. */
  readonly until: number;
}

/** Parses claims, without checking the time; `undefined` unless they have the form Cairn issues. */
export function parseClaims(payload: Buffer): Claims | undefined {
  const { userId, role, iat, exp, nbf = 0, jti = '', aud } = parseJsonObject(payload) ?? {};
  if (!isRole(role) || typeof userId !== 'number' || !Number.isSafeInteger(userId) || userId < 1)
    return undefined;
  if (!isNumericDate(iat) || !isNumericDate(exp) || !isNumericDate(nbf)) return undefined;
  if (exp <= iat || exp - iat > limits.accessTokenLifetimeSecondsMax) return undefined;
  // A token with an audience is for another service (RFC 7519 §4.1.3): Cairn has no name.
  if (typeof jti !== 'string' || aud !== undefined) return undefined;
  const bearer: TokenPrincipal = { kind: 'bearer', userId, role, issuedAt: iat };
  // Tolerates a signer whose clock is ahead, without extending the lifetime.
  return { bearer, from: Math.max(iat, nbf) - limits.clockSkewSecondsMax, until: exp };
}

/** True for a NumericDate (RFC 7519 §2): seconds since the epoch, possibly fractional. */
function isNumericDate(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
