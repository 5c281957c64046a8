import type { Budget } from '../base/budget.ts';
import type { JsonObject } from '../base/json.ts';
import type { Authenticators } from '../api/authenticate.ts';
import type { Route, RoutedCollection } from '../api/call.ts';
import type { CollectionOptions } from '../api/collections.ts';
import type { Operations as CollectionOperations } from '../api/operations.ts';
import type { AccountContext } from '../accounts/context.ts';
import type { Context } from '../api/context.ts';
import type { SharedPlace, SharedPurpose, SharedTools } from '../api/shared-place.ts';
import type {
  Declared,
  ReferenceRules,
  Registry,
  TableRules,
  CollectionTools,
} from '../collections/declared.ts';
import type { CollectionResource, EntryDraft, NewEntry } from '../collections/resource.ts';
import type { ClusterOptions, Settings } from '../config/options.ts';
import type { Origins } from '../http/cross-site.ts';
import type { Handle } from '../http/message.ts';
import type { Cors, Proxies } from '../http/server-options.ts';
import type { TlsTexts } from '../http/server.ts';
import type { Format, Observer } from '../log/log.ts';
import type { Load, Operated } from '../log/operated.ts';
import type { Store } from '../store/store.ts';
import type { CompleteOptions } from './options.ts';

/** What the parts offer that a flag or a declaration turns on. */
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

export interface FeatureModule {
  createFeature(context: FeatureContext): Feature;
  /** Creates a user's API key and returns it. @throws CairnError */
  makeKey?(context: AccountContext, userId: number, sent: JsonObject): Promise<string>;
}

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
