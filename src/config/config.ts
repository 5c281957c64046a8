import { readFileSync } from 'node:fs';
import { limits } from '../base/limits.ts';
import { nearest } from '../base/nearest.ts';
import { isLoopback } from '../base/network.ts';
import { ruleViolation } from '../schema/rules.ts';
import { errorCode } from '../store/disk/files.ts';
import type { TlsFiles } from './certificate.ts';
import {
  choice,
  integer,
  members,
  option,
  readTable,
  settings,
  text,
  UsageError,
  type ClusterOptions,
  type Option,
} from './settings.ts';

/** The options and secrets of a server, checked. The names are those of `AppOptions`. */
export interface Config extends Omit<ServerOptions, 'tlsCert' | 'tlsKey' | ClusterOptionName> {
  /** Absent: the data are in the directory. */
  readonly cluster: ClusterOptions | undefined;
  readonly tls: TlsFiles | undefined;
  readonly secret: string | undefined;
  readonly adminPassword: string | undefined;
}

/** The values of `options`. */
type ServerOptions = { readonly [K in keyof typeof options]: (typeof options)[K]['default'] };

type ClusterOptionName = keyof ServerOptions & `cluster${string}`;

/** Variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The values of flags, by their names without dashes. */
export type Flags = ReadonlyMap<string, string>;

/** The variables of the process. No other file reads them. */
export const systemEnvironment: Environment = process.env;

const isAddress = (line: string): boolean => /^[\w.:%-]+$/.test(line);
const isEmail = (line: string): boolean => ruleViolation({ kind: 'email' }, line) === undefined;
const address = text('ADDRESS', 'an IP address or a host name', isAddress);
const port = integer('PORT', 0, 65_535);
const file = text('FILE');

/** The options of a node of a cluster. */
const clusterTable = {
  cluster: option(
    'cluster',
    'members of the etcd in which several nodes share their data, instead of --data',
    members,
    undefined,
  ),
  clusterPrefix: option(
    'cluster-prefix',
    'beginning of all keys of the cluster in etcd',
    text('PREFIX', 'a text that ends in a slash', (line) => /^[\w./-]{1,100}\/$/.test(line)),
    'cairn/',
  ),
  clusterMaxAge: option(
    'cluster-max-age',
    'how long a node serves reads while etcd does not answer, in seconds',
    integer('SECONDS', 1, 60),
    5,
  ),
  clusterSessions: option(
    'cluster-sessions',
    'confirmed asks etcd at each request with a cookie whether another node ended its session',
    choice(['recent', 'confirmed']),
    'recent',
  ),
  clusterCa: option(
    'cluster-ca',
    'certificates in PEM that vouch for the members',
    file,
    undefined,
  ),
  clusterCert: option(
    'cluster-cert',
    "this node's certificate for the members, in PEM",
    file,
    undefined,
  ),
  clusterKey: option('cluster-key', 'the private key of --cluster-cert, in PEM', file, undefined),
  clusterUser: option(
    'cluster-user',
    'user of etcd; the password is CAIRN_CLUSTER_PASSWORD',
    text('NAME'),
    undefined,
  ),
};

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
    'pretty on a terminal, else json',
  ),
  logLevel: option(
    'log-level',
    'least severe lines to log; security events are always logged',
    choice(['info', 'warn', 'error']),
    'info',
  ),
  opsHost: option('ops-host', 'address of the operations listener', address, '127.0.0.1'),
  opsPort: option(
    'ops-port',
    'port of the operations listener (/metrics, /livez, /readyz); without it there is none',
    port,
    undefined,
  ),
  tlsCert: option('tls-cert', 'certificate chain in PEM; read again on SIGHUP', file, undefined),
  tlsKey: option('tls-key', 'private key in PEM; read again on SIGHUP', file, undefined),
  ...clusterTable,
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

/**
 * Reads all options and secrets of a server.
 * @throws UsageError that names the option and what is allowed
 */
