import { isDeepStrictEqual } from 'node:util';
import { defaultOptions, type BasicOptions, type CompleteOptions } from '../app/options.ts';
import { takenNames } from '../api/taken-names.ts';
import type { CollectionDeclaration, CollectionDefinition } from '../collections/declaration.ts';
import { parseDeclarations } from '../collections/declaration-file.ts';
import { readReason } from '../base/errors.ts';
import {
  DeclarationError,
  declareCollection,
  type DefinedCollection,
} from '../collections/define.ts';
import {
  choice,
  clusterOptions,
  OptionError,
  options as serverOptions,
  settings,
  signingKey,
  valuesOf,
  type ClusterOptions,
  type OptionKind,
  type Settings,
} from '../config/options.ts';
import { createLineLog, logError, silentLog, type Log, type LogOptions } from '../log/log.ts';
import { writeError } from '../log/standard-streams.ts';
import { checkMembers, type MemberKinds } from './given.ts';
import { hooked, type Hooks } from './hooks.ts';
import { checkRoute, type OwnRoute } from './routes.ts';

type SomeSettings = { readonly [K in keyof Settings]?: Settings[K] | undefined };

/** The options of `createApp`, all of them optional. */
export interface AppOptions extends SomeSettings, Omit<BasicOptions, 'collections' | 'log'> {
  /**
   * Collections in addition to `items`: plain definitions, as in a file, or results of
   * `defineCollection`.
   */
  readonly collections?: readonly (CollectionDefinition | CollectionDeclaration)[] | undefined;
  /**
   * The result of `createLog`, or an object with `info`, `warn` and `error`. Default: errors of the
   * server itself go to standard error.
   */
  readonly log?: Log | SimpleLog | undefined;
  /** Your own routes, made by `defineRoute`. */
  readonly routes?: readonly OwnRoute<never>[] | undefined;
  /** Functions that run before and after each write to a collection or to users. */
  readonly hooks?: Hooks | undefined;
}

/** Checks options and adds the defaults. @throws OptionError for an unknown or invalid option */
export function completeOptions(options: AppOptions): CompleteOptions {
  checkOptions(options);
  const { clock = defaultOptions.clock, random = defaultOptions.random } = options;
  const { hooks, directory, secret, cluster } = options;
  const log = toLog(options.log);
  const collections = declaredBy(options);
  for (const route of options.routes ?? []) checkRoute(route, options.roles ?? []);
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
  const observing = hooks !== undefined && hooked(hooks, onError);
  return { ...options, settings: chosen, collections, clock, random, log, ...observing };
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

export interface SimpleLog {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** @throws OptionError unless this is a log */
function toLog(log: AppOptions['log'] = defaultOptions.log): Log {
  if ('message' in log) return log;
  for (const level of ['info', 'warn', 'error'] as const) {
    if (typeof log[level] !== 'function')
      throw new OptionError(`Cannot use log: it has no method "${level}"`, 'log');
  }
  const message: Log['message'] = (level, text, details) => {
    const lines = details === undefined ? text : `${text} ${JSON.stringify(details)}`;
    try {
      log[level === 'notice' ? 'info' : level](lines);
    } catch (error) {
      writeError(`The log threw "${readReason(error)}" for this line: ${lines}\n`);
    }
  };
  return {
    ...silentLog,
    message,
    security: (event, details) => message('info', event, { ...details }),
  };
}

/** @throws OptionError */
function declaredBy({ collections = [], items, users, roles }: AppOptions) {
  const definitions = collections.map((one): unknown => Object(one).definition ?? one);
  try {
    const all = { items, users, roles, collections: definitions };
    return parseDeclarations(all, takenNames(users)).collections;
  } catch (error) {
    if (!(error instanceof DeclarationError)) throw error;
    // Each mistake begins with its pointer, and a field may be called `roles` as well.
    const option = /(?<!\S)\/roles\b/.test(error.message) ? 'roles' : 'collections';
    throw new OptionError(`Cannot serve the collections: ${error.message}`, option);
  }
}

/**
 * Declares a collection with the paths `/<name>` and `/<name>/{id}`, like `items`.
 *
 * @example
 *     const notes = defineCollection({
 *       name: 'notes',
 *       fields: { text: { kind: 'text', max: 500 }, pinned: { kind: 'boolean', default: false } },
 *       timestamps: true,
 *     });
 * @throws OptionError with all mistakes
 */
export function defineCollection<const D extends CollectionDefinition>(
  definition: D,
): DefinedCollection<D> {
  try {
    return declareCollection(definition);
  } catch (error) {
    if (!(error instanceof DeclarationError)) throw error;
    throw new OptionError(error.message, 'collection');
  }
}

/** The options that are not settings. Each `any` is checked by the code that uses it. */
const otherOptions = {
  directory: 'any',
  cluster: 'object',
  secret: 'any',
  collections: 'array',
  items: 'boolean',
  users: 'boolean',
  roles: 'array',
  hooks: 'any',
  routes: 'array',
  clock: 'object',
  random: 'function',
  log: 'object',
  onFailure: 'function',
  administrator: 'object',
  page: 'boolean',
} as const satisfies {
  readonly [K in keyof Required<Omit<AppOptions, keyof Settings>>]: MemberKinds[string];
};

const allSettings = Object.keys(settings).map((name) => [name, 'any'] as const);
const optionKinds: MemberKinds = { ...Object.fromEntries(allSettings), ...otherOptions };
const ofListen = '; app.listen takes it';
const advice = { port: ofListen, host: ofListen, tls: ofListen };

/** @throws OptionError for an unknown option, or a value of the wrong kind */
function checkOptions(options: AppOptions): void {
  checkMembers('createApp', options, optionKinds, advice);
  const { clock, administrator } = options;
  if (administrator !== undefined)
    checkMembers('administrator', administrator, { email: 'any', password: 'any' });
  for (const method of ['now', 'elapsed'] as const)
    if (clock !== undefined && typeof clock[method] !== 'function')
      throw new OptionError(`Cannot use clock: it has no method "${method}"`, 'clock');
}

/**
 * Creates a log in JSON, which writes its lines as bytes to `sink`.
 *
 * @throws OptionError
 * @example
 *     const log = createLog({ level: 'info', clock: systemClock, sink: process.stdout });
 *     const app = await createApp({ log });
 */
export function createLog(options: LogOptions): Log {
  checkMembers('createLog', options, logKinds);
  checkGiven('level', logLevel, options.level);
  if (typeof Object(options.sink).write !== 'function')
    throw new OptionError('Cannot use sink: it has no method "write"', 'sink');
  return createLineLog(options);
}

const logLevel = choice(['info', 'warn', 'error', 'notice']);
const logKinds = {
  format: 'object',
  level: 'any',
  clock: 'object',
  sink: 'any',
  onError: 'function',
} as const;

/**
 * Checks that a program's value equals what its text would stand for.
 * @throws OptionError that names the option and its allowed values
 */
export function checkGiven(name: string, kind: OptionKind<unknown>, value: unknown): void {
  const text = Array.isArray(value) ? value.join(',') : String(value);
  if (value !== undefined && isDeepStrictEqual(kind.parse(text), value)) return;
  throw new OptionError(`Cannot use ${name}: must be ${kind.allowed}`, name);
}
