import { secrets } from '../config/config.ts';
import type { Option } from '../config/settings.ts';
import { exitMeanings, findCommand, type Command } from './command.ts';

/** Returns the help of the command that `words` name, of those that begin with the first word, or of all. */
export function help(commands: readonly Command[], words: readonly string[]): string {
  const command = findCommand(commands, words);
  if (command !== undefined) return describe(command);
  const family = commands.filter(({ name }) => name.startsWith(`${words[0]} `));
  return overview(family.length > 0 ? family : commands);
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => usage(command).length));
  const lines = commands.map((command) => `  ${usage(command).padEnd(width)}  ${command.summary}\n`);
  return `Usage: cairn [COMMAND] [OPTIONS]

Commands:
${lines.join('')}
Without a command, serve is meant. "cairn COMMAND --help" shows the options of a command, "cairn --version" the version.

Exit codes:
${Object.entries(exitMeanings).map(([code, meaning]) => `  ${code.padEnd(2)}  ${meaning}\n`).join('')}`;
}

function describe(command: Command): string {
  const options = command.options.map(describeOption).join('');
  const named = (command.secrets ?? []).map((name) => `  ${name}, ${name}_FILE\n      ${secrets[name]}\n`).join('');
  return (
    `Usage: cairn ${usage(command)}${options && ' [OPTIONS]'}\n\n${command.summary}.\n` +
    (options && `\nOptions, with their environment variables:\n${options}`) +
    (named && `\nSecrets, from the environment or from a file that it names:\n${named}`)
  );
}

function describeOption({ name, placeholder, variable, help, defaultText }: Option<unknown>): string {
  const head = [`--${name} ${placeholder}`.trimEnd(), ...(variable === undefined ? [] : [variable])].join(', ');
  return `  ${head}\n      ${help}${defaultText && ` (default: ${defaultText})`}\n`;
}

function usage({ name, operands = [] }: Command): string {
  return [name, ...operands].join(' ');
}
