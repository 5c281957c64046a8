import { join } from 'node:path';
import { createApp, type App } from '../app.ts';
import { isLoopback } from '../base/network.ts';
import { systemClock } from '../base/system.ts';
import { options, readTls, unknownVariables, type Config } from '../config.ts';
import { createLog, silentLog, standardOutput, type Log } from '../log.ts';
import { errorCode, replaceFile } from '../store/files.ts';
import { NodeFiles } from '../store/node-files.ts';
import { exitCodes, type Command, type ExitCode, type Terminal } from './command.ts';

/** How long the log may take for its last lines. */
const logCloseMs = 1000;

export const serve: Command = {
  name: 'serve',
  summary: 'Serves the API until SIGTERM or SIGINT, and reads certificate and keys again on SIGHUP',
  options: Object.values(options),
  secrets: ['CAIRN_SECRET', 'CAIRN_ADMIN_PASSWORD'],
  async run(call) {
    const config = call.config();
    const { terminal } = call;
    const plainLog = openLog(config, terminal);
    // Loaded only where there is such a listener.
    const operations =
      config.opsPort === undefined ? undefined : (await import('../operations.ts')).createOperations(plainLog);
    const log = operations?.log ?? plainLog;
    try {
      for (const name of unknownVariables(terminal.environment)) {
        log.message('warn', `The variable ${name} is no option of Cairn's`);
      }
      const stop = waitForStop();
      const reloadFrom = waitForReload(config, log);
      const tls = config.tls && (await readTls(config.tls));
      const administrator = {
        email: config.adminEmail,
        password: config.adminPassword,
        onPassword: (password: string) => tellPassword(password, config, terminal),
      };
      const app = await createApp({ ...config, administrator, log, onFailure: stop.fail });
      try {
        if (operations !== undefined && config.opsPort !== undefined) {
          const port = await bound('ops-', operations.listen(app, config.opsPort, config.opsHost));
          log.message('notice', `Operations are served at ${urlOf('http', config.opsHost, port)}`);
        }
        const port = await bound('', app.listen({ port: config.port, host: config.host, tls }));
        const line = `Cairn serves ${urlOf(tls === undefined ? 'http' : 'https', config.host, port)}`;
        if (config.log === 'none') terminal.out(`${line}\n`);
        else log.message('notice', line);
        warnOfSetUp(config, log);
        reloadFrom(app);
        const [code, reason] = await stop.stopped;
        log.message('notice', `Cairn stops: ${reason}`);
        return code;
      } finally {
        await app.close();
      }
    } finally {
      await operations?.close();
      await log.close(logCloseMs);
    }
  },
};

/** What to do about a port. Other refusals are about the address. */
const portRemedies: Readonly<Record<string, string>> = {
  EADDRINUSE: 'name another one, or stop what listens there',
  EACCES: 'name one above 1023, or give this user the right to it',
};

/** Waits for a port, and names the option to change where there is none. @throws what binding throws */
async function bound(prefix: '' | 'ops-', listening: Promise<number>): Promise<number> {
  try {
    return await listening;
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    const remedy = portRemedies[errorCode(error) ?? ''];
    const option = `--${prefix}${remedy === undefined ? 'host' : 'port'}`;
    error.message = `Cannot use ${option}: ${error.message}; ${remedy ?? 'name an address of this machine'}`;
    throw error;
  }
}

function openLog(config: Config, { interactive, err }: Terminal): Log {
  if (config.log === 'none') return silentLog;
  const format = config.log ?? (interactive ? 'pretty' : 'json');
  const onFailure = ({ message }: Error): void =>
    err(`Cannot write the log to standard output: ${message}; it is tried again each second\n`);
  return createLog({ format, level: config.logLevel, clock: systemClock, sink: standardOutput(), onFailure });
}

type Stop = readonly [code: ExitCode, reason: string];

/** For so long a signal is taken for the same one: runners such as npm pass on what the terminal sent already. */
const sameSignalMs = 1000;

/** The first reason to stop counts; another signal after that ends the process at once, as if nobody listened. */
function waitForStop(): { readonly stopped: Promise<Stop>; readonly fail: () => void } {
  let stop: (stop: Stop) => void = () => undefined;
  const stopped = new Promise<Stop>((resolve) => (stop = resolve));
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const listener = (): void => {
      stop([exitCodes.done, signal]);
      setTimeout(() => process.off(signal, listener), sameSignalMs).unref();
    };
    process.on(signal, listener);
  }
  return { stopped, fail: () => stop([exitCodes.io, 'nothing can be written any more']) };
}

/**
 * Listens for SIGHUP from now on, since it ends a process in which nobody does. Reloads follow one another, and what
 * is asked for early waits for the app.
 */
function waitForReload(config: Config, log: Log): (app: App) => void {
  let begin: (app: App) => void = () => undefined;
  let last = new Promise<App>((resolve) => (begin = resolve));
  process.on('SIGHUP', () => (last = last.then((app) => reload(app, config, log))));
  return begin;
}

/** All of it or nothing: what is wrong with the new files is logged, and then the former ones stay in use. */
async function reload(app: App, { tls, secret }: Config, log: Log): Promise<App> {
  try {
    const texts = tls && (await readTls(tls));
    await app.reloadKeys();
    if (texts !== undefined) app.renewTls(texts);
    const all = `${tls === undefined ? 'Keys' : 'Certificate and keys'} were read again`;
    const some = `${tls === undefined ? 'Nothing' : 'The certificate'} was read again; a CAIRN_SECRET never is`;
    log.message('notice', secret === undefined ? all : some);
  } catch (error) {
    log.message('error', `The former certificate and keys stay: ${error instanceof Error ? error.message : ''}`);
  }
  return app;
}

/** Shown once to a person; where nobody looks, kept in a file for them. */
async function tellPassword(password: string, config: Config, terminal: Terminal): Promise<void> {
  const told = `The password of ${config.adminEmail}`;
  if (terminal.interactive) return terminal.out(`${told}, shown this once: ${password}\n`);
  const files = new NodeFiles(config.directory);
  await files.prepare();
  await replaceFile(files, 'admin-password', Buffer.from(`${password}\n`));
  await files.close();
  const file = join(config.directory, 'admin-password');
  terminal.err(`${told} is in ${file}: sign in, change it, and remove the file\n`);
}

function warnOfSetUp({ auth, host, tls, trustedProxies }: Config, log: Log): void {
  if (auth === 'none') log.message('warn', 'Whoever reaches this port is an administrator: --auth=none');
  if (isLoopback(host) || tls !== undefined || trustedProxies.length > 0) return;
  log.message('warn', 'Browsers do not return the session cookie without TLS: use --tls-cert or --trust-proxy');
}

function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
