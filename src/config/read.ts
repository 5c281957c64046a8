import { readFileSync } from 'node:fs';
import { limits } from '../base/limits.ts';
import { didYouMean } from '../base/nearest.ts';
import { isLoopback } from '../base/network.ts';
import { ruleViolation } from '../schema/rules.ts';
import { errorCode } from '../store/disk/files.ts';
import {
  allSettings,
  choice,
  clusterKinds,
  integer,
  option,
  settings,
  text,
  OptionError,
  type ClusterOptions,
  type Option,
} from './options.ts';

/** Variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where options are read: the flags, by their names without dashes, and the variables. */
export interface Given {
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Environment;
}

/** The variables of the process. No other file reads them. */
export const systemEnvironment: Environment = process.env;

const isAddress = (line: string): boolean => /^[\w.:%-]+$/.test(line);
const isEmail = (line: string): boolean => ruleViolation({ kind: 'email' }, line) === undefined;
const address = text('ADDRESS', 'an IP address or a host name', isAddress);
const port = integer('PORT', 0, 65_535);
const file = text('FILE');

const cluster = option(
  'cluster',
  'members of the etcd in which several nodes share their data, instead of --data',
  clusterKinds.members,
  undefined,
);

const inCluster = { needs: cluster };

/** The options of a node of a cluster. */
export const clusterOptions = {
  cluster,
  clusterPrefix: option(
    'cluster-prefix',
    'beginning of all keys of the cluster in etcd',
    clusterKinds.prefix,
    'cairn/',
    inCluster,
  ),
  clusterMaxAge: option(
    'cluster-max-age',
    'how long a node serves reads while etcd does not answer, in seconds',
    integer('SECONDS', 1, 60),
    5,
    inCluster,
  ),
  clusterSessions: option(
    'cluster-sessions',
    'confirmed asks etcd at each request with a cookie whether another node ended its session',
    clusterKinds.sessions,
    'recent',
    inCluster,
  ),
  clusterCa: option(
    'cluster-ca',
    'certificates in PEM that vouch for the members',
    file,
    undefined,
    inCluster,
  ),
  clusterCert: option(
    'cluster-cert',
    "this node's certificate for the members, in PEM",
    file,
    undefined,
    inCluster,
  ),
  clusterKey: option(
    'cluster-key',
    'the private key of --cluster-cert, in PEM',
    file,
    undefined,
    inCluster,
  ),
  clusterUser: option(
    'cluster-user',
    'user of etcd; the password is CAIRN_CLUSTER_PASSWORD',
    text('NAME'),
    undefined,
    inCluster,
  ),
};

const opsPort = option(
  'ops-port',
  'port of the operations listener (/metrics, /livez, /readyz); without it there is none',
  port,
  undefined,
);

