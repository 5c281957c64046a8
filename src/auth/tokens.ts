import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import type { Role, TokenBearer } from './access.ts';
import { parseClaims, type Claims } from './claims.ts';
import { signJws, verifyJws } from './jws.ts';
import { tellOf, verifiesUntil, type KeyRing } from './keys.ts';

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
    this.#ring = tellOf(ring, this.#ring, this.#options.clock.now());
    this.#verified.clear();
  }

  #verifyNew(token: string): Claims | undefined {
    const signed = verifyJws(token, this.#ring.keys);
    const claimed = signed && parseClaims(signed.payload);
    if (signed === undefined || claimed === undefined) return undefined;
    // A retired key's word ends with it, also where it is remembered.
    const until = Math.min(claimed.until, verifiesUntil(signed.key, this.#options.lifetimeSeconds) / 1000);
    const claims = { ...claimed, until };
    if (this.#verified.size >= limits.verifiedTokensMax) this.#verified.clear();
    this.#verified.set(token, claims);
    return claims;
  }
}
