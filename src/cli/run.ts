import { parseArgs } from 'node:util';
import { version } from '../base/version.ts';
import { readConfig, readOption } from '../config/config.ts';
import { UsageError } from '../config/settings.ts';
import { exitCodes, findCommand, type Call, type Command, type ExitCode, type Terminal } from './command.ts';

/** Runs the command that `words` name, and returns the exit code. An error is one line on `err`. */
export async function run(
  commands: readonly Command[], words: readonly string[], terminal: Terminal,
): Promise<ExitCode> {
  const [first = '-'] = words;
  const isHelp = first === 'help' || words.includes('--help') || words.includes('-h');
  let call: Call | undefined;
  try {
    if (first === '--version') terminal.out(`cairn ${version} on Node.js ${process.version}\n`);
    else if (isHelp) terminal.out((await import('./help.ts')).help(commands, words));
    else {
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

/** @throws UsageError for an unknown command, an unknown or incomplete option, and for too many or too few operands */
function parseCall(commands: readonly Command[], words: readonly string[], terminal: Terminal): Call {
  const command = findCommand(commands, words);
  if (command === undefined) {
    throw new UsageError(`Cannot run cairn ${JSON.stringify(words[0])}: no such command; see cairn --help`);
  }
  const { values, positionals: operands } = parseWords(command, words.slice(command.name.split(' ').length));
  const { operands: wanted = [] } = command;
  if (operands.length !== wanted.length) {
    const takes = wanted.join(' ') || `no arguments, and got "${operands[0]}"`;
    throw new UsageError(`Cannot run cairn ${command.name}: it takes ${takes}`);
  }
  const flags = new Map(Object.entries(values).map(([name, value]) => [name, String(value)]));
  const { environment } = terminal;
  return {
    command,
    terminal,
    operands,
    read: (option) => readOption(option, flags, environment),
    config: () => readConfig(flags, environment),
  };
}

/** @throws UsageError */
function parseWords({ name, options }: Command, args: readonly string[]) {
  const types = options.map((option) => [option.name, { type: option.placeholder === '' ? 'boolean' : 'string' }]);
  try {
    return parseArgs({ args: [...args], options: Object.fromEntries(types), allowPositionals: true });
  } catch (error) {
    // The first line, or sentence, says what is wrong; the others explain the grammar of arguments.
    const [problem] = error instanceof Error ? error.message.split(/\. |\.?\n/) : [];
    throw new UsageError(`Cannot run cairn ${name}: ${problem}; see cairn ${name} --help`);
  }
}
