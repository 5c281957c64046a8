import { readFileSync } from 'node:fs';
import { limits } from '../base/limits.ts';
import { nearest } from '../base/nearest.ts';
import { isLoopback } from '../base/network.ts';
import { ruleViolation } from '../schema/rules.ts';
import type { EtcdOptions } from '../store/cluster/etcd.ts';
import { errorCode } from '../store/disk/files.ts';
import type { TlsFiles } from './certificate.ts';
import {
  choice, integer, members, option, readTable, settings, text, UsageError,
  type ClusterOptions, type Option, type OptionTable, type Settings,
} from './settings.ts';

/** The options of a server, as its command line has them. */
export interface ServerOptions extends Settings {
  readonly host: string;
  readonly port: number;
  readonly directory: string;
  readonly adminEmail: string;
  /** Absent: `pretty` on a terminal, else `json`. */
  readonly log: 'pretty' | 'json' | 'none' | undefined;
  readonly logLevel: 'info' | 'warn' | 'error';
  readonly opsHost: string;
  /** Absent: there is no operations listener. */
  readonly opsPort: number | undefined;
  /** Absent: there are no collections beside `items`. */
  readonly collections: string | undefined;
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  /** Addresses of etcd's members. Absent: the data are in the directory. */
  readonly cluster: readonly string[] | undefined;
  readonly clusterPrefix: string;
  readonly clusterMaxAge: number;
  readonly clusterCa: string | undefined;
  readonly clusterCert: string | undefined;
  readonly clusterKey: string | undefined;
  readonly clusterUser: string | undefined;
}

/** The options and secrets of a server, checked. The names are those of `AppOptions`. */
export interface Config extends Omit<ServerOptions, 'tlsCert' | 'tlsKey' | 'cluster' | ClusterOptionName> {
  /** Absent: the data are in the directory. */
  readonly cluster: ClusterOptions | undefined;
  readonly tls: TlsFiles | undefined;
  readonly secret: string | undefined;
  readonly adminPassword: string | undefined;
}

type ClusterOptionName = keyof ServerOptions & `cluster${Capitalize<string>}`;

/** Variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The values of flags, by their names without dashes. */
export type Flags = ReadonlyMap<string, string>;

/** The process's own variables. Nothing else in Cairn asks for them. */
export const systemEnvironment: Environment = process.env;

const address = text('ADDRESS', 'an IP address or a host name', (line) => /^[\w.:%-]+$/.test(line));
const email = text('EMAIL', 'an e-mail address', (line) => ruleViolation({ kind: 'email' }, line) === undefined);
const port = integer('PORT', 0, 65_535);

export const options: OptionTable<ServerOptions> = {
  host: option('host', 'address to listen on', address, '127.0.0.1'),
  port: option('port', 'port to listen on; 0 takes any free one', port, 3000),
  directory: option('data', 'directory of the data files', text('DIRECTORY'), 'data'),
  collections: option('collections', 'file that declares collections of your own, in JSON', text('FILE'), undefined),
  adminEmail: option(
    'admin-email', 'e-mail address of the administrator that the first start makes', email,
    'admin@localhost.localdomain',
  ),
  log: option(
    'log', 'form of the log; none leaves out security events too', choice(['pretty', 'json', 'none']),
    undefined, 'pretty on a terminal, else json',
  ),
  logLevel: option(
    'log-level', 'least severe lines to log; security events are always logged', choice(['info', 'warn', 'error']),
    'info',
  ),
  opsHost: option('ops-host', 'address of the operations listener', address, '127.0.0.1'),
  opsPort: option(
    'ops-port', 'port of the operations listener (/metrics, /livez, /readyz); without it there is none', port,
    undefined,
  ),
  tlsCert: option('tls-cert', 'certificate chain in PEM; read again on SIGHUP', text('FILE'), undefined),
  tlsKey: option('tls-key', 'private key in PEM; read again on SIGHUP', text('FILE'), undefined),
  cluster: option(
    'cluster', 'members of the etcd in which several nodes share their data, instead of --data',
    members, undefined,
  ),
  clusterPrefix: option(
    'cluster-prefix', 'begins all keys of the cluster in etcd',
    text('PREFIX', 'a text that ends in a slash', (line) => /^[\w./-]{1,100}\/$/.test(line)), 'cairn/',
  ),
  clusterMaxAge: option(
    'cluster-max-age', 'how long a node that etcd does not answer serves reads, in seconds',
    integer('SECONDS', 1, 60), 5,
  ),
  clusterCa: option('cluster-ca', 'certificates in PEM that vouch for the members', text('FILE'), undefined),
  clusterCert: option('cluster-cert', "this node's certificate for the members, in PEM", text('FILE'), undefined),
  clusterKey: option('cluster-key', 'the private key of --cluster-cert, in PEM', text('FILE'), undefined),
  clusterUser: option('cluster-user', 'user of etcd; the password is CAIRN_CLUSTER_PASSWORD', text('NAME'), undefined),
  ...settings,
};

