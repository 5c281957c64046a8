import { inspect, isDeepStrictEqual } from 'node:util';
import { FatalError } from '../base/errors.ts';
import { isLoopback, isNetwork } from '../base/network.ts';
import { hostOf } from '../http/head.ts';
import type { EtcdOptions } from '../store/cluster/etcd.ts';

/** What an installation may choose, on the command line or in `createApp`. */
export interface Settings {
  /** Who may create users: administrators only, or anyone. */
  readonly registration: 'closed' | 'open';
  /**
   * `none` makes every caller an administrator. It answers callers on this machine only.
   */
  readonly auth: 'required' | 'none';
  /** Web origins such as `https://app.example` whose pages may call the API. */
  readonly corsOrigins: readonly string[];
  /**
   * Addresses and networks such as `10.0.0.0/8` of proxies whose `X-Forwarded-*` are
   * believed.
   */
  readonly trustedProxies: readonly string[];
  /**
   * The path under which a proxy shows the server, such as `/api`; empty for the root.
   */
  readonly basePath: string;
  /** The shortest password, in characters. */
  readonly passwordLengthMin: number;
  /** The exponent of scrypt's N. `createApp` also accepts 1 to 13, for tests only. */
  readonly scryptCost: number;
  /** Refuses PUT, PATCH and DELETE without `If-Match`. */
  readonly requireIfMatch: boolean;
}

/** The etcd in which the nodes of a cluster share their data. */
export interface ClusterOptions extends EtcdOptions {
  /** The beginning of all keys in etcd, which ends in a slash; `cairn/` if absent. */
  readonly prefix?: string;
  /** How long a node serves reads while etcd does not answer; 5,000 if absent. */
  readonly maxAgeMs?: number;
  /**
   * `confirmed` asks etcd at each request with a cookie whether another node has ended its
   * session; `recent`, the default, does not.
   */
  readonly sessions?: 'recent' | 'confirmed';
}

/** Settings, of which any may be left out. */
export type SomeSettings = { readonly [K in keyof Settings]?: Settings[K] | undefined };

/** A kind of value: how it is written, and which values are allowed. */
export interface Kind<T> {
  /** Stands for the value in the help, such as `PORT`. Empty for a switch, which has no value. */
  readonly placeholder: string;
  /** Which values are allowed, in words. */
  readonly allowed: string;
  /** Returns the value of a text; `undefined` where it is not allowed. */
  readonly parse: (text: string) => T | undefined;
}

/** One option. Flag, variable, help, checks and the README's table follow from it. */
export interface Option<T> extends Kind<T> {
  /** The flag without its dashes. */
  readonly name: string;
  /** The environment variable. Absent for an option of a single command. */
  readonly variable: string | undefined;
  /** One sentence without a full stop. */
  readonly help: string;
  readonly default: T;
  /** The default as a person would type it, or what happens without the option; may be empty. */
  readonly defaultText: string;
  /** The option without which this one has no effect. */
  readonly needs?: Option<unknown>;
}

/**
 * A wrong use of Cairn. The message is one line that names the option and what is
 * allowed.
 */
export class OptionError extends FatalError {
  override readonly name = 'OptionError';

  constructor(message: string) {
    super(64, message);
  }
}

/** Declares an option. */
export function option<T>(
  name: string,
  help: string,
  kind: Kind<T>,
  fallback: T,
  more: Partial<Pick<Option<T>, 'defaultText' | 'needs'>> = {},
): Option<T> {
  const variable = `CAIRN_${name.replaceAll('-', '_').toUpperCase()}`;
  const defaultText = String(fallback ?? '');
  return { ...kind, name, variable, help, default: fallback, defaultText, ...more };
}

/** Returns the same option without an environment variable. */
export function flagOnly<T>(given: Option<T>): Option<T> {
  return { ...given, variable: undefined };
}

/** Declares an option that is switched on by its flag, or by the value `true` of its variable. */
export function toggle(name: string, help: string): Option<boolean> {
  const values = new Map([
    ['true', true],
    ['false', false],
  ]);
  const kind = {
    placeholder: '',
    allowed: 'true or false',
    parse: (text: string) => values.get(text),
  };
  return option(name, help, kind, false);
}

/** One line of text. */
export function text(
  placeholder: string,
  allowed = 'a text that is not empty',
  isAllowed = (line: string) => /^[^\0\r\n]+$/.test(line),
): Kind<string> {
  return { placeholder, allowed, parse: (line) => (isAllowed(line) ? line : undefined) };
}

