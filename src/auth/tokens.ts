import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Clock, Random } from '../base/system.ts';
import type { KeyPrincipal, Role, TokenPrincipal } from './access.ts';
import { parseClaims, type Claims } from './claims.ts';
import { signJws, verifyJws } from './jws.ts';
import { verifiesUntil, type KeyRing } from './keys.ts';

interface TokenOptions {
  readonly ring: KeyRing;
  readonly clock: Clock;
  readonly random: Random;
}

/** Returns the first second in which tokens are issued after a sign-out everywhere. */
function secondAfter(signedOutAt: number): number {
  return Math.floor(signedOutAt / 1000) + 1;
}

/**
 * Returns the time of a new sign-out everywhere, after one at `former`. It is not before any token
 * issued since, even one dated a second ahead.
 */
export function nextSignOut(now: number, former?: number): number {
  return Math.max(now, secondAfter(lastSignOut(now, former)) * 1000);
}

/**
 * Returns when all sessions of a user were last ended; 0 for never. A time that only a wrong clock
 * can have written counts as never, or no token of the user would be valid until then.
 */
export function lastSignOut(now: number, signedOutAt = 0): number {
  return signedOutAt > now + limits.clockSkewSecondsMax * 1000 ? 0 : signedOutAt;
}

/** The prefix of API keys, which are bearer tokens but not JWTs. */
export const apiKeyPrefix = 'cairn_';

/** Returns the refusal of a bearer token, which never says why. */
export const invalidToken = (): CairnError =>
  new CairnError(
    'invalid_token',
    'Cannot accept the access token or API key: it is not valid, has expired or was ended',
  );

/**
 * Issues and verifies access tokens: JWTs (RFC 7519), which need no look-up and cannot be revoked.
 */
export class Tokens {
  /** @throws CairnError `invalid_token` */
  verifyKey: (key: string) => KeyPrincipal = () => {
    throw invalidToken();
  };
  readonly #options: TokenOptions;
  #ring: KeyRing;
  /**
   * Claims with a verified signature, by token. Each use compares them with the clock. A full map
   * is cleared, at the rare cost of verifying a token again.
   */
  readonly #verified = new Map<string, Claims>();

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#ring = options.ring;
  }

  /**
   * Issues a token that lasts `expiresIn` seconds. `at`: when the sign-in was decided;
   * `signedOutAt`: when all sessions of the user were last ended (milliseconds since the epoch).
   * The token is issued after the latter, even in the same second.
   */
  issue(
    { userId, role }: { readonly userId: number; readonly role: Role },
    at = this.#options.clock.now(),
    signedOutAt = 0,
  ): { token: string; expiresIn: number } {
    const { random } = this.#options;
    const expiresIn = limits.accessTokenSeconds;
    const iat = Math.max(Math.floor(at / 1000), secondAfter(lastSignOut(at, signedOutAt)));
    const jti = random(16).toString('base64url');
    const payload = JSON.stringify({ userId, role, iat, exp: iat + expiresIn, jti });
    return { token: signJws(payload, this.#ring.keys[0]), expiresIn };
  }

  /** @throws CairnError `invalid_token` */
  verify(token: string): TokenPrincipal | KeyPrincipal {
    const now = this.#options.clock.now() / 1000;
    const known = this.#verified.get(token);
    if (known === undefined && token.startsWith(apiKeyPrefix)) return this.verifyKey(token);
    const claims = known ?? this.#verifyNew(token);
    if (claims !== undefined && claims.from <= now && now < claims.until) return claims.bearer;
    throw invalidToken();
  }

  /** Replaces the key ring. All tokens are verified again. */
  setRing(ring: KeyRing): void {
    this.#ring = ring;
    this.#verified.clear();
  }

  #verifyNew(token: string): Claims | undefined {
    const signed = verifyJws(token, this.#ring.keys);
    const claimed = signed && parseClaims(signed.payload);
    if (signed === undefined || claimed === undefined) return undefined;
    // A cached token must not outlive the key that signed it.
    const until = Math.min(claimed.until, verifiesUntil(signed.key) / 1000);
    const claims = { ...claimed, until };
    if (this.#verified.size >= limits.verifiedTokensMax) this.#verified.clear();
    this.#verified.set(token, claims);
    return claims;
  }
}
