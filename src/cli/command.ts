import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { SharedPurpose, SharedTools } from '../api/shared-place.ts';
import { defaultOptions, type CompleteOptions } from '../app/options.ts';
import { loadOption, optionalParts } from '../app/parts.ts';
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

export interface Command {
  /** One word or two, such as `user add`. */
  readonly name: string;
  /** One sentence without a full stop. */
  readonly summary: string;
  /** All required. */
  readonly operands?: readonly string[];
  readonly options: readonly Option<unknown>[];
  readonly secrets?: readonly SecretName[];
  /** `undefined` means success. */
  run(call: Invocation): Promise<ExitCode | void>;
}

/** Streams and variables of the process, or of a test. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream & {
    isTTY?: boolean;
    setRawMode?(mode: boolean): unknown;
  };
  readonly environment: Environment;
  /** Writes to standard output. Await it for long output, so that the reader can keep up. */
  out(text: string): void | Promise<void>;
  err(text: string): void;
  /** True if the output goes to a person. */
  readonly interactive: boolean;
}

export interface Invocation {
  readonly command: Command;
  readonly terminal: Terminal;
  readonly operands: readonly string[];
  readonly given: Given;
  /** Reads one option. @throws OptionError */
  read<T>(option: Option<T>): T;
}

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

/** The options and variables of a command that works on a data directory or a cluster. */
export const storeAccess = (...more: readonly Option<unknown>[]) => ({
  ...clusterAccess,
  options: [options.directory, ...clusterAccess.options, ...more],
});

export function findCommand(
  commands: readonly Command[],
  words: readonly string[],
): Command | undefined {
  return commands.find(({ name }) => `${words.join(' ')} `.startsWith(`${name} `));
}

/** Joins the cluster that the options name. Without `--cluster`, its code is not loaded. */
export async function joinGivenCluster(
  { given }: Pick<Invocation, 'given'>,
  options: Partial<CompleteOptions> = {},
  purpose: SharedPurpose = 'command',
): Promise<SharedTools | undefined> {
  const cluster = readCluster(given);
  if (cluster === undefined) return undefined;
  const secret = readSecret('CAIRN_SECRET', given);
  const module = await loadOption(optionalParts.cluster, '--cluster');
  return module.joinCluster(cluster, { ...defaultOptions, secret, ...options }, purpose);
}

/** @throws OptionError with all mistakes */
export async function loadDeclarations(file: string | undefined): Promise<Partial<Declarations>> {
  return file === undefined ? {} : (await import('./declarations.ts')).readDeclarations(file);
}

/**
 * Returns the data directory, which must exist, so that a typing error does not create another one.
 * With `isNew`, the command creates the store in it.
 * @throws OptionError
 */
export function dataDirectory(call: Invocation, isNew = false): string {
  const hint = isNew ? 'for a new store, make it first, with mkdir -m 700' : undefined;
  return existingDirectory('--data', call.read(options.directory), hint);
}

/**
 * Returns `directory` if it exists.
 * @throws OptionError that begins with `what` and ends in `hint`
 */
export function existingDirectory(
  what: string,
  directory: string,
  hint = 'check its name',
): string {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return directory;
  throw new OptionError(
    `Cannot use ${what} ${JSON.stringify(directory)}: there is no such directory; ${hint}`,
  );
}

/** Follows symbolic links. */
export function isWithin(directory: string, path: string): boolean {
  return join(realPath(path), sep).startsWith(join(realPath(directory), sep));
}

/** Resolves symbolic links. The end of the path may not exist yet. */
function realPath(path: string): string {
  const whole = resolve(path);
  try {
    return realpathSync(whole);
  } catch {
    const parent = dirname(whole);
    return parent === whole ? whole : join(realPath(parent), basename(whole));
  }
}