/** Values that other users of the machine must not see: from the environment or a file that it names, never a flag. */
export const secrets = {
  CAIRN_SECRET: `signing key, from ${limits.keyBytesMin} to ${limits.keyBytesMax} bytes; ` +
    'without it one is made and kept in the data directory',
  CAIRN_ADMIN_PASSWORD: 'password of the administrator that the first start makes; without it one is generated',
  CAIRN_CLUSTER_PASSWORD: 'password of --cluster-user',
} as const;
export type SecretName = keyof typeof secrets;

/** Reads all options and secrets of a server. @throws UsageError that names the option and what is allowed */
export function readConfig(flags: Flags, environment: Environment): Config {
  const {
    tlsCert: certFile, tlsKey: keyFile, cluster, clusterPrefix, clusterMaxAge, clusterCa, clusterCert, clusterKey,
    clusterUser, ...values
  } = readTable(options, (option) => readOption(option, flags, environment));
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new UsageError('Cannot use --tls-cert and --tls-key: each needs the other');
  }
  if (values.auth === 'none' && !isLoopback(values.host)) {
    throw new UsageError('Cannot use --auth: none is allowed only with --host 127.0.0.1, ::1 or localhost');
  }
  return {
    ...values,
    cluster: cluster && {
      members: cluster,
      prefix: clusterPrefix,
      maxAgeMs: clusterMaxAge * 1000,
      tls: readClusterTls({ ca: clusterCa, cert: clusterCert, key: clusterKey }),
      user: clusterUserOf(clusterUser, readSecret('CAIRN_CLUSTER_PASSWORD', environment)),
    },
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    secret: readSecret('CAIRN_SECRET', environment, limits.keyBytesMin, limits.keyBytesMax),
    adminPassword: readSecret('CAIRN_ADMIN_PASSWORD', environment),
  };
}

type ClusterTls = NonNullable<EtcdOptions['tls']>;

/** @throws UsageError where certificate or key is missing, or a file cannot be read */
function readClusterTls(files: { readonly [part in 'ca' | 'cert' | 'key']: string | undefined }): ClusterTls {
  if ((files.cert === undefined) !== (files.key === undefined)) {
    throw new UsageError('Cannot use --cluster-cert and --cluster-key: each needs the other');
  }
  const given = Object.entries(files).flatMap(([part, file]) => (file === undefined ? [] : [[part, file] as const]));
  return Object.fromEntries(given.map(([part, file]) => [part, readSecretFile(file, `--cluster-${part}`)]));
}

/** @throws UsageError where one is given without the other */
function clusterUserOf(name: string | undefined, password: string | undefined): EtcdOptions['user'] {
  if (name !== undefined && password !== undefined) return { name, password };
  if (name === password) return undefined;
  throw new UsageError('Cannot use --cluster-user and CAIRN_CLUSTER_PASSWORD: each needs the other');
}

/** Reads one option: its flag, else its variable, else its default. @throws UsageError */
export function readOption<T>(option: Option<T>, flags: Flags, environment: Environment): T {
  const { name, variable = '', parse } = option;
  const flag = flags.get(name);
  const text = flag ?? (environment[variable] || undefined);
  if (text === undefined) return option.default;
  const value = parse === undefined ? text : parse(text);
  if (option.accepts(value)) return value;
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  throw new UsageError(`Cannot use ${flag === undefined ? variable : `--${name}`} ${shown}: must be ${option.allowed}`);
}

/** Says of each variable that begins like an option but is none which one was probably meant. */
export function unknownVariables(environment: Environment): string[] {
  const known = new Set([
    ...Object.values(options).map(({ variable }) => String(variable)),
    ...Object.keys(secrets).flatMap((name) => [name, `${name}_FILE`]),
  ]);
  const unknown = Object.keys(environment).filter((name) => name.startsWith('CAIRN_') && !known.has(name)).sort();
  return unknown.map((name) => `The variable ${name} is no option; did you mean ${nearest(name, known)}?`);
}

/** Reads a secret, and never quotes it. @throws UsageError where both ways are used, or a file or a length is wrong */
function readSecret(name: SecretName, environment: Environment, bytesMin = 0, bytesMax = Infinity): string | undefined {
  const value = environment[name] || undefined;
  const file = environment[`${name}_FILE`] || undefined;
  const source = file === undefined ? name : `${name}_FILE`;
  if (file !== undefined && value !== undefined) throw new UsageError(`Cannot use ${source}: ${name} is set as well`);
  const secret = file === undefined ? value : readSecretFile(file, source);
  const bytes = Buffer.byteLength(secret ?? '');
  if (secret === undefined || (bytes >= bytesMin && bytes <= bytesMax)) return secret;
  throw new UsageError(`Cannot use ${source}: must have from ${bytesMin} to ${bytesMax} bytes, and has ${bytes}`);
}

function readSecretFile(file: string, source: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new UsageError(`Cannot use ${source}: the file cannot be read (${errorCode(error) ?? 'unknown error'})`);
  }
}
