import { isDeepStrictEqual } from 'node:util';
import { didYouMean } from '../base/search.ts';
import { systemClock, systemRandom, type Clock, type Random } from '../base/system.ts';
import type { CollectionDeclaration } from '../collections/declaration.ts';
import type { Hooks } from '../collections/hooks.ts';
import {
  checkGiven,
  clusterOptions,
  OptionError,
  options as serverOptions,
  settings,
  signingKey,
  valuesOf,
  type ClusterOptions,
  type Settings,
} from '../config/options.ts';
import { errorLog, type Log } from '../log/log.ts';
import type { Administrator } from './administrator.ts';

/** Settings, of which any may be left out. */
type SomeSettings = { readonly [K in keyof Settings]?: Settings[K] | undefined };

/** The options of `createApp`. Every one may be left out. */
export interface AppOptions extends SomeSettings {
  /** The directory of the data files. Absent: everything is in memory. */
  readonly directory?: string | undefined;
  /** The etcd that has the data instead of a directory, for several nodes. */
  readonly cluster?: ClusterOptions | undefined;
  /**
   * The signing key, 32 to 1,024 bytes of UTF-8. Absent: the first start makes one and
   * keeps it in the directory.
   */
  readonly secret?: string | undefined;
  /** Collections in addition to `items`, made by `defineCollection`. */
  readonly collections?: readonly CollectionDeclaration[] | undefined;
  /** False: there is no collection `items`. */
  readonly items?: boolean | undefined;
  /** Functions that run before and after each write to a collection or to users. */
  readonly hooks?: Hooks | undefined;
  /** Absent: the clock of the machine. */
  readonly clock?: Clock | undefined;
  /** Absent: the generator of the operating system. */
  readonly random?: Random | undefined;
  /**
   * A log made by `createLog`. Absent: only errors of the server itself are written, to
   * standard error.
   */
  readonly log?: Log | undefined;
  /**
   * Called once when the store cannot write any more. Reads go on, but the process should
   * end.
   */
  readonly onFailure?: ((error: unknown) => void) | undefined;
  /** The administrator that is made if there is no user. Absent: none is made. */
  readonly administrator?: Administrator | undefined;
  /** False: there is no page for browsers at `/`. */
  readonly page?: boolean | undefined;
}

/** Options that have been checked, with defaults for those that were left out. */
export interface CompleteOptions extends AppOptions {
  readonly settings: Settings;
  readonly collections: readonly CollectionDeclaration[];
  readonly hooks: Hooks;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Checks options, and adds the defaults. What remains is held by their types.
 * @throws OptionError for one that is unknown or not allowed
 */
export function completeOptions(options: AppOptions): CompleteOptions {
  const { collections = [], hooks = {}, clock = systemClock } = options;
  const { random = systemRandom, log = errorLog, directory, secret, cluster } = options;
  checkNames(options);
  if (directory !== undefined) checkGiven('directory', serverOptions.directory, directory);
  if (secret !== undefined) checkGiven('secret', signingKey, secret);
  if (cluster !== undefined) checkCluster(cluster, directory);
  const chosen = valuesOf(settings, (option, name) => {
    const value: unknown = Reflect.get(options, name);
    if (value === undefined || isDeepStrictEqual(value, option.default)) return option.default;
    checkGiven(name, option.inPrograms ?? option, value);
    return value;
  });
  return { ...options, settings: chosen, collections, hooks, clock, random, log };
}

function checkCluster(
  { members, prefix, sessions }: ClusterOptions,
  directory: string | undefined,
): void {
  checkGiven('cluster.members', clusterOptions.members, members);
  if (prefix !== undefined) checkGiven('cluster.prefix', clusterOptions.prefix, prefix);
  if (sessions !== undefined) checkGiven('cluster.sessions', clusterOptions.sessions, sessions);
  if (directory === undefined) return;
  throw new OptionError(
    'Cannot use cluster: directory must be left out, because etcd has the data',
  );
}

/** The names of the options that are no settings. */
const otherOptions: {
  readonly [K in Exclude<keyof AppOptions, keyof Settings>]-?: true;
} = {
  directory: true,
  cluster: true,
  secret: true,
  collections: true,
  items: true,
  hooks: true,
  clock: true,
  random: true,
  log: true,
  onFailure: true,
  administrator: true,
  page: true,
};

/** @throws OptionError for an unknown option, which would have no effect */
function checkNames(options: AppOptions): void {
  const known = [...Object.keys(settings), ...Object.keys(otherOptions)];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const isOfListen = ['port', 'host', 'tls'].includes(unknown);
  const advice = isOfListen ? '; app.listen takes it' : didYouMean(unknown, known);
  throw new OptionError(`Cannot use "${unknown}": createApp has no such option${advice}`);
}