/** Every option of a server, by the name of its value. */
export const options = {
  host: option('host', 'address to listen on', address, '127.0.0.1'),
  port: option('port', 'port to listen on; 0 takes any free one', port, 3000),
  directory: option('data', 'directory of the data files', text('DIRECTORY'), 'data'),
  collections: option(
    'collections',
    'file that declares collections of your own, in JSON',
    file,
    undefined,
  ),
  adminEmail: option(
    'admin-email',
    'e-mail address of the administrator that the first start makes',
    text('EMAIL', 'an e-mail address', isEmail),
    'admin@localhost.localdomain',
  ),
  log: option(
    'log',
    'form of the log; none leaves out security events too',
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
  opsHost: option('ops-host', 'address of the operations listener', address, '127.0.0.1', {
    needs: opsPort,
  }),
  opsPort,
  tlsCert: option('tls-cert', 'certificate chain in PEM; read again on SIGHUP', file, undefined),
  tlsKey: option('tls-key', 'private key in PEM; read again on SIGHUP', file, undefined),
  ...clusterOptions,
  ...settings,
};

/**
 * Values that other users of the machine must not see. They come from a variable or from
 * a file that a variable names, never from a flag.
 */
export const secrets = {
  CAIRN_SECRET:
    `signing key, from ${limits.keyBytesMin} to ${limits.keyBytesMax} bytes; ` +
    'without it one is made and kept in the data directory',
  CAIRN_ADMIN_PASSWORD:
    'password of the administrator that the first start makes; without it one is generated',
  CAIRN_CLUSTER_PASSWORD: 'password of --cluster-user',
} as const;
export type SecretName = keyof typeof secrets;

/** The options and secrets of a server, checked. */
export type Config = ReturnType<typeof readConfig>;

/**
 * Reads all options and secrets of a server.
 * @throws OptionError that names the option and what is allowed
 */
export function readConfig(given: Given) {
  const read = <T>(option: Option<T>): T => readOption(option, given);
  const config = {
    ...allSettings((name) => read(settings[name])),
    host: read(options.host),
    port: read(options.port),
    directory: read(options.directory),
    collections: read(options.collections),
    adminEmail: read(options.adminEmail),
    log: read(options.log),
    logLevel: read(options.logLevel),
    opsHost: read(options.opsHost),
    opsPort: read(options.opsPort),
    tls: both('--tls-cert and --tls-key', read(options.tlsCert), read(options.tlsKey)),
    cluster: readCluster(given),
    secret: readSecret('CAIRN_SECRET', given),
    adminPassword: readSecret('CAIRN_ADMIN_PASSWORD', given),
  };
  if (config.auth === 'none' && !isLoopback(config.host)) {
    const hosts = '--host 127.0.0.1, ::1 or localhost';
    throw new OptionError(`Cannot use --auth: none is allowed only with ${hosts}`);
  }
  return config;
}

/** Reads the options of a node; `undefined` without `--cluster`. @throws OptionError */
export function readCluster(given: Given): ClusterOptions | undefined {
  const read = <T>(option: Option<T>): T => readOption(option, given);
  const { clusterCert, clusterKey, clusterUser } = clusterOptions;
  const members = read(clusterOptions.cluster);
  const prefix = read(clusterOptions.clusterPrefix);
  const maxAgeMs = read(clusterOptions.clusterMaxAge) * 1000;
  const sessions = read(clusterOptions.clusterSessions);
  const ca = read(clusterOptions.clusterCa);
  const pair = both('--cluster-cert and --cluster-key', read(clusterCert), read(clusterKey));
  const password = readSecret('CAIRN_CLUSTER_PASSWORD', given);
  const account = both('--cluster-user and CAIRN_CLUSTER_PASSWORD', read(clusterUser), password);
  if (members === undefined) return undefined;
  const tls = {
    ...(ca && { ca: readSecretFile(ca, '--cluster-ca') }),
    ...(pair && {
      cert: readSecretFile(pair[0], '--cluster-cert'),
      key: readSecretFile(pair[1], '--cluster-key'),
    }),
  };
  const user = account && { name: account[0], password: account[1] };
  return { members, prefix, maxAgeMs, sessions, tls, user };
}

/**
 * Returns two values of which neither is of use alone; `undefined` without them.
 * @throws OptionError if only one is given
 */
function both(
  names: string,
  first: string | undefined,
  second: string | undefined,
): readonly [string, string] | undefined {
  if (first !== undefined && second !== undefined) return [first, second];
  if (first === second) return undefined;
  throw new OptionError(`Cannot use ${names}: each needs the other`);
}

/** Reads one option: its flag, else its variable, else its default. @throws OptionError */
export function readOption<T>(option: Option<T>, given: Given): T {
  const { needs } = option;
  const [text, source] = givenFor(option, given);
  if (text === undefined) return option.default;
  const value = option.parse(text);
  if (value === undefined) {
    const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
    throw new OptionError(`Cannot use ${source} ${shown}: must be ${option.allowed}`);
  }
  if (needs === undefined || givenFor(needs, given)[0] !== undefined) return value;
  throw new OptionError(`Cannot use ${source}: it has no effect without --${needs.name}`);
}

/** Returns what is given for an option, and by what. An empty variable gives nothing. */
function givenFor(
  { name, variable = '' }: Option<unknown>,
  { flags, environment }: Given,
): readonly [text: string | undefined, source: string] {
  const flag = flags.get(name);
  return flag === undefined ? [environment[variable] || undefined, variable] : [flag, `--${name}`];
}

/** Returns a warning for each variable that is named like an option and is none. */
export function unknownVariables(environment: Environment): string[] {
  const known = new Set([
    ...Object.values(options).map(({ variable }) => String(variable)),
    ...Object.keys(secrets).flatMap((name) => [name, `${name}_FILE`]),
  ]);
  const isUnknown = (name: string): boolean => name.startsWith('CAIRN_') && !known.has(name);
  return Object.keys(environment)
    .filter(isUnknown)
    .sort()
    .map((name) => `The variable ${name} is no option${didYouMean(name, known)}`);
}

/**
 * Reads a secret, and never quotes it.
 * @throws OptionError if it is given twice, or the file or the length of a key is wrong
 */
export function readSecret(name: SecretName, { environment }: Given): string | undefined {
  const value = environment[name] || undefined;
  const file = environment[`${name}_FILE`] || undefined;
  const source = file === undefined ? name : `${name}_FILE`;
  if (file !== undefined && value !== undefined) {
    throw new OptionError(`Cannot use ${source}: ${name} is set as well`);
  }
  const secret = file === undefined ? value : readSecretFile(file, source);
  const { keyBytesMin: min, keyBytesMax: max } = limits;
  const bytes = Buffer.byteLength(secret ?? '');
  const isKey = secret !== undefined && name === 'CAIRN_SECRET';
  if (!isKey || (bytes >= min && bytes <= max)) return secret;
  throw new OptionError(
    `Cannot use ${source}: must have from ${min} to ${max} bytes, and has ${bytes}`,
  );
}

function readSecretFile(file: string, source: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const reason = errorCode(error) ?? 'unknown error';
    throw new OptionError(`Cannot use ${source}: the file cannot be read (${reason})`);
  }
}
