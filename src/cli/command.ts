import { stat } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { KeyRingError } from '../auth/keys.ts';
import { CairnError, type ErrorCode } from '../base/errors.ts';
import { packageVersion } from '../base/system.ts';
import { options, readConfig, readOption, secrets } from '../config.ts';
import type { Config, Environment, SecretName } from '../config.ts';
import { UsageError, type Option } from '../settings.ts';
import { errorCode } from '../store/files.ts';
import { LockedError, StoreDamageError } from '../store/store.ts';

/** How Cairn ends, after sysexits.h: scripts and service managers tell causes apart by these. */
export const exitCodes = { done: 0, usage: 64, bug: 70, io: 74, busy: 75, config: 78 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The same for a person. */
export const exitMeanings: ReadonlyMap<ExitCode, string> = new Map([
  [exitCodes.done, 'done'],
  [exitCodes.usage, 'a wrong option, value or argument: nothing was done'],
  [exitCodes.bug, "a bug of Cairn's own"],
  [exitCodes.io, 'a disk, a port or a file does not do what it should'],
  [exitCodes.busy, 'another process has the data directory, or the port'],
  [exitCodes.config, 'the data or the set-up is not as it should be: an operator has to decide'],
]);

/** What a command does, and how it is called. */
export interface Command {
  /** One word or two, such as `user add`. */
  readonly name: string;
  /** One sentence without a full stop. */
  readonly summary: string;
  /** The names of its operands, each of which is required; absent: it takes none. */
  readonly operands?: readonly string[];
  readonly options: readonly Option<unknown>[];
  /** The secrets of the environment that matter to it; absent: none does. */
  readonly secrets?: readonly SecretName[];
  /** Nothing returned: all is done. */
  run(call: Call): Promise<ExitCode | void>;
}

/** Where a command reads and writes: a process's own streams, or a test's. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream & { isTTY?: boolean; setRawMode?(mode: boolean): unknown };
  readonly environment: Environment;
  out(text: string): void;
  err(text: string): void;
  /** Whether a person reads what `err` writes. */
  readonly interactive: boolean;
}

/** One use of a command: its operands and options, checked. */
export interface Call {
  readonly command: Command;
  readonly terminal: Terminal;
  /** As many as the command names. */
  readonly operands: readonly string[];
  /** @throws UsageError */
  read<T>(option: Option<T>): T;
  /** All of the server's options together. @throws UsageError */
  config(): Config;
}

/** Runs the command that `words` name and resolves with how it ended; a failure is one line on `err`. */
export async function run(commands: readonly Command[], words: readonly string[], terminal: Terminal) {
  const tell = (text: string): ExitCode => {
    terminal.out(text);
    return exitCodes.done;
  };
  let call: Call | undefined;
  try {
    const [first = '', second = ''] = words;
    const family = commands.filter(({ name }) => name.startsWith(`${first} `));
    if (first === '--version') return tell(`cairn ${packageVersion()} on Node.js ${process.version}\n`);
    if (isHelp(first) || first === 'help') return tell(overview(commands));
    if (isHelp(second) && family.length > 0) return tell(overview(family));
    const [command, rest] = findCommand(commands, family, words);
    if (rest.some(isHelp)) return tell(describe(command));
    call = parseCall(command, rest, terminal);
    return (await command.run(call)) ?? exitCodes.done;
  } catch (error) {
    const [code, message] = failureOf(error, call);
    terminal.err(`${message}\n`);
    return code;
  }
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h';

/** Without a command, `serve` is meant. */
function findCommand(commands: readonly Command[], family: readonly Command[], words: readonly string[]) {
  const [first = ''] = words;
  const length = first === '' || first.startsWith('-') ? 0 : family.length > 0 ? 2 : 1;
  const name = words.slice(0, length).join(' ') || 'serve';
  const command = commands.find((candidate) => candidate.name === name);
  if (command !== undefined) return [command, words.slice(length)] as const;
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
  const variable = option.variable === undefined ? '' : `, ${option.variable}`;
  return `  ${head}${variable}\n      ${option.help}${fallback}\n`;
}

const usage = ({ name, operands = [] }: Command): string => [name, ...operands].join(' ');

/**
 * Reads the words behind the command's name.
 * @throws UsageError for an unknown, repeated or incomplete option and for too many or too few operands
 */
function parseCall(command: Command, words: readonly string[], terminal: Terminal): Call {
  const flags = new Map<string, string>();
  const operands: string[] = [];
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      command.options.map((option) => [option.name, { type: isSwitch(option) ? 'boolean' : 'string' }]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value);
    if (token.kind !== 'option') continue;
    const { rawName } = token;
    const option = command.options.find(({ name }) => rawName === `--${name}`);
    if (option === undefined) throw unknownOption(rawName, command);
    if (flags.has(option.name)) throw new UsageError(`Cannot use ${rawName}: it is given twice`);
    flags.set(option.name, valueOf(option, token.value, token.inlineValue === true));
  }
  const { operands: wanted = [] } = command;
  if (operands.length !== wanted.length) {
    const takes = wanted.join(' ') || `no arguments, and got "${operands[0]}"`;
    throw new UsageError(`Cannot run cairn ${command.name}: it takes ${takes}`);
  }
  const { environment } = terminal;
  return {
    command,
    terminal,
    operands,
    read: (option) => readOption(option, flags, environment),
    config: () => readConfig(flags, environment),
  };
}

