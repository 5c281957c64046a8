/**
 * HS256 in the compact serialization of JSON Web Signature (RFC 7515 §7.1, RFC 7518 §3.2).
 * `claims.ts` parses the claims once the signature is verified.
 *
 *     BASE64URL(header) "." BASE64URL(payload) "." BASE64URL(HMAC-SHA-256(key, header "." payload))
 *
 * The header must have `alg` ("HS256") and may have `typ` ("JWT") and `kid`. RFC 7515 §4 would
 * ignore other members, but every signer shares a key with this server, so a token with another
 * member (`crit`, `b64`, `jku`, `jwk`, `x5c`, `zip`, `enc`) is not for it. With one algorithm,
 * there is nothing to confuse.
 */
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { parseJsonObject } from '../base/json.ts';
import { limits } from '../base/limits.ts';

export interface JwsKey {
  readonly kid: string;
  /** The first part of every token that this key signs: `jwsHeader(kid)`. */
  readonly header: string;
  readonly mac: (signed: string) => string;
}

export function jwsHeader(kid: string): string {
  return encoded(JSON.stringify({ alg: 'HS256', typ: 'JWT', kid }));
}

export function signJws(payload: string, key: JwsKey): string {
  const signed = `${key.header}.${encoded(payload)}`;
  return `${signed}.${key.mac(signed)}`;
}

/**
 * Returns a token's payload and the key that signed it; `undefined` if none of `keys` did. The
 * signature is verified before the payload is decoded. Without a `kid`, every key is tried.
 */
export function verifyJws<K extends JwsKey>(
  token: string,
  keys: readonly K[],
): { key: K; payload: Buffer } | undefined {
  const headerEnd = token.indexOf('.');
  const signedEnd = token.length - signatureLength - 1;
  if (
    token.length > limits.accessTokenBytesMax ||
    headerEnd >= signedEnd ||
    token[signedEnd] !== '.'
  )
    return undefined;
  const signed = token.slice(0, signedEnd);
  const signature = Buffer.from(token.slice(signedEnd + 1), 'utf8');
  if (signature.length !== signatureLength) return undefined;
  for (const key of candidates(token.slice(0, headerEnd), keys)) {
    // The encoding is canonical: equal signatures have equal texts.
    if (!timingSafeEqual(Buffer.from(key.mac(signed), 'utf8'), signature)) continue;
    const payload = decoded(token.slice(headerEnd + 1, signedEnd));
    return payload && { key, payload };
  }
  return undefined;
}

const signatureLength = 43;

/** Returns the keys that may have signed a token; none if its header is not allowed. */
function candidates<K extends JwsKey>(header: string, keys: readonly K[]): readonly K[] {
  const own = keys.find((key) => key.header === header);
  if (own !== undefined) return [own];
  const bytes = decoded(header);
  const { alg, typ = 'JWT', kid, ...others } = (bytes && parseJsonObject(bytes)) ?? {};
  if (alg !== 'HS256' || typ !== 'JWT' || Object.keys(others).length > 0) return [];
  return kid === undefined ? keys : keys.filter((key) => key.kid === kid);
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}

/** Decodes base64url (RFC 4648 §5); `undefined` if it is not canonical (§3.5). */
function decoded(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : undefined;
}

/** Returns a function that computes the HMAC-SHA-256 (RFC 2104) of UTF-8 text, in base64url. */
export function hmacSha256(secret: Buffer): (text: string) => string {
  const key = createSecretKey(secret);
  return (text) => createHmac('sha256', key).update(text).digest('base64url');
}
