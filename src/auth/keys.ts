/**
 * The key ring: one key that signs, and older ones that verify for 24 hours more.
 *
 * Format of the ring file (UTF-8 JSON, mode 0600, written whole and renamed into place):
 *
 *     {
 *       "format": "cairn-keys-1",
 *       "keys": [
 *         { "secret": "<base64url, 32 to 1,024 bytes>", "createdAt": "<ISO 8601, UTC>" },
 *         { "secret": "…", "createdAt": "…", "retiredAt": "<ISO 8601, UTC>" }
 *       ]
 *     }
 *
 * The first key signs and has no `retiredAt`; every other one has it. The id of a key is not in the file: it is derived
 * from the secret, so the two cannot be mixed up. No two keys are equal.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { isJsonObject, parseJsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/system.ts';
import { hmacSha256, jwsHeader, type JwsKey } from './jws.ts';

/** A ring, a ring file or a secret that cannot be used. The message names no secret. */
export class KeyRingError extends Error {
  override readonly name = 'KeyRingError';
}

/** One secret, with what is derived from it: its id, 11 characters of base64url, and what signs access tokens. */
export interface Key extends JwsKey {
  /** A `KeyObject`, because it shows nothing of the secret when it is printed. */
  readonly secret: KeyObject;
  /** HMAC-SHA-256 under a separate key, which derives the successors of refresh tokens and nothing else. */
  readonly successorMac: (token: string) => string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** When it stopped signing, in milliseconds since the epoch; `undefined` for the key that signs. */
  readonly retiredAt: number | undefined;
}

/** The first key signs; the others only verify. */
export interface KeyRing {
  readonly keys: readonly [Key, ...Key[]];
}

/**
 * A ring of one key: the UTF-8 bytes of a configured secret.
 * @throws KeyRingError when the secret is shorter than HS256 allows (RFC 7518 §3.2: 32 bytes)
 */
export function keyRingOfSecret(secret: string, now: number): KeyRing {
  return { keys: [makeKey(Buffer.from(secret, 'utf8'), now, undefined)] };
}

/** A ring of one random key of 256 bits. */
export function newKeyRing(random: Random, now: number): KeyRing {
  return { keys: [makeKey(random(limits.keyBytesMin), now, undefined)] };
}

/** A ring with a new random key that signs. The one before retires, and keys that no longer verify are left out. */
export function rotateKeyRing(ring: KeyRing, random: Random, now: number): KeyRing {
  const older = ring.keys.map((key) => (key.retiredAt === undefined ? { ...key, retiredAt: now } : key));
  const kept = older.filter((key) => now < verifiesUntil(key));
  return { keys: [makeKey(random(limits.keyBytesMin), now, undefined), ...kept] };
}

/** When the key stops verifying, in milliseconds since the epoch. */
export function verifiesUntil({ retiredAt = Infinity }: Key): number {
  return retiredAt + limits.accessTokenLifetimeSecondsMax * 1000;
}

/** The content of the ring file. It holds the secrets. */
export function serialiseKeyRing(ring: KeyRing): string {
  const keys = ring.keys.map((key) => ({
    secret: key.secret.export().toString('base64url'),
    createdAt: new Date(key.createdAt).toISOString(),
    ...(key.retiredAt === undefined ? {} : { retiredAt: new Date(key.retiredAt).toISOString() }),
  }));
  return `${JSON.stringify({ format, keys }, undefined, 2)}\n`;
}

/**
 * Reads the content of a ring file.
 * @throws KeyRingError naming the first thing that is wrong, and never a secret
 */
export function parseKeyRing(content: Buffer): KeyRing {
  const { format: found, keys: entries } = parseJsonObject(content) ?? {};
  if (found !== format || !Array.isArray(entries)) throw unreadable(`it is not of the format "${format}"`);
  const [signing, ...others] = entries.map(parseKey);
  if (signing === undefined) throw unreadable('it has no key');
  const keys: [Key, ...Key[]] = [signing, ...others];
  if (keys.some(({ retiredAt }, index) => (retiredAt === undefined) !== (index === 0))) {
    throw unreadable('the first key, and no other, must not have retired');
  }
  if (new Set(keys.map((key) => key.kid)).size < keys.length) throw unreadable('two keys are equal');
  return { keys };
}

const format = 'cairn-keys-1';

function unreadable(what: string): KeyRingError {
  return new KeyRingError(`Cannot read the key ring: ${what}`);
}

function parseKey(entry: JsonValue, index: number): Key {
  const { secret, createdAt, retiredAt, ...others } = isJsonObject(entry) ? entry : {};
  const bytes = Buffer.from(typeof secret === 'string' ? secret : '', 'base64url');
  const [created, retired] = [parseTime(createdAt), parseTime(retiredAt)];
  const isWhole = created !== undefined && (retired !== undefined || retiredAt === undefined);
  if (!isWhole || bytes.toString('base64url') !== secret || Object.keys(others).length > 0) {
    throw unreadable(`key ${index + 1} is not a secret in base64url with its times`);
  }
  return makeKey(bytes, created, retired);
}

function makeKey(secret: Buffer, createdAt: number, retiredAt: number | undefined): Key {
  const { keyBytesMin, keyBytesMax } = limits;
  if (secret.length < keyBytesMin || secret.length > keyBytesMax) {
    throw new KeyRingError(`Cannot use the secret: it must have from ${keyBytesMin} to ${keyBytesMax} bytes`);
  }
  const kid = createHmac('sha256', secret).update('cairn key id').digest().subarray(0, 8).toString('base64url');
  return {
    kid,
    header: jwsHeader(kid),
    mac: hmacSha256(secret),
    secret: createSecretKey(secret),
    successorMac: hmacSha256(Buffer.from(hkdfSync('sha256', secret, '', 'cairn refresh token successor', 32))),
    createdAt,
    retiredAt,
  };
}

function parseTime(value: JsonValue | undefined): number | undefined {
  if (typeof value !== 'string') return undefined;
  const time = Date.parse(value);
  return Number.isNaN(time) || new Date(time).toISOString() !== value ? undefined : time;
}
