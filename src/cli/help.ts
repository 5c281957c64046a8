import { exitMeanings } from '../base/errors.ts';
import { secrets } from '../config/read.ts';
import type { Option } from '../config/options.ts';
import { findCommand, type Command } from './command.ts';

/** Lists the commands that begin with the first word, or all, if the words name none. */
export function help(commands: readonly Command[], words: readonly string[]): string {
  const command = findCommand(commands, words);
  if (command !== undefined) return describe(command);
  const family = commands.filter(({ name }) => name.startsWith(`${words[0]} `));
  return overview(family.length > 0 ? family : commands);
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => usage(command).length));
  const lines = commands.map(
    (command) => `  ${usage(command).padEnd(width)}  ${command.summary}\n`,
  );
  const codes = Object.entries(exitMeanings).map(
    ([code, meaning]) => `  ${code.padEnd(2)}  ${meaning}\n`,
  );
  return `Usage: cairn [COMMAND] [OPTIONS]

Commands:
${lines.join('')}
Without a command, cairn runs serve. "cairn COMMAND --help" shows the options of a command,
"cairn --version" the version.

Exit codes:
${codes.join('')}`;
}

function describe(command: Command): string {
  const options = command.options.map(describeOption).join('');
  const named = (command.secrets ?? [])
    .map((name) => `  ${name}, ${name}_FILE\n      ${secrets[name]}\n`)
    .join('');
  return (
    `Usage: cairn ${usage(command)}${options && ' [OPTIONS]'}\n\n${command.summary}.\n` +
    (options && `\nOptions, with their environment variables:\n${options}`) +
    (named && `\nSecrets, from a variable or from a file that a variable names:\n${named}`)
  );
}

function describeOption(option: Option<unknown>): string {
  const { name, placeholder, variable, help, defaultText } = option;
  const flag = `--${name} ${placeholder}`.trimEnd();
  const names = variable === undefined ? flag : `${flag}, ${variable}`;
  return `  ${names}\n      ${help}${defaultText && ` (default: ${defaultText})`}\n`;
}

function usage({ name, operands = [] }: Command): string {
  return [name, ...operands].join(' ');
}
