import type { Clock } from '../base/clock.ts';
import { CairnError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/random.ts';
import { claimsHold, parseClaims } from './claims.ts';
import type { Claims } from './claims.ts';
import { signJws, verifyJws } from './jws.ts';
import { verifiesAt } from './keys.ts';
import type { KeyRing } from './keys.ts';
import type { Role, TokenBearer } from './principal.ts';

/** Access tokens: JWTs (RFC 7519) that are verified without any look-up, and so cannot be revoked. */
export interface Tokens {
  /** A new token for this user, and its lifetime in seconds. */
  issue(user: { readonly userId: number; readonly role: Role }): { token: string; expiresIn: number };
  /** @throws CairnError `invalid_token`, which never says why */
  verify(token: string): TokenBearer;
  /** Signs and verifies with `ring` from now on; what the ring before has verified is verified again. */
  setRing(ring: KeyRing): void;
}

export interface TokenOptions {
  readonly ring: KeyRing;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a token lives. Each verified one is refused after it, and a retired key leaves as long after. */
  readonly lifetimeSeconds: number;
}

/** Makes the signer and verifier of access tokens. */
export function createTokens({ ring: firstRing, clock, random, lifetimeSeconds }: TokenOptions): Tokens {
  let ring = firstRing;
  const verified = createVerifiedTokens(limits.verifiedTokensMax);

  return {
    issue({ userId, role }) {
      const iat = Math.floor(clock.now() / 1000);
      const jti = random(16).toString('base64url');
      const payload = JSON.stringify({ userId, role, iat, exp: iat + lifetimeSeconds, jti });
      return { token: signJws(payload, ring.keys[0]), expiresIn: lifetimeSeconds };
    },

    verify(token) {
      const now = clock.now();
      let entry = verified.get(token);
      if (entry === undefined) {
        const keys = ring.keys.filter((key) => verifiesAt(key, now, lifetimeSeconds));
        const payload = verifyJws(token, keys);
        const claims = payload && parseClaims(payload);
        if (claims === undefined) throw invalidToken();
        entry = { claims, bearer: { kind: 'bearer', userId: claims.userId, role: claims.role } };
        if (claimsHold(claims, now)) verified.set(token, entry);
      }
      if (!claimsHold(entry.claims, now)) throw invalidToken();
      return entry.bearer;
    },

    setRing(next) {
      ring = next;
      verified.clear();
    },
  };
}

interface VerifiedToken {
  readonly claims: Claims;
  readonly bearer: TokenBearer;
}

/**
 * Remembers whose signature held, by the whole token. Bounded by two generations: the older one goes as a whole when
 * the younger is full, and what is asked for again moves up.
 */
function createVerifiedTokens(tokensMax: number) {
  let young = new Map<string, VerifiedToken>();
  let old = new Map<string, VerifiedToken>();
  const set = (token: string, entry: VerifiedToken) => {
    if (young.size >= tokensMax / 2) {
      old = young;
      young = new Map();
    }
    young.set(token, entry);
  };
  return {
    get(token: string): VerifiedToken | undefined {
      const hit = young.get(token);
      if (hit !== undefined) return hit;
      const older = old.get(token);
      if (older !== undefined) set(token, older);
      return older;
    },
    set,
    clear() {
      young = new Map();
      old = new Map();
    },
  };
}

function invalidToken(): CairnError {
  return new CairnError('invalid_token', 'Cannot accept the access token: it is not valid, or has expired');
}
