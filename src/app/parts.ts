import type { Budget } from '../base/budget.ts';
import type { Authenticators } from '../api/authenticate.ts';
import type { Route, RoutedCollection } from '../api/call.ts';
import type { CollectionOptions } from '../api/collections.ts';
import type { Operations as CollectionOperations } from '../api/operations.ts';
import type { Context } from '../api/context.ts';
import type { SharedPlace, SharedPurpose, SharedTools } from '../api/shared-place.ts';
import type { CollectionDeclaration } from '../collections/declaration.ts';
import type { Declared, ReferenceRules, Registry, TableRules } from '../collections/registry.ts';
import type {
  CollectionResource,
  CollectionTools,
  EntryDraft,
  NewEntry,
} from '../collections/resource.ts';
import { OptionError, type ClusterOptions, type Settings } from '../config/options.ts';
import { parseOrigins, type Origins } from '../http/cross-site.ts';
import type { Handle } from '../http/message.ts';
import type { Cors, Proxies } from '../http/server-options.ts';
import type { TlsTexts } from '../http/server.ts';
import type { Format, Observer } from '../log/log.ts';
import type { Load, Operated } from '../log/operated.ts';
import { referenceIn } from '../schema/field.ts';
import type { Store } from '../store/store.ts';
import type { CompleteOptions } from './options.ts';

/**
 * The parts that a server can do without: options, which a flag asks for, and features, which are on.
 * Each part lies in a folder of its own, is loaded by its line below before the server says that
 * it serves, and nothing else imports it. Who does not want a part removes it and its line.
 */
export interface Options {
  /** Joins a cluster. Nothing is asked before its store starts. */
  readonly cluster?: () => Promise<{
    joinCluster(
      cluster: ClusterOptions,
      options: CompleteOptions,
      purpose: SharedPurpose,
    ): SharedTools;
  }>;
  readonly cors?: () => Promise<{
    createCors(allowed: Origins, options: { isOpen: boolean }): Cors;
  }>;
  readonly dialect?: () => Promise<Dialect>;
  /** Decides who is served without authentication. */
  readonly local?: () => Promise<{ createLocal(options: LocalOptions): Local }>;
  readonly proxies?: () => Promise<{ createProxies(networks: readonly string[]): Proxies }>;
  readonly references?: () => Promise<{ readonly references: ReferenceRules }>;
  readonly singles?: () => Promise<Singles>;
  readonly readableLog?: () => Promise<{ readonly readable: Format }>;
  /** Reads a certificate and its key. */
  readonly tls?: () => Promise<{ readTls(certFile: string, keyFile: string): TlsTexts }>;
}

interface LocalOptions {
  /** The origins that `--cors-origin` allows. */
  readonly allowed: Origins;
  readonly share: boolean;
  readonly hosts: readonly string[];
}

interface Local {
  /** The origins of pages that may call. */
  readonly origins: Origins;
  readonly check: NonNullable<Authenticators['checkLocal']>;
}

/** Lets clients of another server ask in their own way. */
interface Dialect {
  /** Rules that it adds to the tables of declared collections. */
  readonly rules: TableRules;
  /** Returns a collection with bodies of the dialect. */
  withBodies(
    collection: RoutedCollection<NewEntry, EntryDraft>,
  ): RoutedCollection<NewEntry, EntryDraft>;
  /** Returns the routes of a declared collection. */
  createRoutes(
    declared: Declared,
    registry: Registry,
    options: CollectionOptions,
    tools: CollectionTools & { readonly store: Store },
  ): Route[];
  /** Returns what takes requests before `handle`. */
  translate(handle: Handle, registry: Registry): Handle;
}

/** Serves single resources. */
interface Singles {
  readonly SingleResource: typeof CollectionResource;
  /** Returns the routes of a single resource. */
  singleRoutes(
    operations: CollectionOperations<NewEntry, EntryDraft>,
    options: CollectionOptions,
  ): Route[];
}

/** A feature of one app. It observes the requests and security events that it has methods for. */
export interface Feature extends Observer {
  /** Its routes. `others` are those of the app and of the features before it. */
  routes(others: readonly Route[]): readonly Route[];
  /** Returns what it adds to `/status`. */
  readonly status?: () => object;
  /** Returns what it adds to the load of the app. */
  readonly load?: () => Partial<Load>;
  /** The budget that it uses, to count refusals. */
  readonly places?: Budget;
  /** Called when the app stops. */
  readonly close?: () => void;
}

/** The context of a feature. */
interface FeatureContext extends Context {
  readonly settings: Settings;
  readonly operated: Operated;
}

