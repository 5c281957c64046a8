import { KeyRingError } from '../auth/keys.ts';
import { CairnError, type ErrorCode } from '../base/errors.ts';
import { secrets, variableOf } from '../config.ts';
import { UsageError, type Option } from '../options.ts';
import { errorCode } from '../store/files.ts';
import { LockedError, StoreDamageError } from '../store/store.ts';
import { packageVersion } from '../version.ts';
import { exitCodes, exitMeanings, parseCall, remedyOf } from './command.ts';
import type { Call, Command, ExitCode, Terminal } from './command.ts';

/** Runs the command that `words` name and resolves with how it ended; a failure is one line on `err`. */
export async function run(
  commands: readonly Command[], words: readonly string[], terminal: Terminal,
): Promise<ExitCode> {
  let call: Call | undefined;
  try {
    const [first = '', second = ''] = words;
    if (first === '--version') {
      terminal.out(`cairn ${packageVersion()} on Node.js ${process.version}\n`);
      return exitCodes.done;
    }
    const family = commands.filter(({ name }) => name.startsWith(`${first} `));
    const isOfFamily = family.length > 0 && isHelp(second);
    if (isHelp(first) || first === 'help' || isOfFamily) {
      terminal.out(overview(isOfFamily ? family : commands));
      return exitCodes.done;
    }
    const [command, rest] = findCommand(commands, family, words);
    if (rest.some(isHelp)) {
      terminal.out(describe(command));
      return exitCodes.done;
    }
    call = parseCall(command, rest, terminal);
    return (await command.run(call)) ?? exitCodes.done;
  } catch (error) {
    const code = codeOf(error);
    terminal.err(`${messageOf(error, call, code)}\n`);
    return code;
  }
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h';

/** Without a command, `serve` is meant. */
function findCommand(
  commands: readonly Command[], family: readonly Command[], words: readonly string[],
): [Command, readonly string[]] {
  const [first = ''] = words;
  const length = first === '' || first.startsWith('-') ? 0 : family.length > 0 ? 2 : 1;
  const name = words.slice(0, length).join(' ') || 'serve';
  const command = commands.find((candidate) => candidate.name === name);
  if (command !== undefined) return [command, words.slice(length)];
  const known = family.map(({ name }) => `cairn ${name}`).join(', ');
  const hint = known === '' ? 'see cairn --help' : `say ${known}`;
  throw new UsageError(`Cannot run cairn ${JSON.stringify(first).slice(1, -1)}: there is no such command; ${hint}`);
}

/** What `cairn --help` prints. */
function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => usage(command).length));
  const lines = commands.map((command) => `  ${usage(command).padEnd(width)}  ${command.summary}\n`);
  const exits = Array.from(exitMeanings, ([code, meaning]) => `  ${String(code).padEnd(2)}  ${meaning}\n`);
  return (
    'Usage: cairn [COMMAND] [OPTIONS]\n\n' +
    `Commands:\n${lines.join('')}\n` +
    'Without a command, serve is meant.\n' +
    'cairn COMMAND --help tells the options of a command, cairn --version the version.\n\n' +
    `Exit codes:\n${exits.join('')}`
  );
}

/** What `cairn COMMAND --help` prints. */
function describe(command: Command): string {
  const options = command.options.map(describeOption).join('');
  const secretLines = (command.secrets ?? []).map((name) => `  ${name}, ${name}_FILE\n      ${secrets[name]}\n`);
  return (
    `Usage: cairn ${usage(command)}${options === '' ? '' : ' [OPTIONS]'}\n\n${command.summary}.\n` +
    (options === '' ? '' : `\nOptions, with their environment variables:\n${options}`) +
    (secretLines.length === 0 ? '' : `\nSecrets, from the environment or a file it names:\n${secretLines.join('')}`)
  );
}

function describeOption(option: Option<unknown>): string {
  const head = `--${option.name} ${option.placeholder}`.trimEnd();
  const fallback = option.defaultText === '' ? '' : ` (default: ${option.defaultText})`;
  const variable = option.flagOnly === true ? '' : `, ${variableOf(option.name)}`;
  return `  ${head}${variable}\n      ${option.help}${fallback}\n`;
}

const usage = ({ name, operands = [] }: Command): string => [name, ...operands].join(' ');

function messageOf(error: unknown, call: Call | undefined, code: ExitCode): string {
  if (!(error instanceof Error) || code === exitCodes.bug) {
    return `Cannot go on, which is a bug of Cairn's: ${error instanceof Error ? error.stack : String(error)}`;
  }
  if (error instanceof CairnError && error.issues !== undefined) {
    return error.issues.map(({ pointer, detail }) => `Cannot use the ${pointer.slice(1)}: it ${detail}`).join('\n');
  }
  if (error instanceof StoreDamageError && error.repairable) {
    return `${error.message}; ${remedyOf(error)}`;
  }
  return error.message.startsWith('Cannot ') ? error.message : refusalOf(error, call);
}

/** What to do where the system refuses a file or a directory. */
const remedies: Readonly<Record<string, string>> = {
  EACCES: '; run this as the owner of the files, or name another place',
  ENOSPC: '; make room where this writes',
  EROFS: '; the file system is read-only: name another place',
  ENOTDIR: '; it has to be a directory',
};

/** Names the option whose file or directory the system refused. */
function refusalOf(error: Error, call: Call | undefined): string {
  const path = 'path' in error ? error.path : 'resource' in error ? error.resource : undefined;
  const option = typeof path === 'string' ? call?.placing(path) : undefined;
  const head = option === undefined ? 'Cannot go on' : `Cannot use --${option.name}`;
  const code = errorCode(error) ?? '';
  if (code !== 'ERR_ACCESS_DENIED') return `${head}: ${error.message}${remedies[code] ?? ''}`;
  const variable = option === undefined ? 'CAIRN_DATA, CAIRN_TLS_CERT and CAIRN_TLS_KEY' : variableOf(option.name);
  return `${head}: this run is locked down, and ${JSON.stringify(path)} is not among what "cairn flags" saw; ` +
    `set ${variable} instead of giving an argument`;
}

/** Any other operating error comes of what was asked for. */
const ioErrors: ReadonlySet<ErrorCode> = new Set(['outcome_unknown', 'storage_full', 'store_failed']);

function codeOf(error: unknown): ExitCode {
  if (error instanceof UsageError) return exitCodes.usage;
  if (error instanceof LockedError || errorCode(error) === 'EADDRINUSE') return exitCodes.busy;
  if (error instanceof StoreDamageError || error instanceof KeyRingError) return exitCodes.config;
  if (error instanceof CairnError) return ioErrors.has(error.code) ? exitCodes.io : exitCodes.usage;
  const refused = errorCode(error) === 'ERR_ACCESS_DENIED' || (error instanceof Error && 'syscall' in error);
  return refused ? exitCodes.io : exitCodes.bug;
}
