/**
 * The key ring: one key that signs, and older ones that still verify until everything they signed has ended.
 *
 * Format of the ring file (UTF-8 JSON, mode 0600, written whole and renamed into place by whoever owns files):
 *
 *     {
 *       "format": "cairn-keys-1",
 *       "keys": [
 *         { "secret": "<base64url, 32 to 1,024 bytes>", "createdAt": "<ISO 8601, UTC>" },
 *         { "secret": "…", "createdAt": "…", "retiredAt": "<ISO 8601, UTC>" }
 *       ]
 *     }
 *
 * The first key signs and has no `retiredAt`; every other one has it. A key's id is not written down: it is derived
 * from the secret, and so can neither be mixed up nor edited. No two keys are alike.
 */
import { createHmac, createSecretKey, hkdfSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { isJsonObject, parseJson } from '../base/json.ts';
import type { JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Random } from '../base/random.ts';
import { hmacSha256, jwsHeader } from './jws.ts';
import type { JwsKey } from './jws.ts';

/** A ring, a ring file or a secret that cannot be used. The message names no secret. */
export class KeyRingError extends Error {
  override readonly name = 'KeyRingError';
}

/** One secret with what is derived from it: `kid`, 11 characters of base64url, and what signs access tokens. */
export interface Key extends JwsKey {
  /** Shows nothing of itself when it is printed. */
  readonly secret: KeyObject;
  /** Derives the successor of a refresh token, and nothing else. */
  readonly successorKey: KeyObject;
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
 * A ring of one key made of a configured secret: its UTF-8 bytes, as they are.
 * @throws KeyRingError when the secret is shorter than HS256 allows (RFC 7518 §3.2: 32 bytes)
 */
export function keyRingOfSecret(secret: string, now: number): KeyRing {
  return { keys: [makeKey(Buffer.from(secret, 'utf8'), now, undefined)] };
}

/** A ring of one random key of 256 bits. */
export function newKeyRing(random: Random, now: number): KeyRing {
  return { keys: [makeKey(random(limits.keyBytesMin), now, undefined)] };
}

/** A new random key signs from now on; the one before retires, and keys whose tokens have all ended leave. */
export function rotateKeyRing(ring: KeyRing, random: Random, now: number, lifetimeSeconds: number): KeyRing {
  const older = ring.keys.map((key) => (key.retiredAt === undefined ? { ...key, retiredAt: now } : key));
  const kept = older.filter((key) => verifiesAt(key, now, lifetimeSeconds));
  return { keys: [makeKey(random(limits.keyBytesMin), now, undefined), ...kept] };
}

/** Whether `key` may still verify at `now` (ms), where the tokens that it signed lived for `lifetimeSeconds`. */
export function verifiesAt(key: Key, now: number, lifetimeSeconds: number): boolean {
  return key.retiredAt === undefined || now < key.retiredAt + lifetimeSeconds * 1000;
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
export function parseKeyRing(text: string): KeyRing {
  const file = parsed(text);
  if (!isJsonObject(file) || file['format'] !== format || !Array.isArray(file['keys'])) {
    throw new KeyRingError(`Cannot read the key ring: it is not of the format "${format}"`);
  }
  const [signing, ...retired] = file['keys'].map(parseKey);
  if (signing === undefined) throw new KeyRingError('Cannot read the key ring: it has no key');
  if (signing.retiredAt !== undefined) throw new KeyRingError('Cannot read the key ring: its first key has retired');
  if (retired.some((key) => key.retiredAt === undefined)) {
    throw new KeyRingError('Cannot read the key ring: a key other than the first has not retired');
  }
  const keys: [Key, ...Key[]] = [signing, ...retired];
  if (new Set(keys.map((key) => key.kid)).size < keys.length) {
    throw new KeyRingError('Cannot read the key ring: two keys are alike');
  }
  return { keys };
}

const format = 'cairn-keys-1';

function parseKey(entry: JsonValue, index: number): Key {
  const wrong = (what: string) => new KeyRingError(`Cannot read the key ring: key ${index + 1} has ${what}`);
  if (!isJsonObject(entry)) throw wrong('the form of something else');
  const { secret, createdAt, retiredAt, ...others } = entry;
  if (Object.keys(others).length > 0) throw wrong('an unknown member');
  const bytes = typeof secret === 'string' ? Buffer.from(secret, 'base64url') : undefined;
  if (bytes === undefined || bytes.toString('base64url') !== secret) throw wrong('a secret that is not base64url');
  const created = parseTime(createdAt);
  if (created === undefined) throw wrong('no time of creation');
  const ended = parseTime(retiredAt);
  if (retiredAt !== undefined && ended === undefined) throw wrong('a time of retirement that is no time');
  return makeKey(bytes, created, ended);
}

function makeKey(secret: Buffer, createdAt: number, retiredAt: number | undefined): Key {
  if (secret.length < limits.keyBytesMin) {
    throw new KeyRingError(`Cannot use the secret: it must have at least ${limits.keyBytesMin} bytes`);
  }
  if (secret.length > limits.keyBytesMax) {
    throw new KeyRingError(`Cannot use the secret: it must have at most ${limits.keyBytesMax} bytes`);
  }
  const kid = createHmac('sha256', secret).update('cairn key id').digest().subarray(0, 8).toString('base64url');
  return {
    kid,
    header: jwsHeader(kid),
    mac: hmacSha256(secret),
    secret: createSecretKey(secret),
    successorKey: createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', 'cairn refresh token successor', 32))),
    createdAt,
    retiredAt,
  };
}

function parsed(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    throw new KeyRingError('Cannot read the key ring: it is not JSON');
  }
}

function parseTime(value: JsonValue | undefined): number | undefined {
  if (typeof value !== 'string') return undefined;
  const time = Date.parse(value);
  return Number.isNaN(time) || new Date(time).toISOString() !== value ? undefined : time;
}
