import { didYouMean } from '../base/nearest.ts';
import { systemClock, systemRandom, type Clock, type Random } from '../base/system.ts';
import type { CollectionDeclaration } from '../collections/declaration.ts';
import type { Hooks } from '../collections/hooks.ts';
import {
  clusterKinds,
  isAllowed,
  settings,
  settingsOf,
  type ClusterOptions,
  type Settings,
  type SomeSettings,
} from '../config/options.ts';
import { errorLog, type Log } from '../log/log.ts';
import type { Administrator } from './administrator.ts';

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
 * Checks options, and adds the defaults.
 * @throws RangeError for one that is unknown or not allowed
 */
export function completeOptions(options: AppOptions): CompleteOptions {
  const {
    collections = [],
    hooks = {},
    clock = systemClock,
    random = systemRandom,
    log = errorLog,
  } = options;
  const { directory, secret, cluster } = options;
  checkNames(options);
  checkHooks(hooks);
  if (!logMembers.every((name) => typeof Reflect.get(Object(log), name) === 'function')) {
    throw new RangeError('Cannot use log: it must be made by createLog');
  }
  for (const [name, value] of Object.entries({ directory, secret })) {
    if (value === undefined || (typeof value === 'string' && value !== '')) continue;
    throw new RangeError(`Cannot use ${name}: must be a text that is not empty`);
  }
  if (cluster !== undefined) checkCluster(cluster);
  if (cluster !== undefined && directory !== undefined) {
    throw new RangeError(
      'Cannot use cluster: directory must be left out, because etcd has the data',
    );
  }
  return {
    ...options,
    settings: settingsOf(options),
    collections,
    hooks,
    clock,
    random,
    log,
  };
}

/** @throws RangeError for a value that the command line does not allow either */
function checkCluster(cluster: ClusterOptions): void {
  for (const [name, kind] of Object.entries(clusterKinds)) {
    const value: unknown = Reflect.get(cluster, name);
    const isLeftOut = value === undefined && name !== 'members';
    if (isLeftOut || isAllowed(kind, value)) continue;
    throw new RangeError(`Cannot use cluster.${name}: must be ${kind.allowed}`);
  }
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

const logMembers: readonly (keyof Log)[] = ['request', 'security', 'message', 'close'];
const hookNames: readonly string[] = ['beforeWrite', 'afterWrite'] satisfies (keyof Hooks)[];

/** @throws RangeError for a hook that is no function, and for a function that is no hook */
function checkHooks(hooks: Hooks): void {
  for (const name of hookNames) {
    if (['function', 'undefined'].includes(typeof Reflect.get(hooks, name))) continue;
    throw new RangeError(`Cannot use hooks.${name}: it must be a function`);
  }
  for (const [name, value] of Object.entries(hooks)) {
    if (hookNames.includes(name) || typeof value !== 'function') continue;
    throw new RangeError(
      `Cannot use hooks.${name}: there is no such hook${didYouMean(name, hookNames)}`,
    );
  }
}

/** @throws RangeError for an unknown option, which would have no effect */
function checkNames(options: AppOptions): void {
  const known = [...Object.keys(settings), ...Object.keys(otherOptions)];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const isOfListen = ['port', 'host', 'tls'].includes(unknown);
  const advice = isOfListen ? '; app.listen takes it' : didYouMean(unknown, known);
  throw new RangeError(`Cannot use "${unknown}": createApp has no such option${advice}`);
}
