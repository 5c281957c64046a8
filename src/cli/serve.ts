import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { createApp, type App } from '../app.ts';
import { systemClock } from '../base/clock.ts';
import { options, type Config } from '../config.ts';
import { createLog, silentLog, standardOutput, type Log } from '../log.ts';
import { exitCodes, type Call, type Command, type ExitCode } from './command.ts';

/** Runs the server until a signal ends it. */
export const serve: Command = {
  name: 'serve',
  summary: 'Serve the API',
  operands: [],
  options: Object.values(options),
  usesSecrets: true,
  run: runServer,
};

async function runServer(call: Call): Promise<ExitCode> {
  const config = call.config();
  const log = logFor(config, call.terminal.interactive);
  const app = await createApp({
    directory: config.dataDirectory,
    administrator: { email: config.adminEmail, password: config.adminPassword },
    secret: config.secret,
    registration: config.registration,
    requireIfMatch: config.requireIfMatch,
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    accessTokenLifetimeSeconds: config.accessTokenLifetimeSeconds,
    sessionIdleSeconds: config.sessionIdleSeconds,
    sessionLifetimeSeconds: config.sessionLifetimeSeconds,
    passwordLengthMin: config.passwordLengthMin,
    scryptCost: config.scryptCost,
    bodyBytesMax: config.bodyBytesMax,
    log,
  });
  const port = await app.listen({ port: config.port, host: config.host });
  await tellAdministrator(app, config, call);
  call.terminal.out(`Cairn serves http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}\n`);
  await signalled();
  await app.close();
  await log.close(1000);
  return exitCodes.done;
}

function logFor({ log, logLevel }: Config, interactive: boolean): Log {
  const format = log ?? (interactive ? 'pretty' : 'json');
  if (format === 'none') return silentLog;
  return createLog({ format, level: logLevel, clock: systemClock, sink: standardOutput() });
}

/** Shows a generated password once: on a terminal, or else in a file that only its owner reads. */
async function tellAdministrator({ generatedPassword }: App, config: Config, { terminal }: Call): Promise<void> {
  if (generatedPassword === undefined) return;
  if (terminal.interactive) {
    terminal.err(`Made the administrator ${config.adminEmail} with the password: ${generatedPassword}\n`);
    return;
  }
  const file = join(config.dataDirectory, 'admin-password');
  await writeFile(file, `${generatedPassword}\n`, { mode: 0o600, flag: 'wx' });
  terminal.err(`Made the administrator ${config.adminEmail}; the password is in ${file}: read it and remove it\n`);
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
function signalled(): Promise<void> {
  return new Promise((resolve) => {
    let count = 0;
    for (const [signal, number] of [
      ['SIGTERM', 15],
      ['SIGINT', 2],
    ] as const) {
      process.on(signal, () => {
        count += 1;
        if (count > 1) process.exit(128 + number);
        resolve();
      });
    }
  });
}
