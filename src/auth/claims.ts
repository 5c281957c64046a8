/** The claims of an access token (RFC 7519 §4.1), read from a payload whose signature `jws.ts` has verified. */
import { parseJsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { roles, type TokenBearer } from './access.ts';

/** The user that a token names, and when the token is valid, in seconds since the epoch. */
export interface Claims {
  readonly bearer: TokenBearer;
  /** The first moment at which the token is valid. */
  readonly from: number;
  /** The first moment at which it no longer is. */
  readonly until: number;
}

/** The claims in `payload`, without regard to the time; `undefined` if they do not have the form of Cairn's own. */
export function parseClaims(payload: Buffer): Claims | undefined {
  const { userId, role: sentRole, iat, exp, nbf = 0, jti = '', aud } = parseJsonObject(payload) ?? {};
  const role = roles.find((known) => known === sentRole);
  if (role === undefined || typeof userId !== 'number' || !Number.isSafeInteger(userId) || userId < 1) return undefined;
  if (!isNumericDate(iat) || !isNumericDate(exp) || !isNumericDate(nbf)) return undefined;
  if (exp <= iat || exp - iat > limits.accessTokenLifetimeSecondsMax) return undefined;
  // A token with an audience is meant for a reader with a name (RFC 7519 §4.1.3), and this one has none.
  if (typeof jti !== 'string' || aud !== undefined) return undefined;
  const bearer: TokenBearer = { kind: 'bearer', userId, role, issuedAt: iat };
  // Leeway for a signer whose clock is ahead, but none for the end.
  return { bearer, from: Math.max(iat, nbf) - limits.clockSkewSecondsMax, until: exp };
}

/** A NumericDate (RFC 7519 §2): seconds since the epoch, fractions allowed. */
function isNumericDate(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
