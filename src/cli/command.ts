import { statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import type { Declarations } from '../collections/declaration-file.ts';
import { options, type Config, type Environment, type SecretName } from '../config/config.ts';
import { UsageError, type Option } from '../config/settings.ts';
import type { ClusterTools } from './cluster.ts';

/**
 * Exit codes, after sysexits.h. Scripts and service managers tell causes apart by them.
 */
export const exitCodes = {
  done: 0,
  usage: 64,
  bug: 70,
  io: 74,
  busy: 75,
  config: 78,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The meaning of each exit code, for the help and the README. */
export const exitMeanings: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  64: 'a wrong option, value or argument: nothing was done',
  70: 'a bug in Cairn',
  74: 'a disk, a port or a file failed',
  75: 'another process has the data directory, or the port; or the cluster went on without this node: start it again',
  78: 'the data or the set-up cannot be used: an operator has to decide',
};

/** One command: its name, what it accepts, and what it does. */
export interface Command {
  /** One word or two, such as `user add`. */
  readonly name: string;
  /** One sentence without a full stop. */
  readonly summary: string;
  /** The names of its operands, all of which are required. Absent: it takes none. */
  readonly operands?: readonly string[];
  readonly options: readonly Option<unknown>[];
  /** The secrets that it reads. Absent: none. */
  readonly secrets?: readonly SecretName[];
  /** Resolves with the exit code; `undefined` means success. */
  run(call: Call): Promise<ExitCode | void>;
}

/** The streams and variables of the process, or of a test. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream & {
    isTTY?: boolean;
    setRawMode?(mode: boolean): unknown;
  };
  readonly environment: Environment;
  out(text: string): void;
  err(text: string): void;
  /** Whether the output goes to a person. */
  readonly interactive: boolean;
}

/** One invocation of a command. */
export interface Call {
  readonly command: Command;
  readonly terminal: Terminal;
  /** One value for each operand that the command names. */
  readonly operands: readonly string[];
  /** Reads one option. @throws UsageError */
  read<T>(option: Option<T>): T;
  /** Reads all options and secrets of a server. @throws UsageError */
  config(): Config;
}

const clusterOptions = [
  options.cluster,
  options.clusterPrefix,
  options.clusterCa,
  options.clusterCert,
  options.clusterKey,
  options.clusterUser,
] as const;

/** The options and secrets of a command that works on a cluster only. */
export const clusterAccess = {
  options: clusterOptions,
  secrets: ['CAIRN_SECRET', 'CAIRN_CLUSTER_PASSWORD'],
} as const;

/**
 * The options and secrets of a command that works on a data directory or on a cluster.
 */
export const storeAccess = {
  ...clusterAccess,
  options: [options.directory, ...clusterOptions],
} as const;

/** Returns the command whose name `words` begin with. */
export function findCommand(
  commands: readonly Command[],
  words: readonly string[],
): Command | undefined {
  return commands.find(({ name }) => `${words.join(' ')} `.startsWith(`${name} `));
}

/**
 * Returns the cluster that the options name. Without `--cluster`, its code is not loaded.
 */
export async function clusterOf(call: Call): Promise<ClusterTools | undefined> {
  if (call.read(options.cluster) === undefined) return undefined;
  const { openTools } = await import('./cluster.ts');
  return openTools(call.config());
}

/**
 * Reads the file that `--collections` names, if any.
 * @throws UsageError with the place of the first mistake
 */
export async function declarationsOf(file: string | undefined): Promise<Partial<Declarations>> {
  return file === undefined ? {} : (await import('./declarations.ts')).readDeclarations(file);
}

/**
 * Returns the data directory. It must exist, so that a wrong name makes no new one.
 * @throws UsageError
 */
export function dataDirectory(call: Call): string {
  return existingDirectory('--data', call.read(options.directory));
}

/**
 * Returns `directory`.
 * @throws UsageError that names `what` if there is no such directory
 */
export function existingDirectory(what: string, directory: string): string {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return directory;
  throw new UsageError(
    `Cannot use ${what} ${JSON.stringify(directory)}: there is no such directory`,
  );
}

/** Whether `path` is `directory` or below it. */
export function isWithin(directory: string, path: string): boolean {
  return join(resolve(path), sep).startsWith(join(resolve(directory), sep));
}
