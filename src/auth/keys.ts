/**
 * The key ring: one key that signs, and older keys that verify for 24 more hours.
 * The ring file (UTF-8 JSON, mode 0600, replaced by renaming):
 *
 *     {
 *       "format": "cairn-keys-1",
 *       "keys": [
 *         { "secret": "<base64url, 32 to 1,024 bytes>", "createdAt": "<ISO 8601, UTC>" },
 *         { "secret": "…", "createdAt": "…", "retiredAt": "<ISO 8601, UTC>" }
 *       ]
 *     }
 *
 * The first key signs and has no `retiredAt`; all others have one. Key ids are derived from the
 * secrets, so that they always match. All keys are different.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { FatalError } from '../base/errors.ts';
import { isJsonObject, parseJsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import { hmacSha256, jwsHeader, type JwsKey } from './jws.ts';

/** A ring file or a secret that cannot be used. The message never contains a secret. */
export class KeyRingError extends FatalError {
  override readonly name = 'KeyRingError';

  constructor(message: string) {
    super(78, message);
  }
}

/** A secret, with the id (11 characters of base64url) and the functions derived from it. */
export interface SigningKey extends JwsKey {
  /** A `KeyObject`, so that printing it does not reveal the secret. */
  readonly secret: KeyObject;
  /** HMAC-SHA-256 with a separate key, which derives only the successors of refresh tokens. */
  readonly successorMac: (token: string) => string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** When it stopped signing, in milliseconds since the epoch; `undefined` for the signing key. */
  readonly retiredAt: number | undefined;
}

/** The first key signs; the others only verify. */
export interface KeyRing {
  readonly keys: readonly [SigningKey, ...SigningKey[]];
}

/**
 * Returns a ring of one key, the UTF-8 bytes of a configured secret.
 * @throws KeyRingError if the secret is shorter than HS256 allows (RFC 7518 §3.2: 32 bytes)
 */
export function keyRingOfSecret(secret: string, now: number): KeyRing {
  return { keys: [makeKey(Buffer.from(secret, 'utf8'), now)] };
}

export function newKeyRing(random: Random, now: number): KeyRing {
  return { keys: [makeKey(random(limits.keyBytesMin), now)] };
}

/** Returns when the key stops verifying, in milliseconds since the epoch. */
export function verifiesUntil({ retiredAt = Infinity }: SigningKey): number {
  return retiredAt + limits.accessTokenLifetimeSecondsMax * 1000;
}

/** Returns the content of the ring file, including the secrets. */
export function serialiseKeyRing(ring: KeyRing): string {
  const keys = ring.keys.map((key) => ({
    secret: key.secret.export().toString('base64url'),
    createdAt: new Date(key.createdAt).toISOString(),
    ...(key.retiredAt === undefined ? {} : { retiredAt: new Date(key.retiredAt).toISOString() }),
  }));
  return `${JSON.stringify({ format, keys }, undefined, 2)}\n`;
}

/** @throws KeyRingError for the first problem; the message never contains a secret */
export function parseKeyRing(content: Buffer): KeyRing {
  const { format: found, keys: entries } = parseJsonObject(content) ?? {};
  if (found !== format || !Array.isArray(entries))
    throw unreadable(`it is not of the format "${format}"`);
  const [signing, ...others] = entries.map(parseKey);
  if (signing === undefined) throw unreadable('it has no keys');
  const keys: [SigningKey, ...SigningKey[]] = [signing, ...others];
  if (keys.some(({ retiredAt }, index) => (retiredAt === undefined) !== (index === 0))) {
    throw unreadable('the first key, and no other, must not have retired');
  }
  if (new Set(keys.map((key) => key.kid)).size < keys.length)
    throw unreadable('two keys are equal');
  return { keys };
}

const format = 'cairn-keys-1';

function unreadable(problem: string): KeyRingError {
  return new KeyRingError(`Cannot read the key ring: ${problem}`);
}

function parseKey(entry: JsonValue, index: number): SigningKey {
  const { secret, createdAt, retiredAt, ...others } = isJsonObject(entry) ? entry : {};
  const bytes = Buffer.from(typeof secret === 'string' ? secret : '', 'base64url');
  const [created, retired] = [parseTime(createdAt), parseTime(retiredAt)];
  const isWhole = created !== undefined && (retired !== undefined || retiredAt === undefined);
  if (!isWhole || bytes.toString('base64url') !== secret || Object.keys(others).length > 0) {
    throw unreadable(`key ${index + 1} is not a secret in base64url with its times`);
  }
  return makeKey(bytes, created, retired);
}

function makeKey(secret: Buffer, createdAt: number, retiredAt?: number): SigningKey {
  const { keyBytesMin, keyBytesMax } = limits;
  if (secret.length < keyBytesMin || secret.length > keyBytesMax) {
    throw new KeyRingError(
      `Cannot use the secret: it must have from ${keyBytesMin} to ${keyBytesMax} bytes`,
    );
  }
  const kid = createHmac('sha256', secret)
    .update('cairn key id')
    .digest()
    .subarray(0, 8)
    .toString('base64url');
  const successorSecret = hkdfSync('sha256', secret, '', 'cairn refresh token successor', 32);
  return {
    kid,
    header: jwsHeader(kid),
    mac: hmacSha256(secret),
    secret: createSecretKey(secret),
    successorMac: hmacSha256(Buffer.from(successorSecret)),
    createdAt,
    retiredAt,
  };
}

function parseTime(value: JsonValue | undefined): number | undefined {
  const date = new Date(String(value));
  return typeof value === 'string' && date.toJSON() === value ? date.getTime() : undefined;
}