/** One of some words. */
export function choice<const V extends string>(words: readonly V[]): Kind<V> {
  return {
    placeholder: words.join('|'),
    allowed: `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
  };
}

/** A whole number. */
export function integer(placeholder: string, min: number, max: number): Kind<number> {
  return {
    placeholder,
    allowed: `a whole number from ${min} to ${max}`,
    parse(text) {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
      return value >= min && value <= max ? value : undefined;
    },
  };
}

/** Texts that are all different; on the command line with commas between them. */
function list(entry: Kind<string>): Kind<readonly string[]> {
  return {
    ...entry,
    parse(text) {
      const values = text.split(',').flatMap((part) => entry.parse(part.trim()) ?? []);
      return new Set(values).size === text.split(',').length ? values : undefined;
    },
  };
}

/** Whether a program may give this value: it is what the same value as a text stands for. */
export function isAllowed(kind: Kind<unknown>, value: unknown): boolean {
  return value !== undefined && isDeepStrictEqual(kind.parse(textOf(value)), value);
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(',');
  return typeof value === 'object' ? '' : String(value);
}

/** Whether a text is an origin as browsers send it: scheme, host, and no default port. */
function isOrigin(entry: string): boolean {
  return /^https?:/.test(entry) && URL.canParse(entry) && new URL(entry).origin === entry;
}

/** Whether a text is an address to which passwords and keys may be sent. */
function isMember(line: string): boolean {
  if (!URL.canParse(line)) return false;
  const { protocol, host, origin } = new URL(line);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopback(hostOf(host)));
  return isSafe && origin === line.replace(/\/$/, '');
}

/** The kinds of what `ClusterOptions` has as the command line has it. */
export const clusterKinds = {
  members: list(
    text('URL,…', 'addresses such as https://10.0.0.1:2379; http: only on loopback', isMember),
  ),
  prefix: text('PREFIX', 'a text that ends in a slash', (line) => /^[\w./-]{1,100}\/$/.test(line)),
  sessions: choice(['recent', 'confirmed']),
};

/** The options of the command line that `createApp` takes too. */
export const settings: { readonly [K in keyof Settings]: Option<Settings[K]> } = {
  registration: option(
    'registration',
    'who may create users: administrators only, or anyone',
    choice(['closed', 'open']),
    'closed',
  ),
  auth: option(
    'auth',
    'none makes every caller an administrator, for prototypes on loopback',
    choice(['required', 'none']),
    'required',
  ),
  corsOrigins: option(
    'cors-origin',
    'web origins whose pages may call the API',
    list(text('ORIGIN,…', 'origins such as https://app.example', isOrigin)),
    [],
  ),
  trustedProxies: option(
    'trust-proxy',
    'proxies whose X-Forwarded-For and X-Forwarded-Proto are believed',
    list(text('NETWORK,…', 'addresses or networks such as 10.0.0.0/8', isNetwork)),
    [],
  ),
  basePath: option(
    'base-path',
    'path under which a proxy shows the server',
    text('PATH', 'a path such as /api, without a slash at its end', (line) =>
      /^(?:\/[\w.~-]+)*$/.test(line),
    ),
    '',
  ),
  passwordLengthMin: option(
    'password-min',
    'shortest password, in characters',
    integer('LENGTH', 8, 128),
    15,
  ),
  scryptCost: option(
    'scrypt-cost',
    "exponent of scrypt's N for new password hashes",
    integer('EXPONENT', 14, 20),
    15,
  ),
  requireIfMatch: toggle('require-if-match', 'refuse PUT, PATCH and DELETE without If-Match (428)'),
};

/**
 * Returns all settings, with defaults for those that are left out.
 * @throws RangeError that names a setting and what is allowed
 */
export function settingsOf(given: SomeSettings): Settings {
  return allSettings((name) => {
    const value = given[name];
    const option = settings[name];
    if (value === undefined) return option.default;
    const kind = name === 'scryptCost' ? integer('', 1, 20) : option;
    if (isDeepStrictEqual(value, option.default) || isAllowed(kind, value)) return value;
    throw new RangeError(`Cannot use ${name} ${inspect(value)}: must be ${option.allowed}`);
  });
}

/** Reads each setting by its name. */
export function allSettings(read: <K extends keyof Settings>(name: K) => Settings[K]): Settings {
  return {
    registration: read('registration'),
    auth: read('auth'),
    corsOrigins: read('corsOrigins'),
    trustedProxies: read('trustedProxies'),
    basePath: read('basePath'),
    passwordLengthMin: read('passwordLengthMin'),
    scryptCost: read('scryptCost'),
    requireIfMatch: read('requireIfMatch'),
  };
}
