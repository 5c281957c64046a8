/**
 * The table of options. The command line, the variables, `createApp`, the help and the reference
 * are derived from its rows.
 */
import { FatalError } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { isLoopback, isNetwork } from '../base/network.ts';
import { toHostName } from '../http/head.ts';

export interface OptionKind<T> {
  /** The value's name in the help, such as `PORT`. Empty for a switch, which has no value. */
  readonly placeholder: string;
  /** In words. */
  readonly allowed: string;
  /** Returns `undefined` for a value that is not allowed. */
  readonly parse: (text: string) => T | undefined;
}

export interface Option<T> extends OptionKind<T> {
  /** The flag without its dashes. */
  readonly name: string;
  /** The environment variable. Absent for an option of a single command. */
  readonly variable: string | undefined;
  /** One sentence without a full stop. */
  readonly help: string;
  readonly default: T;
  /** The default as a person would type it, or its effect in words; may be empty. */
  readonly defaultText: string;
  /** An option that this one depends on. */
  readonly needs?: Option<unknown>;
  /** The values that a program may give, if it may give more than a person. */
  readonly inPrograms?: OptionKind<T>;
}

export type ValuesOf<T> = {
  readonly [K in keyof T]: T[K] extends Option<infer V> ? V : never;
};

/** A misuse of Cairn. The message is one line that names the option and the allowed values. */
export class OptionError extends FatalError {
  override readonly name = 'OptionError';
  /** Absent if several options are wrong together. */
  readonly option: string | undefined;

  constructor(message: string, option?: string) {
    super(64, message);
    this.option = option;
  }
}

export function option<T>(
  name: string,
  help: string,
  kind: OptionKind<T>,
  fallback: T,
  more: Partial<Pick<Option<T>, 'defaultText' | 'needs' | 'inPrograms'>> = {},
): Option<T> {
  const variable = `CAIRN_${name.replaceAll('-', '_').toUpperCase()}`;
  const defaultText = String(fallback ?? '');
  return { ...kind, name, variable, help, default: fallback, defaultText, ...more };
}

export function flagOnly<T>(given: Option<T>): Option<T> {
  return { ...given, variable: undefined };
}

/** A switch: its flag, or the value `true` of its variable. */
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

export function text(
  placeholder: string,
  allowed = 'a text that is not empty',
  isAllowed = (line: string) => /^[^\0\r\n]+$/.test(line),
): OptionKind<string> {
  return { placeholder, allowed, parse: (line) => (isAllowed(line) ? line : undefined) };
}

