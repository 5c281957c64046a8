import { stat } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import type { Config, Environment, SecretName } from '../config.ts';
import { options, readConfig, readOption } from '../config.ts';
import type { Option } from '../options.ts';
import { UsageError } from '../options.ts';
import type { StoreDamageError } from '../store/store.ts';

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
  readonly terminal: Terminal;
  /** As many as the command names. */
  readonly operands: readonly string[];
  /** @throws UsageError */
  read<T>(option: Option<T>): T;
  /** All of the server's options together. @throws UsageError */
  config(): Config;
  /** The option that says where `path` is: what it names is there, or within it, or above it. */
  placing(path: string): Option<unknown> | undefined;
}

/**
 * Reads the words behind the command's name.
 * @throws UsageError for an unknown, repeated or incomplete option and for too many or too few operands
 */
export function parseCall(command: Command, words: readonly string[], terminal: Terminal): Call {
  const flags = new Map<string, string>();
  const operands: string[] = [];
  const parsed = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      command.options.map((option) => [option.name, { type: isSwitch(option) ? 'boolean' : 'string' }]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of parsed.tokens) {
    if (token.kind === 'positional') operands.push(token.value);
    if (token.kind !== 'option') continue;
    const option = command.options.find(({ name }) => name === token.name);
    if (option === undefined || !token.rawName.startsWith('--')) throw unknownOption(token.rawName, command);
    if (flags.has(option.name)) throw new UsageError(`Cannot use --${option.name}: it is given twice`);
    flags.set(option.name, valueOf(option, token.value, token.inlineValue === true));
  }
  const { operands: wanted = [] } = command;
  if (operands.length !== wanted.length) {
    const takes = wanted.join(' ') || `no arguments, and got "${operands[0]}"`;
    throw new UsageError(`Cannot run cairn ${command.name}: it takes ${takes}`);
  }
  const { environment } = terminal;
  const read = <T>(option: Option<T>): T => readOption(option, flags, environment);
  return {
    terminal,
    operands,
    read,
    config: () => readConfig(flags, environment),
    placing: (path) =>
      command.options.find((option) => {
        const place = /^(DIRECTORY|FILE)$/.test(option.placeholder) ? read(option) : undefined;
        return typeof place === 'string' && (isWithin(place, path) || isWithin(path, place));
      }),
  };
}

const isSwitch = ({ placeholder }: Option<unknown>): boolean => placeholder === '';

/** A value that looks like an option is most likely one whose own value was forgotten; `--name=-x` is always meant. */
function valueOf(option: Option<unknown>, value: string | undefined, inline: boolean): string {
  if (isSwitch(option)) {
    if (value !== undefined) throw new UsageError(`Cannot use --${option.name}: it takes no value`);
    return 'true';
  }
  if (value === undefined || (value.startsWith('-') && value !== '-' && !inline)) {
    throw new UsageError(`Cannot use --${option.name}: its value is missing; must be ${option.allowed}`);
  }
  return value;
}

function unknownOption(rawName: string, command: Command): UsageError {
  const reason = /^--(secret|admin-password|password)$/.test(rawName)
    ? 'secrets are never arguments, where others could see them; use the environment or a file'
    : `there is no such option; see cairn ${command.name} --help`;
  return new UsageError(`Cannot use ${rawName}: ${reason}`);
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
