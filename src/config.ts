import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { limits } from './base/limits.ts';
import { isLoopback } from './base/network.ts';
import type { TlsTexts } from './http/server.ts';
import { faultOf } from './schema/rules.ts';
import { choice, integer, option, optional, readAll, settings, text, UsageError, type Option } from './settings.ts';
import { errorCode } from './store/files.ts';

const address = text('ADDRESS', 'an IP address or a host name', /^[\w.:%-]+$/);
const email = {
  ...text('EMAIL', 'an e-mail address'),
  parse: (value: string) => (faultOf({ kind: 'email' }, value) === undefined ? value : undefined),
};
const port = integer('PORT', 0, 65_535);

/** Every option of the server, once: flag, variable, help, check and the README's list are made of this. */
export const options = {
  host: option('host', 'address to listen on', address, '127.0.0.1'),
  port: option('port', 'port to listen on; 0 takes any free one', port, 3000),
  directory: option('data', 'directory of the data files', text('DIRECTORY'), 'data'),
  adminEmail: option(
    'admin-email', 'e-mail of the administrator that the first start makes', email, 'admin@localhost.localdomain',
  ),
  log: optional(
    'log', 'form of the log; none leaves out security events too', choice(['pretty', 'json', 'none']),
    'pretty on a terminal, else json',
  ),
  logLevel: option(
    'log-level', 'least severe lines to log; security events are logged at each', choice(['info', 'warn', 'error']),
    'info',
  ),
  opsHost: option('ops-host', 'address of the operations listener', address, '127.0.0.1'),
  opsPort: optional(
    'ops-port', 'port of the operations listener (/metrics, /livez, /readyz); without it there is none', port,
  ),
  tlsCert: optional('tls-cert', 'certificate chain in PEM; read again on SIGHUP', text('FILE')),
  tlsKey: optional('tls-key', 'private key in PEM; read again on SIGHUP', text('FILE')),
  ...settings,
} as const;

/** What must not be seen by others on the machine: environment, or a file named by the environment, never a flag. */
export const secrets = {
  CAIRN_SECRET: `signing key, from ${limits.keyBytesMin} to ${limits.keyBytesMax} bytes; ` +
    'without it one is made and kept in the data directory',
  CAIRN_ADMIN_PASSWORD: 'password of the administrator that the first start makes; without it one is generated',
} as const;
export type SecretName = keyof typeof secrets;

/** What the options came to, by the names that `AppOptions` has for them. Times are in seconds, sizes in bytes. */
export type Config = ReturnType<typeof readConfig>;

/** Variables by name; what `process.env` is. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The process's own variables. The only place in Cairn that asks for them. */
export const systemEnvironment: Environment = process.env;

/**
 * Makes one configuration of flags (by name, without dashes) and variables.
 * @throws UsageError naming the option and what is allowed
 */
export function readConfig(flags: ReadonlyMap<string, string>, environment: Environment) {
  const given = readAll(options, (option) => readOption(option, flags, environment));
  const { tlsCert: certFile, tlsKey: keyFile, ...others } = given;
  const { sessionLifetimeSeconds: max } = given;
  const usualIdle = options.sessionIdleSeconds;
  const idle = readOption({ ...usualIdle, default: Math.min(usualIdle.default, max) }, flags, environment);
  const config = {
    ...others,
    sessionIdleSeconds: idle,
    adminPassword: readSecret('CAIRN_ADMIN_PASSWORD', environment),
    secret: readSecret('CAIRN_SECRET', environment, limits.keyBytesMin, limits.keyBytesMax),
    tls: certFile && keyFile ? { certFile, keyFile } : undefined,
  };
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new UsageError('Cannot use --tls-cert and --tls-key: each needs the other');
  }
  if (idle > max) {
    const lengths = `${idle} s are more than ${max} s`;
    throw new UsageError(`Cannot use --session-idle: must not be longer than --session-max (${lengths})`);
  }
  if (config.auth === 'none' && !isLoopback(config.host)) {
    throw new UsageError('Cannot use --auth: none is allowed only with --host 127.0.0.1, ::1 or localhost');
  }
  return config;
}

/** Variables that look like options and are none: most likely a slip of the pen. */
export function unknownVariables(environment: Environment): string[] {
  const known = new Set([
    ...Object.values(options).map(({ variable }) => variable),
    ...Object.keys(secrets).flatMap((name) => [name, `${name}_FILE`]),
  ]);
  return Object.keys(environment).filter((name) => name.startsWith('CAIRN_') && !known.has(name)).sort();
}

/** @throws UsageError naming the flag or the variable that has the wrong value */
export function readOption<T>(option: Option<T>, flags: ReadonlyMap<string, string>, environment: Environment): T {
  const flag = flags.get(option.name);
  const given = flag ?? (environment[option.variable ?? ''] || undefined);
  if (given === undefined) return option.default;
  const value = option.parse(given);
  if (value !== undefined) return value;
  const shown = JSON.stringify(given.length > 60 ? `${given.slice(0, 60)}…` : given);
  const source = flag === undefined ? option.variable : `--${option.name}`;
  throw new UsageError(`Cannot use ${source} ${shown}: must be ${option.allowed}`);
}

/** Never quotes a secret. @throws UsageError where both ways are used, or a file or a length is no good */
function readSecret(name: SecretName, environment: Environment, bytesMin = 0, bytesMax = Infinity): string | undefined {
  let secret = environment[name] || undefined;
  const file = environment[`${name}_FILE`] || undefined;
  const source = file === undefined ? name : `${name}_FILE`;
  if (file !== undefined) {
    if (secret !== undefined) throw new UsageError(`Cannot use ${source}: ${name} is set as well`);
    try {
      secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    } catch (error) {
      throw new UsageError(`Cannot use ${source}: the file cannot be read (${errorCode(error) ?? 'unknown error'})`);
    }
  }
  const bytes = Buffer.byteLength(secret ?? '');
  if (secret === undefined || (bytes >= bytesMin && bytes <= bytesMax)) return secret;
  throw new UsageError(`Cannot use ${source}: must have from ${bytesMin} to ${bytesMax} bytes, and has ${bytes}`);
}

/** What a listener takes. @throws UsageError where a file is not what it should be, or the two do not fit each other */
export async function readTls({ certFile, keyFile }: NonNullable<Config['tls']>): Promise<TlsTexts> {
  try {
    const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')];
    if (key.includes('ENCRYPTED')) throw new Error('the key is encrypted: "openssl pkey" writes it in the clear');
    const fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
    if (!fits) throw new Error('the key is not the one of the certificate');
    (await import('node:tls')).createSecureContext({ cert, key });
    return { cert, key };
  } catch (error) {
    if (errorCode(error) === 'ERR_ACCESS_DENIED') throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new UsageError(`Cannot use --tls-cert and --tls-key: ${problem}`);
  }
}
