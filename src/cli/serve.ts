import { resolve } from 'node:path';
import { openApp, type Application } from '../app/app.ts';
import type { Administrator } from '../app/administrator.ts';
import { defaultOptions } from '../app/options.ts';
import { loadOption, optionalParts } from '../app/parts.ts';
import { FatalError, readReason, type ExitCode } from '../base/errors.ts';
import { inManual } from '../base/manual.ts';
import { isLoopback } from '../base/network.ts';
import { systemClock, systemRandom, timers } from '../base/system.ts';
import { version } from '../base/version.ts';
import { clusterOptions, options } from '../config/options.ts';
import { readConfig, unknownVariables, type Config, type Environment } from '../config/read.ts';
import type { TlsTexts } from '../http/server.ts';
import type { LogSink } from '../log/line-queue.ts';
import { createLineLog, silentLog, type Format, type Log } from '../log/log.ts';
import { standardOutput } from '../log/standard-streams.ts';
import {
  loadDeclarations,
  joinGivenCluster,
  type Invocation,
  type Command,
  type Terminal,
} from './command.ts';
import { toFailure } from './failure.ts';
import { forgetAdminPassword, inCluster, inDirectory, type Location } from './location.ts';

export const serve: Command = {
  name: 'serve',
  summary:
    'Serves the API until SIGTERM or SIGINT; SIGHUP reloads certificate and keys, or in a terminal stops it',
  options: [...Object.values(options), ...Object.values(clusterOptions)],
  secrets: ['CAIRN_SECRET', 'CAIRN_ADMIN_PASSWORD', 'CAIRN_CLUSTER_PASSWORD'],
  run: (call) => serveUntilStopped(call),
};

/** Calls `onServing` with the address and the collections' names. Returns the exit code. */
export async function serveUntilStopped(
  { terminal, given }: Pick<Invocation, 'terminal' | 'given'>,
  onServing: OnServing = () => undefined,
): Promise<ExitCode> {
  const config = readConfig(given);
  const isReadable = (config.log ?? (terminal.interactive ? 'pretty' : 'json')) === 'pretty';
  const format = isReadable
    ? (await loadOption(optionalParts.readableLog, '--log')).readable
    : undefined;
  const log = openLog(config, format, terminal);
  // Closing a terminal ends the programs started in it.
  const isInTerminal = terminal.interactive || terminal.input.isTTY === true;
  const stop = waitForStop(isInTerminal ? ['SIGTERM', 'SIGINT', 'SIGHUP'] : ['SIGTERM', 'SIGINT']);
  const starting = start(config, log, { terminal, given, onServing }, stop.fail);
  if (!isInTerminal) reloadOnSignal(starting, config, log);
  try {
    const late = stop.stopped.then(() => timers.sleep(unstartedMs, undefined, { ref: false }));
    const app = await Promise.race([starting, late]);
    const [code, reason] = await stop.stopped;
    log.message('notice', `Cairn stops: ${reason}`);
    await app?.close();
    // A start that waits for a lock would keep the process alive.
    if (app === undefined) void log.close(logCloseMs).then(() => process.exit(code));
    return code;
  } catch (error) {
    return await endWith(error, config, format, terminal);
  } finally {
    await log.close(logCloseMs);
  }
}

type OnServing = (url: string, collections: Iterable<string>) => void;

const logCloseMs = 1000;
const unstartedMs = 1000;

/** Logs the reason, and returns the exit code. */
async function endWith(
  error: unknown,
  config: Config,
  format: Format | undefined,
  { err }: Terminal,
) {
  if (config.log === 'none') throw error;
  const [exitCode, message] = toFailure(error);
  const sink: LogSink = {
    write(bytes, done) {
      err(Buffer.from(bytes).toString());
      done();
    },
  };
  const log = createLineLog({ format, level: 'error', sink });
  // A person reads a list of mistakes line by line. A line of JSON holds them all.
  const [first = '', ...others] = format === undefined ? [message] : message.split('\n');
  log.message('error', first, { exitCode });
  for (const line of others) log.message('error', line);
  await log.close(logCloseMs);
  return exitCode;
}

async function start(
  config: Config,
  log: Log,
  call: Pick<Invocation, 'terminal' | 'given'> & { readonly onServing: OnServing },
  onFailure: (error: unknown) => void,
): Promise<Application> {
  const { host, port, directory, secret } = config;
  const begin = systemClock.elapsed();
  const tls = await loadTls(config);
  const { terminal } = call;
  const declarations = await loadDeclarations(config.collections);
  const cluster = await joinGivenCluster(call, { ...declarations, log }, 'serve');
  const place = cluster ? inCluster(cluster) : inDirectory(resolve(directory));
  const app = await openApp({
    ...defaultOptions,
    settings: config.settings,
    ...declarations,
    ...place.data,
    page: config.page === 'on',
    secret,
    administrator: firstAdministrator(config, terminal, place),
    log,
    onFailure,
  });
  app.warnOfDeclarations();
  app.observers.push({
    security(event, { userId }) {
      if (event !== 'password_changed' && event !== 'user_removed') return;
      void forgetAdminPassword(place, app.data.users, userId);
    },
  });
  log.message('notice', 'Cairn is loaded', {
    version,
    node: process.version,
    directory: place.name,
    records: app.store.size,
    loadMs: Math.round(systemClock.elapsed() - begin),
  });
  await warnOfVariables(terminal.environment, log);
  try {
    const boundPort = await app.listen({ port, host, tls });
    await app.begin();
    const isEverywhere = host === '::' || host === '0.0.0.0';
    const name = config.share && isEverywhere ? 'localhost' : host;
    const url = formatUrl(tls === undefined ? 'http' : 'https', name, boundPort);
    if (config.log === 'none') terminal.out(`Cairn serves ${url}\n`);
    else log.message('notice', `Cairn serves ${url}`);
    warnOfSetUp(config, log);
    call.onServing(url, app.data.registry.keys());
    return app;
  } catch (error) {
    await app.close();
    throw error;
  }
}

