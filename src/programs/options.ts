import { isDeepStrictEqual } from 'node:util';
import { defaultOptions, type BasicOptions, type CompleteOptions } from '../app/options.ts';
import { didYouMean } from '../base/search.ts';
import type { Registry } from '../collections/registry.ts';
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
import { logError } from '../log/log.ts';
import { observerOf, type Hooks } from './hooks.ts';

/** Settings, of which any may be left out. */
type SomeSettings = { readonly [K in keyof Settings]?: Settings[K] | undefined };

/** The options of `createApp`. Every one may be left out. */
export interface AppOptions extends SomeSettings, BasicOptions {
  /** Functions that run before and after each write to a collection or to users. */
  readonly hooks?: Hooks | undefined;
}

/**
 * Checks options, and adds the defaults. What remains is held by their types.
 * @throws OptionError for one that is unknown or not allowed
 */
export function completeOptions(options: AppOptions): CompleteOptions {
  const { collections = defaultOptions.collections, clock = defaultOptions.clock } = options;
  const { random = defaultOptions.random, log = defaultOptions.log } = options;
  const { hooks, directory, secret, cluster } = options;
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
  const onError = (error: unknown): void => logError(log, 'The hook afterWrite failed', error);
  const observer = hooks && ((registry: Registry) => observerOf(hooks, registry, onError));
  return { ...options, settings: chosen, collections, clock, random, log, observer };
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
  users: true,
  roles: true,
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
