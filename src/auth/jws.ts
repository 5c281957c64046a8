/**
 * HS256 in the compact serialization of JSON Web Signature (RFC 7515 §7.1, RFC 7518 §3.2), and no claim.
 *
 *     BASE64URL(header) "." BASE64URL(payload) "." BASE64URL(HMAC-SHA-256(key, header "." payload))
 *
 * The header's members are exactly `alg` ("HS256"), and at will `typ` ("JWT") and `kid`. RFC 7515 §4 would have
 * unknown ones ignored, but all signers share a key with this server: whatever else stands there (`crit`, `b64`,
 * `jku`, `jwk`, `x5c`, `zip`, `enc`) was meant for another reader. There is no algorithm to choose, so none to confuse.
 */
import { timingSafeEqual } from 'node:crypto';
import { isJsonObject, parseJsonBytes } from '../base/json.ts';
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
  return Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT', kid }), 'utf8').toString('base64url');
}

/** The compact serialization of `payload`, signed by `key`. */
export function signJws(payload: string, key: JwsKey): string {
  const signed = `${key.header}.${Buffer.from(payload, 'utf8').toString('base64url')}`;
  return `${signed}.${key.mac(signed)}`;
}

/**
 * The payload of a token that one of `keys` signed; `undefined` for anything else. Nothing of the payload is looked
 * at before the signature holds. A token that names a key is verified by that key alone; one that names none is tried
 * against all of them.
 */
export function verifyJws(token: string, keys: readonly JwsKey[]): Buffer | undefined {
  if (token.length > limits.accessTokenBytesMax || !compactForm.test(token)) return undefined;
  const headerEnd = token.indexOf('.');
  const signedEnd = token.lastIndexOf('.');
  const signed = token.slice(0, signedEnd);
  const signature = Buffer.from(token.slice(signedEnd + 1), 'latin1');
  // Both sides are the canonical text of 32 bytes, so equal text is the only way to an equal signature.
  const signs = (key: JwsKey): boolean => timingSafeEqual(Buffer.from(key.mac(signed), 'latin1'), signature);
  const signer = candidates(token.slice(0, headerEnd), keys).find(signs);
  return signer && decodeSegment(token.slice(headerEnd + 1, signedEnd));
}

/** Three parts of the base64url alphabet, the last as long as 32 bytes are. */
const compactForm = /^[\w-]+\.[\w-]+\.[\w-]{43}$/;

/** The keys that may have signed a token with this header; none when the header is not acceptable. */
function candidates(header: string, keys: readonly JwsKey[]): readonly JwsKey[] {
  const own = keys.find((key) => key.header === header);
  if (own !== undefined) return [own];
  const bytes = decodeSegment(header);
  if (bytes === undefined) return [];
  let members;
  try {
    members = parseJsonBytes(bytes);
  } catch {
    return [];
  }
  if (!isJsonObject(members)) return [];
  const { alg, typ, kid, ...others } = members;
  if (alg !== 'HS256' || (typ !== undefined && typ !== 'JWT') || Object.keys(others).length > 0) return [];
  return kid === undefined ? keys : keys.filter((key) => key.kid === kid);
}

/** Decodes canonical base64url (RFC 4648 §5, §3.5); `undefined` where the decoder would have been lenient. */
function decodeSegment(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : undefined;
}
