import { nearest } from '../base/nearest.ts';
import { systemClock, systemRandom, type Clock, type Random } from '../base/system.ts';
import type { CollectionDeclaration } from '../collections/collection.ts';
import type { Hooks } from '../collections/hooks.ts';
import {
  members, settings, settingsOf, type ClusterOptions, type Settings, type SomeSettings,
} from '../config/settings.ts';
import { errorLog, type Log } from '../observability/log.ts';

/** How an app is made. Every option may be left out. */
export interface AppOptions extends SomeSettings {
  /** Where the data files are. Absent: everything is in memory. */
  readonly directory?: string | undefined;
  /** The etcd that keeps the data instead, for several nodes at once. */
  readonly cluster?: ClusterOptions | undefined;
  /** The signing key, 32 to 1,024 bytes of UTF-8. Absent: one is made at the first start and kept in the directory. */
  readonly secret?: string | undefined;
  /** Collections beside `items`, made by `defineCollection`. */
  readonly collections?: readonly CollectionDeclaration[] | undefined;
  /** False: there is no collection `items`. */
  readonly items?: boolean | undefined;
  /** Run before and after each write to users, items and own collections. */
  readonly hooks?: Hooks | undefined;
  /** Absent: the machine's. */
  readonly clock?: Clock | undefined;
  /** Absent: the operating system's. */
  readonly random?: Random | undefined;
  /** Made by `createLog`. Absent: errors of the server itself are written to standard error, and nothing else. */
  readonly log?: Log | undefined;
  /** Called once when the store can write nothing any more. Reads go on, but the process should end. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
  /** Made where there is no user yet. Absent: none is made. */
  readonly administrator?: Administrator | undefined;
  /** False: there is no page for browsers at `/`. */
  readonly page?: boolean | undefined;
}

/** The first user. */
export interface Administrator {
  readonly email: string;
  /** The password, or what makes one: called just before the user is made, so that it can be kept somewhere. */
  readonly password: string | (() => string | Promise<string>);
  /** Called when this process has made the user, and no other node of a cluster. */
  readonly onMade?: () => void | Promise<void>;
}

/** Options that have been checked, with what was left out. */
export interface CompleteOptions extends AppOptions {
  readonly settings: Settings;
  readonly collections: readonly CollectionDeclaration[];
  readonly hooks: Hooks;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Checks options, and completes them. @throws RangeError for one that is unknown or not allowed */
export function completeOptions(options: AppOptions): CompleteOptions {
  const {
    collections = [], hooks = {}, clock = systemClock, random = systemRandom, log = errorLog,
  } = options;
  const { directory, secret, cluster } = options;
  checkNames(options);
  for (const [name, value] of Object.entries({ directory, secret })) {
    if (value === undefined || (typeof value === 'string' && value !== '')) continue;
    throw new RangeError(`Cannot use ${name}: must be a text that is not empty`);
  }
  if (cluster !== undefined && (directory !== undefined || !members.accepts(cluster.members))) {
    throw new RangeError(`Cannot use cluster: must have members, ${members.allowed}, and needs no directory`);
  }
  return { ...options, settings: settingsOf(options), collections, hooks, clock, random, log };
}

/** The options that are no settings. */
const otherOptions: { readonly [K in Exclude<keyof AppOptions, keyof Settings>]-?: true } = {
  directory: true, cluster: true, secret: true, collections: true, items: true, hooks: true, clock: true, random: true,
  log: true, onFailure: true, administrator: true, page: true,
};

/** @throws RangeError for an unknown option, which would have no effect */
function checkNames(options: AppOptions): void {
  const known = [...Object.keys(settings), ...Object.keys(otherOptions)];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const meant = nearest(unknown, known);
  const isOfListen = ['port', 'host', 'tls'].includes(unknown);
  const hint = isOfListen ? '; app.listen takes it' : meant && `; did you mean "${meant}"?`;
  throw new RangeError(`Cannot use "${unknown}": createApp has no such option${hint ?? ''}`);
}
