/**
 * HS256 in the compact serialization of JSON Web Signature (RFC 7515 §7.1, RFC 7518 §3.2), and no claim.
 *
 *     BASE64URL(header) "." BASE64URL(payload) "." BASE64URL(HMAC-SHA-256(key, header "." payload))
 *
 * The header's members are exactly `alg` ("HS256"), and at will `typ` ("JWT") and `kid`. RFC 7515 §4 would have
 * unknown ones ignored, but all signers share a key with this server: whatever else stands there (`crit`, `b64`,
 * `jku`, `jwk`, `x5c`, `zip`, `enc`) was meant for another reader. There is no algorithm to choose, so none to confuse.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { invariant } from '../base/errors.ts';
import { parseJsonObject } from '../base/json.ts';
import { limits } from '../base/limits.ts';

/** What signs and verifies. */
export interface JwsKey {
  /** Public. */
  readonly kid: string;
  /** What this key's own tokens begin with: `jwsHeader(kid)`. */
  readonly header: string;
  /** HMAC-SHA-256 under the secret, in base64url. */
  readonly mac: (signed: string) => string;
}

/** The first part of every token that the key with this id signs. */
export function jwsHeader(kid: string): string {
  return encoded(JSON.stringify({ alg: 'HS256', typ: 'JWT', kid }));
}

/** The compact serialization of `payload`, signed by `key`. */
export function signJws(payload: string, key: JwsKey): string {
  const signed = `${key.header}.${encoded(payload)}`;
  return `${signed}.${key.mac(signed)}`;
}

/**
 * The payload of a token and which of `keys` signed it; `undefined` for anything else. Nothing of the payload is looked
 * at before the signature holds. A token that names a key is verified by that key alone; one that names none is tried
 * against all of them.
 */
export function verifyJws<K extends JwsKey>(
  token: string,
  keys: readonly K[],
): { key: K; payload: Buffer } | undefined {
  const headerEnd = token.indexOf('.');
  const signedEnd = token.length - signatureLength - 1;
  if (token.length > limits.accessTokenBytesMax || headerEnd >= signedEnd || token[signedEnd] !== '.') return undefined;
  const signed = token.slice(0, signedEnd);
  const signature = Buffer.from(token.slice(signedEnd + 1), 'utf8');
  if (signature.length !== signatureLength) return undefined;
  for (const key of candidates(token.slice(0, headerEnd), keys)) {
    // Both sides are the canonical text of 32 bytes, so equal text is the only way to an equal signature.
    if (!timingSafeEqual(Buffer.from(key.mac(signed), 'utf8'), signature)) continue;
    const payload = decoded(token.slice(headerEnd + 1, signedEnd));
    return payload && { key, payload };
  }
  return undefined;
}

/** Of 32 bytes in base64url. */
const signatureLength = 43;

/** How most signers write a header that names no key. To read it, or our own, would take longer than to hash. */
const usualHeaders = ['{"alg":"HS256","typ":"JWT"}', '{"typ":"JWT","alg":"HS256"}', '{"alg":"HS256"}'].map(encoded);

/** The keys that may have signed a token with this header; none when the header is not acceptable. */
function candidates<K extends JwsKey>(header: string, keys: readonly K[]): readonly K[] {
  if (usualHeaders.includes(header)) return keys;
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

/** Decodes canonical base64url (RFC 4648 §5, §3.5); `undefined` where the decoder would have been lenient. */
function decoded(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : undefined;
}

const blockBytes = 64;
const hashBytes = 32;
/** Of one UTF-16 code unit. */
const utf8BytesMax = 3;

/**
 * HMAC-SHA-256 (RFC 2104) under one key, of the UTF-8 of texts as long as a token may be; the result is base64url.
 *
 * `createHmac` does the same, but each of its objects burdens the garbage collector: a server that verifies a new token
 * with every request spends 6 µs (Node.js 26) to 12 µs (20) on it, and half of that on two calls of `hash`.
 */
export function hmacSha256(key: Buffer): (text: string) => string {
  const inner = Buffer.alloc(blockBytes + utf8BytesMax * limits.accessTokenBytesMax, 0x36);
  const outer = Buffer.alloc(blockBytes + hashBytes, 0x5c);
  for (const [index, byte] of (key.length > blockBytes ? hash('sha256', key, 'buffer') : key).entries()) {
    inner[index] = byte ^ 0x36;
    outer[index] = byte ^ 0x5c;
  }
  return (text) => {
    invariant(text.length <= limits.accessTokenBytesMax, 'a text that is signed is no longer than a token');
    const length = inner.write(text, blockBytes, 'utf8');
    outer.write(hash('sha256', inner.subarray(0, blockBytes + length), 'binary'), blockBytes, 'binary');
    return hash('sha256', outer, 'base64url');
  };
}