export function choice<const V extends string>(words: readonly V[]): OptionKind<V> {
  return {
    placeholder: words.join('|'),
    allowed: `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
  };
}

export function integer(placeholder: string, min: number, max: number): OptionKind<number> {
  return {
    placeholder,
    allowed: `a whole number from ${min} to ${max}`,
    parse(text) {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
      return value >= min && value <= max ? value : undefined;
    },
  };
}

/** Distinct values, separated by commas on the command line. */
function list(entry: OptionKind<string>): OptionKind<readonly string[]> {
  return {
    ...entry,
    parse(text) {
      const values = text.split(',').flatMap((part) => entry.parse(part.trim()) ?? []);
      return new Set(values).size === text.split(',').length ? values : undefined;
    },
  };
}

/**
 * True for an origin as browsers send it: scheme, host, and no default port. On loopback the port
 * may be `*`, for any.
 */
function isOrigin(entry: string): boolean {
  const origin = entry.replace(/:\*$/, '');
  const isOne =
    /^https?:/.test(origin) && URL.canParse(origin) && new URL(origin).origin === origin;
  return isOne && (origin === entry || isLoopback(toHostName(new URL(origin).host)));
}

/** True for an address that may receive passwords and keys. */
function isMember(line: string): boolean {
  if (!URL.canParse(line)) return false;
  const { protocol, host, origin } = new URL(line);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopback(toHostName(host)));
  return isSafe && origin === line.replace(/\/$/, '');
}

const isAddress = (line: string): boolean => /^[\w.:%-]+$/.test(line);
/** A random key has at least this many different bytes, whatever its alphabet. */
const keyVarietyMin = 8;

/** The secret that signs tokens (HS256, RFC 7518 §3.2). */
export const signingKey: OptionKind<string> = {
  placeholder: 'SECRET',
  allowed:
    `a random text of ${limits.keyBytesMin} to ${limits.keyBytesMax} bytes, ` +
    `at least ${keyVarietyMin} of them different`,
  parse(secret) {
    const bytes = Buffer.from(secret);
    const fits = bytes.length >= limits.keyBytesMin && bytes.length <= limits.keyBytesMax;
    return fits && new Set(bytes).size >= keyVarietyMin ? secret : undefined;
  },
};

const address = text('ADDRESS', 'an IP address or a host name', isAddress);
const port = integer('PORT', 0, 65_535);
const file = text('FILE');

const dialect = option(
  'dialect',
  'also accept the requests of json-server clients, and respond as it does; needs --auth none',
  choice(['json-server']),
  undefined,
);

const share = toggle(
  'share',
  'listen on all addresses, and also serve devices on private networks; needs --auth none',
);

const shareHosts = option(
  'share-host',
  'more host names of this machine for --share',
  list(text('NAME,…', 'host names without a port', (name) => /^[\w.-]+$/.test(name))),
  [],
  { needs: share },
);

/** Options that the command line and `createApp` share. */
export interface Settings {
  /** Lets only administrators, or anyone, create users. */
  readonly registration: 'closed' | 'open';
  /** `none` makes every caller an administrator, for prototypes on loopback. */
  readonly auth: 'required' | 'none';
  /**
   * Also accepts the requests of json-server's clients, and responds like it; with `auth: 'none'`.
   */
  readonly dialect: 'json-server' | undefined;
  /** Web origins that may call, such as `https://app.example`. */
  readonly corsOrigins: readonly string[];
  /** Also serves devices on private networks; with `auth: 'none'`. */
  readonly share: boolean;
  /** More host names of this machine that `share` serves. */
  readonly shareHosts: readonly string[];
  /** Addresses or networks, such as `10.0.0.0/8`, whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  /** The path under which a proxy or a framework serves the app, such as `/api`. */
  readonly basePath: string;
  /** `max-age` of `Strict-Transport-Security` over HTTPS; a year if absent, 0 sends none. */
  readonly hstsSeconds: number;
  /** The shortest password, in characters; 15 if absent. */
  readonly passwordLengthMin: number;
  /** The exponent of scrypt's N for new password hashes; 15 if absent, 1 is cheap for tests. */
  readonly scryptCost: number;
  /** Memory for records in MiB, as Cairn counts it; beyond it growing writes get 507. */
  readonly memoryMax: number | undefined;
  /** The most records that a caller other than an administrator may own; beyond it 507. */
  readonly recordsPerOwner: number | undefined;
  /** Refuses PUT, PATCH and DELETE without If-Match (428). */
  readonly requireIfMatch: boolean;
}

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
  dialect,
  corsOrigins: option(
    'cors-origin',
    'web origins with pages that may call the API',
    list(text('ORIGIN,…', 'origins such as https://app.example or http://localhost:*', isOrigin)),
    [],
  ),
  share,
  shareHosts,
  trustedProxies: option(
    'trust-proxy',
    'proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted',
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
  hstsSeconds: option(
    'hsts-seconds',
    'how long browsers use only HTTPS (Strict-Transport-Security), except on localhost; 0 sends none',
    integer('SECONDS', 0, 63_072_000),
    31_536_000,
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
    // A program's tests need no hashes that resist attacks.
    { inPrograms: integer('EXPONENT', 1, 20) },
  ),
  memoryMax: option(
    'memory-max',
    'memory for records, in MiB; beyond it growing writes get 507',
    integer('MIB', 1, 1_000_000),
    undefined,
    { defaultText: "three fifths of Node's heap, minus what an empty server uses" },
  ),
  recordsPerOwner: option(
    'records-per-owner',
    'most records that a caller may own, except administrators; beyond it 507',
    integer('NUMBER', 1, 1_000_000_000),
    undefined,
  ),
  requireIfMatch: toggle('require-if-match', 'refuse PUT, PATCH and DELETE without If-Match (428)'),
};

/** All except a cluster's, by the name of the value. */
export const options = {
  host: option('host', 'address to listen on', address, '127.0.0.1'),
  port: option('port', 'port to listen on; 0 takes any free one', port, 3000),
  directory: option('data', 'directory of the data files', text('DIRECTORY'), 'data'),
  collections: option('collections', 'JSON file that declares your collections', file, undefined),
  log: option(
    'log',
    'format of the log; none also leaves out security events',
    choice(['pretty', 'json', 'none']),
    undefined,
    { defaultText: 'pretty on a terminal, else json' },
  ),
  logLevel: option(
    'log-level',
    'least severe lines to log; security events are always logged',
    choice(['info', 'warn', 'error']),
    'info',
  ),
  page: option('page', 'the page for browsers at /', choice(['on', 'off']), 'on'),
  tlsCert: option('tls-cert', 'certificate chain in PEM; read again on SIGHUP', file, undefined),
  tlsKey: option('tls-key', 'private key in PEM; read again on SIGHUP', file, undefined),
  ...settings,
};

const members = option(
  'cluster',
  'etcd members that store the data of several nodes, instead of --data',
  list(text('URL,…', 'addresses such as https://10.0.0.1:2379; http: only on loopback', isMember)),
  undefined,
);
const inCluster = { needs: members };

export const clusterOptions = {
  members,
  prefix: option(
    'cluster-prefix',
    'prefix of all keys of the cluster in etcd',
    text('PREFIX', 'a text that ends in a slash', (line) => /^[\w./-]{1,100}\/$/.test(line)),
    'cairn/',
    inCluster,
  ),
  maxAge: option(
    'cluster-max-age',
    'how long a node serves reads while etcd does not respond, in seconds',
    integer('SECONDS', 1, 60),
    5,
    inCluster,
  ),
  sessions: option(
    'cluster-sessions',
    'confirmed asks etcd, for each request with a cookie, if another node ended its session',
    choice(['recent', 'confirmed']),
    'recent',
    inCluster,
  ),
  ca: option(
    'cluster-ca',
    "CA certificates in PEM, to verify etcd's members",
    file,
    undefined,
    inCluster,
  ),
  cert: option(
    'cluster-cert',
    "this node's certificate for the members, in PEM",
    file,
    undefined,
    inCluster,
  ),
  key: option(
    'cluster-key',
    'the private key of --cluster-cert, in PEM',
    file,
    undefined,
    inCluster,
  ),
  user: option(
    'cluster-user',
    'user of etcd; the password is CAIRN_CLUSTER_PASSWORD',
    text('NAME'),
    undefined,
    inCluster,
  ),
};

/** The etcd through which the nodes of a cluster share their data. */
export interface ClusterOptions {
  /** Client addresses of etcd, such as `https://10.0.0.1:2379`. */
  readonly members: readonly string[];
  /**
   * PEM texts: the authority that signs etcd's certificates, and this node's own certificate and
   * key.
   */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  readonly user?: { readonly name: string; readonly password: string } | undefined;
  /** The prefix of all keys in etcd, which ends in a slash; `cairn/` if absent. */
  readonly prefix?: string;
  /** The longest silence of etcd during which a node serves reads; 5,000 if absent. */
  readonly maxAgeMs?: number;
  /**
   * `confirmed` asks etcd, for each request with a cookie, if another node has ended the session;
   * `recent`, the default, does not.
   */
  readonly sessions?: 'recent' | 'confirmed';
}

export function valuesOf<T extends Readonly<Record<string, Option<unknown>>>>(
  table: T,
  read: (option: Option<unknown>, name: string) => unknown,
): ValuesOf<T> {
  const values = Object.entries(table).map(([name, option]) => [name, read(option, name)] as const);
  // `read` returns only what the option of that name allows.
  return Object.fromEntries(values) as ValuesOf<T>;
}
