import type { Budget } from '../base/budget.ts';
import type { Authenticators } from '../api/authenticate.ts';
import type { Route, RoutedCollection } from '../api/call.ts';
import type { CollectionOptions } from '../api/collections.ts';
import type { Operations as CollectionOperations } from '../api/operations.ts';
import type { AccountContext } from '../accounts/context.ts';
import type { Context } from '../api/context.ts';
import type { SharedPlace, SharedPurpose, SharedTools } from '../api/shared-place.ts';
import type { CollectionDeclaration } from '../collections/declaration.ts';
import type {
  Declared,
  ReferenceRules,
  Registry,
  TableRules,
  CollectionTools,
} from '../collections/declared.ts';
import type { CollectionResource, EntryDraft, NewEntry } from '../collections/resource.ts';
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
 * The parts that a server can do without: options, which a flag turns on, and features, which are
 * on. Each part is a folder that only its line here loads, before the server says that it is ready.
 * To remove a part, delete its folder and its line.
 */
export interface Options {
  /** Joins a cluster. Nothing is requested before its store starts. */
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
  readonly local?: () => Promise<{ createLocal(options: LocalOptions): Local }>;
  readonly proxies?: () => Promise<{ createProxies(networks: readonly string[]): Proxies }>;
  readonly references?: () => Promise<{ readonly references: ReferenceRules }>;
  readonly singles?: () => Promise<Singles>;
  readonly readableLog?: () => Promise<{ readonly readable: Format }>;
  readonly tls?: () => Promise<{ readTls(certFile: string, keyFile: string): TlsTexts }>;
}

interface LocalOptions {
  /** The origins in `--cors-origin`. */
  readonly allowed: Origins;
  readonly share: boolean;
  readonly hosts: readonly string[];
}

interface Local {
  readonly origins: Origins;
  readonly check: NonNullable<Authenticators['checkLocal']>;
}

/** Accepts requests in the form of another server. */
interface Dialect {
  readonly rules: TableRules;
  withBodies(
    collection: RoutedCollection<NewEntry, EntryDraft>,
  ): RoutedCollection<NewEntry, EntryDraft>;
  createRoutes(
    declared: Declared,
    registry: Registry,
    options: CollectionOptions,
    tools: CollectionTools & { readonly store: Store },
  ): Route[];
  /** Returns a handler that translates requests for `handle`. */
  translate(handle: Handle, registry: Registry): Handle;
}

interface Singles {
  readonly SingleResource: typeof CollectionResource;
  singleRoutes(
    operations: CollectionOperations<NewEntry, EntryDraft>,
    options: CollectionOptions,
  ): Route[];
}

/** A feature of an app. It observes the requests and security events that it has methods for. */
export interface Feature extends Observer {
  /** Its routes. `others` belong to the app and to earlier features. */
  routes(others: readonly Route[]): readonly Route[];
  /** Its members of `/status`. */
  readonly status?: () => object;
  /** Its part of the app's load. */
  readonly load?: () => Partial<Load>;
  /** Its budget, whose refusals are counted. */
  readonly places?: Budget;
  /** Called when the app stops. */
  readonly close?: () => void;
}

interface FeatureContext extends Context {
  readonly settings: Settings;
  readonly operated: Operated;
}

interface FeatureModule {
  createFeature(context: FeatureContext): Feature;
  /** Creates a user's API key and returns it. @throws CairnError */
  makeKey?(context: AccountContext, userId: number, name: string): Promise<string>;
}

export const optionalParts: Options = {
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

/** @throws OptionError if a part that the app needs was removed */
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
      ? (await loadOption(optionalParts.local, '--auth none')).createLocal({
          allowed,
          share,
          hosts: shareHosts,
        })
      : undefined;
  const origins = local?.origins ?? allowed;
  return {
    origins,
    local,
    // Without authentication, there are no keys.
    features: await loadFeatures({ ...chosen, keys: settings.auth === 'required' }),
    dialect: dialect && (await loadOption(optionalParts.dialect, '--dialect')),
    place:
      chosen.place ??
      (cluster &&
        (await loadOption(optionalParts.cluster, '--cluster')).joinCluster(
          cluster,
          chosen,
          'serve',
        )),
    cors:
      corsOrigins.length === 0 && !share
        ? undefined
        : (await loadOption(optionalParts.cors, '--cors-origin')).createCors(origins, {
            isOpen: dialect !== undefined,
          }),
    proxies:
      trustedProxies.length === 0
        ? undefined
        : (await loadOption(optionalParts.proxies, '--trust-proxy')).createProxies(trustedProxies),
    singles: collections.some(({ isSingle }) => isSingle)
      ? await loadOption(optionalParts.singles, '"single": true')
      : undefined,
  };
}

/**
 * Loads the features except the ones set to false in `chosen`. One after the other, because Jest
 * links modules wrongly if concurrent imports share one.
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
  return (await loadOption(optionalParts.references, 'a field that refers to records')).references;
}

/** @throws OptionError if the part was removed */
export function loadOption<P>(part: (() => Promise<P>) | undefined, option: string): Promise<P> {
  if (part !== undefined) return part();
  throw new OptionError(`Cannot use ${option}: this installation has been built without it`);
}