const isSwitch = ({ placeholder }: Option<unknown>): boolean => placeholder === '';

/** A value that looks like an option is most likely one whose own value was forgotten; `--name=-x` is always meant. */
function valueOf(option: Option<unknown>, value: string | undefined, inline: boolean): string {
  if (isSwitch(option)) {
    if (value === undefined) return 'true';
    throw new UsageError(`Cannot use --${option.name}: it takes no value`);
  }
  if (value !== undefined && (inline || value === '-' || !value.startsWith('-'))) return value;
  throw new UsageError(`Cannot use --${option.name}: its value is missing; must be ${option.allowed}`);
}

function unknownOption(rawName: string, command: Command): UsageError {
  const reason = /^--(secret|admin-password|password)$/.test(rawName)
    ? 'secrets are never arguments, where others could see them; use the environment or a file'
    : `there is no such option; see cairn ${command.name} --help`;
  return new UsageError(`Cannot use ${rawName}: ${reason}`);
}

/** Operating errors of the machine; any other comes of what was asked for. */
const ioErrors: ReadonlySet<ErrorCode> = new Set(['outcome_unknown', 'storage_full', 'store_failed']);

/** How a failure ends the process, and what is told of it. */
function failureOf(error: unknown, call: Call | undefined): [ExitCode, message: string] {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof UsageError) return [exitCodes.usage, message];
  if (error instanceof LockedError) return [exitCodes.busy, message];
  if (error instanceof KeyRingError) return [exitCodes.config, message];
  if (error instanceof StoreDamageError) {
    return [exitCodes.config, error.repairable ? `${message}; ${remedyOf(error)}` : message];
  }
  if (error instanceof CairnError) {
    const told = error.issues?.map(({ pointer, detail }) => `Cannot use the ${pointer.slice(1)}: it ${detail}`);
    return [ioErrors.has(error.code) ? exitCodes.io : exitCodes.usage, told?.join('\n') ?? message];
  }
  const code = errorCode(error) ?? '';
  if (error instanceof Error && ('syscall' in error || code === 'ERR_ACCESS_DENIED')) {
    const told = message.startsWith('Cannot ') ? message : refusalOf(error, code, call);
    return [code === 'EADDRINUSE' ? exitCodes.busy : exitCodes.io, told];
  }
  const stack = error instanceof Error ? error.stack : message;
  return [exitCodes.bug, `Cannot go on, which is a bug of Cairn's: ${stack}`];
}

/** What to do where the system refuses a file or a directory. */
const remedies: Readonly<Record<string, string>> = {
  EACCES: '; run this as the owner of the files, or name another place',
  ENOSPC: '; make room where this writes',
  EROFS: '; the file system is read-only: name another place',
  ENOTDIR: '; it has to be a directory',
};

/** Names the option whose file or directory the system refused: it is there, or within it, or above it. */
function refusalOf(error: Error, code: string, call: Call | undefined): string {
  const path = 'path' in error ? error.path : 'resource' in error ? error.resource : undefined;
  const option = call?.command.options.find((option) => {
    const place = /^(DIRECTORY|FILE)$/.test(option.placeholder) ? call.read(option) : undefined;
    return typeof place === 'string' && typeof path === 'string' && (isWithin(place, path) || isWithin(path, place));
  });
  const head = option === undefined ? 'Cannot go on' : `Cannot use --${option.name}`;
  if (code !== 'ERR_ACCESS_DENIED') return `${head}: ${error.message}${remedies[code] ?? ''}`;
  const variable = option?.variable ?? 'CAIRN_DATA, CAIRN_TLS_CERT and CAIRN_TLS_KEY';
  return `${head}: this run is locked down, and ${JSON.stringify(path)} is not among what "cairn flags" saw; ` +
    `set ${variable} instead of giving an argument`;
}

/** What to do about damage that can be repaired, as the README's table has it. */
export function remedyOf({ label }: StoreDamageError): string {
  const repair = '"cairn check --repair" keeps what can be read';
  return /N2|S[357]|J7|J10/.test(label) ? `put the right file back, or "cairn restore" a backup; ${repair}` : repair;
}

/** Whether `path` is `directory`, or below it. */
export function isWithin(directory: string, path: string): boolean {
  return join(resolve(path), sep).startsWith(join(resolve(directory), sep));
}

/** The data directory, which is there: a slip in its name must not make a new one. @throws UsageError */
export function dataDirectory(call: Call): Promise<string> {
  return existingDirectory('--data', call.read(options.directory));
}

/** @throws UsageError naming `what` where it is no directory */
export async function existingDirectory(what: string, directory: string): Promise<string> {
  const found = await stat(directory).catch(() => undefined);
  if (found?.isDirectory() === true) return directory;
  throw new UsageError(`Cannot use ${what} ${JSON.stringify(directory)}: there is no such directory`);
}
