#!/usr/bin/env node
import { dataCommands } from './cli/data.ts';
import { flags } from './cli/flags.ts';
import { keyCommands } from './cli/keys.ts';
import { routes } from './cli/routes.ts';
import { run } from './cli/run.ts';
import { serve } from './cli/serve.ts';
import { userCommands } from './cli/user.ts';
import { systemEnvironment } from './config.ts';
import { packageVersion } from './version.ts';

const commands = [serve, ...userCommands, ...keyCommands, ...dataCommands, routes, flags];
process.exitCode = await run(commands, packageVersion, process.argv.slice(2), {
  input: process.stdin,
  environment: systemEnvironment,
  interactive: process.stdout.isTTY,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
});
