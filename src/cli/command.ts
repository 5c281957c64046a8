import { statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { options } from '../config/config.ts';
import type { Config, Environment, SecretName } from '../config/config.ts';
import type { Declarations } from '../collections/declaration-file.ts';
import { UsageError, type Option } from '../config/settings.ts';
import type { ClusterTools } from './cluster.ts';

/** How Cairn ends, after sysexits.h. Scripts and service managers tell causes apart by these codes. */
export const exitCodes = { done: 0, usage: 64, bug: 70, io: 74, busy: 75, config: 78 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The same for a person. */
export const exitMeanings: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  64: 'a wrong option, value or argument: nothing was done',
  70: 'a bug of Cairn',
  74: 'a disk, a port or a file does not do what it should',
  75: 'another process has the data directory, or the port; or the cluster went on without this node: start it again',
  78: 'the data or the set-up is not as it should be: an operator has to decide',
};

/** One command: how it is called, and what it does. */
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
  /** Returns nothing where all went well. */
  run(call: Call): Promise<ExitCode | void>;
}

/** Where a command reads and writes: the streams of the process, or of a test. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream & { isTTY?: boolean; setRawMode?(mode: boolean): unknown };
  readonly environment: Environment;
  out(text: string): void;
  err(text: string): void;
  /** Whether a person reads what is written. */
  readonly interactive: boolean;
}

/** One use of a command. */
export interface Call {
  readonly command: Command;
  readonly terminal: Terminal;
  /** As many as the command names. */
  readonly operands: readonly string[];
  /** Reads one option. @throws UsageError */
  read<T>(option: Option<T>): T;
  /** Reads all options of a server. @throws UsageError */
  config(): Config;
}

/** Returns the command that `words` begin with. */
export function findCommand(commands: readonly Command[], words: readonly string[]): Command | undefined {
  return commands.find(({ name }) => `${words.join(' ')} `.startsWith(`${name} `));
}

/** Whether `path` is `directory`, or below it. */
export function isWithin(directory: string, path: string): boolean {
  return join(resolve(path), sep).startsWith(join(resolve(directory), sep));
}

/** Reads the file of collections, where `--collections` names one. @throws UsageError with the place of a mistake */
export async function declarationsOf(file: string | undefined): Promise<Partial<Declarations>> {
  return file === undefined ? {} : (await import('./declarations.ts')).readDeclarations(file);
}

/** The options and secrets with which a command reaches a cluster. */
export const clusterOptions = [
  options.cluster, options.clusterPrefix, options.clusterCa, options.clusterCert, options.clusterKey,
  options.clusterUser,
] as const;
export const clusterSecrets = ['CAIRN_SECRET', 'CAIRN_CLUSTER_PASSWORD'] as const;

/** The cluster that a call names; `undefined` where it names none. Its code is loaded only then. */
export async function clusterOf(call: Call): Promise<ClusterTools | undefined> {
  if (call.read(options.cluster) === undefined) return undefined;
  const { openTools } = await import('./cluster.ts');
  return openTools(call.config());
}

/** Returns the data directory, which must exist: a wrong name must not make a new one. @throws UsageError */
export function dataDirectory(call: Call): string {
  return existingDirectory('--data', call.read(options.directory));
}

/** Returns `directory`. @throws UsageError that names `what` where it is no directory */
export function existingDirectory(what: string, directory: string): string {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return directory;
  throw new UsageError(`Cannot use ${what} ${JSON.stringify(directory)}: there is no such directory`);
}
