import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { SharedPurpose, SharedTools } from '../api/shared-place.ts';
import { defaultOptions, type CompleteOptions } from '../app/options.ts';
import { loadOption, options as parts } from '../app/parts.ts';
import type { ExitCode } from '../base/errors.ts';
import type { Declarations } from '../collections/declaration-file.ts';
import { clusterOptions, OptionError, options, type Option } from '../config/options.ts';
import {
  readCluster,
  readSecret,
  type Environment,
  type Given,
  type SecretName,
} from '../config/read.ts';

/** One command: its name, what it accepts, and what it does. */
export interface Command {
  /** One word or two, such as `user add`. */
  readonly name: string;
  /** One sentence without a full stop. */
  readonly summary: string;
  /** The names of its operands. All are required. Absent: it takes none. */
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
  /** Writes to standard output. Long output waits until its reader has taken the last text. */
  out(text: string): void | Promise<void>;
  err(text: string): void;
  /** True if the output goes to a person. */
  readonly interactive: boolean;
}

/** One invocation of a command. */
export interface Call {
  readonly command: Command;
  readonly terminal: Terminal;
  /** One value for each operand that the command names. */
  readonly operands: readonly string[];
  readonly given: Given;
  /** Reads one option. @throws OptionError */
  read<T>(option: Option<T>): T;
}

/** The options and secrets of a command that works on a cluster only. */
export const clusterAccess = {
  options: [
    clusterOptions.members,
    clusterOptions.prefix,
    clusterOptions.ca,
    clusterOptions.cert,
    clusterOptions.key,
    clusterOptions.user,
  ],
  secrets: ['CAIRN_SECRET', 'CAIRN_CLUSTER_PASSWORD'],
} as const satisfies Partial<Command>;

/**
 * Returns the options and secrets of a command that works on a data directory or on a cluster, with
 * `more` options.
 */
export const storeAccess = (...more: readonly Option<unknown>[]) => ({
  ...clusterAccess,
  options: [options.directory, ...clusterAccess.options, ...more],
});

/** Returns the command that `words` name at their beginning. */
export function findCommand(
  commands: readonly Command[],
  words: readonly string[],
): Command | undefined {
  return commands.find(({ name }) => `${words.join(' ')} `.startsWith(`${name} `));
}

/** Joins the cluster that the options name. Without `--cluster`, its code is not loaded. */
export async function joinCluster(
  { given }: Pick<Call, 'given'>,
  options: Partial<CompleteOptions> = {},
  purpose: SharedPurpose = 'command',
): Promise<SharedTools | undefined> {
  const cluster = readCluster(given);
  if (cluster === undefined) return undefined;
  const secret = readSecret('CAIRN_SECRET', given);
  const module = await loadOption(parts.cluster, '--cluster');
  return module.joinCluster(cluster, { ...defaultOptions, secret, ...options }, purpose);
}

/**
 * Reads the file that `--collections` names, if any.
 * @throws OptionError with all mistakes
 */
export async function loadDeclarations(file: string | undefined): Promise<Partial<Declarations>> {
  return file === undefined ? {} : (await import('./declarations.ts')).readDeclarations(file);
}

/**
 * Returns the data directory. It must exist, so that a wrong name makes no new one. `isNew`: the
 * command makes a store if there is none.
 * @throws OptionError
 */
export function dataDirectory(call: Call, isNew = false): string {
  const hint = isNew ? '; for a new store, make it first, with mkdir -m 700' : '';
  return existingDirectory('--data', call.read(options.directory), hint);
}

/**
 * Returns `directory`.
 * @throws OptionError that names `what` if there is no such directory, and ends in `hint`
 */
export function existingDirectory(what: string, directory: string, hint = ''): string {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return directory;
  throw new OptionError(
    `Cannot use ${what} ${JSON.stringify(directory)}: there is no such directory${hint}`,
  );
}

/** Returns true if `path`, with symbolic links followed, is `directory` or below it. */
export function isWithin(directory: string, path: string): boolean {
  return join(realPath(path), sep).startsWith(join(realPath(directory), sep));
}

/** Returns a path without symbolic links. Its end may not exist yet. */
function realPath(path: string): string {
  const whole = resolve(path);
  try {
    return realpathSync(whole);
  } catch {
    const parent = dirname(whole);
    return parent === whole ? whole : join(realPath(parent), basename(whole));
  }
}
