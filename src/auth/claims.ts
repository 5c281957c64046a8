/** The claims of an access token (RFC 7519 §4.1), and no key: what `jws.ts` hands out has a signature that holds. */
import { parseJsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { roles, type TokenBearer } from './access.ts';

/** Whom a token is for, and when it holds, in seconds since the epoch: from the one time until before the other. */
export interface Claims {
  readonly bearer: TokenBearer;
  readonly from: number;
  readonly until: number;
}

/** The claims in `payload`; `undefined` when they are not ones that Cairn's signers make, whatever the time. */
export function parseClaims(payload: Buffer): Claims | undefined {
  const { userId, role: sentRole, iat, exp, nbf = 0, jti = '', aud } = parseJsonObject(payload) ?? {};
  const role = roles.find((known) => known === sentRole);
  if (role === undefined || typeof userId !== 'number' || !Number.isSafeInteger(userId) || userId < 1) return undefined;
  if (!isNumericDate(iat) || !isNumericDate(exp) || !isNumericDate(nbf)) return undefined;
  if (exp <= iat || exp - iat > limits.accessTokenLifetimeSecondsMax) return undefined;
  // Whoever names an audience means another reader than this one, which has no name (RFC 7519 §4.1.3).
  if (typeof jti !== 'string' || aud !== undefined) return undefined;
  const bearer: TokenBearer = { kind: 'bearer', userId, role };
  // No leeway for the end, but some for signers whose clocks are ahead.
  return { bearer, from: Math.max(iat, nbf) - limits.clockSkewSecondsMax, until: exp };
}

/** A NumericDate (RFC 7519 §2): seconds since the epoch, fractions allowed. */
function isNumericDate(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
