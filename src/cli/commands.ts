import { parseArgs } from 'node:util';
import type { ExitCode } from '../base/errors.ts';
import { version } from '../base/version.ts';
import { readOption, takeEnvironment } from '../config/read.ts';
import { OptionError, type Option } from '../config/options.ts';
import { findCommand, type Invocation, type Command, type Terminal } from './command.ts';
import { writeError } from '../log/standard-streams.ts';
import { toFailure } from './failure.ts';
import { serve } from './serve.ts';

export async function main(): Promise<void> {
  // A reader may leave early, as in `cairn openapi | head`. That is not an error.
  process.stdout.on('error', () => undefined);
  const words = commandWords(process.argv.slice(2));
  const commands = words[0] === serve.name ? [serve] : await allCommands();
  process.exitCode = await run(commands, words, {
    input: process.stdin,
    environment: takeEnvironment(),
    interactive: process.stdout.isTTY,
    out: (text) => new Promise((resolve) => process.stdout.write(text, () => resolve())),
    err: writeError,
  });
}

/** Loads all commands, in the order of the help. `serve` starts without waiting for them. */
export async function allCommands(): Promise<readonly Command[]> {
  // A family can be removed with its line here, and with the code that only it uses.
  const families = await Promise.all([
    import('./open.ts'),
    import('./transfer.ts'),
    import('./user.ts'),
    import('./data.ts'),
    import('./keys.ts'),
    import('./openapi.ts'),
  ]);
  return [serve, ...families.flatMap(({ commands }) => commands)];
}

const openCommand = 'open';

/** Characters that a terminal obeys: controls except tab and line feed, and directions. */
const controls = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Names and records in files can have control characters. Escapes them as JSON does. */
function withoutControls(text: string): string {
  return text.replace(controls, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Inserts `open` before a JSON file, and `serve` if the words name no command and do not ask for
 * help or the version.
 */
function commandWords(words: readonly string[]): readonly string[] {
  const [first = '-'] = words;
  if (/\.json$/i.test(first)) return [openCommand, ...words];
  const namesNone = first.startsWith('-') && !['-h', '--help', '--version'].includes(first);
  return namesNone ? [serve.name, ...words] : words;
}

/** Writes an error as one line, and returns the exit code. */
export async function run(
  commands: readonly Command[],
  given: readonly string[],
  unsafe: Terminal,
): Promise<ExitCode> {
  const terminal: Terminal = {
    ...unsafe,
    out: (text) => unsafe.out(withoutControls(text)),
    err: (text) => unsafe.err(withoutControls(text)),
  };
  const words = commandWords(given);
  const [first, ...others] = words;
  try {
    if (first === '--version') {
      terminal.out(`cairn ${version} on Node.js ${process.version}\n`);
    } else if (first === 'help' || words.includes('--help') || words.includes('-h')) {
      terminal.out((await import('./help.ts')).help(commands, first === 'help' ? others : words));
    } else {
      const call = parseCall(commands, words, terminal);
      return (await call.command.run(call)) ?? 0;
    }
    return 0;
  } catch (error) {
    const explained =
      error instanceof UnknownWord ? error.explain(await import('./advice.ts')) : error;
    const [code, message] = toFailure(explained);
    terminal.err(`${message}\n`);
    return code;
  }
}

/** Thrown for an unknown command or option, because only then the advice is loaded. */
class UnknownWord extends Error {
  readonly explain: (advice: typeof import('./advice.ts')) => OptionError;

  constructor(explain: UnknownWord['explain']) {
    super();
    this.explain = explain;
  }
}

/** @throws OptionError, for example for a wrong number of operands; UnknownWord */
function parseCall(
  commands: readonly Command[],
  words: readonly string[],
  terminal: Terminal,
): Invocation {
  const command = findCommand(commands, words);
  if (command === undefined)
    throw new UnknownWord(({ unknownCommand }) => unknownCommand(commands, words));
  const { name, operands: wanted = [] } = command;
  const { flags, operands } = parseWords(commands, command, words.slice(name.split(' ').length));
  if (operands.length !== wanted.length) {
    const takes = wanted.join(' ') || `no arguments, and got "${operands[0]}"`;
    throw new OptionError(`Cannot run cairn ${name}: it takes ${takes}`);
  }
  const given = { flags, environment: terminal.environment };
  const read = <T>(option: Option<T>): T => readOption(option, given);
  // Checks all options, even those that the command may never read.
  for (const option of command.options) read(option);
  return { command, terminal, operands, given, read };
}

/** Separates flags from operands. Never quotes a value. @throws OptionError */
function parseWords(commands: readonly Command[], command: Command, words: readonly string[]) {
  const { options } = command;
  const byName = new Map(options.map((option) => [option.name, option]));
  const types = options.map(({ name, placeholder }) => [
    name,
    { type: placeholder === '' ? ('boolean' as const) : ('string' as const) },
  ]);
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(types),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const flags = new Map<string, string>();
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value);
    if (token.kind !== 'option') continue;
    const { rawName, value, inlineValue } = token;
    const option = byName.get(token.name);
    if (option === undefined)
      throw new UnknownWord(({ unknownOption }) => unknownOption(commands, command, token));
    const isSwitch = option.placeholder === '';
    if (isSwitch && value !== undefined) {
      throw new OptionError(`Cannot use ${rawName}: it does not take a value`);
    }
    // If the value looks like a flag, the real value was probably forgotten.
    if (!isSwitch && (value === undefined || (inlineValue !== true && /^-./.test(value)))) {
      const example = `${rawName}=${option.placeholder}`;
      throw new OptionError(`Cannot use ${rawName}: it needs a value, as in ${example}`);
    }
    flags.set(token.name, value ?? 'true');
  }
  return { flags, operands };
}
