import { parseArgs } from 'node:util';
import { version } from '../base/version.ts';
import { readConfig, readOption, systemEnvironment } from '../config/config.ts';
import { UsageError } from '../config/settings.ts';
import {
  exitCodes,
  findCommand,
  type Call,
  type Command,
  type ExitCode,
  type Terminal,
} from './command.ts';
import { serve } from './serve.ts';

/** Runs the command that the arguments of the process name. */
export async function main(): Promise<void> {
  // A reader may leave early, as in `cairn openapi | head`. That is no error.
  process.stdout.on('error', () => undefined);
  const words = process.argv.slice(2);
  const [first = 'serve'] = words;
  const isServe =
    first === 'serve' || (first.startsWith('-') && !['-h', '--help', '--version'].includes(first));
  process.exitCode = await run(isServe ? [serve] : await allCommands(), words, {
    input: process.stdin,
    environment: systemEnvironment,
    interactive: process.stdout.isTTY,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
  });
}

/**
 * Loads all commands, in the order of the help. A starting server does not wait for this.
 */
export async function allCommands(): Promise<readonly Command[]> {
  const { userCommands } = await import('./user.ts');
  const { dataCommands } = await import('./data.ts');
  const { keyCommands } = await import('./keys.ts');
  const { apiCommands } = await import('./api.ts');
  return [serve, ...userCommands, ...dataCommands, ...keyCommands, ...apiCommands];
}

/**
 * Runs the command that `words` name, and returns its exit code. Writes an error as one
 * line.
 */
export async function run(
  commands: readonly Command[],
  words: readonly string[],
  terminal: Terminal,
): Promise<ExitCode> {
  const [first = '-'] = words;
  let call: Call | undefined;
  try {
    if (first === '--version') {
      terminal.out(`cairn ${version} on Node.js ${process.version}\n`);
    } else if (first === 'help' || words.includes('--help') || words.includes('-h')) {
      terminal.out((await import('./help.ts')).help(commands, words));
    } else {
      call = parseCall(commands, first.startsWith('-') ? ['serve', ...words] : words, terminal);
      return (await call.command.run(call)) ?? exitCodes.done;
    }
    return exitCodes.done;
  } catch (error) {
    const { failureOf } = await import('./failure.ts');
    const [code, message] = failureOf(error, call);
    terminal.err(`${message}\n`);
    return code;
  }
}

/** @throws UsageError for an unknown command or option, or a wrong number of operands */
function parseCall(
  commands: readonly Command[],
  words: readonly string[],
  terminal: Terminal,
): Call {
  const command = findCommand(commands, words);
  if (command === undefined) {
    const name = JSON.stringify(words[0]);
    throw new UsageError(`Cannot run cairn ${name}: no such command; see cairn --help`);
  }
  const { name, operands: wanted = [] } = command;
  const { values, positionals } = parseWords(command, words.slice(name.split(' ').length));
  if (positionals.length !== wanted.length) {
    const takes = wanted.join(' ') || `no arguments, and got "${positionals[0]}"`;
    throw new UsageError(`Cannot run cairn ${name}: it takes ${takes}`);
  }
  const flags = new Map(Object.entries(values).map(([flag, value]) => [flag, String(value)]));
  const { environment } = terminal;
  return {
    command,
    terminal,
    operands: positionals,
    read: (option) => readOption(option, flags, environment),
    config: () => readConfig(flags, environment),
  };
}

/** @throws UsageError */
function parseWords({ name, options }: Command, args: readonly string[]) {
  const types = options.map((option) => [
    option.name,
    { type: option.placeholder === '' ? 'boolean' : 'string' },
  ]);
  try {
    return parseArgs({
      args: [...args],
      options: Object.fromEntries(types),
      allowPositionals: true,
    });
  } catch (error) {
    // The first line or sentence says what is wrong. The others explain the grammar of arguments.
    const [problem] = error instanceof Error ? error.message.split(/\. |\.?\n/) : [];
    throw new UsageError(`Cannot run cairn ${name}: ${problem}; see cairn ${name} --help`);
  }
}