async function warnOfVariables(environment: Environment, log: Log): Promise<void> {
  const unknown = unknownVariables(environment);
  if (unknown.length === 0) return;
  const { warnOfVariable } = await import('./advice.ts');
  for (const name of unknown) log.message('warn', warnOfVariable(name));
}

/** @throws OptionError */
async function loadTls({ tls }: Config): Promise<TlsTexts | undefined> {
  return tls && (await loadOption(optionalParts.tls, '--tls-cert')).readTls(...tls);
}

function openLog({ log, logLevel }: Config, format: Format | undefined, { err }: Terminal): Log {
  if (log === 'none') return silentLog;
  return createLineLog({
    format,
    level: logLevel,
    sink: standardOutput(),
    onError: ({ message }) =>
      err(`Cannot write the log to standard output: ${message}; trying again each second\n`),
  });
}

type Stop = readonly [code: ExitCode, reason: string];

/**
 * A signal repeated within this time counts once: npm forwards signals that a terminal already
 * sent.
 */
const repeatedSignalMs = 1000;

/**
 * Waits for the first reason to stop: a signal, or a call of `fail`. A later signal ends the
 * process at once, because nothing listens for it any more.
 */
function waitForStop(signals: readonly NodeJS.Signals[]): {
  readonly stopped: Promise<Stop>;
  readonly fail: (error: unknown) => void;
} {
  let stop: (stop: Stop) => void = () => undefined;
  const stopped = new Promise<Stop>((resolve) => (stop = resolve));
  // Without a listener, Node.js opens an inspector, which everyone on this machine can use.
  process.on('SIGUSR1', () => undefined);
  for (const signal of signals) {
    const listener = (): void => {
      stop([0, signal]);
      timers.setTimeout(() => process.off(signal, listener), repeatedSignalMs).unref();
    };
    process.on(signal, listener);
  }
  const fail = (error: unknown): void => {
    stop([
      error instanceof FatalError ? error.exitCode : 74,
      `the store cannot write any more (see ${inManual('troubleshooting.md#does-not-start')})`,
    ]);
  };
  return { stopped, fail };
}

/**
 * Reloads on SIGHUP, which still ends a process in a terminal. Reloads run one after another, and
 * only after the start.
 */
function reloadOnSignal(starting: Promise<Application>, config: Config, log: Log): void {
  let last: Promise<unknown> = starting;
  process.on('SIGHUP', () => {
    last = last.then(async () => reload(await starting, config, log)).catch(() => undefined);
  });
}

/** Reloads certificate and keys. If either fails, both previous ones stay in use. */
async function reload(app: Application, config: Config, log: Log): Promise<void> {
  try {
    const tls = await loadTls(config);
    await app.data.keys.load();
    if (tls !== undefined) app.renewTls(tls);
    const all = `${tls === undefined ? 'Keys' : 'Certificate and keys'} were read again`;
    const some = `${tls === undefined ? 'Nothing' : 'The certificate'} was read again`;
    const isConfigured = config.secret !== undefined;
    log.message('notice', isConfigured ? `${some}; CAIRN_SECRET is read only at the start` : all);
  } catch (error) {
    log.message('error', `The previous certificate and keys stay in use: ${readReason(error)}`);
  }
}

/** The administrator's address, which can be changed after the first start. */
const email = 'admin@localhost.localdomain';

/**
 * Returns the administrator of the first start. A generated password is stored or shown before the
 * user is created. Without authentication none is generated, so that it is shown when it is needed.
 */
function firstAdministrator(
  config: Config,
  terminal: Terminal,
  place: Location,
): Administrator | undefined {
  const { adminPassword, auth, passwordLengthMin } = config;
  if (adminPassword !== undefined) return { email, password: adminPassword };
  if (auth === 'none') return undefined;
  const bytes = Math.max(18, Math.ceil((passwordLengthMin * 3) / 4));
  const made = systemRandom(bytes).toString('base64url');
  return { email, password: () => keepPassword(config, terminal, place, made) };
}

/** Shows the password on a terminal. Stores it without one, or for other nodes. */
async function keepPassword(
  { cluster }: Config,
  { interactive, out, err }: Terminal,
  place: Location,
  made: string,
): Promise<string> {
  const isKept = !interactive || cluster !== undefined;
  const { password, where } = isKept
    ? await place.password.keep(made)
    : { password: made, where: '' };
  if (interactive) out(`The password of ${email}, shown only once: ${password}\n`);
  else err(`The password of ${email} is in ${where}, until it is changed\n`);
  return password;
}

function warnOfSetUp({ auth, host, tls, trustedProxies }: Config, log: Log): void {
  if (auth === 'none') {
    log.message('warn', 'Everyone who can reach this port is an administrator: --auth=none');
  }
  if (auth === 'none' || isLoopback(host) || tls !== undefined || trustedProxies.length > 0) return;
  log.message(
    'warn',
    'Browsers do not return the session cookie without TLS: use --tls-cert or --trust-proxy',
  );
}

function formatUrl(scheme: 'http' | 'https', host: string, port: number): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