export function readConfig(flags: Flags, environment: Environment): Config {
  const {
    tlsCert,
    tlsKey,
    cluster,
    clusterPrefix,
    clusterMaxAge,
    clusterSessions,
    clusterCa,
    clusterCert,
    clusterKey,
    clusterUser,
    ...values
  } = readTable<ServerOptions>(options, (option) => readOption(option, flags, environment));
  if (values.auth === 'none' && !isLoopback(values.host)) {
    const hosts = '--host 127.0.0.1, ::1 or localhost';
    throw new UsageError(`Cannot use --auth: none is allowed only with ${hosts}`);
  }
  const clusterPassword = readSecret('CAIRN_CLUSTER_PASSWORD', environment);
  const [certFile, keyFile] = bothOrNone('--tls-cert and --tls-key', tlsCert, tlsKey);
  const [cert, key] = bothOrNone('--cluster-cert and --cluster-key', clusterCert, clusterKey);
  const [name, password] = bothOrNone(
    '--cluster-user and CAIRN_CLUSTER_PASSWORD',
    clusterUser,
    clusterPassword,
  );
  return {
    ...values,
    cluster: cluster && {
      members: cluster,
      prefix: clusterPrefix,
      maxAgeMs: clusterMaxAge * 1000,
      sessions: clusterSessions,
      tls: readClusterTls({ ca: clusterCa, cert, key }),
      user: name === undefined ? undefined : { name, password },
    },
    tls: certFile === undefined ? undefined : { certFile, keyFile },
    secret: readSecret('CAIRN_SECRET', environment, limits.keyBytesMin, limits.keyBytesMax),
    adminPassword: readSecret('CAIRN_ADMIN_PASSWORD', environment),
  };
}

/** Reads the files that are given. @throws UsageError if one cannot be read */
function readClusterTls(
  files: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).flatMap(([part, file]) =>
      file === undefined ? [] : [[part, readSecretFile(file, `--cluster-${part}`)] as const],
    ),
  );
}

/**
 * Returns two values of which neither is of use alone.
 * @throws UsageError if only one is given
 */
function bothOrNone(
  names: string,
  first: string | undefined,
  second: string | undefined,
): readonly [string, string] | readonly [undefined, undefined] {
  if (first !== undefined && second !== undefined) return [first, second];
  if (first === second) return [undefined, undefined];
  throw new UsageError(`Cannot use ${names}: each needs the other`);
}

/** Reads one option: its flag, else its variable, else its default. @throws UsageError */
export function readOption<T>(option: Option<T>, flags: Flags, environment: Environment): T {
  const { name, variable = '', parse } = option;
  const flag = flags.get(name);
  const given = flag ?? (environment[variable] || undefined);
  if (given === undefined) return option.default;
  const value = parse === undefined ? given : parse(given);
  if (option.accepts(value)) return value;
  const source = flag === undefined ? variable : `--${name}`;
  const shown = JSON.stringify(given.length > 60 ? `${given.slice(0, 60)}…` : given);
  throw new UsageError(`Cannot use ${source} ${shown}: must be ${option.allowed}`);
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
    .map((name) => `The variable ${name} is no option; did you mean ${nearest(name, known)}?`);
}

/**
 * Reads a secret, and never quotes it.
 * @throws UsageError if it is given twice, or the file or the length is wrong
 */
function readSecret(
  name: SecretName,
  environment: Environment,
  bytesMin = 0,
  bytesMax = Infinity,
): string | undefined {
  const value = environment[name] || undefined;
  const file = environment[`${name}_FILE`] || undefined;
  const source = file === undefined ? name : `${name}_FILE`;
  if (file !== undefined && value !== undefined) {
    throw new UsageError(`Cannot use ${source}: ${name} is set as well`);
  }
  const secret = file === undefined ? value : readSecretFile(file, source);
  const bytes = Buffer.byteLength(secret ?? '');
  if (secret === undefined || (bytes >= bytesMin && bytes <= bytesMax)) return secret;
  throw new UsageError(
    `Cannot use ${source}: must have from ${bytesMin} to ${bytesMax} bytes, and has ${bytes}`,
  );
}

function readSecretFile(file: string, source: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const reason = errorCode(error) ?? 'unknown error';
    throw new UsageError(`Cannot use ${source}: the file cannot be read (${reason})`);
  }
}
