import { inspect, isDeepStrictEqual } from 'node:util';
import { settings } from './config.ts';
import { integer, readAll } from './options.ts';

/** What an app takes by the rules of the command line, in plain numbers and lists. */
export interface Settings {
  /** `required` if absent. `none` makes every caller an administrator, and only loopback is served. */
  readonly auth: 'required' | 'none';
  /** Who may create users: administrators alone (`closed`, if absent), or anybody. */
  readonly registration: 'open' | 'closed';
  /** Refuses PUT, PATCH and DELETE without `If-Match`; false if absent. */
  readonly requireIfMatch: boolean;
  /** Origins such as `https://app.example` whose pages may call the API; none if absent. */
  readonly corsOrigins: readonly string[];
  /** Addresses and networks such as `10.0.0.0/8` whose `X-Forwarded-For` and `-Proto` are believed; none if absent. */
  readonly trustedProxies: readonly string[];
  /** Of a bearer token, which cannot be revoked: 10 to 86,400 (a day); 900 if absent. */
  readonly accessTokenLifetimeSeconds: number;
  /** How long a cookie session lives without a request: 60 to 7,776,000 (90 days); 43,200 (12 hours) if absent. */
  readonly sessionIdleSeconds: number;
  /** How long a cookie session lives at most: 60 to 31,536,000 (365 days); 604,800 (7 days) if absent. */
  readonly sessionLifetimeSeconds: number;
  /** Sessions that a user may have at a time, one more ends the oldest: 1 to 1,000; 50 if absent. */
  readonly sessionsPerUser: number;
  /** Of a new password, in characters: 8 to 128; 15 if absent. */
  readonly passwordLengthMin: number;
  /** Exponent of scrypt's N: 1 to 20; 15 if absent. Below 14, which the command line refuses, is for tests alone. */
  readonly scryptCost: number;
  /** Of a request's body: 1,024 to 67,108,864 (64 MiB); 1,048,576 (1 MiB) if absent. */
  readonly bodyBytesMax: number;
  /** Open connections of each listener: 1 to 1,000,000; 8,192 if absent. */
  readonly connectionsMax: number;
  /** Those of one address that is no trusted proxy: 1 to 1,000,000; 1,024 if absent. */
  readonly connectionsPerAddressMax: number;
  /** How long `close` takes new connections still, for load balancers to notice: 0 to 300; 0 if absent. */
  readonly shutdownGraceSeconds: number;
  /** How long `close` then waits for requests in flight: 0 to 600; 30 if absent. */
  readonly shutdownTimeoutSeconds: number;
}

export type SomeSettings = { readonly [K in keyof Settings]?: Settings[K] | undefined };

/**
 * All settings, those that are absent as the command line has them. Times are whole seconds.
 * @throws RangeError that names a setting and what is allowed
 */
export function settingsOf(given: SomeSettings): Settings {
  const values: ReadonlyMap<string, unknown> = new Map(Object.entries(given));
  return readAll({ ...settings, scryptCost: { ...settings.scryptCost, ...integer('', 1, 20) } }, (option, name) => {
    const value = values.get(name);
    if (value === undefined || isDeepStrictEqual(value, option.default)) return option.default;
    // What is well formed comes back from its text as it was, and of the same type.
    const parsed = option.parse(`${value}${option.unit ?? ''}`);
    if (parsed !== undefined && isDeepStrictEqual(parsed, value)) return parsed;
    const allowed = option.unit === undefined ? option.allowed : `a plain number (${option.unit}), ${option.allowed}`;
    throw new RangeError(`Cannot use ${name} ${inspect(value)}: must be ${allowed}`);
  });
}
