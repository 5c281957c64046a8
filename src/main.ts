#!/usr/bin/env node
import { readFileSync } from 'node:fs';

import { routes } from './cli/routes.ts';
import { run } from './cli/run.ts';
import { serve } from './cli/serve.ts';
import { systemEnvironment } from './config.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

process.exitCode = await run([serve, routes], String(version), process.argv.slice(2), {
  input: process.stdin,
  environment: systemEnvironment,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  interactive: process.stderr.isTTY,
});
