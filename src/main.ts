#!/usr/bin/env node
import { flags } from './cli/flags.ts';
import { routes } from './cli/routes.ts';
import { run } from './cli/run.ts';
import { serve } from './cli/serve.ts';
import { systemEnvironment } from './config.ts';
import { packageVersion } from './version.ts';

process.exitCode = await run([serve, routes, flags], packageVersion, process.argv.slice(2), {
  input: process.stdin,
  environment: systemEnvironment,
  interactive: process.stdout.isTTY,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
});
