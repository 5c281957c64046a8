#!/usr/bin/env node
import { run } from './cli/command.ts';
import { systemEnvironment } from './config.ts';

// Whoever reads may stop reading (`cairn openapi | head`), and that is no failure.
process.stdout.on('error', () => undefined);

const words = process.argv.slice(2);
// The start of a server is waited for, so what belongs to other commands alone is not loaded then.
const [first = 'serve'] = words;
const serves = first === 'serve' || (first.startsWith('-') && first !== '--help' && first !== '-h');
const commands = serves ? [(await import('./cli/serve.ts')).serve] : (await import('./cli/commands.ts')).commands;

process.exitCode = await run(commands, words, {
  input: process.stdin,
  environment: systemEnvironment,
  interactive: process.stdout.isTTY,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
});
