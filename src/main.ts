#!/usr/bin/env node
import { commands } from './cli/commands.ts';
import { run } from './cli/run.ts';
import { systemEnvironment } from './config.ts';
import { packageVersion } from './version.ts';

// Whoever reads may stop reading (`cairn openapi | head`), and that is no failure.
process.stdout.on('error', () => undefined);

process.exitCode = await run(commands, packageVersion, process.argv.slice(2), {
  input: process.stdin,
  environment: systemEnvironment,
  interactive: process.stdout.isTTY,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
});
