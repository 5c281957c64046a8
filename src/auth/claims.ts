/** Claims of an access token (RFC 7519 §4.1). Its signature has been verified by `jws.ts`. */
import { parseJsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { isRole, type TokenPrincipal } from './access.ts';

/** The user of a token, and when it is valid, in seconds since the epoch. */
export interface Claims {
  readonly bearer: TokenPrincipal;
  /** The first time at which the token is valid. */
  readonly from: number;
  /** The first time at which the token is no longer valid. */
  readonly until: number;
}

/** Parses claims, without checking the time; `undefined` if they are not as Cairn issues them. */
export function parseClaims(payload: Buffer): Claims | undefined {
  const { userId, role, iat, exp, nbf = 0, jti = '', aud } = parseJsonObject(payload) ?? {};
  if (!isRole(role) || typeof userId !== 'number' || !Number.isSafeInteger(userId) || userId < 1)
    return undefined;
  if (!isNumericDate(iat) || !isNumericDate(exp) || !isNumericDate(nbf)) return undefined;
  if (exp <= iat || exp - iat > limits.accessTokenLifetimeSecondsMax) return undefined;
  // A token with an audience is for another service (RFC 7519 §4.1.3): Cairn has no name.
  if (typeof jti !== 'string' || aud !== undefined) return undefined;
  const bearer: TokenPrincipal = { kind: 'bearer', userId, role, issuedAt: iat };
  // Tolerates a signer with a clock that is ahead, but does not extend the lifetime.
  return { bearer, from: Math.max(iat, nbf) - limits.clockSkewSecondsMax, until: exp };
}

/** Returns true if this is a NumericDate (RFC 7519 §2): seconds since the epoch, with fractions. */
function isNumericDate(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