interface FeatureModule {
  createFeature(context: FeatureContext): Feature;
  /** Makes an API key of a user, and returns it. @throws CairnError */
  makeKey?(data: Pick<Context, 'accounts'>, userId: number, name: string): Promise<string>;
}

export const options: Options = {
  cluster: () => import('../options/cluster/node.ts'),
  cors: () => import('../options/cors/cors.ts'),
  dialect: () => import('../options/dialect/json-server.ts'),
  local: () => import('../options/local/local.ts'),
  proxies: () => import('../options/proxies/proxies.ts'),
  references: () => import('../options/references/references.ts'),
  singles: () => import('../options/singles/singles.ts'),
  readableLog: () => import('../options/readable-log/format.ts'),
  tls: () => import('../options/tls/certificate.ts'),
};

const features: Readonly<Record<string, () => Promise<FeatureModule>>> = {
  feed: () => import('../features/feed/feed.ts'),
  keys: () => import('../features/keys/keys.ts'),
  metrics: () => import('../features/metrics/metrics.ts'),
  openapi: () => import('../features/openapi/openapi.ts'),
  page: () => import('../features/page/page.ts'),
};

/** The parts of an app besides its core. */
export interface Parts {
  readonly features: readonly FeatureModule[];
  readonly dialect: Dialect | undefined;
  readonly place: SharedPlace | undefined;
  readonly origins: Origins;
  readonly local: Local | undefined;
  readonly cors: Cors | undefined;
  readonly proxies: Proxies | undefined;
  readonly singles: Singles | undefined;
}

/** Loads the parts that an app needs. @throws OptionError if one was removed */
export async function loadParts(chosen: CompleteOptions): Promise<Parts> {
  const { cluster, collections, settings } = chosen;
  const { auth, corsOrigins, dialect, share, shareHosts, trustedProxies } = settings;
  if (dialect !== undefined && settings.auth !== 'none')
    throw new OptionError(
      'Cannot use --dialect: its clients do not sign in, so it needs --auth none',
    );
  if (share && auth !== 'none')
    throw new OptionError(
      'Cannot use --share: it serves everyone nearby, so it needs --auth none',
      'share',
    );
  const allowed = parseOrigins(corsOrigins);
  const local =
    auth === 'none'
      ? (await loadOption(options.local, '--auth none')).createLocal({
          allowed,
          share,
          hosts: shareHosts,
        })
      : undefined;
  const origins = local?.origins ?? allowed;
  return {
    origins,
    local,
    // Without authentication, nobody has a key.
    features: await loadFeatures({ ...chosen, keys: settings.auth === 'required' }),
    dialect: dialect && (await loadOption(options.dialect, '--dialect')),
    place:
      chosen.place ??
      (cluster &&
        (await loadOption(options.cluster, '--cluster')).joinCluster(cluster, chosen, 'serve')),
    cors:
      corsOrigins.length === 0 && !share
        ? undefined
        : (await loadOption(options.cors, '--cors-origin')).createCors(origins, {
            isOpen: dialect !== undefined,
          }),
    proxies:
      trustedProxies.length === 0
        ? undefined
        : (await loadOption(options.proxies, '--trust-proxy')).createProxies(trustedProxies),
    singles: collections.some(({ isSingle }) => isSingle)
      ? await loadOption(options.singles, '"single": true')
      : undefined,
  };
}

/**
 * Loads the features except those that are false in `chosen`: one after the other, because Jest
 * links modules wrongly that have one in common and are imported at once.
 */
export async function loadFeatures(chosen: object): Promise<readonly FeatureModule[]> {
  const loaded: FeatureModule[] = [];
  for (const [name, load] of Object.entries(features))
    if (Reflect.get(chosen, name) !== false) loaded.push(await load());
  return loaded;
}

/** Loads the rules of references if a field of these collections refers, or an owner counts. */
export async function loadReferences(
  collections: readonly CollectionDeclaration[],
): Promise<ReferenceRules | undefined> {
  const fields = collections.flatMap((each) => Object.values(each.fields));
  const refers =
    fields.some((field) => referenceIn(field) !== undefined) ||
    collections.some(({ ownerRemoved }) => ownerRemoved !== undefined);
  if (!refers) return undefined;
  return (await loadOption(options.references, 'a field that refers to records')).references;
}

/** Loads a part that an option asks for. @throws OptionError if the part was removed */
export function loadOption<P>(part: (() => Promise<P>) | undefined, option: string): Promise<P> {
  if (part !== undefined) return part();
  throw new OptionError(`Cannot use ${option}: this installation has been built without it`);
}
