import { inspect, isDeepStrictEqual } from 'node:util';
import { invariant } from './base/errors.ts';
import { limits } from './base/limits.ts';
import { isNetwork } from './base/network.ts';

/** Which texts are taken, and what value each becomes. */
interface Rule<T> {
  /** The value's name in the help, such as `PORT`; empty for a switch, which stands alone on the command line. */
  readonly placeholder: string;
  /** What is allowed, to follow "must be". */
  readonly allowed: string;
  /** `undefined`: the text is not allowed. */
  readonly parse: (text: string) => T | undefined;
  /** In which the value is a number, where the text has to name a unit. */
  readonly unit?: string | undefined;
}

/**
 * One option of the command line. The same declaration makes the flag, the environment variable, the help, the check
 * and the README's list.
 */
export interface Option<T> extends Rule<T> {
  /** The flag without its dashes. */
  readonly name: string;
  /** Absent for what belongs to one use of a command and not to an installation. */
  readonly variable: string | undefined;
  /** What it is for: one sentence without a full stop. */
  readonly help: string;
  readonly default: T;
  /** The default as a person would type it; empty where there is none. */
  readonly defaultText: string;
}

/** Something is wrong with how Cairn was called; `message` is one line that names the option and what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What the options of a table come to. */
type Values<T> = { readonly [K in keyof T]: T[K] extends Option<infer V> ? V : never };

/** Reads every option of a table. */
export function readAll<T extends { readonly [name: string]: Option<unknown> }>(
  table: T, read: <V>(option: Option<V>, name: string) => V,
): Values<T> {
  const isWhole = (values: object): values is Values<T> => Object.keys(table).every((name) => name in values);
  const values = Object.fromEntries(Object.entries(table).map(([name, option]) => [name, read(option, name)]));
  invariant(isWhole(values), 'every option of a table is read');
  return values;
}

/** `defaultText` is what holds where nothing is given. */
export function option<T>(name: string, help: string, rule: Rule<T>, defaultText: string | number): Option<T> {
  const value = rule.parse(String(defaultText));
  invariant(value !== undefined, 'the default of an option is itself allowed');
  return { ...optional(name, help, rule, String(defaultText)), default: value };
}

/** `defaultText` tells what happens where nothing is given. */
export function optional<T>(name: string, help: string, rule: Rule<T>, defaultText = ''): Option<T | undefined> {
  const variable = `CAIRN_${name.replaceAll('-', '_').toUpperCase()}`;
  return { ...rule, name, variable, help, default: undefined, defaultText };
}

/** The same without a variable. */
export const flagOnly = <T>(option: Option<T>): Option<T> => ({ ...option, variable: undefined });

/** On where it is given; the environment variable takes `true` or `false`. */
export function toggle(name: string, help: string): Option<boolean> {
  const words: ReadonlyMap<string, boolean> = new Map([['true', true], ['false', false]]);
  return option(name, help, { placeholder: '', allowed: 'true or false', parse: (value) => words.get(value) }, 'false');
}

/** Values between commas, none of them by default; a repeated or empty one is refused. */
function list(
  name: string, help: string, placeholder: string, allowed: string, accepts: (entry: string) => boolean,
): Option<readonly string[]> {
  const parse = (value: string): readonly string[] | undefined => {
    const entries = value.split(',').map((entry) => entry.trim());
    return entries.every(accepts) && new Set(entries).size === entries.length ? entries : undefined;
  };
  return { ...optional(name, help, { placeholder, allowed, parse }), default: [] };
}

export function text(
  placeholder: string, allowed = 'a text that is not empty', pattern = /^[^\0\r\n]+$/,
): Rule<string> {
  return { placeholder, allowed, parse: (value) => (pattern.test(value) ? value : undefined) };
}

export function choice<const V extends string>(values: readonly V[]): Rule<V> {
  const parse = (value: string): V | undefined => values.find((candidate) => candidate === value);
  return { placeholder: values.join('|'), allowed: `one of ${values.join(', ')}`, parse };
}

export function integer(placeholder: string, min: number, max: number): Rule<number> {
  return quantity(placeholder, 'a whole number', { '': 1 }, String(min), String(max));
}

/** A length of time such as `90s`, `15m`, `12h` or `7d`; the value is in seconds. */
function duration(min: string, max: string): Rule<number> {
  return quantity('DURATION', 'a duration', { s: 1, m: 60, h: 3600, d: 86_400 }, min, max);
}

/** A number of bytes such as `512KiB` or `1MiB`. */
function size(min: string, max: string): Rule<number> {
  return quantity('SIZE', 'a size', { B: 1, KiB: 1024, MiB: 1024 ** 2 }, min, max);
}

function quantity(
  placeholder: string, what: string, units: Readonly<Record<string, number>>, min: string, max: string,
): Rule<number> {
  const amount = (value: string): number => {
    const [, digits, unit = ''] = /^(\d{1,15})([A-Za-z]{0,3})$/.exec(value) ?? [];
    return Number(digits) * (units[unit] ?? NaN);
  };
  const names = Object.keys(units).filter((name) => name !== '');
  const allowed = `${what} from ${min} to ${max}${names.length === 0 ? '' : ` in ${names.join(', ')}`}`;
  const parse = (value: string): number | undefined =>
    amount(value) >= amount(min) && amount(value) <= amount(max) ? amount(value) : undefined;
  return { placeholder, allowed, unit: names[0], parse };
}

/** A serialised web origin, as browsers send it: scheme, host, and a port where it is not the scheme's own. */
function isOrigin(value: string): boolean {
  return /^https?:\/\//.test(value) && URL.canParse(value) && new URL(value).origin === value;
}

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
