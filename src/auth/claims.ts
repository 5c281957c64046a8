/** The claims of an access token (RFC 7519 §4.1), and no key: what `jws.ts` hands out has a signature that holds. */
import { isJsonObject, parseJsonBytes } from '../base/json.ts';
import type { JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { roles } from './principal.ts';
import type { Role } from './principal.ts';

/** Times are NumericDates: seconds since the epoch, fractions allowed. */
export interface Claims {
  readonly userId: number;
  readonly role: Role;
  readonly iat: number;
  readonly exp: number;
  readonly nbf: number | undefined;
}

/** The claims in `payload`; `undefined` when they are not ones that Cairn's signers make, whatever the time. */
export function parseClaims(payload: Buffer): Claims | undefined {
  let claims;
  try {
    claims = parseJsonBytes(payload);
  } catch {
    return undefined;
  }
  if (!isJsonObject(claims)) return undefined;
  const { userId, iat, exp, nbf, jti, aud } = claims;
  const role = roles.find((known) => known === claims['role']);
  if (role === undefined || typeof userId !== 'number' || !Number.isSafeInteger(userId) || userId < 1) return undefined;
  if (!isNumericDate(iat) || !isNumericDate(exp) || (nbf !== undefined && !isNumericDate(nbf))) return undefined;
  if (exp <= iat || exp - iat > limits.accessTokenLifetimeSecondsMax) return undefined;
  if (jti !== undefined && typeof jti !== 'string') return undefined;
  // Whoever names an audience means another reader than this one, which has no name (RFC 7519 §4.1.3).
  if (aud !== undefined) return undefined;
  return { userId, role, iat, exp, nbf };
}

/** Whether the claims hold at `now` (ms): no leeway for the end, some for signers whose clocks are ahead. */
export function claimsHold({ iat, exp, nbf }: Claims, now: number): boolean {
  const seconds = now / 1000;
  const latest = seconds + limits.clockSkewSecondsMax;
  return seconds < exp && iat <= latest && (nbf === undefined || nbf <= latest);
}

function isNumericDate(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
