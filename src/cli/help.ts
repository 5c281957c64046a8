import { secrets, variableOf } from '../config.ts';
import type { Option } from '../options.ts';
import type { Command } from './command.ts';
import { exitCodes } from './command.ts';

/** What `cairn --help` prints. */
export function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => usage(command).length));
  const lines = commands.map((command) => `  ${usage(command).padEnd(width)}  ${command.summary}\n`);
  return (
    'Usage: cairn [COMMAND] [OPTIONS]\n\n' +
    `Commands; without one, serve is meant:\n${lines.join('')}\n` +
    'cairn COMMAND --help tells the options of a command, cairn --version the version.\n' +
    `Exit codes: ${exitCodes.done} done, ${exitCodes.usage} wrong usage, ${exitCodes.bug} a bug, ` +
    `${exitCodes.io} disk or network, ${exitCodes.busy} in use, ${exitCodes.config} damaged data or set-up.\n`
  );
}

/** What `cairn COMMAND --help` prints. */
export function describe(command: Command): string {
  const options = command.options.map(describeOption).join('');
  const secretLines = Object.entries(secrets).map(([name, help]) => `  ${name}, ${name}_FILE\n      ${help}\n`);
  return (
    `Usage: cairn ${usage(command)}${options === '' ? '' : ' [OPTIONS]'}\n\n${command.summary}.\n` +
    (options === '' ? '' : `\nOptions, with their environment variables:\n${options}`) +
    (command.usesSecrets === true ? `\nSecrets, from the environment or a file it names:\n${secretLines.join('')}` : '')
  );
}

function describeOption(option: Option<unknown>): string {
  const head = option.kind === 'switch' ? `--${option.name}` : `--${option.name} ${option.placeholder}`;
  const fallback = option.defaultText === '' ? '' : ` (default: ${option.defaultText})`;
  const variable = option.flagOnly === true ? '' : `, ${variableOf(option.name)}`;
  return `  ${head}${variable}\n      ${option.help}${fallback}\n`;
}

function usage(command: Command): string {
  return [command.name, ...command.operands].join(' ');
}
