import { openApp, type Application } from '../app/app.ts';
import type { Administrator } from '../app/options.ts';
import { isLoopback } from '../base/network.ts';
import { systemClock, systemRandom } from '../base/system.ts';
import { options, unknownVariables, type Config } from '../config/config.ts';
import { settingsOf } from '../config/settings.ts';
import type { HttpServer, TlsTexts } from '../http/server.ts';
import { createLog, silentLog, standardOutput, type Log, type Observer } from '../observability/log.ts';
import { ClusterError } from '../store/store.ts';
import { forgetAdminPassword, keepAdminPassword } from './admin-password.ts';
import { declarationsOf, exitCodes, type Command, type ExitCode, type Terminal } from './command.ts';

const logCloseMs = 1000;

export const serve: Command = {
  name: 'serve',
  summary: 'Serves the API until SIGTERM or SIGINT, and reads certificate and keys again on SIGHUP',
  options: Object.values(options),
  secrets: ['CAIRN_SECRET', 'CAIRN_ADMIN_PASSWORD', 'CAIRN_CLUSTER_PASSWORD'],
  async run({ terminal, ...call }) {
    const config = call.config();
    const log = openLog(config, terminal);
    const stop = waitForStop();
    const starting = start(config, log, terminal, stop.fail);
    reloadOnSignal(starting, config, log);
    try {
      const { app, operations } = await starting;
      const [code, reason] = await stop.stopped;
      log.message('notice', `Cairn stops: ${reason}`);
      await app.close();
      await operations?.drain();
      return code;
    } finally {
      await log.close(logCloseMs);
    }
  },
};

interface Started {
  readonly app: Application;
  readonly operations: HttpServer | undefined;
}

async function start(
  config: Config, log: Log, terminal: Terminal, onFailure: (error: unknown) => void,
): Promise<Started> {
  const { host, port, secret, opsHost, opsPort, cluster } = config;
  for (const warning of unknownVariables(terminal.environment)) log.message('warn', warning);
  const tls = await loadTls(config);
  const declarations = await declarationsOf(config.collections);
  const administrator = firstAdministrator(config, terminal);
  const directory = cluster === undefined ? config.directory : undefined;
  const metrics = opsPort === undefined ? undefined : new (await import('../observability/metrics.ts')).Metrics();
  const watcher: Observer = {
    request: () => undefined,
    security(event, { userId }) {
      const isForgotten = event === 'password_changed' || event === 'user_removed';
      if (isForgotten) void forgetAdminPassword(config.directory, app.users, userId);
    },
  };
  const observers = metrics === undefined ? [watcher] : [watcher, metrics];
  const own = { directory, cluster, secret, administrator, log, onFailure };
  const app = await openApp({ ...settingsOf(config), ...declarations, ...own }, observers);
  let operations: HttpServer | undefined;
  try {
    const boundPort = await app.listen({ port, host, tls });
    if (metrics !== undefined) {
      const { startOperations } = await import('../app/operations.ts');
      operations = await startOperations({ app, metrics, log, directory: config.directory }, opsPort ?? 0, opsHost);
      log.message('notice', `Operations are served at ${urlOf('http', opsHost, operations.port)}`);
    }
    await app.begin();
    const line = `Cairn serves ${urlOf(tls === undefined ? 'http' : 'https', host, boundPort)}`;
    if (config.log === 'none') terminal.out(`${line}\n`);
    else log.message('notice', line);
    warnOfSetUp(config, log);
    return { app, operations };
  } catch (error) {
    await app.close();
    await operations?.drain();
    throw error;
  }
}

/** @throws UsageError */
async function loadTls({ tls }: Config): Promise<TlsTexts | undefined> {
  return tls && (await import('../config/certificate.ts')).readTls(tls);
}

function openLog(config: Config, { interactive, err }: Terminal): Log {
  if (config.log === 'none') return silentLog;
  const format = config.log ?? (interactive ? 'pretty' : 'json');
  const onError = ({ message }: Error): void =>
    err(`Cannot write the log to standard output: ${message}; trying again each second\n`);
  return createLog({ format, level: config.logLevel, clock: systemClock, sink: standardOutput(), onError });
}

type Stop = readonly [code: ExitCode, reason: string];

/** A signal that comes again within this time is the same one: npm, say, passes on what the terminal sent already. */
const sameSignalMs = 1000;

/** Waits for the first reason to stop. A later signal ends the process at once, as if nothing listened for it. */
function waitForStop(): { readonly stopped: Promise<Stop>; readonly fail: (error: unknown) => void } {
  let stop: (stop: Stop) => void = () => undefined;
  const stopped = new Promise<Stop>((resolve) => (stop = resolve));
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const listener = (): void => {
      stop([exitCodes.done, signal]);
      setTimeout(() => process.off(signal, listener), sameSignalMs).unref();
    };
    process.on(signal, listener);
  }
  const codeOf = (error: unknown) => (error instanceof ClusterError ? error.exitCode : exitCodes.io);
  return { stopped, fail: (error) => stop([codeOf(error), 'the store can write nothing any more']) };
}

/** Listens from now on, because SIGHUP ends a process that does not. Reloads run one after another, after the start. */
function reloadOnSignal(starting: Promise<Started>, config: Config, log: Log): void {
  let last: Promise<unknown> = starting;
  process.on('SIGHUP', () => {
    last = last.then(async () => reload((await starting).app, config, log)).catch(() => undefined);
  });
}

/** Reads certificate and keys again, both or neither: after an error the former ones stay in use. */
async function reload(app: Application, config: Config, log: Log): Promise<void> {
  try {
    const tls = await loadTls(config);
    await app.reloadKeys();
    if (tls !== undefined) app.renewTls(tls);
    const all = `${tls === undefined ? 'Keys' : 'Certificate and keys'} were read again`;
    const some = `${tls === undefined ? 'Nothing' : 'The certificate'} was read again`;
    log.message('notice', config.secret === undefined ? all : `${some}; CAIRN_SECRET is read only at the start`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.message('error', `The former certificate and keys stay in use: ${reason}`);
  }
}

/** The administrator of the first start. A generated password is kept before; of several nodes, by the one that did. */
function firstAdministrator(config: Config, terminal: Terminal): Administrator {
  const { adminEmail: email, adminPassword, passwordLengthMin, cluster } = config;
  if (adminPassword !== undefined) return { email, password: adminPassword };
  const password = systemRandom(Math.max(18, Math.ceil((passwordLengthMin * 3) / 4))).toString('base64url');
  const keep = () => keepPassword(config, terminal, password);
  if (cluster !== undefined) return { email, password, onMade: keep };
  return { email, password: () => keep().then(() => password) };
}

/** Shows the password to a person; without a terminal it is kept in a file. */
async function keepPassword(config: Config, { interactive, out, err }: Terminal, password: string): Promise<void> {
  const { adminEmail, directory } = config;
  if (interactive) {
    out(`The password of ${adminEmail}, shown only once: ${password}\n`);
  } else {
    const file = await keepAdminPassword(directory, password);
    err(`The password of ${adminEmail} is in ${file}, until it is changed\n`);
  }
}

function warnOfSetUp({ auth, host, tls, trustedProxies }: Config, log: Log): void {
  if (auth === 'none') log.message('warn', 'Everyone who can reach this port is an administrator: --auth=none');
  if (isLoopback(host) || tls !== undefined || trustedProxies.length > 0) return;
  log.message('warn', 'Browsers do not return the session cookie without TLS: use --tls-cert or --trust-proxy');
}

function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
