import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { isLoopback } from '../base/network.ts';
import { errorCode } from '../store/disk/files.ts';
import {
  clusterOptions,
  OptionError,
  options,
  settings,
  signingKey,
  valuesOf,
  type ClusterOptions,
  type Option,
  type Settings,
  type ValuesOf,
} from './options.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The sources of options: flags by name, without dashes, and variables. */
export interface Given {
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Environment;
}

/**
 * Returns the process's environment, which no other file reads. Secrets are removed from it, so
 * that diagnostic reports and child processes do not contain them.
 */
export function takeEnvironment(): Environment {
  const environment = { ...process.env };
  for (const name of Object.keys(secrets)) delete process.env[name];
  return environment;
}

/**
 * Values that other users of the machine must not see. They come from a variable or from a file
 * that a variable names, never from a flag.
 */
export const secrets = {
  CAIRN_SECRET: `signing key, ${signingKey.allowed}; without it one is generated in the data directory`,
  CAIRN_ADMIN_PASSWORD: 'password of the first administrator; without it one is generated',
  CAIRN_CLUSTER_PASSWORD: 'password of --cluster-user',
} as const;
export type SecretName = keyof typeof secrets;

export interface Config extends ValuesOf<typeof options> {
  readonly settings: Settings;
  readonly tls: readonly [cert: string, key: string] | undefined;
  readonly cluster: ClusterOptions | undefined;
  readonly secret: string | undefined;
  readonly adminPassword: string | undefined;
}

/** @throws OptionError that names the option and the allowed values */
export function readConfig(given: Given): Config {
  const read = (option: Option<unknown>): unknown => readOption(option, given);
  const values = valuesOf(options, read);
  const { auth, share } = values;
  const isTyped = givenFor(options.host, given)[0] !== undefined;
  const host = share && !isTyped ? everyAddress() : values.host;
  if (auth === 'none' && !share && !isLoopback(host)) {
    const hosts = '--host 127.0.0.1, ::1 or localhost; --share serves other devices';
    throw new OptionError(`Cannot use --auth: none is allowed only with ${hosts}`);
  }
  return {
    ...values,
    host,
    settings: valuesOf(settings, read),
    tls: both('--tls-cert and --tls-key', values.tlsCert, values.tlsKey),
    cluster: readCluster(given),
    secret: readSecret('CAIRN_SECRET', given),
    adminPassword: readSecret('CAIRN_ADMIN_PASSWORD', given),
  };
}

/** Covers both families if the machine has both. */
function everyAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.some(({ family }) => family === 'IPv6') ? '::' : '0.0.0.0';
}

/**
 * True if `--data` is typed, which overrides a cluster's variables.
 * @throws OptionError if `--cluster` is also typed
 */
export function namesDirectory({ flags }: Given): boolean {
  const isTyped = flags.has(options.directory.name);
  if (!isTyped || !flags.has(clusterOptions.members.name)) return isTyped;
  throw new OptionError(
    'Cannot use --data with --cluster: the data are in one of them; leave one out',
  );
}

/**
 * Reads the options of a cluster node; `undefined` without `--cluster`, or if `--data` is typed.
 * @throws OptionError
 */
export function readCluster(given: Given): ClusterOptions | undefined {
  if (namesDirectory(given)) return undefined;
  const read = valuesOf(clusterOptions, (option) => readOption(option, given));
  const { members, prefix, maxAge, sessions, ca, cert, key } = read;
  const pair = both('--cluster-cert and --cluster-key', cert, key);
  const password = readSecret('CAIRN_CLUSTER_PASSWORD', given);
  const account = both('--cluster-user and CAIRN_CLUSTER_PASSWORD', read.user, password);
  if (members === undefined) return undefined;
  const tls = {
    ...(ca && { ca: readSecretFile(ca, '--cluster-ca') }),
    ...(pair && {
      cert: readSecretFile(pair[0], '--cluster-cert'),
      key: readSecretFile(pair[1], '--cluster-key'),
    }),
  };
  const user = account && { name: account[0], password: account[1] };
  return { members, prefix, maxAgeMs: maxAge * 1000, sessions, tls, user };
}

/**
 * Returns two values that need each other, or `undefined` if both are missing.
 * @throws OptionError if one is missing
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

/** The flag, else the variable, else the default. @throws OptionError */
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

/** Also returns the source. An empty variable counts as absent. */
function givenFor(
  { name, variable = '' }: Option<unknown>,
  { flags, environment }: Given,
): readonly [text: string | undefined, source: string] {
  const flag = flags.get(name);
  return flag === undefined ? [environment[variable] || undefined, variable] : [flag, `--${name}`];
}

export function knownVariables(): Set<string> {
  return new Set([
    ...Object.values({ ...options, ...clusterOptions }).map(({ variable }) => String(variable)),
    ...Object.keys(secrets).flatMap((name) => [name, `${name}_FILE`]),
  ]);
}

/** Returns the unknown variables that are named like an option. */
export function unknownVariables(environment: Environment): string[] {
  const known = knownVariables();
  const isUnknown = (name: string): boolean => name.startsWith('CAIRN_') && !known.has(name);
  return Object.keys(environment).filter(isUnknown).sort();
}

/**
 * Reads a secret. Errors never quote it.
 * @throws OptionError if it is given twice, or its file or a key's length is wrong
 */
export function readSecret(name: SecretName, { environment }: Given): string | undefined {
  const value = environment[name] || undefined;
  const file = environment[`${name}_FILE`] || undefined;
  const source = file === undefined ? name : `${name}_FILE`;
  if (file !== undefined && value !== undefined) {
    throw new OptionError(`Cannot use ${source}: ${name} is set as well`);
  }
  const secret = file === undefined ? value : readSecretFile(file, source);
  if (name !== 'CAIRN_SECRET' || secret === undefined || signingKey.parse(secret)) return secret;
  throw new OptionError(`Cannot use ${source}: must be ${signingKey.allowed}`);
}

function readSecretFile(file: string, source: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const reason = errorCode(error) ?? 'unknown error';
    throw new OptionError(`Cannot use ${source}: the file cannot be read (${reason})`);
  }
}
