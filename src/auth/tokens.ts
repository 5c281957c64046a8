import { CairnError } from '../base/errors.ts';
import { parseJsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import { roles, type Role, type TokenBearer } from './access.ts';
import { signJws, verifyJws } from './jws.ts';
import { verifiesUntil, type KeyRing } from './keys.ts';

export interface TokenOptions {
  readonly ring: KeyRing;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a token lives. Each verified one is refused after it, and a retired key leaves as long after. */
  readonly lifetimeSeconds: number;
}

/** Access tokens: JWTs (RFC 7519) that are verified without any look-up, and so cannot be revoked. */
export class Tokens {
  readonly #options: TokenOptions;
  #ring: KeyRing;
  /**
   * Whose signature held, by the whole token; what the claims say is held against the clock each time. Emptied when it
   * is full: a token that is often sent is then verified once more among thousands.
   */
  readonly #verified = new Map<string, Claims>();

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#ring = options.ring;
  }

  /** A new token for this user, and its lifetime in seconds. */
  issue({ userId, role }: { readonly userId: number; readonly role: Role }): { token: string; expiresIn: number } {
    const { clock, random, lifetimeSeconds } = this.#options;
    const iat = Math.floor(clock.now() / 1000);
    const jti = random(16).toString('base64url');
    const payload = JSON.stringify({ userId, role, iat, exp: iat + lifetimeSeconds, jti });
    return { token: signJws(payload, this.#ring.keys[0]), expiresIn: lifetimeSeconds };
  }

  /** @throws CairnError `invalid_token`, which never says why */
  verify(token: string): TokenBearer {
    const now = this.#options.clock.now() / 1000;
    const claims = this.#verified.get(token) ?? this.#verifyNew(token);
    if (claims !== undefined && claims.from <= now && now < claims.until) return claims.bearer;
    throw new CairnError('invalid_token', 'Cannot accept the access token: it is not valid, or has expired');
  }

  /** Signs and verifies with `ring` from now on; what the ring before has verified is verified again. */
  setRing(ring: KeyRing): void {
    this.#ring = ring;
    this.#verified.clear();
  }

  #verifyNew(token: string): Claims | undefined {
    const { lifetimeSeconds } = this.#options;
    const signed = verifyJws(token, this.#ring.keys);
    const claimed = signed && parseClaims(signed.payload);
    if (signed === undefined || claimed === undefined) return undefined;
    // A retired key's word ends with it, also where it is remembered.
    const until = Math.min(claimed.until, verifiesUntil(signed.key, lifetimeSeconds) / 1000);
    const claims = { ...claimed, until };
    if (this.#verified.size >= limits.verifiedTokensMax) this.#verified.clear();
    this.#verified.set(token, claims);
    return claims;
  }
}

/** Whom a token is for, and when it holds, in seconds since the epoch: from the one time until before the other. */
interface Claims {
  readonly bearer: TokenBearer;
  readonly from: number;
  readonly until: number;
}

/** The claims in `payload` (RFC 7519 §4.1); `undefined` when none of Cairn's signers makes such, whatever the time. */
function parseClaims(payload: Buffer): Claims | undefined {
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
