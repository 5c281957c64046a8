import { inspect, isDeepStrictEqual } from 'node:util';
import { limits } from './base/limits.ts';
import { isNetwork } from './base/network.ts';
import { choice, duration, integer, isOrigin, list, option, readAll, size, toggle, type Values } from './options.ts';

const connections = integer('COUNT', 1, 1_000_000);

/** The options that `createApp` takes too, by the names that it has for them. */
export const settings = {
  /** Who may create users: administrators alone (`closed`, if absent), or anybody. */
  registration: option(
    'registration', 'who may create users: administrators only, or anyone', choice(['closed', 'open']), 'closed',
  ),
  /** `required` if absent. `none` makes every caller an administrator, and only loopback is served. */
  auth: option(
    'auth', 'none makes every caller an administrator, for prototyping on loopback', choice(['required', 'none']),
    'required',
  ),
  /** Origins such as `https://app.example` whose pages may call the API; none if absent. */
  corsOrigins: list(
    'cors-origin', 'web origins whose pages may call the API', 'ORIGIN,…',
    'origins such as https://app.example, between commas', isOrigin,
  ),
  /** Addresses and networks such as `10.0.0.0/8` whose `X-Forwarded-For` and `-Proto` are believed; none if absent. */
  trustedProxies: list(
    'trust-proxy', 'proxies whose X-Forwarded-For and X-Forwarded-Proto are believed', 'NETWORK,…',
    'addresses or networks such as 10.0.0.0/8, between commas', isNetwork,
  ),
  /** Of a bearer token, which cannot be revoked: 10 to 86,400 (a day); 900 if absent. */
  accessTokenLifetimeSeconds: option(
    'access-token-ttl', 'life of a bearer token, which cannot be revoked', duration('10s', '24h'), '15m',
  ),
  /** A cookie session's life without a request: 60 to 7,776,000 (90 days); 43,200 if absent. Within the next one. */
  sessionIdleSeconds: option(
    'session-idle', 'how long a cookie session lives without a request; by default no longer than --session-max',
    duration('1m', '90d'), '12h',
  ),
  /** How long a cookie session lives at most: 60 to 31,536,000 (365 days); 604,800 (7 days) if absent. */
  sessionLifetimeSeconds: option(
    'session-max', 'how long a cookie session lives at most', duration('1m', '365d'), '7d',
  ),
  /** Sessions that a user may have at a time, one more ends the oldest: 1 to 1,000; 50 if absent. */
  sessionsPerUser: option(
    'sessions-per-user', 'sessions that a user may have at a time; one more ends the oldest',
    integer('COUNT', 1, 1000), 50,
  ),
  /** Of a new password, in characters: 8 to 128; 15 if absent. */
  passwordLengthMin: option('password-min', 'shortest password, in characters', integer('LENGTH', 8, 128), 15),
  /** Exponent of scrypt's N: 1 to 20; 15 if absent. Below 14, which the command line refuses, is for tests alone. */
  scryptCost: option('scrypt-cost', "exponent of scrypt's N for new password hashes", integer('EXPONENT', 14, 20), 15),
  /** Of a request's body: 1,024 to 67,108,864 (64 MiB); 1,048,576 (1 MiB) if absent. */
  bodyBytesMax: option('body-max', 'largest request body', size('1KiB', '64MiB'), '1MiB'),
  /** Open connections of each listener: 1 to 1,000,000; 8,192 if absent. */
  connectionsMax: option(
    'connections-max', 'open connections in all; idle ones make room for new ones', connections, limits.connectionsMax,
  ),
  /** Those of one address that is no trusted proxy: 1 to 1,000,000; 1,024 if absent. */
  connectionsPerAddressMax: option(
    'connections-per-address', 'open connections of one address that is no trusted proxy', connections,
    limits.connectionsPerAddressMax,
  ),
  /** How long `close` takes new connections still, for load balancers to notice: 0 to 300; 0 if absent. */
  shutdownGraceSeconds: option(
    'shutdown-grace', 'how long a stopping server, no longer ready, takes new connections', duration('0s', '5m'), '0s',
  ),
  /** How long `close` then waits for requests in flight: 0 to 600; 30 if absent. */
  shutdownTimeoutSeconds: option(
    'shutdown-timeout', 'how long a stopping server then waits for requests in flight', duration('0s', '10m'), '30s',
  ),
  /** Refuses PUT, PATCH and DELETE without `If-Match`; false if absent. */
  requireIfMatch: toggle('require-if-match', 'refuse PUT, PATCH and DELETE without If-Match (428)'),
} as const;

/** What an app takes by the rules of the command line, in plain numbers and lists. */
type Settings = Values<typeof settings>;
export type SomeSettings = { readonly [K in keyof Settings]?: Settings[K] | undefined };

/**
 * All settings, those that are absent as the command line has them. Times are whole seconds.
 * @throws RangeError that names a setting and what is allowed
 */
export function settingsOf(given: SomeSettings): Settings {
  const values: ReadonlyMap<string, unknown> = new Map(Object.entries(given));
  const table = { ...settings, scryptCost: { ...settings.scryptCost, ...integer('', 1, 20) } };
  const read = readAll(table, (option, name) => {
    const value = values.get(name);
    if (value === undefined || isDeepStrictEqual(value, option.default)) return option.default;
    // What is well formed comes back from its text as it was, and of the same type.
    const parsed = option.parse(`${value}${option.unit ?? ''}`);
    if (parsed !== undefined && isDeepStrictEqual(parsed, value)) return parsed;
    const allowed = option.unit === undefined ? option.allowed : `a plain number (${option.unit}), ${option.allowed}`;
    throw new RangeError(`Cannot use ${name} ${inspect(value)}: must be ${allowed}`);
  });
  const max = read.sessionLifetimeSeconds;
  const idle = given.sessionIdleSeconds ?? Math.min(read.sessionIdleSeconds, max);
  if (idle <= max) return { ...read, sessionIdleSeconds: idle };
  throw new RangeError(`Cannot use sessionIdleSeconds ${idle}: must be at most sessionLifetimeSeconds, ${max}`);
}
